"""JSON documents with a checksum.

The checksum guards against accidents: an edit, a truncated file, a faulty disk. It is not a
signature: an attacker can recompute it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privatest.core import documents
from privatest.core.documents import fingerprint, write_text
from privatest.core.errors import DataError, ParameterError

__all__ = [
    "VERSION",
    "check_writable",
    "field",
    "integer",
    "named",
    "names_that_differ",
    "numbers",
    "open_document",
    "positive",
    "read",
    "seal",
    "write",
]

VERSION = 1
_LONGEST = 64 * 2**20  # characters; no plan or share comes near


def seal(kind: str, content: Mapping[str, Any]) -> str:
    """Write a document of one ``kind`` with its checksum."""
    document = {"format": kind, "version": VERSION, **content}
    document["checksum"] = fingerprint(document)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def open_document(text: str | bytes, kind: str) -> dict[str, Any]:
    """Return the content of a document of ``kind``, or refuse it with the reason."""
    document = _parse(text, kind)
    if document.get("format") != kind:
        raise DataError(f"it is not a {kind}: its format is another.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise DataError(
            f"its version is not {VERSION}: use the version of privatest that wrote it, or ask "
            "for a new copy."
        )
    stated = document.pop("checksum", None)
    if stated != fingerprint(document):
        raise DataError(
            "its checksum does not match: it was edited or damaged. Ask for a new copy."
        )
    return {key: value for key, value in document.items() if key not in ("format", "version")}


def _parse(text: str | bytes, kind: str) -> dict[str, Any]:
    if len(text) > _LONGEST:
        raise DataError(f"it is too long for a {kind}.")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        document = json.loads(decoded, parse_constant=_not_finite, object_pairs_hook=_unique)
    except DataError:
        raise
    except (ValueError, RecursionError):  # also text that is not UTF-8, and endless integers
        raise DataError(
            f"it is not a complete JSON document of a {kind}: was it truncated or edited?"
        ) from None
    if not isinstance(document, dict):
        raise DataError(f"it is not a {kind}.")
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:  # 1e999 is read as infinity
        _not_finite("")
    return document


def _not_finite(_: str) -> NoReturn:
    raise DataError("it has a number that is not finite.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DataError("it has the same key twice.")
    return result


def field(content: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return an entry of one of the given types."""
    value = content.get(name)
    if type(value) not in kinds:  # not isinstance: true is no number
        raise DataError(f"its {name!r} is missing or of another type.")
    return value


def integer(content: Mapping[str, Any], name: str, minimum: int) -> int:
    """Return an entry that is an integer of at least ``minimum``."""
    value = field(content, name, int)
    if not minimum <= value < 2**53:
        raise DataError(f"its {name!r} is out of range.")
    return int(value)


def numbers(
    content: Mapping[str, Any], name: str, shape: tuple[int | None, ...]
) -> NDArray[np.float64]:
    """Return a list, or a list of lists, of finite numbers; None in ``shape`` is any length."""
    value = field(content, name, list)
    if not _fits(value, shape):
        raise DataError(f"its {name!r} does not hold the numbers that it should.")
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, OverflowError):  # lists of unequal lengths, integers beyond all floats
        raise DataError(f"its {name!r} does not hold the numbers that it should.") from None
    if not np.isfinite(array).all():
        raise DataError(f"its {name!r} has a number that is not finite.")
    return array


def _fits(value: Any, shape: tuple[int | None, ...]) -> bool:
    if not shape:
        return type(value) in (int, float)
    if type(value) is not list or not value or shape[0] not in (None, len(value)):
        return False
    return all(_fits(item, shape[1:]) for item in value)


def positive(content: Mapping[str, Any], name: str) -> float:
    """Return an entry that is a finite number above 0."""
    value = float(numbers({name: [content.get(name)]}, name, (1,))[0])
    if not value > 0:
        raise DataError(f"its {name!r} must be above 0.")
    return value


def read(path: str | os.PathLike[str], what: str) -> bytes:
    """Read a file; ``what`` names it in messages."""
    file = Path(path)
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise DataError(f"{what} {file.name} cannot be read: {_reason(error)}.") from None


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file completely or not at all: half a share would cost as much as a whole one."""
    with _naming(path):
        write_text(path, text)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`write` could not write to."""
    with _naming(path):
        documents.check_writable(path)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ParameterError(f"{Path(path).name} cannot be written: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is not the name of a file"


def named(path: str | os.PathLike[str], error: Exception) -> DataError:
    """Return an error with the file's name before the reason."""
    return DataError(f"{Path(path).name} is refused: {error}")


def names_that_differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys under which two contents differ."""
    keys = sorted(set(first) | set(second))
    return [key for key in keys if first.get(key) != second.get(key)]
