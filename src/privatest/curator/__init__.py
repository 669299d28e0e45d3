"""Answers about data that the asker may not see, within a budget that cannot be overspent."""

from privatest.curator.answers import Answer, Price
from privatest.curator.config import AnalystConfig, CuratorConfig, DatasetConfig, Policy
from privatest.curator.curator import Curator
from privatest.curator.failures import RequestFailed
from privatest.curator.inquiry import Inquiry

__all__ = [
    "AnalystConfig",
    "Answer",
    "Curator",
    "CuratorConfig",
    "DatasetConfig",
    "Inquiry",
    "Policy",
    "Price",
    "RequestFailed",
]
