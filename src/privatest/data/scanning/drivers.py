"""What drivers of databases have in common."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from privatest.core.errors import ParameterError

__all__ = ["driver", "quoted_name"]


def quoted_name(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def driver(kind: str) -> Any:
    """Return the ADBC driver of a kind of database."""
    try:
        return import_module(f"adbc_driver_{kind}.dbapi")
    except ImportError:
        extra = "postgres" if kind == "postgresql" else kind
        raise ParameterError(
            f'scan_sql needs a driver for {kind}: pip install "privatest[{extra}]".'
        ) from None
