"""What drivers of databases have in common."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from privatest.core.errors import ParameterError

__all__ = ["driver", "patient", "quoted_name"]

_PATIENCE = 10  # seconds until a database that does not answer is given up


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


def patient(url: str) -> str:
    """Have a connection to PostgreSQL given up after ten seconds, unless the address says else."""
    if "connect_timeout" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={_PATIENCE}"
