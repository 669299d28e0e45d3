"""Samples: rows as floats, fitted to their public description; what does not fit is refused.

Messages name the parameter, the column and the rule that was broken, never a value or a row.
The caller's data is never changed, and temporary arrays are small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency
from privatest.core.validation import listed, reject
from privatest.data.columns import Encoder, Units, finite_view
from privatest.data.reading import (
    Table,
    align,
    check_bounds,
    check_person_rows,
    label_of,
    names_of_samples,
    read_data,
    schema_of,
)
from privatest.data.schema import (
    Bounds,
    Box,
    CategoricalColumn,
    Domain,
    Schema,
    numbered_names,
)
from privatest.data.sources import Held, Joined, Source, Stream, as_blocks

_LARGEST_BOUND = 1e150


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Sample:
    """Private rows, and what is publicly known of them.

    Attributes
    ----------
    held : array of shape (n, d) or RowBlocks
        Rows in memory, or a way to read them.
    schema : Schema or None
        The public description; None without bounds.
    names : tuple of str or None
        Names of the columns, where the schema or the data has them.
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

        Those of a stream are read at every call. A test that needs one pass only calls
        :func:`privatest.data.summaries.summarise` instead.
        """
        return as_blocks(self.held).load()

    @property
    def width(self) -> int:
        """Number of columns."""
        return as_blocks(self.held).width

    @property
    def values(self) -> NDArray[np.float64]:
        """The first column: the only one, for tests of one column."""
        return self.rows[:, 0]

    def part(self, index: NDArray[np.intp]) -> Sample:
        """Return some of the rows."""
        return replace(self, held=self.rows[index])

    @property
    def domain(self) -> Domain:
        """The set of possible rows."""
        if self.schema is None:
            return Domain.anywhere(self.width)
        return Domain(self.schema.domain.levels, bounded=self.units == "box")

    @property
    def box(self) -> Box:
        """The bounds in the data's own units."""
        return Box.anywhere(self.width) if self.schema is None else self.schema.box

    @property
    def unit(self) -> str:
        """The unit of privacy: a row, or a person with all their rows."""
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
        """The set of possible rows of x, and of y if they have the same columns."""
        return self.x.domain

    @property
    def unit(self) -> str:
        """The unit of privacy."""
        return self.x.unit

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has, in each sample for "both", else in both together."""
        return rows_of_a_person(*self)

    def secret_orders(
        self, noise: NoiseSource, *, paired: bool
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw an order of each sample's rows, or of pairs: a stored one may depend on values."""
        order = noise.permutation(len(self.x))
        return order, order if paired else noise.permutation(len(self.y))


def rows_of_a_person(*samples: Sample) -> int:
    """Return the most rows that one person has in these samples together.

    Notes
    -----
    **Sensitivity** What is declared, and never more than there are rows: data sets that differ in
    a person with k of N rows differ in min(k, N) replaced rows. N is public, also where the
    groups' own sizes are not, so a statistic of several samples needs all of them here.
    """
    declared = max(sample.rows_per_person for sample in samples)
    return min(declared, max(1, sum(map(len, samples))))


def refuse_wide_bounds(*samples: Sample) -> None:
    """Refuse bounds whose squares or differences are not finite, for tests that compute them."""
    ends = np.array([[sample.box.lower, sample.box.upper] for sample in samples])
    if np.abs(ends).max() > _LARGEST_BOUND:
        reject("bounds", f"at most {_LARGEST_BOUND:g} in size: squares have to be finite", ends)


def beside(*samples: Sample) -> Sample:
    """Return the columns of all samples, whose rows belong together; without a description."""
    held = tuple(sample.held for sample in samples)
    return Sample(Joined(held, _hstack, sum(sample.width for sample in samples)), None)


