"""A real browser, and a service of real data that it visits."""

from __future__ import annotations

import os
import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from privatest.curator import Curator
from privatest.datasets import randhie
from privatest.service import create_app
from privatest.service.auth import new_token
from privatest.service.state import ServiceState
from tests.issuers import SECRET, TestIssuer, free_port, running
from tests.services import opening_here

CONFIG = """\
ledger = "ledger.db"

[datasets.rand]
source = "rand.csv.gz"
schema = "rand.toml"
epsilon = 3
delta = 1e-6

[datasets.rand.policy]
tests = ["two-sample", "independence", "fit", "paired", "mean", "mean/moments", "release"]
largest_epsilon = 1

[analysts.ada]
datasets = ["rand"]
subject = "ada-at-the-issuer"

[analysts.bob]
datasets = ["rand"]
subject = "bob-at-the-issuer"
epsilon = {share}

[service]
url = "{url}"
issuer = "{issuer}"
client_secret = "secret"
custodians = ["carol-at-the-issuer"]
auditors = ["otto-at-the-issuer"]
"""
SEVERE = "SEVERE"  # what the browser calls an error of its console
PATIENCE = 60.0  # seconds until a step that cannot be done fails
# Each says that nothing was done: the step may be repeated.
NOT_DONE = (
    AssertionError,
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    """A service, and where it is."""

    url: str
    state: ServiceState
    folder: Path
    tokens: dict[str, str]


@contextmanager
def serving_rand(
    folder: Path, issuer: TestIssuer, *, share: float = 1.0, url: str = ""
) -> Iterator[Running]:
    """Serve the RAND experiment with analysts ada and bob, a custodian and an auditor."""
    data = randhie()
    shutil.copy(data.data, folder / "rand.csv.gz")
    shutil.copy(data.schema, folder / "rand.toml")
    (folder / "secret").write_text(SECRET, encoding="utf-8")
    port = free_port()
    url = url or f"http://127.0.0.1:{port}"
    path = folder / "curator.toml"
    path.write_text(CONFIG.format(url=url, issuer=issuer.url, share=share), encoding="utf-8")
    with Curator.open(path, create=True) as curator:
        curator.register("rand")
    app = create_app(path, opening=opening_here)
    app.state.attempts._per_minute = 100_000
    with running(app, port):
        state: ServiceState = app.state.service
        scopes = {"ada": "ask", "bob": "ask", "carol": "custodian", "otto": "auditor"}
        tokens = {who: new_token(state.store, who, scopes=[s]) for who, s in scopes.items()}
        yield Running(url, state, folder, tokens)


def _missing() -> str | None:
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            return f"{name} is not installed (Debian: apt-get install chromium chromium-driver)"
    return None


class Focus(NamedTuple):
    """The element that has the focus, as plain words."""

    tag: str
    name: str
    outline: str


@dataclass
class Browser:
    """A browser driven by CSS selectors.

    No method returns an element: the page may replace it at any time. Finding an element and acting
    on it are one step, repeated until it succeeds.
    """

    _driver: webdriver.Chrome

    def _act(
        self, selector: str, action: Callable[[WebElement], T], seconds: float = PATIENCE
    ) -> T:
        end = time.monotonic() + seconds
        while True:
            try:
                return action(self._driver.find_element(By.CSS_SELECTOR, selector))
            except NOT_DONE:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def visit(self, url: str) -> None:
        self._driver.get(url)

    def wait(self, selector: str) -> None:
        """Wait until there is such an element."""
        self._act(selector, lambda _: None)

    def text(self, selector: str) -> str:
        return self._act(selector, lambda element: element.text)

    def expect(self, selector: str, text: str, seconds: float = PATIENCE) -> None:
        """Wait until an element contains a text."""

        def check(element: WebElement) -> None:
            shown = element.text
            assert text in shown, f"{selector} shows {shown!r}"

        self._act(selector, check, seconds)

    def has(self, selector: str) -> bool:
        """Return whether there is such an element now."""
        return bool(self._driver.find_elements(By.CSS_SELECTOR, selector))

    def is_displayed(self, selector: str) -> bool:
        return self._act(selector, lambda element: element.is_displayed())

    def click(self, selector: str) -> None:
        def click(element: WebElement) -> None:
            self._driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()

        self._act(selector, click)

    def follow(self, selector: str) -> None:
        """Click what leads to another page, and wait for that page."""
        self._driver.execute_script("window.isLeft = true")
        self.click(selector)
        end = time.monotonic() + PATIENCE
        arrived = "return !window.isLeft && document.readyState === 'complete'"
        while not self._driver.execute_script(arrived):
            assert time.monotonic() < end, f"{selector} leads nowhere"
            time.sleep(0.05)

    def fill(self, selector: str, text: str) -> None:
        def fill(element: WebElement) -> None:
            element.clear()
            element.send_keys(text)

        self._act(selector, fill)

    def choose(self, selector: str, option: str) -> None:
        """Type the name of an option of a list."""
        self._act(selector, lambda element: element.send_keys(option))

    def tab(self) -> Focus:
        """Press the tab key, and return what has the focus then."""
        ActionChains(self._driver).send_keys(Keys.TAB).perform()
        return Focus(
            *self._driver.execute_script(
                "const e = document.activeElement;"
                "return [e.tagName, e.id || e.innerText, getComputedStyle(e).outlineStyle]"
            )
        )

    def forget_cookies(self) -> None:
        self._driver.delete_all_cookies()

    def url(self) -> str:
        return self._driver.current_url

    def source(self) -> str:
        return self._driver.page_source

    def screenshot(self, path: Path) -> None:
        self._driver.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
        self._driver.save_screenshot(str(path))

    def resize(self, width: int, height: int) -> None:
        """Show pages in this size, as a phone would: windows cannot be that narrow."""
        self._driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def dark(self, on: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def console(self) -> list[str]:
        """Return the errors on the console since the last call."""
        return [e["message"] for e in self._driver.get_log("browser") if e["level"] == SEVERE]

    def sideways(self) -> int:
        """By how many pixels the page is wider than the window."""
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return int(self._driver.execute_script(script))

    def accessibility(self) -> list[str]:
        """What axe-core finds wrong with the page."""
        axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
        self._driver.execute_script(axe)
        found: dict[str, Any] = self._driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done)"
        )
        return [
            f"{each['id']}: {each['help']} ({each['nodes'][0]['html'][:120]})"
            for each in found["violations"]
        ]


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(str(shutil.which("chromedriver")))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def browser_or_skip() -> Iterator[Browser]:
    """Skip with the reason where there is no browser; where CI is set, fail."""
    reason = _missing()
    if reason is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with browsing() as found:
        yield found


def left_of(text: str) -> float:
    """Read what is left of a budget off a page."""
    found = re.search(r"epsilon ([\d.]+) of", text)
    assert found is not None, text
    return float(found[1])


def reachable(url: str) -> bool:
    with urllib.request.urlopen(url + "/api/v1/health", timeout=10) as answer:
        return bool(answer.status == 200)
