"""Requests in processes of their own: what becomes of them, and when it is told.

Clocks are replaced, or only a least time is asserted: a busy machine is late, never early.
"""

from __future__ import annotations

import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from privatest.core.errors import EngineError, ParameterError
from privatest.curator import Reply, WorkerPool
from privatest.curator import worker_pool as workers
from privatest.curator import worker_process as worker
from privatest.curator.config import CuratorConfig
from privatest.curator.registration import load_registrations
from privatest.curator.timing import (
    MOST_MULTIPLES,
    RECORDING,
    MethodTime,
    ResponseTimes,
    Sizes,
    next_multiple,
    resource_limits,
    round_up_to_grid,
)
from privatest.curator.worker_pool import FifoSemaphore, ForkServer
from privatest.ledger import Ledger
from tests import worker_faults as faults
from tests.curators import CONFIG, opened, request

PERIOD = round_up_to_grid(2 * 0.65 + 2 * RECORDING)  # of KS, as measured below: 1.6 s


class Faulty(WorkerPool):
    """Workers that do what the level of a request says."""

    program = (str(Path(faults.__file__)),)


def ready(folder: Path, config: str = CONFIG) -> CuratorConfig:
    """Register the data, and store response times."""
    with opened(folder, config) as curator:
        found = curator.config
    sizes = Sizes(rows=40, columns=2, steps=40_000)
    measured = {
        "two-sample/ks": MethodTime(0.65, sizes),
        "two-sample/tot": MethodTime(0.65, Sizes(rows=40, columns=2, extent=999)),
    }
    ResponseTimes("2026-01-01", {}, {"people": measured}).save(found.times)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def config(folder: Path) -> CuratorConfig:
    return ready(folder, CONFIG.replace("epsilon = 3", "epsilon = 100"))


@pytest.fixture(scope="module")
def faulty(config: CuratorConfig):
    with Faulty(config.path) as workers:
        yield workers


def history(config: CuratorConfig) -> dict[str, str]:
    """How each reservation ended, by its id."""
    with Ledger.open(config.ledger) as ledger:
        entries = ledger.history("people", last=1000)
    found = {e.body["opens"]: "open" for e in entries if e.kind == "reserved"}
    return found | {e.body["closes"]: e.kind for e in entries if "closes" in e.body}


# --- what is told --------------------------------------------------------------------------------


def test_an_answer_its_record_and_its_time(faulty, config):
    told: list[str] = []
    start, begun = time.monotonic(), datetime.now(UTC)
    reply = faulty.run(request(), analyst="bob", progress=told.append)
    assert time.monotonic() - start >= PERIOD
    assert reply.kind == "answer"
    assert 0 < reply.document["pvalue"] <= 1
    assert "plan" in reply.document["words"]
    assert reply.document["label"]
    assert history(config)[reply.document["id"]] == "committed"
    # the record has public times, too
    since = {kind: (when - begun).total_seconds() for kind, when in _times(config, reply)}
    assert since["reserved"] >= PERIOD / 4
    assert since["committed"] >= PERIOD - RECORDING
    assert told == ["running", "until the public time"]
    again = faulty.run(request(), analyst="bob", progress=told.append)
    assert again.document["recorded"]
    assert again.document["pvalue"] == reply.document["pvalue"]
    assert told[2:] == ["running"]  # nothing to wait for: no file was opened


def _times(config: CuratorConfig, reply: Reply) -> list[tuple[str, datetime]]:
    with Ledger.open(config.ledger) as ledger:
        entries = ledger.history("people", last=1000)
    own = [
        e for e in entries if reply.document["id"] in (e.body.get("opens"), e.body.get("closes"))
    ]
    return [(e.kind, datetime.fromisoformat(e.time)) for e in own]


@pytest.mark.parametrize("fault", [faults.KILLED, faults.CRASHED, faults.HUNGRY, faults.RAISES])
def test_every_failure_is_the_same_and_is_spent(faulty, config, fault):
    start = time.monotonic()
    reply = faulty.run(request(alpha=fault), analyst="bob")
    assert time.monotonic() - start >= PERIOD
    number = reply.document["id"]
    assert reply == Reply("failed", {"id": number, "spent": True, "message": _failure(number)})
    assert history(config)[number] == "failed"
    log = config.log.read_text()
    assert f"id={number}" in log
    assert "734629" not in log + json.dumps(reply.document)


