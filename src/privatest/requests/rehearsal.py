"""Rehearsals: requests run on made-up rows before they are paid for.

A failure on made-up rows reveals nothing about people, so it costs nothing. A request that passes
here and fails on the data fails because of people's values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import PrivatestError
from privatest.data.schema import NumericColumn, Schema, spelling
from privatest.data.sources import Part, Source
from privatest.requests.request import PreparedEach

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.requests.request import Prepared

_FEW = 200  # rows of a sample in the first, quick rehearsal


def made_up_rows(
    names: Iterable[str],
    schema: Schema | None,
    n: int,
    labels: Mapping[str, Sequence[str] | NDArray[Any]] | None = None,
) -> pa.Table:
    """Return made-up rows, uniform over the schema's domain.

    Parameters
    ----------
    names : iterable of str
        The columns.
    schema : Schema or None
        Their public description; a column that it does not have gets numbers.
    n : int
        The number of rows.
    labels : mapping, optional
        Columns whose values are given: public categories in public numbers.

    Notes
    -----
    The seed is fixed, so that a failure can be repeated.
    """
    import pyarrow as pa  # noqa: PLC0415

    rng = np.random.default_rng(0)
    described = {} if schema is None else schema.columns
    given = labels or {}
    columns: dict[str, Any] = {}
    for name in names:
        column = described.get(name)
        if name in given:
            columns[name] = pa.array(given[name])
        elif column is None:
            columns[name] = rng.uniform(size=n)
        elif isinstance(column, NumericColumn):
            share = rng.uniform(size=n)  # not between the bounds at once: their width may overflow
            values = column.lower * (1 - share) + column.upper * share
            columns[name] = np.round(values) if column.integer else values
        else:
            spelled = np.array([spelling(category) for category in column.categories])
            columns[name] = pa.array(spelled[rng.integers(len(spelled), size=n)])
    return pa.table(columns)


def rehearse(prepared: Prepared, sizes: Sequence[int]) -> None:
    """Run a request on made-up rows of public sizes.

    Parameters
    ----------
    prepared : Prepared
        The request.
    sizes : sequence of int
        Rows of each table; or of the two groups of one table, where it is split. Private
        groups have no public sizes: pass halves of the total.
    """
    quick = prepared if prepared.quick is None else prepared.quick(*sizes)
    rehearse_call(lambda *few: quick.run(*_tables(quick, few)), sizes)


def rehearse_call(call: Callable[..., object], sizes: Sequence[int]) -> None:
    """Call with small sizes, and if that fails with the true ones."""
    few = [min(size, _FEW) for size in sizes]
    with quiet():
        try:
            call(*few)
        except PrivatestError:
            if few == list(sizes):
                raise
            call(*sizes)


def rehearse_sizes(prepared: Prepared, sizes: Sequence[int]) -> None:
    """Refuse a test that needs more rows in memory than fit.

    It runs on sources of these sizes that raise :class:`_Reached` when they are read row by row.
    """
    if isinstance(prepared, PreparedEach):
        for each in prepared.columns.values():
            rehearse_sizes(each, sizes)
        return
    names = [name for name in prepared.names if not _splits(prepared, name)]
    sources = tuple(Source(tuple(names), (_Unreadable(size),)) for size in sizes)
    if prepared.grouping is not None:
        prepared = replace(prepared, call=lambda _: sources)
    with quiet(), suppress(_Reached):
        prepared = replace(prepared, filters={}, names=names)
        prepared.run(*sources[: 1 if prepared.grouping is not None else None])


def _splits(prepared: Prepared, name: str) -> bool:
    return prepared.grouping is not None and name == prepared.grouping.column


class _Reached(PrivatestError):
    """Rows are about to be read."""


@dataclass(frozen=True, slots=True)
class _Unreadable(Part):
    """Rows that cannot be read."""

    rows: int
    label: str = "a rehearsal"
    travels: ClassVar[bool] = False

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Raise _Reached."""
        del columns
        raise _Reached


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings, as they may quote values and depend on values."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _tables(prepared: Prepared, sizes: Sequence[int]) -> list[pa.Table]:
    if prepared.grouping is None:
        return [made_up_rows(prepared.names, prepared.schema, size) for size in sizes]
    labels = np.repeat(prepared.grouping.examples, sizes)
    fixed = {prepared.grouping.column: labels}
    return [made_up_rows(prepared.names, prepared.schema, len(labels), fixed)]
