"""Differentially private hypothesis tests: the answer, and a proof that it hides each person.

Public names are listed once, in ``__init__.pyi``. A module is loaded when one of its names is first
used, so that ``privatest --help`` is quick.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    alias.name: statement.module
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(statement, ast.ImportFrom) and statement.module
    for alias in statement.names
}
__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    function = getattr(value, "__wrapped__", value)
    if "noise" in (getattr(function, "__kwdefaults__", None) or ()):  # it spends
        value = import_module("privatest.core.spending").charged(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
