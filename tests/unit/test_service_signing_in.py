"""Signing in: cookies, forms of other sites, tokens that end, and issuers that lie."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from privatest.core.errors import ParameterError
from privatest.curator.config import CuratorConfig
from privatest.service.auth import find_token, local_path, new_token, session_key
from privatest.service.pages import pages
from tests.curators import CONFIG, write
from tests.issuers import SECRET, TestIssuer, issuing
from tests.services import Service, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        running.client.app.state.attempts._per_minute = 100_000  # type: ignore[attr-defined]
        yield running


@pytest.fixture
def client(service: Service) -> TestClient:
    """A browser of its own; the service is running already."""
    return browser(service)


def browser(service: Service) -> TestClient:
    return TestClient(service.client.app, base_url="http://127.0.0.1:8000", follow_redirects=False)


def csrf(client: TestClient, place: str = "/sign-in") -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', client.get(place).text)
    assert found is not None
    return found[1]


def sign_in(client: TestClient, token: str, **more: str) -> Any:
    return client.post("/sign-in", data={"csrf": csrf(client), "token": token, **more})


def test_a_token_signs_in_and_its_number_is_all_the_cookie_has(service, client):
    answer = sign_in(client, service.tokens["ada"], next="/jobs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("privatest=")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "Max-Age=28800" in cookie
    assert service.tokens["ada"] not in cookie
    assert "people" in client.get("/").text


def test_a_cookie_opens_no_api_and_a_token_no_page(service, client):
    sign_in(client, service.tokens["ada"])
    assert client.get("/api/v1/me").status_code == 401
    stranger = browser(service)
    answer = stranger.get("/", headers=service.headers("ada"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/")


def routes() -> list[APIRoute]:
    return [route for route in pages.routes if isinstance(route, APIRoute)]


def test_every_page_needs_a_session(client):
    tried = 0
    for route in routes():
        if route.path.startswith("/sign-"):
            continue
        path = route.path.replace("{number}", "abc").replace("{name}", "people")
        for method in route.methods or ():
            # without a session there is no form's word either: both refuse
            answer = client.request(method, path.replace("{key}", "differ"))
            assert answer.status_code in (303, 403), path
            tried += 1
    assert tried > 12


@pytest.mark.parametrize("given", [None, "", "wrong", "é"])
def test_no_form_of_another_site_is_taken(service, client, given):
    sign_in(client, service.tokens["carol"])
    data = {"name": "bob", "scope": "ask", "days": "1", "id": "x"}
    data |= {} if given is None else {"csrf": given}
    posts = [route.path for route in routes() if "POST" in (route.methods or ())]
    assert len(posts) >= 5
    for path in posts:
        place = path.replace("{name}", "people").replace("{key}", "differ")
        answer = client.post(place, data=data)
        assert answer.status_code == 403, path
        assert "expired" in answer.text
    assert client.get("/custody").status_code == 200  # still signed in


def test_the_form_word_of_one_session_is_wrong_in_another(service, client):
    sign_in(client, service.tokens["carol"])
    other = browser(service)
    sign_in(other, service.tokens["bob"])
    answer = client.post("/sign-out", data={"csrf": csrf(other, "/")})
    assert answer.status_code == 403


def test_changes_are_not_made_by_links(client):
    assert client.get("/sign-out").status_code == 405
    assert client.get("/custody/tokens/revoke").status_code == 405


def test_a_revoked_token_ends_its_sessions_at_once(service, client):
    text = new_token(service.state.store, "ada")
    sign_in(client, text)
    assert client.get("/").status_code == 200
    found = find_token(service.state.store, text)
    assert found is not None
    service.state.store.revoke(found.id)
    assert client.get("/").headers["location"] == "/sign-in?next=/"
    assert sign_in(client, text).status_code == 401


def test_a_signed_out_cookie_opens_nothing_even_if_it_was_copied(service, client):
    sign_in(client, service.tokens["ada"])
    kept = client.cookies["privatest"]
    assert client.post("/sign-out", data={"csrf": csrf(client, "/")}).status_code == 303
    assert client.get("/").status_code == 303
    thief = browser(service)
    thief.cookies.set("privatest", kept)
    assert thief.get("/").status_code == 303


def test_a_session_lasts_eight_hours_however_often_it_is_used(service, client, monkeypatch):
    sign_in(client, service.tokens["ada"])
    real = time.time
    monkeypatch.setattr("privatest.service.auth.time.time", lambda: real() + 7.9 * 3600)
    assert client.get("/").status_code == 200
    monkeypatch.setattr("privatest.service.auth.time.time", lambda: real() + 8.1 * 3600)
    assert client.get("/").status_code == 303


def test_a_changed_cookie_opens_nothing(service, client):
    sign_in(client, service.tokens["ada"])
    value = client.cookies["privatest"]
    thief = browser(service)
    for wrong in (value[:-2] + "xx", "e30=." + value.split(".", 1)[1], "x", ""):
        thief.cookies.set("privatest", wrong)
        assert thief.get("/").status_code == 303


def test_scopes_are_looked_up_each_time(service, client):
    sign_in(client, service.tokens["ada"])
    assert client.get("/custody").status_code == 403
    assert client.get("/custody/tokens").status_code == 403
    client = browser(service)
    sign_in(client, service.tokens["otto"])
    assert client.get("/custody").status_code == 200
    assert client.get("/datasets/people/differ").status_code == 403
    word = csrf(client, "/custody/tokens")
    made = client.post("/custody/tokens", data={"csrf": word, "name": "x", "scope": "auditor"})
    assert made.status_code == 403
    assert client.post("/custody/tokens/revoke", data={"csrf": word}).status_code == 403
    assert "Make a token" not in client.get("/custody/tokens").text


def test_wrong_tokens(service, client):
    for wrong in ("", "pt_wrong", "x" * 5000, "a\r\nSet-Cookie: b=c", "<script>"):
        answer = sign_in(client, wrong)
        assert answer.status_code == 401
        assert "opens nothing" in answer.text
        assert "<script>" not in answer.text


def test_guessing_is_slowed_down(tmp_path):
    with serving(tmp_path) as service:
        attempts = service.client.app.state.attempts  # type: ignore[attr-defined]
        attempts._clock = lambda: 0.0  # three seconds allow one more
        codes = [sign_in(browser(service), "pt_wrong").status_code for _ in range(25)]
    assert codes == [401] * 20 + [429] * 5


@pytest.mark.parametrize(
    "away",
    [
        *("https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "evil"),
        *("javascript:alert(1)", "/\t/evil.example", "/a\r\nb", ""),
    ],
)
def test_one_stays_here_after_signing_in(service, client, away):
    assert local_path(away) == "/"
    assert sign_in(client, service.tokens["ada"], next=away).headers["location"] == "/"
    assert client.get("/sign-in", params={"next": away}).headers["location"] == "/"


def test_local_paths_stay():
    assert local_path("/jobs/12ab?x=1") == "/jobs/12ab?x=1"
    assert local_path(None) == "/"


def test_the_cookie_of_a_secure_service(tmp_path):
    config = CONFIG + '\n[service]\nurl = "https://tests.example.org"\n'
    with serving(tmp_path, config) as service:
        client = TestClient(
            service.client.app, base_url="https://tests.example.org", follow_redirects=False
        )
        cookie = sign_in(client, service.tokens["ada"]).headers["set-cookie"]
    assert cookie.startswith("__Host-privatest=")
    assert "; secure" in cookie
    assert "path=/;" in cookie
    assert "domain" not in cookie.lower()


def test_the_key_is_made_once_for_its_owner_alone(tmp_path):
    config = CuratorConfig.load(write(tmp_path))
    key = session_key(config)
    path = tmp_path / "service.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert session_key(config) == key
    path.chmod(0o644)
    with pytest.raises(ParameterError, match="chmod 600"):
        session_key(config)
    path.chmod(0o600)
    path.write_text("short", encoding="utf-8")
    with pytest.raises(ParameterError, match="too short"):
        session_key(config)


# --- an issuer ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def issuer() -> Iterator[TestIssuer]:
    with issuing() as running:
        yield running


@pytest.fixture
def truthful(issuer: TestIssuer) -> TestIssuer:
    issuer.subject, issuer.lies = "ada-at-the-issuer", {}
    issuer.other_key = issuer.unsigned = False
    return issuer


def with_issuer(folder: Path, issuer: TestIssuer, claim: str = "sub") -> Any:
    (folder / "secret").write_text(SECRET, encoding="utf-8")
    config = CONFIG.replace("[analysts.ada]", '[analysts.ada]\nsubject = "ada-at-the-issuer"')
    config += f'\n[service]\nissuer = "{issuer.url}"\nclient_secret = "secret"\nclaim = "{claim}"\n'
    config += 'custodians = ["carol-at-the-issuer"]\n'
    return serving(folder, config)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, issuer: TestIssuer) -> Iterator[Service]:
    with with_issuer(tmp_path_factory.mktemp("service"), issuer) as running:
        running.client.app.state.attempts._per_minute = 100_000
        yield running


def through(client: TestClient, next_: str = "/", **changes: str) -> Any:
    """Go to the issuer and come back."""
    import httpx

    there = client.get("/sign-in/issuer", params={"next": next_})
    assert there.status_code == 302
    back = httpx.get(there.headers["location"], follow_redirects=False).headers["location"]
    parts = urlsplit(back)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&")) | changes
    return client.get(parts.path + "?" + "&".join(f"{k}={v}" for k, v in query.items()))


def test_an_issuer_signs_in(signed, truthful):
    client = browser(signed)
    assert "/sign-in/issuer" in client.get("/sign-in").text
    answer = through(client, "/jobs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    assert ">ada<" in client.get("/").text
    truthful.subject = "carol-at-the-issuer"
    keeper = browser(signed)
    through(keeper, "//evil.example")
    assert keeper.get("/custody").status_code == 200


@pytest.mark.parametrize(
    "lies",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another-service"},
        {"aud": None},
        {"iss": "http://127.0.0.1:1"},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"sub": None},
        {"sub": ["ada-at-the-issuer"]},
        {"sub": ""},
    ],
)
def test_an_issuer_that_lies_signs_nobody_in(signed, truthful, lies):
    truthful.lies = lies
    client = browser(signed)
    assert through(client).status_code == 403
    assert client.get("/").status_code == 303


def test_a_foreign_signature_signs_nobody_in(signed, truthful):
    truthful.other_key = True
    client = browser(signed)
    assert through(client).status_code == 403
    assert client.get("/").status_code == 303


def test_plain_words_sign_nobody_in(signed, truthful):
    """Without an ID token nothing was checked: no signature, audience or nonce."""
    truthful.unsigned = True
    client = browser(signed)
    assert through(client).status_code == 403
    assert client.get("/").status_code == 303


def test_an_answer_for_another_browser_signs_nobody_in(signed, truthful):
    client, other = browser(signed), browser(signed)
    assert through(client, state="guessed").status_code == 403
    there = other.get("/sign-in/issuer")
    state = re.search(r"state=([^&]+)", there.headers["location"])
    assert state is not None
    assert through(client, state=state[1]).status_code == 403
    assert through(client, code="guessed").status_code == 403
    assert client.get("/sign-in/return").status_code == 403
    assert client.get("/sign-in/return?error=denied&state=x").status_code == 403


def test_a_stranger_is_told_so(signed, truthful):
    truthful.subject = "nobody"
    client = browser(signed)
    answer = through(client)
    assert answer.status_code == 403
    assert "tell the custodian" in answer.text
    assert client.get("/").status_code == 303


def test_an_address_has_to_be_verified(tmp_path, truthful):
    with with_issuer(tmp_path, truthful, claim="email") as service:
        for verified, status in ((None, 403), (False, 403), ("true", 403), (True, 303)):
            truthful.lies = {"email": "ada-at-the-issuer", "email_verified": verified}
            assert through(browser(service)).status_code == status


def test_an_issuer_that_is_gone(tmp_path):
    gone = TestIssuer("http://127.0.0.1:9")
    with with_issuer(tmp_path, gone) as service:
        answer = browser(service).get("/sign-in/issuer")
        assert answer.status_code == 503
        assert "does not answer" in answer.text


def test_without_an_issuer_there_is_no_way_to_one(client):
    for place in ("/sign-in/issuer", "/sign-in/return"):
        assert client.get(place).headers["location"] == "/sign-in"
