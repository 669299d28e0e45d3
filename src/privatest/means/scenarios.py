"""Populations that may have led to what was released.

A p-value must be valid whatever the population is, within the null hypothesis. Its variance is
known up to noise only, and a small sample can hold none of the rows that make a law skewed. So
the statistic is redrawn in several scenarios, and the largest p-value counts (as in Berger and
Boos, 1994). The statistic is studentized: where noise is small the scenarios agree and nothing
is lost. docs/proofs/means.md.
"""

from __future__ import annotations

import math

import numpy as np

from privatest.means.bootstrap import Contrast, Floats, RareRows, Scenario
from privatest.mechanisms.moments import nearest_psd
from privatest.statistics.moments import spread_steps

__all__ = ["scenarios"]

_UNSEEN = (1.0, 2.0, 4.0)  # rows at a corner that a sample has on average, but may not hold
_SEEN = (4.0, 8.0, 16.0)  # the same for rows that it does hold: the released covariance has them
_HIDDEN = 0.3  # deviations of the statistic by which one row may move it and be ignored


def scenarios(contrast: Contrast, *, rare: bool = True) -> list[Scenario]:
    """Return the scenarios that matter at these sizes and this noise; free post-processing.

    ``rare`` is whether there may be rows that the samples do not show.
    """
    return [*_spreads(contrast), *(_rare_rows(contrast) if rare else [])]


def _spreads(contrast: Contrast) -> list[Scenario]:
    """Covariances as released, and larger by some deviations of their noise and sampling."""
    smallest = float(np.linalg.eigvalsh(contrast.released_scale)[0])
    found = []
    for parts in [_pooled_parts(contrast)] * contrast.equal + [_own_parts(contrast)]:
        largest = max(noise for _, noise, _ in parts)
        for step in spread_steps(len(contrast.value), largest, smallest):
            found.append(Scenario(tuple(_larger(step, *part) for part in parts)))
        if len({sample.plan.n for sample in contrast.samples}) == 1:
            break  # one sample, or equal sizes: it is only the pooled covariance that matters
    return found


Part = tuple[Floats, float, int]  # a covariance, the deviation of its noise, and its freedom


def _own_parts(contrast: Contrast) -> list[Part]:
    return [(each.covariance, each.spread_noise, each.plan.n - 1) for each in contrast.samples]


def _pooled_parts(contrast: Contrast) -> list[Part]:
    own = _own_parts(contrast)
    noise = math.hypot(*(w * noise for w, (_, noise, _) in zip(contrast.weights, own, strict=True)))
    freedom = sum(each for _, _, each in own)
    return [(contrast.released_covariance, noise, freedom)] * len(own)


def _larger(step: float, covariance: Floats, noise: float, freedom: int) -> Floats:
    grown = covariance + step * noise * np.eye(len(covariance))
    return grown * (1 + step * math.sqrt(2 / freedom))


def _rare_rows(contrast: Contrast) -> list[Scenario]:
    """Rows at opposite corners, along the axis in which the statistic sees them best."""
    base = _spreads(contrast)[0].covariances
    scale = contrast.released_scale
    _, axes = np.linalg.eigh(scale)
    corner = np.where(axes[:, 0] < 0, -1.0, 1.0)
    smaller = min(range(len(contrast.samples)), key=lambda k: contrast.samples[k].plan.n)
    n = contrast.samples[smaller].plan.n
    # t² of d columns varies by sqrt(2d) anyway: a row has to move it more to be seen
    hidden = _HIDDEN * len(corner) ** 0.25
    found = []
    for side in (corner, -corner):
        away = side - contrast.samples[smaller].mean
        moved = math.sqrt(contrast.size * float(away @ np.linalg.solve(scale, away))) / n
        if moved > hidden:
            found += [Scenario(base, RareRows(smaller, side, rate)) for rate in _UNSEEN]
            for rate in _SEEN:
                theirs = rate / n * np.outer(away, away)
                rest = tuple(nearest_psd(covariance - theirs) for covariance in base)
                found.append(Scenario(rest, RareRows(smaller, side, rate)))
    return found
