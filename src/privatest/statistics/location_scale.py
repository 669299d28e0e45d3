"""Distance of a sample to a location-scale family: minimum over all members, certified.

With beta = 1/scale and mu = location/scale, the sample lies within (c1, c2) of a member if

    a_i <= beta x_i - mu <= b_i,   a_i = q(i/n - c1),   b_i = q((i - 1)/n + c2),

x sorted: a linear program (:mod:`privatest.statistics.location_scale_program`). The two lines that
decide it are a certificate, which excludes other levels too.

Levels are integers: c = k/(n steps), and programs are solved exactly, so that the minimum is the
minimum, whatever the data. Proof: docs/proofs/location-scale.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from privatest.statistics.families import Family
from privatest.statistics.location_scale_program import Certificate, GridSample, program

__all__ = [
    "GRID_BITS",
    "QUANTILE_SLACK",
    "first_feasible",
    "ks_fit",
    "ks_fit_sensitivity",
    "on_grid",
]

GRID_BITS = 40  # records are rounded to this many bits of their bounds
QUANTILE_SLACK = 1  # computed quantiles are this many grid steps from a nondecreasing function
_SECTIONS = 64
_PLAIN_STEPS = 2  # after that many steps every other one halves the interval, on a log scale

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def on_grid(unit: Floats) -> GridSample:
    """Round records of [0, 1] to a grid of 2^-40 and sort them.

    A fixed public map of each record: neighbours stay neighbours.
    """
    top = 1 << GRID_BITS
    x = np.sort(np.rint(unit * float(top)).astype(np.int64))
    low, high = int(np.searchsorted(x, 1)), x.size - int(np.searchsorted(x, top))
    return GridSample(x - x[(x.size - 1) // 2], low, high)


def ks_fit_sensitivity(steps: int, rows_per_person: int = 1) -> int:
    """Bound how far :func:`ks_fit` moves if one person's records are replaced, as an integer.

    A replaced record moves the exact minimum by at most 1/n = ``steps`` grid steps; inexact
    quantiles move what is computed by at most one step, for each of two neighbours.
    """
    return rows_per_person * steps + 2 * QUANTILE_SLACK


def ks_fit(sample: GridSample, family: Family, steps: int) -> int:
    """Return n · steps · inf over members of the Kolmogorov-Smirnov distance, rounded up.

    Parameters
    ----------
    sample : GridSample
        From :func:`on_grid`.
    family : Family
        Where members come from.
    steps : int
        Grid steps for a distance of 1/n; even.

    Examples
    --------
    >>> from privatest.statistics.families import family_named
    >>> sample = on_grid(np.array([-1.2, -0.3, 0.1, 0.4, 2.5]) / 10 + 0.5)
    >>> round(ks_fit(sample, family_named("norm"), 2**36) / (5 * 2**36), 9)
    0.182114579
    """
    n = sample.size
    least = max(steps // 2, *family.least)  # a step of height 1/n is at least half of it away
    middle = n * steps // 2  # beta = 0 puts all records at the median: always feasible
    typical = min(middle, steps // 2 + int(0.45 * steps * n**0.5))
    fit = first_feasible(sample, family, steps, None, (least, typical, middle))
    return fit.level


# --- the smallest feasible level on a path ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """The smallest feasible level, and a certificate that the one before is not."""

    level: int
    certificate: Certificate | None


def first_feasible(
    sample: GridSample,
    family: Family,
    steps: int,
    first: int | None,
    search: tuple[int, int, int],
) -> Fit:
    """Return the smallest k for which (k, k) is feasible, or (first, k) if ``first`` is given.

    ``search`` is (least, first guess, most); ``most`` is feasible. An exact certificate at k
    excludes all levels before its root, and is tight at k: two to seven programs usually
    suffice. Every step shortens the interval of integers, and halving it makes sure that there
    are never more than about a hundred.
    """
    low, guess, high = search
    certificate: Certificate | None = None
    count = 0
    while low < high:
        if count > _PLAIN_STEPS and count % 2:
            guess = isqrt(max(low, 1) * high)
        guess = min(max(guess, low), high - 1)
        feasible, found = program(sample, family, steps, (guess if first is None else first, guess))
        if feasible:
            high = guess
        else:
            low, certificate = guess + 1, found
        if found is not None:
            root = _root(found, family, (sample.size, steps), first, (low, high))
            if root > low:
                low, certificate = root, found
        guess = low
        count += 1
    return Fit(low, certificate)


def _root(
    certificate: Certificate,
    family: Family,
    shape: tuple[int, int],
    first: int | None,
    search: tuple[int, int],
) -> int:
    """Return the first level in [low, high] that the certificate does not exclude, or high.

    The sum grows with the level. Floats choose where to look, exact signs decide.
    """
    low, high = search  # below low is excluded; high is not, or is the end
    exact = 0
    while low < high:
        middle = (low + high) // 2
        if exact == 0:
            middle = min(max(_float_root(certificate, family, shape, first, search), low), high - 1)
        elif exact == 1:
            middle = max(low, high - 1)
        exact += 1
        level = middle if first is None else first, middle
        if _allows(certificate, family, shape, level):
            high = middle
        else:
            low = middle + 1
    return low


def _float_root(
    certificate: Certificate,
    family: Family,
    shape: tuple[int, int],
    first: int | None,
    search: tuple[int, int],
) -> int:
    low, high = search
    while high - low > 1:
        inner = np.linspace(low, high, min(_SECTIONS, high - low) + 1)[1:-1].astype(np.int64)
        levels = np.stack([inner if first is None else np.full_like(inner, first), inner], axis=1)
        b, a = _limits(certificate, family, shape, levels)
        allowed = (b - a) @ np.array(certificate.weights, dtype=np.float64) >= 0
        place = int(np.argmax(allowed)) if allowed.any() else inner.size
        low = int(inner[place - 1]) if place else low
        high = int(inner[place]) if place < inner.size else high
    return high


def _limits(
    certificate: Certificate, family: Family, shape: tuple[int, int], levels: Integers
) -> tuple[Floats, Floats]:
    """Return b and a of the certificate's records, one row for each level."""
    n, steps = shape
    upper, lower = np.array(certificate.upper), np.array(certificate.lower)
    b = family.upper_limits(upper * steps + levels[:, 1:], n * steps)
    a = family.lower_limits((lower + 1) * steps - levels[:, :1], n * steps)
    return b, a


def _allows(
    certificate: Certificate, family: Family, shape: tuple[int, int], level: tuple[int, int]
) -> bool:
    """Decide exactly whether the certificate leaves a level open."""
    b, a = _limits(certificate, family, shape, np.array([level], dtype=np.int64))
    if np.isinf(b).any() or np.isinf(a).any():
        return True  # b = inf or a = -inf: no limit at all
    return _total(certificate, b[0], a[0]) >= 0


def _total(certificate: Certificate, b: Floats, a: Floats) -> Fraction:
    terms = zip(certificate.weights, b, a, strict=True)
    return sum(((Fraction(float(u)) - Fraction(float(v))) * w for w, u, v in terms), Fraction(0))
