"""The page: what people see, what forms turn into, and what is escaped."""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from privatest.data.schema import Schema
from privatest.service.auth import find_token, new_token
from privatest.service.forms import FORMS, advice
from privatest.service.pages import budget_view, pvalue_scale, spending_line
from tests.curators import CONFIG, SCHEMA, request
from tests.services import Service, serving

NASTY = [
    """"><script>alert(1)</script><img src=x onerror=alert(1)>{{77*77}}'; DROP TABLE x; --""",
    "../../etc\r\nSet-Cookie: evil=1\x00\ud7ff",
    "9" * 400,
]
DIFFER = {"group": "plan", "columns": ["visits"], "epsilon": "0.05"}
ASKED: dict[str, dict[str, Any]] = {
    "differ": DIFFER,
    "related": {"x": ["visits"], "y": ["age"], "epsilon": "0.05"},
    "fits": {"column": "visits", "dist": "uniform(0, 80)", "epsilon": "0.05"},
    "change": {"before": "visits", "after": "age", "epsilon": "0.05"},
    "means": {"columns": ["visits"], "q": "0.5", "epsilon": "0.05"},
    "proportions": {"outcome": "plan", "success": "plus", "epsilon": "0.05"},
    "publish": {"columns": ["plan"], "points": "20", "epsilon": "0.05", "delta": "1e-7"},
}


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """All tags of a page with their attributes, as a browser would read them."""
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader().feed(page)
    return found


class Browser:
    """A client that remembers its session's word."""

    def __init__(self, service: Service, who: str) -> None:
        self.client = TestClient(
            service.client.app, base_url="http://127.0.0.1:8000", follow_redirects=True
        )
        self.csrf = ""
        self.get("/sign-in")
        answer = self.post("/sign-in", token=service.tokens[who])
        assert answer.status_code == 200

    def get(self, place: str, **more: Any) -> Any:
        return self._seen(self.client.get(place, **more))

    def post(self, place: str, **data: Any) -> Any:
        return self._seen(self.client.post(place, data={"csrf": self.csrf, **data}))

    def ended(self, answer: Any) -> Any:
        """Load the page of a job until it has ended."""
        for _ in range(200):
            if "data-events" not in answer.text:
                return answer
            time.sleep(0.05)
            answer = self.get(answer.url.path)
        raise AssertionError("the job does not end")

    def _seen(self, answer: Any) -> Any:
        found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    return Browser(service, "ada")


@pytest.fixture(scope="module")
def carol(service: Service) -> Browser:
    return Browser(service, "carol")


def test_a_data_set_in_words(ada):
    page = ada.get("/datasets/people").text
    assert "whole numbers from 0 to 120" in page
    assert "one of basic, plus; it is hidden who is which" in page
    assert "everybody may know who is which" in page
    for form in FORMS.values():
        assert form.words in page


@pytest.mark.parametrize("key", list(ASKED))
def test_every_question_is_advised_and_rehearsed_for_free(service, ada, key):
    spent = service.get("/budgets", "otto").json()
    page = ada.post(f"/datasets/people/{key}", **ASKED[key], do="look")
    assert page.status_code == 200, page.text
    assert "is recommended." in page.text
    page = ada.post(f"/datasets/people/{key}", **ASKED[key], do="rehearse")
    assert page.status_code == 200, page.text
    assert "Made-up rows:" in page.text
    assert service.get("/budgets", "otto").json() == spent
    part = ada.get(f"/datasets/people/{key}/advice", params=ASKED[key])
    assert "is recommended." in part.text
    assert "<html" not in part.text


def test_from_a_form_to_an_answer_and_its_files(service, ada):
    page = ada.ended(ada.post("/datasets/people/differ", **DIFFER, do="run"))
    assert "reject the hypothesis" in page.text
    assert "Privacy spent: epsilon = 0.05" in page.text
    assert "/picture.png" in page.text
    place = page.url.path
    document = ada.get(f"{place}/answer.json")
    assert "attachment" in document.headers["content-disposition"]
    assert document.json()["state"] == "answered"
    report = ada.get(f"{place}/report.html").text
    assert "reject the hypothesis" in report
    assert "http" not in report.replace("http-equiv", "")
    script = ada.get(f"{place}/script.py").text
    calls = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    asked = next(c for c in calls if getattr(c.func, "attr", "") == "run").args[0]
    assert ast.literal_eval(asked) == document.json()["request"]
    assert "service.tokens" not in script
    assert place in ada.get("/jobs").text
    assert ada.get(f"{place}/picture.png").headers["content-type"] == "image/png"
    again = ada.ended(ada.post("/datasets/people/differ", **DIFFER, do="run"))
    assert "asking again cost nothing" in again.text
    assert "on record and costs nothing" in ada.post("/datasets/people/differ", **DIFFER).text


