"""The client: a call becomes a request, an answer becomes a result, a refusal an exception."""

from __future__ import annotations

import inspect
import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import uvicorn

import privatest as pt
from privatest.client import Client, Job
from privatest.client.client import function_named, function_names
from privatest.client.transport import Connection, ConnectionLost, Http, HttpReply, error_of
from privatest.core.errors import PrivatestError
from privatest.curator.answers import RequestFailed
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.requests.catalogue import METHODS
from privatest.requests.prepare import prepare
from privatest.requests.request import Request
from privatest.synthetic import SyntheticData
from tests.curators import CONFIG, request, table
from tests.e2e.test_tutorials import run
from tests.services import Service, serving
from tests.unit.test_curator import ENTRIES, asked

EVERYTHING = ", ".join(f'"{question}/{method}"' for question, method in ENTRIES)
OPEN = CONFIG.replace("epsilon = 3\n", "epsilon = 100\n").replace("epsilon = 2\n", "epsilon = 90\n")
OPEN = OPEN.replace("delta = 1e-6", "delta = 1e-3")
OPEN = OPEN.replace("largest_epsilon = 1", f"largest_epsilon = 1\ntests = [{EVERYTHING}]")
PEOPLE = Schema(
    {
        "visits": NumericColumn(0, 80),
        "age": NumericColumn(0, 120, integer=True),
        "plan": CategoricalColumn(("basic", "plus")),
        "region": CategoricalColumn(("north", "south", "west"), membership="public"),
    }
)


@dataclass
class Adapter:
    """Carries requests to an application in this process."""

    service: Service
    who: str = "ada"
    sent: list[tuple[str, str]] = field(default_factory=list)
    losses: int = 0  # answers that are lost on their way back

    def send(self, method: str, path: str, body: bytes | None) -> HttpReply:
        self.sent.append((method, path))
        headers = self.service.headers(self.who) | {"content-type": "application/json"}
        answer = self.service.client.request(
            method, f"/api/v1{path}", content=body, headers=headers
        )
        if self.losses:
            self.losses -= 1
            raise ConnectionLost("The connection was lost.")
        return HttpReply(answer.status_code, dict(answer.headers), answer.content)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("client"), OPEN) as running:
        yield running


@pytest.fixture
def adapter(service: Service) -> Adapter:
    return Adapter(service)


@pytest.fixture
def client(adapter: Adapter) -> Client:
    return Client(Connection(adapter, sleep=lambda _: time.sleep(0.01)))


# --- from a call to a request ------------------------------------------------------------------

PARAMETERS = {
    "independence": {"x": "x", "y": "y", "given": "z"},
    "paired": {"after": "x", "before": "y"},
    "fit": {"column": "x", "dist": "cdf", "family": "family"},
}


def as_a_call(wanted: Request) -> tuple[str, dict[str, Any]]:
    """Return the library's call that a request of the catalogue stands for."""
    entry = METHODS[wanted.question][wanted.method]
    options = {entry.options[name]: value for name, value in wanted.options.items()}
    roles = PARAMETERS.get(wanted.question, {})
    parts = {roles.get(name, name): value for name, value in wanted.parts.items()}
    parts.pop("shares", None)  # equal ones are left out
    preset = dict(entry.preset)
    preset.pop("scheme", None)
    cost = {"epsilon": wanted.budget.epsilon, "delta": wanted.budget.delta}
    return entry.function.__name__, parts | preset | options | cost


@pytest.mark.parametrize(("question", "method"), ENTRIES)
def test_every_entry_is_a_call(client, question, method):
    wanted = asked(question, method)
    name, call = as_a_call(wanted)
    made = Request.from_dict(getattr(client.dataset("people").request, name)(**call))
    assert (
        replace(made, options={k: v for k, v in made.options.items() if k != "subtest"}) == wanted
    )
    function = getattr(pt, name)
    assert name in dir(client)
    assert name in dir(client.dataset("people"))
    remote = getattr(client, name)
    assert remote.__doc__.startswith(function.__doc__.strip().splitlines()[0])
    assert {"epsilon", "where"} <= set(inspect.signature(remote).parameters)


@pytest.mark.parametrize(("question", "method"), ENTRIES)
def test_every_entry_is_answered(client, question, method):
    name, call = as_a_call(asked(question, method))
    if question == "release":
        call |= {"delta": "1e-6"}
    people = client.dataset("people")
    result = getattr(people, name)(**call)
    job = client.jobs(last=1)[0]
    assert job.document is not None
    assert result.spent == pt.Budget(call["epsilon"], call["delta"])
    assert not result.simulated
    assert str(result)
    assert str(pickle.loads(pickle.dumps(result))) == str(result)
    assert result.to_dict().items() <= dict(job.document).items()


