"""A private synthetic database, and what anyone may compute from it at no further cost."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.results import html_table
from privatest.core.validation import (
    Rng,
    integer_at_least,
    listed,
    number,
    printable,
    public_generator,
)
from privatest.data.domain import Domain
from privatest.data.samples import encode_sample
from privatest.kernels.kernels import Kernel, gram
from privatest.synthetic.conditions import column_values, selected
from privatest.synthetic.estimates import (
    Estimate,
    Facts,
    Progress,
    Weighting,
    beyond,
    check_total,
    embedding_distance,
    mean_estimate,
    mean_kernel,
    point_means,
    quantile_estimate,
)
from privatest.synthetic.measured import Measured
from privatest.synthetic.subspace import span
from privatest.synthetic.weights import nonnegative_weights

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["SyntheticData"]

Columns = Mapping[str, NDArray[Any]]

_FITTED_DRAWS = 32  # each takes an optimisation
_SHOWN_ROWS = 5  # in a notebook


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticData:
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
    measured : tuple of Measured
        The noisy tables that the rows were fitted to, if the method is "tables".
    """

    columns: Columns
    weights: NDArray[np.float64]
    draws: NDArray[np.float64]
    facts: Facts
    before: Weighting | None = None
    measured: tuple[Measured, ...] = ()

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
        return type(self), (*parts, self.measured)

    def __len__(self) -> int:
        """Return the number of synthetic rows."""
        return len(self.weights)

    def __repr__(self) -> str:
        """Name the columns, the size and the cost."""
        return f"SyntheticData({len(self)} rows of {listed(self.columns)}; {self.facts.spent})"

    def __str__(self) -> str:
        """Print size, columns and the guarantee."""
        columns = f"  columns   {listed(self.columns)}"
        return "\n".join([self._head, columns, self.facts.guarantee])

    def _repr_html_(self) -> str:
        """Show the first rows with their weights, and the guarantee."""
        columns = {**self.columns, self.weight_name: self.weights}
        rows = [
            (str(place + 1), *(_shown(values[place]) for values in columns.values()))
            for place in range(min(len(self), _SHOWN_ROWS))
        ]
        table = html_table([("", *map(printable, columns)), *rows], self._head)
        return f"{table}<p>{html.escape(self.facts.guarantee)}</p>"

    @property
    def _head(self) -> str:
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

    # --- estimates -----------------------------------------------------------------------

    def mean(self, what: str | Callable[[Columns], Any]) -> Estimate:
        """Estimate the mean of a column, or of a function of the columns.

        Parameters
        ----------
        what : str or callable
            A numeric column; or a function that takes the columns (a mapping of names to
            arrays) and returns a number for each row.

        Notes
        -----
        The mean is divided by the sum of the weights, so that shifting the function shifts
        the estimate. Functions as smooth as the kernel are estimated best.
        """
        if callable(what):
            values = self._numbers(what(self.columns), "the function")
        else:
            values = self._numbers(column_values(what, self.columns), f"column {what!r}")
        return self._mean(values)

    def probability(self, region: str | Callable[[Columns], Any]) -> Estimate:
        """Estimate the probability of a region.

        Parameters
        ----------
        region : str or callable
            A condition such as ``"visits > 10 and idp == 1"``
            (:func:`privatest.synthetic.conditions.selected` has the grammar), or a function
            of the columns that returns true or false for each row.

        Notes
        -----
        An indicator is not smooth: with signed weights use :meth:`nonnegative` first, which
        keeps probabilities between 0 and 1 and is nearly always closer.
        """
        chosen = region(self.columns) if callable(region) else selected(region, self.columns)
        return self._mean(self._numbers(chosen, "region"), reach=1.0)

    def quantile(self, column: str, q: float) -> Estimate:
        """Estimate the ``q`` quantile of a column.

        Cumulative signed weights may fall; the nearest non-decreasing ones then replace them. The
        bar also covers the gap to the next rows that have weight.
        """
        q = number("q", q, at_least=0)
        if q > 1:
            raise ParameterError("q must be between 0 and 1.")
        values = self._numbers(column_values(column, self.columns), f"column {column!r}")
        check_total(self.weights)
        step = 0.0 if self.columns[column].dtype.kind == "f" else 1.0
        return quantile_estimate(values, q, self._weighting, self.before, step)

    def mmd(self, y: object, *, progress: Progress | None = None) -> Estimate:
        """Estimate the RKHS distance (MMD) between the private rows and PUBLIC rows ``y``.

        Parameters
        ----------
        y : array, data frame or table
            Public rows with the columns of this release. Never pass private rows here: the
            result would not be private.
        progress : callable, optional
            Called with the fraction of the work that is done.

        Returns
        -------
        Estimate
            The error is the RKHS norm of the noise and of the change that the weights'
            constraint made: by the triangle inequality they move the distance by no more.
        """
        kernel, domain, points = self._embedding()
        rows = encode_sample(y, self.facts.schema, "y").rows
        if rows.shape[1] != points.shape[1] or len(rows) == 0:
            raise DataError(f"y must have rows with the columns {', '.join(self.columns)}.")
        own = mean_kernel(rows, kernel, domain, progress)
        means = point_means(points, rows, kernel, domain)
        value = embedding_distance(self.weights, points, means, own, kernel, domain)
        matrix = gram(kernel, points, points, domain)
        weights = self.weights[:, None]
        noise, misfit = _size(matrix, self.draws - weights), 0.0
        if self.before is not None:
            free = self.before.weights[:, None]
            free_noise = _size(matrix, self.before.draws - free)
            misfit = beyond(_size(matrix, free - weights), free_noise)
        return Estimate(value, math.hypot(noise, misfit), misfit)

    # --- other forms ---------------------------------------------------------------------

    def nonnegative(self) -> SyntheticData:
        """Return the nearest release, in the RKHS, whose weights are >= 0 and add up to 1.

        If no such weights come near, the error bars are longer.
        """
        if self.weights.min() >= 0 and abs(float(self.weights.sum()) - 1) < 1e-9:
            return self
        kernel, domain, points = self._embedding()
        coordinates = span(points, kernel, domain).coordinates
        own = self._weighting if self.before is None else self.before
        free = Weighting(own.weights, own.draws[:, :_FITTED_DRAWS])
        targets = coordinates.T @ np.column_stack([free.weights, free.draws])
        weights = nonnegative_weights(coordinates, targets)
        return replace(self, weights=weights[:, 0], draws=weights[:, 1:], before=free)

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
        if any(values.shape != (len(self),) for values in columns.values()) or not columns:
            raise ParameterError("function must return a value for each synthetic row.")
        facts = replace(self.facts, kernel=None, schema=None)
        return replace(self, columns=columns, facts=facts, measured=())

    def sample(self, n: int, *, rng: Rng = None) -> pa.Table:
        """Draw ``n`` unweighted rows, for models that do not take weights.

        Systematic sampling by the non-negative weights (:meth:`nonnegative`), in random order;
        ``rng`` is public randomness.
        """
        n = integer_at_least("n", n, 1)
        generator = public_generator(rng)
        shares = self.nonnegative().weights
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

    @property
    def weight_name(self) -> str:
        """The name of the weight column in tables."""
        name = "weight"
        while name in self.columns:
            name += "_"
        return name

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file with the rows, the weights and the public facts."""
        from privatest.synthetic.storage import save  # noqa: PLC0415 - it imports this module

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

    # --- internals ------------------------------------------------------------------------

    @property
    def _weighting(self) -> Weighting:
        return Weighting(self.weights, self.draws)

    def _mean(self, values: NDArray[np.float64], reach: float | None = None) -> Estimate:
        check_total(self.weights)
        return mean_estimate(values, self._weighting, self.before, reach)

    def _numbers(self, values: Any, name: str) -> NDArray[np.float64]:
        array = np.asarray(values)
        if array.ndim == 0:
            array = np.broadcast_to(array, (len(self),))
        if array.shape != (len(self),) or array.dtype.kind not in "biuf":
            raise ParameterError(f"{name} must give one number for each synthetic row.")
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise ParameterError(f"{name} must give finite numbers.")
        return array

    def _embedding(self) -> tuple[Kernel, Domain, NDArray[np.float64]]:
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


def _size(matrix: NDArray[np.float64], moved: NDArray[np.float64]) -> float:
    """Root mean square RKHS norm of columns of weights."""
    squares = np.einsum("ij,ij->j", moved, matrix @ moved)
    return math.sqrt(max(float(squares.mean()), 0.0)) if squares.size else math.nan


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def _table(columns: Columns) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
