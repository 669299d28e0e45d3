"""Has a categorical column given shares?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.data.categories import Category, spelling
from privatest.data.limits import rows_of_a_person
from privatest.mechanisms.additive import CountMechanism, CountNoise, count_noise, noisy_counts
from privatest.tables.cells import cell_intervals
from privatest.tables.counting import cell_counts, read_category, spelled
from privatest.tables.null_tables import on_simplex

__all__ = ["chisquare", "expected_shares", "fit_pvalue"]

Floats = NDArray[np.float64]


@declare_level("valid")
def chisquare(
    x: Any,
    f_exp: Sequence[float] | Mapping[Any, float] | None = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    categories: Sequence[Category] | None = None,
    bounds: Any = None,
    mechanism: CountMechanism = "auto",
    n_simulations: int = 1999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a categorical column has given shares (chi-squared).

    SciPy's function takes counts; this one takes the column, counts it and adds noise.

    Parameters
    ----------
    x : array, series or table of one column
        The column.
    f_exp : sequence or mapping of float, optional
        Public shares or frequencies above 0, in the order of the categories or by category;
        they are divided by their sum. Equal by default.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the intervals.
    categories : sequence, optional
        The public categories. They are never found from the data.
    bounds : Schema, optional
        A schema of one categorical column, instead of ``categories``: it also says how missing
        values count and how many rows a person may have.
    mechanism : {"auto", "laplace", "gaussian"}
        The noise of the counts; "auto" takes the smaller variance.
    n_simulations : int
        Number of tables that are simulated for the p-value.
    rng : None, int or Generator
        Public randomness, for the simulation.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is (z - n p)' (n (diag p - p p') + s² P)^+ (z - n p) of the noisy counts z
        brought to their public total; s² is the variance of the noise, P takes the mean off.
        Estimates: ``counts`` (noisy, as released), ``shares`` (the nearest possible ones), and
        their simultaneous intervals ``lower`` and ``upper``.

    Notes
    -----
    The null hypothesis has one law, noise included, from which tables are simulated: the p-value
    is exactly valid for every n and epsilon. Without noise the statistic is Pearson's.

    **Sensitivity** 2 in the l1 norm and sqrt(2) in the l2 norm, times the rows of a person: a
    replaced row moves two counts by 1. Proof: docs/proofs/counts.md.

    **Privacy** The counts are released with noise at (epsilon, delta), each row replaced; n is
    public. Everything else is computed from them. Proof: docs/proofs/contingency.md.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan (2016), Differentially private chi-squared hypothesis testing.
    Rogers and Kifer (2017), A new class of private chi-square hypothesis tests.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> x = np.random.default_rng(0).choice(["a", "b", "c"], size=2000, p=[0.5, 0.3, 0.2])
    >>> pt.chisquare(x, categories=["a", "b", "c"], epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    simulations = integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    sample, named = read_category(x, categories, bounds, "x")
    expected = expected_shares(f_exp, named)
    n, rows = len(sample), rows_of_a_person(sample)
    if n < 1:
        raise DataError("x must have at least one row.")
    law = count_noise(len(named), budget, mechanism, rows_per_person=rows)
    counts = cell_counts([sample], [len(named)])
    table = noisy_counts(counts, law=law, budget=budget, rows_per_person=rows, noise=source)
    statistic, pvalue = fit_pvalue(table, n, expected, law, simulations, generator)
    cells = cell_intervals(table, n, law, 1 - alpha)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        adjacency="one",
        method="chi-squared test of shares",
        null_hypothesis="the categories have the given shares",
        sizes={"n": n},
        parameters={
            "categories": spelled(named),
            "expected": tuple(expected.tolist()),
            "mechanism": law.kind,
            "n_simulations": simulations,
        },
        rows_per_person=sample.rows_per_person,
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=statistic,
        estimated="shares",
        estimates={
            "shares": on_simplex(table / n + (1 - table.sum() / n) / len(table)),
            "lower": cells.low,
            "upper": cells.high,
            "counts": table,
        },
        intervals=partial(cell_intervals, table, n, law),
    )


def expected_shares(given: object, categories: Sequence[Category]) -> Floats:
    """Return public shares in the order of the categories; equal ones if none are given."""
    k = len(categories)
    if given is None:
        return np.full(k, 1 / k)
    if isinstance(given, Mapping):
        named = {spelling(name): share for name, share in given.items()}
        if set(named) != set(spelled(categories)) or len(named) != len(given):
            raise ParameterError("f_exp", "must have a share for each category, and no other")
        given = [named[name] for name in spelled(categories)]
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        reject("f_exp", "shares above 0, one for each category", given)
    with np.errstate(invalid="ignore", over="ignore"):
        good = shares.shape == (k,) and np.isfinite(shares.sum()) and bool((shares > 0).all())
    if not good:
        raise ParameterError("f_exp", f"must be {k} numbers above 0, one for each category")
    found: Floats = shares / shares.sum()
    return found


def fit_pvalue(
    table: Floats, n: int, expected: Floats, law: CountNoise, simulations: int, rng: Any
) -> tuple[float, float]:
    """Return the statistic and its Monte Carlo p-value, of a simple null hypothesis."""
    k = len(expected)
    flat = np.eye(k) - 1 / k
    spread = n * (np.diag(expected) - np.outer(expected, expected)) + law.variance * flat
    # the all-ones direction is empty in both terms; filled, the matrix can be inverted
    form = np.linalg.inv(spread + np.full((k, k), np.trace(spread) / k**2))

    def distance(tables: Floats) -> Floats:
        away = (tables - n * expected) @ flat
        return np.asarray(np.einsum("...i,ij,...j->...", away, form, away))

    drawn = rng.multinomial(n, expected, size=simulations) + law.draws((simulations, k), rng)
    own = float(distance(table))
    larger = int((distance(drawn) >= own * (1 - 1e-9)).sum())
    return own, (1 + larger) / (simulations + 1)
