"""SciPy's tests beside ours: what is checked, and the table of docs/how-to/coming-from-scipy.md.

Run ``python -m tools.scipy_names`` to write the table. tests/unit/test_public_scipy.py runs each
pair on the same rows with next to no noise, so that what the table claims is true.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "coming-from-scipy.md"
START, END = "<!-- table: written by `python -m tools.scipy_names` -->", "<!-- end of table -->"


@dataclass(frozen=True, slots=True)
class Peer:
    """A test of SciPy and ours.

    Attributes
    ----------
    scipy, ours : str
        Names in scipy.stats and in privatest.
    differs : str
        What a user of SciPy has to know.
    data : {"two", "three", "paired", "sides", "one", "coins", "labels"}
        Which made-up rows both get.
    statistic : str
        "same": ours is SciPy's statistic but for noise, one-sided and two-sided; "same, one-sided"
        where the two-sided one is folded; else what ours is.
    keywords : tuple of str
        Keywords of SciPy that ours has too, with the same meaning.
    sided : bool
        Whether both have ``alternative``.
    call, peer : callable or None
        From the functions and the rows to their results, where a plain call does not do.
    tolerance : float
        By how much p-values may differ: a bootstrap, simulations, randomised ties, steps.
    options : mapping
        What ours needs besides epsilon.
    """

    scipy: str
    ours: str
    differs: str
    data: str = "two"
    statistic: str = "same"
    keywords: tuple[str, ...] = ()
    sided: bool = False
    call: Callable[..., Any] | None = None
    peer: Callable[..., Any] | None = None
    tolerance: float = 0.02
    options: dict[str, Any] = field(default_factory=dict)


_BOUNDS = {"bounds": (-9.0, 9.0)}
_SIDES = {"bounds_x": (-9.0, 9.0), "bounds_y": (-9.0, 9.0)}
_ALTERNATIVES: tuple[Any, ...] = ("two-sided", "greater", "less")
_NEEDS_BOUNDS = "needs `bounds`"


@dataclass(frozen=True, slots=True)
class _Adjusted:
    """Adjusted p-values, as a result has its own."""

    pvalue: Any
    statistic: None = None


def _adjusted_results(test: Callable[..., Any], x: Any, y: Any, **options: Any) -> _Adjusted:
    import privatest as pt  # noqa: PLC0415 - not needed for the page

    results = [pt.mannwhitneyu(x, y, alternative=side, **options) for side in _ALTERNATIVES]
    return _Adjusted([each.pvalue for each in test(results, method="bh")])


def _sides(x: Any, y: Any) -> list[float]:
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - slow, and not needed for the page

    return [float(mannwhitneyu(x, y, alternative=side).pvalue) for side in _ALTERNATIVES]


def _counts(*columns: Any) -> Any:
    """Return how many rows have each code, or each pair of codes."""
    import numpy as np  # noqa: PLC0415 - not needed for the page

    table = np.zeros([int(column.max()) + 1 for column in columns])
    np.add.at(table, columns, 1)
    return table


PEERS: list[Peer] = [
    Peer(
        "ttest_ind",
        "ttest_ind",
        f"{_NEEDS_BOUNDS}; the variance has a small public ridge",
        keywords=("equal_var", "alternative"),
        sided=True,
        options=_BOUNDS,
        tolerance=0.05,
    ),
    Peer(
        "mannwhitneyu",
        "mannwhitneyu",
        "exact at every size; ties are broken at random, in secret; two-sided shows the smaller of "
        "U and nm - U",
        statistic="same, one-sided",
        keywords=("alternative",),
        sided=True,
    ),
    Peer(
        "ks_2samp",
        "ks_2samp",
        "exact at every size; ties are broken at random, in secret",
        keywords=("alternative",),
        sided=True,
    ),
    Peer(
        "ks_1samp",
        "ks_1samp",
        "the distribution is named with its parameters",
        data="one",
        keywords=("alternative",),
        sided=True,
        call=lambda test, x, **o: test(x, "norm(0, 1)", **o),
        peer=lambda test, x, **o: test(x, _standard_normal(), **o),
    ),
    Peer(
        "wilcoxon",
        "wilcoxon",
        "zeros are left out, as by default in SciPy; without ties exact at every size, with ties "
        "SciPy's midranks and variance if n ε² >= 2500, and broken at random below",
        data="paired",
        keywords=("alternative",),
        sided=True,
    ),
    Peer(
        "kruskal",
        "kruskal",
        "group sizes are public; for two samples H, for more a test by absolute distances of mean "
        "ranks, which is another one; ties are broken at random",
        statistic="H for two samples",
        tolerance=0.05,
    ),
    Peer(
        "ttest_rel",
        "ttest_rel",
        f"{_NEEDS_BOUNDS} of the differences",
        data="paired",
        keywords=("alternative",),
        sided=True,
        options=_BOUNDS,
        tolerance=0.05,
    ),
    Peer(
        "ttest_1samp",
        "ttest_1samp",
        _NEEDS_BOUNDS,
        data="one",
        keywords=("popmean", "alternative"),
        sided=True,
        call=lambda test, x, **o: test(x, popmean=0.1, **o),
        peer=lambda test, x, **o: test(x, popmean=0.1, **o),
        options=_BOUNDS,
        tolerance=0.05,
    ),
    Peer(
        "f_oneway",
        "f_oneway",
        f"{_NEEDS_BOUNDS}; group sizes are public",
        data="three",
        keywords=("equal_var",),
        options=_BOUNDS,
        tolerance=0.05,
    ),
    Peer(
        "median_test",
        "median_test",
        "two samples; an exact law instead of chi-squared, without `correction`; has a side; "
        "shows a number above the median, or its distance from what is expected",
        statistic="its own",
        peer=lambda test, *data: test(*data, correction=False),
        tolerance=0.05,
    ),
    Peer(
        "binomtest",
        "binom_test",
        "takes the rows, not `k` and `n`; two-sided is twice the smaller side",
        data="coins",
        statistic="`k` with noise",
        keywords=("p", "alternative"),
        sided=True,
        call=lambda test, x, **o: test(x, p=0.5, **o),
        peer=lambda test, x, **o: test(int(x.sum()), len(x), p=0.5, **o),
        tolerance=0.08,
    ),
    Peer(
        "chisquare",
        "chisquare",
        "takes the rows and their `categories`, not counts; `f_exp` are shares; p-values are "
        "simulated with the noise",
        data="labels",
        call=lambda test, x, _, **o: test(x, [0.3, 0.35, 0.35], **o),
        peer=lambda test, x, _: test(_counts(x), [0.3 * len(x), 0.35 * len(x), 0.35 * len(x)]),
        options={"categories": (0, 1, 2), "rng": 0},
        tolerance=0.05,
    ),
    Peer(
        "chi2_contingency",
        "chi2_contingency",
        "takes the two columns and their categories, not a table; as with `correction=False`; "
        "p-values are simulated with the noise",
        data="labels",
        peer=lambda test, x, y: test(_counts(x, y), correction=False),
        options={"categories_x": (0, 1, 2), "categories_y": (0, 1), "rng": 0},
        tolerance=0.05,
    ),
    Peer(
        "spearmanr",
        "spearmanr",
        "midranks, as in SciPy; the variance with ties is found from noisy numbers of ties",
        data="sides",
        keywords=("alternative",),
        sided=True,
    ),
    Peer(
        "kendalltau",
        "kendalltau",
        "tau-b, as in SciPy; the variance with ties is found from noisy numbers of ties",
        data="sides",
        keywords=("alternative",),
        sided=True,
    ),
    Peer(
        "pearsonr",
        "pearsonr",
        "needs `bounds_x` and `bounds_y`; p-values are simulated with the noise",
        data="sides",
        keywords=("alternative",),
        sided=True,
        options=_SIDES | {"rng": 0},
    ),
    Peer(
        "linregress",
        "linregress",
        "needs `bounds_x` and `bounds_y`; the statistic is the slope; `estimates` have `intercept` "
        "and `rvalue`",
        data="sides",
        keywords=("alternative",),
        sided=True,
        options=_SIDES | {"rng": 0},
    ),
    Peer(
        "false_discovery_control",
        "adjust",
        "takes results, not p-values; as with `method='bh'`, by default Holm's",
        statistic="none",
        call=_adjusted_results,
        peer=lambda test, x, y: _Adjusted(test(_sides(x, y))),
        tolerance=0.02,
    ),
]


def _standard_normal() -> Callable[..., Any]:
    from scipy.stats import norm  # noqa: PLC0415 - slow, and not needed for the page

    cdf: Callable[..., Any] = norm.cdf
    return cdf


def render() -> str:
    """Return the table."""
    shown = {"same": "SciPy's", "same, one-sided": "SciPy's if one-sided"}
    rows = ["| SciPy | ours | statistic | kept keywords | what differs |", "|---|---|---|---|---|"]
    rows += [
        f"| `{peer.scipy}` | [`{peer.ours}`][privatest.{peer.ours}] "
        f"| {shown.get(peer.statistic, peer.statistic)} "
        f"| {', '.join(f'`{name}`' for name in peer.keywords) or '-'} | {peer.differs} |"
        for peer in PEERS
    ]
    return "\n".join(rows)


def page() -> str:
    """Return the page with its table written anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{render()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}", file=sys.stderr)