def test_every_function_of_the_catalogue_is_public():
    assert {*function_names()} <= {*pt.__all__}
    with pytest.raises(AttributeError, match="a curator has no 'mnd_test'"):
        function_named("mnd_test")


KEPT = {"method", "null_hypothesis", "sizes", "adjacency", "unit", "epsilon", "alpha", "n"}
AGE, VISITS = {"age": (0, 120)}, {"visits": (0, 80)}
SPLIT: dict[str, Any] = {"group": "plan", "columns": ["visits"], "bounds": PEOPLE, "epsilon": 1}
SIDES = {"bounds_x": PEOPLE.select(["plan"]), "bounds_y": PEOPLE.select(["region"])}
LOCAL: dict[str, Callable[[Any, Any], Any]] = {
    "mmd_test": lambda lib, d: lib.mmd_test(d, **SPLIT),
    "ks_2samp": lambda lib, d: lib.ks_2samp(d, **SPLIT),
    "f_oneway": lambda lib, d: lib.f_oneway(d, **SPLIT | {"group": "region"}),
    "hsic_test": lambda lib, d: lib.hsic_test(
        d["age"], d["visits"], epsilon=1, bounds_x=AGE, bounds_y=VISITS
    ),
    "wilcoxon": lambda lib, d: lib.wilcoxon(d["visits"], d["age"], epsilon=1, alternative="less"),
    "ks_1samp": lambda lib, d: lib.ks_1samp(d["visits"], "norm(40, 10)", epsilon=1),
    "private_quantile": lambda lib, d: lib.private_quantile(
        d["visits"], 0.2, epsilon=1, bounds=VISITS
    ),
    "private_mean": lambda lib, d: lib.private_mean(
        d[["visits", "age"]], epsilon=1, bounds=VISITS | AGE
    ),
    "chi2_contingency": lambda lib, d: lib.chi2_contingency(
        d[["plan"]], d[["region"]], epsilon=1, **SIDES
    ),
}


@pytest.mark.parametrize("name", LOCAL)
def test_the_same_call_here_and_there(client, name):
    """One line differs: ``lib`` and what it is given."""
    call = LOCAL[name]
    here = call(pt, pd.DataFrame(table().to_pydict()))
    there = call(client, client.dataset("people"))
    assert type(here) is type(there)
    first, second = here.to_dict(), there.to_dict()
    # whether an interval has a width to compare follows from secret noise
    assert first.keys() ^ second.keys() <= {"interval_widening"}
    for key in KEPT & first.keys():
        assert first[key] == second[key]


def test_the_request_runs_the_same_function_with_the_same_arguments(client):
    made = client.dataset("people").request.ks_2samp(
        "visits", group="plan", statistic="kuiper", n_permutations=99, epsilon=1, grid=None
    )
    prepared = prepare(Request.from_dict(made), PEOPLE)
    entry = prepared.request.entry
    assert inspect.unwrap(entry.function) is inspect.unwrap(pt.ks_2samp)
    arguments = dict(entry.preset) | dict(prepared.arguments)
    assert (arguments["statistic"], arguments["n_permutations"]) == ("kuiper", 99)


