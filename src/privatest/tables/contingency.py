"""Are two categorical columns independent?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator
from privatest.data.categories import Category
from privatest.data.limits import rows_of_a_person
from privatest.mechanisms.additive import CountMechanism, count_noise, noisy_counts
from privatest.tables.association import association_ends, association_interval
from privatest.tables.cells import cell_intervals
from privatest.tables.counting import cell_counts, read_category, spelled
from privatest.tables.null_tables import independence_pvalue, on_simplex, with_total

__all__ = ["chi2_contingency"]


@declare_level("measured")
def chi2_contingency(
    x: Any,
    y: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    categories_x: Sequence[Category] | None = None,
    categories_y: Sequence[Category] | None = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    mechanism: CountMechanism = "auto",
    n_simulations: int = 1999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two categorical columns are independent (chi-squared).

    SciPy's function takes a table of counts; this one takes the columns, counts and adds noise.

    Parameters
    ----------
    x, y : array, series or table of one column
        Row i of ``x`` and row i of ``y`` belong to one record.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision, and of the intervals.
    categories_x, categories_y : sequence, optional
        The public categories of each side. They are never found from the data.
    bounds_x, bounds_y : Schema, optional
        A schema of one categorical column for a side, instead of its categories: it also says how
        missing values count and how many rows a person may have.
    mechanism : {"auto", "laplace", "gaussian"}
        The noise of the counts; "auto" takes the smaller variance.
    n_simulations : int
        Number of tables that are simulated for each scenario of the margins.
    rng : None, int or Generator
        Public randomness, for the simulation.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is the chi-squared distance of the noisy table from independence, where a
        cell's variance includes its noise. Estimates: ``cramers_v`` with ``lower`` and ``upper``
        (the interval of :meth:`Outcome.confidence_interval`), ``counts`` (noisy, as released),
        ``shares`` (the nearest possible ones) and their simultaneous intervals ``shares_lower``
        and ``shares_upper``.

    Notes
    -----
    Without noise the statistic is Pearson's, that of SciPy with ``correction=False``. The p-value
    is the largest over five scenarios of the margins: the likely ones, and others 2 standard errors
    nearer to one category and to equal shares. Tables are simulated from each, with their noise.
    That the level holds is measured, from 5 rows and expected counts below 1 on, not proved:
    docs/proofs/contingency.md.

    Cramér's V is estimated where the released statistic is the median, so neither chance nor noise
    pushes it up; SciPy's ``association`` is larger on small tables. Its interval inverts the
    statistic in the direction of the released table; its coverage is measured too. The intervals
    of shares cover all cells at once, by Bonferroni's inequality, more often than they say.

    **Sensitivity** 2 in the l1 norm and sqrt(2) in the l2 norm, times the rows of a person: a
    replaced row moves two counts by 1. Proof: docs/proofs/counts.md.

    **Privacy** The table is released with noise at (epsilon, delta), both values of one row
    replaced; n is public. Everything else is computed from it. Proof: docs/proofs/contingency.md.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan (2016), Differentially private chi-squared hypothesis testing.
    Rogers and Kifer (2017), A new class of private chi-square hypothesis tests.
    Berger and Boos (1994), P values maximized over a confidence set for the nuisance parameter.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(2, size=2000)
    >>> y = np.where(rng.uniform(size=2000) < 0.3, x, rng.integers(2, size=2000))
    >>> result = pt.chi2_contingency(x, y, categories_x=[0, 1], categories_y=[0, 1], epsilon=1)
    >>> result.reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    simulations = integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    left, names_x = read_category(x, categories_x, bounds_x, "x", "_x")
    right, names_y = read_category(y, categories_y, bounds_y, "y", "_y")
    n, rows = len(left), max(map(rows_of_a_person, (left, right)))
    if len(right) != n:
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    if n < 1:
        raise DataError("x and y must have at least one row.")
    declared = {left.rows_per_person, right.rows_per_person}
    if bounds_x is not None and bounds_y is not None and len(declared) > 1:
        raise ParameterError("bounds_x and bounds_y must have the same rows_per_person.")
    shape = len(names_x), len(names_y)
    law = count_noise(shape[0] * shape[1], budget, mechanism, rows_per_person=rows)
    counts = cell_counts([left, right], shape)
    table = noisy_counts(counts, law=law, budget=budget, rows_per_person=rows, noise=source)
    statistic, pvalue = independence_pvalue(table, n, law, simulations, generator)
    low, middle, high = association_ends(table, n, law, 1 - alpha)
    cells = cell_intervals(table, n, law, 1 - alpha)
    shares = on_simplex((with_total(table, n) / n).ravel()).reshape(shape)
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        adjacency="one",
        method="chi-squared test of independence",
        null_hypothesis="the two columns are independent",
        sizes={"n": n},
        parameters={
            "categories_x": spelled(names_x),
            "categories_y": spelled(names_y),
            "mechanism": law.kind,
            "n_simulations": simulations,
        },
        rows_per_person=max(declared),
        simulated=source.simulated,
        pvalue=pvalue,
        statistic=statistic,
        estimated="cramers_v",
        estimates={
            "cramers_v": middle,
            "lower": low,
            "upper": high,
            "shares": shares,
            "shares_lower": np.asarray(cells.low),
            "shares_upper": np.asarray(cells.high),
            "counts": table,
        },
        intervals=partial(association_interval, table, n, law),
    )
