"""Standard output and standard error, such that no answer is lost in printing.

An answer is recorded before it is printed, and printing must not fail on a character that the
terminal does not have: it is replaced.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

__all__ = ["flush", "make_forgiving", "silence"]

_HANDLER = "privatest.plain"
_PLAIN = {
    "█": "#",
    "░": ".",
    "±": "+-",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "ε": "epsilon",
    "δ": "delta",
}


def make_forgiving() -> None:
    """Let both streams write what they can show in place of what they cannot."""
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def flush() -> None:
    """Write out what is buffered now, while a failure can still be told."""
    if sys.stdout is not None:
        sys.stdout.flush()


def silence() -> None:
    """Turn standard output away: nobody reads it, and Python would complain at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Spell a character in ASCII: our own signs as people type them, others by their number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or _escaped(c) for c in missing), error.end


def _escaped(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode("ascii")
