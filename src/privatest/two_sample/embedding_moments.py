"""The samples of an embedding test as moments of features: read, released, and shown.

With delta > 0 the tests release the difference of mean features with what its null law needs:
Raj et al. (2019), section 4.1, with one joint Gaussian mechanism in place of two halves of the
budget, and samples of any sizes. Proof: docs/proofs/moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.equality import EqualByValue
from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.estimate_table import places_of
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, of_type, one_of, reject
from privatest.data.samples import TwoSamples, beside, encode_samples
from privatest.kernels.embedding import Embedding, MeanEmbedding, SmoothCharacteristic
from privatest.mechanisms.moments import nearest_psd, release_difference, release_moments
from privatest.statistics.moment_test import PooledMoments, pooled_covariance
from privatest.statistics.moments import Moments, moments
from privatest.two_sample.common import NULL_HYPOTHESIS, check_sizes
from privatest.two_sample.embedding_locations import in_own_units

__all__ = [
    "DistinguishingFeature",
    "Inputs",
    "distinguishing_features",
    "embedding_estimates",
    "embedding_facts",
    "feature_differences",
    "pair_moments",
    "read_inputs",
    "released_moments",
    "sample_moments",
]

_PAIRED_NULL = "the two members of a pair can be exchanged"


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Inputs:
    """Two encoded samples, what is to be hidden, and what may be spent."""

    samples: TwoSamples
    budget: Budget
    alpha: float
    adjacency: Adjacency
    paired: bool
    noise: NoiseSource

    @property
    def sizes(self) -> dict[str, int]:
        """Public sizes."""
        if self.paired:
            return {"n": len(self.samples.x)}
        return {"n": len(self.samples.x), "m": len(self.samples.y)}

    @property
    def steps(self) -> int:
        """Replacements of one row (or pair) that lead from neighbour to neighbour."""
        each = 2 if self.adjacency == "both" else 1
        return each * self.samples.rows_per_person


def read_inputs(
    x: Any,
    y: Any,
    *,
    bounds: Any,
    budget: tuple[Amount, Amount],
    alpha: float,
    adjacency: Adjacency,
    paired: bool,
    noise: NoiseSource | None,
) -> Inputs:
    """Check and read what all embedding tests take."""
    spend = Budget(*budget)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("adjacency", adjacency, ADJACENCIES)
    if not isinstance(paired, bool):
        reject("paired", "True or False", paired)
    if adjacency == "row":
        raise PrivacyError(
            "adjacency='row' is not offered by embedding tests: their labels and noise depend on "
            "the group sizes, which must be public. Use mmd_test, or declare the groups public."
        )
    if paired and adjacency == "both":
        raise ParameterError("paired=True already hides both rows of a pair; leave adjacency out.")
    source = noise_source(noise)
    # rows of a pair are one person's
    samples = encode_samples(x, y, bounds, adjacency="both" if paired else adjacency)
    check_sizes(samples, adjacency)
    if paired and len(samples.x) != len(samples.y):
        raise DataError("x and y must have the same number of rows: row i of each is one pair.")
    return Inputs(samples, spend, alpha, adjacency, paired, source)


def sample_moments(inputs: Inputs, embedding: Embedding) -> tuple[Moments, Moments]:
    """Mean and second moment of each sample's features, in one pass."""
    x, y = moments(
        *inputs.samples, psi=embedding, dimension=embedding.dimension, radius=embedding.radius
    )
    return x, y


