"""Is a statistic of the user's own larger than chance explains? A private answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypedDict, Unpack, overload

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision, Outcome
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.custom.naive import naive_result
from privatest.custom.probe import Declared, declared_bound, search_neighbours
from privatest.custom.space import Scheme, Space, read_space
from privatest.custom.statistic import (
    TOLERANCE,
    UserStatistic,
    check_statistic,
    permuted_statistics,
)
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result

__all__ = ["permutation_test"]

Privatization = Literal["smoothed", "naive"]


class CustomOptions(TypedDict, total=False):
    """What :func:`permutation_test` takes besides data, statistic, budget and ``release``."""

    delta: Amount
    alpha: float
    scheme: Scheme
    privatization: Privatization
    adjacency: Adjacency
    vectorized: bool
    n_permutations: int
    check_sensitivity: bool
    bounds: Any
    rng: Rng
    noise: NoiseSource | None


@overload
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[CustomOptions],
) -> Outcome: ...
@overload
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    release: Release,
    **options: Unpack[CustomOptions],
) -> Decision: ...
@declare_level("valid")
def permutation_test(
    data: tuple[Any, Any],
    statistic: Callable[[Any, Any], Any],
    *,
    sensitivity: Declared,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    scheme: Scheme = "two-sample",
    privatization: Privatization = "smoothed",
    adjacency: Adjacency = "one",
    vectorized: bool = False,
    n_permutations: int = 999,
    check_sensitivity: bool = True,
    bounds: Any = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately with a statistic of your own, whose sensitivity you know.

    The hypothesis is that two samples have one distribution, or that two sides of the same
    rows are independent; it is rejected where the statistic is large among its values on
    permuted data. See the tutorial, docs/tutorials/your-own-statistic.md.

    Parameters
    ----------
    data : (x, y)
        Two samples, or the two sides of the same rows; each an array, data frame or table.
    statistic : callable
        ``statistic(x, y)`` returns a number that is large against the hypothesis. x and y are
        arrays (rows, columns), or (rows,) where there is one column; rows come in a secret
        random order. It is your code and runs on the private data: it must only compute.
    sensitivity : float, PermutationSensitivity or callable
        The most that the statistic moves when one record is replaced, **under every
        permutation**; see Notes. A function is called with (n, m).
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    scheme : {"two-sample", "independence"}
        Permute all rows between x and y, or the rows of y against those of x.
    privatization : {"smoothed", "naive"}
        Noise on the observed statistic only, or noise (n_permutations + 1) times as large on
        every statistic: composition, for comparison. For "naive" take few permutations.
    adjacency : {"one", "both"}
        Two samples: one record is replaced, or one in each. Independence: one pair, always.
    vectorized : bool
        Whether ``statistic`` takes a stack of permutations, x (B, n, d) and y (B, m, d), or
        (B, n) and (B, m) where there is one column, and returns B numbers.
    n_permutations : int
        Number of random permutations.
    check_sensitivity : bool
        Whether to search synthetic data for neighbours that break ``sensitivity``: a fixed
        number of evaluations, about a second for a cheap statistic. Finding none proves nothing.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds. The statistic sees values clipped to them, in their own units, and
        categories as 0, 1, ... For independence (lower, upper) for all columns, names of
        both sides, or (bounds of x, bounds of y). Without bounds data is taken as it is.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Raises
    ------
    ParameterError
        The statistic or its sensitivity fails on synthetic data; nothing was drawn or spent.
    PrivatestError
        The statistic raised an exception on the private data. Its text is withheld.

    Notes
    -----
    **Sensitivity** It is yours to prove: for every permutation, the same for both, the
    statistics of permuted neighbours must differ by at most this number. A permutation may put
    a record of the large sample into the small one, both replaced records of "both" into one
    sample, and it parts the two sides of a pair. Where permuted statistics therefore move
    further than the observed one, ``PermutationSensitivity(observed, permuted)`` says so and
    saves noise. The number is for the statistic as computed, NaN and infinities being replaced
    by 0.0; it is widened by a relative 1e-9 for rounding errors, and multiplied by the rows a
    person may have. Proof: docs/proofs/custom-statistics.md.

    **Privacy** Only the p-value or the decision is released, at (epsilon, delta), provided that
    the declared sensitivity is right and the statistic does nothing but compute. The level is
    exact in any case. Proofs: docs/proofs/smoothed-permutation-test.md, and for "naive"
    docs/proofs/custom-statistics.md.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.custom import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=500), rng.beta(2, 1, size=400)
    >>> def gap(x, y):
    ...     return abs(x.mean() - y.mean())
    >>> permutation_test(
    ...     (x, y), gap, sensitivity=lambda n, m: 1 / min(n, m), bounds=(0, 1), epsilon=1
    ... ).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    _check_options(scheme, privatization, adjacency, n_permutations, alpha)
    _true_or_false(vectorized=vectorized, check_sensitivity=check_sensitivity)
    if not callable(statistic):  # not quoted: data may have been passed here by mistake
        raise ParameterError("statistic must be a function of x and y, after data as (x, y).")
    generator, source = public_generator(rng), noise_source(noise)
    samples, space = read_space(data, bounds, scheme, adjacency)
    user = UserStatistic(statistic, vectorized)
    bound = declared_bound(sensitivity, space.n, space.m)
    check_statistic(user, space, bound.permuted)
    if check_sensitivity:
        search_neighbours(user, space, sensitivity)
    bound = bound * (samples.rows_per_person * (1 + TOLERANCE))
    facts = _facts(space, samples.rows_per_person, user, bound, n_permutations, privatization)
    orders = samples.secret_orders(source, paired=space.paired)
    x, y = (side.rows[order] for side, order in zip(samples, orders, strict=True))
    result = naive_result if privatization == "naive" else permutation_result
    return result(
        permuted_statistics(user, space, x, y, n_permutations, generator),
        sensitivity=bound,
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts=facts,
    )


def _check_options(
    scheme: str, privatization: str, adjacency: str, n_permutations: int, alpha: float
) -> None:
    one_of("scheme", scheme, ("two-sample", "independence"))
    one_of("privatization", privatization, ("smoothed", "naive"))
    one_of("adjacency", adjacency, ADJACENCIES)
    integer_at_least("n_permutations", n_permutations, 1)
    if scheme == "two-sample" and adjacency == "row":
        raise ParameterError(
            "adjacency='row' hides the group sizes, but a statistic of x and y sees them: it "
            "would need a bound over all sizes. Use mmd_test or ipm_test, which have one."
        )
    if scheme == "independence" and adjacency == "both":
        raise ParameterError("adjacency='both' is for two samples; here one pair is replaced.")
    smallest = math.ceil(1 / Fraction(Decimal(repr(alpha)))) - 1
    if privatization == "naive" and n_permutations < smallest:
        raise ParameterError(
            f"n_permutations must be at least {smallest} for alpha = {alpha:g} with "
            f"privatization='naive', or the test never rejects; got {n_permutations}."
        )


def _true_or_false(**options: object) -> None:
    for name, value in options.items():
        if not isinstance(value, bool):
            reject(name, "True or False", value)


def _facts(
    space: Space,
    rows_per_person: int,
    statistic: UserStatistic,
    bound: PermutationSensitivity,
    n_permutations: int,
    privatization: Privatization,
) -> dict[str, Any]:
    null = "the two samples come from the same distribution"
    facts: dict[str, Any] = {
        "adjacency": "both" if space.both else "one",
        "method": f"two-sample permutation test of {statistic.name}",
        "null_hypothesis": null,
        "sizes": {"n": space.n, "m": space.m},
        "parameters": {
            "statistic": statistic.name,
            "sensitivity": (bound.observed, bound.permuted),
            "privatization": privatization,
            "n_permutations": n_permutations,
        },
        "rows_per_person": rows_per_person,
    }
    if space.paired:
        facts["adjacency"] = "one"  # one pair, as in hsic_test
        facts["method"] = f"independence permutation test of {statistic.name}"
        facts["null_hypothesis"] = "the two sides are independent"
        facts["sizes"] = {"n": space.n}
    return facts