COST: dict[str, Any] = {"epsilon": 1}
KS: dict[str, Any] = {"columns": "visits", "group": "plan", "epsilon": 1}
WRONG: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda c, d: d.ks_2samp(**KS, rng=0), pt.ParameterError, "rng cannot"),
    (lambda c, d: d.ks_2samp(**KS, noise=None), pt.ParameterError, "noise cannot"),
    (lambda c, d: d.mmd_test(**KS, relabel="swap"), pt.ParameterError, "relabel cannot"),
    (lambda c, d: d.ks_2samp(**KS, gone=0), TypeError, "gone"),
    (lambda c, d: d.ks_2samp("visits", group="plan"), TypeError, "epsilon"),
    (lambda c, d: d.ks_2samp(**KS | {"epsilon": -1}), pt.ParameterError, "epsilon"),
    (lambda c, d: d.ks_2samp(**KS, statistic="no"), pt.ParameterError, "statistic"),
    (lambda c, d: d.ipm_test(**KS), TypeError, "distance"),
    (lambda c, d: d.ipm_test(**KS, distance="no"), pt.ParameterError, "distance"),
    (lambda c, d: d.ks_2samp(**KS | {"columns": "gone"}), pt.ParameterError, "gone"),
    (lambda c, d: d.ks_1samp("visits", np.sin, **COST), pt.ParameterError, "cdf must be text"),
    (lambda c, d: d.ks_1samp(["a", "b"], "norm(0, 1)", **COST), pt.ParameterError, "one column"),
    (lambda c, d: d.chisquare("plan", [0.5, 0.5], **COST), pt.ParameterError, "f_exp"),
    (lambda c, d: d.chisquare("plan", {"a,b": 1}, **COST), pt.ParameterError, "comma"),
    (lambda c, d: d.private_mean("age", **COST, bounds=(0, 80)), pt.ParameterError, "leave them"),
    (
        lambda c, d: d.private_mean("age", **COST, bounds=VISITS | {"age": (0, 9)}),
        ValueError,
        "dif",
    ),
    (lambda c, d: d.private_mean("age", **COST, bounds={"plan": (0, 1)}), ValueError, "differ"),
    (lambda c, d: d.me_test(**KS, locations=object()), pt.ParameterError, "locations"),
    (lambda c, d: c.private_mean("visits", **COST), pt.ParameterError, "one data set"),
    (lambda c, d: d["gone"], KeyError, "no column"),
    (lambda c, d: d[[]], KeyError, "no column"),
    (lambda c, d: d.private_man, AttributeError, "private_man"),
    (lambda c, d: c.dataset("others"), pt.ServiceError, "no such data set"),
    (lambda c, d: c.job("abc"), pt.ServiceError, "no such job"),
    (lambda c, d: c.rehearse(request(epsilon=-1)), pt.ParameterError, "epsilon"),
    (lambda c, d: c.run({}), pt.ParameterError, "epsilon|question"),
]


@pytest.mark.parametrize(("call", "kind", "fragment"), WRONG, ids=range(len(WRONG)))
def test_what_is_refused(client, call, kind, fragment):
    with pytest.raises(kind, match=fragment):
        call(client, client.dataset("people"))


def test_shares_and_groups_are_spelled(client):
    ask = client.dataset("people").request
    made = ask.chisquare("plan", {"basic": 0.25, "plus": np.float64(0.75)}, epsilon=1)
    assert made["shares"] == "basic=0.25,plus=0.75"
    assert ask.ks_2samp(group="plan", groups=[True, 1.0], epsilon=1)["groups"] == ["true", "1"]
    assert ask.test_of_tests("age", "visits", epsilon=1)["question"] == "independence"
    assert ask.test_of_tests("age", group="plan", epsilon=1, pvalue="mmd")["subtest"] == "mmd"


# --- answers, refusals, budgets -----------------------------------------------------------------


def test_data_sets_and_budgets_print(client):
    (people,) = client.datasets()
    assert "Data set people: 40 rows" in repr(people)
    assert "visits  numbers from 0 to 80" in repr(people)
    assert people.schema.columns["age"] == PEOPLE.columns["age"]
    assert repr(people["age"]) == "<columns age of people>"
    price = client.price(people.request.ks_2samp("visits", group="plan", epsilon=0.25))
    assert price["epsilon"] == 0.25
    before = people.budget
    people.ks_2samp("visits", group="plan", epsilon=0.25, alpha=0.01)
    assert people.budget.spent["epsilon"] == before.spent["epsilon"] + Decimal("0.25")
    assert people.budget.left["epsilon"] <= before.left["epsilon"] - Decimal("0.25")
    assert "yours" in str(before)
    assert "█" in str(people.budget) or "░" in str(people.budget)
    assert "progress" in before._repr_html_()
    assert client.me()["name"] == "ada"


def test_a_rehearsal_costs_nothing(client):
    people = client.dataset("people")
    before = people.budget
    found = client.rehearse(people.request.ks_2samp("visits", group="plan", epsilon=1))
    assert found["made_up_rows"] is True
    assert people.budget == before
    old: tuple[Any, ...] = (
        404,
        {},
        b'{"error": "HTTPError", "message": "There is no such place."}',
    )
    with pytest.raises(pt.ServiceError, match="no rehearsal"):
        Client(Script([old])).rehearse({})


def test_a_release_is_synthetic_data(client):
    made = client.dataset("people").release(
        ["visits", "plan"], method="subspace", n_points=10, epsilon=1, delta=1e-6
    )
    assert isinstance(made, SyntheticData)
    assert made.facts.n == 40
    assert len(made) == 10


