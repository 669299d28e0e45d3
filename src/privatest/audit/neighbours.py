"""Made-up people, and the same with one of them replaced: the shapes that have broken things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.data.schema import CategoricalColumn, Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Pair", "climbing", "random_pair", "structured_pairs"]

_FEW = 40  # with more rows a test cuts each group into parts: none may be tiny
Rows = list[dict[str, Any]]
_STYLES = ("corners", "equal", "ties", "anything", "one outlier", "halves")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring data sets.

    Attributes
    ----------
    rows : list of dict
        The first.
    place : int
        Which of them is another one in the second.
    other : dict
        That one.
    """

    rows: Rows
    place: int
    other: dict[str, Any]

    def tables(self, schema: Schema) -> tuple[pa.Table, pa.Table]:
        """Return both as tables."""
        second = [*self.rows[: self.place], self.other, *self.rows[self.place + 1 :]]
        return _table(self.rows, schema), _table(second, schema)


def _table(rows: Rows, schema: Schema) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: [row[name] for row in rows] for name in schema.columns})


def _values(schema: Schema, name: str) -> list[Any]:
    """Return telling values of a column: bounds, the middle, beside the bounds."""
    column = schema.columns[name]
    if isinstance(column, CategoricalColumn):
        return list(column.categories)
    low, high = column.lower, column.upper
    if column.integer:
        return [int(low), int(high), int(low) + 1]
    return [low, high, (low + high) / 2, float(np.nextafter(low, high)), low + (high - low) / 3]


def _row(schema: Schema, rng: np.random.Generator, *, corner: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, column in schema.columns.items():
        telling = _values(schema, name)
        if corner or isinstance(column, CategoricalColumn) or column.integer:
            row[name] = telling[rng.integers(min(2, len(telling)) if corner else len(telling))]
        else:
            row[name] = float(rng.uniform(column.lower, column.upper))
    return row


def random_pair(schema: Schema, size: int, rng: np.random.Generator) -> Pair:
    """Return a pair in one of several styles; a public group stays as it is."""
    style = rng.choice(_STYLES)
    rows = [_row(schema, rng, corner=style == "corners") for _ in range(size)]
    if style == "equal":
        rows = [dict(rows[0]) for _ in rows]
    elif style == "ties":
        rows = [dict(rows[i % 3]) for i in range(size)]
    elif style == "one outlier":
        rows = [dict(rows[0]) for _ in rows[1:]] + [_row(schema, rng, corner=True)]
    elif style == "halves":
        rows = [dict(rows[2 * i // size]) for i in range(size)]
    rows = _both_arms(rows, schema, rng)
    place = int(rng.integers(size))
    return Pair(rows, place, _replaced(rows[place], schema, rng))


def _both_arms(rows: Rows, schema: Schema, rng: np.random.Generator) -> Rows:
    """Give public groups sizes that are not all equal, and none that is empty."""
    for name in _public(schema):
        first, second = schema.columns[name].categories[:2]  # type: ignore[union-attr]
        least = max(2, len(rows) // 4) if len(rows) > _FEW else 2
        cut = int(rng.integers(least, len(rows) - least + 1))
        for place, row in enumerate(rows):
            row[name] = first if place < cut else second
    return rows


def _public(schema: Schema) -> list[str]:
    columns = schema.columns.items()
    return [name for name, c in columns if getattr(c, "membership", "private") == "public"]


def _replaced(row: dict[str, Any], schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    other = _row(schema, rng, corner=bool(rng.integers(2)))
    return other | {name: row[name] for name in _public(schema)}


def structured_pairs(schema: Schema, size: int, seed: int) -> Iterator[Pair]:
    """Return pairs that take turns through corners: all equal but one, blocks, extremes."""
    rng = np.random.default_rng(seed)
    low, high = ({n: _values(schema, n)[i] for n in schema.columns} for i in (0, 1))
    for count in (0, 1, size // 2, size - 1):
        rows = [dict(low) for _ in range(count)] + [dict(high) for _ in range(size - count)]
        rows = _both_arms(rows, schema, rng)
        for place in (0, size - 1):
            kept = {name: rows[place][name] for name in _public(schema)}
            for other in (low, high):
                if other | kept != rows[place]:
                    yield Pair(rows, place, {**other, **kept})


def climbing(pair: Pair, schema: Schema, columns: Sequence[str], rng: np.random.Generator) -> Pair:
    """Return a pair nearby: one entry of one row, the replaced one or its place is another."""
    rows, place, other = [dict(row) for row in pair.rows], pair.place, dict(pair.other)
    name = columns[int(rng.integers(len(columns)))]
    telling = _values(schema, name)
    value = telling[rng.integers(len(telling))]
    kind = rng.integers(3)
    if kind == 0 and name not in _public(schema):
        rows[rng.integers(len(rows))][name] = value
    elif kind == 1 and name not in _public(schema):
        other[name] = value
    else:
        place = int(rng.integers(len(rows)))
    other |= {each: rows[place][each] for each in _public(schema)}
    return Pair(rows, place, other)
