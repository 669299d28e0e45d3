"""Heads of chains in a file of their own, to which lines are only ever added.

Whoever can rewrite a ledger can make all of its hashes fit again, but not those that are kept
elsewhere. With a key, each line is signed together with the one before it, so that the file can
lie where others write too: without the key no line can be changed, inserted or put elsewhere.
"""

from __future__ import annotations

import hmac
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from privatest.core.errors import LedgerError, ParameterError
from privatest.ledger.accounts import Head
from privatest.ledger.chain import GENESIS, canonical, digest
from privatest.ledger.checks import now

__all__ = ["add_heads", "key_from", "read_heads"]

_SHORTEST_KEY = 32  # characters


def key_from(file: str | os.PathLike[str], *, create: bool = False) -> str:
    """Read a key; with ``create`` make a file with a random one, for its owner alone."""
    path = Path(file)
    try:
        if create and not path.exists():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                stream.write(f"{uuid.uuid4().hex}{uuid.uuid4().hex}\n")
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ParameterError(f"the key {path.name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        text = ""
    if len(text) < _SHORTEST_KEY:
        raise ParameterError(
            f"the key {path.name!r} must have at least {_SHORTEST_KEY} characters."
        )
    return text


def add_heads(file: str | os.PathLike[str], heads: Mapping[str, Head], key: str | None) -> None:
    """Add a line, after checking those that are there; on disk when this returns."""
    _, last = _lines(Path(file), key)
    rows = {name: [head.sequence, head.hash] for name, head in heads.items()}
    body = canonical({"time": now(), "heads": rows, "after": last})
    line = canonical({"body": body, "sign": _sign(body, key)}) + "\n"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        name = Path(file).name
        raise ParameterError(f"cannot write {name!r}: {error.strerror}.") from None


def read_heads(file: str | os.PathLike[str], key: str | None) -> dict[str, Head]:
    """Return the last heads of each data set, after checking every line and its order.

    The chain that leads to the last head of a data set is compared; it holds all earlier ones.
    A later line that goes back is refused: only a restore that is on record does that, after
    which a new file is begun.
    """
    path = Path(file)
    if not path.exists():
        raise ParameterError(f"there is no file {path.name!r} with heads.")
    found, _ = _lines(path, key)
    return found


def _lines(path: Path, key: str | None) -> tuple[dict[str, Head], str]:
    """Return the last heads, and the digest of the last line."""
    heads: dict[str, Head] = {}
    last = GENESIS
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except UnicodeDecodeError:
        raise _wrong(path, 1, "it cannot be read") from None
    except OSError as error:
        raise ParameterError(f"cannot read {path.name!r}: {error.strerror}.") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            document = json.loads(line)
            body = str(document["body"])
            rows = json.loads(body)
            new = {str(n): Head(int(s), str(h)) for n, (s, h) in rows["heads"].items()}
            sign, after = str(document["sign"]), rows["after"]
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise _wrong(path, number, "it cannot be read") from None
        if not hmac.compare_digest(sign.encode(), _sign(body, key).encode()):
            raise _wrong(path, number, "its signature does not fit; is it the right key?")
        if after != last:
            raise _wrong(path, number, "the line before it is another one")
        if any(name not in new or new[name].sequence < heads[name].sequence for name in heads):
            raise _wrong(path, number, "a chain is shorter than before")
        heads, last = new, digest(last, line)
    return heads, last


def _sign(body: str, key: str | None) -> str:
    return "" if key is None else hmac.new(key.encode(), body.encode(), "sha256").hexdigest()


def _wrong(path: Path, number: int, what: str) -> LedgerError:
    return LedgerError(
        f"The heads in {path.name!r} were changed or damaged: line {number}: {what}."
    )
