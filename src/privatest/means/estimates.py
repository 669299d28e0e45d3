"""Private means and covariances with confidence regions: the functions, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.estimate_table import EstimateTable, numbered
from privatest.core.intervals import Interval
from privatest.core.intervals import confidence as checked_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import PrivateEstimate, known_values
from privatest.core.validation import Rng, printable, public_generator
from privatest.data.bounds import Bounds
from privatest.data.domain import Box
from privatest.means.bootstrap import Contrast, replicate_covariances, upper_point
from privatest.means.inference import checked_bootstrap, estimates, infer
from privatest.means.intervals import MeanIntervals
from privatest.means.samples import (
    covariance_in_units,
    in_units,
    look_at_one,
    numeric_sample,
)

__all__ = ["CovarianceEstimate", "MeanEstimate", "private_covariance", "private_mean"]

_COVARIANCE_SHARE = 0.3  # of epsilon, for the mean that a covariance is centred at

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate(PrivateEstimate):
    """A private mean, with a confidence region for the population mean.

    Attributes
    ----------
    mean : ndarray
        The private mean of each column, cut to the public bounds.
    lower, upper : ndarray
        Simultaneous confidence intervals: all of them cover with probability ``confidence``.
    covariance : ndarray
        The private covariance of the rows.
    region_shape, region_radius : ndarray, float
        The region is all θ with (c - θ)' region_shape^-1 (c - θ) at most the radius.
    region_centre : ndarray or None
        c: the private mean before it was cut; None where the estimate is the mean itself.
    estimated : {"mean", "share"}
        What the means are, for a reader.
    confidence : float
        Level of the region, and of the intervals.
    spent : Budget
        What releasing this cost.
    n : int
        Public number of rows.
    columns : tuple of str or None
        Names of the columns.
    rows_per_person : int
        The most rows that one person has; the guarantee hides all of them.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    intervals : callable or None
        From a level to intervals of that level, computed from released numbers alone; not part
        of the JSON document.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    covariance: Floats
    region_shape: Floats
    region_radius: float
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    rows_per_person: int = 1
    simulated: bool = False
    region_centre: Floats | None = None
    estimated: str = "mean"
    intervals: Callable[[float], Interval] | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95) -> Interval:
        """Return simultaneous intervals of another level; they cost nothing more.

        Parameters
        ----------
        confidence_level : float
            How often such intervals cover, all of them at once.

        Notes
        -----
        **Privacy** Post-processing: computed from what was released and public numbers.
        """
        level = checked_level(confidence_level)
        if self.intervals is not None:
            return self.intervals(level)
        if abs(level - self.confidence) > 1e-12:
            raise ParameterError(
                f"confidence_level must be {self.confidence:g}: an estimate that was read from a "
                f"record has its own intervals only."
            )
        return Interval(self.lower, self.upper, level)

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return f"private_{self.estimated}"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        level = f"{100 * self.confidence:.4g}%"
        if len(self.mean) == 1:
            return f"Private {self.estimated} of {self.n:,} rows, with its {level} interval"
        return f"Private means of {self.n:,} rows, with simultaneous {level} intervals"

    def estimate_table(self) -> EstimateTable:
        """Return name, mean and interval of each column, as text."""
        values = zip(_names(self), self.mean, self.lower, self.upper, strict=True)
        rows = (
            (name, f"{mean:.6g}", f"({low:.6g} to {high:.6g})") for name, mean, low, high in values
        )
        return EstimateTable(self.heading, tuple(rows))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], spent: Budget) -> MeanEstimate:
        """Read what :meth:`to_dict` wrote; of the cost it has only rounded numbers."""
        known = known_values(cls, values) | {"spent": spent}
        if known["columns"] is not None:
            known["columns"] = tuple(known["columns"])
        for name in ("mean", "lower", "upper", "covariance", "region_shape", "region_centre"):
            if known.get(name) is not None:
                known[name] = np.asarray(known[name], dtype=np.float64)
        return cls(**known)


