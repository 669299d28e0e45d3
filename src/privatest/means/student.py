"""The t-tests of one column: Student's law with the privacy noise, by quadrature.

The statistic is t = (difference of noisy means)/sqrt(S/size), where S holds the noisy variances and
the variance of the noise. Its law under the null hypothesis, for normal rows with given variances,
is an integral over the noise on means and mean squares, over the sample variances (chi-square)
and over one normal variable, which is done in closed form; a lattice rule does the rest. The same
integral without noise is replaced by Student's exact tail: as the noise vanishes, the p-value
becomes exactly that of the classical t-test, or of Welch's.

All of it is computed from released and public numbers: post-processing. Proof and measurements:
docs/proofs/means.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privatest.laws.law import Alternative
from privatest.means.bootstrap import Contrast, scenarios

__all__ = ["t_pvalue", "t_reach"]

_NODES = 1 << 12
_WIDER = 2.0  # Laplace noise is sampled with this many times its scale: its tails decide
_WIDER_NORMAL = 1.5
_TINY = 1e-300
_SMALLEST = 1e-9  # t at which a tail is taken for that at 0
_LARGEST = 1e6
_NEAR = 4.0  # scales of its noise by which a mean square may differ from 1 in a 0/1 column
_ROW = 1.75  # scales of the noise on a mean that a continuity correction may have
_PRECISION = 1e-7  # of the logarithm of a p-value

Floats = NDArray[np.float64]


def t_pvalue(contrast: Contrast, deviation: float, alternative: Alternative) -> float:
    """Return the p-value of a deviation of the contrast: the largest over plausible variances.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    error, half = _standard_error(contrast), _half_a_row(contrast)
    if alternative == "two-sided":
        deviation = max(abs(deviation) - half, 0.0)
    else:
        deviation += half if alternative == "less" else -half
    return max(law.pvalue(deviation / error, alternative) for law in _laws(contrast))


def t_reach(contrast: Contrast, alternative: Alternative, alpha: float) -> float:
    """Return the deviation whose p-value is alpha, in the direction of the alternative.

    Notes
    -----
    **Privacy** Post-processing of released and public numbers.
    """
    point = max(law.critical(alternative, alpha) for law in _laws(contrast))
    return point * _standard_error(contrast) + _half_a_row(contrast)


def _standard_error(contrast: Contrast) -> float:
    return math.sqrt(contrast.released_scale[0, 0] / contrast.size)


def _half_a_row(contrast: Contrast) -> float:
    """Return the continuity correction of one sample of a 0/1 column.

    The rate of a test on whole numbers jumps with each of them, and noise that is smaller than a
    row only blurs the steps. A column whose mean square is 1 up to the noise has rows at its two
    bounds alone; the correction is half a row, and vanishes with the noise.
    """
    if len(contrast.samples) > 1:
        return 0.0
    (sample,), plan = contrast.samples, contrast.samples[0].plan
    square = float(sample.covariance[0, 0]) / plan.unbiased + float(sample.mean[0]) ** 2
    if 1 - square + plan.variance > _NEAR * sample.second_scale:
        return 0.0
    return min(1 / plan.n, _ROW * plan.mean_scale)


def _laws(contrast: Contrast) -> list[NoisyStudent]:
    """Return the laws of t for the plausible variances of each sample's rows."""
    cases = [tuple(float(v[0, 0]) for v in each.covariances) for each in scenarios(contrast)]
    return [NoisyStudent(contrast, case) for case in cases]


