"""Tables of one and two columns as a release: measure, fit, round to rows.

Proof: docs/proofs/tables.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.data.samples import Sample
from privatest.synthetic.tables.counting import coded, derived
from privatest.synthetic.tables.grouping import grouped, merged, on_simplex, useful_pairs
from privatest.synthetic.tables.measured import Measured, Wanted, measure
from privatest.synthetic.tables.moments import measure_moments
from privatest.synthetic.tables.plan import COARSE_GROUPS, TablesPlan
from privatest.synthetic.tables.refining import refined

_CELL = 3.0  # a fine group holds at least so many standard deviations of its own count's noise

Groups = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """All that was measured, and the groups it was measured in.

    Attributes
    ----------
    measured : list of Measured
        Single columns in their order, then pairs.
    fine : tuple of ndarray
        For each column the fine group of each cell.
    coarse : tuple of ndarray or None
        For each column the coarse group of each fine group, if coarse tables were measured.
    moments : list of ndarray
        Noisy means, where bounds are 0 and 1, as :func:`moments.measure_moments` has them.
    mean_sigma : float
        Their noise.
    """

    measured: list[Measured]
    fine: Groups
    coarse: Groups | None
    moments: list[NDArray[np.float64]]
    mean_sigma: float

    @property
    def single(self) -> list[Measured]:
        """The tables of single columns, in the order of columns."""
        return self.measured[: len(self.fine)]

    @property
    def sizes(self) -> list[int]:
        """Fine groups of each column."""
        return [int(group.max()) + 1 for group in self.fine]


def measure_tables(
    sample: Sample, plan: TablesPlan, noise: NoiseSource
) -> tuple[TablesPlan, Tables]:
    """Find bins, measure means and all single columns, then pairs, for all of the budget.

    Parameters
    ----------
    sample : Sample
        Private rows in the columns' own units; each round goes through them once.
    plan : TablesPlan
        The rounds.
    noise : NoiseSource
        The secret randomness.

    Returns
    -------
    TablesPlan, Tables
        The rounds with the bins that were found, and what was measured.

    Notes
    -----
    **Sensitivity** Each round: :func:`privatest.synthetic.tables.measured.table_sensitivity`, and
    :meth:`privatest.synthetic.tables.moments.Moments.sensitivity`.

    **Privacy** Shares of the rounds add up to 1. Bins, groups of cells and the pairs of the last
    round are chosen from noisy tables of earlier rounds: post-processing, and adaptive
    composition of Gaussian mechanisms. docs/proofs/tables.md.
    """
    if plan.bins:
        split = refined(sample, plan.schema, plan.cells, budget=plan.budget, noise=noise)
        plan = plan.after_looks(*split)
    codes = coded(sample, plan.cells)

    def buy(wanted: Sequence[Wanted], share: Fraction) -> list[Measured]:
        return measure(
            codes,
            wanted,
            plan.names,
            rows_per_person=plan.rows_per_person,
            budget=plan.budget,
            share=share,
            noise=noise,
        )

    means, mean_sigma = [np.empty(0)], 0.0
    if plan.means:
        means, mean_sigma = measure_moments(
            derived(sample, plan.places, sample.width),
            codes,
            [len(cells) for cells in plan.cells],
            plan.moments,
            rows_per_person=plan.rows_per_person,
            budget=plan.budget,
            share=plan.means,
            noise=noise,
        )
    alone = [Wanted((i,), (np.arange(len(c)),)) for i, c in enumerate(plan.cells)]
    single = buy(alone, plan.one_way)
    shares = [on_simplex(table.counts, plan.n) for table in single]
    fine = _merged(shares, plan, max(plan.n / plan.fine_groups, _CELL * single[0].sigma))
    if not plan.fine:
        return plan, Tables(single, fine, None, means, mean_sigma)
    sums = [grouped(counts, group) for counts, group in zip(shares, fine, strict=True)]
    pairs, bought, coarse = plan.pairs, [], None
    if plan.coarse:
        coarse = _merged(sums, plan, plan.n / COARSE_GROUPS)
        whole = tuple(group[own] for group, own in zip(coarse, fine, strict=True))
        bought = buy(
            [Wanted(pair, (whole[pair[0]], whole[pair[1]])) for pair in pairs], plan.coarse
        )
        rough = [grouped(s, group) / plan.n for s, group in zip(sums, coarse, strict=True)]
        sizes = [len(own) for own in sums]
        chosen = useful_pairs(bought, rough, pairs, sizes, plan.sigma(1, plan.fine), plan.n)
        pairs = [pairs[place] for place in chosen]
    bought += buy([Wanted(pair, (fine[pair[0]], fine[pair[1]])) for pair in pairs], plan.fine)
    return plan, Tables([*single, *bought], fine, coarse, means, mean_sigma)


def _merged(counts: Sequence[NDArray[np.float64]], plan: TablesPlan, least: float) -> Groups:
    return tuple(
        merged(own, least, ordered=cells.ordered)
        for own, cells in zip(counts, plan.cells, strict=True)
    )
