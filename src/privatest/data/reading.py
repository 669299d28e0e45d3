"""Data of any origin as columns: tables, bounds, groups of a frame, and rows per person.

Everything public is resolved first (:func:`resolve_samples`), from arguments only. Reading
(:meth:`SampleLayout.read`, :func:`read_data`) pays from an open budget before it looks at data.
Messages name the parameter, the column and the rule, never a value or a row.
"""

from __future__ import annotations

import hashlib
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import ADJACENCIES, Adjacency
from privatest.core.spending import pay_for_data
from privatest.core.validation import listed, one_of, reject
from privatest.data.columns import category_blocks, one_column, refuse_missing
from privatest.data.engines import EngineConfig
from privatest.data.schema import (
    MISSING,
    UNKNOWN,
    Bounds,
    CategoricalColumn,
    Categories,
    Category,
    Membership,
    NumericColumn,
    Schema,
    label_spelling,
    numbered_names,
    spelling,
)
from privatest.data.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

MOST_HELD = 1 << 25  # numbers that are read into memory, 256 MiB
MOST_IDS = 1 << 23  # counted in one pass
_MOST_BYTES = 1 << 28  # of a CSV file that is read without counting its rows first
_SINGLE_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_REST = "rest"
_PUBLIC_GROUPS = "pass adjacency='one', if everybody may know who is in which group"