@pytest.mark.parametrize("key", ["means", "proportions", "publish"])
def test_estimates_and_releases_are_shown(ada, key):
    page = ada.ended(ada.post(f"/datasets/people/{key}", **ASKED[key], do="run"))
    assert "Privacy spent" in page.text
    place = page.url.path
    assert "<h1>" in ada.get(f"{place}/report.html").text
    if key != "means":
        picture = ada.get(f"{place}/picture.png")
        assert picture.headers["content-type"] == "image/png"
        assert f"{place}/picture.png" in page.text


def test_a_used_up_budget_is_told(tmp_path):
    config = CONFIG.replace("epsilon = 2\n", "epsilon = 0.1\n")
    with serving(tmp_path, config) as service:
        ada = Browser(service, "ada")
        ada.ended(ada.post("/datasets/people/differ", **DIFFER | {"epsilon": "0.1"}, do="run"))
        page = ada.post("/datasets/people/differ", **DIFFER, do="run")
        assert page.status_code == 409
        assert "more than what is left" in page.text
        assert "Nothing was spent" in page.text
        assert "epsilon 0 of 0.1 left" in page.text
        custody = Browser(service, "carol").get("/custody").text
        assert "<strong>ada</strong> runs low on people" in custody


def test_nobody_sees_the_answers_of_others(service, ada):
    page = ada.ended(ada.post("/datasets/people/differ", **DIFFER, do="run"))
    bob = Browser(service, "bob")
    for file in ("", "/answer.json", "/report.html", "/script.py", "/picture.png", "/events"):
        assert bob.get(page.url.path + file).status_code == 404
    assert page.url.path not in bob.get("/jobs").text
    assert page.url.path in Browser(service, "otto").get("/jobs").text


def test_a_revoked_token_ends_watching(service, ada, monkeypatch):
    page = ada.ended(ada.post("/datasets/people/differ", **DIFFER, do="run"))
    place = f"{page.url.path}/events"
    assert "event: done" in ada.get(place).text
    service.tokens["late"] = new_token(service.state.store, "ada")
    watching = Browser(service, "late")

    service.state.store.change_job(page.url.path.rpartition("/")[2], "running")

    async def pause(_: float) -> None:
        found = find_token(service.state.store, service.tokens["late"])
        assert found is not None
        service.state.store.revoke(found.id)

    monkeypatch.setattr("privatest.service.jobs.asyncio", SimpleNamespace(sleep=pause))
    told = watching.get(place).text
    assert told.count("event: ") == told.count("event: state") == 1


def test_the_custodian_sees_whole_requests(service, ada, carol):
    ada.ended(ada.post("/datasets/people/differ", **DIFFER, do="run"))
    page = carol.get("/custody/datasets/people").text
    assert "Spending over time" in page
    assert "<polyline" in page
    assert "two-sample" in page
    assert "committed" in page
    assert "mann-whitney" in page
    assert carol.get("/custody/datasets/other").status_code == 404
    assert carol.get("/datasets/people").status_code == 200


def test_unfinished_requests_are_shown(tmp_path, monkeypatch):
    with serving(tmp_path) as service:
        monkeypatch.setattr("privatest.curator.curator.answer_from_rows", lambda *a: 1 / 0)
        monkeypatch.setattr("privatest.ledger.spending.LedgerHold.fail", lambda *a: None)
        service.answered(request())
        carol = Browser(service, "carol")
        assert "1 unfinished, counted as spent" in carol.get("/custody").text
        assert "lost in a crash" in carol.get("/custody/datasets/people").text


def test_tokens_are_made_and_revoked(service, carol):
    page = carol.post("/custody/tokens", name="bob", scope=["ask"], days="3")
    assert page.status_code == 201
    (text,) = re.findall(r">(pt_[^<]+)<", page.text)
    assert service.get("/me", text).json()["name"] == "bob"
    assert text not in carol.get("/custody/tokens").text
    found = find_token(service.state.store, text)  # not the newest by time: clocks are set back
    assert found is not None
    number = found.id
    assert carol.post("/custody/tokens/revoke", id=number).status_code == 200
    assert service.get("/me", text).status_code == 401
    assert carol.post("/custody/tokens/revoke", id=number).status_code == 404
    for wrong in (
        {"name": "nobody", "scope": "ask"},
        {"name": "", "scope": "auditor"},
        {"name": "x", "scope": "all"},
        {"name": "x", "scope": "auditor", "days": "-1"},
        {"name": "x", "scope": "auditor", "days": "99999"},
        {"name": "x"},
    ):
        assert carol.post("/custody/tokens", **wrong).status_code == 422


