"""Deprecated name of :mod:`privatest.methods.shares`."""

import warnings
from typing import Any

from privatest.methods import shares


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(shares, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"import {name} from privatest", DeprecationWarning, stacklevel=2)
    return getattr(shares, name)
