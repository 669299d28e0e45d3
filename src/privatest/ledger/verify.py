"""Verify a ledger, and keep the heads of its chains elsewhere.

To verify is to apply every entry from the first one (``State.apply``): digests, sums and limits
must agree with what is stored.

Whoever can rewrite a ledger can make all of its hashes fit again, but not heads that are kept
elsewhere: in a file to which lines are only ever added. With a key, each line is signed together
with the one before it, so that the file can lie where others write too: without the key no line
can be changed, inserted or moved.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from privatest.core.errors import BudgetError, LedgerError, ParameterError
from privatest.ledger.state import (
    DAMAGED,
    GENESIS,
    INVALID,
    Head,
    Spent,
    State,
    canonical,
    digest,
    read_body,
)
from privatest.ledger.tables import query, run

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_HASH = re.compile("[0-9a-f]{16,64}")  # at least as much as was ever printed
_SHORTEST_KEY = 32  # characters


def checked_heads(heads: Mapping[str, Head | str] | None) -> dict[str, Head | str]:
    """Check known heads of chains, each a Head or the first digits of its hash."""
    known = dict(heads or {})
    for name, head in known.items():
        if not isinstance(head, Head) and not _HASH.fullmatch(head):
            raise ParameterError(
                f"the head of {name!r} must be the last hash that verify printed: at least 16 of "
                "its digits, 0 to 9 and a to f."
            )
    return known


def verify_all(connection: Connection, heads: Mapping[str, Head | str]) -> dict[str, Head]:
    """Apply all entries of every chain and return the heads; LedgerError at the first fault."""
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "sqlite":
        # not quick_check: a damaged index would hide an entry from lookups
        answer = connection.execute(text("PRAGMA integrity_check(1)")).scalars().all()
        if answer != ["ok"]:
            raise LedgerError(
                "The ledger was changed or damaged: the file is corrupt. Restore it from a copy."
            )
    if run(connection, "orphans").first():
        raise LedgerError("The ledger was changed or damaged: a data set is gone.")
    rows = list(query(connection, "datasets"))
    states = {row.name: _verify_chain(connection, row, heads.get(row.name)) for row in rows}
    for name in heads.keys() - states.keys():
        raise LedgerError(f"The ledger was changed: data set {name!r} is gone.")
    for state in states.values():
        for old, head, spent in state.links:
            _compare_link(state, states.get(old), head, spent)
    return {name: state.head for name, state in states.items()}


def _verify_chain(connection: Connection, dataset: Row[Any], known: Head | str | None) -> State:
    """Fold ``State.apply`` over the entries of a chain, and compare with the stored sums."""
    state, passed = State(dataset.name), known is None
    for row in query(connection, "entries", dataset=dataset.id):
        _advance(state, row)
        passed = passed or _agrees(state.head, known, state.dataset)
    if not passed:
        raise LedgerError(
            f"The ledger was cut or rewritten: the chain of data set {state.dataset!r} does not "
            "lead to the known head."
        )
    _compare_rows(connection, state, dataset)
    return state


def _wrong(state: State, what: str) -> NoReturn:
    raise LedgerError(
        f"The ledger was changed or damaged: data set {state.dataset!r}, entry "
        f"{state.head.sequence + 1}: {what}."
    )


def _advance(state: State, row: Row[Any]) -> None:
    """Apply one stored entry, or raise an error that says what is wrong with it."""
    try:
        body, sequence = read_body(row.body), state.head.sequence + 1
    except LedgerError:
        _wrong(state, "it cannot be read")
    if row.sequence != sequence or body.get("sequence") != sequence:
        _wrong(state, "it is missing, or out of order")
    if row.hash != digest(state.head.hash, row.body):
        _wrong(state, "its digest does not fit")
    columns = {"kind": row.kind, "opens": row.opens, "closes": row.closes}
    columns |= {"request": row.request, "dataset": state.dataset}
    if any(body.get(name) != value for name, value in columns.items()):
        _wrong(state, "its columns differ from what was hashed")
    time = body.get("time")
    if not isinstance(time, str) or time < state.time:
        _wrong(state, "it is older than the entry before it")
    try:
        state.advance(body, row.body)
    except BudgetError:
        _wrong(state, "it spends more than the budget")
    except LedgerError as error:
        _wrong(state, str(error))
    except INVALID:  # ParameterError is a ValueError
        _wrong(state, "it cannot be read")


def _compare_rows(connection: Connection, state: State, dataset: Row[Any]) -> None:
    """Compare with the rows that grants are decided by."""
    rows = {row.name: row for row in query(connection, "analysts", dataset=dataset.id)}
    if not _same(dataset, state.head_columns()) or rows.keys() != state.analysts.keys():
        _wrong(state, "the data set's row does not end the chain")
    if not _same(dataset, state.account.columns()):
        _wrong(state, "the sums of the data set are not those of the entries")
    for who, row in rows.items():
        if not _same(row, state.analysts[who].columns()):
            _wrong(state, f"the sums of {who} are not those of the entries")


def _same(row: Row[Any], columns: Mapping[str, Any]) -> bool:
    return all(getattr(row, name) == value for name, value in columns.items())


def _compare_link(state: State, old: State | None, head: Mapping[str, Any], spent: Spent) -> None:
    """Compare what was carried with the data set that it was carried from."""
    if old is None or (state.dataset, head) not in old.continuations:
        _wrong(state, "it continues a data set that does not end there")
    if old.account.spent != spent:
        _wrong(state, "it does not count what was spent before")


def _agrees(head: Head, known: Head | str | None, name: str) -> bool:
    """Return whether a chain passes a known head here; a hash alone may be anywhere in it."""
    if isinstance(known, str):
        return head.hash.startswith(known)
    if known is None or head.sequence != known.sequence:
        return False
    if head != known:
        raise LedgerError(f"The ledger was rewritten: data set {name!r} left the known chain.")
    return True


def export(connection: Connection, stream: TextIO) -> int:
    """Write every entry as a line of JSON: its digest, and the body that was hashed."""
    count = 0
    for row in query(connection, "export"):
        read_body(row.body)  # invalid JSON would break the lines
        if "\n" in row.body:
            raise LedgerError(DAMAGED.format(what="an entry"))
        stream.write(f'{{"hash":{json.dumps(row.hash)},"entry":{row.body}}}\n')
        count += 1
    return count


# --- a file of heads ------------------------------------------------------------------------------


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
    _, last = _read_lines(Path(file), key)
    rows = {name: [head.sequence, head.hash] for name, head in heads.items()}
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = canonical({"time": time, "heads": rows, "after": last})
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
    found, _ = _read_lines(path, key)
    return found


def _read_lines(path: Path, key: str | None) -> tuple[dict[str, Head], str]:
    """Return the last heads, and the digest of the last line."""
    heads: dict[str, Head] = {}
    last = GENESIS
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except UnicodeDecodeError:
        raise _changed_line(path, 1, "it cannot be read") from None
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
            raise _changed_line(path, number, "it cannot be read") from None
        if not hmac.compare_digest(sign.encode(), _sign(body, key).encode()):
            raise _changed_line(path, number, "its signature does not fit; is it the right key?")
        if after != last:
            raise _changed_line(path, number, "the line before it is another one")
        if any(name not in new or new[name].sequence < heads[name].sequence for name in heads):
            raise _changed_line(path, number, "a chain is shorter than before")
        heads, last = new, digest(last, line)
    return heads, last


def _sign(body: str, key: str | None) -> str:
    return "" if key is None else hmac.new(key.encode(), body.encode(), "sha256").hexdigest()


def _changed_line(path: Path, number: int, what: str) -> LedgerError:
    return LedgerError(
        f"The heads in {path.name!r} were changed or damaged: line {number}: {what}."
    )
