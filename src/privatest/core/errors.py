"""The exceptions privatest raises.

::

    PrivatestError
    ├── ParameterError   (also ValueError)   a public parameter cannot be used
    ├── DataError        (also ValueError)   data does not fit its public description
    ├── PrivacyError                         continuing would break the guarantee
    ├── BudgetError                          a request costs more than what is left
    ├── EngineError                          workers cannot be reached, or do not fit
    ├── ServiceError                         a service cannot be reached or understood
    └── LedgerError                          the ledger cannot be used, or was changed
        └── LedgerMissing                    there is no ledger yet

Messages name parameters, columns and rules. They never hold a value read from data.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Self

__all__ = [
    "BudgetError",
    "DataError",
    "EngineError",
    "LedgerError",
    "LedgerMissing",
    "ParameterError",
    "PrivacyError",
    "PrivatestError",
    "ServiceError",
]


class PrivatestError(Exception):
    """Base class of the errors that privatest raises.

    Attributes
    ----------
    flags : str
        What to type instead, for those who use the command line: not part of the message, since
        an analyst who wrote a request has no flags.
    """

    flags = ""

    def with_flags(self, words: str) -> Self:
        """Add what to type on the command line."""
        self.flags = words
        return self


class ParameterError(PrivatestError, ValueError):
    """A public parameter cannot be used; the message says what to pass instead."""


class DataError(PrivatestError, ValueError):
    """Data does not fit its public description; the message names the column and the rule."""


class PrivacyError(PrivatestError):
    """The call would release something that no theorem covers."""


class BudgetError(PrivatestError):
    """A request costs more than what is left of a budget; nothing was spent.

    Attributes
    ----------
    asked, left : mapping of str to Decimal or int
        What the request costs and what there is, by the names of the sums that decide:
        ``epsilon`` and ``delta``, or those of another composition. Empty if unknown.
    """

    def __init__(
        self,
        message: str = "",
        *,
        asked: Mapping[str, Decimal | int] | None = None,
        left: Mapping[str, Decimal | int] | None = None,
    ) -> None:
        super().__init__(message)
        self.asked = dict(asked or {})
        self.left = dict(left or {})

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the sums that the request would exceed."""
        return tuple(name for name, cost in self.asked.items() if cost > self.left.get(name, cost))


class EngineError(PrivatestError):
    """Workers cannot be reached, do not fit, or were lost; the message names no value."""


class LedgerError(PrivatestError):
    """The ledger cannot be read or written, or was altered; nothing may be released."""


class LedgerMissing(LedgerError):
    """There is no ledger yet, and nothing else is wrong: whoever may can make one."""


class ServiceError(PrivatestError):
    """A curator's service cannot be reached, does not know the asker, or cannot be understood.

    Attributes
    ----------
    status : int
        The status of its answer; 0 if there was none.
    name : str
        What it calls the problem.
    """

    def __init__(self, message: str = "", *, status: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.status, self.name = status, name
