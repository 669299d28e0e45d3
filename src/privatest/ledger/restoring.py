"""Put a backup in the place of a ledger: never back in time without saying so, in its chains.

Where the present ledger can still be read, what it says was spent is counted in the restored one
too: a restore refunds nothing. Nor does it open what was closed since, or raise a budget that was
lowered. What is lost are entries, and answers that could be recalled.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.core.errors import LedgerError
from privatest.ledger.database import Database, copy_file, copy_to_file, in_use, new_file
from privatest.ledger.state import Account, Head, Spent, State, Sums, limits_for, read_body
from privatest.ledger.store import (
    Ledger,
    append,
    carry,
    close_analyst,
    close_dataset,
    create,
    locked,
    now,
    read_states,
    reason_fields,
)
from privatest.ledger.tables import copy_rows, delete_rows, lock_tables, migrate, query_one

if TYPE_CHECKING:
    from sqlalchemy import Connection

_UNKNOWN = (
    "What the backup lacks is not known: {why}. Pass --back-in-time to restore it nevertheless, "
    "then lower the budgets by what was spent since."
)


@dataclass(frozen=True, slots=True)
class Lost:
    """What a backup lacks of one data set.

    Attributes
    ----------
    present, backup : Head or None
        Where the chains end; None if there is none.
    entries : int
        How many entries are lost, with their answers.
    spent : Spent
        What was spent by them; it is counted in the restored ledger.
    """

    present: Head | None
    backup: Head | None
    entries: int
    spent: Spent

    def to_dict(self) -> dict[str, Any]:
        """Write as plain values, decimals as strings."""
        heads = {"present": self.present, "backup": self.backup}
        plain = {name: head and head.to_dict() for name, head in heads.items()}
        return {**plain, "entries": self.entries, "spent": self.spent.to_dict()}


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did.

    Attributes
    ----------
    heads : mapping of str to Head
        The ends of the chains.
    lost : mapping of str to Lost
        What the backup lacked, by data set.
    unknown : bool
        Whether there was no ledger to compare with.
    kept : Path or None
        Where the ledger that was replaced is.
    """

    heads: Mapping[str, Head]
    lost: Mapping[str, Lost] = field(default_factory=dict)
    unknown: bool = False
    kept: Path | None = None


def restore(
    backup: str | os.PathLike[str],
    location: str | os.PathLike[str],
    *,
    back_in_time: bool = False,
    reason: str = "",
    by: str = "",
    keep: str | os.PathLike[str] | None = None,
) -> Restored:
    """Replace a ledger by a backup of it, in one transaction.

    Parameters
    ----------
    backup : str or path
        What ``Ledger.backup`` wrote; it is verified first, and not changed.
    location : str or path
        The ledger; made if there is none.
    back_in_time : bool
        Whether to restore a backup that lacks entries of the present ledger, or of which that is
        not known. It is recorded in every chain that is concerned.
    reason, by : str
        Why, and who says so; public words, for the record.
    keep : str or path, optional
        New file for a copy of the ledger that is replaced; by default beside it.

    Raises
    ------
    LedgerError
        If the backup is damaged, or would go back in time unasked. Nothing was changed.
    """
    words = reason_fields(reason, by)
    stamp = now().replace(":", "").replace("-", "").rstrip("Z")
    with _draft(Path(backup)) as (draft, heads):
        database = Database(location, create=True, timeout=30) if "://" in str(location) else None
        file = Path(location) if database is None else None
        if file is not None and not _is_whole(file):
            if not back_in_time:
                raise LedgerError(_UNKNOWN.format(why=_why(file)))
            return _place(draft, file, heads, words, stamp)
        found = database or Database(location, create=False, timeout=30)
        name = Path(keep or f"{file or 'ledger.db'}.before-{stamp}")
        try:
            lost, unknown = _replace(found, draft, name, words, back_in_time)
        finally:
            found.close()
    with Ledger.open(location) as ledger:
        return Restored(ledger.verify(), lost, unknown, None if unknown else name)


@contextmanager
def _draft(backup: Path) -> Iterator[tuple[Path, dict[str, Head]]]:
    """Give a verified copy of the backup, which stays as it is."""
    if not backup.is_file():
        raise LedgerError(f"There is no backup at {backup.name!r}.")
    with tempfile.TemporaryDirectory(prefix="privatest") as folder:  # for its owner alone
        draft = Path(folder) / "ledger.db"
        copy_file(backup, draft)
        with Ledger.open(draft) as ledger:
            heads = ledger.verify()
        yield draft, heads


def _is_whole(file: Path) -> bool:
    """Return whether a file is a ledger whose budgets can be read; a busy one is."""
    if not file.exists():
        return False
    try:
        with in_use(), closing(sqlite3.connect(file, timeout=30)) as connection:
            answer = connection.execute("PRAGMA integrity_check(1)").fetchall()
            connection.execute("SELECT version FROM privatest_version").fetchall()
        if answer != [("ok",)]:
            return False
    except sqlite3.OperationalError as error:
        return "no such table" not in str(error)  # others: busy, or not permitted
    except sqlite3.DatabaseError:
        return False
    database = Database(file, create=False, timeout=30)
    with closing(database), database.reading() as connection:
        try:
            read_states(connection)
        except LedgerError:
            return False
        return True


def _why(file: Path) -> str:
    return f"{file.name} is damaged" if file.exists() else f"there is no ledger at {file.name}"


