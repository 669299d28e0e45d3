"""``with privatest.budget(...)``: every public function is charged once, before it sees data."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core import spending
from privatest.core.privacy import Budget
from privatest.core.spending import close_payer, open_payer, uncharged
from privatest.data.schema import CategoricalColumn, Schema
from privatest.ledger import Ledger
from privatest.methods.ks import ks_2samp
from privatest.noise import SecureNoise, SimulatedNoise
from tests.curators import opened, request
from tests.e2e.test_tutorials import blocks
from tests.unit.test_public_bounds import ONE, SEVERAL

X = np.random.default_rng(0).uniform(15, 45, 60)
PLANS = Schema({"plan": CategoricalColumn(("basic", "plus"))})
LABELS = {"plan": ["basic", "plus"] * 30}
CATEGORIES: dict[str, Callable[..., Any]] = {
    "chisquare": lambda t, b, **o: pt.chisquare(LABELS, bounds=PLANS, n_simulations=99, **o),
    "chi2_contingency": lambda t, b, **o: pt.chi2_contingency(
        LABELS, LABELS, bounds_x=PLANS, bounds_y=PLANS, n_simulations=99, **o
    ),
}
SPENDING = {
    name
    for name in pt.__all__
    if inspect.isfunction(getattr(pt, name))
    and "noise" in inspect.signature(getattr(pt, name)).parameters
}
CALLS = {name: call for name, call in (SEVERAL | ONE | CATEGORIES).items() if name in SPENDING}
SPARED = {"sarrm_test": {"epsilon": 40}}


class Till:
    """A budget without a ledger: it remembers what it paid for."""

    def __init__(self, limit: float = 1000, name: str = "till") -> None:
        self.key, self.limit = ("here", name), limit
        self.costs: list[Budget] = []
        self.names: list[str] = []
        self.ends: list[Any] = []

    def affords(self, cost: Budget) -> bool:
        return float(sum(each.epsilon for each in [*self.costs, cost])) <= self.limit

    def reserve(self, cost: Budget, asked: Mapping[str, Any]) -> Any:
        if not self.affords(cost):
            raise pt.BudgetError("too dear")
        self.costs.append(cost)
        self.names.append(asked["function"])
        return self

    def commit(self, result: Any) -> None:
        self.ends.append(result)

    def fail(self, error: BaseException) -> None:
        self.ends.append(type(error))


@contextmanager
def paying(till: Till) -> Iterator[Till]:
    open_payer(till)
    try:
        yield till
    finally:
        close_payer(till)


class Watched:
    """Data that knows whether it was paid for when somebody looked."""

    def __init__(self, values: np.ndarray, till: Till) -> None:
        self.values, self.till, self.looks = values, till, 0

    def _look(self) -> np.ndarray:
        self.looks += 1
        assert self.till.costs, "it looks at data before it pays"
        return self.values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._look(), dtype=dtype)

    def __len__(self) -> int:
        return len(self._look())

    def __iter__(self) -> Any:
        return iter(self._look())

    def __getitem__(self, index: Any) -> Any:
        return self._look()[index]


def rows(name: str) -> np.ndarray:
    return np.column_stack([X, X[::-1]]) if name in SEVERAL else X


def test_no_function_is_forgotten():
    assert set(CALLS) == SPENDING
    assert all(hasattr(getattr(pt, name), "__wrapped__") for name in SPENDING)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_function_pays_once_before_it_looks(name, monkeypatch):
    monkeypatch.setattr("tests.unit.test_public_bounds.share", pt.share)
    monkeypatch.setattr("tests.unit.test_public_bounds.release", pt.release)
    cost = {"epsilon": "5", "delta": "1e-6"} | {
        key: str(v) for key, v in SPARED.get(name, {}).items()
    }
    with paying(Till()) as till:
        data = Watched(rows(name), till)
        result = CALLS[name](data, (0, 80), epsilon=cost["epsilon"], delta=cost["delta"])
    assert till.costs == [Budget(cost["epsilon"], cost["delta"])]
    assert till.names == [name]
    assert len(till.ends) == 1
    if hasattr(result, "spent"):
        assert result.spent == till.costs[0]
    assert data.looks or name in CATEGORIES


@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_is_too_dear_sees_no_data(name, monkeypatch):
    monkeypatch.setattr("tests.unit.test_public_bounds.share", pt.share)
    monkeypatch.setattr("tests.unit.test_public_bounds.release", pt.release)
    with paying(Till(limit=1)) as till:
        data = Watched(rows(name), till)
        with pytest.raises(pt.BudgetError):
            CALLS[name](data, (0, 80), epsilon=5, delta=1e-6)
    assert not data.looks
    assert not till.costs


def test_simulated_noise_is_free():
    with paying(Till()) as till:
        pt.ks_2samp(X, X, epsilon=1, noise=SimulatedNoise(1))
        assert not till.costs
        pt.ks_2samp(X, X, epsilon=1, noise=SecureNoise())
    assert len(till.costs) == 1


def test_only_the_outermost_call_pays():
    with paying(Till()) as till:
        pt.mmd_test(X, X, X, epsilon=1, bounds=(0, 80), n_permutations=19)
        pt.test_of_tests(
            X,
            X,
            pvalue=lambda x, y: pt.ks_2samp(x, y, epsilon=9).pvalue,
            epsilon=2,
            n_subsets=3,
            bounds=(0, 80),
        )
    assert [cost.epsilon for cost in till.costs] == [1, 2]


def test_a_call_that_has_ended_pays_for_nothing_more():
    kept = []

    def gap(x: np.ndarray, y: np.ndarray) -> float:
        kept.append(contextvars.copy_context())  # as for a task that it starts
        return abs(float(x.mean() - y.mean()))

    with paying(Till()) as till:
        pt.permutation_test(
            (X, X),
            gap,
            sensitivity=lambda n, m: 80 / min(n, m),
            bounds=(0, 80),
            epsilon=1,
            n_permutations=19,
        )
        later = kept[-1]
        later.run(lambda: pt.ks_2samp(X, X, epsilon=2))
        assert [cost.epsilon for cost in till.costs] == [1, 2]
        with pytest.raises(pt.PrivacyError, match="not charged"):
            later.run(lambda: ks_2samp(X, X, epsilon=3))


def test_a_simulated_call_does_not_pay_for_real_ones_inside():
    def inside(function: Any) -> Any:
        def pvalue(x: Any, y: Any) -> Any:
            return function(x, y, epsilon=9).pvalue

        return pvalue

    free: dict[str, Any] = {
        "epsilon": 2,
        "n_subsets": 3,
        "bounds": (0, 80),
        "noise": SimulatedNoise(1),
    }
    with paying(Till()) as till:
        pt.test_of_tests(X, X, pvalue=inside(pt.ks_2samp), **free)
        paid = len(till.costs)
        assert {cost.epsilon for cost in till.costs} == {9}
        with pytest.raises(pt.ParameterError, match="it raised PrivacyError"):
            pt.test_of_tests(X, X, pvalue=inside(ks_2samp), **free)
    assert len(till.costs) == paid


def test_a_plan_of_shares_has_its_own_budget():
    plan = pt.plan_share((0, 80), locations=3, epsilon=2, delta=1e-6)
    with paying(Till()) as till:
        pt.share(X, plan=plan)
    assert till.costs == [plan.budget]


def test_a_wrong_parameter_is_free_and_a_wrong_value_is_not():
    with paying(Till()) as till:
        for wrong in ({"alternative": "no"}, {"epsilon": -1}, {"alpha": 2}, {"gone": 1}):
            with pytest.raises((pt.ParameterError, TypeError)):
                pt.ks_2samp(X, X, **{"epsilon": 1} | wrong)
        assert not till.costs
        with pytest.raises(pt.DataError):
            pt.ks_2samp(X, [np.nan], epsilon=1)
    assert till.ends == [pt.DataError]
    assert len(till.costs) == 1


def test_what_is_not_public_is_refused_and_not_forgotten():
    with paying(Till()) as till:
        with pytest.raises(pt.PrivacyError, match="public name"):
            ks_2samp(X, X, epsilon=1)
        with uncharged():
            ks_2samp(X, X, epsilon=1)
    assert not till.costs
    ks_2samp(X, X, epsilon=1)


def test_blocks_inside_of_others_all_pay_or_none():
    with paying(Till(name="a")) as first, paying(Till(limit=1, name="b")) as second:
        pt.ks_2samp(X, X, epsilon=1)
        with pytest.raises(pt.BudgetError):
            pt.ks_2samp(X, X, epsilon=1)
    assert len(first.costs) == len(second.costs) == 1
    with paying(first), paying(first):
        pt.ks_2samp(X, X, epsilon=1)
    assert len(first.costs) == 2


def test_threads_of_a_block_pay_too():
    with paying(Till()) as till, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: pt.ks_2samp(X, X, epsilon=1), range(8)))
    assert len(till.costs) == 8
    assert spending._open_payers() == ()


def test_threads_with_blocks_of_their_own():
    def work(name: str) -> int:
        with paying(Till(name=name)) as own:
            for _ in range(3):
                pt.ks_2samp(X, X, epsilon=1)
        return len(own.costs)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, "abcd")) == [3] * 4


def test_functions_are_pickled_and_described_as_before():
    for name in SPENDING:
        function = getattr(pt, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__ == function.__wrapped__.__doc__
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)


# --- with a ledger -----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return tmp_path / "folder" / "ledger.db"


def test_a_budget_is_kept_over_blocks(place):
    with pt.budget("visits", epsilon=3, ledger=place) as first:
        result = pt.ks_2samp(X, X, epsilon="0.1", alternative="less")
        assert first.spent == {"epsilon": Decimal("0.1"), "delta": 0}
    with (
        pt.budget("visits", epsilon=3, ledger=place) as again,
        pytest.raises(pt.BudgetError) as caught,
    ):
        pt.ks_2samp(X, X, epsilon=3)
    assert caught.value.left["epsilon"] == Decimal("2.9") == again.left["epsilon"]
    assert str(first) == str(again) == "Budget of visits: epsilon 0.1 of 3 spent, 2.9 left."
    assert "progress" in again._repr_html_()
    with Ledger.open(place) as ledger:
        committed, reserved, *_ = ledger.history("visits")
        assert reserved.body["asked"]["alternative"] == "less"
        assert committed.body["released"]["pvalue"] == result.pvalue
        ledger.verify()


def test_failures_and_interruptions_stay_spent(place):
    def interrupt(*_: Any) -> float:
        raise KeyboardInterrupt

    with pt.budget("visits", epsilon=3, ledger=place) as left:
        with pytest.raises(pt.DataError) as caught:
            pt.ks_2samp(X, [np.nan], epsilon=1)
        assert "cannot be refunded" in caught.value.__notes__[0]
        with pytest.raises(KeyboardInterrupt):
            pt.permutation_test(
                (X, X), interrupt, sensitivity=1, epsilon=1, check_sensitivity=False
            )
    assert left.left == {"epsilon": 1, "delta": 0}
    with Ledger.open(place) as ledger:
        reasons = [e.body["reason"] for e in ledger.history("visits") if e.kind == "failed"]
    assert reasons == ["KeyboardInterrupt", "DataError"]


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({}, "there is no ledger yet"),
        ({"delta": 1e-6}, "epsilon must be given with delta"),
        ({"epsilon": -1}, "epsilon must be"),
    ],
)
def test_budgets_that_cannot_be_opened(place, options, fragment):
    with pytest.raises(pt.ParameterError, match=fragment):
        pt.budget("visits", ledger=place, **options)
    assert not place.exists()


def test_a_known_budget_is_not_changed_by_the_way(place):
    pt.budget("visits", epsilon=3, delta="1e-6", ledger=place)
    assert "delta 0 of 1e-06" in str(pt.budget("visits", ledger=place))
    pt.budget("visits", epsilon="3.0", ledger=place)
    for wrong in ({"epsilon": 4}, {"epsilon": 3, "delta": 0}):
        with pytest.raises(pt.ParameterError, match="privatest ledger set"):
            pt.budget("visits", ledger=place, **wrong)
    with pytest.raises(pt.ParameterError, match="'others' is not in the ledger"):
        pt.budget("others", ledger=place)


def test_the_usual_ledger_is_that_of_commands(place, monkeypatch):
    monkeypatch.setenv("PRIVATEST_LEDGER", str(place))
    pt.budget("visits", epsilon=1)
    assert place.exists()


def test_other_compositions_print(place):
    pt.budget("one", epsilon=1, ledger=place)
    with Ledger.open(place) as ledger:
        ledger.create_dataset("tight", Budget(3, "1e-6"), composition="tight")
    with pt.budget("tight", ledger=place) as block:
        pt.ks_2samp(X, X, epsilon="0.1")
        assert "of rho and" in str(block)


def test_a_block_that_has_ended_pays_no_more(place):
    with pt.budget("visits", epsilon=3, ledger=place):
        later = contextvars.copy_context()
    with pytest.raises(pt.PrivacyError, match="has ended"):
        later.run(lambda: pt.ks_2samp(X, X, epsilon=1))


def test_tasks_pay(place):
    async def ask() -> None:
        await asyncio.sleep(0)
        pt.ks_2samp(X, X, epsilon="0.5")

    async def both() -> None:
        with pt.budget("visits", epsilon=3, ledger=place):
            await asyncio.gather(ask(), asyncio.to_thread(lambda: pt.ks_2samp(X, X, epsilon=1)))

    asyncio.run(both())
    assert pt.budget("visits", ledger=place).spent["epsilon"] == Decimal("1.5")


def test_another_process_has_to_open_its_own(place, monkeypatch):
    with pt.budget("visits", epsilon=3, ledger=place) as block:
        monkeypatch.setattr(os, "getpid", lambda: -1)  # as after a fork
        with pytest.raises(pt.PrivacyError, match="another process"):
            pt.ks_2samp(X, X, epsilon=1)
        monkeypatch.undo()
    assert not block.spent["epsilon"]


def test_an_answer_that_cannot_be_recorded_is_not_lost(place, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise pt.LedgerError("The disk is full.")

    with pt.budget("visits", epsilon=3, ledger=place) as block:
        monkeypatch.setattr(Ledger, "commit", broken)
        with pytest.warns(UserWarning, match="could not be recorded"):
            assert 0 <= pt.ks_2samp(X, X, epsilon=1).pvalue <= 1
    assert block.spent["epsilon"] == 1


def test_a_release_can_be_read_again(place):
    with pt.budget("visits", epsilon=3, delta=1e-6, ledger=place):
        made = pt.release(X, bounds=(0, 80), epsilon=1, delta=1e-6, n_points=5)
    with Ledger.open(place) as ledger:
        committed, *_ = ledger.history("visits")
    again = pt.SyntheticData.from_dict(committed.body["released"])
    np.testing.assert_array_equal(again.weights, made.weights)


def test_a_curator_keeps_its_own_account(place, tmp_path):
    with opened(tmp_path) as curator, pt.budget("visits", epsilon=3, ledger=place) as block:
        curator.run(request(), analyst="ada")
    assert not block.spent["epsilon"]


def test_the_page_runs(place, monkeypatch, capsys):
    monkeypatch.setenv("PRIVATEST_LEDGER", str(place))
    found = blocks("how-to/keep-a-budget.md")
    code = next(i for i, (language, _) in enumerate(found) if language == "python")
    exec(found[code][1], {"x": X, "y": X + 1})
    assert capsys.readouterr().out == found[code + 1][1]


def test_a_wrong_argument_names_the_function(tmp_path):
    with (
        pt.budget("people", epsilon=1, ledger=tmp_path / "ledger.db"),
        pytest.raises(TypeError, match=r"^ks_2samp\(\) got an unexpected"),
    ):
        pt.ks_2samp([1.0, 2.0], [2.0, 3.0], epsilon=0.1, gone=1)  # type: ignore[call-arg]
