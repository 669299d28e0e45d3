"""Categorical columns as counts in public cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import of_type
from privatest.data.categories import Category, spelling
from privatest.data.samples import Sample, beside, encode_sample
from privatest.data.schema import CategoricalColumn, Schema
from privatest.data.tables import read_data
from privatest.engines.sums import counts_of

__all__ = ["cell_counts", "read_category", "spelled"]

_WHY = "categories found from the data would leak it"


def read_category(
    data: object, categories: Sequence[Category] | None, bounds: Any, name: str, side: str = ""
) -> tuple[Sample, tuple[Category, ...]]:
    """Read one categorical column; return it as codes, and its public categories.

    Parameters
    ----------
    data : array, series or table of one column
        The column.
    categories : sequence, optional
        The public categories, in order.
    bounds : Schema, optional
        A schema of one categorical column, instead.
    name : str
        What messages call the data.
    side : str
        How the parameters ``categories`` and ``bounds`` end: "_x", or "".
    """
    if (categories is None) == (bounds is None):
        raise ParameterError(
            f"categories{side} must be given, the public list of categories; or bounds{side}, a "
            f"Schema that has them: {_WHY}."
        )
    schema = bounds
    if categories is not None:
        column = _described(categories, side)
        names = read_data(data, name).names or (name,)
        if len(names) > 1:
            raise DataError(f"{name} must be one column.")
        schema = Schema({names[0]: column})
    if not isinstance(schema, Schema) or schema.domain.levels[0] == 0 or len(schema.columns) > 1:
        raise ParameterError(f"bounds{side} must be a Schema of one categorical column.")
    (described,) = schema.columns.values()
    assert isinstance(described, CategoricalColumn)
    return encode_sample(data, schema, name), described.categories


def _described(categories: Sequence[Category], side: str) -> CategoricalColumn:
    """Return the column; a refusal names the parameter."""
    if of_type(categories, str) or not of_type(categories, Iterable):
        raise ParameterError(f"categories{side} must be a list of all possible values.")
    try:
        return CategoricalColumn(tuple(categories))
    except ParameterError as error:
        error.rename({"categories": f"categories{side}"})
        raise


def cell_counts(columns: Sequence[Sample], levels: Sequence[int]) -> NDArray[np.int64]:
    """Count the rows in each cell of the table of some columns.

    A replaced row leaves one cell and enters another: the counts move by 2 in the l1 norm and by
    sqrt(2) in the l2 norm. Proof: docs/proofs/counts.md.
    """
    shape = tuple(levels)
    cells_of = partial(_cells, shape)
    (found,) = counts_of(beside(*columns), cells_of=cells_of, size=math.prod(shape))
    return found.reshape(shape)


def _cells(shape: tuple[int, ...], rows: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.asarray(np.ravel_multi_index(tuple(rows.astype(np.intp).T), shape))


def spelled(categories: Sequence[Category]) -> tuple[str, ...]:
    """Return categories as text, for results."""
    return tuple(map(spelling, categories))
