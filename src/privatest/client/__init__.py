"""The library's functions, asked of a curator: column names in the place of arrays."""

from privatest.client.client import Client, Columns, Dataset, Job, connect

__all__ = ["Client", "Columns", "Dataset", "Job", "connect"]