# --- tables ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Table:
    """Columns of any origin, fetched one at a time."""

    names: tuple[str, ...] | None
    width: int
    column: Callable[[int], Any]
    array: NDArray[Any] | None = None  # all columns, where they are one NumPy array
    title: str | None = None  # of a series: shown, but nothing is looked up by it
    rows: int | None = None  # where they are known without asking a column

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the columns for readers."""
        return self.names if self.title is None else (self.title,)

    @property
    def shapeless(self) -> bool:
        """Whether this is [] or the like, which may stand for any columns without rows."""
        if self.names is not None or self.width != 1:
            return False
        return not (len(self.column(0)) if self.rows is None else self.rows)

    def with_columns(self, width: int) -> Table:
        """Give [] as many columns as the other samples have: a private group may be empty."""
        if not self.shapeless:
            return self
        empty = np.empty((0, width))
        return Table(None, width, lambda index: empty[:, index], empty)

    def select(self, names: tuple[str, ...], name: str) -> Table:
        """Return columns by their names; ``name`` is that of the data in messages."""
        own = self.names or ()
        for wanted in names:
            if own.count(wanted) != 1:
                problem = "occurs more than once" if wanted in own else "is missing"
                # names of which none was asked for may be somebody's row, read as a header
                known = f"; the columns are: {listed(own)}" if set(names) & set(own) else ""
                raise DataError(f"{label_of(wanted, name)} {problem}{known}.")
        order = [own.index(wanted) for wanted in names]
        return Table(names, len(names), lambda index: self.column(order[index]))


def label_of(column: str, name: str) -> str:
    """Return how messages name a column of the data ``name``."""
    return f"column {column!r} of {name}" if name else f"column {column!r}"


def read_data(data: Any, name: str) -> Table:
    """Return the columns of data of any kind; an open budget pays first."""
    pay_for_data()
    pandas = sys.modules.get("pandas")  # not imported: a caller with a frame has done so
    if pandas is not None and isinstance(data, pandas.Series):
        return Table(None, 1, lambda _: data, title=_title(data))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        names = tuple(str(label) for label in data.columns)
        table = Table(names, len(names), lambda index: data.iloc[:, index], rows=len(data))
    elif isinstance(data, Source):
        own = data.names if data.named else None
        table = Table(own, len(data.names), partial(_source_column, data), rows=len(data))
    elif isinstance(data, Mapping):
        rows = 0 if not data else None
        table = Table(tuple(map(str, data)), len(data), list(data.values()).__getitem__, rows=rows)
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        table = _read_arrow(data)
    else:
        table = _read_array(data, name)
    if table.width == 0:
        if table.rows != 0:
            raise DataError(f"{name} must have at least one column.")
        return _read_array([], name)  # {}, DataFrame() and the like mean the same as []
    return table


def _source_column(source: Source, index: int) -> Any:
    """Read a column of a source into memory, for what has no other way."""
    return source.select([source.names[index]]).load().column(0)


def _read_arrow(data: Any) -> Table:
    import pyarrow as pa  # noqa: PLC0415

    title = _title(data)
    if hasattr(data, "to_arrow"):  # Polars: gives text in a form that older Arrows know too
        data = data.to_arrow()
    if not isinstance(data, (pa.Table, pa.RecordBatch, pa.ChunkedArray, pa.Array)):
        data = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if isinstance(data, (pa.ChunkedArray, pa.Array)):
        if not pa.types.is_struct(data.type):
            return Table(None, 1, lambda _: data, title=title)
        data = pa.Table.from_struct_array(data)
    names = tuple(data.schema.names)
    return Table(names, len(names), data.column, rows=data.num_rows)


def _title(data: Any) -> str | None:
    name = getattr(data, "name", None)
    return name if isinstance(name, str) and name else None


def _read_array(data: Any, name: str) -> Table:
    try:
        if isinstance(data, (list, tuple)) and any(
            isinstance(row, np.ma.MaskedArray) for row in data
        ):
            data = np.ma.stack(data)  # as an array they would lose their masks
        array = data if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
    except ValueError:
        raise DataError(f"{name} must have rows of one length.") from None
    if array.ndim not in (1, 2) or array.dtype.kind == "V":
        raise DataError(f"{name} must be a data frame, or an array of one or two dimensions.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    whole = None if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
    return Table(None, array.shape[1], lambda index: array[:, index], whole, rows=len(array))


# --- bounds of data -------------------------------------------------------------------------


def schema_of(bounds: Bounds, *data: Table) -> Schema | None:
    """Return the schema that public bounds stand for, or None without bounds.

    Parameters
    ----------
    bounds : None, (lower, upper), (d, 2) array, mapping of names to (lower, upper), or Schema
        One pair is for all columns. Bounds by name need data with names: the order of a mapping
        is not meant to be that of columns.
    *data : Table
        What the bounds are for, of one width; it gives the columns their names, else they are
        x1, x2, ... Without data there is a column for each pair.
    """
    if bounds is None or isinstance(bounds, Schema):
        return bounds
    if isinstance(bounds, Mapping):
        schema = Schema.from_bounds(bounds)
        for table in data:
            _check_names(schema, table)
        return schema
    pairs = _pairs(bounds, data[0].width if data else None)
    names = next((table.names for table in data if table.names is not None), ())
    if len(set(names)) < len(pairs):  # none, or some more than once
        names = numbered_names(len(pairs))
    columns = (NumericColumn(lower, upper) for lower, upper in pairs.tolist())
    return Schema(dict(zip(names, columns, strict=True)))


def check_bounds(bounds: Any) -> None:
    """Refuse bounds that no data fits, before data is paid for and read."""
    if isinstance(bounds, Mapping):
        Schema.from_bounds(bounds)
    elif bounds is not None and not isinstance(bounds, Schema):
        _pairs(bounds, None)


def _check_names(schema: Schema, table: Table) -> None:
    if table.labels is None and not table.shapeless:
        raise ParameterError(
            "bounds must be (lower, upper), a pair for each column, or a Schema: bounds by "
            "name are for a data frame, a table or a named series, not for plain arrays."
        )
    if table.title is not None and tuple(schema.columns) != table.labels:
        raise ParameterError(
            f"bounds must be {{{table.title!r}: (lower, upper)}}, the name of the series, "
            "or just (lower, upper)."
        )


def _pairs(bounds: object, width: int | None) -> NDArray[np.float64]:
    """Return public bounds as one (lower, upper) for each column."""
    try:
        pairs = np.asarray(bounds)
    except ValueError:  # ragged
        pairs = np.empty(0)
    columns = "column" if width is None else f"of the {width} columns"
    if width is None:
        width = len(pairs) if pairs.ndim == 2 and len(pairs) else 1
    if pairs.dtype.kind not in "iuf" or pairs.shape not in {(2,), (width, 2)}:
        # not quoted: what has another shape may be data, passed here by mistake
        raise ParameterError(
            f"bounds must be (lower, upper), a pair for each {columns}, or a Schema."
        )
    pairs = np.broadcast_to(pairs.astype(np.float64), (width, 2))
    with np.errstate(over="ignore", invalid="ignore"):
        size = pairs[:, 1] - pairs[:, 0]
    good = np.isfinite(size) & (size > 0)
    if not good.all():
        where = f" (see column {int(np.argmin(good)) + 1})" if width > 1 else ""
        raise ParameterError(
            f"bounds must be two finite numbers, the lower below the upper{where}."
        )
    return pairs


def bounds_of_sides(bounds: Any, x: object, y: object) -> tuple[Bounds, Bounds]:
    """Split the bounds of paired rows into those of x and those of y.

    One pair is for all columns, and two of anything are for x and for y. A schema or a mapping
    is split by the names of the columns; a schema, or a pair for each column of both sides,
    also by their order.
    """
    nested = isinstance(bounds, (list, tuple)) and not all(isinstance(b, Real) for b in bounds)
    for each in bounds if nested else [bounds]:
        check_bounds(each)
    bounds = check_person_rows(bounds, [x, y], together=False)  # a pair is one row
    left, right = read_data(x, "x"), read_data(y, "y")
    both = left.width + right.width
    if isinstance(bounds, (Schema, Mapping)):
        schema = bounds if isinstance(bounds, Schema) else Schema.from_bounds(bounds)
        sides = [[n for n in schema.columns if n in (t.labels or ())] for t in (left, right)]
        if not all(sides) and isinstance(bounds, Mapping):
            raise ParameterError(
                "bounds by name must have the names of x and y: tables or named series."
            )
        if not all(sides) and len(schema.columns) == both:
            names = list(schema.columns)
            sides = [names[: left.width], names[left.width :]]
        if not all(sides):
            raise ParameterError("bounds must describe the columns of x and those of y.")
        return schema.select(sides[0]), schema.select(sides[1])
    parts = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(parts, (list, tuple)) or all(isinstance(part, Real) for part in parts):
        return bounds, bounds
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) == both:
        return parts[: left.width], parts[left.width :]
    return bounds, bounds


def bounds_of_measurements(bounds: Any, x: object, y: object) -> tuple[Bounds, Bounds]:
    """Split the bounds of two measurements of the same rows: a schema of one column is for both."""
    alike = isinstance(bounds, Schema) and len(bounds.columns) == 1
    return (bounds, bounds) if alike else bounds_of_sides(bounds, x, y)


# --- one order of columns for several samples -----------------------------------------------


def names_of_samples(count: int, *, private_groups: bool) -> tuple[str, ...]:
    """Return how messages name the samples."""
    if private_groups:
        return ("x or y",) * 2 if count == 2 else ("a sample",) * count
    return ("x", "y") if count == 2 else tuple(f"sample {i + 1}" for i in range(count))


def align(
    tables: Sequence[Table], bounds: Bounds, called: Sequence[str], *, private_groups: bool
) -> tuple[list[Table], Schema | None]:
    """Give all samples one order of columns; return them and their schema in that order.

    With private groups the order must not depend on which samples have rows: it is that of the
    names, sorted, or the positions where no sample has names. What depends on which sample is the
    first with rows is refused: docs/proofs/private-groups.md.
    """
    orders = [table.names for table in tables if table.names is not None]
    by_position = any(table.names is None and not table.shapeless for table in tables)
    if private_groups and orders and len(orders[0]) > 1 and by_position:
        raise DataError(
            "samples of several columns must all have names of columns, or none of them, if "
            "groups are private. Or give bounds as a Schema, which says what the columns are."
        )
    if not private_groups and by_position and len(set(orders)) > 1:
        raise DataError(
            "samples without names of columns need the others in one order of columns. Give all "
            "samples names, or the others the same order."
        )
    aligned = _same_width(tables, [called[0]] * len(tables) if private_groups else called)
    if not private_groups:
        if len(orders) > 1:
            aligned = _in_order(aligned, orders[0], called)
        return aligned, schema_of(bounds, *aligned)
    schema = schema_of(bounds, *aligned)
    if not orders:
        return aligned, schema
    order = tuple(sorted(orders[0]))
    aligned = _in_order(aligned, order, [called[0]] * len(tables))
    if schema is None or len(order) == 1:
        return aligned, schema
    if len(set(schema.columns.values())) > 1:
        # whose order of columns is meant? That must not depend on which samples have rows
        raise ParameterError(
            "bounds must be by name, or one pair for all columns: the columns have names, and "
            "samples may have them in different orders."
        )
    return aligned, schema.select(order)


def _in_order(
    tables: Sequence[Table], order: tuple[str, ...], called: Sequence[str]
) -> list[Table]:
    return [
        table if table.names is None else table.select(order, name)
        for table, name in zip(tables, called, strict=True)
    ]


def _same_width(tables: Sequence[Table], called: Sequence[str]) -> list[Table]:
    """Refuse samples of different widths; [] has the width of the others."""
    width, name = next(
        ((t.width, name) for t, name in zip(tables, called, strict=True) if not t.shapeless),
        (1, called[0]),
    )
    tables = [table.with_columns(width) for table in tables]
    for table, other in zip(tables, called, strict=True):
        if table.width != width:
            which = "x and y" if len(tables) == 2 else "all samples"
            widths = f": {name} has {width}, {other} has {table.width}" if name != other else ""
            raise DataError(f"{which} must have the same columns{widths}.")
    return tables


# --- rows per person ------------------------------------------------------------------------


def check_person_rows(
    bounds: Bounds, samples: Sequence[object], *, together: bool = True, tell: bool = False
) -> Bounds:
    """Refuse data in which a person has more rows than the schema says: too little noise.

    Return ``bounds`` without the id column. Ids are never disclosed: they are counted by a keyed
    hash of 64 bits and forgotten. Of many rows only a share of the ids is counted in each pass, so
    that memory is bounded: 2^23 ids at a time, about 200 MB. Two people whose hashes collide count
    as one, with a probability of at most (people)^2 / 2^65: valid data may then be refused, and
    never the other way round. A refusal goes to the caller, who holds the data.

    Parameters
    ----------
    bounds : None, pair, array, mapping or Schema
        As in :func:`privatest.data.encoding.encode_sample`.
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
    columns = [_id_column(data, bounds.id_column) for data in samples]
    for group in [columns] if together else [[column] for column in columns]:
        largest = _most_rows(group, bounds.id_column)
        if largest > bounds.rows_per_person:
            most, who = f"{bounds.rows_per_person:,}", f"by id_column {bounds.id_column!r}"
            rows = f"{largest:,} rows {who}" if tell else f"more than {most} rows {who}"
            raise DataError(
                f"a person has {rows}, and rows_per_person of the schema is {most}. Raise it, "
                "which adds noise, or leave out rows."
            )
    return bounds.select(bounds.columns)


