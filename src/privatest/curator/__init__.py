"""Answers about data that the asker may not see, within a budget that cannot be overspent."""

from privatest.curator.answers import Answer, Price, RequestFailed
from privatest.curator.config import AnalystConfig, CuratorConfig, DatasetConfig, Policy
from privatest.curator.curator import Curator
from privatest.curator.workers import Reply, Workers

__all__ = [
    "AnalystConfig",
    "Answer",
    "Curator",
    "CuratorConfig",
    "DatasetConfig",
    "Policy",
    "Price",
    "Reply",
    "RequestFailed",
    "Workers",
]
