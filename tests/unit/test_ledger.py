"""The ledger on SQLite: grants, refusals, records, totals."""

from __future__ import annotations

import json
import pickle
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from privatest.accounting import Approximate, Gaussian, Laplace, Pure, compose, price
from privatest.core.errors import BudgetError, LedgerError, LedgerMissing, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import Ledger, request_digest, store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    with Ledger.open(path, create=True) as made:
        made.create_dataset("visits", Budget(1))
        yield made


def grants(ledger, event, *, dataset="visits", at_most=1000, **options):
    """How often an event is granted before the first refusal."""
    for count in range(at_most):
        try:
            ledger.reserve(dataset, event, **options)
        except BudgetError:
            return count
    return at_most


# --- what is granted --------------------------------------------------------------------------


def test_exactly_the_budget_is_granted(ledger):
    assert grants(ledger, Pure("0.1")) == 10
    account = ledger.totals("visits").account
    assert account.spent.epsilon == 1
    assert account.used == 1
    ledger.verify()


def test_a_refusal_changes_nothing(ledger):
    ledger.reserve("visits", Pure("0.95"))
    before = ledger.totals("visits")
    with pytest.raises(BudgetError, match="Nothing was spent"):
        ledger.reserve("visits", Pure("0.1"))
    assert ledger.totals("visits") == before
    ledger.reserve("visits", Pure("0.05"))


def test_a_refusal_tells_what_was_asked_and_what_is_left(ledger):
    ledger.reserve("visits", Pure("0.4"))
    with pytest.raises(BudgetError, match=r"epsilon: 0.7 asked, 0.6 left") as caught:
        ledger.reserve("visits", Pure("0.7"))
    assert caught.value.asked == {"epsilon": Decimal("0.7"), "delta": 0}
    assert caught.value.left == {"epsilon": Decimal("0.6"), "delta": 0}
    assert caught.value.missing == ("epsilon",)
    with pytest.raises(BudgetError, match="delta: 1e-06 asked, 0 left") as caught:
        ledger.reserve("visits", Approximate("0.1", "1e-6"))
    assert caught.value.missing == ("delta",)
    assert pickle.loads(pickle.dumps(caught.value)).left == caught.value.left


def test_refusals_of_other_compositions_and_parts(ledger):
    ledger.create_dataset("equal", Budget("0.1"), composition="equal", each=Pure("0.1"))
    ledger.reserve("equal", Pure("0.1"))
    with pytest.raises(BudgetError, match="requests: 1 asked, 0 left"):
        ledger.reserve("equal", Pure("0.1"))
    ledger.create_dataset("tight", Budget(1, "1e-6"), composition="tight")
    with pytest.raises(BudgetError, match=r"rho of zCDP: 0.5 asked") as caught:
        ledger.reserve("tight", Pure(1))
    assert caught.value.missing == ("rho",)
    ledger.create_dataset("parts", Budget(1), partition=["a", "b"])
    ledger.reserve("parts", Pure("0.8", part="a"))
    with pytest.raises(BudgetError, match=r"epsilon: 0.3 asked, 0.2 left"):
        ledger.reserve("parts", Pure("0.3", part="a"))
    with pytest.raises(BudgetError, match=r"epsilon: 1.1 asked, 1 left"):
        ledger.reserve("parts", Pure("1.1", part="b"))


def test_the_last_decimal_counts(ledger):
    ledger.reserve("visits", Pure("0.999998"))
    assert not ledger.affords("visits", Pure("0.000002000000000001"))
    with pytest.raises(BudgetError, match=r"0.000002000000000001 asked, 2e-06 left"):
        ledger.reserve("visits", Pure("0.000002000000000001"))
    ledger.reserve("visits", Pure("0.000002"))


def test_delta_is_a_budget_too(ledger):
    ledger.create_dataset("small", Budget(100, "3e-6"))
    assert grants(ledger, Approximate("0.1", "1e-6"), dataset="small") == 3
    with pytest.raises(BudgetError):  # the data set without delta
        ledger.reserve("visits", Approximate("0.1", "1e-18"))


def test_laplace_and_gaussian_have_a_price(ledger):
    ledger.create_dataset("noisy", Budget(3, "1e-5"))
    assert grants(ledger, Laplace(2), dataset="noisy", at_most=2) == 2
    with pytest.raises(ParameterError, match="budget must be given"):
        ledger.reserve("noisy", Gaussian("0.2"))
    budget = price(Gaussian("0.2"), delta="1e-6")
    with pytest.raises(ParameterError, match="must cover"):
        ledger.reserve("noisy", Gaussian("0.3"), budget=budget)
    ledger.reserve("noisy", Gaussian("0.2"), budget=budget)
    assert ledger.totals("noisy").account.spent.epsilon == 1 + budget.epsilon


