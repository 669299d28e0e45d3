"""The public parameters that all owners of shares agree on, before any data is read."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import fingerprint
from privatest.core.errors import DataError, ParameterError
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.bounds import Bounds, schema_of
from privatest.data.samples import encode_sample
from privatest.data.schema import Schema
from privatest.kernels.embedding import Embedding, mean_embedding, smooth_characteristic
from privatest.kernels.kernels import KERNEL_FAMILIES, Kernel
from privatest.mechanisms.moments import moment_scale
from privatest.shares import document
from privatest.shares.columns import read_columns, written_columns
from privatest.two_sample.embedding_locations import unpacked_frequencies, unpacked_locations

__all__ = ["SharePlan", "plan_share"]

KIND = "privatest plan of shares"
Features = Literal["mean embedding", "characteristic function"]
FEATURES: tuple[str, ...] = get_args(Features)

DEFAULT_LOCATIONS = 10
_MOST_POINTS = 256  # a share holds the square of it
_NARROWEST, _WIDEST = 1e-6, 1e6  # bandwidths, in shares of the bounds
_FASTEST = 1e6  # radians per column


@dataclass(frozen=True, slots=True, eq=False)
class SharePlan:
    """What owners have to agree on; made by :func:`plan_share`, nothing in it is private.

    Attributes
    ----------
    schema : Schema
        The columns, their bounds or categories, and the rows that a person may have.
    features : {"mean embedding", "characteristic function"}
        What is averaged: kernel values at locations, or waves.
    points : ndarray
        Locations in encoded units (0 and 1 are a column's bounds; categories are 0, 1, ...), or
        frequencies in radians per such unit; one per row.
    kernel : str or None
        Family of the kernel; None for waves.
    bandwidth : float or None
        Of the kernel, or of the smoothing of waves, where each column's bounds are 0 and 1.
    budget : Budget
        What each share costs its owner's people.
    balance : float
        Noise on second moments by noise on means.
    """

    schema: Schema
    features: Features
    points: NDArray[np.float64]
    kernel: str | None
    bandwidth: float | None
    budget: Budget
    balance: float

    def __post_init__(self) -> None:
        """Refuse a plan that no share could follow, before any data is read."""
        if len(self.points) > _MOST_POINTS:
            reject(_points_name(self.features), f"at most {_MOST_POINTS}", len(self.points))
        number("balance", self.balance, at_least=1e-3, below=1e3)
        if self.bandwidth is not None:
            number("bandwidth", self.bandwidth, at_least=_NARROWEST, below=_WIDEST)
        self.points.flags.writeable = False
        self.scales(2)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters as plain values, in the form that is hashed."""
        return {
            "columns": written_columns(self.schema),
            "rows_per_person": self.schema.rows_per_person,
            "features": self.features,
            "kernel": self.kernel,
            "bandwidth": self.bandwidth,
            _points_name(self.features): self.points.tolist(),
            # text: exact decimals, which floats are not
            "epsilon": f"{self.budget.epsilon:f}",
            "delta": f"{self.budget.delta:f}",
            "balance": self.balance,
        }

    @property
    def digest(self) -> str:
        """The SHA-256 of :attr:`parameters`: shares can be compared if theirs are equal."""
        return fingerprint(self.parameters)

    def embedding(self) -> Embedding:
        """Return the map from encoded rows to features."""
        if self.features == "characteristic function":
            return smooth_characteristic(self.points, self.bandwidth, self.schema.domain)
        kernel = Kernel(self.kernel, self.bandwidth)  # type: ignore[arg-type]
        return mean_embedding(kernel, self.points, self.schema.domain)

    def scales(self, n: int) -> tuple[float, float]:
        """Return the noise on means and on second moments of a share of ``n`` rows."""
        embedding = self.embedding()
        return moment_scale(
            integer_at_least("n", n, 2), embedding.dimension, **self.release(embedding)
        )

    def release(self, embedding: Embedding) -> dict[str, Any]:
        """Return the parameters for releasing the moments, all of them public."""
        return {
            "radius": embedding.radius,
            "spread": embedding.spread,
            "budget": self.budget,
            "balance": self.balance,
            "rows_per_person": self.schema.rows_per_person,
            "feature_error": embedding.rounding,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, for all owners."""
        document.write(path, self.to_json())

    def to_json(self) -> str:
        """Return the document that :meth:`save` writes."""
        return document.seal(KIND, {"plan": self.parameters, "digest": self.digest})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SharePlan:
        """Read a plan, or refuse it with the reason."""
        text = document.read(path, "plan")
        try:
            return cls.from_json(text)
        except DataError as error:
            raise document.named(path, error) from None

    @classmethod
    def from_json(cls, text: str | bytes) -> SharePlan:
        """Read the document that :meth:`to_json` gives."""
        return plan_of(document.open_document(text, KIND))

    def __str__(self) -> str:
        """Say what the plan fixes."""
        count, names = len(self.points), ", ".join(self.schema.columns)
        words = "locations" if self.features == "mean embedding" else "frequencies"
        lines = [
            f"Plan of shares {self.digest[:12]}",
            f"  columns   {names}",
            f"  features  {self.features} at {count} public {words}"
            + (f", {self.kernel} kernel" if self.kernel else "")
            + (f", bandwidth {self.bandwidth:g}" if self.bandwidth is not None else ""),
            f"  each      {self.budget} (one {self.schema.unit} replaced; n is public)",
        ]
        return "\n".join(lines)


def plan_share(
    bounds: Bounds,
    *,
    epsilon: Amount,
    delta: Amount,
    locations: Any = None,
    frequencies: Any = None,
    kernel: str = "gaussian",
    bandwidth: float | None = None,
    balance: float = 1.0,
    rng: Rng = None,
) -> SharePlan:
    """Fix the public parameters of shares.

    Parameters
    ----------
    bounds : Schema, mapping of names to (lower, upper), (lower, upper) or (d, 2) array
        The public columns. Data outside is clipped.
    epsilon, delta : float, int, str or Decimal
        The budget of each share; delta must be above 0.
    locations : int, table or ChosenLocations, optional
        How many points to spread evenly over the box; public points in the units of the data,
        never those of private data; or what :func:`privatest.optimise_locations` found, with its
        bandwidth. 10 points by default.
    frequencies : int, (count, d) array or ChosenFrequencies, optional
        Instead of locations: how many frequencies to draw, or the frequencies, in radians per
        unit of the data. Numeric columns only.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel at the locations.
    bandwidth : float, optional
        Width of the kernel where each column's bounds are 0 and 1; a quarter of the box's diameter
        by default. For frequencies: of the smoothing, none by default.
    balance : float
        Noise on second moments by noise on means.
    rng : None, int or Generator
        Public randomness, for frequencies that are drawn; with None the same in every run.

    Returns
    -------
    SharePlan
        With ``save(path)``; ``SharePlan.load(path)`` reads it back.

    Examples
    --------
    >>> plan = plan_share({"visits": (0, 80)}, epsilon=1, delta="1e-6", locations=4)
    >>> plan.points.ravel().tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    budget, schema = Budget(epsilon, delta), schema_of(bounds)
    if schema is None:
        raise ParameterError("bounds must be given: all shares are made with the same.")
    schema = schema.select(schema.columns)  # without ids: each owner counts their own
    one_of("kernel", kernel, KERNEL_FAMILIES)
    scale = number("balance", balance, above=0)
    if frequencies is not None:
        if locations is not None:
            raise ParameterError("pass locations or frequencies, not both.")
        waves = _frequencies(unpacked_frequencies(frequencies), schema, rng)
        width = None if bandwidth is None else number("bandwidth", bandwidth, above=0)
        return SharePlan(schema, "characteristic function", waves, None, width, budget, scale)
    locations, bandwidth = unpacked_locations(locations, kernel, bandwidth)
    width = _default_bandwidth(kernel, schema) if bandwidth is None else bandwidth
    width = number("bandwidth", width, above=0)
    points = _locations(DEFAULT_LOCATIONS if locations is None else locations, schema)
    return SharePlan(schema, "mean embedding", points, kernel, width, budget, scale)


def _default_bandwidth(kernel: str, schema: Schema) -> float:
    """Return a quarter of the diameter of the box, in the distance of the kernel."""
    columns = schema.domain.dimension
    return 0.25 * (columns if kernel == "laplace" else math.sqrt(columns))


def _locations(given: Any, schema: Schema) -> NDArray[np.float64]:
    if np.ndim(given) == 0 and not hasattr(given, "__len__"):
        count = integer_at_least("locations", given, 1)
        if count > _MOST_POINTS:
            reject("locations", f"at most {_MOST_POINTS}", count)
        return schema.domain.points(count)
    rows = encode_sample(given, schema, "locations").rows.copy()
    if len(rows) == 0:
        raise ParameterError("locations must have at least one row.")
    return rows


def _frequencies(given: Any, schema: Schema, rng: Rng) -> NDArray[np.float64]:
    columns = schema.domain.dimension
    if np.ndim(given) == 0 and not hasattr(given, "__len__"):
        count = integer_at_least("frequencies", given, 1)
        if count > _MOST_POINTS:
            reject("frequencies", f"at most {_MOST_POINTS}", count)
        # those of the default Gaussian kernel exp(-|x-y|²/w²): normal with variance 2/w²
        width = _default_bandwidth("gaussian", schema)
        generator = public_generator(0 if rng is None else rng)
        return generator.normal(scale=math.sqrt(2) / width, size=(count, columns))
    try:
        waves = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        reject("frequencies", "a number of them or an array of numbers", given)
    if waves.ndim != 2 or waves.shape[1] != columns or len(waves) == 0:
        reject("frequencies", f"an array with {columns} columns, one for each of the data", given)
    waves *= schema.box.width
    if not (np.abs(waves) <= _FASTEST).all():
        reject("frequencies", f"finite, and at most {_FASTEST:g} over a column's bounds", given)
    return waves


def _points_name(features: str) -> str:
    return "locations" if features == "mean embedding" else "frequencies"


def plan_of(content: Mapping[str, Any]) -> SharePlan:
    """Return the plan of a document's content; its digest must be right."""
    parameters = document.field(content, "plan", dict)
    stated = document.field(content, "digest", str)
    try:
        plan = _read_plan(parameters)
    except ParameterError as error:
        raise DataError(f"its plan cannot be used: {error}") from None
    if fingerprint(parameters) != stated or plan.digest != stated:
        raise DataError("its digest is not the one of its public parameters: they were edited.")
    return plan


def _read_plan(parameters: Mapping[str, Any]) -> SharePlan:
    features = one_of("features", parameters.get("features"), FEATURES)
    schema = read_columns(parameters)
    points = document.numbers(parameters, _points_name(features), (None, schema.domain.dimension))
    kernel, bandwidth = parameters.get("kernel"), parameters.get("bandwidth")
    if features == "mean embedding":
        one_of("kernel", kernel, KERNEL_FAMILIES)
        bandwidth = number("bandwidth", bandwidth, above=0)
        _check_encoded(points, schema)
    else:
        kernel = None
        if not (np.abs(points) <= _FASTEST).all():
            raise DataError("its 'frequencies' are out of range.")
        if bandwidth is not None:
            bandwidth = number("bandwidth", bandwidth, above=0)
    budget = Budget(parameters.get("epsilon"), parameters.get("delta"))  # type: ignore[arg-type]
    balance = number("balance", parameters.get("balance"), above=0)
    return SharePlan(schema, features, points, kernel, bandwidth, budget, balance)  # type: ignore[arg-type]


def _check_encoded(points: NDArray[np.float64], schema: Schema) -> None:
    for index, levels in enumerate(schema.domain.levels):
        column = points[:, index]
        top = levels - 1 if levels else 1
        if column.min() < 0 or column.max() > top or (levels and (column % 1 != 0).any()):
            raise DataError("its 'locations' lie outside of its columns.")
