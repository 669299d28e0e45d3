"""The exceptions privatest raises.

::

    PrivatestError
    ├── ParameterError   (also ValueError)   a public parameter cannot be used
    ├── DataError        (also ValueError)   data does not fit its public description
    ├── PrivacyError                         going on would break the guarantee
    ├── BudgetError                          a request costs more than what is left
    └── LedgerError                          the ledger cannot be used, or was changed

Messages name parameters, columns and rules. They never hold a value read from data.
"""

__all__ = [
    "BudgetError",
    "DataError",
    "LedgerError",
    "ParameterError",
    "PrivacyError",
    "PrivatestError",
]


class PrivatestError(Exception):
    """Base of everything privatest raises on purpose."""


class ParameterError(PrivatestError, ValueError):
    """A public parameter cannot be used; the message says what to pass instead."""


class DataError(PrivatestError, ValueError):
    """Data does not fit its public description; the message names the column and the rule."""


class PrivacyError(PrivatestError):
    """The call would release something that no theorem covers."""


class BudgetError(PrivatestError):
    """A request costs more than what is left of a budget; nothing was spent."""


class LedgerError(PrivatestError):
    """The ledger cannot be read or written, or is not what was written; nothing was granted."""