def _failure(number: str) -> str:
    return (
        "The request failed, and nothing was released; its budget is spent. "
        f"The custodian finds the reason by its id, {number}."
    )


def test_who_dies_before_anything_is_spent_spends_nothing(faulty, config):
    before = len(history(config))
    start = time.monotonic()
    reply = faulty.run(request(alpha=faults.DIES_EARLY), analyst="bob")
    assert time.monotonic() - start >= PERIOD  # its file was open: how long is not told either
    assert (reply.kind, reply.document["spent"]) == ("failed", False)
    assert "nothing was spent" in reply.document["message"]
    assert len(history(config)) == before


def test_who_takes_too_long_is_ended(faulty, config):
    reply = faulty.run(request(alpha=faults.SLOW), analyst="bob")
    assert reply.document == {
        "id": reply.document["id"],
        "spent": True,
        "message": _failure(reply.document["id"]),
    }
    assert history(config)[reply.document["id"]] == "failed"


REFUSED = [
    (request(method="nope"), "ParameterError"),
    (request(epsilon=5), "ParameterError"),
    (request(dataset="others"), "ParameterError"),
    (request(where={"plan": "plus"}), "PrivacyError"),
    ({"dataset": object()}, "ParameterError"),
    ([1, 2], "ParameterError"),
    # takes seconds for a value just above its location; takes memory by the value
    (request("fit", "distribution", column="visits", dist="ksone(100, loc=70)"), "ParameterError"),
    (
        request("fit", "distribution", column="visits", dist="betabinom(50, 1, 1, loc=20)"),
        "ParameterError",
    ),
]


@pytest.mark.parametrize(("document", "error"), REFUSED)
def test_refusals_are_public_and_come_before_a_file_is_opened(faulty, config, document, error):
    told: list[str] = []
    before = history(config)
    reply = faulty.run(document, analyst="bob", progress=told.append)
    assert (reply.kind, reply.document["error"]) == ("refused", error)
    assert "until the public time" not in told
    assert history(config) == before


def test_a_refused_rehearsal_comes_at_a_public_time(faulty):
    told: list[str] = []
    document = request("mean", "quantiles", columns=["visits"], q=2)
    reply = faulty.run(document, analyst="bob", progress=told.append)
    assert (reply.kind, told[-1]) == ("refused", "until the public time")


def test_who_listens_changes_nothing(faulty):
    def broken(words: str) -> None:
        raise BrokenPipeError(words)

    reply = faulty.run(request(alpha=0.2), analyst="bob", progress=broken)
    assert reply.kind == "answer"


def test_a_curator_that_cannot_be_opened_names_no_file(faulty, config, caplog):
    text = config.path.read_text()
    config.path.write_text(text + "\nsecret = 1\n")
    try:
        reply = faulty.run(request(), analyst="bob")
    finally:
        config.path.write_text(text)
    assert reply.document == {
        "error": "EngineError",
        "message": "The curator cannot be opened; tell the custodian.",
    }
    assert "unknown key 'secret'" in caplog.text  # for the custodian


# --- places --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_budgets_are_exact_and_a_place_is_kept(tmp_path, count):
    """Six at once, budget for three: three are answered, and no more."""
    own = CONFIG.replace("epsilon = 2", "epsilon = 0.3")
    config = ready(tmp_path, own)
    begun: list[tuple[float, float]] = []
    levels = [0.1 + 0.01 * i for i in range(6)]
    with WorkerPool(config.path, count=count) as workers, ThreadPoolExecutor(6) as pool:

        def ask(alpha: float) -> Reply:
            def note(words: str) -> None:
                if words == "running":
                    begun.append((time.monotonic(), alpha))

            return workers.run(request(alpha=alpha), analyst="ada", progress=note)

        replies = list(pool.map(ask, levels))
    kinds = [reply.kind for reply in replies]
    assert (kinds.count("answer"), kinds.count("refused")) == (3, 3)
    dear = [reply.document for reply in replies if reply.kind == "refused"]
    assert all(d["error"] == "BudgetError" and d["left"]["epsilon"] == "0.0" for d in dear)
    with Ledger.open(config.ledger) as ledger:
        assert ledger.totals("people").account.spent.epsilon == Decimal("0.3")
        ledger.verify()
    # who comes next begins when the last answer is due, not when it is ready
    answered = {
        alpha for alpha, reply in zip(levels, replies, strict=True) if reply.kind == "answer"
    }
    for (began, who), (after, _) in pairwise(sorted(begun) if count == 1 else []):
        assert after - began >= (PERIOD if who in answered else 0)


