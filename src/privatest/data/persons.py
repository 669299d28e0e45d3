"""Refuse data in which a person has more rows than the schema says: the noise would be too small.

Ids are counted by a keyed hash of 64 bits and forgotten. Of many rows only a share of the ids is
counted in each pass, so that memory is bounded: 2^23 ids at a time, about 200 MB. Two people whose
hashes agree count as one, with a probability of at most (people)^2 / 2^65: then data may be
refused that is in order, and never the other way round.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.data.categories import spelling
from privatest.data.columns import one_column
from privatest.data.schema import Schema
from privatest.data.source import Source
from privatest.data.tables import Table, label_of, read_data

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.bounds import Bounds

__all__ = ["check_persons"]

MOST_IDS = 1 << 23  # counted in one pass


def check_persons(
    bounds: Bounds, samples: Sequence[object], *, together: bool = True, tell: bool = False
) -> Bounds:
    """Count rows per person if ``bounds`` is a schema with an id_column; return it without.

    Ids are never disclosed. A refusal goes to the caller, who holds the data.

    Parameters
    ----------
    bounds : None, pair, array, mapping or Schema
        As in :func:`privatest.data.samples.encode_sample`.
    samples : sequence of array, data frame or Arrow table
        Data with the id column in it; one without columns, such as [], has no rows.
    together : bool
        Whether rows of a person in several samples add up: not for ``adjacency="both"``, which
        replaces as many rows in each sample.
    tell : bool
        Whether to say how many rows the person with most rows has: to a custodian.
    """
    if not isinstance(bounds, Schema) or bounds.id_column is None:
        return bounds
    found = [_rows(data, bounds.id_column) for data in samples]
    known = [rows for rows in found if rows is not None]
    for group in [known] if together else [[rows] for rows in known]:
        largest = _most_rows(group, bounds.id_column)
        if largest > bounds.rows_per_person:
            most, who = f"{bounds.rows_per_person:,}", f"by id_column {bounds.id_column!r}"
            told = f"{largest:,} rows {who}" if tell else f"more than {most} rows {who}"
            raise DataError(
                f"a person has {told}, and rows_per_person of the schema is {most}. Raise it, "
                "which adds noise, or leave out rows."
            )
    return bounds.select(bounds.columns)


def _rows(data: object, name: str) -> Table | Source | None:
    """Find the column with ids; None for []."""
    table = read_data(data, "the data")  # it pays, if a budget is open
    if isinstance(data, Source):
        return data.select([name])
    if table.shapeless:
        return None
    if (table.names or ()).count(name) != 1:
        raise DataError(
            f"{label_of(name, 'the data')} must be there once: it is the id_column of the schema, "
            "by which rows per person are counted. Pass it too, or a schema without: "
            "schema.select([...])."
        )
    return table


def _most_rows(rows: Sequence[Table | Source], name: str) -> int:
    """Return how many rows the person with most rows has."""
    total = sum(own.public_rows if isinstance(own, Source) else _length(own) for own in rows)
    passes = -(-total // MOST_IDS)
    key = uuid.uuid4().bytes
    found = (_largest(rows, name, key, number, passes) for number in range(passes))
    return max(found, default=0)  # there may be no rows


def _length(table: Table) -> int:
    return len(table.column(0)) if table.rows is None else table.rows


def _largest(
    rows: Sequence[Table | Source], name: str, key: bytes, number: int, passes: int
) -> int:
    """Return the largest number of rows among a share of the ids."""
    hashes = np.empty(0, np.uint64)
    counts = np.empty(0, np.int64)
    for table in rows:
        for ids, own in _counted(table, name):
            found = np.fromiter((_hash(each, key) for each in ids), np.uint64, len(ids))
            chosen = found % np.uint64(passes) == number
            hashes, places = np.unique(np.concatenate([hashes, found[chosen]]), return_inverse=True)
            sums = np.concatenate([counts, own[chosen]])
            counts = np.bincount(places, weights=sums, minlength=len(hashes)).astype(np.int64)
    return int(counts.max(initial=0))


def _counted(table: Table | Source, name: str) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
    """Yield the ids of a piece of rows as they are written, each once, and how many have it."""
    import pyarrow.compute as pc  # noqa: PLC0415

    for column in _columns(table, name):
        found = pc.value_counts(_words(column, name))
        ids = found.field("values").to_pylist()
        if "" in ids:
            raise DataError(f"id_column {name!r} has missing values: nobody can be counted.")
        yield ids, found.field("counts").to_numpy()


def _columns(table: Table | Source, name: str) -> Iterator[Any]:
    """Yield the column with ids, piece by piece."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(table, Source):
        for piece in table.tables(0, len(table), [name]):
            yield piece.column(name)
        return
    column = one_column(table.column((table.names or ()).index(name)), f"id_column {name!r}")
    yield pa.array(column) if isinstance(column, np.ndarray) else column


def _words(column: pa.Array | pa.ChunkedArray, name: str) -> Any:
    """Return ids as text; a missing one is empty. A number is the same with or without decimals."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_timestamp(column.type):  # the same moment, whatever its resolution
            column = column.cast(pa.timestamp("ns", column.type.tz))
        if pa.types.is_floating(column.type):
            known = pc.if_else(pc.is_nan(column), None, column).to_pylist()
            spelled = ["" if each is None else spelling(each) for each in known]
            return pa.array(spelled, pa.string())
        return pc.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowException, UnicodeError):
        raise DataError(f"id_column {name!r} must hold text or numbers.") from None


def _hash(text: str, key: bytes) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key)
    return int.from_bytes(digest.digest(), "big")
