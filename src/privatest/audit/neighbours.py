"""Made-up people, and the same with one of them replaced: the patterns that have broken tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.schema import CategoricalColumn, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.audit.cases import Case

_FEW = 40  # with more rows a test cuts each group into parts: none may be tiny
Row = dict[str, Any]
Rows = list[Row]
_STYLES = ("corners", "all equal", "ties", "anything", "one outlier", "halves", "beyond bounds")


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
    style : str
        What kind of data it is.
    order : tuple of int
        In which order the second is stored, () for that of the first.
    seed : int
        Of public randomness, which an attacker knows.
    more : tuple of (int, dict)
        Further places, and who is there in the second: where neighbours differ by more than a row.
    """

    rows: Rows
    place: int
    other: Row
    style: str = ""
    order: tuple[int, ...] = ()
    seed: int = 1
    more: tuple[tuple[int, Row], ...] = ()

    @property
    def stored(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Which record lies at which place, of both."""
        places = np.arange(len(self.rows))
        return places, np.array(self.order, dtype=np.intp) if self.order else places

    @property
    def second(self) -> Rows:
        """The other data set, as it is stored."""
        rows = list(self.rows)
        for place, other in ((self.place, self.other), *self.more):
            rows[place] = other
        return [rows[i] for i in self.stored[1]]

    def tables(self, schema: Schema) -> tuple[pa.Table, pa.Table]:
        """Return both as tables."""
        return _table(self.rows, schema), _table(self.second, schema)

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return plain values: the columns that a test reads."""

        def told(row: Row) -> Row:
            return {name: row[name] for name in columns}

        return {
            "style": self.style,
            "rows": [told(row) for row in self.rows],
            "replaced": self.place,
            "by": told(self.other),
            "more": [{"replaced": place, "by": told(other)} for place, other in self.more],
            "order": list(self.order),
            "rng": self.seed,
        }


def _table(rows: Rows, schema: Schema) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: [row[name] for row in rows] for name in schema.columns})


def values(schema: Schema, name: str) -> list[Any]:
    """Return telling values of a column: bounds, middle, beside the bounds, far beyond them."""
    column = schema.columns[name]
    if isinstance(column, CategoricalColumn):
        return list(column.categories)
    low, high = column.lower, column.upper
    if column.integer:
        return [int(low), int(high), int(low) + 1]
    inside = [low, high, (low + high) / 2, float(np.nextafter(low, high)), low + (high - low) / 3]
    return [*inside, low - 100 * (high - low), high + 100 * (high - low)]


def _row(schema: Schema, rng: np.random.Generator, *, style: str) -> Row:
    row: Row = {}
    corner = style == "corners"
    for name, column in schema.columns.items():
        telling = values(schema, name)
        if corner or style == "beyond bounds" or isinstance(column, CategoricalColumn):
            row[name] = telling[rng.integers(min(2, len(telling)) if corner else len(telling))]
        elif column.integer:
            row[name] = telling[rng.integers(len(telling))]
        else:
            row[name] = float(rng.uniform(column.lower, column.upper))
    return row