def test_the_same_request_is_charged_once_though_answers_are_lost(service):
    adapter = Adapter(service)
    client = Client(Connection(adapter, sleep=lambda _: time.sleep(0.01)))
    people = client.dataset("people")
    before = people.budget.spent["epsilon"]
    adapter.losses = 3
    people.ks_2samp("age", group="plan", epsilon=0.125)
    assert [path for method, path in adapter.sent if method == "POST"] == ["/run"] * 4
    assert people.budget.spent["epsilon"] == before + Decimal("0.125")


@dataclass
class Script:
    """Says what it was told to."""

    replies: list[Any]

    def send(self, method: str, path: str, body: bytes | None) -> HttpReply:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return HttpReply(*reply)


def test_what_may_pass_is_tried_again_and_only_that():
    pauses: list[float] = []
    good: tuple[Any, ...] = (200, {}, b'{"name": "ada"}')
    script = Script(
        [ConnectionLost("x"), (502, {}, b"<html>"), (429, {"Retry-After": "7"}, b"{}"), good]
    )
    assert Client(Connection(script, sleep=pauses.append)).me() == {"name": "ada"}
    assert pauses == [0.2, 0.4, 7]
    with pytest.raises(ConnectionLost):
        Client(Connection(Script([ConnectionLost("x")] * 5), sleep=pauses.append)).me()
    said: tuple[Any, ...] = (503, {}, b'{"error": "LedgerError", "message": "No ledger."}')
    with pytest.raises(pt.LedgerError, match="No ledger"):
        Client(Connection(Script([said]), sleep=pauses.append)).me()
    for odd in (b"", b"[]", b"\xff", b"<html>"):
        with pytest.raises(pt.ServiceError, match="can be read"):
            Client(Connection(Script([(200, {}, odd)]), sleep=pauses.append)).me()
    with pytest.raises(pt.ServiceError, match="can be read"):
        Client(Connection(Script([(302, {"Location": "https://evil.example"}, b"")]))).me()


@pytest.mark.parametrize(
    "kind", [pt.ParameterError, pt.DataError, pt.PrivacyError, pt.EngineError, pt.LedgerError]
)
def test_errors_come_back_as_they_were(kind):
    found = error_of({"error": kind.__name__, "message": "words"})
    assert type(found) is kind
    assert str(found) == "words"


def test_errors_with_more_to_say():
    facts = {"asked": {"epsilon": 0.5, "delta": 0.0}, "left": {"epsilon": 0.1, "delta": 0.0}}
    dear = error_of({"error": "BudgetError", "message": "too dear", **facts})
    assert isinstance(dear, pt.BudgetError)
    assert (dear.asked["epsilon"], dear.missing) == (Decimal("0.5"), ("epsilon",))
    first = RequestFailed("0" * 32, spent=False)
    again = error_of({"error": "RequestFailed", "message": str(first)})
    assert isinstance(again, RequestFailed)
    assert (str(again), again.id, again.spent) == (str(first), "0" * 32, False)
    worker = error_of({"id": "1" * 32, "spent": True, "message": "x"})  # as a worker writes it
    assert isinstance(worker, RequestFailed)
    assert (worker.id, worker.spent) == ("1" * 32, True)
    assert "privatest curator token" in str(error_of({"error": "SignInNeeded"}, 401))


def test_a_used_up_budget_is_the_librarys_own_error(tmp_path):
    config = CONFIG.replace("epsilon = 2\n", "epsilon = 0.1\n")
    with serving(tmp_path, config) as service:
        people = Client(Adapter(service)).dataset("people")
        people.ks_2samp("visits", group="plan", epsilon=0.1)
        with pytest.raises(pt.BudgetError) as caught:
            people.ks_2samp("visits", group="plan", epsilon=0.05)
        assert caught.value.missing == ("epsilon",)
        assert "(epsilon: 0.05 asked, 0 left)" in str(caught.value)
        with pytest.raises(TypeError, match=r"^ks_2samp\(\) got an unexpected"):
            people.ks_2samp("visits", group="plan", epsilon=0.05, gone=1)
        with pytest.raises(pt.ParameterError, match=r"'vists' has no bounds.* Declared are visits"):
            people.ks_2samp("vists", group="plan", epsilon=0.05)
        token = {"Authorization": f"Bearer {service.tokens['ada']}"}
        unnamed = service.client.post("/api/v1/price", content="{}", headers=token)
        assert "Content-Type: application/json" in unnamed.json()["message"]
        token |= {"Content-Type": "application/json"}
        unread = service.client.post("/api/v1/price", content="{bad", headers=token)
        assert unread.json()["message"] == "the request is not JSON."
        again = people.ks_2samp("visits", group="plan", epsilon=0.1)  # from the record
        assert again.spent == pt.Budget("0.1")
        with pytest.raises(pt.ServiceError) as unknown:
            Client(Adapter(service, "pt_wrong")).me()
        assert unknown.value.status == 401


