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
from privatest.core.privacy import Budget
from privatest.ledger.accounts import Head, Spent, Sums, read_settings
from privatest.ledger.chain import parsed
from privatest.ledger.checks import name_of, now, told
from privatest.ledger.copies import copy_file, copy_to_file, empty, fill
from privatest.ledger.database import Database, new_file
from privatest.ledger.forks import in_use
from privatest.ledger.special import carry, closed_to, keep_strict, missing
from privatest.ledger.store import Ledger
from privatest.ledger.tables import migrate, sound, tables
from privatest.ledger.transactions import create_dataset, locked

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

__all__ = ["Lost", "Restored", "restore"]

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
        told = {
            name: head and {"sequence": head.sequence, "hash": head.hash}
            for name, head in heads.items()
        }
        return {**told, "entries": self.entries, "spent": self.spent.to_dict()}


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
    words = told(reason) | ({"by": name_of("by", by)} if by else {})
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
        return _is_readable(connection)


def _is_readable(connection: Connection) -> bool:
    try:
        for row, own in _accounts(connection).values():
            for each in (row, *own.values()):
                parsed(Sums.from_dict, each.sums)
            parsed(read_settings, row.settings)
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
        _record(connection, dict.fromkeys(heads), words)
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
        _lock_all(present)
        before = _accounts(present)
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
        ends = {name: closed_to(present, before[name][0]) for name in lost}
        empty(present)
        fill(present, backup)
        known = {name: (lost[name], ends[name], before[name]) for name in lost}
        _record(present, known or ({} if before else dict.fromkeys(_accounts(present))), words)
    return lost, not before


_Account = tuple["Row[Any]", Mapping[str, "Row[Any]"]]


def _accounts(connection: Connection) -> dict[str, _Account]:
    """Return the rows of all data sets and their analysts."""
    from sqlalchemy import select  # noqa: PLC0415

    datasets, analysts = tables().datasets, tables().analysts
    found = [sound(row) for row in connection.execute(select(datasets).order_by(datasets.c.id))]
    own = [sound(row) for row in connection.execute(select(analysts))]
    return {d.name: (d, {a.name: a for a in own if a.dataset == d.id}) for d in found}


def _lock_all(connection: Connection) -> None:
    from sqlalchemy import text  # noqa: PLC0415

    if connection.dialect.name == "postgresql":
        names = ", ".join(t.name for t in tables().metadata.sorted_tables)
        connection.execute(text(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"))


def _compare(
    present: Connection, backup: Connection, before: Mapping[str, _Account]
) -> dict[str, Lost]:
    """Return what the backup lacks of the present ledger."""
    then, lost = _accounts(backup), {}
    for name, (row, _) in before.items():
        old = then[name][0] if name in then else None
        common = _common(present, row, backup, old)
        if common == row.sequence:
            continue
        sums = Sums() if old is None else parsed(Sums.from_dict, old.sums)
        spent = missing(parsed(Sums.from_dict, row.sums), sums)
        end = None if old is None else Head(old.sequence, old.hash)
        lost[name] = Lost(Head(row.sequence, row.hash), end, row.sequence - common, spent)
    return lost


def _common(present: Connection, row: Row[Any], backup: Connection, old: Row[Any] | None) -> int:
    """Return how many entries two chains share: where hashes agree, so do all before."""
    if old is None:
        return 0
    low, high = 0, min(row.sequence, old.sequence)
    while low < high:
        middle = (low + high + 1) // 2
        if _hash(present, row.id, middle) == _hash(backup, old.id, middle):
            low = middle
        else:
            high = middle - 1
    return int(low)


def _hash(connection: Connection, dataset: int, sequence: int) -> Any:
    from sqlalchemy import select  # noqa: PLC0415

    entries = tables().entries
    here = (entries.c.dataset == dataset) & (entries.c.sequence == sequence)
    return connection.scalar(select(entries.c.hash).where(here))


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


def _record(
    connection: Connection,
    chains: Mapping[str, tuple[Lost, str, _Account] | None],
    words: Mapping[str, Any],
) -> None:
    """Say in each chain from where to where the ledger went back, and count what was spent."""
    for name, known in chains.items():
        if known is None:  # nobody knows
            row = locked(connection, name)
            fields = {"unknown": True, "to": {"sequence": row.sequence, "hash": row.hash}}
            carry(connection, row, "restored", {**fields, **words}, Spent(), {})
            continue
        lost, end, (old, accounts) = known
        if lost.backup is None:
            budget = Budget(old.epsilon, old.delta)
            create_dataset(connection, name, budget, parsed(read_settings, old.settings))
        now_there = _accounts(connection)[name]
        owns = {}
        for who, account in accounts.items():
            there = now_there[1].get(who)
            then = Sums() if there is None else parsed(Sums.from_dict, there.sums)
            owns[who] = (account, missing(parsed(Sums.from_dict, account.sums), then))
        facts = {key: value for key, value in lost.to_dict().items() if key != "spent"}
        fields = {"from": facts["present"], "to": facts["backup"], "entries": lost.entries}
        carry(connection, now_there[0], "restored", {**fields, **words}, lost.spent, owns)
        keep_strict(connection, old, end, accounts, words)
