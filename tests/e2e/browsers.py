"""A real browser, and a service of real data that it visits."""

from __future__ import annotations

import os
import re
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import text_to_be_present_in_element
from selenium.webdriver.support.ui import WebDriverWait

from privatest.curator import Curator
from privatest.datasets import randhie
from privatest.service import create_app
from privatest.service.house import House
from privatest.service.tokens import new_token
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


@dataclass(frozen=True)
class Running:
    """A service, and where it is."""

    url: str
    house: House
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
        house: House = app.state.house
        scopes = {"ada": "ask", "bob": "ask", "carol": "custodian", "otto": "auditor"}
        tokens = {who: new_token(house.store, who, scopes=[s]) for who, s in scopes.items()}
        yield Running(url, house, folder, tokens)


def _missing() -> str | None:
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            return f"{name} is not installed (Debian: apt-get install chromium chromium-driver)"
    return None


@dataclass
class Browser:
    """A browser that keeps what its console says."""

    driver: webdriver.Chrome
    errors: list[str] = field(default_factory=list)

    def visit(self, url: str) -> None:
        self.driver.get(url)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def wait(self, selector: str, seconds: float = 60) -> WebElement:
        return WebDriverWait(self.driver, seconds).until(
            lambda driver: driver.find_element(By.CSS_SELECTOR, selector)
        )

    def wait_for_text(self, selector: str, text: str, seconds: float = 60) -> None:
        WebDriverWait(self.driver, seconds).until(
            text_to_be_present_in_element((By.CSS_SELECTOR, selector), text)
        )

    def click(self, selector: str) -> None:
        element = self.find(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def fill(self, selector: str, text: str) -> None:
        element = self.find(selector)
        element.clear()
        element.send_keys(text)

    def resize(self, width: int, height: int) -> None:
        """Show pages in this size, as a phone would: windows cannot be that narrow."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def dark(self, on: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def console(self) -> list[str]:
        """What the console said since the last look: errors only."""
        found = [e["message"] for e in self.driver.get_log("browser") if e["level"] == SEVERE]
        self.errors += found
        return found

    def sideways(self) -> int:
        """By how many pixels the page is wider than the window."""
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return int(self.driver.execute_script(script))

    def accessibility(self) -> list[str]:
        """What axe-core finds wrong with the page."""
        axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
        self.driver.execute_script(axe)
        found: dict[str, Any] = self.driver.execute_async_script(
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
