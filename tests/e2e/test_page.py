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
    browser.driver.delete_all_cookies()
    issuer.subject = f"{who}-at-the-issuer"
    browser.visit(service.url)
    browser.click("a.button")
    browser.wait(".who .name")


def check(browser: Browser) -> None:
    """A page is wide enough, accessible, quiet, and tells nothing it should not."""
    assert browser.console() == []
    assert browser.sideways() <= 0, browser.driver.current_url
    assert browser.accessibility() == [], browser.driver.current_url
    text = browser.driver.page_source
    assert not [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_from_signing_in_to_an_answer(browser, service, issuer, size):
    browser.resize(*size)
    sign_in(browser, service, issuer, "ada")
    check(browser)
    before = left_of(browser.find(".budgets").text)
    browser.click(".card a")
    browser.wait("table")
    check(browser)
    browser.click("a[href$='/differ']")
    browser.wait("#ask")
    check(browser)
    browser.find("#group").send_keys("idp")
    browser.click("input[name=columns][value=mdvis]")
    epsilon = "0.5" if size == DESKTOP else "0.4"
    browser.fill("#epsilon", epsilon)
    assert f"{before - float(epsilon):g} of the data set" in browser.find("#rest").text
    # asked for by the script, after each change: that of the last one counts
    browser.wait_for_text("#advice", "mann-whitney is recommended")
    check(browser)
    browser.click("button[value=rehearse]")
    browser.wait(".rehearsal")
    assert "Made-up rows" in browser.find(".rehearsal").text
    check(browser)
    browser.click("button[value=run]")
    answer = browser.wait(".answer").text  # without a click: the script watches the job
    # whichever way the noise fell
    assert answer.startswith(("We reject the hypothesis", "We do not reject the hypothesis"))
    assert f"epsilon = {epsilon}" in browser.find(".guarantee").text
    check(browser)
    browser.visit(service.url)
    assert left_of(browser.find(".budgets").text) == pytest.approx(before - float(epsilon))
    browser.visit(service.url + "/jobs")
    check(browser)


def test_a_used_up_budget_is_refused(browser, service, issuer):
    browser.resize(*PHONE)
    sign_in(browser, service, issuer, "bob")
    place = f"{service.url}/datasets/rand/means?columns=mdvis&epsilon=0.5"
    browser.visit(place)
    browser.click("button[value=run]")
    browser.wait(".answer")
    assert browser.wait(".picture").is_displayed()
    check(browser)
    browser.visit(place.replace("0.5", "0.25"))
    assert "more than what is left of your own budget" in browser.find("#rest").text
    browser.click("button[value=run]")
    assert "Nothing was spent" in browser.wait(".problem").text
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
    assert bool(browser.driver.find_elements("css selector", "#days")) == (who == "carol")
    if who == "carol":
        browser.fill("#name", "ada")
        browser.click("form.stack button")
        assert browser.wait(".made pre").text.startswith("pt_")
        check(browser)
        browser.click("td button")
        browser.wait("table")
        assert "revoked" in browser.find("tbody tr").text


def test_the_other_pages_in_the_dark(browser, service, issuer):
    browser.dark(True)
    browser.driver.delete_all_cookies()
    browser.visit(service.url)
    check(browser)
    browser.fill("#token", "pt_wrong")
    browser.click("form button")
    assert "opens nothing" in browser.wait(".problem").text
    assert [line for line in browser.console() if "401" not in line] == []
    browser.fill("#token", service.tokens["ada"])
    browser.click("form button")
    browser.wait(".who .name")
    for key in ("related", "fits", "change", "means", "proportions", "publish"):
        browser.visit(f"{service.url}/datasets/rand/{key}")
        check(browser)
    browser.visit(service.url + "/nothing")
    assert "There is nothing here" in browser.find("h1").text
    assert browser.accessibility() == []
    browser.console()
    browser.click(".who button")
    browser.wait("#token")
    browser.visit(service.url + "/jobs")
    assert "/sign-in" in browser.driver.current_url
    browser.dark(False)


def test_keys_reach_everything(browser, service, issuer):
    browser.driver.delete_all_cookies()
    browser.visit(service.url)
    reached = []
    for _ in range(8):
        active = browser.driver.switch_to.active_element
        active.send_keys("\ue004")  # Tab
        active = browser.driver.switch_to.active_element
        reached.append(active.get_attribute("id") or active.text)
        outline = active.value_of_css_property("outline-style")
        assert outline != "none" or active.tag_name == "body"
    assert {"Skip to the content", "Sign in with your organisation", "token"} <= set(reached)
