"""Classical and private p-values of the same rows at epsilon 10,000, for every public test.

As epsilon grows a test has to become the one that people know. Rows are ideal samples (quantiles of
a law in a random order), moved until the classical p-value is about .05, .01 and .001; n = 30, 100
and 400, one- and two-sided alternatives, with and without ties, bounds of ±4 and ±16 standard
deviations where bounds matter. The noise is simulated, from three seeds; options are defaults, but
for more draws where a p-value is simulated.

Run: python -m benchmarks.level.limits [--only NAME ...]. Writes results/level-limits.json, from
which ``python -m tools.limits`` writes docs/limits.md. A test compares both with ``DEVIATIONS``.
"""

from __future__ import annotations

import argparse
import math
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from scipy import special, stats

import privatest as pt
from benchmarks.measure import RESULTS, save
from benchmarks.report import print_table
from privatest.noise import SimulatedNoise

NAME, EPSILON, TOLERANCE = "level-limits", 10_000.0, 0.05
SIZES, TARGETS, SEEDS = (30, 100, 400), (0.05, 0.01, 0.001), (0, 1, 2)
DRAWS = 49_999  # where a p-value is simulated by default
SIDES = ("two-sided", "greater", "less")
_DRAWN: dict[str, Any] = {"n_simulations": DRAWS, "rng": 0}
Floats = NDArray[np.float64]
Data = tuple[Any, ...]

# Tests that have no classical counterpart, and why.
WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("mmd_test", "hsic_test", "ipm_test", "permutation_test", "me_permutation_test"),
            *("scf_permutation_test", "conditional_randomisation_test"),
        ),
        "a permutation test: its p-value has the error of its own random permutations, and a "
        "resolution of 1/(B + 1)",
    ),
    **dict.fromkeys(
        ("test_of_tests", "sarrm_test"),
        "a vote of tests on subsets; SARRM releases the decision alone",
    ),
    **dict.fromkeys(
        ("compare", "compare_all", "compare_releases"),
        "it compares noisy releases, and sees no rows",
    ),
    **dict.fromkeys(("me_test", "scf_test"), "its features are its own; SciPy has no such test"),
    "conditional_independence_test": "its regressions are its own; SciPy has no such test",
    "ks_family": "it takes the nearest member of the family, not a fitted one",
    "symmetry_test": "SciPy has no test of symmetry",
}

