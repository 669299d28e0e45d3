"""What a curator remembers of a data set after validating it: public facts, and which data it was.

The facts are the number of rows and, for columns whose membership is public, how many rows are
in which categories. With them a request can be rehearsed on made-up rows of the same sizes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import digest, write_text
from privatest.core.errors import LedgerError, ParameterError
from privatest.curator.admission import categories_of
from privatest.curator.contents import fingerprinting, stamp
from privatest.curator.overlaps import source_name
from privatest.data.encoding import encode_sample
from privatest.data.reading import MOST_HELD, check_person_rows
from privatest.data.schema import CategoricalColumn, Schema
from privatest.data.sources import Source
from privatest.requests import rehearsal

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import DatasetConfig
    from privatest.requests.request import Filter

__all__ = [
    "Registration",
    "load_registrations",
    "made_up_rows",
    "register",
    "rows_of",
    "save_registration",
]


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
