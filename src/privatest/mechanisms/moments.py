"""Means and second moments of one sample or two in one joint Gaussian release.

Proof: docs/proofs/moments.md. Shares, the embedding tests and Hotelling's test build on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privatest.core.noise import NoiseSource
from privatest.core.privacy import Adjacency, Budget, Sensitivity
from privatest.data.encoding import Sample
from privatest.data.summaries import sum_rounding
from privatest.mechanisms.additive import (
    entries_deviation,
    entries_scale,
    gaussian,
    gaussian_noise_scale,
    linf_mean,
    linf_scale,
    noisy_entries,
)
from privatest.mechanisms.covariance import EdScales, covariance_ed, ed_scales
from privatest.numerics.moments import (
    Moments,
    NoisyMoments,
    PooledMoments,
    joint_sensitivity,
    moments,
    moments_rounding,
    smat,
    svec,
    svec_size,
)

_CENTRE = 2.0  # noise on the pooled mean, in units of that on the difference

Floats = NDArray[np.float64]


def moment_scale(
    n: int,
    dimension: int,
    *,
    radius: float,
    budget: Budget,
    spread: float | None = None,
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> tuple[float, float]:
    """Return (sigma, sigma_second) of :func:`release_moments`: public, known before any data."""
    ratio = radius if balance is None else balance
    rounding = moments_rounding(n, radius, dimension, feature_error)
    sensitivity = _sensitivity(n, ratio, radius, spread, rows_per_person, rounding)
    sigma = gaussian_noise_scale(dimension + svec_size(dimension), sensitivity, budget)
    return sigma, ratio * sigma


def release_moments(
    sample: Moments,
    *,
    radius: float,
    budget: Budget,
    noise: NoiseSource,
    spread: float | None = None,
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> NoisyMoments:
    """Release mean and second moment of rows of norm at most ``radius``.

    Parameters
    ----------
    sample : Moments
        From :func:`privatest.numerics.moments.moments`.
    radius, spread : float
        No row is longer than ``radius``; no two are further apart than ``spread``.
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.
    balance : float, optional
        sigma_second / sigma, a public choice; ``radius`` by default.
    rows_per_person : int
        Rows that a person may have.
    feature_error : float
        Bound on the l2 rounding error of one row.

    Notes
    -----
    **Sensitivity** :func:`joint_sensitivity` with alpha = 1/n and beta = 1/(n · balance), times
    ``rows_per_person``, plus rounding.

    **Privacy** Both together are (epsilon, delta)-private by one analytic Gaussian mechanism.
    """
    ratio = radius if balance is None else balance
    rounding = moments_rounding(sample.n, radius, len(sample.mean), feature_error)
    sensitivity = _sensitivity(sample.n, ratio, radius, spread, rows_per_person, rounding)
    values = np.concatenate([sample.mean, svec(sample.second) / ratio])
    sigma = gaussian_noise_scale(values.size, sensitivity, budget)
    noisy = gaussian(values, sensitivity=sensitivity, budget=budget, noise=noise)
    dimension = len(sample.mean)
    second = smat(noisy[dimension:] * ratio)
    return NoisyMoments(sample.n, noisy[:dimension], second, sigma, ratio * sigma)


def _sensitivity(
    n: int,
    ratio: float,
    radius: float,
    spread: float | None,
    rows_per_person: int,
    errors: tuple[float, float],
) -> Sensitivity:
    moved = joint_sensitivity(1 / n, 1 / (n * ratio), radius=radius, spread=spread)
    slack = 2 * math.hypot(errors[0], errors[1] / ratio)  # of each neighbour
    # the slack too for each row: a person's rows may lie in several samples, each with its own
    return Sensitivity(rows_per_person * (moved + slack) * (1 + 1e-12), "l2")


def difference_sensitivity(
    n: int,
    m: int,
    *,
    radius: float,
    spread: float | None = None,
    balance: float | None = None,
    adjacency: Adjacency = "one",
) -> float:
    """How far (w, g/2, svec(C)/balance) moves in l2.

    w = m_x - m_y, g the pooled mean, C = (m M_x + n M_y)/N; ``balance`` is ``radius`` by default.

    Notes
    -----
    **Sensitivity** A row of the sample of size n1 (the other n2) enters w with weight 1/n1, g/2
    with 1/(2N) and C with n2/(N n1): :func:`joint_sensitivity` of alpha² = 1/n1² + 1/(2N)² and
    beta = n2/(N n1 balance); the larger of the two samples', or for "both" their sum. Proof:
    docs/proofs/moments.md.

    Examples
    --------
    >>> from privatest.core.privacy import gaussian_scale
    >>> bound = difference_sensitivity(1000, 1000, radius=1.0)
    >>> round(gaussian_scale(bound, Budget(1, "1e-5")), 8)
    0.00769089
    """
    ratio = radius if balance is None else balance
    total = n + m
    moved = []
    for own, other in ((n, m), (m, n)):
        alpha = math.hypot(1 / own, 1 / (_CENTRE * total))
        beta = other / (total * own * ratio)
        moved.append(joint_sensitivity(alpha, beta, radius=radius, spread=spread))
    return sum(moved) if adjacency == "both" else max(moved)


def release_difference(
    x: Moments,
    y: Moments,
    *,
    radius: float,
    spread: float | None,
    budget: Budget,
    noise: NoiseSource,
    adjacency: Adjacency = "one",
    balance: float | None = None,
    rows_per_person: int = 1,
    feature_error: float = 0.0,
) -> PooledMoments:
    """Release difference and mean of the samples' means, and their second moment, together.

    Parameters
    ----------
    x, y : Moments
        Of rows of norm at most ``radius`` and at most ``spread`` apart.
    budget : Budget
        Needs delta > 0.
    noise : NoiseSource
        The secret randomness.
    adjacency : {"one", "both"}
        What is hidden.
    balance : float, optional
        sigma_second / sigma_difference, a public choice; ``radius`` by default.
    rows_per_person : int
        Rows that a person may have.
    feature_error : float
        Bound on the l2 rounding error of one row.

    Notes
    -----
    **Sensitivity** :func:`difference_sensitivity` times ``rows_per_person``, plus rounding.

    **Privacy** All of it together is (epsilon, delta)-private by one analytic Gaussian mechanism.
    """
    ratio = radius if balance is None else balance
    total = x.n + y.n
    moved = difference_sensitivity(
        x.n, y.n, radius=radius, spread=spread, balance=ratio, adjacency=adjacency
    )
    errors = [moments_rounding(each.n, radius, len(x.mean), feature_error) for each in (x, y)]
    mean, second = map(max, zip(*errors, strict=True))
    error = math.hypot(2 * mean, mean / _CENTRE, second / ratio) + 1e-15 * radius
    bound = Sensitivity((rows_per_person * moved + 2 * error) * (1 + 1e-12), "l2", adjacency)
    centre = (x.n * x.mean + y.n * y.mean) / total
    pooled = (y.n * x.second + x.n * y.second) / total
    values = np.concatenate([x.mean - y.mean, centre / _CENTRE, svec(pooled) / ratio])
    sigma = gaussian_noise_scale(values.size, bound, budget)
    noisy = gaussian(values, sensitivity=bound, budget=budget, noise=noise)
    size = len(centre)
    return PooledMoments(
        n_x=x.n,
        n_y=y.n,
        difference=noisy[:size],
        centre=_CENTRE * noisy[size : 2 * size],
        second=smat(ratio * noisy[2 * size :]),
        sigma_difference=sigma,
        sigma_centre=_CENTRE * sigma,
        sigma_second=ratio * sigma,
        share=y.n / total,
    )


def svec_noise(
    dimension: int, sigma: float, rng: np.random.Generator, count: int
) -> NDArray[np.float64]:
    """Draw symmetric matrices like the noise on ``second``: for null laws, not for privacy."""
    return smat(rng.normal(scale=sigma, size=(count, svec_size(dimension))))


def nearest_psd(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut negative eigenvalues; leading axes are a stack of matrices."""
    if matrix.shape[-1] == 1:  # the number itself is the eigenvalue
        return np.maximum(matrix, 0.0)
    values, vectors = np.linalg.eigh((matrix + np.swapaxes(matrix, -1, -2)) / 2)
    cut = np.maximum(values, 0.0)
    result: NDArray[np.float64] = (vectors * cut[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result


# The mean and covariance of one sample, with its bounds mapped to [-1, 1]^d.


MEAN_SHARE = 0.7  # fraction of epsilon for the mean, in tests; the rest is for the covariance
ENTRIES_UP_TO = 3  # columns: noise on entries is nearer than on eigenvalues and axes, or as near
_PARTS = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon


@dataclass(frozen=True, slots=True)
class MomentPlan:
    """What is known about a release before any data is read.

    Attributes
    ----------
    n, dimension : int
        The numbers of rows and columns.
    rows_per_person : int
        The most rows that a person may have.
    budget : Budget
        What is spent on this sample.
    mean_scale : float
        Scale s of the noise on the mean: density exp(-|z|∞/s), or normal with deviation s.
    variance : float
        Variance of the noise on each entry of the mean.
    ed : EdScales or None
        Scales of the noise on eigenvalues and axes of the covariance, for rows of norm at most 1,
        if delta = 0 and there is one column, or more than three.
    entries : float
        Scale of the noise on the entries of the second moment, if delta = 0 and there are two or
        three columns.
    sigma_second : float
        Standard deviation of the noise on the second moment, if delta > 0.
    mean_share : float
        Fraction of epsilon for the mean, if delta = 0.
    """

    n: int
    dimension: int
    rows_per_person: int
    budget: Budget
    mean_scale: float
    variance: float
    ed: EdScales | None = None
    entries: float = 0.0
    sigma_second: float = 0.0
    mean_share: float = MEAN_SHARE

    @property
    def unbiased(self) -> float:
        """n/(n - 1), by which a covariance with divisor n is multiplied."""
        return self.n / (self.n - 1)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedMoments:
    """A private mean and covariance; everything here was paid for.

    Attributes
    ----------
    plan : MomentPlan
        The noise.
    mean, covariance : ndarray
        What was released; the covariance has divisor n - 1.
    about : ndarray
        The point about which the second moment was taken; a function of ``mean``.
    """

    plan: MomentPlan
    mean: Floats
    covariance: Floats
    about: Floats

    @property
    def unit(self) -> float:
        """The most that one row adds to the second moment."""
        return _reach(self.about) ** 2 / self.plan.n

    @property
    def second_scale(self) -> float:
        """Scale of the noise on the mean square of one column: Laplace's, or a deviation."""
        plan = self.plan
        return plan.sigma_second if plan.ed is None else self.unit * plan.ed.eigenvalues

    @property
    def ridge(self) -> float:
        """The size of the noise on the covariance; a statistic adds it to the diagonal."""
        if self.plan.budget.delta > 0:
            return self.plan.sigma_second * math.sqrt(self.plan.dimension / 2)
        return self._moment_noise / math.sqrt(2)

    @property
    def spread_noise(self) -> float:
        """Standard deviation of the noise on a variance: second moment minus squared mean."""
        variance = self.plan.variance
        square = 2 * float(np.linalg.norm(self.mean - self.about)) * math.sqrt(variance)
        return math.hypot(self._moment_noise, square, 4 * variance)

    @property
    def _moment_noise(self) -> float:
        """Standard deviation of the noise on the second moment in a direction."""
        plan = self.plan
        if plan.budget.delta > 0:
            return plan.sigma_second
        if plan.ed is None:
            return entries_deviation(plan.dimension, plan.entries)
        return plan.ed.deviation * self.unit


def plan_release(
    n: int,
    dimension: int,
    budget: Budget,
    rows_per_person: int,
    mean_share: float = MEAN_SHARE,
) -> MomentPlan:
    """Choose the noise from public values only.

    Notes
    -----
    **Sensitivity** The mean moves by at most 2/n in each entry at once, the second moment as in
    :func:`privatest.mechanisms.additive.noisy_entries` or
    :func:`privatest.mechanisms.covariance.ed_scales`; with delta > 0 both together as in
    :func:`privatest.numerics.moments.joint_sensitivity`. Times ``rows_per_person``.
    """
    if budget.delta > 0:
        radius = math.sqrt(dimension)
        sigma, sigma_second = moment_scale(
            n, dimension, radius=radius, budget=budget, rows_per_person=rows_per_person
        )
        scales = sigma, sigma**2
        return MomentPlan(n, dimension, rows_per_person, budget, *scales, sigma_second=sigma_second)
    mean_epsilon, epsilon = _shares(budget, mean_share)
    scale = linf_scale(_mean_sensitivity(n, dimension, rows_per_person), mean_epsilon)
    scales = scale, (dimension + 1) * (dimension + 2) / 3 * scale**2
    plan = MomentPlan(n, dimension, rows_per_person, budget, *scales, mean_share=mean_share)
    if 1 < dimension <= ENTRIES_UP_TO:
        error = _entry_rounding(n, dimension)
        entries = entries_scale(n, epsilon=epsilon, rows_per_person=rows_per_person, error=error)
        return replace(plan, entries=entries)
    ed = ed_scales(
        n,
        dimension,
        epsilon=epsilon,
        rows_per_person=rows_per_person,
        error=_second_rounding(n, dimension),
    )
    return replace(plan, ed=ed)


def cube_moments(*samples: Sample) -> list[Moments]:
    """Return the moments of encoded rows, mapped from [0, 1]^d to [-1, 1]^d, in one pass."""
    dimension = samples[0].width
    return moments(*samples, psi=_cube, dimension=dimension, radius=math.sqrt(dimension))


def _cube(rows: Floats) -> Floats:
    cube: Floats = 2 * rows
    cube -= 1
    return cube


def release_sample(sample: Moments, plan: MomentPlan, noise: NoiseSource) -> ReleasedMoments:
    """Release mean and covariance from the moments of rows in [-1, 1]^d.

    Notes
    -----
    **Sensitivity** :func:`plan_release`.

    **Privacy** Together they are private at ``plan.budget``: if delta = 0, 0.7 of epsilon goes to
    the mean and 0.3 to the second moment; otherwise one Gaussian mechanism releases both.
    """
    if plan.budget.delta > 0:
        released = release_moments(
            sample,
            radius=math.sqrt(plan.dimension),
            budget=plan.budget,
            noise=noise,
            rows_per_person=plan.rows_per_person,
        )
        about = np.zeros(plan.dimension)
        covariance = centred(released.second, released.mean, plan.variance)
        return ReleasedMoments(plan, released.mean, plan.unbiased * covariance, about)
    mean_epsilon, epsilon = _shares(plan.budget, plan.mean_share)
    mean = linf_mean(
        sample.mean,
        sensitivity=_mean_sensitivity(plan.n, plan.dimension, plan.rows_per_person),
        epsilon=mean_epsilon,
        noise=noise,
    )
    if plan.ed is None:
        second = noisy_entries(
            sample.second,
            n=plan.n,
            epsilon=epsilon,
            noise=noise,
            rows_per_person=plan.rows_per_person,
            error=_entry_rounding(plan.n, plan.dimension),
        )
        covariance = plan.unbiased * centred(second, mean, plan.variance)
        return ReleasedMoments(plan, mean, covariance, np.zeros_like(mean))
    about = _about(mean, plan)
    unit = _reach(about) ** 2 / plan.n
    second = unit * covariance_ed(
        _moved(sample, about) / unit,
        n=plan.n,
        epsilon=epsilon,
        noise=noise,
        rows_per_person=plan.rows_per_person,
        error=_second_rounding(plan.n, plan.dimension),
    )
    covariance = plan.unbiased * centred(second, mean - about, plan.variance)
    return ReleasedMoments(plan, mean, covariance, about)


def _moved(sample: Moments, about: Floats) -> Floats:
    """Return the second moment about a point, from that about 0: rows are read once."""
    cross = np.outer(about, sample.mean)
    return sample.second - cross - cross.T + np.outer(about, about)


def _about(mean: Floats, plan: MomentPlan) -> Floats:
    """Return the point for the second moment: the released mean, if clearly off the centre.

    A mean far from the centre would become the leading axis of the second moment, and the noise
    on that axis would swamp the covariance. With one column there are no axes, and a moment
    about the centre needs less noise.
    """
    if plan.dimension == 1:
        return np.zeros(1)
    beyond = np.maximum(np.abs(mean) - 2 * math.sqrt(plan.variance), 0.0)
    return np.asarray(np.sign(mean) * np.minimum(beyond, 1.0))


def _reach(about: Floats) -> float:
    """Return the largest |x - about| over the cube, with a margin for rounding."""
    corner = 1 + np.abs(about)
    return math.sqrt(corner.dot(corner)) * (1 + 1e-12)


def centred(second: Floats, mean: Floats, variance: float) -> Floats:
    """Return the covariance from a noisy mean and second moment, for stacks along leading axes.

    The squared noise on the mean has expectation ``variance`` · I, which is added back.
    """
    square = mean[..., :, None] * mean[..., None, :]
    return nearest_psd(second - square + variance * np.eye(mean.shape[-1]))


def _shares(budget: Budget, mean_share: float) -> tuple[float, float]:
    epsilon = budget.pure_epsilon * _PARTS
    return mean_share * epsilon, (1 - mean_share) * epsilon


def _mean_sensitivity(n: int, dimension: int, rows_per_person: int) -> float:
    # an entry is at most 1, but its fixed point is that of rows of norm sqrt(d): cube_moments
    relative, fixed = sum_rounding(n, math.sqrt(dimension))
    slack = relative + fixed / n
    # the slack too for each row: a person's rows may lie in several samples, each with its own
    return (2 / n + 2 * slack) * rows_per_person * (1 + 1e-12)


def _entry_rounding(n: int, dimension: int) -> float:
    """Bound the rounding error of an entry of the second moment, by that of all of them."""
    return moments_rounding(n, math.sqrt(dimension), dimension)[1]


def _second_rounding(n: int, dimension: int) -> float:
    """Bound the rounding error of Σ x x', |x| <= 1, in the Frobenius norm.

    x = (y - a)/r with y and a in the cube, both of norm sqrt(d) at most, and r² >= d: the error of
    the second moment of y, twice sqrt(d) that of its mean, and a few roundings of each entry.
    """
    mean, second = moments_rounding(n, math.sqrt(dimension), dimension)
    moved = (second + 2 * math.sqrt(dimension) * mean) / dimension
    return n * (moved + 16 * (dimension + 1) * 2.0**-53)
