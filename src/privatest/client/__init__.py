"""The library's functions, asked of a curator: column names in the place of arrays."""

from privatest.client.client import Client, connect
from privatest.client.dataset import Columns, Dataset
from privatest.client.jobs import Job

__all__ = ["Client", "Columns", "Dataset", "Job", "connect"]
