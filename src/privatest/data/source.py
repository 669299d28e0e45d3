"""Deprecated name of :mod:`privatest.data.sources`."""

from privatest.data.sources import Source  # noqa: F401
