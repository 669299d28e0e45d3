"""On which line of a TOML file a key stands, so that a mistake can be found."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["line_of", "lines_of_keys", "syntax_error_line"]

Key = tuple[str, ...]


def lines_of_keys(text: str, document: Mapping[str, Any]) -> dict[Key, int]:
    """Return the line, from 1, of each table header and key that begins a line.

    Parameters
    ----------
    text : str
        TOML.
    document : mapping
        What it says: a line inside a text or a list may only look like a key.
    """
    found: dict[Key, int] = {}
    table: Key = ()
    inside = False  # a text of several lines
    for number, line in enumerate(text.split("\n"), start=1):
        opens = (line.count('"""') + line.count("'''")) % 2 == 1
        inside, skip = inside ^ opens, inside
        if skip:
            continue
        if (header := _header(line)) is not None and _exists(document, header):
            table = header
            found.setdefault(header, number)
            continue
        key = next((k for k in _keys(line) if _exists(document, table + k)), None)
        if key is not None:
            for depth in range(1, len(key) + 1):  # a.b = 1 names a, too
                found.setdefault(table + key[:depth], number)
    for key, number in list(found.items()):  # [a.b] makes a, where nothing else does
        for depth in range(1, len(key)):
            found.setdefault(key[:depth], number)
    return found


def line_of(lines: Mapping[Key, int], key: Key) -> int:
    """Return the line of a key, or of the nearest table around it; 1 if there is none."""
    while key and key not in lines:
        key = key[:-1]
    return lines.get(key, 1)


def syntax_error_line(text: str) -> int:
    """Return the first line with which the text is no longer TOML."""
    # tomllib has the line in its message only, and says "end of document" for the last one
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).partition("(at line ")[2].partition(",")[0]
        return int(words) if words.isdigit() else max(1, len(text.splitlines()))
    except ValueError:  # an integer of thousands of digits
        pass
    return 1


def _header(line: str) -> Key | None:
    """Read ``[a.b]``; None if it is no header."""
    if not line.lstrip().startswith("["):
        return None
    return _path(line)


def _keys(line: str) -> Iterator[Key]:
    """Read what stands before each = of a line: a quoted key may hold one itself."""
    position = line.find("=")
    while position >= 0:
        key = _path(f"{line[:position]}= 0")
        if key is not None:
            yield key
        position = line.find("=", position + 1)


def _path(text: str) -> Key | None:
    """Return the one key that a line of TOML makes."""
    try:
        inner: Any = tomllib.loads(text)
    except ValueError:
        return None
    path = []
    while isinstance(inner, (dict, list)) and inner:
        if isinstance(inner, list):
            inner = inner[0]
            continue
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path) or None


def _exists(document: Mapping[str, Any], key: Key) -> bool:
    inner: Any = document
    for name in key:
        if not isinstance(inner, Mapping) or name not in inner:
            return False
        inner = inner[name]
    return True
