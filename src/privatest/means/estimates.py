"""Private means and covariances with confidence regions, for those who want no test."""

from __future__ import annotations

from typing import Any

import numpy as np

from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import Rng, number, public_generator
from privatest.data.encoding import Bounds, encode_sample
from privatest.means.bootstrap import Contrast, replicate_covariances
from privatest.means.estimated import CovarianceEstimate, MeanEstimate
from privatest.means.inference import estimates, infer, upper_point
from privatest.means.samples import (
    Box,
    check_bootstrap,
    look_at_one,
    public_box,
    require_bounds,
)

__all__ = ["private_covariance", "private_mean"]

_COVARIANCE_SHARE = 0.3  # of epsilon, for the mean that a covariance is centred at


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
        Public bounds of the columns; data outside is clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        One minus the confidence.
    n_bootstrap, rng, noise
        As in :func:`privatest.hotelling_test`.

    Returns
    -------
    MeanEstimate
        The mean, its region, and the covariance that the region needed.

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
    contrast, box, facts, generator = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise
    )
    found = infer(
        contrast,
        np.zeros(box.dimension),
        alpha=1 - facts["confidence"],
        calibration="bootstrap",
        n_bootstrap=n_bootstrap,
        rng=generator,
    )
    return MeanEstimate(**estimates(contrast, box, found), **facts)


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
    """Estimate the covariance of the columns privately, with intervals of its entries.

    Parameters
    ----------
    x, bounds, epsilon, delta, alpha, n_bootstrap, rng, noise
        As in :func:`privatest.private_mean`.

    Returns
    -------
    CovarianceEstimate
        The covariance, and simultaneous intervals of its entries.

    Notes
    -----
    **Sensitivity** As in :func:`privatest.hotelling_test`.

    **Privacy** Mean and second moment are released at (epsilon, delta), 0.3 and 0.7 of epsilon
    if delta = 0. The intervals follow from them by a bootstrap of normal rows; for rows with
    heavy tails they are too short.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(5000, 2))
    >>> private_covariance(x, bounds=(0, 10), epsilon=1, rng=0).covariance.shape
    (2, 2)
    """
    contrast, box, facts, generator = _release(
        x, bounds, Budget(epsilon, delta), alpha, n_bootstrap, rng, noise, _COVARIANCE_SHARE
    )
    (sample,) = contrast.samples
    drawn = replicate_covariances(sample, n_bootstrap, generator) - sample.covariance
    deviations = np.sqrt(np.mean(drawn**2, axis=0)) + np.finfo(np.float64).tiny
    largest = np.max(np.abs(drawn) / deviations, axis=(1, 2))
    reach = box.matrix(upper_point(largest, 1 - facts["confidence"]) * deviations)
    covariance = box.matrix(sample.covariance)
    return CovarianceEstimate(
        covariance=covariance,
        lower=covariance - reach,
        upper=covariance + reach,
        mean=box.point(sample.mean),
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
) -> tuple[Contrast, Box, dict[str, Any], np.random.Generator]:
    """Check, release, and return the public facts too."""
    level = number("alpha", alpha, above=0, below=1)
    check_bootstrap("bootstrap", n_bootstrap, level)
    generator, source = public_generator(rng), noise_source(noise)
    bounds = require_bounds(bounds, x)
    sample = encode_sample(x, bounds)
    box = public_box(bounds, sample.rows.shape[1], sample.names)
    share = {} if mean_share is None else {"mean_share": mean_share}
    contrast = look_at_one(sample.rows, budget, sample.rows_per_person, source, **share)
    facts = {
        "confidence": 1 - level,
        "spent": budget,
        "n": len(sample.rows),
        "columns": box.names,
        "unit": sample.unit,
        "simulated": source.simulated,
    }
    return contrast, box, facts, generator
