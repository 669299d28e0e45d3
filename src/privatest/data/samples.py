"""Samples: rows as floats, fitted to their public description; what does not fit is refused.

Messages name the parameter, the column and the rule that was broken, never a value or a row.
The caller's data is never changed, and temporary arrays are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.validation import listed
from privatest.data.alignment import align, names_of_samples
from privatest.data.batches import BatchEncoder, fill_column, has_bounds_only
from privatest.data.bounds import Bounds, numbered_names, schema_of
from privatest.data.columns import (
    BLOCK,
    Units,
    as_floats,
    check_finite,
    one_column,
    placed,
    refuse_missing,
)
from privatest.data.domain import Box, Domain
from privatest.data.limits import rows_of_a_person
from privatest.data.persons import check_persons
from privatest.data.schema import CategoricalColumn, Column, Schema
from privatest.data.source import Source
from privatest.data.stream import Held, Joined, Stream
from privatest.data.tables import Table, arranged, label_of, read_data

__all__ = [
    "Sample",
    "TwoSamples",
    "beside",
    "encode_like",
    "encode_pairs",
    "encode_sample",
    "encode_samples",
    "encode_several",
    "encode_table",
]


_TURNED = 1 << 17


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Sample:
    """Private rows, and what is publicly known of them.

    Attributes
    ----------
    held : array of shape (n, d), Stream or Joined
        Rows in memory, or a way to read them.
    schema : Schema or None
        The public description; None without bounds.
    names : tuple of str or None
        What the columns are called, where the schema or the data has names.
    units : {"box", "own"}
        Whether numbers are mapped to [0, 1] by their bounds, or only clipped to them.
    """

    held: Held
    schema: Schema | None
    names: tuple[str, ...] | None = None
    units: Units = "box"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.held)

    @property
    def rows(self) -> NDArray[np.float64]:
        """All rows: numbers in the given units, categories as 0, 1, ...

        Those of a stream are read at every call. A test that can do with one pass asks
        :func:`privatest.engines.summaries.summarise` instead.
        """
        return self.held if isinstance(self.held, np.ndarray) else self.held.load()

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.held.shape[1] if isinstance(self.held, np.ndarray) else self.held.width

    @property
    def values(self) -> NDArray[np.float64]:
        """The first column: all there is, for tests of one column."""
        return self.rows[:, 0]

    def part(self, index: NDArray[np.intp]) -> Sample:
        """Return some of the rows."""
        return replace(self, held=self.rows[index])

    @property
    def domain(self) -> Domain:
        """The set that rows lie in."""
        if self.schema is None:
            return Domain.anywhere(self.width)
        return Domain(self.schema.domain.levels, bounded=self.units == "box")

    @property
    def box(self) -> Box:
        """The bounds in the data's own units."""
        return Box.anywhere(self.width) if self.schema is None else self.schema.box

    @property
    def unit(self) -> str:
        """What is hidden: a row, or a person with all of theirs."""
        return "row" if self.schema is None else self.schema.unit

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has, as declared."""
        return 1 if self.schema is None else self.schema.rows_per_person

    @property
    def column_names(self) -> tuple[str, ...]:
        """A name for each column: those of the description or of the data, else x1, x2, ..."""
        if self.schema is not None:
            return tuple(self.schema.columns)
        return self.names or numbered_names(self.width)


class TwoSamples(NamedTuple):
    """Two samples of the same columns, or the two sides of paired rows."""

    x: Sample
    y: Sample

    @property
    def domain(self) -> Domain:
        """The set that rows of x lie in, and those of y if they have the same columns."""
        return self.x.domain

    @property
    def unit(self) -> str:
        """What is hidden."""
        return self.x.unit

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has, in each sample for "both", else in both together."""
        return rows_of_a_person(*self)

    def secret_orders(
        self, noise: NoiseSource, *, paired: bool
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw an order of each sample's rows, or one of pairs: a stored one may tell of values."""
        order = noise.permutation(len(self.x))
        return order, order if paired else noise.permutation(len(self.y))


def beside(*samples: Sample) -> Sample:
    """Return the columns of all, of rows that belong together; without a description."""
    held = tuple(sample.held for sample in samples)
    return Sample(Joined(held, _beside, sum(sample.width for sample in samples)), None)


def _beside(*parts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack(parts)


def encode_samples(
    x: object, y: object, bounds: Bounds, *, units: Units = "box", adjacency: Adjacency = "one"
) -> TwoSamples:
    """Encode two samples of the same columns; see :func:`encode_several`."""
    first, second = encode_several((x, y), bounds, units=units, adjacency=adjacency)
    return TwoSamples(first, second)


def encode_several(
    samples: Sequence[object],
    bounds: Bounds,
    *,
    units: Units = "box",
    adjacency: Adjacency = "one",
) -> tuple[Sample, ...]:
    """Encode samples of the same columns, all of them in one order of columns.

    Parameters
    ----------
    samples : sequence of array, data frame, series or Arrow table
        One row per observation; one dimension is one column. NumPy, nested lists, pandas,
        Polars, Arrow, and mappings of names to columns.
    bounds : None, (lower, upper), (d, 2) array, mapping of names to (lower, upper), or Schema
        Public bounds of all columns, of each, or a description. A mapping or a schema finds the
        columns of a frame by name; a schema those of an array by position. With None numbers
        are taken as they are and must be finite.
    units : {"box", "own"}
        As in :func:`encode_sample`.
    adjacency : {"one", "both", "row"}
        What is hidden. With "row" it is private in which sample a row is: messages do not say so,
        and the order of columns depends on their names only, so that it is the same whichever
        samples have rows. With "both" a person may have as many rows as the schema says in each
        sample, else in all of them.

    Returns
    -------
    tuple of Sample
        New arrays; with ``bounds=None`` read-only views where the data has the right form.
        There may be no rows.
    """
    bounds = check_persons(bounds, samples, together=adjacency != "both")
    private_groups = adjacency == "row"
    called = names_of_samples(len(samples), private_groups=private_groups)
    read = [read_data(data, name) for data, name in zip(samples, called, strict=True)]
    by_name = _by_name(bounds)
    if by_name:
        tables, schema = read, schema_of(bounds, *read)
    else:
        tables, schema = align(read, bounds, called, private_groups=private_groups)
    names = tuple(schema.columns) if schema and by_name else _first_labels(tables)
    return tuple(
        Sample(_held(data, table, schema, name, units, by_name=by_name), schema, names, units)
        for data, table, name in zip(samples, tables, called, strict=True)
    )


def _first_labels(tables: Sequence[Table]) -> tuple[str, ...] | None:
    return next((table.labels for table in tables if table.labels is not None), None)


def encode_pairs(
    x: object, y: object, bounds_x: Bounds, bounds_y: Bounds, *, units: Units = "box"
) -> TwoSamples:
    """Encode the two sides of paired rows, each with its own columns and bounds.

    Parameters
    ----------
    x, y : array, data frame, series or Arrow table
        Row i of ``x`` belongs to row i of ``y``.
    bounds_x, bounds_y : None, (lower, upper), (d, 2) array, mapping of names to pairs, or Schema
        As in :func:`encode_samples`.
    units : {"box", "own"}
        As in :func:`encode_sample`.
    """
    left = encode_sample(x, bounds_x, "x", units=units)
    right = encode_sample(y, bounds_y, "y", units=units)
    if len(left) != len(right):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if left.rows_per_person != right.rows_per_person:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    return TwoSamples(left, right)


def encode_sample(data: object, bounds: Bounds, name: str = "x", *, units: Units = "box") -> Sample:
    """Encode one sample; ``name`` is what messages call it.

    With ``units="own"`` numbers are clipped to their bounds but not mapped to [0, 1]: equal
    values stay equal to the last bit, whatever their bounds, and different ones different.
    """
    bounds = check_persons(bounds, [data])
    source, by_name = read_data(data, name), _by_name(bounds)
    schema = schema_of(bounds, source)
    names = tuple(schema.columns) if schema and by_name else source.labels
    held = _held(data, source, schema, name, units, by_name=by_name)
    return Sample(held, schema, names, units)


def encode_like(data: object, sample: Sample, name: str) -> Sample:
    """Encode public rows of the columns of a sample: by name if both have names."""
    names = sample.column_names
    named = sample.names == names  # not where only the title of a series is known
    source = read_data(data, name).with_columns(len(names))
    if named and source.names is not None:
        fits = sample.schema is not None or set(source.names) == set(names)
    else:
        fits = source.width == len(names)
    if not fits:
        raise DataError(f"{name} must have the columns of x: {listed(names)}.")
    if named and source.names is not None:
        source = arranged(source, names, name)
    rows = _encoded(source, sample.schema, name, sample.units, by_name=named)
    return Sample(rows, sample.schema, sample.names, sample.units)


def encode_table(schema: Schema, table: object) -> NDArray[np.float64]:
    """Encode the columns that ``schema`` names; see :meth:`Schema.encode`."""
    source = read_data(table, "table")
    if source.names is None:
        raise DataError("table must have named columns: a data frame, a table or a mapping.")
    return _encoded(source, schema, "", "box", by_name=True)


def _by_name(bounds: Bounds) -> bool:
    """Whether bounds bring names for the columns; else those of the data are used."""
    return isinstance(bounds, (Schema, Mapping))


def _held(
    data: object, table: Table, schema: Schema | None, name: str, units: Units, *, by_name: bool
) -> NDArray[np.float64] | Stream:
    """Encode rows now, or say how they are encoded when they are read."""
    if isinstance(data, Source) and schema is not None and by_name:
        table = _chosen(table, tuple(schema.columns), name)
    if not isinstance(data, Source) or table.array is not None:  # a source without rows
        return _encoded(table, schema, name, units, by_name=by_name)
    names = data.names if table.names is None else table.names
    columns = tuple([None] * table.width if schema is None else schema.columns.values())
    labels = tuple(_labels(table, schema if by_name else None, name))
    encode = BatchEncoder(columns, labels, units)
    text = [own for own, c in zip(names, columns, strict=True) if isinstance(c, CategoricalColumn)]
    return Stream(data.select(names).as_text(text), encode, table.width)


def _encoded(
    source: Table, schema: Schema | None, name: str, units: Units, *, by_name: bool
) -> NDArray[np.float64]:
    if schema is not None and by_name:
        source = _chosen(source, tuple(schema.columns), name)
    array, labels = source.array, _labels(source, schema if by_name else None, name)
    if array is not None and array.dtype.kind not in "biuf" and not by_name:
        raise DataError(f"{name} must hold real numbers; describe categories by a Schema.")
    if schema is None:
        if array is not None:
            return _as_it_is(array, name)
        return np.ascontiguousarray(_by_columns(source, [None] * source.width, labels, units))
    columns = list(schema.columns.values())
    if array is not None and array.dtype.kind in "biuf" and all(map(has_bounds_only, columns)):
        return _placed_array(array, schema.box, labels, units)
    return np.ascontiguousarray(_by_columns(source, columns, labels, units))


def _chosen(source: Table, names: tuple[str, ...], name: str) -> Table:
    """Find the columns that are described: by name, or by position where they have none."""
    source = source.with_columns(len(names))
    if source.names is not None:
        return arranged(source, names, name)
    if source.width != len(names):
        raise DataError(
            f"{name} must have the schema's {len(names)} columns ({listed(names)}); "
            f"it has {source.width}."
        )
    return source


def _labels(source: Table, schema: Schema | None, name: str) -> list[str]:
    """Return what messages call the columns."""
    names = source.names if schema is None else tuple(schema.columns)
    if names is not None:
        return [label_of(own, name) for own in names]
    if source.width == 1:
        return [name]
    return [f"column {place} of {name}" for place in range(1, source.width + 1)]


def _placed_array(
    array: NDArray[Any], box: Box, labels: Sequence[str], units: Units
) -> NDArray[np.float64]:
    """Fit the columns of an array to their bounds, a block of rows at a time."""
    rows, lower, upper = np.empty(array.shape), box.lower, box.upper
    if np.ptp(lower) == np.ptp(upper) == 0:  # twice as fast
        lower, upper = lower[0], upper[0]
    for start in range(0, len(array), BLOCK):
        block = as_floats(array[start : start + BLOCK])
        if np.isnan(block).any():
            refuse_missing(labels[int(np.argmax(np.isnan(block).any(axis=0)))])
        placed(block, lower, upper, units, rows[start : start + BLOCK])
    return rows


def _as_it_is(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    rows = as_floats(array).view()
    rows.flags.writeable = False  # it may be the caller's own
    for start in range(0, len(rows), BLOCK):
        check_finite(rows[start : start + BLOCK], name)
    return rows


def _by_columns(
    source: Table, columns: Sequence[Column | None], labels: Sequence[str], units: Units
) -> NDArray[np.float64]:
    rows = np.empty((0, 0))
    for index, (column, label) in enumerate(zip(columns, labels, strict=True)):
        values = one_column(source.column(index), label)
        if index == 0:
            rows = _empty(len(values), len(columns))
        elif len(values) != len(rows):
            raise DataError(f"{label} must be as long as the other columns.")
        fill_column(rows[:, index], values, column, label, units)
    return rows


def _empty(count: int, width: int) -> NDArray[np.float64]:
    """Return room for rows; for few by columns, which is faster to fill, to be turned later."""
    if count > _TURNED:  # too much to be held twice
        return np.empty((count, width))
    return np.empty((width, count)).T