def test_places_are_given_in_order():
    places, order, waiting = FifoSemaphore(1), [], threading.Semaphore(0)

    def take(who: int) -> None:
        with places.one(waiting.release) as free:
            order.append((who, free))

    threads = []
    with places.one(lambda: None) as free:
        assert free
        for who in range(4):
            threads.append(threading.Thread(target=take, args=(who,)))
            threads[-1].start()
            waiting.acquire()
        assert not places.idle(0)
    for thread in threads:
        thread.join()
    assert order == [(who, True) for who in range(4)]
    places.close()
    with places.one(lambda: None) as free:
        assert not free
    assert places.idle(0)


# --- the end -------------------------------------------------------------------------------------


def test_closing_ends_who_does_not_and_marks_them(tmp_path):
    config = ready(tmp_path)
    workers = Faulty(config.path, count=1)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(workers.run, request(alpha=faults.SLOW), analyst="bob")
        while "open" not in history(config).values():
            time.sleep(0.02)
        waits = pool.submit(workers.run, request(), analyst="bob")
        workers.close(wait=0.1)
        assert slow.result().document["spent"]
        assert waits.result().document["message"].startswith("The curator is closing")
    assert history(config) == {slow.result().document["id"]: "failed"}
    assert workers.run(request(), analyst="bob").document["error"] == "EngineError"
    workers.close()


def test_closing_lets_a_running_request_end(tmp_path):
    config, begun = ready(tmp_path), threading.Event()
    workers = WorkerPool(config.path)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(workers.run, request(), analyst="bob", progress=lambda _: begun.set())
        begun.wait()
        workers.close(wait=60)
        assert reply.result().kind == "answer"


def test_a_killed_nursery_is_replaced(tmp_path):
    config = ready(tmp_path)
    with WorkerPool(config.path, public_times=False) as workers:
        workers._fork_server._process.kill()
        workers._fork_server._process.wait()
        assert workers.run(request(), analyst="bob").kind == "answer"


def test_workers_that_do_not_start(tmp_path):
    with pytest.raises(EngineError, match="did not start"):
        ForkServer(("-c", "raise SystemExit"))


DRAWS = """
import os, numpy as np
from privatest.core.noise import SecureNoise
from privatest.curator import worker_process as worker
def draw(channel):
    noise = SecureNoise()
    drawn = [noise.laplace(0.0, 1.0), float(noise.gaussian(np.zeros(1), 1.0, -40)[0])]
    drawn += [noise.key().hex(), noise.discrete_laplace(1e15), os.environ["OMP_NUM_THREADS"]]
    channel.sendall(repr(drawn).encode())
    os._exit(0)
worker._work = draw
worker.main()
"""


def test_forked_workers_do_not_share_their_noise():
    fork_server = ForkServer(("-c", DRAWS))
    drawn = []
    for _ in range(4):
        with fork_server.worker() as channel, channel.makefile() as lines:
            drawn.append(eval(lines.read()))
    fork_server.kill()
    for name, values in zip("lgkd", list(zip(*drawn, strict=True))[:4], strict=True):
        assert len(set(values)) == 4, name
    assert {row[4] for row in drawn} == {"1"}


# --- the times themselves ------------------------------------------------------------------------


