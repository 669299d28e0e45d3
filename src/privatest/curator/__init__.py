"""Answers about data that the asker may not see, within a budget that cannot be overspent."""

import warnings
from typing import Any

from privatest.curator.answers import Answer, Price, RequestFailed
from privatest.curator.config import AnalystConfig, CuratorConfig, DatasetConfig, Policy
from privatest.curator.curator import Curator
from privatest.curator.worker_pool import Reply, WorkerPool

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
    "WorkerPool",
]


def __getattr__(name: str) -> Any:
    if name == "Workers":
        warnings.warn("Workers is now called WorkerPool.", DeprecationWarning, stacklevel=2)
        return WorkerPool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