@pytest.mark.parametrize("finish", ["commit", "fail", "nothing"])
def test_no_end_of_a_request_gives_a_refund(ledger, finish):
    for _ in range(10):
        reservation = ledger.reserve("visits", Pure("0.1"))
        if finish != "nothing":
            getattr(ledger, finish)(reservation)
    assert ledger.totals("visits").account.spent.epsilon == 1
    with pytest.raises(BudgetError):
        ledger.reserve("visits", Pure("0.000001"))
    assert len(ledger.unfinished("visits")) == (10 if finish == "nothing" else 0)


def test_tight_affords_more_small_requests(ledger):
    ledger.create_dataset("tight", Budget(3, "0.01"), composition="tight")
    count = grants(ledger, Pure("0.2"), dataset="tight")
    assert count == 24  # plain addition: 15
    assert compose({Pure("0.2"): count}, delta="0.01") <= 3
    assert ledger.totals("tight").account.used > Decimal("0.95")
    with pytest.raises(ParameterError, match="delta"):
        ledger.create_dataset("pure", Budget(1), composition="tight")
    ledger.verify()


def test_tight_keeps_half_of_delta_for_requests(ledger):
    ledger.create_dataset("tight", Budget(1, "1e-6"), composition="tight")
    assert grants(ledger, Approximate("0.000001", "1e-7"), dataset="tight") == 5


def test_equal_requests_may_use_exact_composition(ledger):
    each = Pure("0.05")
    ledger.create_dataset("equal", Budget("2.25", "1e-6"), composition="equal", each=each)
    assert ledger.totals("equal").each == each
    count = grants(ledger, each, dataset="equal")
    assert count >= 100
    assert compose({each: count}, delta="1e-6") <= Decimal("2.25")
    with pytest.raises(ParameterError, match="event must be"):
        ledger.reserve("equal", Pure("0.01"))
    with pytest.raises(ParameterError, match="at least once"):
        ledger.create_dataset("dear", Budget(1), composition="equal", each=Pure(2))
    ledger.verify()


def test_parts_of_a_public_partition_are_charged_apart(ledger):
    ledger.create_dataset("parts", Budget(1), partition=["north", "south"])
    assert grants(ledger, Pure("0.2", part="north"), dataset="parts", at_most=4) == 4
    assert grants(ledger, Pure("0.3", part="south"), dataset="parts") == 3
    assert grants(ledger, Pure("0.1"), dataset="parts") == 1  # all of the data: south has 0.1 left
    assert ledger.totals("parts").account.spent.epsilon == 1
    with pytest.raises(ParameterError, match="partition"):
        ledger.reserve("parts", Pure("0.1", part="east"))
    with pytest.raises(ParameterError, match="partition"):
        ledger.reserve("visits", Pure("0.1", part="north"))
    ledger.verify()


# --- analysts -----------------------------------------------------------------------------------


def test_analysts_have_budgets_of_their_own(ledger):
    ledger.set_analyst("visits", "ann", Budget("0.3"))
    ledger.set_analyst("visits", "bob", Budget("0.9"))
    assert grants(ledger, Pure("0.1"), analyst="ann") == 3
    assert grants(ledger, Pure("0.1"), analyst="bob") == 7  # the data set ends first
    found = ledger.totals("visits")
    assert found.analysts["ann"].spent.epsilon == Decimal("0.3")
    assert found.analysts["bob"].spent.epsilon == Decimal("0.7")
    assert found.account.spent.epsilon == 1
    assert not ledger.affords("visits", Pure("0.1"), analyst="bob")
    ledger.verify()


def test_a_refused_analyst_costs_the_data_set_nothing(ledger):
    ledger.set_analyst("visits", "ann", Budget("0.1"))
    with pytest.raises(BudgetError, match="analyst 'ann'"):
        ledger.reserve("visits", Pure("0.2"), analyst="ann")
    assert ledger.totals("visits").account.spent.epsilon == 0