def test_waiting_tells_and_an_interruption_leaves_the_job(capsys, monkeypatch):
    states = [("running", None), ("running", None), ("answered", {"error": "x"})]
    about = {"id": "f" * 32, "request": request(), "asked": "2026", "ended": None}
    replies = [about | {"state": state, "document": found} for state, found in states]

    class Told:
        def send(self, method: str, path: str, body: bytes | None) -> HttpReply:
            return HttpReply(200, {}, json.dumps(replies.pop(0)).encode())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    job = Client(Connection(Told(), sleep=interrupted)).job("f" * 32)
    assert "people: two-sample/ks, epsilon 0.1: running" in str(job)
    with pytest.raises(pt.ServiceError, match="is running"):
        _ = job.result
    with pytest.raises(KeyboardInterrupt) as caught:
        job.wait()
    assert "The job goes on" in caught.value.__notes__[0]
    assert "client.job('ffffffff" in capsys.readouterr().err
    monkeypatch.setattr("privatest.client.client._PATIENCE", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.raises(pt.ServiceError, match="update privatest"):
        replace(job, connection=Connection(Told(), sleep=lambda _: None)).wait()
    assert "is running" in capsys.readouterr().err
    assert isinstance(job, Job)


# --- addresses and tokens -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://curator.example",
        "http://127.0.0.1.evil.example",
        "ftp://127.0.0.1",
        "curator.example",
        "https://",
        "https://ada:secret@curator.example",
        "https://curator.example?x=1",
        "file:///folder",
    ],
)
def test_a_token_is_not_sent_anywhere(url):
    with pytest.raises(pt.ParameterError, match="url must"):
        pt.connect(url, "pt_x")


@pytest.mark.parametrize("token", ["two words", "pt_\nx", "pt_ä", ""])
def test_tokens_are_one_word(token, monkeypatch):
    monkeypatch.delenv("PRIVATEST_TOKEN", raising=False)
    with pytest.raises(pt.ParameterError, match="token must"):
        pt.connect("https://curator.example", token)


def test_the_token_is_in_the_environment_and_never_shown(monkeypatch):
    monkeypatch.setenv("PRIVATEST_TOKEN", "pt_secret")
    client = pt.connect("https://curator.example/folder/")
    assert isinstance(client.connection.transport, Http)
    assert client.connection.transport.token == "pt_secret"
    shown = repr(client) + repr(client.connection) + repr(client.connection.transport)
    assert "pt_secret" not in shown
    assert "curator.example" in shown


@pytest.fixture(scope="module")
def server(service: Service) -> Iterator[str]:
    """Serve the same application over a socket."""
    config = uvicorn.Config(service.client.app, port=0, log_level="error", lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(10)


def test_over_a_real_connection(server, service, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # not for this machine
    client = pt.connect(server, service.tokens["ada"])
    people = client.dataset("people")
    result = people.mannwhitneyu("visits", group="plan", epsilon=0.5, alternative="less")
    assert isinstance(result, pt.Outcome)
    assert result.adjacency == "row"
    with pytest.raises(pt.ParameterError, match="epsilon must be at most"):
        people.mannwhitneyu("visits", group="plan", epsilon=5)
    with pytest.raises(pt.ServiceError) as unknown:
        pt.connect(server, "pt_wrong").me()
    assert unknown.value.status == 401


def test_nobody_answers():
    silent = Http("http://127.0.0.1:9", "pt_x", 1.0)
    with pytest.raises(ConnectionLost, match="does not answer"):
        silent.send("GET", "/me", None)
    assert issubclass(ConnectionLost, PrivatestError)


# --- what the page says -------------------------------------------------------------------------


def test_the_page_runs(tmp_path, monkeypatch):
    config = OPEN.replace("datasets.people", "datasets.visits").replace('["people"]', '["visits"]')
    with serving(tmp_path, config) as service:
        monkeypatch.setattr(Http, "send", Adapter(service).send)
        monkeypatch.setenv("PRIVATEST_TOKEN", "pt_x")
        names, comparisons = run("how-to/client.md")
    assert names["result"].spent == pt.Budget("0.5")
    assert isinstance(names["made"], SyntheticData)
    assert len(comparisons) == 2
    for expected, printed in comparisons:
        start, _, _ = expected.strip().partition("…")
        assert printed.strip().startswith(start)
