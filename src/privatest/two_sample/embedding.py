"""Two-sample tests by mean embeddings at public locations, and by smooth characteristic functions.

Linear in the data, one pass. Raj et al. (2019), corrected: docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Amount
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.kernels.embedding import Embedding
from privatest.kernels.kernels import KernelFamily
from privatest.statistics.moment_test import NULLS, Null, moment_pvalue
from privatest.two_sample.embedding_locations import (
    PrivateChoice,
    characteristic_features,
    location_features,
)
from privatest.two_sample.embedding_moments import (
    Inputs,
    embedding_estimates,
    embedding_facts,
    read_inputs,
    released_moments,
)
from privatest.two_sample.embedding_statistic import released_statistic, select_privately

__all__ = ["MomentsRelease", "StatisticRelease", "me_test", "scf_test"]


@dataclass(frozen=True, slots=True)
class MomentsRelease:
    """Release the difference at each location with its covariance, and test with them.

    Attributes
    ----------
    n_bootstrap : int
        Draws of the corrected null law; post-processing.
    null : {"corrected", "asymptotic"}
        The null law. "asymptotic" ignores the noise and rejects too often; it is here to show
        that.
    """

    n_bootstrap: int = 999
    null: Null = "corrected"

    def __post_init__(self) -> None:
        """Check the fields."""
        integer_at_least("n_bootstrap", self.n_bootstrap, 1)
        one_of("null", self.null, NULLS)


@dataclass(frozen=True, slots=True)
class StatisticRelease:
    """Release one number and its p-value, with pure epsilon.

    Attributes
    ----------
    condition : float, optional
        K: a large one weighs all directions of the features alike, a small one needs less noise.
    """

    condition: float | None = None

    def __post_init__(self) -> None:
        """Check the field."""
        if self.condition is not None:
            number("condition", self.condition, above=0)


Release = Literal["moments", "statistic"] | MomentsRelease | StatisticRelease


@declare_level("measured")
def me_test(
    x: Any,
    y: Any,
    *,
    locations: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release | None = None,
    bounds: Any = None,
    kernel: KernelFamily = "gaussian",
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples differ, by mean kernel values at public locations.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    locations : int, array, data frame, Arrow table, ChosenLocations or PrivateChoice
        Public points at which the samples are compared, in the data's own units; a number of
        points to spread evenly over the bounds; what :func:`optimise_locations` found on public
        samples, with its bandwidth; or a :class:`PrivateChoice` among several of these. Never
        points of the private data.
    epsilon, delta : float, int, str or Decimal
        The privacy budget; ``release="moments"`` needs delta > 0.
    alpha : float
        Level of the decision.
    release : {"moments", "statistic"}, MomentsRelease or StatisticRelease, optional
        "moments" releases the difference at each location with its covariance, and tests with
        them; "statistic" one number, with pure epsilon. By default "moments" where delta > 0.
        :class:`MomentsRelease` and :class:`StatisticRelease` set what goes with one of the two.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped. Without bounds ``bandwidth`` must
        be given, in the data's own units.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel of the numeric columns.
    bandwidth : float, optional
        As a share of each column's bounds; by default half of the box's diameter.
    adjacency : {"one", "both"}
        What is hidden: one record's values, or one record in each group.
    paired : bool
        Row i of ``x`` and row i of ``y`` belong to one person, who is hidden with both.
    rng : None, int or Generator
        Public randomness, for the null law.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        For "moments" with ``estimates``: "difference" of mean kernel values at the locations,
        "noise" (standard deviation of the privacy noise on each), "error" (that of noise and
        sampling together) and "covariance" of kernel values. See :func:`distinguishing_features`.

    Notes
    -----
    **Sensitivity** Features have norm at most 1 and are at most c = sqrt(2 (1 - inf k)) apart.
    "moments": joint l2 sensitivity of difference, mean and second moment
    (docs/proofs/moments.md). "statistic": c U²/(N - M), U² = K/2 (docs/proofs/embedding-tests.md).
    "both" and several rows per person by the triangle inequality. "row" is refused: the test
    needs public group sizes.

    **Privacy** "moments": everything in the result comes from one analytic Gaussian mechanism,
    (epsilon, delta). "statistic": one number with Laplace noise; the p-value is post-processing.

    References
    ----------
    Raj, Law, Sejdinovic and Park (2019), A differentially private kernel two-sample test. Its
    perturbed statistic is not private and is not offered here.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> found = me_test(x, y, locations=[0.25, 0.75], bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> found.reject
    True
    """
    inputs = read_inputs(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    choice = isinstance(locations, PrivateChoice)
    embeddings = [
        location_features(candidate, inputs.samples.x, kernel, bandwidth)
        for candidate in (locations.candidates if choice else [locations])
    ]
    chosen = 0
    if choice:
        chosen, inputs = select_privately(inputs, embeddings)
    return _outcome(inputs, embeddings[chosen], "mean embedding test", release, rng)


@declare_level("measured")
def scf_test(
    x: Any,
    y: Any,
    *,
    frequencies: Any,
    bounds: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release | None = None,
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples differ, by their smooth characteristic functions.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; numeric columns.
    frequencies : int, array or ChosenFrequencies
        Public frequencies, in radians per unit of the data, one row for each; how many to draw,
        the same ones in every run; or what :func:`optimise_frequencies` found.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped.
    epsilon, delta, alpha, release, adjacency, paired, rng, noise
        As in :func:`me_test`.
    bandwidth : float, optional
        Width of the Gaussian weight exp(-|x - centre|²/(2 bandwidth²)) that smooths the
        characteristic function, as a share of the bounds; none by default.

    Returns
    -------
    Outcome
        As in :func:`me_test`; the differences are those of the cosines, then of the sines.

    Notes
    -----
    **Sensitivity** Features have norm at most 1; on the box they are at most
    sqrt(2 - 2 mean cos(min(|w|₁, pi))) apart (with a weight: or 1, if that is more). The rest is
    as in :func:`me_test`.

    **Privacy** As in :func:`me_test`.

    References
    ----------
    Chwialkowski, Ramdas, Sejdinovic and Gretton (2015); Raj et al. (2019).

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=5000), rng.beta(2, 1, size=5000)
    >>> scf_test(x, y, frequencies=[2.0, 4.0], bounds=(0, 1), epsilon=1, delta=1e-6).reject
    True
    """
    inputs = read_inputs(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = characteristic_features(frequencies, inputs.samples.x, bandwidth)
    return _outcome(inputs, embedding, "smooth characteristic function test", release, rng)


def _outcome(
    inputs: Inputs, embedding: Embedding, test: str, release: Release | None, rng: Rng
) -> Outcome:
    if release is None:
        release = "moments" if inputs.budget.delta else "statistic"
    if not isinstance(release, (MomentsRelease, StatisticRelease)):
        one_of("release", release, ("moments", "statistic"))
        release = MomentsRelease() if release == "moments" else StatisticRelease()
    generator = public_generator(rng)
    facts = embedding_facts(inputs, embedding, test)
    estimates: dict[str, Any] = {}
    if isinstance(release, StatisticRelease):
        statistic, pvalue, ridge = released_statistic(inputs, embedding, release.condition)
        facts["parameters"] |= {"release": "statistic", "ridge": ridge}
    else:
        pooled = released_moments(inputs, embedding)
        draws: dict[str, Any] = {"null": release.null, "n_bootstrap": release.n_bootstrap}
        statistic, pvalue = moment_pvalue(pooled, **draws, rng=generator)
        facts["parameters"] |= {"release": "moments"} | draws
        estimates = embedding_estimates(pooled, embedding)
    return Outcome(
        reject=pvalue <= inputs.alpha,
        alpha=inputs.alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=inputs.budget,
        simulated=inputs.noise.simulated,
        estimated="feature_differences" if estimates else "",
        estimates=estimates,
        **facts,
    )