def test_budgets_may_change_and_spending_stays(ledger):
    ledger.set_analyst("visits", "ann", Budget("0.3"))
    assert grants(ledger, Pure("0.1"), analyst="ann") == 3
    ledger.set_analyst("visits", "ann", Budget("0.4"))
    assert grants(ledger, Pure("0.1"), analyst="ann") == 1
    ledger.set_budget("visits", Budget("0.2"))
    assert grants(ledger, Pure("0.1")) == 0
    with pytest.raises(ParameterError, match="at least what is already spent"):
        ledger.set_budget("visits", Budget("0.3"), below_spent=False)
    ledger.set_budget("visits", Budget("0.6"), below_spent=False)
    assert grants(ledger, Pure("0.1")) == 2
    ledger.verify()


# --- records --------------------------------------------------------------------------------------


def test_identical_requests_are_recalled(ledger):
    request = request_digest({"test": "mmd", "epsilon": "0.1"})
    assert request == request_digest({"epsilon": "0.1", "test": "mmd"})
    assert ledger.recall("visits", request) is None
    first = ledger.reserve("visits", Pure("0.1"), request=request)
    assert ledger.recall("visits", request) is None  # nothing came out yet
    ledger.commit(first, released={"reject": True, "pvalue": 0.25})
    second = ledger.reserve("visits", Pure("0.1"), request=request)
    ledger.commit(second, released={"reject": False})
    assert ledger.recall("visits", request) == {"reject": True, "pvalue": 0.25}
    ledger.create_dataset("other", Budget(1))
    assert ledger.recall("other", request) is None


def test_an_answer_is_found_again_by_its_id(ledger):
    ledger.set_analyst("visits", "ann", Budget(1))
    asked = {"question": "two-sample", "columns": ["age"]}
    done = ledger.reserve("visits", Pure("0.1"), analyst="ann", asked=asked)
    ledger.commit(done, released={"reject": True})
    failed, running = (ledger.reserve("visits", Pure("0.1")) for _ in range(2))
    ledger.fail(failed, reason="DataError")
    found = ledger.answer(done.id[:12])
    assert (found.id, found.state, found.analyst) == (done.id, "committed", "ann")
    assert (found.asked, found.released, found.epsilon) == (asked, {"reject": True}, "0.1")
    assert (ledger.answer(failed).state, ledger.answer(failed).reason) == ("failed", "DataError")
    assert (ledger.answer(running).state, ledger.answer(running).asked) == ("open", None)
    assert ledger.totals("visits").account.spent.epsilon == Decimal("0.3")
    for nothing in ("", "abc", "zzzz", "%%%%", "____"):
        with pytest.raises(ParameterError):
            ledger.answer(nothing)


def test_a_reservation_is_closed_once(ledger):
    reservation = ledger.reserve("visits", Pure("0.1"))
    ledger.fail(reservation, reason="TimeoutError")
    for again in (ledger.commit, ledger.fail):
        with pytest.raises(LedgerError, match="already closed"):
            again(reservation)
    with pytest.raises(LedgerError, match="no such reservation"):
        ledger.commit("made-up")
    ledger.verify()


def test_history_and_export(ledger, tmp_path):
    ids = [ledger.reserve("visits", Pure("0.1")).id for _ in range(5)]
    ledger.commit(ids[0], released=[1])
    newest = ledger.history("visits", last=2)
    assert [(e.sequence, e.kind) for e in newest] == [(7, "committed"), (6, "reserved")]
    older = ledger.history("visits", before=6)
    assert [e.sequence for e in older] == [5, 4, 3, 2, 1]
    assert older[-1].kind == "created"
    assert [e.body["opens"] for e in ledger.unfinished("visits")] == ids[1:]
    assert ledger.export(tmp_path / "out.jsonl") == 7
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[-1]["hash"] == ledger.totals("visits").head.hash == newest[0].hash
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.export(tmp_path / "out.jsonl")


def test_a_clock_set_back_does_not_reorder(ledger, monkeypatch):
    ledger.reserve("visits", Pure("0.1"))
    monkeypatch.setattr(store, "now", lambda: "1999-12-31T23:59:59.000000Z")
    ledger.reserve("visits", Pure("0.1"))
    newest, before, _ = ledger.history("visits")
    assert newest.time == before.time > "2000"
    assert newest.body["clock"] == "1999-12-31T23:59:59.000000Z"
    ledger.verify()


def test_what_is_written_is_there_for_others(ledger, path):
    ledger.reserve("visits", Pure("0.4"))
    with Ledger.open(path) as other:
        assert other.datasets() == ["visits"]
        assert grants(other, Pure("0.1")) == 6
    assert ledger.totals("visits").account.spent.epsilon == 1


def test_threads_share_a_ledger(ledger):
    def ask(_):
        try:
            ledger.commit(ledger.reserve("visits", Pure("0.1")))
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10
    ledger.verify()


