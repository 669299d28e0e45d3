"""A private synthetic database, and what anyone may compute from it at no further cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.core.showing import Shown
from privatest.core.validation import (
    Rng,
    integer_at_least,
    listed,
    public_generator,
)
from privatest.data.domain import Domain
from privatest.data.samples import encode_sample
from privatest.kernels.kernels import Kernel
from privatest.synthetic import rows
from privatest.synthetic.answering.asking import Source
from privatest.synthetic.answering.estimates import Estimate, Facts, Progress, Weighting
from privatest.synthetic.answering.functionals import Engine
from privatest.synthetic.answering.questions import Questions
from privatest.synthetic.embedding.atoms import AtomMeans
from privatest.synthetic.embedding.coefficients import Coefficients
from privatest.synthetic.embedding.distances import distance
from privatest.synthetic.embedding.subspace import span
from privatest.synthetic.embedding.weights import nonnegative_weights
from privatest.synthetic.tables.means import TableMeans
from privatest.synthetic.tables.measured import Measured

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["SyntheticData"]

Columns = Mapping[str, NDArray[Any]]

_FITTED_DRAWS = 32  # each takes an optimisation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticData(Questions, Shown):
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
    measured : tuple of Measured
        Noisy tables: those that the rows were fitted to, if the method is "tables"; for
        "subspace" counts at the schema's atoms.
    """

    columns: Columns
    weights: NDArray[np.float64]
    draws: NDArray[np.float64]
    facts: Facts
    before: Weighting | None = None
    coefficients: Coefficients | None = None
    measured: tuple[Measured, ...] = ()
    _kept: dict[str, Any] = field(default_factory=dict, init=False)

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
        columns = f"  columns   {listed(self.columns)}"
        return "\n".join([self._head, columns, self.facts.guarantee])

    def _repr_html_(self) -> str:
        """Show the first rows with their weights, and the guarantee."""
        columns = {**self.columns, self.weight_name: self.weights}
        return rows.as_html(columns, self._head, self.facts.guarantee)

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

    # --- estimates: see Questions, too ---------------------------------------------------------

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

    # --- other forms ---------------------------------------------------------------------

    def nonnegative(self) -> SyntheticData:
        """Return the nearest release, in the RKHS, whose weights are >= 0 and add up to 1.

        If no such weights come near, the error bars are longer.
        """
        if self.weights.min() >= 0 and abs(float(self.weights.sum()) - 1) < 1e-9:
            return self
        if "nonnegative" not in self._kept:
            kernel, domain, points = self.embedding()
            coordinates = span(points, kernel, domain).coordinates
            own = self.weighting if self.before is None else self.before
            free = Weighting(own.weights, own.draws[:, :_FITTED_DRAWS])
            targets = coordinates.T @ np.column_stack([free.weights, free.draws])
            weights = nonnegative_weights(coordinates, targets)
            self.keep_nonnegative(Weighting(weights[:, 0], weights[:, 1:]))
        found: SyntheticData = self._kept["nonnegative"]
        return found

    def keep_nonnegative(self, fitted: Weighting) -> None:
        """Remember the weights that :meth:`nonnegative` would look for."""
        own = self.weighting if self.before is None else self.before
        free = Weighting(own.weights, own.draws[:, :_FITTED_DRAWS])
        made = replace(self, weights=fitted.weights, draws=fitted.draws, before=free)
        self._kept["nonnegative"] = made

    @property
    def source(self) -> Source | None:
        """What estimates means from what was measured; None if nothing is known of that."""
        if "source" not in self._kept:
            self._kept["source"] = self._look_for_source()
        found: Source | None = self._kept["source"]
        return found

    def _look_for_source(self) -> Source | None:
        schema = self.facts.schema
        counted = schema is not None and len(self.measured) > 0
        if schema is not None and counted and self.coefficients is None:
            own = (self.measured, schema, self.facts.n, self.facts.starts)
            return TableMeans(self.columns, self.weights, *own)
        if self.coefficients is None or self.facts.kernel is None:
            return None
        kernel, domain, points = self.embedding()
        fitted = self.nonnegative().weighting
        parts = (fitted, self.coefficients, kernel, domain, schema, list(self.columns))
        engine = Engine(points, *parts)
        if schema is None or not counted:
            return engine
        tables = TableMeans(engine.columns, engine.weights, self.measured, schema, self.facts.n)
        return AtomMeans(engine, tables)

    def transform(self, function: Callable[[Columns], Any]) -> SyntheticData:
        """Apply a function to every row and keep the weights (kernel probabilistic programming).

        Parameters
        ----------
        function : callable
            Takes the columns and returns a mapping of names to arrays, or one array with a row
            for each synthetic row.
        """
        columns = rows.transformed(self.columns, function)
        facts = replace(self.facts, kernel=None, schema=None)
        return replace(self, columns=columns, facts=facts, coefficients=None, measured=())

    def sample(self, n: int, *, rng: Rng = None) -> pa.Table:
        """Draw ``n`` unweighted rows, for models that do not take weights.

        Systematic sampling by the non-negative weights (:meth:`nonnegative`), in random order;
        ``rng`` is public randomness.
        """
        n = integer_at_least("n", n, 1)
        return rows.drawn(self.columns, self.nonnegative().weights, n, public_generator(rng))

    def to_arrow(self) -> pa.Table:
        """Return the rows and their weights as an Arrow table; the last column is the weight."""
        return rows.table({**self.columns, self.weight_name: self.weights})

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
        rows.write(self.to_arrow() if n is None else self.sample(n, rng=rng), path)

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

    # --- for other modules --------------------------------------------------------------------

    @property
    def weighting(self) -> Weighting:
        """Weights and draws."""
        return Weighting(self.weights, self.draws)

    def embedding(self) -> tuple[Kernel, Domain, NDArray[np.float64]]:
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
