"""A private synthetic database, and what anyone may compute from it at no further cost."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.results import Outcome, Shown, declare_level, html_table
from privatest.core.text import EstimateTable
from privatest.core.validation import (
    Rng,
    integer_at_least,
    listed,
    number,
    printable,
    public_generator,
)
from privatest.data.encoding import encode_sample
from privatest.data.schema import CategoricalColumn, Domain, NumericColumn
from privatest.numerics.kernels import Kernel
from privatest.synthetic import testing
from privatest.synthetic.answers import (
    Columns,
    Estimand,
    Estimate,
    Facts,
    Floats,
    Function,
    Interval,
    MeanSource,
    Progress,
    WeightedRows,
    Weighting,
    check_total,
    estimate_correlation,
    estimate_groups,
    estimate_mean,
    estimate_quantile,
    estimate_regression,
    mean_estimate,
    quantile_estimate,
)
from privatest.synthetic.embedding import (
    Coefficients,
    EmbeddingMeans,
    distance,
    nonnegative_weights,
    span,
)
from privatest.synthetic.queries import (
    Expression,
    column_values,
    known_jumps,
    number_column,
    selected,
)
from privatest.synthetic.table_means import AtomMeans, TableMeans
from privatest.synthetic.tables import Measurement

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_FITTED_DRAWS = 32  # each takes an optimisation
_MOST_GROUPS = 60
_DISPLAYED_ROWS = 5  # in a notebook
_FAILED = "the function could not be computed for other rows than the synthetic ones"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticData(Shown):
    """Weighted synthetic rows that represent private ones.

    Everything in it was paid for when it was released: it may be published, kept and queried
    without limit. Estimates are weighted means over the rows; each has an error bar
    (see :class:`Estimate` for what the bar covers).

    Attributes
    ----------
    columns : mapping of str to ndarray
        The rows by column, in the units and categories of the schema.
    weights : ndarray
        One for each row; they may be negative unless requested otherwise.
    draws : ndarray
        Rows × draws: simulated weights, for the error bars.
    facts : Facts
        What is public about the release.
    before : Weighting or None
        The signed weights of these rows that are nearest to what was released, if ``weights``
        satisfy a constraint: the distance between the two shows how well the rows can represent
        the data.
    coefficients : Coefficients or None
        What was measured, with noise of known size: estimates and their bars come from it.
    measured : tuple of Measurement
        Noisy tables: those that the rows were fitted to, if the method is "tables"; for
        "subspace" counts at the schema's atoms.
    """

    columns: Columns
    weights: Floats
    draws: Floats
    facts: Facts
    before: Weighting | None = None
    coefficients: Coefficients | None = None
    measured: tuple[Measurement, ...] = ()
    _cache: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse inconsistent parts, and freeze them."""
        own, before = Weighting(self.weights, self.draws), self.before
        lengths = {len(values) for values in self.columns.values()}
        same = before is None or (before.fits and len(before.weights) == len(own.weights))
        if lengths != {len(own.weights)} or not own.fits or not same:
            raise DataError(
                "columns, weights and draws must have the same length, and finite weights."
            )
        object.__setattr__(self, "weights", own.weights)
        object.__setattr__(self, "draws", own.draws)
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Allow pickling, which a mapping proxy does not."""
        parts = (dict(self.columns), self.weights, self.draws, self.facts, self.before)
        return type(self), (*parts, self.coefficients, self.measured)

    def __len__(self) -> int:
        """Return the number of synthetic rows."""
        return len(self.weights)

    def __repr__(self) -> str:
        """Name the columns, the size and the cost."""
        return f"SyntheticData({len(self)} rows of {listed(self.columns)}; {self.facts.spent})"

    def __str__(self) -> str:
        """Print size, columns and the guarantee."""
        ((label, columns),) = self.estimate_table().rows
        return "\n".join([self.heading, f"  {label:<9} {columns}", self.facts.guarantee])

    def _repr_html_(self) -> str:
        """Show the first rows with their weights, and the guarantee."""

        def text(value: Any) -> str:
            return f"{value:.6g}" if isinstance(value, float) else printable(str(value))

        columns = {**self.columns, self.weight_name: self.weights}
        first = [
            (str(row + 1), *(text(values[row]) for values in columns.values()))
            for row in range(min(len(self), _DISPLAYED_ROWS))
        ]
        table = html_table([("", *map(printable, columns)), *first], self.heading)
        return f"{table}<p>{html.escape(self.guarantee)}</p>"

    def estimate_table(self) -> EstimateTable:
        """Return the names of the columns, for a reader."""
        return EstimateTable(self.heading, (("columns", listed(self.columns)),))

    @property
    def heading(self) -> str:
        """How many rows there are, and how they were made."""
        facts = self.facts
        return f"{len(self):,} synthetic rows for {facts.n:,} private ones: {facts.method}"

    @property
    def spent(self) -> Budget:
        """What the release cost."""
        return self.facts.spent

    @property
    def simulated(self) -> bool:
        """Whether the noise was not secret."""
        return self.facts.simulated

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        return self.facts.guarantee

    @property
    def points(self) -> NDArray[Any]:
        """The rows as an array: of floats, or of objects if there is text."""
        numeric = all(values.dtype.kind in "biuf" for values in self.columns.values())
        dtype = np.float64 if numeric else object
        return np.column_stack([values.astype(dtype) for values in self.columns.values()])

    # --- estimates: post-processing, which costs nothing -----------------------------------------

    def mean(self, what: Expression, *, where: Expression | None = None) -> Estimate:
        """Estimate the mean of a column, or of a function of the columns.

        Parameters
        ----------
        what : str or callable
            A numeric column; or a function that takes the columns (a mapping of names to
            arrays) and returns a number for each row. It is also called with rows around the
            synthetic ones, to find out how much is left open there.
        where : str or callable, optional
            A condition, as in :meth:`probability`: the mean of the rows that satisfy it.

        Notes
        -----
        Functions as smooth as the kernel are estimated best.
        """
        estimand = self._estimand(self._numeric(what), what, where=where)
        return self._mean(replace(estimand, bounds=self._bounds(what)), None)

    def probability(self, region: Expression, *, where: Expression | None = None) -> Estimate:
        """Estimate the probability of a region.

        Parameters
        ----------
        region : str or callable
            A condition such as ``"visits > 10 and idp == 1"``, with the grammar of
            :func:`privatest.synthetic.queries.selected`, or a function of the columns
            that returns true or false for each row.
        where : str or callable, optional
            Another condition: the share among the rows that satisfy it.

        Notes
        -----
        A condition on a number that may be anywhere has limits instead of a bar: the release
        does not tell on which side of it people near it are.
        """
        estimand = self._estimand(self._condition(region), region, where=where)
        return self._mean(replace(estimand, bounds=(0.0, 1.0)), 1.0)

    def quantile(self, column: str, q: float, *, where: Expression | None = None) -> Estimate:
        """Estimate the ``q`` quantile of a column, of all rows or of those in ``where``."""
        q = number("q", q, at_least=0)
        if q > 1:
            raise ParameterError("q must be between 0 and 1.")
        function = self._numeric(column)
        values = self._one_each(function(self.columns), f"column {column!r}")
        if self.source is None and where is None:
            check_total(self.weights)
            step = 0.0 if self.columns[column].dtype.kind == "f" else 1.0
            return quantile_estimate(values, q, self.weighting, self.before, step)
        estimand = replace(self._estimand(function, where=where), bounds=self._bounds(column))
        return estimate_quantile(self._source(), column, q, estimand)

    def by(
        self, column: str, what: Expression, *, where: Expression | None = None
    ) -> dict[str, Estimate]:
        """Estimate a mean, or the probability of a condition, in every group of a column.

        Bars hold for all groups together: with probability .95 no group's own value is more
        than 1.96 errors away, or outside its limits.

        Parameters
        ----------
        column : str
            Categories, or integers with few values.
        what : str or callable
            A numeric column, a condition, or a function of the columns.
        where : str or callable, optional
            Only rows that satisfy this.
        """
        groups = {str(value): _equals(column, value) for value in self.groups(column)}
        bounds: Interval | None = (0.0, 1.0)
        if isinstance(what, str) and what not in self.columns:
            function = self._condition(what)
        else:
            function, bounds = self._numeric(what), self._bounds(what)
        estimand = replace(self._estimand(function, what, where=where), bounds=bounds)
        return estimate_groups(self._source(), groups, estimand)

    def correlation(self, a: str, b: str, *, where: Expression | None = None) -> Estimate:
        """Estimate the correlation of two numeric columns."""
        for name in (a, b):
            number_column(name, self.columns)
        pair = self._numeric(a), self._numeric(b)
        return estimate_correlation(self._source(), pair, self._estimand(pair[0], where=where))

    def regression(
        self, target: str, predictors: Sequence[str], *, where: Expression | None = None
    ) -> dict[str, Estimate]:
        """Estimate the coefficients of a least-squares regression, the intercept first.

        A predictor with categories has a coefficient for each but the first.
        """
        number_column(target, self.columns)
        if isinstance(predictors, str) or not len(predictors):
            raise ParameterError("predictors must be a list of at least one column.")
        parts: dict[str, Function] = {}
        for name in predictors:
            values = column_values(name, self.columns)
            if name == target or name in parts:
                raise ParameterError(f"column {name!r} must be used only once in a regression.")
            if values.dtype.kind in "biuf":
                parts[name] = self._numeric(name)
                continue
            for value in self.groups(name)[1:]:
                parts[f"{name} == {value}"] = _equals(name, value)
        estimand = self._estimand(self._numeric(target), where=where)
        return estimate_regression(self._source(), parts, estimand)

    @declare_level("measured")
    def test(
        self,
        what: Expression,
        *,
        equals: float | None = None,
        independent_of: str | None = None,
        where: Expression | None = None,
        alpha: float = 0.05,
        n_bootstrap: int = 999,
        rng: Rng = None,
    ) -> Outcome:
        """Test a hypothesis about the population, by what was measured and not by synthetic rows.

        Parameters
        ----------
        what : str or callable
            A condition, for its share, or a numeric column or function, for its mean
            (``equals``); or a column that was measured together with ``independent_of``.
        equals : float, optional
            The hypothesis about the share or the mean.
        independent_of : str, optional
            The other column.
        where : str or callable, optional
            With ``equals``: only rows that satisfy this.
        alpha, n_bootstrap, rng
            The level; draws of the null law of independence, and their public randomness.

        Notes
        -----
        **Validity** A share is binomial, plus the noise; a mean is taken to be normal
        (docs/proofs/synthetic.md).
        """
        if (equals is None) == (independent_of is None):
            raise ParameterError("give either equals or independent_of.")
        if equals is not None:
            return testing.value_outcome(self, what, equals, where, alpha)
        if where is not None or callable(what):
            raise ParameterError("independent_of takes two columns, and no where.")
        return testing.independence_outcome(
            self, what, str(independent_of), alpha, n_bootstrap, rng
        )

    def groups(self, column: str) -> list[Any]:
        """Return the values of a column that makes groups, for :meth:`by`."""
        values = column_values(column, self.columns)
        described = None if self.facts.schema is None else self.facts.schema.columns[column]
        if isinstance(described, CategoricalColumn):
            groups = list(described.categories)
        elif isinstance(described, NumericColumn) and not described.integer:
            groups = []
        elif isinstance(described, NumericColumn) and (
            described.upper - described.lower < _MOST_GROUPS
        ):
            groups = [*range(int(described.lower), int(described.upper) + 1)]
        else:
            groups = np.unique(values.astype(str) if values.dtype.kind == "O" else values).tolist()
        if not 0 < len(groups) <= _MOST_GROUPS:
            raise ParameterError(
                f"column {column!r} does not make groups: it must have categories or at most "
                f"{_MOST_GROUPS} integers."
            )
        return groups

    def mmd(self, y: object, *, progress: Progress | None = None) -> Estimate:
        """Estimate the RKHS distance (MMD) between the private rows and PUBLIC rows ``y``.

        Never pass private rows: the result would not be private. The error is the RKHS norm of
        the noise and of the change that the weights' constraint made: by the triangle inequality
        they move the distance by no more. ``progress`` is called with the fraction done.
        """
        kernel, domain, points = self.embedding()
        others = encode_sample(y, self.facts.schema, "y").rows
        if others.shape[1] != points.shape[1] or len(others) == 0:
            raise DataError(f"y must have rows with the columns {', '.join(self.columns)}.")
        return distance(others, points, self.weighting, self.before, kernel, domain, progress)

    def _mean(self, estimand: Estimand, width: float | None) -> Estimate:
        """Estimate a mean; ``width`` is that of its range, of weights alone that of the rows."""
        if self.source is None and estimand.where is None:
            return self._weighted_mean(estimand.function, width)
        try:
            return estimate_mean(self._source(), estimand)
        except ParameterError:
            raise
        except ValueError:
            plain = self.nonnegative()._weighted_mean(estimand.function, width)
            return Estimate(plain.value, math.nan, sampling=plain.sampling, reason=_FAILED)

    def _weighted_mean(self, function: Function, width: float | None) -> Estimate:
        """Return a mean with the bar of draws, for a release that keeps nothing else."""
        values = self._one_each(function(self.columns), "the function")
        check_total(self.weights)
        return mean_estimate(values, self.weighting, self.before, width)

    def _source(self) -> MeanSource:
        if self.source is not None:
            return self.source
        check_total(self.weights)
        return WeightedRows(self.columns, self.weighting, self.before)

    def _estimand(
        self, function: Function, *more: Expression, where: Expression | None
    ) -> Estimand:
        """Return what is to be estimated, with the numbers at which all expressions may jump."""
        condition = None if where is None else self._condition(where)
        jumps: dict[str, list[float]] | None = {}
        for expression in more if where is None else (*more, where):
            known = known_jumps(expression, self.columns)
            if known is None or jumps is None:
                jumps = None
                continue
            for name, numbers in known.items():
                jumps.setdefault(name, []).extend(numbers)
        return Estimand(function, condition, jumps, self.facts.n / self.facts.rows_per_person)

    def _numeric(self, what: Expression) -> Function:
        """Return a column, or a given function, checked on the released rows."""
        if callable(what):
            self._one_each(what(self.columns), "the function")
            return what
        self._one_each(column_values(what, self.columns), f"column {what!r}")
        return lambda columns: columns[what]

    def _condition(self, region: Expression) -> Function:
        if callable(region):
            self._one_each(region(self.columns), "region")
            return region
        selected(region, self.columns)
        return lambda columns: selected(region, columns)

    def _one_each(self, values: Any, name: str) -> Floats:
        array = np.asarray(values)
        if array.ndim == 0:
            array = np.broadcast_to(array, (len(self),))
        if array.shape != (len(self),) or array.dtype.kind not in "biuf":
            raise ParameterError(f"{name} must give one number for each synthetic row.")
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise ParameterError(f"{name} must give finite numbers.")
        return array

    def _bounds(self, what: Expression) -> Interval | None:
        if self.facts.schema is None or not isinstance(what, str):
            return None
        column = self.facts.schema.columns.get(what)
        return (column.lower, column.upper) if isinstance(column, NumericColumn) else None

    # --- other forms -----------------------------------------------------------------------------

    def nonnegative(self) -> SyntheticData:
        """Return the nearest release, in the RKHS, whose weights are >= 0 and add up to 1.

        If no such weights come near, the error bars are longer.
        """
        if self.weights.min() >= 0 and abs(float(self.weights.sum()) - 1) < 1e-9:
            return self
        if "nonnegative" not in self._cache:
            kernel, domain, points = self.embedding()
            coordinates = span(points, kernel, domain).coordinates
            free = self._free_weights()
            targets = coordinates.T @ np.column_stack([free.weights, free.draws])
            weights = nonnegative_weights(coordinates, targets)
            self.keep_nonnegative(Weighting.from_columns(weights))
        return cast(SyntheticData, self._cache["nonnegative"])

    def keep_nonnegative(self, fitted: Weighting) -> None:
        """Remember the weights that :meth:`nonnegative` would compute."""
        own = (fitted.weights, fitted.draws)
        made = replace(self, weights=own[0], draws=own[1], before=self._free_weights())
        self._cache["nonnegative"] = made

    def _free_weights(self) -> Weighting:
        own = self.weighting if self.before is None else self.before
        return Weighting(own.weights, own.draws[:, :_FITTED_DRAWS])

    @property
    def source(self) -> MeanSource | None:
        """What estimates means from what was measured; None if nothing is known of that."""
        if "source" not in self._cache:
            self._cache["source"] = self._measured_source()
        return cast("MeanSource | None", self._cache["source"])

    def _measured_source(self) -> MeanSource | None:
        schema, n = self.facts.schema, self.facts.n
        counted = schema is not None and len(self.measured) > 0
        if schema is not None and counted and self.coefficients is None:
            own = (self.measured, schema, n, self.facts.starts)
            return TableMeans(self.columns, self.weights, *own)
        if self.coefficients is None or self.facts.kernel is None:
            return None
        kernel, domain, points = self.embedding()
        fitted = self.nonnegative().weighting
        parts = (fitted, self.coefficients, kernel, domain, schema, list(self.columns))
        engine = EmbeddingMeans(points, *parts)
        if schema is None or not counted:
            return engine
        tables = TableMeans(engine.columns, engine.weights, self.measured, schema, n)
        return AtomMeans(engine, tables)

    def transform(self, function: Callable[[Columns], Any]) -> SyntheticData:
        """Apply a function to every row and keep the weights (kernel probabilistic programming).

        Parameters
        ----------
        function : callable
            Takes the columns and returns a mapping of names to arrays, or one array with a row
            for each synthetic row.
        """
        result = function(self.columns)
        if not isinstance(result, Mapping):
            array = np.asarray(result)
            array = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
            result = {f"x{index + 1}": array[:, index] for index in range(array.shape[1])}
        columns = {str(name): np.asarray(values) for name, values in result.items()}
        if not columns or any(values.shape != (len(self),) for values in columns.values()):
            raise ParameterError("function must return a value for each synthetic row.")
        facts = replace(self.facts, kernel=None, schema=None)
        return replace(self, columns=columns, facts=facts, coefficients=None, measured=())

    def sample(self, n: int, *, rng: Rng = None) -> pa.Table:
        """Draw ``n`` unweighted rows, for models that do not take weights.

        Systematic sampling by the non-negative weights (:meth:`nonnegative`), in random order;
        ``rng`` is public randomness.
        """
        n = integer_at_least("n", n, 1)
        shares, generator = self.nonnegative().weights, public_generator(rng)
        ticks = (np.arange(n) + generator.random()) / n
        chosen = np.searchsorted(np.cumsum(shares) / shares.sum(), ticks, side="right")
        chosen = generator.permutation(np.minimum(chosen, len(shares) - 1))
        return _table({name: values[chosen] for name, values in self.columns.items()})

    def to_arrow(self) -> pa.Table:
        """Return the rows and their weights as an Arrow table; the last column is the weight."""
        return _table({**self.columns, self.weight_name: self.weights})

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows and their weights as a data frame; the last column is the weight."""
        import pandas as pd  # noqa: PLC0415

        return pd.DataFrame({**self.columns, self.weight_name: self.weights})

    def to_polars(self) -> pl.DataFrame:
        """Return the rows and their weights as a Polars frame; the last column is the weight."""
        import polars as pl  # noqa: PLC0415

        return cast("pl.DataFrame", pl.from_arrow(self.to_arrow()))

    def write(self, path: str | os.PathLike[str], n: int | None = None, *, rng: Rng = None) -> None:
        """Write the rows for other programs: .csv, .parquet, .arrow or .feather.

        Parameters
        ----------
        path : path
            The ending decides the format.
        n : int, optional
            Draw so many rows without weights (:meth:`sample`); by default the rows of the
            release with their weights.
        rng : None, int or Generator
            As in :meth:`sample`.
        """
        from privatest.synthetic.storage import write_rows  # noqa: PLC0415 - it imports this module

        write_rows(self.to_arrow() if n is None else self.sample(n, rng=rng), path)

    @property
    def weight_name(self) -> str:
        """The name of the weight column in tables."""
        name = "weight"
        while name in self.columns:
            name += "_"
        return name

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file with the rows, the weights and the public facts."""
        from privatest.synthetic.storage import save  # noqa: PLC0415

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SyntheticData:
        """Read what :meth:`save` wrote, or :meth:`to_dict` as a ``.json`` file."""
        from privatest.synthetic.storage import load  # noqa: PLC0415

        return load(path)

    def to_dict(self) -> dict[str, Any]:
        """Return public facts, and the file of :meth:`save` as base64 under ``"parquet"``."""
        from privatest.synthetic.storage import document  # noqa: PLC0415

        return document(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SyntheticData:
        """Read what :meth:`to_dict` wrote."""
        from privatest.synthetic.storage import from_document  # noqa: PLC0415

        return from_document(values)

    # --- for other modules -----------------------------------------------------------------------

    @property
    def weighting(self) -> Weighting:
        """Weights and draws."""
        return Weighting(self.weights, self.draws)

    def embedding(self) -> tuple[Kernel, Domain, Floats]:
        """Return the kernel, the domain and the encoded rows."""
        if self.facts.kernel is None:
            raise ParameterError(
                "transformed rows have no kernel, nor have those released by tables: call this "
                "before transform, or release with method='subspace'."
            )
        schema = self.facts.schema
        if schema is None:
            return self.facts.kernel, Domain.anywhere(len(self.columns)), self.points
        return self.facts.kernel, schema.domain, schema.encode(dict(self.columns))


def _equals(name: str, value: Any) -> Function:
    return lambda columns: columns[name] == value


def _table(columns: Columns) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
