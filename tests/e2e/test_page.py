"""A real browser signs in at an issuer, asks about the RAND data, and sees the budget go down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.browsers import Browser, Running, browser_or_skip, left_of, serving_rand
from tests.issuers import TestIssuer, issuing

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

DESKTOP, PHONE = (1280, 900), (390, 844)
CANARIES = ("ada-at-the-issuer", "rand.csv.gz", "ledger.db", "a secret of the tests")


@pytest.fixture(scope="module")
def issuer() -> Iterator[TestIssuer]:
    with issuing() as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, issuer: TestIssuer) -> Iterator[Running]:
    with serving_rand(tmp_path_factory.mktemp("rand"), issuer, share=0.5) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from browser_or_skip()


def sign_in(browser: Browser, service: Running, issuer: TestIssuer, who: str) -> None:
    browser.forget_cookies()
    issuer.subject = f"{who}-at-the-issuer"
    browser.visit(service.url)
    browser.follow("a.button")
    browser.wait(".who .name")


def check(browser: Browser) -> None:
    """A page is wide enough, accessible, quiet, and tells nothing it should not."""
    assert browser.console() == []
    assert browser.sideways() <= 0, browser.url()
    assert browser.accessibility() == [], browser.url()
    text = browser.source()
    assert not [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_from_signing_in_to_an_answer(browser, service, issuer, size):
    browser.resize(*size)
    sign_in(browser, service, issuer, "ada")
    check(browser)
    before = left_of(browser.text(".budgets"))
    browser.follow(".card a")
    browser.wait("table")
    check(browser)
    browser.follow("a[href$='/differ']")
    browser.wait("#ask")
    check(browser)
    browser.choose("#group", "idp")
    browser.click("input[name=columns][value=mdvis]")
    epsilon = "0.5" if size == DESKTOP else "0.4"
    browser.fill("#epsilon", epsilon)
    browser.expect("#rest", f"{before - float(epsilon):g} of the data set")
    # asked for by the script, after each change: that of the last one counts
    browser.expect("#advice", "mann-whitney is recommended")
    check(browser)
    browser.follow("button[value=rehearse]")
    browser.expect(".rehearsal", "Made-up rows")
    check(browser)
    browser.follow("button[value=run]")
    answer = browser.text(".result .answer")  # without a click: the script watches the job
    # whichever way the noise fell
    assert answer.startswith(("We reject the hypothesis", "We do not reject the hypothesis"))
    browser.expect(".guarantee", f"epsilon = {epsilon}")
    check(browser)
    browser.visit(service.url)
    assert left_of(browser.text(".budgets")) == pytest.approx(before - float(epsilon))
    browser.visit(service.url + "/jobs")
    check(browser)


def test_a_used_up_budget_is_refused(browser, service, issuer):
    browser.resize(*PHONE)
    sign_in(browser, service, issuer, "bob")
    place = f"{service.url}/datasets/rand/means?columns=mdvis&epsilon=0.5"
    browser.visit(place)
    browser.follow("button[value=run]")
    browser.wait(".result .answer")
    assert browser.is_displayed(".picture")
    check(browser)
    browser.visit(place.replace("0.5", "0.25"))
    browser.expect("#rest", "more than what is left of your own budget")
    browser.follow("button[value=run]")
    browser.expect(".problem", "Nothing was spent")
    assert [line for line in browser.console() if "409" not in line] == []
    assert browser.accessibility() == []


@pytest.mark.parametrize("who", ["carol", "otto"])
def test_custody(browser, service, issuer, who):
    browser.resize(*DESKTOP)
    sign_in(browser, service, issuer, who)
    for place in ("/custody", "/custody/datasets/rand", "/custody/tokens", "/jobs"):
        browser.visit(service.url + place)
        check(browser)
    browser.visit(service.url + "/custody/tokens")
    assert browser.has("#days") == (who == "carol")
    if who == "carol":
        browser.fill("#name", "ada")
        browser.follow("form.stack button")
        assert browser.text(".made pre").startswith("pt_")
        check(browser)
        browser.follow("td button")
        browser.expect("tbody tr", "revoked")


def test_the_other_pages_in_the_dark(browser, service, issuer):
    browser.dark(True)
    browser.forget_cookies()
    browser.visit(service.url)
    check(browser)
    browser.fill("#token", "pt_wrong")
    browser.follow("form button")
    browser.expect(".problem", "opens nothing")
    assert [line for line in browser.console() if "401" not in line] == []
    browser.fill("#token", service.tokens["ada"])
    browser.follow("form button")
    browser.wait(".who .name")
    for key in ("related", "fits", "change", "means", "proportions", "publish"):
        browser.visit(f"{service.url}/datasets/rand/{key}")
        check(browser)
    browser.visit(service.url + "/nothing")
    browser.expect("h1", "There is nothing here")
    assert browser.accessibility() == []
    browser.console()
    browser.follow(".who button")
    browser.wait("#token")
    browser.visit(service.url + "/jobs")
    assert "/sign-in" in browser.url()
    browser.dark(False)


def test_keys_reach_everything(browser, service, issuer):
    browser.forget_cookies()
    browser.visit(service.url)
    reached = []
    for _ in range(8):
        focus = browser.tab()
        reached.append(focus.name)
        assert focus.outline != "none" or focus.tag == "BODY"
    assert {"Skip to the content", "Sign in with your organisation", "token"} <= set(reached)
