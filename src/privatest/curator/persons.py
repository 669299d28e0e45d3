"""Whether nobody has more rows than the schema says: for the custodian alone, at registration.

Ids are counted by a keyed hash of 64 bits and forgotten. Of many rows only a share of the ids is
counted in each pass, so that memory is bounded: 2^23 ids at a time, about 200 MB. Two people whose
hashes agree count as one, with a probability of at most (people)^2 / 2^65: then a file may be
refused that is in order, and never the other way round.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.data.source import Source

if TYPE_CHECKING:
    from privatest.data.place import Place
    from privatest.data.schema import Schema

__all__ = ["check_persons"]

MOST_IDS = 1 << 23  # counted in one pass


def check_persons(place: Place, schema: Schema) -> None:
    """Refuse data in which somebody has more rows than rows_per_person; ids are never told."""
    name = schema.id_column
    if name is None:
        return
    table = place.read([name], [name])
    passes = -(-len(table) // MOST_IDS)
    key = uuid.uuid4().bytes
    found = (_largest(table, name, key, number, passes) for number in range(passes))
    largest = max(found, default=0)  # there may be no rows
    if largest > schema.rows_per_person:
        raise DataError(
            f"a person has {largest:,} rows by id_column {name!r}, and rows_per_person of the "
            f"schema is {schema.rows_per_person:,}. Raise it, which adds noise, or leave out rows."
        )


def _largest(table: Any, name: str, key: bytes, number: int, passes: int) -> int:
    """Return the largest number of rows among a share of the ids."""
    hashes = np.empty(0, np.uint64)
    counts = np.empty(0, np.int64)
    for ids, rows in _counted(table, name):
        found = np.fromiter((_hash(each, key) for each in ids), np.uint64, len(ids))
        chosen = found % np.uint64(passes) == number
        hashes, places = np.unique(np.concatenate([hashes, found[chosen]]), return_inverse=True)
        sums = np.concatenate([counts, rows[chosen]])
        counts = np.bincount(places, weights=sums, minlength=len(hashes)).astype(np.int64)
    return int(counts.max(initial=0))


def _counted(table: Any, name: str) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
    """Yield the ids of a piece of rows as they are written, each once, and how many have it."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    pieces = (
        table.tables(0, len(table), [name]) if isinstance(table, Source) else table.to_batches()
    )
    for piece in pieces:
        column = piece.column(name)
        try:
            words = pc.fill_null(column.cast(pa.string()), "")
        except pa.ArrowException:
            raise DataError(f"id_column {name!r} must hold text or numbers.") from None
        found = pc.value_counts(words)
        ids = found.field("values").to_pylist()
        if "" in ids:
            raise DataError(f"id_column {name!r} has missing values: nobody can be counted.")
        yield ids, found.field("counts").to_numpy()


def _hash(text: str, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=key).digest(), "big")