@pytest.mark.parametrize("text", NASTY, ids=["markup", "lines", "digits"])
def test_nothing_that_is_typed_is_believed(service, ada, carol, text):
    fields = {
        "differ": ("group", "columns", "groups", "epsilon", "delta", "alpha", "method", "more"),
        "related": ("x", "y", "given", "alternative"),
        "fits": ("column", "dist", "family", "shares"),
        "change": ("before", "after"),
        "means": ("columns", "q"),
        "proportions": ("outcome", "success", "group"),
        "publish": ("columns", "points", "where-region", "where-" + text),
    }
    answers = []
    for key, names in fields.items():
        for name in names:
            data = ASKED[key] | {name: text}
            answers.append(ada.post(f"/datasets/people/{key}", **data, do="rehearse"))
            answers.append(ada.get(f"/datasets/people/{key}", params=data))
    answers.append(ada.post("/datasets/people/differ", **DIFFER, do=text))
    answers.append(ada.get("/datasets/people/differ/advice", params=DIFFER | {"more": text}))
    for name in ("name", "scope", "days"):
        data = {"name": "x", "scope": "auditor", "days": "1"} | {name: text}
        answers.append(carol.post("/custody/tokens", **data))
    answers.append(carol.post("/custody/tokens/revoke", id=text))
    answers.append(carol.get("/custody/tokens"))
    for answer in answers:
        assert answer.status_code < 500
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "5929" not in answer.text
        assert "evil" not in str(answer.headers.get("set-cookie"))


def test_templates_do_not_compute_what_is_typed(ada):
    page = ada.post("/datasets/people/fits", **ASKED["fits"] | {"dist": "{{77*77}}"}, do="look")
    assert "5929" not in page.text
    assert "{{77*77}}" in page.text


def test_places_that_are_not_there(ada):
    for place in ("/nothing", "/datasets/other", "/datasets/people/nothing", "/jobs/abc"):
        page = ada.get(place)
        assert page.status_code == 404
        assert "<h1>There is nothing here</h1>" in page.text
    assert ada.get("/jobs/NOT-A-NUMBER").status_code == 422
    assert ada.get("/static/nothing.js").status_code == 404
    for place in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc"):
        assert ada.get(place).status_code == 404


def test_a_page_that_fails_says_one_sentence(service, ada, monkeypatch):
    monkeypatch.setattr("privatest.service.state.ServiceState.jobs_of", lambda *a: 1 / 0)
    client = TestClient(
        service.client.app,
        base_url="http://127.0.0.1:8000",
        raise_server_exceptions=False,
        cookies=ada.client.cookies,
    )
    answer = client.get("/jobs")
    assert answer.status_code == 500
    assert "nothing was released" in answer.text
    assert "division" not in answer.text


def test_pages_carry_no_script_or_style_of_their_own(ada, carol):
    places = ["/", "/datasets/people", "/datasets/people/differ", "/jobs"]
    pages = [ada.get(place) for place in places]
    pages += [carol.get(place) for place in ("/custody", "/custody/tokens")]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        for tag, attributes in tags(page.text):
            assert tag != "style"
            assert tag != "script" or "src" in attributes
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
            for name in ("src", "href", "action"):
                assert not re.match("(https?:)?//", attributes.get(name) or "")


def test_a_release_of_everything_can_be_offered_in_part(tmp_path):
    config = CONFIG.replace("largest_epsilon = 1", 'largest_epsilon = 1\ntests = ["two-sample/ks"]')
    with serving(tmp_path, config) as service:
        ada = Browser(service, "ada")
        assert ada.get("/datasets/people/related").status_code == 404
        page = ada.post("/datasets/people/differ", **DIFFER, do="look").text
        assert "<strong>ks</strong> is recommended." in page
        wrong = ada.post("/datasets/people/differ", **DIFFER, method="mmd", do="run")
        assert wrong.status_code == 422


