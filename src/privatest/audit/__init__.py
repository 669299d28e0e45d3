"""Attack every test with made-up rows: no private data is needed, and nothing is charged."""

from __future__ import annotations

import warnings
from typing import Any

from privatest.audit.attacks import ATTACKS, AttackResult, AuditReport
from privatest.audit.auditing import AuditPlan, audit
from privatest.audit.cases import NAMES

__all__ = ["ATTACKS", "NAMES", "AttackResult", "AuditPlan", "AuditReport", "audit"]

_RENAMED = {"Audited": "AuditReport", "Finding": "AttackResult", "Plan": "AuditPlan"}


def __getattr__(name: str) -> Any:
    """Return classes by the names that they had before version 1."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _RENAMED[name]
    warnings.warn(f"use privatest.audit.{new}", DeprecationWarning, stacklevel=2)
    return globals()[new]
