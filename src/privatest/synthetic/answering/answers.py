"""Questions in words of a release's columns: checked first, then answered.

A release that keeps what was measured is asked through it (:mod:`functionals`); others, made by
hand or transformed, through their weights and draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number
from privatest.data.schema import CategoricalColumn, NumericColumn
from privatest.synthetic.answering import asking, moments_asked
from privatest.synthetic.answering.asking import Question, Source
from privatest.synthetic.answering.conditions import (
    column_values,
    known_jumps,
    number_column,
    selected,
)
from privatest.synthetic.answering.estimates import (
    Estimate,
    Weighting,
    check_total,
    mean_estimate,
    quantile_estimate,
    root_mean_square,
)
from privatest.synthetic.answering.functionals import Found

if TYPE_CHECKING:
    from privatest.synthetic.data import SyntheticData

__all__ = ["Words", "by", "correlation", "groups", "mean", "probability", "quantile", "regression"]

_MOST_GROUPS = 60
_UNKNOWN = "the function could not be computed for other rows than the synthetic ones"

Columns = Mapping[str, NDArray[Any]]
Words = str | Callable[[Columns], Any]


def mean(release: SyntheticData, what: Words, where: Words | None) -> Estimate:
    """Answer :meth:`SyntheticData.mean`."""
    asked = _question(release, _numeric(release, what), where, what)
    return _mean(release, asked, _bounds(release, what))


def probability(release: SyntheticData, region: Words, where: Words | None) -> Estimate:
    """Answer :meth:`SyntheticData.probability`."""
    asked = _question(release, _condition(release, region), where, region)
    return _mean(release, replace(asked, reach=(0.0, 1.0)), (0.0, 1.0))


def _mean(release: SyntheticData, asked: Question, reach: tuple[float, float] | None) -> Estimate:
    source = release.source
    if source is None and asked.where is None:
        return _weighted(release, asked)
    try:
        return asking.mean(source or _drawn(release), replace(asked, reach=reach))
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        found = _weighted(release.nonnegative(), asked)
        return Estimate(found.value, math.nan, sampling=found.sampling, reason=_UNKNOWN)


def _weighted(release: SyntheticData, asked: Question) -> Estimate:
    """Return a mean with the bar of draws, for a release that keeps nothing else."""
    values = _one_each(asked.function(release.columns), release, "the function")
    check_total(release.weights)
    reach = None if asked.reach is None else asked.reach[1] - asked.reach[0]
    return mean_estimate(values, release.weighting, release.before, reach)


def quantile(release: SyntheticData, column: str, q: float, where: Words | None) -> Estimate:
    """Answer :meth:`SyntheticData.quantile`."""
    q = number("q", q, at_least=0)
    if q > 1:
        raise ParameterError("q must be between 0 and 1.")
    function = _numeric(release, column)
    values = _one_each(function(release.columns), release, f"column {column!r}")
    source = release.source
    if source is None and where is None:
        check_total(release.weights)
        step = 0.0 if release.columns[column].dtype.kind == "f" else 1.0
        return quantile_estimate(values, q, release.weighting, release.before, step)
    asked = _question(release, function, where)
    return asking.quantile(source or _drawn(release), column, q, asked, _bounds(release, column))


def by(
    release: SyntheticData, column: str, what: Words, where: Words | None
) -> dict[str, Estimate]:
    """Answer :meth:`SyntheticData.by`."""
    parts = [(str(value), _is(column, value)) for value in groups(release, column)]
    reach: tuple[float, float] | None = (0.0, 1.0)
    if isinstance(what, str) and what not in release.columns:
        function = _condition(release, what)
    else:
        function, reach = _numeric(release, what), _bounds(release, what)
    asked = replace(_question(release, function, where, what), reach=reach)
    return asking.grouped(release.source or _drawn(release), parts, asked)


def correlation(release: SyntheticData, a: str, b: str, where: Words | None) -> Estimate:
    """Answer :meth:`SyntheticData.correlation`."""
    for name in (a, b):
        number_column(name, release.columns)
    pair = _numeric(release, a), _numeric(release, b)
    asked = _question(release, pair[0], where)
    return moments_asked.correlation(release.source or _drawn(release), pair, asked)


def regression(
    release: SyntheticData, target: str, predictors: Sequence[str], where: Words | None
) -> dict[str, Estimate]:
    """Answer :meth:`SyntheticData.regression`."""
    number_column(target, release.columns)
    if isinstance(predictors, str) or not len(predictors):
        raise ParameterError("predictors must be a list of at least one column.")
    parts: dict[str, Callable[[Columns], Any]] = {}
    for name in predictors:
        values = column_values(name, release.columns)
        if name == target or name in parts:
            raise ParameterError(f"column {name!r} must be used only once in a regression.")
        if values.dtype.kind in "biuf":
            parts[name] = _numeric(release, name)
            continue
        for value in groups(release, name)[1:]:
            parts[f"{name} == {value}"] = _is(name, value)
    asked = _question(release, _numeric(release, target), where)
    source = release.source or _drawn(release)
    return moments_asked.regression(source, asked.function, parts, asked)


def _is(name: str, value: Any) -> Callable[[Columns], Any]:
    return lambda columns: columns[name] == value


def _question(
    release: SyntheticData,
    function: Callable[[Columns], Any],
    where: Words | None,
    *more: Words,
) -> Question:
    condition = None if where is None else _condition(release, where)
    marks: dict[str, list[float]] | None = {}
    for words in (*more, where):
        jumps = {} if words is None else known_jumps(words, release.columns)
        if jumps is None or marks is None:
            marks = None
            continue
        for name, numbers in jumps.items():
            marks.setdefault(name, []).extend(numbers)
    schema = release.facts.schema
    people = release.facts.n / (1 if schema is None else schema.rows_per_person)
    return Question(function, condition, marks, people)


def _numeric(release: SyntheticData, what: Words) -> Callable[[Columns], Any]:
    """Return a column, or a function that was given, after a look at the released rows."""
    if callable(what):
        _one_each(what(release.columns), release, "the function")
        return what
    _one_each(column_values(what, release.columns), release, f"column {what!r}")
    return lambda columns: columns[what]


def _condition(release: SyntheticData, region: Words) -> Callable[[Columns], Any]:
    if callable(region):
        _one_each(region(release.columns), release, "region")
        return region
    selected(region, release.columns)
    return lambda columns: selected(region, columns)


def _one_each(values: Any, release: SyntheticData, name: str) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.ndim == 0:
        array = np.broadcast_to(array, (len(release),))
    if array.shape != (len(release),) or array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} must give one number for each synthetic row.")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must give finite numbers.")
    return array


def _bounds(release: SyntheticData, what: Words) -> tuple[float, float] | None:
    schema = release.facts.schema
    if schema is None or not isinstance(what, str):
        return None
    column = schema.columns.get(what)
    return (column.lower, column.upper) if isinstance(column, NumericColumn) else None


def groups(release: SyntheticData, name: str) -> list[Any]:
    """Return the values of a column that makes groups, from the schema if there is one."""
    values = column_values(name, release.columns)
    schema = release.facts.schema
    column = None if schema is None else schema.columns[name]
    if isinstance(column, CategoricalColumn):
        found = list(column.categories)
    elif isinstance(column, NumericColumn) and not column.integer:
        found = []
    elif isinstance(column, NumericColumn) and column.upper - column.lower < _MOST_GROUPS:
        found = [*range(int(column.lower), int(column.upper) + 1)]
    else:
        found = np.unique(values.astype(str) if values.dtype.kind == "O" else values).tolist()
    if not 0 < len(found) <= _MOST_GROUPS:
        raise ParameterError(
            f"column {name!r} does not make groups: it must have categories or at most "
            f"{_MOST_GROUPS} integers."
        )
    return found


# --- releases that keep only weights and draws ---------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Means by weights, with the bars of draws."""

    columns: Columns
    used: Weighting
    before: Weighting | None
    finest: str = ""
    unmeasured: str = ""
    additive: bool = False

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights that add up to 1."""
        weights: NDArray[np.float64] = self.used.weights / self.used.weights.sum()
        return weights

    def means(self, function: Any, marks: Any = None) -> Found:
        """Estimate the means of a function's columns, or of several functions."""
        del marks
        count = len(self.used.weights)
        each = [np.asarray(part(self.columns), dtype=np.float64) for part in _listed(function)]
        values = np.hstack(
            [
                np.broadcast_to(part.T, (*part.T.shape[:-1], count)).T.reshape(count, -1)
                for part in each
            ]
        )
        found = [mean_estimate(column, self.used, self.before) for column in values.T]
        centre = np.array([each.value for each in found])
        moved = (values - centre).T @ self.used.draws / self.used.weights.sum()
        errors = np.array([each.error for each in found])
        spreads = np.array([root_mean_square(each) for each in (values - centre).T])
        return Found(centre, errors, errors, np.zeros_like(errors), moved.T, spreads, centre)

    def edges(self, column: str, where: Any = None) -> NDArray[np.float64]:
        """Return no numbers: nothing was counted up to any."""
        del column, where
        return np.empty(0)


def _listed(function: Any) -> list[Callable[[Columns], Any]]:
    return [function] if callable(function) else [*function]


def _drawn(release: SyntheticData) -> Source:
    check_total(release.weights)
    return _Drawn(release.columns, release.weighting, release.before)
