"""Algorithm 2 as a release: noisy Fourier features, a reduced set, and draws for error bars."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Budget
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample
from privatest.kernels.kernels import Kernel
from privatest.synthetic.answers import Weighting
from privatest.synthetic.embedding.coefficients import Coefficients
from privatest.synthetic.embedding.fourier import NoisyFeatures, noisy_features
from privatest.synthetic.embedding.reduced_set import Constraint, reduced_set
from privatest.synthetic.embedding.shrinkage import Denoised, moments, signed_weights
from privatest.synthetic.embedding.subspace import Subspace, span
from privatest.synthetic.embedding.weights import Weights, nonnegative_weights

__all__ = ["features_release"]

_CONSTRAINTS: dict[Weights, Constraint] = {
    "nonnegative": "simplex",
    "bounded": "l1",
    "equal": "equal",
}
_DRAWS = 32
_MOST_FREQUENCIES = 250  # the heaviest ones
_PRIOR = 1.0  # weights vary by up to M^(-1/2)


def features_release(
    sample: Sample,
    *,
    kernel: Kernel,
    start: NDArray[np.float64],
    n_points: int,
    snap: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None,
    n_frequencies: int,
    weights: Weights,
    weight_bound: float,
    budget: Budget,
    share: Fraction | None,
    rng: np.random.Generator,
    noise: NoiseSource,
    progress: Callable[[int, int], None] | None,
) -> tuple[NDArray[np.float64], Weighting, Coefficients]:
    """Return points, weights with draws, and what was measured.

    ``share`` is what the features take of the budget; None for all of it.

    Notes
    -----
    **Sensitivity** Of the mean feature: docs/proofs/fourier-release.md.

    **Privacy** The noisy mean feature is (epsilon, delta)-private; the rest is post-processing.
    """
    noisy = noisy_features(
        sample.held,
        kernel=kernel,
        domain=sample.domain,
        n_frequencies=n_frequencies,
        budget=budget,
        rows_per_person=rows_of_a_person(sample),
        share=share,
        rng=rng,
        noise=noise,
    )
    points, fitted = reduced_set(
        noisy,
        domain=sample.domain,
        n_points=n_points,
        constraint=_CONSTRAINTS[weights],
        weight_bound=weight_bound,
        start=start,
        snap=snap,
        rng=rng,
        progress=progress,
    )
    space = span(points, kernel, sample.domain)
    draws = _draws(space, noisy, fitted, weights, rng)
    return points, Weighting(fitted, draws), of_features(noisy)


def _draws(
    space: Subspace,
    noisy: NoisyFeatures,
    fitted: NDArray[np.float64],
    weights: Weights,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Move the weights as the noise might have: its projection on the released points' span."""
    # points that were fitted to the noise cannot tell it from the data: hardly any shrinkage
    known = moments(space.coordinates)
    noise = Denoised(np.zeros(space.rank), noisy.scale, _PRIOR, _PRIOR, known)
    moved = noise.draws(_DRAWS, rng)
    if weights == "nonnegative":
        targets = space.coordinates.T @ fitted
        return nonnegative_weights(space.coordinates, targets[:, None] + moved)
    mean = known.mean[:, None]
    return fitted[:, None] + signed_weights(space.coordinates, mean + moved) - 1 / len(fitted)


def of_features(noisy: NoisyFeatures) -> Coefficients:
    """Keep what Algorithm 2 measured; frequency 0, whose mean is known, is left out."""
    moving = np.flatnonzero(noisy.frequencies.any(axis=0))[:_MOST_FREQUENCIES]
    return Coefficients(
        "fourier",
        noisy.frequencies[:, moving].T,
        noisy.amplitudes[moving],
        noisy.mean[:, moving].ravel(),
        noisy.scale,
    )
