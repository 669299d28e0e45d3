"""Deprecated name of a part of :mod:`privatest.data.schema`."""

from privatest.data.schema import schema_template  # noqa: F401
