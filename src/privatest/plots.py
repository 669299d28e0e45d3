"""Deprecated names of pictures: they are in :mod:`privatest.display`."""

import sys
import warnings
from importlib import import_module
from typing import Any

_EARLIER = ("budgets", "differences", "features", "marginals", "null_laws", "planning", "style")
__path__: list[str] = []
sys.modules |= {f"{__name__}.{name}": sys.modules[__name__] for name in _EARLIER}


def __getattr__(name: str) -> Any:
    home = {"themed": "style", "plot_marginals": "release_plots"}.get(name, "plots")
    if name != "themed" and not name.startswith("plot_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"use privatest.display.{home}.{name}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(f"privatest.display.{home}"), name)
