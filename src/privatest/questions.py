"""Deprecated name of :mod:`privatest.requests`."""

import warnings
from importlib import import_module
from typing import Any

_HOMES = {
    **dict.fromkeys(("METHODS", "Method", "Question"), "catalogue"),
    **dict.fromkeys(("Prepared", "Request"), "request"),
    **dict.fromkeys(("Result", "result_from_dict"), "results"),
    "prepare": "prepare",
    "rehearse": "rehearsal",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"privatest.requests.{_HOMES[name]}"
    warnings.warn(f"use {home}.{name}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(home), name)