def _hstack(*parts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack(parts)


def encode_samples(
    x: object, y: object, bounds: Bounds, *, units: Units = "box", adjacency: Adjacency = "one"
) -> TwoSamples:
    """Encode two samples of the same columns; see :func:`encode_several`."""
    return TwoSamples(*encode_several((x, y), bounds, units=units, adjacency=adjacency))


def encode_one_column(x: object, bounds: Bounds, *, units: Units = "box") -> Sample:
    """Read a sample of one numeric column and at least two rows."""
    sample = encode_sample(x, bounds, units=units)
    if sample.domain.levels != (0,):
        raise DataError("x must have one numeric column: its values are ranked.")
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    return sample


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
    check_bounds(bounds)
    bounds = check_person_rows(bounds, samples, together=adjacency != "both")
    private_groups = adjacency == "row"
    called = names_of_samples(len(samples), private_groups=private_groups)
    tables = [read_data(data, name) for data, name in zip(samples, called, strict=True)]
    by_name = _by_name(bounds)
    if by_name:
        schema = schema_of(bounds, *tables)
    else:
        tables, schema = align(tables, bounds, called, private_groups=private_groups)
    names = next((table.labels for table in tables if table.labels is not None), None)
    if schema is not None and by_name:
        names = tuple(schema.columns)
    return tuple(
        Sample(_encoded(data, table, schema, name, units, by_name=by_name), schema, names, units)
        for data, table, name in zip(samples, tables, called, strict=True)
    )


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
    check_bounds(bounds_y)
    left = encode_sample(x, bounds_x, "x", units=units)
    right = encode_sample(y, bounds_y, "y", units=units)
    if len(left) != len(right):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if left.rows_per_person != right.rows_per_person:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    return TwoSamples(left, right)


def require_public_bounds(**bounds: Bounds) -> None:
    """Refuse to go on without public bounds."""
    for name, given in bounds.items():
        if given is None:
            raise ParameterError(f"{name} must be given: found from the data they would leak it.")


def encode_numeric_pairs(
    x: object,
    y: object,
    bounds_x: Bounds,
    bounds_y: Bounds,
    *,
    rows: int,
    units: Units = "box",
) -> TwoSamples:
    """Encode one numeric column a side, with at least so many rows."""
    sides = encode_pairs(x, y, bounds_x, bounds_y, units=units)
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column; hsic_test takes several.")
    if units == "box":  # numbers are added, not only put in order
        refuse_wide_bounds(*sides)
    if len(sides.x) < rows:
        raise DataError(f"x and y must have at least {rows} rows.")
    return sides


def encode_sample(data: object, bounds: Bounds, name: str = "x", *, units: Units = "box") -> Sample:
    """Encode one sample; ``name`` is its name in messages.

    With ``units="own"`` numbers are clipped to their bounds but not mapped to [0, 1]: equal
    values stay equal to the last bit, whatever their bounds, and different ones different.
    """
    check_bounds(bounds)
    bounds = check_person_rows(bounds, [data])
    table, by_name = read_data(data, name), _by_name(bounds)
    schema = schema_of(bounds, table)
    names = tuple(schema.columns) if schema is not None and by_name else table.labels
    held = _encoded(data, table, schema, name, units, by_name=by_name)
    return Sample(held, schema, names, units)


def encode_like(data: object, sample: Sample, name: str) -> Sample:
    """Encode public rows of the columns of a sample: by name if both have names."""
    names = sample.column_names
    named = sample.names == names  # not where only the title of a series is known
    table = read_data(data, name).with_columns(len(names))
    if named and table.names is not None:
        fits = sample.schema is not None or set(table.names) == set(names)
    else:
        fits = table.width == len(names)
    if not fits:
        raise DataError(f"{name} must have the columns of x: {listed(names)}.")
    if named and table.names is not None:
        table = table.select(names, name)
    rows = _encoded(None, table, sample.schema, name, sample.units, by_name=named)
    return Sample(rows, sample.schema, sample.names, sample.units)


def encode_table(schema: Schema, data: object) -> NDArray[np.float64]:
    """Encode the columns that ``schema`` names; see :meth:`Schema.encode`."""
    table = read_data(data, "table")
    if table.names is None:
        raise DataError("table must have named columns: a data frame, a table or a mapping.")
    return as_blocks(_encoded(None, table, schema, "", "box", by_name=True)).load()


def _by_name(bounds: Bounds) -> bool:
    """Whether bounds bring names for the columns; else those of the data are used."""
    return isinstance(bounds, (Schema, Mapping))


def _encoded(
    data: object, table: Table, schema: Schema | None, name: str, units: Units, *, by_name: bool
) -> Held:
    """Encode rows now, or return how they are encoded when they are read, if data is a source."""
    if schema is not None and by_name:
        table = _described_columns(table, tuple(schema.columns), name)
    columns = tuple([None] * table.width if schema is None else schema.columns.values())
    labels = _labels(table, schema if by_name else None, name)
    encoder, array = Encoder(columns, labels, units), table.array
    if isinstance(data, Source) and array is None:  # a source without rows may have an array
        names = data.names if table.names is None else table.names
        columns_of = zip(names, columns, strict=True)
        text = [own for own, column in columns_of if isinstance(column, CategoricalColumn)]
        return Stream(data.select(names).as_text(text), encoder.encode_batch, table.width)
    if array is not None:
        numbers = array.dtype.kind in "biuf"
        if not numbers and not by_name:
            raise DataError(f"{name} must hold real numbers; describe categories by a Schema.")
        if schema is None:
            return finite_view(array, name)
        if numbers and encoder.only_bounds:
            return encoder.encode_array(array)
    return encoder.encode_columns(table.column)


def _described_columns(table: Table, names: tuple[str, ...], name: str) -> Table:
    """Find the columns that are described: by name, or by position where they have none."""
    table = table.with_columns(len(names))
    if table.names is not None:
        return table.select(names, name)
    if table.width != len(names):
        raise DataError(
            f"{name} must have the schema's {len(names)} columns ({listed(names)}); "
            f"it has {table.width}."
        )
    return table


def _labels(table: Table, schema: Schema | None, name: str) -> tuple[str, ...]:
    """Return how messages name the columns."""
    names = table.names if schema is None else tuple(schema.columns)
    if names is not None:
        return tuple(label_of(own, name) for own in names)
    if table.width == 1:
        return (name,)
    return tuple(f"column {place} of {name}" for place in range(1, table.width + 1))
