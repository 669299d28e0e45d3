"""Two-sample tests by mean embeddings at public locations, and by smooth characteristic functions.

Linear in the data, one pass. Raj et al. (2019), corrected: docs/proofs/embedding-tests.md.
"""

from __future__ import annotations

from typing import Any, Literal

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Amount
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, one_of, public_generator, reject
from privatest.kernels.embedding import Embedding
from privatest.kernels.kernels import KernelFamily
from privatest.statistics.moment_test import NULLS, Null, moment_pvalue
from privatest.two_sample.embedding_locations import characteristic_features, location_features
from privatest.two_sample.embedding_moments import (
    Question,
    embedding_estimates,
    embedding_facts,
    read_question,
    released_moments,
)
from privatest.two_sample.embedding_statistic import released_statistic, select_privately

__all__ = ["me_test", "scf_test"]

Releases = Literal["moments", "statistic"]


def me_test(
    x: Any,
    y: Any,
    *,
    locations: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Releases | None = None,
    null: Null = "corrected",
    bounds: Any = None,
    kernel: KernelFamily = "gaussian",
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    select: Literal["private"] | None = None,
    condition: float | None = None,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples are alike, by kernel means at public locations.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    locations : int, array, data frame or Arrow table
        Public points at which the samples are compared, in the data's own units; or a number of
        points spread evenly over the bounds. Never taken from the private data; public or
        simulated data may choose them (:func:`optimise_locations`).
    epsilon, delta : float, int, str or Decimal
        The privacy budget; ``release="moments"`` needs delta > 0.
    alpha : float
        Level of the decision.
    release : {"moments", "statistic"}, optional
        "moments" releases the difference at each location with its covariance, and tests with
        them; "statistic" one number, with pure epsilon. By default "moments" where delta > 0.
    null : {"corrected", "asymptotic"}
        Null law for "moments". "asymptotic" ignores the noise and rejects too often; it is here
        to show that.
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
    select : {"private"}, optional
        ``locations`` is then a list of candidates, each as above. A fifth of the rows, in secret
        order, chooses one by report-noisy-max; the others test. The cost stays the same.
    condition : float, optional
        K of ``release="statistic"``: large looks at all directions alike, small needs less noise.
    n_bootstrap : int
        Draws of the corrected null; post-processing.
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
    question = read_question(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    candidates = [locations]
    if select is not None:
        one_of("select", select, ("private",))
        candidates = list(locations) if isinstance(locations, (list, tuple)) else []
        if len(candidates) < 2:
            reject("locations", "a list of at least two candidates for select", locations)
    embeddings = [
        location_features(candidate, question.bounds, question.domain, kernel, bandwidth)
        for candidate in candidates
    ]
    chosen = 0
    if select is not None:
        chosen, question = select_privately(question, embeddings)
    return _outcome(
        question,
        embeddings[chosen],
        "mean embedding test",
        release=release or ("moments" if question.budget.delta else "statistic"),
        null=null,
        condition=condition,
        n_bootstrap=n_bootstrap,
        rng=rng,
    )


def scf_test(
    x: Any,
    y: Any,
    *,
    frequencies: Any,
    bounds: Any,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Releases | None = None,
    null: Null = "corrected",
    bandwidth: float | None = None,
    adjacency: Adjacency = "one",
    paired: bool = False,
    condition: float | None = None,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples are alike, by their smooth characteristic functions.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; numeric columns.
    frequencies : int or array
        Public frequencies, in radians per unit of the data, one row for each; or how many to
        draw, the same ones in every run.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Data outside is clipped.
    epsilon, delta, alpha, release, null, adjacency, paired, condition, n_bootstrap, rng, noise
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
    question = read_question(
        x,
        y,
        bounds=bounds,
        budget=(epsilon, delta),
        alpha=alpha,
        adjacency=adjacency,
        paired=paired,
        noise=noise,
    )
    embedding = characteristic_features(frequencies, question.bounds, question.domain, bandwidth)
    return _outcome(
        question,
        embedding,
        "smooth characteristic function test",
        release=release or ("moments" if question.budget.delta else "statistic"),
        null=null,
        condition=condition,
        n_bootstrap=n_bootstrap,
        rng=rng,
    )


def _outcome(
    question: Question,
    embedding: Embedding,
    test: str,
    *,
    release: str,
    null: Null,
    condition: float | None,
    n_bootstrap: int,
    rng: Rng,
) -> Outcome:
    one_of("release", release, ("moments", "statistic"))
    one_of("null", null, NULLS)
    integer_at_least("n_bootstrap", n_bootstrap, 1)
    generator = public_generator(rng)
    facts = embedding_facts(question, embedding, test)
    estimates: dict[str, Any] = {}
    if release == "statistic":
        if null != "corrected":
            raise ParameterError("null='asymptotic' goes with release='moments' only.")
        statistic, pvalue, ridge = released_statistic(question, embedding, condition)
        facts["parameters"] |= {"release": release, "ridge": ridge}
    else:
        if condition is not None:
            raise ParameterError("condition goes with release='statistic' only.")
        pooled = released_moments(question, embedding)
        statistic, pvalue = moment_pvalue(pooled, null=null, n_bootstrap=n_bootstrap, rng=generator)
        facts["parameters"] |= {"release": release, "null": null, "n_bootstrap": n_bootstrap}
        estimates = embedding_estimates(pooled, embedding)
    return Outcome(
        reject=pvalue <= question.alpha,
        alpha=question.alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=question.budget,
        simulated=question.noise.simulated,
        estimates=estimates,
        **facts,
    )