# Cases, by pattern, that are further than 5% from their counterpart, and why. A test fails if one
# of them agrees, or if another one does not.
_WIDE = "variances are raised by two deviations of their noise, and 1/(simulations + 1) is added"
_SHAPE = "has the shape of the exact law without ties where SciPy's is normal, or the reverse"
_COINS = "ties are broken by secret coins"
_SPREAD = "p-values of a discrete statistic are spread at random within a step of it"
_MARGIN = "a bound on the error of the law is added"
DEVIATIONS: Mapping[str, str] = {
    **dict.fromkeys(("pearsonr: two-sided, *16 sd", "linregress: two-sided, *16 sd"), _WIDE),
    **dict.fromkeys(("pearsonr: less, *16 sd", "linregress: less, *16 sd"), _WIDE),
    **dict.fromkeys(("kendalltau: *", "spearmanr: *, ties", "wilcoxon: *, ties and zeros"), _SHAPE),
    **dict.fromkeys(("mannwhitneyu: *, ties", "ks_2samp: *, ties"), _COINS),
    "ks_2samp: *, no ties": _SPREAD,
    **dict.fromkeys(("median_test: *", "binom_test: *", "proportions_test: *"), _SPREAD),
    "spearmanr: *, no ties": f"{_MARGIN}: .4/n²",
    "ks_1samp: Cramér–von Mises": f"{_MARGIN}: .12/n²",
    "kruskal: *": "its statistic is the largest distance of mean ranks, not H",
    "hodges_lehmann: *": "read off an interval on cells of a grid",
    "tost_proportions: *": "its intervals are made of exact ones, not of Wilson's",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A test beside its classical counterpart.

    Attributes
    ----------
    test : str
        The public function.
    variant : str
        Which alternative, ties and bounds.
    rows : callable
        From a size and an effect to data; the classical p-value falls as the effect grows.
    private : callable
        From data and options to our result.
    classical : callable
        From data to the p-value.
    counterpart : str
        What that is, in words.
    draws : int
        Simulations behind our p-value; 0 if none.
    quick : callable, optional
        About the same as ``classical``, to find the effect by.
    """

    test: str
    variant: str
    rows: Callable[[int, float], Data]
    private: Callable[..., Any] = field(repr=False)
    classical: Callable[..., float] = field(repr=False)
    counterpart: str
    draws: int = 0
    quick: Callable[..., float] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Test and variant."""
        return f"{self.test}: {self.variant}"

    def cells(
        self, sizes: tuple[int, ...] = SIZES, targets: tuple[float, ...] = TARGETS
    ) -> Iterator[dict[str, Any]]:
        """Measure sizes and targets, all by default."""
        for n in sizes:
            for target, effect in self._effects(n, targets).items():
                data = self.rows(n, effect)
                classical = float(self.classical(*data))
                yield {
                    "test": self.test,
                    "variant": self.variant,
                    "counterpart": self.counterpart,
                    "n": n,
                    "target": target,
                    "classical": classical,
                    "private": [self._run(data, seed) for seed in SEEDS],
                    "tolerance": self.tolerance(classical),
                }

    def tolerance(self, pvalue: float) -> float:
        """Return 5%, and three standard errors of a p-value that is simulated."""
        if not self.draws:
            return TOLERANCE
        return TOLERANCE + 3 * math.sqrt((1 - pvalue) / (self.draws * pvalue))

    def _run(self, data: Data, seed: int) -> float:
        return float(self.private(*data, epsilon=EPSILON, noise=SimulatedNoise(seed)).pvalue)

    def _effects(self, n: int, targets: tuple[float, ...]) -> dict[float, float]:
        """Return the effect at which the classical p-value is nearest to each target."""
        found, classical = {}, self.quick or self.classical
        for target in targets:
            low, high, best = 0.0, 1.0, (math.inf, 0.0)
            for _ in range(26):
                effect = (low + high) / 2
                pvalue = max(float(classical(*self.rows(n, effect))), 1e-300)
                best = min(best, (abs(math.log(pvalue / target)), effect))
                low, high = (effect, high) if pvalue > target else (low, effect)
            found[target] = best[1]
        return found


# --- rows -------------------------------------------------------------------------------------


def ideal(n: int, seed: int, *, offset: float = 0.5) -> Floats:
    """Return quantiles of the standard normal law, in a random order."""
    order = np.random.default_rng(seed).permutation(n)
    found: Floats = stats.norm.ppf((order + offset) / n)
    return found


def _tied(values: Floats, ties: bool) -> Floats:
    return np.round(2 * values) / 2 if ties else values


def two_samples(side: str, *, ties: bool = False) -> Callable[[int, float], Data]:
    """Two normal samples of n and 1.25 n rows, the first one moved."""
    sign = -1 if side == "less" else 1

    def rows(n: int, effect: float) -> Data:
        x = ideal(n, 1) + sign * effect * 12 / math.sqrt(n)
        return _tied(x, ties), _tied(ideal(n * 5 // 4, 2, offset=0.4), ties)

    return rows


def one_sample(side: str, *, ties: bool = False) -> Callable[[int, float], Data]:
    """One normal sample about an effect; with ties it has zeros."""
    sign = -1 if side == "less" else 1

    def rows(n: int, effect: float) -> Data:
        return (_tied(ideal(n, 1, offset=0.45) + sign * effect * 10 / math.sqrt(n), ties),)

    return rows


def several_samples(n: int, effect: float) -> Data:
    """Three normal samples, of n, 1.25 n and n rows."""
    moved = effect * 8 / math.sqrt(n)
    sizes = (n, n * 5 // 4, n)
    return tuple(
        ideal(size, i, offset=0.4 + 0.1 * i) + (i - 1) * moved for i, size in enumerate(sizes)
    )


def pairs(side: str, *, ties: bool = False) -> Callable[[int, float], Data]:
    """Two columns, the second of which follows the first."""
    sign = -1 if side == "less" else 1

    def rows(n: int, effect: float) -> Data:
        x, noise = ideal(n, 1), ideal(n, 2)
        noise = noise - x * (x @ noise) / (x @ x)  # so that no effect is no correlation
        return _tied(x, ties), _tied(sign * effect * 10 / math.sqrt(n) * x + noise, ties)

    return rows


def coins(side: str) -> Callable[[int, float], Data]:
    """Return successes and failures, more or fewer than half."""
    sign = -1 if side == "less" else 1

    def rows(n: int, effect: float) -> Data:
        return (np.arange(n) < round(n * min(max(0.5 + sign * effect / 2, 0.0), 1.0)),)

    return rows


def two_coins(side: str) -> Callable[[int, float], Data]:
    """Successes and failures of two groups."""
    sign = -1 if side == "less" else 1

    def rows(n: int, effect: float) -> Data:
        m = n * 5 // 4
        first = min(max(0.4 + sign * effect * 0.6, 0.0), 1.0)
        return np.arange(n) < round(n * first), np.arange(m) < round(0.4 * m)

    return rows


def table(n: int, effect: float) -> Data:
    """Two columns of two and three categories."""
    shares = np.array([[0.2, 0.2, 0.2], [0.15, 0.15, 0.1]])
    shares += effect * np.array([[0.15, 0.05, -0.2], [-0.15, -0.05, 0.2]])
    counts = np.round(n * np.maximum(shares, 0.0)).astype(int)
    codes = np.repeat(np.arange(6), counts.ravel())
    return codes // 3, codes % 3


def dice(n: int, effect: float) -> Data:
    """One column of three categories."""
    first = round(n / 3 * (1 + effect))
    second = (n - first) // 2
    return (np.repeat(np.arange(3), [first, second, n - first - second]),)


# --- classical tests that SciPy does not have ------------------------------------------------


def tost(first: Any, second: Any) -> float:
    """Return the larger p-value of two one-sided tests."""
    return float(max(first.pvalue, second.pvalue))


def hotelling_two(x: Floats, y: Floats) -> float:
    """Hotelling's T² of two samples, by its F law."""
    n, m, d = len(x), len(y), x.shape[1]
    pooled = ((n - 1) * np.cov(x.T) + (m - 1) * np.cov(y.T)) / (n + m - 2)
    apart = x.mean(axis=0) - y.mean(axis=0)
    t2 = n * m / (n + m) * apart @ np.linalg.solve(pooled, apart)
    return float(stats.f.sf((n + m - d - 1) / (d * (n + m - 2)) * t2, d, n + m - d - 1))


def hotelling_one(x: Floats) -> float:
    """Hotelling's T² of one sample against 0."""
    n, d = x.shape
    mean = x.mean(axis=0)
    t2 = n * mean @ np.linalg.solve(np.cov(x.T), mean)
    return float(stats.f.sf((n - d) / (d * (n - 1)) * t2, d, n - d))


def sign(side: str) -> Callable[[Floats], float]:
    """Return the sign test: binomial among rows that are not 0."""

    def pvalue(x: Floats) -> float:
        above, below = int((x > 0).sum()), int((x < 0).sum())
        return float(stats.binomtest(above, above + below, alternative=side).pvalue)

    return pvalue


def wilcoxon(side: str, *, ties: bool) -> Callable[[Floats], float]:
    """Return SciPy's, exact where there are no ties."""

    def pvalue(x: Floats) -> float:
        exact = not ties and len(x) <= 100
        method = "exact" if exact else "approx"
        found = stats.wilcoxon(x, zero_method="pratt", alternative=side, method=method)
        return float(found.pvalue)

    return pvalue


def median(side: str) -> Callable[[Floats, Floats], float]:
    """Return Fisher's exact test of how many rows of each sample are above the common median."""

    def pvalue(x: Floats, y: Floats) -> float:
        middle = np.median(np.concatenate([x, y]))  # a row in the middle counts as above
        above = [int((each >= middle).sum()) for each in (x, y)]
        counts = [above, [len(x) - above[0], len(y) - above[1]]]
        return float(stats.fisher_exact(counts, alternative=side).pvalue)

    return pvalue


def mann_whitney(side: str, *, ties: bool) -> Callable[[Floats, Floats], float]:
    """Return SciPy's, exact where there are no ties."""

    def pvalue(x: Floats, y: Floats) -> float:
        method = "exact" if not ties and len(x) <= 100 else "asymptotic"
        return float(stats.mannwhitneyu(x, y, alternative=side, method=method).pvalue)

    return pvalue


def twice(k: int, n: int) -> float:
    """Return twice the smaller side of a binomial test of one half."""
    return min(1.0, 2 * float(min(stats.binom.cdf(k, n, 0.5), stats.binom.sf(k - 1, n, 0.5))))


def z_test(side: str) -> Callable[[Any, Any], float]:
    """Return the z test of two proportions with the pooled variance."""

    def pvalue(x: Any, y: Any) -> float:
        n, m, share = len(x), len(y), (x.sum() + y.sum()) / (len(x) + len(y))
        error = math.sqrt(max(share * (1 - share), 1e-12) * (1 / n + 1 / m))
        z = (x.mean() - y.mean()) / error
        tails = {"greater": stats.norm.sf(z), "less": stats.norm.cdf(z)}
        return float(tails.get(side, 2 * stats.norm.sf(abs(z))))

    return pvalue


def multinomial(x: Any) -> float:
    """Return P(T >= t) of Pearson's statistic of three equal shares, over all counts."""
    n = len(x)
    first, second = (each.ravel() for each in np.mgrid[: n + 1, : n + 1])
    kept = first + second <= n
    counts = np.array([first[kept], second[kept], n - first[kept] - second[kept]])
    masses = stats.multinomial.pmf(counts.T, n, [1 / 3] * 3)
    squares = np.square(counts).sum(axis=0)  # rises with the statistic
    return float(masses[squares >= np.square(np.bincount(x, minlength=3)).sum()].sum())


def barnard(x: Any, y: Any, side: str) -> float:
    """Return the exact test of two proportions, unconditional: the supremum over their share."""
    counts = [[int(x.sum()), int(y.sum())], [int((~x).sum()), int((~y).sum())]]
    return float(stats.barnard_exact(counts, alternative=side, pooled=True, n=64).pvalue)


def newcombe_tost(x: Any, y: Any, margin: float) -> float:
    """Return the least level at which Newcombe's interval (MOVER of Wilson's) is within ±margin."""

    def ends(k: int, n: int, alpha: float) -> tuple[float, float]:
        z, share = float(special.ndtri(1 - alpha)), k / n  # Wilson's
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return middle - reach, middle + reach

    def within(alpha: float) -> bool:
        (l1, u1), (l2, u2) = ends(x.sum(), len(x), alpha), ends(y.sum(), len(y), alpha)
        p, q = x.mean(), y.mean()
        low = p - q - math.hypot(p - l1, u2 - q)
        high = p - q + math.hypot(u1 - p, q - l2)
        return bool(-margin < low and high < margin)

    low, high = 1e-9, 0.5
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


# --- all cases --------------------------------------------------------------------------------


def cases() -> list[Case]:
    """Return every test with its counterpart."""
    return [*_means(), *_pairs(), *_ranks(), *_distances(), *_counts()]


def _means() -> Iterator[Case]:
    for bound in (4, 16):
        own = {"bounds": (-bound, bound), "rng": 0}
        half = {"bounds": (-bound / 2, bound / 2), "rng": 0}  # of each column of a pair
        drawn = own | {"n_bootstrap": DRAWS}
        wide = {"bounds": [(-bound, bound)] * 2, "rng": 0, "n_bootstrap": DRAWS}
        words = f"bounds ±{bound} sd"
        for side in SIDES:
            yield Case(
                "ttest_1samp",
                f"{side}, {words}",
                one_sample(side),
                lambda x, side=side, own=own, **o: pt.ttest_1samp(
                    x, 0.0, alternative=side, **own, **o
                ),
                lambda x, side=side: stats.ttest_1samp(x, 0.0, alternative=side).pvalue,
                "`scipy.stats.ttest_1samp`",
            )
            yield Case(
                "ttest_rel",
                f"{side}, {words}",
                _halved(one_sample(side)),
                lambda x, y, side=side, own=half, **o: pt.ttest_rel(
                    x, y, alternative=side, **own, **o
                ),
                lambda x, y, side=side: stats.ttest_rel(x, y, alternative=side).pvalue,
                "`scipy.stats.ttest_rel`",
            )
            for equal in (True, False):
                yield Case(
                    "ttest_ind",
                    f"{side}{'' if equal else ', Welch'}, {words}",
                    two_samples(side),
                    lambda x, y, side=side, equal=equal, own=own, **o: pt.ttest_ind(
                        x, y, alternative=side, equal_var=equal, **own, **o
                    ),
                    lambda x, y, side=side, equal=equal: (
                        stats.ttest_ind(x, y, alternative=side, equal_var=equal).pvalue
                    ),
                    "`scipy.stats.ttest_ind`",
                )
        for equal in (True, False):
            yield Case(
                "f_oneway",
                f"{'' if equal else 'Welch, '}{words}",
                several_samples,
                lambda *x, equal=equal, own=drawn, **o: pt.f_oneway(
                    *x, equal_var=equal, **own, **o
                ),
                lambda *x, equal=equal: stats.f_oneway(*x, equal_var=equal).pvalue,
                "`scipy.stats.f_oneway`",
                DRAWS,
            )
        yield Case(
            "tost_ind",
            words,
            _within(two_samples("two-sided"), 12),
            lambda x, y, own=own, **o: pt.tost_ind(x, y, -1.0, 1.0, **own, **o),
            lambda x, y: tost(
                stats.ttest_ind(x + 1, y, alternative="greater"),
                stats.ttest_ind(x - 1, y, alternative="less"),
            ),
            "two of `scipy.stats.ttest_ind`",
        )
        yield Case(
            "tost_rel",
            words,
            _halved(_within(one_sample("two-sided"), 10)),
            lambda x, y, own=half, **o: pt.tost_rel(x, y, -1.0, 1.0, **own, **o),
            lambda x, y: tost(
                stats.ttest_1samp(x - y, -1, alternative="greater"),
                stats.ttest_1samp(x - y, 1, alternative="less"),
            ),
            "two of `scipy.stats.ttest_1samp`",
        )
        yield Case(
            "hotelling_test",
            words,
            _columns(two_samples("two-sided")),
            lambda x, y, wide=wide, **o: pt.hotelling_test(x, y, **wide, **o),
            hotelling_two,
            "Hotelling's T², F law",
            DRAWS,
        )
        yield Case(
            "hotelling_1samp",
            words,
            _columns(one_sample("two-sided")),
            lambda x, wide=wide, **o: pt.hotelling_1samp(x, [0.0, 0.0], **wide, **o),
            hotelling_one,
            "Hotelling's T², F law",
            DRAWS,
        )


def _halved(rows: Callable[[int, float], Data]) -> Callable[[int, float], Data]:
    """Return pairs whose differences are the rows."""

    def both(n: int, effect: float) -> Data:
        (difference,) = rows(n, effect)
        return difference / 2, -difference / 2

    return both


def _within(rows: Callable[[int, float], Data], reach: float) -> Callable[[int, float], Data]:
    """Return rows that are moved towards 0 from a margin of 1 as the effect grows."""

    def moved(n: int, effect: float) -> Data:
        return rows(n, (1 - effect) * math.sqrt(n) / reach)

    return moved


def _columns(rows: Callable[[int, float], Data]) -> Callable[[int, float], Data]:
    """Return samples of two columns, the first of which is that of the rows."""

    def both(n: int, effect: float) -> Data:
        return tuple(
            np.column_stack([each, ideal(len(each), 7 + i)])
            for i, each in enumerate(rows(n, effect))
        )

    return both


def _pairs() -> Iterator[Case]:
    for side in SIDES:
        for bound in (4, 16):
            own = {"bounds_x": (-bound, bound), "bounds_y": (-bound, bound)} | _DRAWN
            yield Case(
                "pearsonr",
                f"{side}, bounds ±{bound} sd",
                pairs(side),
                lambda x, y, side=side, own=own, **o: pt.pearsonr(
                    x, y, alternative=side, **own, **o
                ),
                lambda x, y, side=side: stats.pearsonr(x, y, alternative=side).pvalue,
                "`scipy.stats.pearsonr`",
                DRAWS,
            )
            yield Case(
                "linregress",
                f"{side}, bounds ±{bound} sd",
                pairs(side),
                lambda x, y, side=side, own=own, **o: pt.linregress(
                    x, y, alternative=side, **own, **o
                ),
                lambda x, y, side=side: stats.linregress(x, y, alternative=side).pvalue,
                "`scipy.stats.linregress`",
                DRAWS,
            )
        for ties in (False, True):
            words = f"{side}, {'ties' if ties else 'no ties'}"
            yield Case(
                "kendalltau",
                words,
                pairs(side, ties=ties),
                lambda x, y, side=side, **o: pt.kendalltau(x, y, alternative=side, **o),
                lambda x, y, side=side: stats.kendalltau(x, y, alternative=side).pvalue,
                "`scipy.stats.kendalltau`",
            )
            yield Case(
                "spearmanr",
                words,
                pairs(side, ties=ties),
                lambda x, y, side=side, **o: pt.spearmanr(x, y, alternative=side, **o),
                lambda x, y, side=side: stats.spearmanr(x, y, alternative=side).pvalue,
                "`scipy.stats.spearmanr`",
            )


def _ranks() -> Iterator[Case]:
    for side in SIDES:
        for ties in (False, True):
            words = f"{side}, {'ties' if ties else 'no ties'}"
            yield Case(
                "mannwhitneyu",
                words,
                two_samples(side, ties=ties),
                lambda x, y, side=side, **o: pt.mannwhitneyu(x, y, alternative=side, **o),
                mann_whitney(side, ties=ties),
                "`scipy.stats.mannwhitneyu`",
            )
            yield Case(
                "wilcoxon",
                f"{side}, {'ties and zeros' if ties else 'no ties'}",
                one_sample(side, ties=ties),
                lambda x, side=side, **o: pt.wilcoxon(x, alternative=side, **o),
                wilcoxon(side, ties=ties),
                "`scipy.stats.wilcoxon`, Pratt's zeros",
            )
            yield Case(
                "sign_test",
                f"{side}, {'zeros' if ties else 'no zeros'}",
                one_sample(side, ties=ties),
                lambda x, side=side, **o: pt.sign_test(x, alternative=side, **o),
                sign(side),
                "`scipy.stats.binomtest` without zeros",
            )
        yield Case(
            "median_test",
            f"{side}, no ties",
            two_samples(side),
            lambda x, y, side=side, **o: pt.median_test(x, y, alternative=side, **o),
            median(side),
            "`scipy.stats.fisher_exact` of rows above the median",
        )
    yield Case(
        "kruskal",
        "three samples",
        several_samples,
        lambda *x, **o: pt.kruskal(*x, rng=0, **o),
        lambda *x: stats.kruskal(*x).pvalue,
        "`scipy.stats.kruskal`",
        9999,
    )
    yield Case(
        "hodges_lehmann",
        "bounds ±4 sd",
        two_samples("two-sided"),
        lambda x, y, **o: pt.hodges_lehmann(x, y, bounds=(-4, 4), **o),
        mann_whitney("two-sided", ties=False),
        "`scipy.stats.mannwhitneyu`",
    )


def _distances() -> Iterator[Case]:
    # SciPy's "greater" says that the first distribution function lies above: smaller values
    turned = {"greater": "less", "less": "greater", "two-sided": "two-sided"}
    for side in SIDES:
        for ties in (False, True):
            yield Case(
                "ks_2samp",
                f"{side}, {'ties' if ties else 'no ties'}",
                two_samples(turned[side], ties=ties),
                lambda x, y, side=side, **o: pt.ks_2samp(x, y, alternative=side, **o),
                lambda x, y, side=side: stats.ks_2samp(x, y, alternative=side).pvalue,
                "`scipy.stats.ks_2samp`",
            )
        yield Case(
            "ks_1samp",
            side,
            one_sample(turned[side]),
            lambda x, side=side, **o: pt.ks_1samp(x, "norm(0, 1)", alternative=side, rng=0, **o),
            lambda x, side=side: stats.ks_1samp(x, stats.norm.cdf, alternative=side).pvalue,
            "`scipy.stats.ks_1samp`",
        )
    yield Case(
        "ks_1samp",
        "Cramér–von Mises",
        one_sample("two-sided"),
        lambda x, **o: pt.ks_1samp(x, "norm(0, 1)", statistic="cvm", rng=0, **o),
        lambda x: stats.cramervonmises(x, "norm").pvalue,
        "`scipy.stats.cramervonmises`",
    )


def _counts() -> Iterator[Case]:
    for side in SIDES:
        yield Case(
            "binom_test",
            side,
            coins(side),
            lambda x, side=side, **o: pt.binom_test(x, alternative=side, **o),
            lambda x, side=side: (
                twice(int(x.sum()), len(x))
                if side == "two-sided"
                else stats.binomtest(int(x.sum()), len(x), alternative=side).pvalue
            ),
            "`scipy.stats.binomtest`, twice the smaller side",
        )
        yield Case(
            "proportions_test",
            side,
            two_coins(side),
            lambda x, y, side=side, **o: pt.proportions_test(x, y, alternative=side, **_DRAWN, **o),
            lambda x, y, side=side: barnard(x, y, side),
            "`scipy.stats.barnard_exact(pooled=True)`",
            DRAWS,
            z_test(side),
        )
    yield Case(
        "tost_proportions",
        "margins ±.4",
        _within_coins,
        lambda x, y, **o: pt.tost_proportions(x, y, -0.4, 0.4, **o),
        lambda x, y: newcombe_tost(x, y, 0.4),
        "Newcombe's interval",
    )
    yield Case(
        "chi2_contingency",
        "2 × 3",
        table,
        lambda x, y, **o: pt.chi2_contingency(
            x, y, categories_x=[0, 1], categories_y=[0, 1, 2], **_DRAWN, **o
        ),
        lambda x, y: stats.chi2_contingency(_counted(x, y, (2, 3)), correction=False).pvalue,
        "`scipy.stats.chi2_contingency(correction=False)`",
        DRAWS,
    )
    yield Case(
        "chisquare",
        "three categories",
        dice,
        lambda x, **o: pt.chisquare(x, categories=[0, 1, 2], **_DRAWN, **o),
        multinomial,
        "exact law of the statistic of `scipy.stats.chisquare`",
        DRAWS,
        lambda x: stats.chisquare(np.bincount(x, minlength=3)).pvalue,
    )


def _within_coins(n: int, effect: float) -> Data:
    """Two groups whose shares differ by .4 at first, and are equal at an effect of 1."""
    m = n * 5 // 4
    return np.arange(n) < round(n * (0.7 - 0.4 * effect)), np.arange(m) < round(0.3 * m)


def _counted(x: Any, y: Any, shape: tuple[int, int]) -> Floats:
    counts = np.zeros(shape)
    np.add.at(counts, (x, y), 1)
    return counts


# --- what was found ---------------------------------------------------------------------------


def worst(cell: Mapping[str, Any]) -> float:
    """Return the private p-value that is furthest from the classical one, over it."""
    ratios: list[float] = [max(p, 1e-300) / cell["classical"] for p in cell["private"]]
    return max(ratios, key=lambda ratio: abs(math.log(ratio)))


def agrees(cell: Mapping[str, Any]) -> bool:
    """Whether all p-values of a cell are near enough."""
    return all(abs(p / cell["classical"] - 1) <= cell["tolerance"] for p in cell["private"])


def reason(name: str) -> str:
    """Return why a case is known to deviate, "" if it must not."""
    return next((why for each, why in DEVIATIONS.items() if fnmatchcase(name, each)), "")


def main() -> None:
    """Measure, print what deviates, and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of tests")
    only = parser.parse_args().only
    chosen = [case for case in cases() if not only or case.test in only]
    rows = [cell for case in track(chosen, "cases") for cell in case.cells()]
    if only:
        before = _before()
        rows = [cell for cell in before if cell["test"] not in only] + rows
        order = {case.name: place for place, case in enumerate(cases())}
        rows.sort(key=lambda cell: order[f"{cell['test']}: {cell['variant']}"])
    save(NAME, {"epsilon": EPSILON, "seeds": list(SEEDS), "rows": rows})
    print_table(
        "further than allowed",
        ("case", "n", "classical", "private / classical"),
        [
            (f"{cell['test']}: {cell['variant']}", cell["n"], cell["classical"], worst(cell))
            for cell in rows
            if not agrees(cell)
        ],
    )


def _before() -> list[dict[str, Any]]:
    import json  # noqa: PLC0415

    path = RESULTS / f"{NAME}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.exists() else []
    return found


if __name__ == "__main__":
    main()
