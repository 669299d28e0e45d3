"""Try to break it: attacks on every test, which anybody can run.

Rows are made up: no private data is needed, and nothing is charged.
"""

from __future__ import annotations

from privatest.audit.auditing import Audited, audit
from privatest.audit.cases import NAMES

__all__ = ["NAMES", "Audited", "audit"]