def random_pair(schema: Schema, size: int, rng: np.random.Generator) -> Pair:
    """Return a pair in one of several styles; a public group stays as it is."""
    style = str(rng.choice(_STYLES))
    rows = [_row(schema, rng, style=style) for _ in range(size)]
    if style == "all equal":
        rows = [dict(rows[0]) for _ in rows]
    elif style == "ties":
        rows = [dict(rows[i % 3]) for i in range(size)]
    elif style == "one outlier":
        rows = [dict(rows[0]) for _ in rows[1:]] + [_row(schema, rng, style="corners")]
    elif style == "halves":
        rows = [dict(rows[2 * i // size]) for i in range(size)]
    rows = in_arms(rows, schema, _cut(size, rng))
    place = int(rng.integers(size))
    other = _row(schema, rng, style=str(rng.choice(["corners", style])))
    return Pair(
        rows, place, other | public_values(rows[place], schema), style, (), int(rng.integers(999))
    )


def spread_pair(schema: Schema, size: int, rng: np.random.Generator) -> Pair:
    """Return independent rows anywhere within the bounds, one of them replaced by a corner."""
    rows = [_row(schema, rng, style="anything") for _ in range(size)]
    rows = in_arms(rows, schema, _cut(size, rng))
    place = int(rng.integers(size))
    other = _row(schema, rng, style="corners") | public_values(rows[place], schema)
    return Pair(rows, place, other, "spread", (), int(rng.integers(999)))


def sizes_of(case: Case) -> list[int]:
    """Return numbers of rows: few, such that some are left over, and two against fifty."""
    if case.rows > _FEW:
        return [case.rows, case.rows + 3]
    grouped = case.private_groups or case.public_groups
    return [case.rows, case.rows + 1, case.rows + 5, *([52] if grouped else [])]


def _cut(size: int, rng: np.random.Generator) -> int:
    least = max(2, size // 4) if size > _FEW + 12 else 2
    return int(rng.integers(least, size - least + 1))


def in_arms(rows: Rows, schema: Schema, cut: int) -> Rows:
    """Give public groups their sizes, none of which is 0."""
    for name in _public(schema):
        groups = schema.columns[name].categories  # type: ignore[union-attr]
        for place, row in enumerate(rows):
            row[name] = groups[arm_of(place, len(rows), len(groups), cut)]
    return rows


def arm_of(place: int, size: int, groups: int, cut: int) -> int:
    """Return the group of a row: ``cut`` rows are in the first, the others share the rest."""
    first = min(cut, size - 2 * (groups - 1)) if groups > 2 else cut
    if place < first:
        return 0
    return 1 + (place - first) * (groups - 1) // (size - first)


def _public(schema: Schema) -> list[str]:
    columns = schema.columns.items()
    return [name for name, c in columns if getattr(c, "membership", "private") == "public"]


def public_values(row: Row, schema: Schema) -> Row:
    """Return what a person cannot change."""
    return {name: row[name] for name in _public(schema)}


def structured_pairs(schema: Schema, size: int, seed: int) -> Iterator[Pair]:
    """Return pairs that take turns through corners: all equal but one, blocks, extremes."""
    rng = np.random.default_rng(seed)
    against = _FEW < size <= _FEW + 12  # two against fifty, and fifty against two
    for cut in (2, size - 2) if against else (_cut(size, rng),):
        yield from _blocks(schema, size, seed, cut)


def _blocks(schema: Schema, size: int, seed: int, cut: int) -> Iterator[Pair]:
    low, high = ({n: values(schema, n)[i] for n in schema.columns} for i in (0, 1))
    for count in (0, 1, 2, cut, size // 2, size - 1):
        style = "all equal" if count == 0 else f"blocks of {count} and {size - count}"
        rows = [dict(low) for _ in range(count)] + [dict(high) for _ in range(size - count)]
        rows = in_arms(rows, schema, cut)
        for place in (0, size - 1):
            for other in (low, high):
                replaced = {**other, **public_values(rows[place], schema)}
                if replaced != rows[place]:
                    yield Pair(rows, place, replaced, style, (), seed)
    # each side has one of its own, as far from all others as can be: a replaced one parts them
    rows = in_arms([dict(low) for _ in range(size)], schema, cut)
    rows[0]["x"] = rows[-1]["y"] = high["x"]
    both = {**rows[1], "x": high["x"], "y": high["y"]}
    yield Pair(rows, 1, both, "an outlier on each side", (), seed)


def sorted_pair(case: Case, size: int, seed: int) -> Pair:
    """Return a pair of sorted files: a record that is replaced moves all after it by one place."""
    rng = np.random.default_rng(seed)
    rows = [_row(case.schema, rng, style="anything") for _ in range(size)]
    rows = in_arms(sorted(rows, key=lambda row: row["x"]), case.schema, size // 2)
    other = dict(rows[0]) | {"x": values(case.schema, "x")[1]}
    order = (*range(1, size // 2), 0, *range(size // 2, size))
    if not case.public_groups:
        order = (*range(1, size), 0)
    return Pair(rows, 0, other, "sorted", order, seed)


def strange_pairs(schema: Schema, size: int, seed: int, columns: Sequence[str]) -> Iterator[Pair]:
    """Return pairs one of which has a value that is no ordinary number, or none at all."""
    rng = np.random.default_rng(seed)
    strange = [None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, 2.0**60 + 2**10]
    for value in strange:
        for name in columns:
            column = schema.columns[name]
            categorical = isinstance(column, CategoricalColumn) or column.integer
            if name in ("group", "arm") or (categorical and value is not None):
                continue
            pair = random_pair(schema, size, rng)
            yield replace(pair, other={**pair.rows[pair.place], name: value}, style=f"{value}")


def nearby_pair(
    pair: Pair, schema: Schema, columns: Sequence[str], rng: np.random.Generator
) -> Pair:
    """Return a pair nearby: an entry of a row, of the new one, its place or the seed is another."""
    rows, place, other = [dict(row) for row in pair.rows], pair.place, dict(pair.other)
    name = columns[int(rng.integers(len(columns)))]
    telling = values(schema, name)
    value = telling[rng.integers(len(telling))]
    kind, seed = rng.integers(4), pair.seed
    if kind == 0 and name not in _public(schema):
        rows[rng.integers(len(rows))][name] = value
    elif kind == 1 and name not in _public(schema):
        other[name] = value
    elif kind == 2:
        seed = int(rng.integers(100_000))
    else:
        place = int(rng.integers(len(rows)))
    return Pair(rows, place, other | public_values(rows[place], schema), pair.style, (), seed)


# Neighbours that differ by two rows: of one person, or one in each group. Both rows are moved so
# that values change as much as they can: two rows of one group alike, rows of two groups in
# opposite directions. Now and then the second row stays.


_SELDOM = 4  # of so many pairs one leaves the second row where it was


def with_second_row(pair: Pair, case: Case) -> Pair:
    """Return the pair with a second row replaced, if the neighbours of a case are such.

    It follows from the pair, so that a search can climb by the first row alone.
    """
    if case.replaces == "a row":
        return pair
    apart = case.replaces == "a row of each group"
    own = public_values(pair.rows[pair.place], case.schema)
    places = [
        place
        for place, row in enumerate(pair.rows)
        if place != pair.place and (public_values(row, case.schema) != own) == apart
    ]
    if not places:
        return replace(pair, more=())
    place, rows = places[pair.seed % len(places)], [dict(row) for row in pair.rows]
    before, after = rows[pair.place], pair.other
    if apart:
        before, after = after, before
    stays = public_values(rows[place], case.schema)
    if pair.seed % _SELDOM:
        rows[place] = before | stays
    return replace(pair, rows=rows, more=((place, after | stays),))


# Neighbours for permutation tests. The noisy observed statistic is ranked among all, so neighbours
# lose most if it rises by its bound and the permuted ones above it fall by theirs. Rows at two
# opposite corners move statistics by whole bounds, in a direction that depends on the public
# relabelling: so the seed and the corners are searched.


_GROUPS = ("group", "arm")


def corner_pair(case: Case, size: int, seed: int) -> Pair:
    """Return rows at corners, as many of each kind: nothing depends on anything."""
    corners = {name: values(case.schema, name)[:2] for name in case.schema.columns}
    rows: list[Row] = []
    for place in range(size):
        slow = () if case.private_groups or case.public_groups else ("y", "colour")
        row = {n: two[(place // 2 if n in slow else place) % 2] for n, two in corners.items()}
        rows.append(row | {"group": corners["group"][place >= size // 2]})
    rows = in_arms(rows, case.schema, size // 2)
    other = rows[0] | {name: corners[name][1] for name in case.columns if name not in _GROUPS}
    return Pair(rows, 0, other, "telling corners", (), seed)


def nearby_corner_pair(pair: Pair, case: Case, rng: np.random.Generator) -> Pair:
    """Return a pair nearby: one or two rows at other corners, another place or another seed."""
    rows, other = [dict(row) for row in pair.rows], dict(pair.other)
    kind, place, some = int(rng.integers(14)), pair.place, rng.integers(len(rows), size=2)
    if kind < 4:
        return replace(pair, seed=int(rng.integers(100_000)))
    if kind == 4:
        place = int(some[0])
    elif kind == 5:
        _turn(other, case, rng)
    else:
        for one in some[: 1 + (kind < 8)]:
            _turn(rows[one], case, rng)
    return Pair(
        rows, place, other | public_values(rows[place], case.schema), pair.style, (), pair.seed
    )


def _turn(row: Row, case: Case, rng: np.random.Generator) -> None:
    """Move a row to the other corner: on one side of two, or all of it where groups differ."""
    names = [name for name in case.columns if name not in _GROUPS]
    if not (case.private_groups or case.public_groups):
        names = [names[rng.integers(len(names))]]
    for name in names:
        low, high = values(case.schema, name)[:2]
        row[name] = high if row[name] == low else low