class NoisyStudent:
    """The law of t under the null hypothesis for normal rows, noise included.

    Parameters
    ----------
    contrast : Contrast
        One column; its noise and its public sizes are used, and the released means: the noise on
        a mean square less a squared mean depends on them.
    variances : tuple of float
        Those of each sample's rows.
    """

    __slots__ = ("error", "exact", "freedom", "sides", "size", "weights")

    def __init__(self, contrast: Contrast, variances: tuple[float, ...]) -> None:
        samples, self.size, self.freedom = contrast.samples, contrast.size, _freedom(contrast)
        means = sum(v / sample.plan.n for v, sample in zip(variances, samples, strict=True))
        self.error = math.sqrt(max(means, _TINY))  # of the contrast without noise
        constant, self.exact = np.full(_NODES, contrast.extra), np.zeros(_NODES)
        slope, noise, self.weights = np.zeros(_NODES), np.zeros(_NODES), np.ones(_NODES)
        count = 3 * len(samples)
        for index, sample in enumerate(samples):
            plan, normal = sample.plan, sample.plan.budget.delta > 0
            sign, weight, variance = (1, -1)[index], contrast.weights[index], variances[index]
            eta, own = _noise(normal, 3 * index, count)
            zeta, others = _noise(normal, 3 * index + 1, count)
            eta, zeta = plan.mean_scale * eta, sample.second_scale * zeta
            place = 2 if contrast.equal else 3 * index + 2
            freedom = contrast.freedom if contrast.equal else plan.n - 1
            spread = variance * _chi_square(freedom, place, count)
            # a mean square less a squared mean, both noisy, about the released mean
            moved = zeta - (2 * float(sample.mean[0]) + eta) * eta + plan.variance
            noisy = spread + plan.unbiased * moved
            constant += weight * np.maximum(noisy, 0.0)
            self.exact += weight * spread
            bend = 2 * weight * plan.unbiased * variance * sign / (plan.n * self.error**2)
            slope += np.where(noisy > 0, bend * eta, 0.0)
            noise += sign * eta
            self.weights *= own * others
        self.weights /= self.weights.sum()
        self.sides = {
            side: (constant + slope * noise, side * slope, side * noise) for side in (1, -1)
        }

    def _tail(self, t: float, side: int) -> float:
        """Return P(side · T >= t), t > 0.

        Given the noise and the sample variances S = C - b u, where u is the numerator of T: with
        the noise of a mean the numerator rises and S falls. So T >= t where u is at least the
        positive root of (size/t²) u² + b u - C = 0, and u is normal.
        """
        from scipy.special import ndtr  # noqa: PLC0415

        constant, bend, noise = self.sides[side]
        width = self.size / t**2
        root = (np.sqrt(bend**2 + 4 * width * np.maximum(constant, _TINY)) - bend) / (2 * width)
        return float(self.weights @ ndtr((noise - root) / self.error))

    def _survival(self, t: float, side: int) -> float:
        """Return P(side · T >= t), t > 0, with Student's tail in place of its quadrature.

        Where noise makes the tail smaller it is multiplied by the ratio of the two, which share
        their error; where it makes it larger their difference is added. Far out the quadrature of
        Student's tail is much too small, and the ratio of the two is no correction.
        """
        from scipy.special import ndtr, stdtr  # noqa: PLC0415

        noisy, exact = self._tail(t, side), float(stdtr(self.freedom, -t))
        found = float(np.mean(ndtr(-t * np.sqrt(self.exact / self.size) / self.error)))
        return noisy * (exact / found) if noisy < found else noisy - found + exact

    def pvalue(self, t: float, alternative: Alternative) -> float:
        """Return the p-value of t, above 0."""
        size = max(abs(t), _SMALLEST)
        if alternative == "two-sided":
            found = self._survival(size, 1) + self._survival(size, -1)
        else:
            side = 1 if alternative == "greater" else -1
            if side * t <= 0:  # the tail on the other side is the smaller one
                found = 1.0 - self._survival(size, -side)
            else:
                found = self._survival(size, side)
        return min(1.0, max(found, _TINY))

    def critical(self, alternative: Alternative, alpha: float) -> float:
        """Find where the p-value is alpha: regula falsi in the logarithm, Illinois' form."""
        goal, sign = math.log(alpha), -1.0 if alternative == "less" else 1.0

        def excess(t: float) -> float:
            return math.log(max(self.pvalue(sign * t, alternative), _TINY)) - goal

        low, high = (0.0 if alternative == "two-sided" else -8.0), 4.0
        below, above = excess(low), excess(high)
        while above > 0:
            low, below, high = high, above, 2 * high
            above = excess(high)
            if high > _LARGEST:  # noise hides everything
                return high
        for _ in range(60):
            middle = (low * above - high * below) / (above - below)
            value = excess(middle)
            if abs(value) < _PRECISION:
                return middle
            if value > 0:
                low, below, above = middle, value, above / 2
            else:
                high, above, below = middle, value, below / 2
        return high


def _freedom(contrast: Contrast) -> float:
    """Return the degrees of freedom: of the pooled variance, or Welch and Satterthwaite's."""
    if contrast.equal:
        return float(contrast.freedom)
    parts = [float(each.covariance[0, 0]) / each.plan.n for each in contrast.samples]
    if sum(parts) == 0:
        return float(min(each.plan.n for each in contrast.samples) - 1)
    squares = (p**2 / (e.plan.n - 1) for p, e in zip(parts, contrast.samples, strict=True))
    return sum(parts) ** 2 / sum(squares)


@lru_cache(maxsize=8)
def _lattice(dimension: int) -> Floats:
    """Return points spread evenly over the unit cube: multiples of powers of a golden ratio.

    The generalised golden ratio g solves g^(d+1) = g + 1.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    points: Floats = ((np.arange(_NODES)[:, None] + 0.5) * steps + 0.5) % 1.0
    return points


@lru_cache(maxsize=32)
def _noise(normal: bool, column: int, dimension: int) -> tuple[Floats, Floats]:
    """Return noise of scale 1 at the lattice points, and weights: it is sampled wider."""
    from scipy.special import ndtri  # noqa: PLC0415

    place = _lattice(dimension)[:, column]
    if normal:
        drawn = _WIDER_NORMAL * ndtri(place)
        return drawn, _WIDER_NORMAL * np.exp(-(drawn**2) / 2 * (1 - _WIDER_NORMAL**-2))
    centred = 2 * place - 1
    drawn = -_WIDER * np.sign(centred) * np.log1p(-np.abs(centred))
    return drawn, _WIDER * np.exp(-np.abs(drawn) * (1 - 1 / _WIDER))


@lru_cache(maxsize=32)
def _chi_square(freedom: int, column: int, dimension: int) -> Floats:
    """Return a chi-square variable over its degrees of freedom, at the lattice points."""
    from scipy.special import gammaincinv  # noqa: PLC0415

    drawn: Floats = gammaincinv(freedom / 2, _lattice(dimension)[:, column]) * (2 / freedom)
    return drawn
