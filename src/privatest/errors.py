"""The exceptions privatest raises.

::

    PrivatestError
    ├── ParameterError   (also ValueError)   a public parameter cannot be used
    ├── DataError        (also ValueError)   data does not fit its public description
    └── PrivacyError                         going on would break the guarantee

Messages name parameters, columns and rules. They never hold a value read from data.
"""

__all__ = ["DataError", "ParameterError", "PrivacyError", "PrivatestError"]


class PrivatestError(Exception):
    """Base of everything privatest raises on purpose."""


class ParameterError(PrivatestError, ValueError):
    """A public parameter cannot be used; the message says what to pass instead."""


class DataError(PrivatestError, ValueError):
    """Data does not fit its public description; the message names the column and the rule."""


class PrivacyError(PrivatestError):
    """The call would release something that no theorem covers."""
