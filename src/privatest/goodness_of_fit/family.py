"""Does one variable follow a distribution of a given kind, whatever its location and scale?"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.limits import rows_of_a_person
from privatest.goodness_of_fit.ks import encode_one_column
from privatest.laws.families import law_table
from privatest.laws.law import Law, simulated_law
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, lattice_outcome
from privatest.statistics.families import Family, family_named
from privatest.statistics.family_simulation import simulate_distances
from privatest.statistics.location_scale import ks_fit, ks_fit_sensitivity, on_grid
from privatest.statistics.location_scale_kuiper import kuiper_fit, kuiper_fit_sensitivity
from privatest.statistics.location_scale_program import GridSample

__all__ = ["FamilyStatistic", "ks_family"]

FamilyStatistic = Literal["ks", "kuiper"]
STATISTICS: tuple[str, ...] = get_args(FamilyStatistic)

_NAMES = {"ks": "Kolmogorov-Smirnov", "kuiper": "Kuiper"}
_LARGEST = {"ks": 0.5, "kuiper": 1.0}  # distance, attained if all records are the same
_STEPS = 1 << 20  # of the statistic's grid, for a distance of 1/n
_SLACK = _STEPS // 100  # Kuiper's minimum is found up to .01/n
_SIMULATIONS = 999  # where there is no table


@declare_level("measured", valid="laws that are simulated, as with n_simulations")
def ks_family(
    x: Any,
    family: str,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: FamilyStatistic = "ks",
    mechanism: Mechanism = "auto",
    n_simulations: int | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample comes from a family, with unknown location and scale.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    family : str
        "norm", "laplace", "cauchy", "logistic", "gumbel_r", "expon", "uniform", or any other
        continuous distribution of ``scipy.stats`` without shape parameters.
    bounds : (lower, upper) or Schema
        Public bounds. Values outside are clipped, values at a bound count as "there or beyond",
        so that the test is valid for all bounds; wide ones include the tails. Between the bounds
        values are rounded to 40 bits.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper"}
        Distance to the nearest member of the family: Kolmogorov-Smirnov, or Kuiper, which is
        more sensitive to tails and shape, and slower.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16 and delta = 0.
    n_simulations : int, optional
        Number of simulations of the distance under the null hypothesis. By default its law comes
        from a table, or from 999 simulations if there is none for this family.
    rng : None, int or Generator
        Public randomness, for these simulations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value.

    Notes
    -----
    **Sensitivity** The distance T = inf over members of d moves by at most 1/n, times the rows of
    a person, because d does for every member; this needs the infimum itself, which is found by
    linear programs in exact arithmetic. A heuristic fit is not private.
    Proof: docs/proofs/location-scale.md.

    **Privacy** n T in steps of 2^-20 is released with noise at (epsilon, delta); the p-value
    follows from it by the law of T, which is the same for all locations and scales.

    **Validity** Tables hold 99% upper confidence limits of simulated quantiles; with
    ``n_simulations`` the p-value is (1 + sum over simulations of P(simulated + noise >= released))
    / (n_simulations + 1), which is valid for every number of simulations.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_cauchy(2000)
    >>> ks_family(x, "norm", bounds=(-1000, 1000), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    chosen = family_named(family)
    one_of("statistic", statistic, STATISTICS)
    one_of("mechanism", mechanism, MECHANISMS)
    if n_simulations is not None:
        integer_at_least("n_simulations", n_simulations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    if bounds is None:
        raise ParameterError(
            "bounds must be given: without them values cannot be put on a fixed grid, and no "
            "fit of floats is certain."
        )
    encoded = encode_one_column(x, bounds)
    sample = on_grid(encoded.values)
    return lattice_outcome(
        _distance(sample, chosen, statistic),
        _law(chosen, statistic, sample.size, n_simulations, generator),
        width=_width(statistic, rows_of_a_person(encoded)),
        mechanism=mechanism,
        unit=sample.size * _STEPS,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts={
            "adjacency": "one",
            "method_id": f"ks_family/{statistic}",
            "method": f"{_NAMES[statistic]} test of a location-scale family",
            "null_hypothesis": f"the data come from the {chosen.name} family",
            "sizes": {"n": sample.size},
            "parameters": {"statistic": statistic, "family": chosen.name}
            | ({} if n_simulations is None else {"n_simulations": n_simulations}),
            "rows_per_person": encoded.rows_per_person,
        },
    )


def _width(statistic: FamilyStatistic, rows_per_person: int) -> int:
    if statistic == "ks":
        return ks_fit_sensitivity(_STEPS, rows_per_person)
    return kuiper_fit_sensitivity(_STEPS, _SLACK, rows_per_person)


def _distance(sample: GridSample, family: Family, statistic: FamilyStatistic) -> int:
    if statistic == "ks":
        return ks_fit(sample, family, _STEPS)
    return kuiper_fit(sample, family, _STEPS, _SLACK)


def _law(
    family: Family,
    statistic: FamilyStatistic,
    n: int,
    n_simulations: int | None,
    rng: np.random.Generator,
) -> Law:
    """Return an upper bound on the law of the computed statistic: a table, or simulations."""
    table = law_table(family.name, statistic) if n_simulations is None else None
    if table is not None and table.covers(n):
        law = table.upper_law(n, _LARGEST[statistic])
    else:
        count = n_simulations or _SIMULATIONS
        law = simulated_law(simulate_distances(family, statistic, n, count, rng) / np.sqrt(n))
    # what is computed may be above n · steps · distance: rounded up, a quantile off, the slack
    excess = 4.0 + (_SLACK if statistic == "kuiper" else 0)
    return law.scaled(n * _STEPS, excess)