def _place(
    draft: Path, file: Path, heads: Mapping[str, Head], words: Mapping[str, Any], stamp: str
) -> Restored:
    """Put a backup where there is no ledger, or a damaged one, which is moved aside."""
    database = Database(draft, create=False, timeout=30)
    with closing(database), database.writing() as connection:
        _record_unknown(connection, words)
    kept = None
    with new_file(file.with_name(f"{file.name}.restoring-{stamp}"), "ledger") as made:
        copy_file(draft, made)
        if file.exists():
            kept = file.with_name(f"{file.name}.damaged-{stamp}")
            for end in ("-wal", "-shm"):  # a log without its file must not be taken for a new one's
                with suppress(FileNotFoundError):
                    Path(f"{file}{end}").replace(f"{kept}{end}")
            os.link(file, kept)
        made.replace(file)
    lost = {name: Lost(None, head, 0, Spent()) for name, head in heads.items()}
    with Ledger.open(file) as ledger:
        return Restored(ledger.verify(), lost, True, kept)


def _replace(
    database: Database, draft: Path, keep: Path, words: Mapping[str, Any], back_in_time: bool
) -> tuple[dict[str, Lost], bool]:
    """Compare and replace in one transaction: nothing is granted in between."""
    source = Database(draft, create=False, timeout=30)
    with closing(source), source.reading() as backup, database.writing() as present:
        migrate(present, create=True)
        lock_tables(present)
        before = read_states(present)
        lost = _compare(present, backup, before)
        if not before and not back_in_time:
            raise LedgerError(_UNKNOWN.format(why="the ledger is empty"))
        if lost and not back_in_time:
            raise LedgerError(_refusal(lost))
        if before:
            with new_file(keep, "copy of the ledger that is replaced") as path:
                if database.kind == "sqlite":  # a connection that writes cannot be copied from
                    copy_file(database.file, path)
                else:
                    copy_to_file(present, path)
        continued = {name: _continued_as(present, before[name]) for name in lost}
        delete_rows(present)
        copy_rows(backup, present)
        for name, missing in lost.items():
            _record_lost(present, missing, before[name], continued[name], words)
        if not before:
            _record_unknown(present, words)
    return lost, not before


def _compare(
    present: Connection, backup: Connection, before: Mapping[str, State]
) -> dict[str, Lost]:
    """Return what the backup lacks of the present ledger."""
    states, lost = read_states(backup), {}
    for name, state in before.items():
        old = states.get(name)
        common = _common_entries(present, state, backup, old)
        if common < state.head.sequence:
            spent = state.account.sums.exceeding(Sums() if old is None else old.account.sums)
            head = None if old is None else old.head
            lost[name] = Lost(state.head, head, state.head.sequence - common, spent)
    return lost


def _common_entries(
    present: Connection, state: State, backup: Connection, old: State | None
) -> int:
    """Return how many entries two chains share: where hashes agree, so do all before."""
    if old is None:
        return 0
    low, high = 0, min(state.head.sequence, old.head.sequence)
    while low < high:
        middle = (low + high + 1) // 2
        if _hash(present, state.row, middle) == _hash(backup, old.row, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _hash(connection: Connection, dataset: int, sequence: int) -> str | None:
    row = query_one(connection, "entry_hash", dataset=dataset, sequence=sequence)
    return None if row is None else row.hash


def _refusal(lost: Mapping[str, Lost]) -> str:
    words = "; ".join(
        f"{name!r}: {each.entries:,} entries, epsilon {each.spent.epsilon:f}"
        for name, each in lost.items()
    )
    return (
        f"The backup lacks what the ledger has since ({words}). Nothing was changed. Pass "
        "--back-in-time to restore it nevertheless: entries and answers are lost, what they cost "
        "stays spent, and the ledger says so."
    )


def _continued_as(connection: Connection, state: State) -> str:
    """Return the name of the data set that continues a closed one; nothing if it is open."""
    if not state.account.closed:
        return ""
    row = query_one(connection, "closed", dataset=state.row)
    return "" if row is None else str(read_body(row.body).get("to", ""))


def _record_unknown(connection: Connection, words: Mapping[str, Any]) -> None:
    """Say in each chain that the ledger may have gone back: nobody knows from where."""
    for state in read_states(connection).values():
        fields = {"unknown": True, "to": state.head.to_dict()}
        carry(connection, state, "restored", {**fields, **words}, Spent(), {})


def _record_lost(
    connection: Connection, lost: Lost, before: State, continued: str, words: Mapping[str, Any]
) -> None:
    """Say from where to where a chain went back, and count what was spent.

    Going back in time must not let in whoever was revoked, open a data set whose people have
    another budget by now, or give back what a budget was lowered by.
    """
    name = before.dataset
    if lost.backup is None:
        state = create(connection, name, before.account.budget, before.settings)
    else:
        state = locked(connection, name, None)
    analysts = {}
    for who, own in before.analysts.items():
        restored = state.analysts[who].sums if who in state.analysts else Sums()
        analysts[who] = own, own.sums.exceeding(restored)
    known = lost.to_dict()
    fields = {"from": known["present"], "to": known["backup"], "entries": lost.entries, **words}
    carry(connection, state, "restored", fields, lost.spent, analysts)
    for who, own in sorted(before.analysts.items()):
        if state.analysts[who].closed:
            continue
        if own.closed:
            close_analyst(connection, state, who, words)
        elif _is_less(own, state.analysts[who]):
            lower = Account(own.budget, limits_for(own.budget, state.settings))
            append(connection, state, "analyst", {"analyst": who, **lower.fields(), **words})
    if state.account.closed:
        return
    if before.account.closed:
        close_dataset(connection, state, {"to": continued, **words})
    elif _is_less(before.account, state.account):
        budget = before.account.budget
        lower = Account(budget, limits_for(budget, state.settings))
        append(connection, state, "budget", {**lower.fields(), **words})


def _is_less(one: Account, other: Account) -> bool:
    return one.budget.epsilon < other.budget.epsilon or one.budget.delta < other.budget.delta