class Clock:
    """A clock that sleep moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Silence:
    def sendall(self, message: bytes) -> None:
        pass


@pytest.fixture
def schedule(monkeypatch, config):
    """A schedule with a clock of its own and no limits, admitted after 0.1 s."""
    clock = Clock()
    monkeypatch.setattr(worker, "time", clock)
    monkeypatch.setattr(worker, "set_limits", lambda allowed: None)
    monkeypatch.setattr("privatest.curator.worker_process.signal.setitimer", lambda *_: None)
    clock.now = 50.1
    job = {"number": "1", "start": 50.0, "public_times": True}
    found = worker.WorkerSchedule(Silence(), job)  # type: ignore[arg-type]
    found.period = 2.0
    return found, clock


@pytest.mark.parametrize(("took", "reserved"), [(0.2, 0.5), (0.49, 0.5), (0.6, 1.0), (4.1, 4.5)])
def test_budget_is_reserved_at_quarters(schedule, took, reserved):
    found, clock = schedule
    clock.now = 50.0 + took
    found.wait_to_reserve()
    assert clock.now == pytest.approx(50.0 + reserved)


@pytest.mark.parametrize(("took", "due"), [(0.2, 2), (1.85, 2), (1.95, 4), (3, 4), (13.8, 14)])
def test_an_end_is_recorded_just_before_a_multiple(schedule, took, due):
    found, clock = schedule
    clock.now = 50.0 + took
    found.wait_to_end()
    assert (found.due, clock.now) == (due, pytest.approx(50.0 + due - RECORDING))
    clock.now += 0.01
    found.wait_to_end()
    assert clock.now == pytest.approx(50.01 + due - RECORDING)


def test_without_public_times_nothing_waits(schedule):
    found, clock = schedule
    found.public_times = False
    found.wait_to_reserve()
    found.wait_to_end()
    assert (clock.now, found.due) == (50.1, None)


@pytest.mark.parametrize(("took", "replied"), [(1.95, 2.0), (2.01, 2.5), (2.6, 3.0)])
def test_who_is_late_with_recording_waits_for_a_quarter(monkeypatch, took, replied):
    clock = Clock()
    clock.now = 50.0 + took
    monkeypatch.setattr(workers, "time", clock)
    run = workers._PendingRequest("bob", "1", start=50.0, period=2.0)
    assert workers._on_time(run, 2.0) == replied
    assert workers._on_time(run, None) is None


def test_multiples():
    assert [next_multiple(x, 0.5) for x in (0, 0.1, 0.5, 0.51, 1.2)] == [0.5, 0.5, 0.5, 1.0, 1.5]


def test_the_grid_has_few_values():
    for seconds in (0.01, 0.1, 0.11, 1.0, 3.7, 1000.0):
        found = round_up_to_grid(seconds)
        assert seconds <= found
        assert found <= max(seconds * math.sqrt(2) * 1.001, 0.1)
        steps = 2 * math.log2(found / 0.1)
        assert steps == pytest.approx(round(steps))


@pytest.fixture(scope="module")
def asked(config):
    """How a request is allowed for, by public facts."""
    from privatest.curator import Curator

    registration = load_registrations(config.state)["people"]

    def found(times: ResponseTimes, rows: int = 40, **document: Any) -> Any:
        with Curator.open(config.path) as curator:
            prepared = curator.prepared(request(**document), analyst="bob")
        own = replace(registration, rows=rows)
        return resource_limits(prepared, config.datasets["people"], own, times)

    return found


def test_more_is_allowed_for_more(asked, config):
    times = ResponseTimes.load(config.times)
    usual = asked(times)
    assert usual.period == pytest.approx(PERIOD)
    assert usual.seconds == (MOST_MULTIPLES - 0.5) * usual.period
    assert asked(times, rows=400).period > 5 * usual.period
    assert asked(times, rows=4).period == usual.period
    public = {"group": "region", "groups": ["north", "south"]}
    assert asked(times, **public).period == usual.period  # no steps there, which were counted
    assert asked(times, rows=400).memory > usual.memory
    parts = {"method": "tot", "group": "region", "groups": ["north", "south"]}
    assert asked(times, **parts).period == usual.period
    assert asked(times, **parts, permutations=9990).period > 5 * usual.period
    # nobody has measured these
    assert asked(times, method="mmd").period > 1
    assert asked(ResponseTimes()).period > 2
    slow = {"method": "mmd", "permutations": 9990, "estimator": "u", "computation": "exact"}
    exact = asked(ResponseTimes(), **slow)
    assert exact.period > asked(ResponseTimes(), method="mmd").period
    both = {"columns": ["visits", "age"], "each_column": "holm"}
    assert asked(ResponseTimes(), **both).period > asked(ResponseTimes()).period


def test_times_are_kept(tmp_path):
    path = tmp_path / "times.json"
    assert ResponseTimes.load(path) == ResponseTimes()
    measured = {"a": {"b/c": MethodTime(0.5, Sizes(4, 2))}}
    kept = ResponseTimes("2026-01-01", {"processors": 2}, measured)
    kept.save(path)
    assert ResponseTimes.load(path) == kept
    path.write_text(path.read_text().replace('"version": 1', '"version": 0'))
    assert ResponseTimes.load(path) == ResponseTimes()
    path.write_text("{")
    with pytest.raises(ParameterError, match=r"times.json cannot be read.*curator calibrate"):
        ResponseTimes.load(path)