def feature_differences(embedding: Embedding, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Features of x minus those of y, for pairs of rows side by side."""
    x, y = np.split(rows, 2, axis=1)
    return embedding(np.ascontiguousarray(x)) - embedding(np.ascontiguousarray(y))


def pair_moments(inputs: Inputs, embedding: Embedding) -> Moments:
    """Mean and second moment of the differences of paired rows."""
    (pairs,) = moments(
        beside(*inputs.samples),
        psi=partial(feature_differences, embedding),
        dimension=embedding.dimension,
        radius=embedding.spread,
    )
    return pairs


def released_moments(inputs: Inputs, embedding: Embedding) -> PooledMoments:
    """Release the difference of mean features, the pooled mean and second moment."""
    if not inputs.paired:
        x, y = sample_moments(inputs, embedding)
        return release_difference(
            x,
            y,
            radius=embedding.radius,
            spread=embedding.spread,
            budget=inputs.budget,
            noise=inputs.noise,
            adjacency=inputs.adjacency,
            rows_per_person=inputs.samples.rows_per_person,
            feature_error=embedding.rounding,
        )
    # a difference of features is at most the spread long, and two are at most twice that apart
    released = release_moments(
        pair_moments(inputs, embedding),
        radius=embedding.spread,
        budget=inputs.budget,
        noise=inputs.noise,
        rows_per_person=inputs.samples.rows_per_person,
        feature_error=2 * embedding.rounding,
    )
    # Two samples of 2n rows have H = n; the mean difference is that of means +w/2 and -w/2.
    return PooledMoments(
        n_x=2 * released.n,
        n_y=2 * released.n,
        difference=released.mean,
        centre=np.zeros_like(released.mean),
        second=released.second,
        sigma_difference=released.sigma,
        sigma_centre=0.0,
        sigma_second=released.sigma_second,
        share=0.5,
    )


def embedding_estimates(pooled: PooledMoments, embedding: Embedding) -> dict[str, Any]:
    """Write released moments as kernel values at the locations, or as cosines and sines.

    Embedding tests and comparisons of shares show them; :func:`distinguishing_features` reads
    them. "noise" is the standard deviation of the privacy noise on each difference, "error" that
    of noise and sampling together.
    """
    back = embedding.unscaling
    covariance = back @ nearest_psd(pooled_covariance(pooled)) @ back.T
    noise = pooled.sigma_difference * np.linalg.norm(back, axis=1)
    return {
        "difference": back @ pooled.difference,
        "noise": noise,
        "error": np.sqrt(noise**2 + np.diag(covariance) / pooled.harmonic),
        "covariance": covariance,
    }


def embedding_facts(inputs: Inputs, embedding: Embedding, test: str) -> dict[str, Any]:
    """Return the public fields of a result; ``test`` is the name of the test."""
    parameters: dict[str, Any] = {"paired": inputs.paired}
    if isinstance(embedding, MeanEmbedding):
        test = f"{test} ({embedding.kernel.family} kernel)"
        parameters |= {
            "kernel": embedding.kernel.family,
            "bandwidth": embedding.kernel.bandwidth,
            "locations": in_own_units(embedding.locations, inputs.samples.x.schema),
        }
    elif isinstance(embedding, SmoothCharacteristic):
        parameters |= {
            "bandwidth": embedding.bandwidth,
            "frequencies": embedding.frequencies.T.tolist(),  # per unit of the box
        }
    return {
        "adjacency": inputs.adjacency,
        "method": f"{'paired' if inputs.paired else 'two-sample'} {test}",
        "null_hypothesis": _PAIRED_NULL if inputs.paired else NULL_HYPOTHESIS,
        "sizes": inputs.sizes,
        "parameters": parameters,
        "rows_per_person": inputs.samples.rows_per_person,
    }


@dataclass(frozen=True, slots=True, eq=False)
class DistinguishingFeature(EqualByValue):
    """One location (or wave) with the private difference there.

    Attributes
    ----------
    place : tuple
        The location, in the data's own units; for waves "cos" or "sin" and the frequency, in
        radians per range of a column.
    difference : float
        Private mean of x minus that of y there: of kernel values, cosines or sines.
    noise : float
        Standard deviation of the privacy noise in it.
    error : float
        Standard deviation of noise and sampling together.
    """

    place: tuple[Any, ...]
    difference: float
    noise: float
    error: float

    @property
    def clarity(self) -> float:
        """The absolute difference, in standard errors."""
        return abs(self.difference) / self.error


def distinguishing_features(outcome: Outcome) -> list[DistinguishingFeature]:
    """Rank the locations of a test by how clearly the samples differ there, clearest first.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`me_test` or :func:`scf_test` with ``release="moments"``.

    Notes
    -----
    **Privacy** Post-processing of what was released: it costs nothing. The largest of many
    differences is not a test by itself; the p-value of the outcome is.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.two_sample.embedding import me_test
    >>> x, y = np.full(5000, 0.2), np.full(5000, 0.8)
    >>> found = me_test(x, y, locations=[0.0, 0.5], bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> distinguishing_features(found)[0].place
    (0.0,)
    """
    if not of_type(outcome, Outcome) or "difference" not in outcome.estimates:
        raise ParameterError("outcome must come from an embedding test with release='moments'.")
    estimates, places = outcome.estimates, places_of(outcome.parameters)
    features = [
        DistinguishingFeature(place, float(difference), float(noise), float(error))
        for place, difference, noise, error in zip(
            places,
            estimates["difference"],
            estimates["noise"],
            estimates["error"],
            strict=True,
        )
    ]
    return sorted(features, key=lambda feature: -feature.clarity)