IdColumn = tuple[int, Callable[[], Iterable[Any]]]
"""A public number of rows, and a function that reads the ids, piece by piece."""


def _id_column(data: object, name: str) -> IdColumn:
    table = read_data(data, "the data")  # it pays, if a budget is open
    if isinstance(data, Source):
        source = data.select([name])
        count = len(source)
        return source.public_rows, lambda: (b.column(0) for b in source.tables(0, count, [name]))
    if table.shapeless:
        return 0, tuple
    if (table.names or ()).count(name) != 1:
        raise DataError(
            f"{label_of(name, 'the data')} must be there once: it is the id_column of the schema, "
            "by which rows per person are counted. Pass it too, or a schema without: "
            "schema.select([...])."
        )
    import pyarrow as pa  # noqa: PLC0415

    column = one_column(table.column((table.names or ()).index(name)), f"id_column {name!r}")
    return len(column), lambda: [pa.array(column) if isinstance(column, np.ndarray) else column]


def _most_rows(columns: Sequence[IdColumn], name: str) -> int:
    """Return how many rows the person with most rows has."""
    passes = -(-sum(count for count, _ in columns) // MOST_IDS)
    key = uuid.uuid4().bytes
    largest = (_most_rows_of_share(columns, name, key, share, passes) for share in range(passes))
    return max(largest, default=0)  # there may be no rows


def _most_rows_of_share(
    columns: Sequence[IdColumn], name: str, key: bytes, share: int, passes: int
) -> int:
    """Return the largest number of rows among a share of the ids."""
    import pyarrow.compute as pc  # noqa: PLC0415

    hashes = np.empty(0, np.uint64)
    counts = np.empty(0, np.int64)
    for _, read in columns:
        for column in read():
            counted = pc.value_counts(_id_text(column, name))
            ids = counted.field("values").to_pylist()
            if "" in ids:
                raise DataError(f"id_column {name!r} has missing values: nobody can be counted.")
            new = np.fromiter((_hash(each, key) for each in ids), np.uint64, len(ids))
            chosen = new % np.uint64(passes) == share
            hashes, places = np.unique(np.concatenate([hashes, new[chosen]]), return_inverse=True)
            sums = np.concatenate([counts, counted.field("counts").to_numpy()[chosen]])
            counts = np.bincount(places, weights=sums, minlength=len(hashes)).astype(np.int64)
    return int(counts.max(initial=0))


def _id_text(column: pa.Array | pa.ChunkedArray, name: str) -> Any:
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


# --- groups of a frame ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grouping:
    """How one table is split in two groups or more, by the values of its group column.

    The groups are public: they come from the schema or from the request, never from the data.

    Attributes
    ----------
    column : str
        The group column.
    labels : tuple of str
        The groups as they were requested.
    has_rest : bool
        Whether the last group is everything that the others are not.
    membership : {"private", "public"}
        Whether everybody may know who is in which group.
    described : Schema or None
        Description of the group column; without it the labels are looked for.
    codes : tuple of int or None
        The groups by their place among the described categories; None is the rest.
    """

    column: str
    labels: tuple[str, ...]
    has_rest: bool
    membership: Membership
    described: Schema | None = None
    codes: tuple[int | None, ...] = ()

    @classmethod
    def ask(
        cls,
        column: str,
        schema: Schema | None,
        groups: tuple[str, ...] | None,
        membership: Membership | None,
        *,
        several: bool = False,
    ) -> Grouping:
        """Find the groups in what is public; ``several`` is whether there may be more than two."""
        if groups is not None and not (len(groups) == 2 or (several and len(groups) > 2)):
            raise ParameterError(
                "groups must be two or more." if several else "groups must be a list of two."
            )
        entry = None if schema is None else schema.columns.get(column)
        if schema is None or entry is None:
            if groups is None:
                raise ParameterError(
                    "groups",
                    f"must be given, or a schema with column {column!r}: groups found from the "
                    "data would leak it",
                    remedy={"groups": ""},
                )
            different = len(set(map(label_spelling, groups))) == len(groups)
            if not different or _REST in groups[:-1]:
                raise ParameterError("groups must be different values, only the last may be rest.")
            has_rest = groups[-1] == _REST
            if has_rest and membership != "public":
                # with a schema a mistyped label is refused; here only an empty group would tell
                raise ParameterError(
                    f"groups with '{_REST}' need a Schema that lists the categories of {column!r}, "
                    "as a mistyped group would look like an empty one. Or name all groups; or pass "
                    "adjacency='one', if everybody may know who is in which group.",
                    remedy={"schema": "", "membership": "public"},
                )
            return cls(column, groups, has_rest, membership or "private")
        if not isinstance(entry, CategoricalColumn):
            raise ParameterError(f"group column {column!r} must be categorical in the schema.")
        membership = membership or entry.membership
        if groups is None and (several or len(entry.categories) == 2):
            groups = tuple(map(spelling, entry.categories))
        codes = _declared_codes(column, entry, groups, membership)
        described = schema.select([column])
        return cls(column, groups or (), codes[-1] is None, membership, described, codes)

    @property
    def words(self) -> str:
        """The groups, for a reader."""
        first, *others = self.labels
        named = others[:-1] if self.has_rest else others
        other = [f"{self.column} = {label}" for label in named] + ["the rest"] * self.has_rest
        return f"{self.column} = {first} against {' and '.join(other)}"

    @property
    def examples(self) -> tuple[str, ...]:
        """A value of each group, for made-up rows."""
        if not self.has_rest:
            return self.labels
        named = self.labels[:-1]
        if self.described is None:
            return *named, f"not {named[0]}"
        entry = self.described.columns[self.column]
        assert isinstance(entry, CategoricalColumn)
        code = next(k for k in range(len(entry.categories)) if k not in self.codes)
        return *named, spelling(entry.categories[code])

    def sizes(self, table: pa.Table | Source) -> tuple[int, ...]:
        """Return the sizes of the groups; they are public for public groups only."""
        if isinstance(table, Source):
            return tuple(map(len, self.split(table)))
        return tuple(int(rows.sum()) for rows in self._masks(table))

    def split(self, table: pa.Table | Source) -> tuple[Any, ...]:
        """Return the rows of each group, without the group column."""
        if isinstance(table, Source):
            samples = split_source(table, self)
            self.require_rows([len(sample) > 0 for sample in samples])
            return samples
        rows = table.drop_columns([self.column])
        return tuple(rows.filter(mask) for mask in self._masks(table))

    def _masks(self, table: pa.Table) -> list[NDArray[np.bool_]]:
        sides = self.sides_of(table.column(self.column))
        masks = [sides == place for place in range(len(self.labels))]
        self.require_rows([mask.any() for mask in masks])
        return masks

    def sides(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Return the group of each row, by the codes of the described categories."""
        sides = np.full(len(codes), len(self.labels) - 1 if self.has_rest else UNKNOWN)
        for place, code in enumerate(self.codes):
            if code is not None:
                sides[codes == code] = place
        return sides

    def sides_of(self, values: Any) -> NDArray[np.intp]:
        """Return the group of each row, by the values of the group column.

        A group may be empty: where membership is private, failing then would reveal it.
        """
        label = f"column {self.column!r}"
        if self.described is not None:
            return self.sides(self.described.encode({self.column: values})[:, 0])
        labels = Categories.labelled(self.labels[:-1] if self.has_rest else self.labels)
        blocks = category_blocks(one_column(values, label), labels, label)
        sides = np.concatenate([np.empty(0, np.intp), *blocks])
        if (sides == MISSING).any():
            refuse_missing(label)
        if self.has_rest:
            sides[sides == UNKNOWN] = len(self.labels) - 1
        elif self.membership == "private" and (sides == UNKNOWN).any():
            raise DataError(
                f"{label} has a third group or more: where membership is private, "
                f"groups must name all values there are. Use {self.labels[0]} and {_REST}.",
                remedy={"membership": "public"},
            )
        return sides

    def require_rows(self, some: Sequence[bool]) -> None:
        """Refuse an empty group: a mistyped value would give an answer about nobody.

        That a private group is empty is not disclosed.
        """
        if self.membership == "private":
            return
        for label, any_row in zip(self.labels, some, strict=True):
            if not any_row:
                raise DataError(f"column {self.column!r} has no row in group {label!r}.")


def _declared_codes(
    column: str,
    entry: CategoricalColumn,
    groups: tuple[str, ...] | None,
    membership: Membership,
) -> tuple[int | None, ...]:
    """Check the groups against the schema; return their codes."""
    if groups is None:
        raise ParameterError(
            "groups",
            f"must be given: column {column!r} has {len(entry.categories)} categories",
            remedy={"groups": ""},
        )
    categories = Categories.declared(entry.categories)
    by_label = [categories.code_of(label) for label in groups]
    codes = tuple(None if code in (UNKNOWN, MISSING) else code for code in by_label)
    for place, (code, label) in enumerate(zip(codes, groups, strict=True)):
        if code is None and (label != _REST or place < len(groups) - 1):
            raise ParameterError(f"group {label!r} is not a category of column {column!r}.")
    if len(set(codes)) < len(codes):
        raise ParameterError("groups must be different categories.")
    if codes[-1] is None and len(codes) > len(entry.categories):
        raise ParameterError(f"groups must leave a category to the {_REST}.")
    if membership == "private" and codes[-1] is not None and len(codes) < len(entry.categories):
        raise ParameterError(
            f"column {column!r} has other categories too: picking some of them would make the "
            f"number of rows private. Use groups {groups[0]} and {_REST}.",
            remedy={"membership": "public"},
        )
    return codes


def split_source(source: Source, grouping: Grouping) -> tuple[Source, ...]:
    """Return the rows of each group, without the group column; a group may be empty."""
    names = [name for name in source.names if name != grouping.column]
    sides = partial(_sides_of_batch, grouping=grouping)
    return source.partition(names, [grouping.column], sides, len(grouping.labels))


def _sides_of_batch(batch: Any, grouping: Grouping) -> NDArray[np.intp]:
    return grouping.sides_of(batch.column(0))


def _split_columns(frame: Any, names: tuple[str, ...], grouping: Grouping) -> tuple[Any, ...]:
    """Return these columns of a frame for each group; a group may be empty."""
    chosen = read_data(frame, "x").select((*names, grouping.column), "x")
    if isinstance(frame, Source):
        return split_source(frame.select((*names, grouping.column)), grouping)
    sides = grouping.sides_of(chosen.column(len(names)))
    values = {}
    for place, name in enumerate(names):
        values[name] = one_column(chosen.column(place), label_of(name, "x"))
        if len(values[name]) != len(sides):
            raise DataError(f"{label_of(name, 'x')} must be as long as the group column.")
    masks = [sides == place for place in range(len(grouping.labels))]
    return tuple({name: _filter(values[name], mask) for name in names} for mask in masks)


def _filter(column: Any, rows: NDArray[np.bool_]) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else column.filter(rows)


def check_person_rows_in_groups(frame: Any, grouping: Grouping, bounds: Any) -> Any:
    """Count rows per person in each group, for adjacency "both"; return bounds without ids."""
    who = bounds.id_column if isinstance(bounds, Schema) else None
    if who is None:
        return bounds
    return check_person_rows(bounds, _split_columns(frame, (who,), grouping), together=False)


# --- samples of a call ----------------------------------------------------------------------


class GroupOptions(TypedDict, total=False):
    """How one frame is split in samples."""

    group: str | None
    groups: Sequence[Category] | None
    columns: str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Which samples a test compares, in public terms; it holds no data.

    Attributes
    ----------
    adjacency : {"one", "both", "row"}
        What is hidden.
    count : int
        The number of samples.
    bounds : object
        Public bounds, as they were passed.
    grouping : Grouping or None
        How one frame is split; None for separate samples.
    columns : tuple of str or None
        The columns to compare; None for all columns that the frame has.
    """

    adjacency: Adjacency
    count: int
    bounds: Any
    grouping: Grouping | None = None
    columns: tuple[str, ...] | None = None

    def read(self, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Return the samples and the bounds of their columns; a frame is paid for and split."""
        grouping, bounds = self.grouping, self.bounds
        if grouping is None:
            return data, bounds
        frame = next(each for each in data if each is not None)
        if self.adjacency == "both":
            bounds = check_person_rows_in_groups(frame, grouping, bounds)
        else:
            bounds = check_person_rows(bounds, [frame])
        table = read_data(frame, "x")
        if table.names is None:
            raise DataError("x must have named columns: a data frame, a table or a mapping.")
        names = self.columns or tuple(name for name in table.names if name != grouping.column)
        if self.columns is None and len(names) != 1:
            raise ParameterError("columns must be given: the columns to compare.")
        if isinstance(bounds, Schema):
            bounds = bounds.select(names)
        elif isinstance(bounds, Mapping):
            bounds = {name: bounds[name] for name in names}
        samples = _split_columns(frame, names, grouping)
        first = [each if isinstance(each, Source) else each[names[0]] for each in samples]
        grouping.require_rows([len(rows) > 0 for rows in first])
        return samples, bounds


def resolve_samples(
    data: tuple[Any, ...],
    bounds: Any,
    adjacency: Adjacency | None,
    *,
    group: str | None,
    groups: Sequence[Category] | None,
    columns: str | Sequence[str] | None,
    several: bool = False,
    public_groups: str = "",
) -> SampleLayout:
    """Return which samples are compared and what is hidden; nothing is read, nothing is paid.

    Parameters
    ----------
    data : tuple
        Samples, or one frame where ``group`` names a column; None is left out.
    bounds : pair, (d, 2) array, mapping of names to pairs, Schema or None
        Public bounds; a schema describes the group column too.
    adjacency : {"one", "both", "row"} or None
        What is hidden. By default "one" for samples, whose sizes are what was passed. For a
        frame "row", or "one" where the schema says that membership is public.
    group, groups, columns
        The group column, its groups and the columns to compare, or None each.
    several : bool
        Whether there may be more than two groups.
    public_groups : str
        Why the test needs public group sizes, or "" if it can do without.
    """
    if adjacency is not None:
        one_of("adjacency", adjacency, ADJACENCIES)
    schema_of(bounds)  # refuses what no data could fit
    samples = tuple(each for each in data if each is not None)
    if group is None:
        if groups is not None or columns is not None:
            raise ParameterError("groups and columns need group, the column that splits a frame.")
        if len(samples) < len(data):
            raise ParameterError(
                "y must be given, the second sample; or group, the column of one frame that says "
                "which sample a row is in."
            )
        return SampleLayout(adjacency or "one", len(data), bounds)
    if len(samples) != 1:
        raise ParameterError("group splits one frame: pass it alone, without a second sample.")
    grouping = _grouping(group, groups, bounds, adjacency, several=several)
    adjacency = adjacency or ("row" if grouping.membership == "private" else "one")
    if adjacency == "row" and public_groups:
        raise ParameterError(
            f"groups are private unless you say otherwise, and here {public_groups}: "
            f'{_PUBLIC_GROUPS}, or membership = "public" in the schema; or use mmd_test, which '
            "hides the group too."
        )
    names = _compared_columns(grouping.column, columns, bounds)
    return SampleLayout(adjacency, len(grouping.labels), bounds, grouping, names)


def group_names(
    count: int, bounds: Any, adjacency: Adjacency | None, group: str | None, groups: Any
) -> list[str]:
    """Return names of the groups for a reader: their public labels in a frame, or numbers."""
    if group is None:
        return [f"group {place + 1}" for place in range(count)]
    return list(_grouping(group, groups, bounds, adjacency, several=True).labels)


def _grouping(
    group: str, groups: Any, bounds: Any, adjacency: Adjacency | None, *, several: bool
) -> Grouping:
    """Find the groups in what is public."""
    if not isinstance(group, str):
        reject("group", "the name of a column", group)
    if isinstance(groups, str) or not isinstance(groups, (Sequence, type(None))):
        reject("groups", "a list of values of the group column", groups)
    labels = None if groups is None else tuple(map(_label, groups))
    membership: Membership | None = None
    if adjacency is not None:
        membership = "private" if adjacency == "row" else "public"
    schema = bounds if isinstance(bounds, Schema) else None
    return Grouping.ask(group, schema, labels, membership, several=several)


def _label(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (str, bool, int, float)):
        raise ParameterError("groups must be text, numbers, or true and false.")
    return spelling(value)


def _compared_columns(group: str, columns: Any, bounds: Any) -> tuple[str, ...] | None:
    """Return the names of the columns to compare, or None if only the frame has them."""
    known = bounds.columns if isinstance(bounds, Schema) else bounds
    by_name = isinstance(known, Mapping)
    if columns is None and not by_name:
        return None
    names = (columns,) if isinstance(columns, str) else columns
    if names is None:
        names = [name for name in known if name != group]
    if not isinstance(names, Iterable):
        reject("columns", "a name or a list of names of columns", names)
    names = tuple(names)
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError("columns must name at least one column.")
    if len({*names, group}) <= len(names):
        raise ParameterError("columns must be different from each other and from the group.")
    unknown = next((name for name in names if by_name and name not in known), None)
    if unknown is not None:
        raise ParameterError(
            f"columns must be among those that bounds describe ({listed(known)}): {unknown!r} is "
            "not."
        )
    return names


# --- where rows are -------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A file, a folder, a pattern, an address or a database, and how its rows are read.

    Small data is read into memory, as tests are quickest there. What is larger, or has an engine
    of its own, is read as it passes. Which of them it is depends on public sizes only.

    Attributes
    ----------
    text : str
        A path, a pattern, or an address.
    table, query : str or None
        What is read of a database.
    workers : EngineConfig or None
        Who reads, if somebody said so.
    """

    text: str
    table: str | None = None
    query: str | None = None
    workers: EngineConfig | None = None

    def __str__(self) -> str:
        """Return the place without a password."""
        if not self.is_database:
            return self.text
        parts = urlsplit(self.text)
        host = parts.netloc.rpartition("@")[2]
        what = f"#{self.table}" if self.table else ""
        return f"{parts.scheme}://{host}{parts.path}{what}"

    @property
    def is_database(self) -> bool:
        """Whether it is the address of a database."""
        return self.text.partition("://")[0] in ("postgresql", "postgres", "sqlite")

    @property
    def path(self) -> Path:
        """The place as a path."""
        return Path(self.text)

    @property
    def name(self) -> str:
        """The default name in the ledger: that of a table, a file or a folder."""
        if self.is_database:
            if self.table is None:
                raise ParameterError("--dataset must be given for a query: its name in the ledger.")
            return self.table.rpartition(".")[2]
        parts = [part for part in self.text.replace("\\", "/").split("/") if part]
        while len(parts) > 1 and re.search(r"[*?\[]", parts[-1]):
            parts.pop()
        return re.split(r"[*?\[]", parts[-1])[0] if parts else ""

    def exists(self) -> bool:
        """Whether it is a file or a folder of this machine."""
        return not self.is_database and self.path.exists()

    def same(self, other: Place | Path) -> bool:
        """Whether both are one."""
        if isinstance(other, Place) and (self.is_database or other.is_database):
            return self == other
        path = other.path if isinstance(other, Place) else other
        return self.exists() and path.exists() and self.path.samefile(path)

    # --- what is public

    def check(self, names: Sequence[str]) -> None:
        """Refuse what can be refused without reading rows: no such file, column or database."""
        from privatest.data.files import check_columns  # noqa: PLC0415

        if self._is_single_file(names):
            check_columns(self.path, names)
        else:
            read_data(self.source, "data").select(tuple(names), "")

    def check_types(self, described: Schema | None) -> None:
        """Refuse columns whose types do not fit: they are public, and CSV has none."""
        from privatest.data.files import read_schema  # noqa: PLC0415

        if described is None:
            return
        names = list(described.columns)
        if self._is_single_file(names):
            if self.path.suffix == ".parquet":
                described.encode(read_schema(self.path).empty_table().select(names))
        elif self.source.parts[0].typed:
            first = next(self.source.select(names).tables(0, 1, names))
            described.encode(first.slice(0, 0))

    def count(self, names: Sequence[str]) -> int:
        """Return the public number of rows; values do not matter."""
        from privatest.data.files import read_table  # noqa: PLC0415

        if self._is_single_file(names):
            return int(read_table(self.path, names[:1], text=names[:1]).num_rows)
        return len(self.source)

    def schema(self) -> pa.Schema:
        """Return names and types of the columns; those of CSV are guessed from its beginning."""
        from privatest.data.files import read_schema  # noqa: PLC0415

        return read_schema(self.path) if self._is_single_file([""]) else self.source.schema()

    @cached_property
    def source(self) -> Source:
        """The rows, opened once: what was counted is what will be read."""
        from privatest.data.databases import scan_sql  # noqa: PLC0415
        from privatest.data.files import scan  # noqa: PLC0415

        workers = self.workers or EngineConfig()
        options: dict[str, Any] = {"engine": workers.engine, "threads": workers.threads}
        options["scheduler"] = workers.scheduler
        if self.is_database:
            source = scan_sql(self.text, table=self.table, query=self.query, **options)
        else:
            source = replace(scan(self.text, **options), named=True)  # x1, x2, ... of an array
        if not len(source):
            raise DataError("the data has no rows.")
        return source

    # --- rows

    def read(
        self, names: Sequence[str], text: Sequence[str] = (), *, registered: bool = False
    ) -> pa.Table | Source:
        """Return the rows in memory, or a source of them where they are many.

        ``registered`` is whether these contents were read and checked before.
        """
        from privatest.data.files import read_table  # noqa: PLC0415

        if self._is_single_file(names):
            return read_table(self.path, names, text=text, registered=registered)
        source = self.source.select(names).as_text(text)
        return source if self.passes(names) else source.load()

    def passes(self, names: Sequence[str]) -> bool:
        """Whether rows are read as they pass, and not into memory."""
        if self._is_single_file(names):
            return False
        return self.workers is not None or len(self.source) * len(names) > MOST_HELD

    def _is_single_file(self, names: Sequence[str]) -> bool:
        """Whether this is one file, to be read into memory at once."""
        name = self.path.name.lower()
        if self.workers is not None or "://" in self.text or self.path.is_dir():
            return False
        if not self.path.exists():  # a pattern, or a mistake that reading reports
            return not re.search(r"[*?\[]", self.text) and name.endswith(_SINGLE_FILES)
        if not name.endswith(_SINGLE_FILES):
            return False
        if not name.endswith(".parquet"):
            return self.path.stat().st_size <= _MOST_BYTES
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            return bool(pq.read_metadata(self.path).num_rows * len(names) <= MOST_HELD)
        except (pa.ArrowException, OSError):
            return True  # reading it says what is wrong
