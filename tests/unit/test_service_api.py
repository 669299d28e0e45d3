"""The service's API: who may do what, and what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from privatest.core.documents import digest
from privatest.service import jobs, middleware
from privatest.service.auth import Person, find_token, new_token
from privatest.service.errors import SignInNeeded, TooMany
from privatest.service.jobs import job_events
from privatest.service.middleware import BodyLimit, RateLimit
from privatest.service.store import Token
from tests.curators import CONFIG, request
from tests.services import Service, serving

GUARDED = [
    ("GET", "/metrics"),
    ("GET", "/me"),
    ("GET", "/questions"),
    ("GET", "/datasets"),
    ("GET", "/datasets/people"),
    ("GET", "/facts/people"),
    ("POST", "/price"),
    ("POST", "/rehearse"),
    ("POST", "/run"),
    ("GET", "/jobs"),
    ("GET", "/jobs/abc"),
    ("GET", "/jobs/abc/events"),
    ("POST", "/jobs/abc/query"),
    ("GET", "/history?dataset=people"),
    ("GET", "/budgets"),
    ("GET", "/tokens"),
    ("POST", "/tokens"),
    ("DELETE", "/tokens/abc"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


def call(service: Service, method: str, place: str, who: str | None, body: Any = None) -> Any:
    sent = request() if body is None else body
    return service.client.request(
        method, f"/api/v1{place}", headers=service.headers(who), json=sent
    )


def test_every_place_is_listed(service):
    paths = service.client.get("/api/v1/openapi.json").json()["paths"]
    offered = {(m.upper(), p.removeprefix("/api/v1")) for p, ways in paths.items() for m in ways}
    tried = {(m, p.partition("?")[0].replace("abc", "{number}")) for m, p in GUARDED}
    tried = {(m, p.replace("people", "{name}")) for m, p in tried}
    assert offered - tried == {("GET", "/health")}


@pytest.mark.parametrize(("method", "place"), GUARDED)
def test_no_wrong_expired_or_revoked_token_opens_anything(service, method, place):
    revoked = new_token(service.state.store, "ada")
    found = find_token(service.state.store, revoked)
    assert found is not None
    service.state.store.revoke(found.id)
    expired = f"pt_expired {method} {place}"
    number = digest(expired)[:12]
    past = Token(number, "ada", ("ask",), "2020-01-01", "2021-01-01")
    service.state.store.add_token(past, digest(expired))
    for token in (None, "pt_wrong", "", revoked, expired, "x" * 5000):
        answer = call(service, method, place, token)
        assert answer.status_code == 401
        assert answer.json()["error"] == "SignInNeeded"


@pytest.mark.parametrize(
    ("who", "method", "place", "status"),
    [
        ("ada", "GET", "/tokens", 403),
        ("ada", "POST", "/tokens", 403),
        ("ada", "DELETE", "/tokens/abc", 403),
        ("ada", "GET", "/budgets", 403),
        ("ada", "GET", "/history?dataset=people", 403),
        ("otto", "GET", "/tokens", 200),
        ("otto", "POST", "/tokens", 403),
        ("otto", "POST", "/run", 403),
        ("otto", "POST", "/price", 403),
        ("carol", "POST", "/run", 403),
        ("otto", "GET", "/budgets", 200),
        ("carol", "GET", "/tokens", 200),
    ],
)
def test_scopes(service, who, method, place, status):
    body = {"name": "ada"} if place == "/tokens" else None
    assert call(service, method, place, who, body).status_code == status


def test_a_request_from_price_to_answer(service):
    document = request(epsilon=0.125)
    price = service.post("/price", document).json()
    assert (price["epsilon"], price["affordable"], price["recorded"]) == (0.125, True, False)
    before = service.get("/datasets/people").json()["budget"]["own"]["spent"]["epsilon"]
    job = service.answered(document)
    assert job["state"] == "answered"
    assert job["document"]["epsilon"] == 0.125
    again = service.answered(document)
    assert again["document"]["recorded"] is True
    after = service.get("/datasets/people").json()["budget"]["own"]["spent"]["epsilon"]
    assert float(after) == pytest.approx(float(before) + 0.125)
    assert service.get("/jobs").json()["items"][0]["id"] == again["id"]


def test_events_end_with_the_job(service):
    job = service.answered(request(epsilon=0.0625))
    lines = service.get(f"/jobs/{job['id']}/events").text.splitlines()
    assert [line for line in lines if line.startswith("event")] == ["event: state", "event: done"]


def test_nobody_sees_the_requests_of_others(service):
    job = service.answered(request(epsilon=0.03125))
    place = f"/jobs/{job['id']}"
    assert service.get(place, "bob").status_code == 404
    assert service.get(f"{place}/events", "bob").status_code == 404
    assert service.get(place, "bob").json() == service.get("/jobs/abc", "bob").json()
    assert job["id"] not in service.get("/jobs", "bob").text
    assert service.get(place, "carol").json()["analyst"] == "ada"
    assert service.get(place, "otto").status_code == 200


def test_others_are_seen_where_the_custodian_says_so(tmp_path):
    with serving(tmp_path, CONFIG + "\n[service]\nopen_history = true\n") as service:
        job = service.answered(request(epsilon=0.03125))
        assert service.get(f"/jobs/{job['id']}", "bob").status_code == 200


def test_refusals_have_one_shape(service):
    wrong: list[tuple[dict[str, Any], int]] = [
        (request(epsilon=-1), 422),
        (request(epsilon=5), 422),
        (request(dataset="other"), 422),
        (request(method="none"), 422),
        ({}, 422),
    ]
    for document, status in wrong:
        answer = service.post("/run", document)
        assert answer.status_code == status
        assert set(answer.json()) >= {"format", "error", "message"}


def test_a_used_up_budget_is_told(tmp_path):
    config = CONFIG.replace("epsilon = 2\n", "epsilon = 0.1\n")
    with serving(tmp_path, config) as service:
        assert service.answered(request(epsilon=0.1))["state"] == "answered"
        refused = service.post("/run", request(epsilon=0.05))
        assert refused.status_code == 409
        assert refused.json()["asked"] == {"epsilon": 0.05, "delta": 0.0}
        assert float(refused.json()["left"]["epsilon"]) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"epsilon": NaN}',
        b'{"epsilon": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"null",
        b'{"a": "' + b"x" * 190_000 + b'"}',
    ],
)
def test_bodies_that_cannot_be_read(service, body):
    headers = service.headers("ada") | {"content-type": "application/json"}
    for place in ("/price", "/run", "/tokens"):
        answer = service.client.post(f"/api/v1{place}", content=body, headers=headers)
        assert 400 <= answer.status_code < 500
        assert len(answer.text) < 2000


def test_large_bodies_are_refused_before_they_are_read(service):
    headers = service.headers("ada") | {"content-type": "application/json"}
    answer = service.client.post("/api/v1/run", content=b" " * 10_000_000, headers=headers)
    assert answer.status_code == 413


def test_headers(service):
    headers = service.get("/me").headers
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    wrong = service.client.get("/api/v1/health", headers={"host": "evil.example"})
    assert wrong.status_code == 400


def test_tokens_are_made_and_revoked(service):
    made = service.post("/tokens", {"name": "bob", "days": 1}, "carol")
    assert made.status_code == 201
    text = made.json()["token"]
    assert service.get("/me", text).json()["name"] == "bob"
    assert text not in service.get("/tokens", "carol").text
    place = f"/api/v1/tokens/{made.json()['id']}"
    assert service.client.delete(place, headers=service.headers("carol")).status_code == 200
    assert service.get("/me", text).status_code == 401
    assert service.client.delete(place, headers=service.headers("carol")).status_code == 404
    assert service.post("/tokens", {"name": "nobody"}, "carol").status_code == 422
    assert service.post("/tokens", {"name": "bob", "scopes": ["all"]}, "carol").status_code == 422


def test_facts_for_the_public(service, tmp_path):
    assert service.get("/facts/people").json()["epsilon"] == "3"
    assert service.get("/facts/other").status_code == 404
    with serving(tmp_path, CONFIG + "\n[service]\nopen_facts = true\n") as open_to_all:
        told = open_to_all.get("/facts/people", None)
        assert "number of rows" in told.json()["public"][0]
        assert not {"ada", "bob"} & set(told.text.split('"'))
        assert open_to_all.get("/facts/other", None).status_code == 404


def test_a_person_cannot_ask_without_end(tmp_path):
    with serving(tmp_path, per_minute=5) as service:
        codes = [service.get("/me").status_code for _ in range(6)]
        assert codes == [200] * 5 + [429]
        assert service.get("/me", "bob").status_code == 200
        assert int(service.get("/me").headers["retry-after"]) >= 1


def test_a_bucket_fills_again():
    moment = [0.0]
    rate = RateLimit(60, clock=lambda: moment[0])
    for _ in range(60):
        rate.take("ada")
    with pytest.raises(TooMany):
        rate.take("ada")
    moment[0] = 1.01
    rate.take("ada")


def test_a_stopped_service_marks_what_it_left(tmp_path: Path):
    with serving(tmp_path) as service:
        job = service.answered(request(epsilon=0.03125))
        service.state.store.change_job(job["id"], "running")
        database = service.state.config.service.database
    from privatest.service.jobs import JobQueue
    from privatest.service.store import Store
    from tests.services import WorkersHere

    store = Store(database)
    JobQueue(store, WorkersHere(service.state.curator), 1)
    found = store.job(job["id"])
    assert found is not None
    assert found.state == "failed"
    store.close()


def test_whoever_was_revoked_sees_no_answers_any_more(tmp_path):
    with serving(tmp_path) as running:
        job = running.answered(request())
        running.state.curator.revoke("ada", reason="left")
        for place in (f"/jobs/{job['id']}", f"/jobs/{job['id']}/events", "/datasets/people"):
            assert running.get(place).status_code == 404
        assert running.get("/jobs").json()["items"] == []
        assert running.get("/datasets").json()["items"] == []
        assert running.get(f"/jobs/{job['id']}", "carol").status_code == 200


def test_a_token_of_an_analyst_that_the_file_revokes_opens_nothing(tmp_path):
    config = CONFIG.replace("epsilon = 2\n", "epsilon = 2\nrevoked = true\n")
    with serving(tmp_path, config) as running:
        assert running.get("/me").status_code == 401
        assert running.get("/me", "bob").status_code == 200


def test_an_open_history_is_about_data_sets_that_one_may_ask(tmp_path):
    config = f"{CONFIG}\n[analysts.eve]\ndatasets = []\n\n[service]\nopen_history = true\n"
    with serving(tmp_path, config) as running:
        job = running.answered(request())
        running.tokens["eve"] = new_token(running.state.store, "eve")
        assert running.get(f"/jobs/{job['id']}", "bob").status_code == 200
        assert running.get(f"/jobs/{job['id']}", "eve").status_code == 404
        assert running.get("/jobs", "eve").json()["items"] == []


def test_strangers_cannot_have_limits_begin_anew(monkeypatch):
    monkeypatch.setattr(middleware, "_MOST_BUCKETS", 10)
    moment = [0.0]
    rate = RateLimit(60, clock=lambda: moment[0])
    for _ in range(60):
        rate.take("person ada")
    for number in range(40):
        moment[0] += 0.01
        rate.take(f"address {number}")
        if number % 4 == 0:  # somebody who goes on asking is not forgotten
            with suppress(TooMany):
                rate.take("person ada")
    with pytest.raises(TooMany):
        rate.take("person ada")
    assert len(rate._buckets) <= 10


def test_half_of_a_body_is_not_taken_for_the_whole():
    """Somebody whose connection breaks may have sent epsilon=1 of epsilon=10, or the reverse."""
    called: list[Any] = []
    messages = [
        {"type": "http.request", "body": b"do=run&epsilon=1", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def app(*_: Any) -> None:
        called.append(True)

    async def receive() -> Any:
        return messages.pop(0)

    async def send(_: Any) -> None:
        called.append(True)

    scope = {"type": "http", "method": "POST"}
    asyncio.run(BodyLimit(app)(scope, receive, send))
    assert not called


@pytest.mark.parametrize("grid", ["many", "1e400"])
def test_a_grid_of_words_is_refused(service, grid):
    asked = request(method="ks", grid=grid)
    assert service.post("/price", asked).status_code == 422


@pytest.mark.parametrize(
    ("line", "words"),
    [("", "for ever"), ("renew = 'yearly'", "renewed yearly"), ("renew = 30", "30")],
)
def test_facts_say_for_how_long_a_budget_is(tmp_path, line, words):
    """A page that promises "for ever" where a budget is renewed would not be true."""
    config = CONFIG.replace("epsilon = 3\n", f"epsilon = 3\n{line}\n")
    with serving(tmp_path, config) as running:
        period = running.get("/facts/people").json()["period"]
    assert words in period
    assert ("for ever" in period) == (not line)


def watched(service: Service, person: Person, again: Any, number: str) -> list[str]:
    async def all_of_it() -> list[str]:
        events = job_events(person.name, lambda: service.state.job(number, again()))
        return [event async for event in events]

    return asyncio.run(all_of_it())


def test_whoever_is_signed_out_is_told_nothing_more(service):
    job, ada = service.answered(request()), Person("ada", ("ask",))

    def gone() -> Person:
        raise SignInNeeded

    assert "done" in watched(service, ada, lambda: ada, job["id"])[-1]
    assert watched(service, ada, gone, job["id"]) == []


def test_nobody_watches_with_more_connections_than_a_person_needs(service, monkeypatch):
    job, ada = service.answered(request()), Person("ada", ("ask",))
    monkeypatch.setitem(jobs._streams, "ada", 20)
    assert watched(service, ada, lambda: ada, job["id"]) == ["retry: 10000\n\n"]
    monkeypatch.setitem(jobs._streams, "ada", 0)
    assert "done" in watched(service, ada, lambda: ada, job["id"])[-1]
    assert "ada" not in jobs._streams


def test_analysts_do_not_see_which_parts_others_asked_about(tmp_path):
    config = CONFIG.replace("epsilon = 3\n", 'epsilon = 3\npartition = "region"\n')
    with serving(tmp_path, config) as running:
        running.answered(request(where={"region": "north"}))
        for place in ("/datasets", "/datasets/people"):
            seen = running.get(place, "bob").text
            assert '"parts":{"north"' not in seen
        own = running.get("/datasets/people").json()["budget"]["own"]
        assert "north" in own["parts"]
        (whole,) = running.get("/budgets", "carol").json()["items"]
        assert "north" in whole["parts"]


def test_old_jobs_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("privatest.service.store._JOBS_PER_ANALYST", 3)
    with serving(tmp_path) as service:
        first = service.answered(request(epsilon=0.03125))
        for _ in range(3):
            last = service.answered(request(epsilon=0.03125))  # from the record, for nothing
        kept = [job["id"] for job in service.get("/jobs").json()["items"]]
        assert len(kept) == 3
        assert kept[0] == last["id"]
        assert first["id"] not in kept
        assert service.get(f"/jobs/{first['id']}").status_code == 404
