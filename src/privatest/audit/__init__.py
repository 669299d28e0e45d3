"""Try to break it: attacks on every test, which anybody can run.

Rows are made up: no private data is needed, and nothing is charged.
"""

from __future__ import annotations

from privatest.audit.auditing import Plan, audit
from privatest.audit.cases import NAMES
from privatest.audit.findings import ATTACKS, Audited, Finding

__all__ = ["ATTACKS", "NAMES", "Audited", "Finding", "Plan", "audit"]
