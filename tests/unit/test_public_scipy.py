"""SciPy's habits: the same rows give the same numbers where there is next to no noise.

What is claimed in docs/how-to/coming-from-scipy.md is what is checked here (tools/scipy_names.py).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.noise import SimulatedNoise
from privatest.numerics.laws import ALTERNATIVES
from tools import scipy_names
from tools.scipy_names import PEERS, Peer

N, M = 400, 300
CASES = [(peer, side) for peer in PEERS for side in (ALTERNATIVES if peer.sided else ("",))]


def rows(kind: str, shift: float = 0.12) -> tuple[Any, ...]:
    rng = np.random.default_rng(6)
    x, y = rng.normal(shift, 1, N), rng.normal(0, 1, N if kind in ("paired", "sides") else M)
    if kind == "sides":
        return x, 2 * shift * x + y
    if kind == "three":
        return x, y, rng.normal(shift / 2, 1, M)
    if kind == "labels":
        first = rng.integers(3, size=N)
        return first, np.where(rng.uniform(size=N) < shift, first % 2, rng.integers(2, size=N))
    if kind == "coins":
        return ((x > 0.1).astype(int),)
    return (x,) if kind == "one" else (x, y)


def run(peer: Peer, side: str) -> tuple[Any, Any]:
    """Return our result and SciPy's."""
    data = rows(peer.data)
    sides = {"alternative": side} if side else {}
    secret = {"epsilon": 1e6, "noise": SimulatedNoise(0)}
    call, other = peer.call or _plainly, peer.peer or _plainly
    return (
        call(getattr(pt, peer.ours), *data, **secret, **peer.options, **sides),
        other(getattr(stats, peer.scipy), *data, **sides),
    )


def _plainly(test: Any, *data: Any, **options: Any) -> Any:
    return test(*data, **options)


@pytest.mark.parametrize(("peer", "side"), CASES, ids=lambda each: getattr(each, "ours", each))
def test_the_same_numbers_as_scipy(peer, side):
    ours, scipys = run(peer, side)
    assert ours.pvalue == pytest.approx(scipys.pvalue, abs=peer.tolerance)
    same = peer.statistic == "same" or (peer.statistic == "same, one-sided" and side != "two-sided")
    if same:
        expected = getattr(scipys, "statistic", None)
        expected = scipys.slope if expected is None else expected
        assert ours.statistic == pytest.approx(expected, rel=0.02, abs=0.01)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.ours)
def test_kept_keywords_are_those_of_scipy(peer):
    ours = inspect.signature(getattr(pt, peer.ours)).parameters
    scipys = inspect.signature(getattr(stats, peer.scipy)).parameters
    assert {*peer.keywords} <= ours.keys() & scipys.keys()
    assert ("alternative" in peer.keywords) == peer.sided


@pytest.mark.parametrize("name", ["ttest_ind", "f_oneway"])
def test_unequal_variances_mean_the_same(name):
    peer = next(peer for peer in PEERS if peer.ours == name)
    data, secret = rows(peer.data), {"epsilon": 1e6, "noise": SimulatedNoise(0)}
    ours = getattr(pt, name)(*data, equal_var=False, **secret, **peer.options)
    scipys = getattr(stats, name)(*data, equal_var=False)
    assert ours.pvalue == pytest.approx(scipys.pvalue, abs=peer.tolerance)
    assert ours.statistic == pytest.approx(scipys.statistic, rel=0.02)


def test_the_binomial_statistic_is_the_number_of_successes():
    peer = next(peer for peer in PEERS if peer.ours == "binom_test")
    assert run(peer, "greater")[0].statistic == pytest.approx(rows("coins")[0].sum(), abs=1)


def test_the_check_can_fail():
    """A test that looked the other way would be seen: the two sides are far apart here."""
    peer = next(peer for peer in PEERS if peer.ours == "mannwhitneyu")
    greater, less = run(peer, "greater")[0], run(peer, "less")[1]
    assert abs(greater.pvalue - less.pvalue) > 0.5


def test_the_page_is_up_to_date():
    assert scipy_names.PAGE.read_text("utf-8") == scipy_names.page(), (
        "run: python -m tools.scipy_names"
    )
