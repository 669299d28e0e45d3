"""What a curator remembers of a data set after validating it: public facts, and which data it was.

The facts are the number of rows and, for columns whose membership is public, how many rows are
in which categories. With them a request can be rehearsed on made-up rows of the same sizes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.accounting import event_of
from privatest.core.documents import digest, write_text
from privatest.core.errors import LedgerError, LedgerMissing, ParameterError
from privatest.core.privacy import Budget
from privatest.curator.admission import categories_of, schema_digest
from privatest.curator.contents import fingerprinting, source_name, stamp
from privatest.data.encoding import encode_sample
from privatest.data.reading import MOST_HELD, check_person_rows
from privatest.data.schema import CategoricalColumn, Schema
from privatest.data.sources import Source
from privatest.ledger import Account, Ledger
from privatest.requests import rehearsal

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import AnalystConfig, CuratorConfig, DatasetConfig
    from privatest.requests.request import Filter


@dataclass(frozen=True, slots=True)
class Registration:
    """A data set that was found to fit its schema.

    Attributes
    ----------
    schema : str
        Fingerprint of the schema.
    stamp : tuple of int
        Size and time of the file, to notice without reading it that it is another one by now.
    key, contents : str
        A secret key, the same for all data sets of a curator, and with it the fingerprint of
        the file's contents.
    rows : int
        The number of rows.
    public : tuple of str
        Columns whose membership is public.
    cells : tuple of tuple of int
        Codes of those columns, and how many rows have them.
    source : str
        Where the rows are: the same after a renaming.
    earlier : tuple of str
        Fingerprints of other contents that were asked about under this name before.
    """

    schema: str
    stamp: tuple[int, int]
    key: str
    contents: str
    rows: int
    public: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    source: str = ""
    earlier: tuple[str, ...] = ()

    def after(self, before: Registration | None, *, charged: bool) -> Registration:
        """Return this one with what its name stood for before, if its people were charged."""
        if before is None:
            return self
        told = dict.fromkeys((*before.earlier, *([before.contents] if charged else [])))
        told.pop(self.contents, None)
        return replace(self, earlier=tuple(told))

    def is_current(self, dataset: DatasetConfig) -> bool:
        """Return whether neither the file nor the schema has changed since."""
        return self.schema == _described(dataset.schema) and self.stamp == stamp(dataset)


def register(dataset: DatasetConfig, key: str) -> Registration:
    """Validate all rows against the schema; DataError names the column and the rule.

    Parameters
    ----------
    dataset : DatasetConfig
        What to validate.
    key : str
        The secret key of the curator's fingerprints.
    """
    place, schema, before = dataset.place, dataset.schema, stamp(dataset)
    with fingerprinting(dataset, place, key) as contents:
        table = place.read(list(schema.columns), schema.categorical_names)
        if (who := schema.id_column) is not None:
            check_person_rows(schema, [place.read([who], [who])], tell=True)
        validate = _streamed_facts if isinstance(table, Source) else _public_facts
        facts = validate(table, schema.select(schema.columns))
        found = contents()
    if stamp(dataset) != before or not found:
        raise ParameterError(f"the file of {dataset.name} changed while it was read; try again.")
    return Registration(
        _described(schema), before, key, found, len(table), *facts, source=source_name(dataset)
    )


def _described(schema: Schema) -> str:
    """Return a fingerprint of all that a schema says: with another id_column, rows are counted."""
    return digest(schema.to_toml())


Facts = tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]


def _public_columns(schema: Schema) -> tuple[str, ...]:
    return tuple(name for name, column in schema.columns.items() if _is_public(column))


def _public_facts(table: pa.Table, schema: Schema) -> Facts:
    """Validate the rows; return the public columns, and how many rows have which codes there."""
    for name in schema.columns:  # one at a time: the codes of all would be a second copy
        schema.select([name]).encode(table.select([name]))
    public = _public_columns(schema)
    if not public:
        return public, ((table.num_rows,),)
    counter = CellCounter(tuple(range(len(public))))
    counter.update(schema.select(public).encode(table.select(public)), 0)
    return public, counter.cells


def _streamed_facts(source: Source, schema: Schema) -> Facts:
    """Do the same in one pass over rows that are not in memory."""
    from privatest.data.summaries import summarise  # noqa: PLC0415

    public, names = _public_columns(schema), list(schema.columns)
    sample = encode_sample(source, schema, "")
    places = tuple(names.index(name) for name in public)
    (counter,) = summarise((sample, partial(CellCounter, places)))
    return public, counter.cells


class CellCounter:
    """How many rows have which codes in public columns; without any, how many there are."""

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places = places
        self.counts: Counter[tuple[int, ...]] = Counter()

    def update(self, rows: NDArray[np.float64], start: int) -> None:
        """Add rows; all of them were encoded, and so fit the schema."""
        del start
        if not self.places:
            self.counts[()] += len(rows)
            return
        codes = rows[:, list(self.places)].astype(np.int64)
        found, counts = np.unique(codes, axis=0, return_counts=True)
        for cell, count in zip(found.tolist(), counts.tolist(), strict=True):
            self.counts[tuple(cell)] += count

    def merge(self, other: CellCounter) -> None:
        """Add what another has seen."""
        self.counts.update(other.counts)

    @property
    def cells(self) -> tuple[tuple[int, ...], ...]:
        """Codes, and how many rows have them, in order."""
        return tuple((*cell, count) for cell, count in sorted(self.counts.items()))


def rows_of(registration: Registration, filters: Mapping[str, Filter]) -> int:
    """Return how many rows pass a filter on public columns: a public number."""
    chosen = [(registration.public.index(name), each.codes) for name, each in filters.items()]
    return sum(
        cell[-1] for cell in registration.cells if all(cell[i] in codes for i, codes in chosen)
    )


def made_up_rows(registration: Registration, schema: Schema) -> pa.Table:
    """Return rows that nobody has: uniform over the schema's domain, with the public sizes.

    Of data that is not held in memory there are fewer, in the same proportions.
    """
    *codes, counts = np.array(registration.cells).T
    most = max(MOST_HELD // len(schema.columns), 1)
    if registration.rows > most:
        counts = -(-counts * most // registration.rows)  # nobody's group becomes empty
    labels = {
        name: np.array(categories_of(schema, name))[np.repeat(column, counts)]
        for name, column in zip(registration.public, codes, strict=True)
        if name in schema.columns
    }
    return rehearsal.made_up_rows(schema.columns, schema, int(counts.sum()), labels)


def load_registrations(path: Path) -> dict[str, Registration]:
    """Read what was registered; nothing where there is no file.

    A file that cannot be read is an error: taken for "nothing was registered", a lost ledger
    would be replaced by a new one with the whole budget.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {name: _read(values) for name, values in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerError(
            f"{path.name} cannot be read. It says what was registered: put it back. If there is "
            "no copy and the ledger is in place, remove it and register every data set again."
        ) from None


def save_registration(path: Path, name: str, registration: Registration) -> None:
    """Add one to the file, for its owner alone."""
    found = load_registrations(path) | {name: registration}
    text = json.dumps({name: asdict(values) for name, values in found.items()}, indent=1)
    try:
        write_text(path, text, private=True)
    except OSError as error:
        raise ParameterError(f"state cannot be written: {error.strerror}.") from None


def _is_public(column: object) -> bool:
    return isinstance(column, CategoricalColumn) and column.membership == "public"


def _read(values: Mapping[str, Any]) -> Registration:
    size, time = map(int, values["stamp"])
    return Registration(
        str(values["schema"]),
        (size, time),
        str(values["key"]),
        str(values["contents"]),
        int(values["rows"]),
        tuple(map(str, values["public"])),
        tuple(tuple(map(int, cell)) for cell in values["cells"]),
        str(values.get("source", "")),
        tuple(map(str, values.get("earlier", ()))),
    )


# --- budgets: what curator.toml says, brought into the ledger by the custodian only ---------------


def open_ledger(config: CuratorConfig, *, create: bool) -> Ledger:
    """Open the ledger; make one only where nothing was ever registered."""
    known = load_registrations(config.state)
    try:
        return Ledger.open(config.ledger, create=create and not known)
    except LedgerMissing:
        if known:
            raise LedgerError(
                "The ledger is gone, though data sets were registered. Put it back: a new one "
                "would not know what was spent."
            ) from None
        raise


def enter_dataset(
    ledger: Ledger, dataset: DatasetConfig, analysts: Iterable[AnalystConfig]
) -> None:
    """Enter a data set and its analysts, or change their budgets to what the file says."""
    name, settings = dataset.name, _settings(dataset)
    known = name in ledger.datasets()
    if known and ledger.totals(name).account.closed:
        raise ParameterError(_closed(name))
    budget = ledger.totals(name).account.budget if known else dataset.budget
    ledger.create_dataset(name, budget, exist_ok=True, **settings)  # refuses a changed schema
    if budget != dataset.budget:
        ledger.set_budget(name, dataset.budget)
    accounts = ledger.totals(name).analysts
    everyone = list(analysts)
    for analyst, own in _shares(dataset, everyone, accounts):
        if analyst not in accounts or accounts[analyst].budget != own:
            ledger.set_analyst(name, analyst, own)
    for who in everyone:
        if who.revoked and who.name in accounts:
            ledger.revoke(name, who.name)


def not_ready(
    ledger: Ledger,
    dataset: DatasetConfig,
    analysts: Iterable[AnalystConfig],
    registration: Registration | None,
) -> str | None:
    """Return why nobody may ask yet, in public words, or None."""
    name = dataset.name
    ask = _ask(name)
    if registration is None or name not in ledger.datasets():
        return f"Data set {name!r} is not registered. {ask}"
    totals, settings = ledger.totals(name), _settings(dataset)
    if totals.schema_digest != settings["schema_digest"]:
        return (
            f"The schema of data set {name!r} differs from the one that its history was made "
            "with. Undo the change, or enter the data under a new name with a new budget."
        )
    if totals.account.closed:
        return _closed(name)
    same = (
        totals.composition == settings["composition"]
        and sorted(totals.partition) == sorted(settings["partition"])
        and totals.each == settings["each"]
        and totals.account.budget == dataset.budget
        and all(
            who in totals.analysts and totals.analysts[who].budget == own
            for who, own in _shares(dataset, analysts, totals.analysts)
        )
    )
    if not same:
        return f"The budgets of data set {name!r} are not what the ledger says. {ask}"
    if not registration.is_current(dataset):
        return changed_message(name)
    return None


def changed_message(name: str) -> str:
    """Say that a file is not the one that was registered, or is out of reach."""
    return (
        f"The file of data set {name!r} has changed since it was registered, or cannot be read: "
        f"put it back. If it is meant to be another, {_ask(name)[0].lower()}{_ask(name)[1:]}"
    )


def _ask(name: str) -> str:
    return f"The custodian has to register it: privatest curator register {name}."


def _settings(dataset: DatasetConfig) -> dict[str, Any]:
    """Return what never changes about a data set."""
    each, parts = dataset.each, dataset.partition
    event = None if each is None else event_of(each)
    return {
        "composition": dataset.composition,
        "each": event,
        "partition": [] if parts is None else categories_of(dataset.schema, parts),
        "schema_digest": schema_digest(dataset.schema),
    }


def _closed(name: str) -> str:
    return (
        f"Data set {name!r} was closed when its data got another name, under which all that was "
        "spent counts. Use that one, or a name that was never used."
    )


def _shares(
    dataset: DatasetConfig,
    analysts: Iterable[AnalystConfig],
    accounts: Mapping[str, Account],
) -> Iterable[tuple[str, Budget]]:
    """Return what each analyst may spend of a data set; who was revoked stays so."""
    for analyst in analysts:
        revoked = analyst.revoked or (analyst.name in accounts and accounts[analyst.name].closed)
        if dataset.name in analyst.datasets and not revoked:
            yield analyst.name, analyst.budget or dataset.budget