@dataclass(frozen=True, slots=True, eq=False)
class CovarianceEstimate(PrivateEstimate):
    """A private covariance, with confidence intervals for that of the population.

    Attributes
    ----------
    covariance : ndarray
        The private covariance; it is positive semidefinite.
    lower, upper : ndarray
        Simultaneous intervals for its entries, assuming roughly normal rows.
    mean : ndarray
        The private mean about which it is centred.
    confidence, spent, n, columns, rows_per_person, simulated
        As in :class:`MeanEstimate`.
    """

    covariance: Floats
    lower: Floats
    upper: Floats
    mean: Floats
    confidence: float
    spent: Budget
    n: int
    columns: tuple[str, ...] | None = None
    rows_per_person: int = 1
    simulated: bool = False

    @property
    def method_id(self) -> str:
        """The function that made the result."""
        return "private_covariance"

    @property
    def heading(self) -> str:
        """What was estimated, from how many rows."""
        return f"Private covariance of {self.n:,} rows"

    def estimate_table(self) -> EstimateTable:
        """Return the rows of the matrix, as text."""
        names = _names(self)
        rows = (
            (name, *(f"{value:>11.6g}" for value in row))
            for name, row in zip(names, self.covariance, strict=True)
        )
        return EstimateTable(self.heading, tuple(rows), ("", *names))


def _names(estimate: MeanEstimate | CovarianceEstimate) -> list[str]:
    names = estimate.columns
    return numbered(len(estimate.mean)) if names is None else [printable(name) for name in names]


def private_mean(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> MeanEstimate:
    """Estimate the mean of each column privately, with a confidence region.

    Parameters
    ----------
    x : array, data frame or Arrow table
        The sample.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns; values outside are clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        One minus the confidence.
    n_bootstrap, rng, noise
        As in :func:`privatest.hotelling_test`.

    Returns
    -------
    MeanEstimate
        The mean, its confidence region, and the covariance behind it.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.hotelling_test`.

    **Privacy** Mean and covariance are released at (epsilon, delta), 0.7 and 0.3 of epsilon if
    delta = 0; the region follows from them.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(2000, 2))
    >>> estimate = private_mean(x, bounds=(0, 10), epsilon=1, rng=0)
    >>> bool(np.all(estimate.upper - estimate.lower < 1))
    True
    """
    contrast, box, facts, options = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise
    )
    found = infer(contrast, np.zeros(len(box.half)), **options)
    rest = {name: value for name, value in options.items() if name != "alpha"}
    intervals = MeanIntervals(contrast, box, **rest)
    return MeanEstimate(**estimates(contrast, box, found), **facts, intervals=intervals)


def private_covariance(
    x: Any,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> CovarianceEstimate:
    """Estimate the covariance of the columns privately, with intervals for its entries.

    Parameters
    ----------
    x, bounds, epsilon, delta, alpha, n_bootstrap, rng, noise
        As in :func:`privatest.private_mean`.

    Returns
    -------
    CovarianceEstimate
        The covariance, and simultaneous intervals for its entries.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.hotelling_test`.

    **Privacy** Mean and second moment are released at (epsilon, delta), 0.3 and 0.7 of epsilon
    if delta = 0. The intervals are a parametric bootstrap from these, with normal rows; for
    heavy-tailed rows they are too short.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(5000, 2))
    >>> private_covariance(x, bounds=(0, 10), epsilon=1, rng=0).covariance.shape
    (2, 2)
    """
    contrast, box, facts, options = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise, _COVARIANCE_SHARE
    )
    (sample,) = contrast.samples
    drawn = (
        replicate_covariances(sample, n_bootstrap, public_generator(options["seed"]))
        - sample.covariance
    )
    deviations = np.sqrt(np.mean(drawn**2, axis=0)) + np.finfo(np.float64).tiny
    largest = np.max(np.abs(drawn) / deviations, axis=(1, 2))
    reach = covariance_in_units(box, upper_point(largest, options["alpha"]) * deviations)
    covariance = covariance_in_units(box, sample.covariance)
    return CovarianceEstimate(
        covariance=covariance,
        lower=covariance - reach,
        upper=covariance + reach,
        mean=in_units(box, sample.mean),
        **facts,
    )


def _release(
    x: Any,
    bounds: Bounds,
    budget: Budget,
    alpha: float,
    n_bootstrap: int,
    rng: Rng,
    noise: NoiseSource | None,
    mean_share: float | None = None,
) -> tuple[Contrast, Box, dict[str, Any], dict[str, Any]]:
    """Check the arguments and release; return the contrast, its box, the facts, the options."""
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    share = {} if mean_share is None else {"mean_share": mean_share}
    contrast = look_at_one(sample, budget, source, **share)
    facts = {
        "confidence": 1 - options["alpha"],
        "spent": budget,
        "n": len(sample),
        "columns": sample.names,
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    return contrast, sample.box, facts, options
