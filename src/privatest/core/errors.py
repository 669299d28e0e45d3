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

Messages name parameters, columns and rules. They and the fields of an error never hold a value
read from data. ``str(error)`` is a sentence that names arguments as the library does; a front end
writes its own from the fields (the command line names options, the curator keys of a request).
"""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType


class PrivatestError(Exception):
    """Base class of the errors that privatest raises.

    Attributes
    ----------
    remedy : mapping of str to str
        Alternatives: arguments that would help, by name, each with its value, or "" where any
        value would do. Public words only.
    """

    remedy: Mapping[str, str] = MappingProxyType({})

    def __init__(self, message: str = "", *, remedy: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        if remedy:
            self.remedy = dict(remedy)


class ParameterError(PrivatestError, ValueError):
    """A public parameter cannot be used.

    ``ParameterError("alpha", "must be below 1", given="2")``, or one sentence for what concerns
    no single parameter.

    Attributes
    ----------
    parameter : str
        The name of the argument, perhaps with a part of it (``"cdf: scale"``); "" if the error
        concerns no single parameter.
    rule : str
        The rest of the sentence: what the argument must be.
    given : str
        What was passed: a quoted public value or the name of a type, or "".
    """

    def __init__(
        self,
        parameter: str = "",
        rule: str = "",
        *,
        given: str = "",
        remedy: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(parameter, remedy=remedy)
        self.parameter, self.rule, self.given = parameter if rule else "", rule, given
        if rule:
            self.args = (parameter, rule)

    def __str__(self) -> str:
        """Return the sentence, with the name of the argument."""
        return self.naming(self.parameter)

    def naming(self, parameter: str) -> str:
        """Return the sentence with another name for the parameter."""
        if not self.rule:
            return super().__str__()
        return f"{parameter} {self.rule}{self.given and f'; got {self.given}'}."

    def rename(self, names: Mapping[str, str]) -> None:
        """Give the parameter the new name that ``names`` has for it, if any."""
        parameter, colon, part = self.parameter.partition(":")
        self.parameter = f"{names.get(parameter, parameter)}{colon}{part}"


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
    """There is no ledger yet; otherwise nothing is wrong."""


class ServiceError(PrivatestError):
    """A curator's service cannot be reached, refuses the token, or sent an unreadable answer.

    Attributes
    ----------
    status : int
        The HTTP status; 0 without a response.
    name : str
        The service's name for the problem.
    """

    def __init__(self, message: str = "", *, status: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.status, self.name = status, name
