"""Which rows are a success: a public rule, never found from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.data.bounds import Bounds
from privatest.data.categories import MISSING, UNKNOWN, Categories, Category, spelling
from privatest.data.columns import category_blocks, one_column, refuse_missing
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample, encode_sample
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.data.source import Source
from privatest.data.stream import Held, Stream
from privatest.data.tables import read_data
from privatest.statistics.outcomes import Rule, success_counts

__all__ = ["Outcomes", "check_success", "count_successes", "person_of", "read_outcomes"]

_WORDS = {"true": 1.0, "false": 0.0}
_TRUE = ("1", "true")  # what a success is where nobody says


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Rows of one column, and the public rule that says which are a success."""

    sample: Sample
    won: Rule

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.sample)

    @property
    def rows_per_person(self) -> int:
        """The most rows that one person has, as declared."""
        return self.sample.rows_per_person

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the column is called."""
        return self.sample.names


def person_of(groups: Sequence[Outcomes]) -> int:
    """Return the most rows that one person has in all groups together."""
    return rows_of_a_person(*(group.sample for group in groups))


def count_successes(groups: Sequence[Outcomes]) -> list[int]:
    """Return the number of successes of each group: the one pass over rows."""
    return success_counts(*((group.sample, group.won) for group in groups))


def read_outcomes(data: Any, bounds: Bounds, success: Category | None, name: str) -> Outcomes:
    """Read one column; ``name`` is what messages call it.

    Parameters
    ----------
    data : array, series or table of one column
        0 and 1, true and false, or categories.
    bounds : None, pair, mapping or Schema
        Description of the column.
    success : category or None
        What counts as a success; everything else is a failure. None is 1 or true.
    """
    if success is not None and not isinstance(success, (str, bool, int, float)):
        raise ParameterError("success must be a category: text, a number, true or false.")
    if bounds is None and success is not None:
        return Outcomes(Sample(_labelled(data, success, name), None), partial(_equals, 1.0))
    sample = encode_sample(data, bounds, name, units="own")
    if sample.width != 1:
        raise DataError(f"{name} must be one column.")
    column = None if sample.schema is None else next(iter(sample.schema.columns.values()))
    if isinstance(column, CategoricalColumn):
        return Outcomes(sample, partial(_equals, float(_code(column, success))))
    if success is None:
        return Outcomes(sample, partial(_is_one, name))
    return Outcomes(sample, partial(_equals, _number(success)))


def _equals(value: float, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(rows[:, 0] == value)


def _is_one(name: str, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    won: NDArray[np.bool_] = rows[:, 0] == 1
    if not (won | (rows[:, 0] == 0)).all():
        raise DataError(f"{name} must hold 0 and 1; or name the value that is a success.")
    return won


def check_success(schema: Schema, success: Category | None) -> None:
    """Refuse a success that the column cannot have; nothing is read."""
    for column in schema.columns.values():
        if isinstance(column, CategoricalColumn):
            _code(column, success)
        elif success is not None:
            _possible(column, _number(success))
        elif (column.lower, column.upper) != (0, 1) or not column.integer:
            # any other column may hold a value that is neither, and failing would tell of it
            raise ParameterError(
                "success must be given: only integers between 0 and 1 have an obvious one."
            )


def _labelled(data: Any, success: Category, name: str) -> Held:
    """Return 1 for a success and 0 for all else, of a column that nobody has described."""
    table = read_data(data, name)
    if table.width != 1:
        raise DataError(f"{name} must be one column.")
    if isinstance(data, Source):
        return Stream(data, partial(_write_labels, success=success, name=name), 1)
    return _encoded_labels(data, success, name)


def _write_labels(batch: Any, out: NDArray[np.float64], success: Category, name: str) -> None:
    out[:] = _encoded_labels(batch, success, name)


def _encoded_labels(data: Any, success: Category, name: str) -> NDArray[np.float64]:
    column = one_column(read_data(data, name).column(0), name)
    labels = Categories.labelled([spelling(success)])
    codes = np.concatenate([np.empty(0, np.intp), *category_blocks(column, labels, name)])
    if (codes == MISSING).any():
        refuse_missing(name)
    return np.asarray(codes == 0, dtype=np.float64)[:, None]


def _code(column: CategoricalColumn, success: Category | None) -> int:
    categories = Categories.declared(column.categories)
    if success is None:
        known = [categories.codes[word] for word in _TRUE if word in categories.codes]
        if len(known) != 1:
            raise ParameterError("success must be given: which category is a success?")
        return known[0]
    code = categories.code_of(success)
    if code in (UNKNOWN, MISSING):
        raise ParameterError("success must be one of the declared categories.")
    return code


def _number(success: Category) -> float:
    if isinstance(success, str) and success.lower() in _WORDS:  # of a column of true and false
        return _WORDS[success.lower()]
    try:
        return float(success)
    except ValueError:
        raise ParameterError("success must be a number, as the column is numeric.") from None


def _possible(column: NumericColumn, value: float) -> None:
    if not column.lower <= value <= column.upper:
        raise ParameterError("success must be within the bounds of the column.")