def test_a_locked_ledger_can_be_looked_at(ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with Ledger.open(path, timeout=0.1) as reader:
            assert reader.totals("visits").account.spent.events == 0
    finally:
        other.close()


def test_totals_as_json(ledger):
    ledger.create_dataset("d", Budget(3), composition="equal", each=Pure("0.05"))
    ledger.set_analyst("d", "ann", Budget(1))
    ledger.reserve("d", Pure("0.05"), analyst="ann")
    found = json.loads(json.dumps(ledger.totals("d").to_dict()))
    assert found["epsilon"] == "3"
    assert found["spent"]["epsilon"] == found["analysts"]["ann"]["spent"]["epsilon"] == "0.05"
    assert found["each"] == {"kind": "pure", "epsilon": "0.05"}
    assert 0 < found["used"] < found["analysts"]["ann"]["used"] < 1


def test_the_file_is_for_its_owner_alone(ledger, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.reserve("nowhere", Pure(1)),
        lambda x: x.reserve("visits", Pure("0.1"), analyst="nobody"),
        lambda x: x.affords("visits", Pure("0.1"), analyst="nobody"),
        lambda x: x.reserve("visits", 0.1),
        lambda x: x.reserve("visits", Pure("0.1"), budget=1),
        lambda x: x.reserve("visits", Pure("0.1"), request="x" * 65),
        lambda x: x.totals("nowhere"),
        lambda x: x.history("nowhere"),
        lambda x: x.history("visits", last=0),
        lambda x: x.recall("nowhere", "0"),
        lambda x: x.set_budget("nowhere", Budget(1)),
        lambda x: x.set_budget("visits", 3),
        lambda x: x.set_analyst("nowhere", "ann", Budget(1)),
        lambda x: x.set_analyst("visits", "", Budget(1)),
        lambda x: x.set_analyst("visits", "a\nb", Budget(1)),
        lambda x: x.create_dataset("visits", Budget(1)),
        lambda x: x.create_dataset("", Budget(1)),
        lambda x: x.create_dataset("new", 1),
        lambda x: x.create_dataset("new", Budget(1), composition="loose"),
        lambda x: x.create_dataset("new", Budget(1), composition="equal"),
        lambda x: x.create_dataset("new", Budget(1), each=Pure(1)),
        lambda x: x.create_dataset("new", Budget(1), partition="ab"),
        lambda x: x.create_dataset("new", Budget(1), partition=["a"]),
        lambda x: x.create_dataset("new", Budget(1), partition=["a", "a"]),
        lambda x: x.reserve("visits", Pure("0.1"), asked=["age"]),
        lambda x: x.reserve("visits", Pure("0.1"), asked={"x": object()}),
        lambda x: x.totals("\udcff"),
        lambda x: x.verify({"visits": "12"}),
        lambda x: x.verify({"visits": "G" * 64}),
        lambda x: x.commit(x.reserve("visits", Pure("0.1")), released=float("nan")),
        lambda x: x.commit(x.reserve("visits", Pure("0.1")), released=object()),
    ],
)
def test_bad_input_is_refused(ledger, call):
    with pytest.raises(ParameterError):
        call(ledger)
    assert ledger.datasets() == ["visits"]
    ledger.verify()


def test_a_data_set_is_entered_again_only_unchanged(ledger):
    ledger.create_dataset("d", Budget(2), schema_digest="aa", exist_ok=True)
    ledger.create_dataset("d", Budget(2), schema_digest="aa", exist_ok=True)
    for change, words in (
        ({"schema_digest": "bb"}, "schema of data set 'd' differs"),
        ({"schema_digest": "aa", "partition": ["x", "y"]}, "cannot be changed"),
    ):
        with pytest.raises(ParameterError, match=words):
            ledger.create_dataset("d", Budget(2), exist_ok=True, **change)
    with pytest.raises(ParameterError, match="set_budget"):
        ledger.create_dataset("d", Budget(3), schema_digest="aa", exist_ok=True)


@pytest.mark.parametrize("budget", [0, -1, "much", float("inf")])
def test_budgets_are_positive(budget):
    with pytest.raises(ParameterError):
        Budget(budget)


def test_a_ledger_that_is_not_there_has_an_error_of_its_own(tmp_path):
    with pytest.raises(LedgerMissing):
        Ledger.open(tmp_path / "none.db")
    (tmp_path / "empty.db").touch(mode=0o600)
    with pytest.raises(LedgerMissing):
        Ledger.open(tmp_path / "empty.db")
    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path)
    assert not isinstance(caught.value, LedgerMissing)