def test_advice_is_only_of_what_is_offered(tmp_path):
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    schema = Schema.from_toml(tmp_path / "people.toml")
    offered = {("two-sample", "mmd"), ("two-sample", "tv")}
    more: dict[str, Any] = {"schema": schema, "rows": 40, "epsilon": 1.0, "offered": offered}
    one = advice("two-sample", {"group": "region", "columns": ["plan"]}, **more)
    assert [each.method for each in one] == ["tv", "mmd"]
    assert all(each.reason.endswith(".") for each in one)
    assert advice("fit", {}, **more) == []


def test_budgets_in_the_terms_that_decide():
    account = {"left": {"events": 3}, "limits": {"events": 12}, "used": 0.75}
    assert budget_view(account).words == "3 of 12 requests left"
    tight = {"left": {"rho": "1"}, "limits": {"rho": "4"}, "used": 0.85}
    assert budget_view(tight).low
    assert budget_view(tight).left is None


def test_small_pictures():
    assert pvalue_scale(None, 0.05) is None
    scale = pvalue_scale(0.0, 0.05)
    assert scale is not None
    assert scale["pvalue"] == 20
    assert pvalue_scale(1.0, 0.05)["pvalue"] == 580  # type: ignore[index]
    assert spending_line([], 1.0) is None
    line = spending_line([("2026-01-01T00:00:00", 0.5), ("2026-01-02T00:00:00", 0.25)], 1.0)
    assert line is not None
    assert "epsilon 0.75 of 1" in line["words"]


def test_no_value_is_on_any_page_or_in_any_file(tmp_path):
    canary = 61.0625  # of one person; exact in binary, so that every spelling would show it
    visits = [canary, *(float(2 * i) for i in range(1, 40))]
    with serving(tmp_path, visits=visits) as service:
        ada, carol = Browser(service, "ada"), Browser(service, "carol")
        texts = []
        for key, asked in ASKED.items():
            page = ada.ended(ada.post(f"/datasets/people/{key}", **asked, do="run"))
            place = page.url.path
            if key in ("differ", "related", "fits", "change"):  # a quantile may be anybody's value
                files = ("answer.json", "report.html", "script.py")
                texts += [page.text, *(ada.get(f"{place}/{file}").text for file in files)]
        for place in ("/", "/datasets/people", "/datasets/people/differ"):
            texts.append(ada.get(place).text)
        for place in ("/custody", "/custody/datasets/people", "/custody/tokens", "/jobs"):
            texts.append(carol.get(place).text)
    log = tmp_path / "curator.log"
    texts.append(log.read_text(encoding="utf-8") if log.exists() else "")
    assert not [text for text in texts if "61.06" in text]


def test_a_rehearsal_reads_no_row(service, monkeypatch):
    monkeypatch.setattr("privatest.curator.curator.answer_from_rows", lambda *a: 1 / 0)
    monkeypatch.setattr("privatest.data.reading.Place.read", lambda *a, **k: 1 / 0)
    curator = service.state.curator
    before = curator.ledger.totals("people").to_dict()
    found = curator.rehearse(request(), analyst="ada").to_dict()
    assert found["made_up_rows"] is True
    json.dumps(found, allow_nan=False)
    assert curator.ledger.totals("people").to_dict() == before


def test_the_power_to_expect_is_told_and_ranks(service):
    schema = service.state.config.datasets["people"].schema
    offered = {("two-sample", name) for name in ("mmd", "ks", "mann-whitney")}
    columns = {"columns": ["visits"], "group": "plan"}
    few, many = (
        advice("two-sample", columns, schema=schema, rows=400, epsilon=price, offered=offered)
        for price in (0.1, 1)
    )
    assert many[0].method == "mann-whitney"
    assert many[0].power.startswith("At this size and price it sees a shift of")
    assert few[0].power != many[0].power
    typed = advice("two-sample", columns, schema=schema, rows=400, epsilon="<b>", offered=offered)
    assert {each.power for each in typed} == {""}


@pytest.mark.parametrize("key", ["differ", "related", "means"])
@pytest.mark.parametrize("name", ["columns", "group", "groups", "x", "y"])
def test_more_options_of_a_wrong_type_are_refused(ada, key, name):
    wrong: list[Any] = [5, None, [[]], {}]
    for value in wrong:
        given = {"epsilon": "0.05", "more": json.dumps({name: value})}
        answer = ada.get(f"/datasets/people/{key}/advice", params=given)
        assert answer.status_code == 200
        assert f"{name} must be text" in answer.text
