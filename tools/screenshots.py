"""Write the pictures of the page for the docs: python -m tools.screenshots

It starts the service on the RAND data with a test issuer, and a real browser (Debian: chromium and
chromium-driver). Answers are noisy: pictures differ a little from run to run.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.e2e.browsers import Browser, Running, browsing, serving_rand
from tests.issuers import issuing

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
DESKTOP, PHONE = (1100, 760), (390, 844)
DIFFER = "/datasets/rand/differ?group=idp&columns=mdvis&epsilon=0.5"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FIGURES, help="Where to write.")
    folder = parser.parse_args().folder
    with (
        tempfile.TemporaryDirectory() as place,
        issuing() as issuer,
        serving_rand(Path(place), issuer, share=0.6) as service,
        browsing() as browser,
    ):
        take(browser, service, folder)


def take(browser: Browser, service: Running, folder: Path) -> None:
    """Walk through the page, and keep what is seen."""

    def keep(name: str, size: tuple[int, int], *, dark: bool = False) -> None:
        browser.resize(*size)
        browser.dark(dark)
        browser.screenshot(folder / f"service-{name}.png")

    browser.resize(*DESKTOP)
    browser.visit(service.url)
    token(browser, service, "ada")
    browser.visit(service.url + "/datasets/rand")
    keep("dataset", DESKTOP)
    browser.visit(service.url + DIFFER)
    browser.wait("#advice strong")
    keep("ask", (900, 1380))
    keep("ask-phone", PHONE, dark=True)
    browser.resize(*DESKTOP)
    browser.follow("button[value=run]")
    browser.wait(".result .answer")
    keep("answer", (900, 800))
    browser.visit(service.url + "/datasets/rand/means?columns=mdvis&columns=disea&epsilon=0.5")
    browser.follow("button[value=run]")
    browser.wait(".result .answer")
    keep("means-phone", PHONE)
    token(browser, service, "bob")
    for epsilon in (0.1, 0.2, 0.2):
        place = f"/datasets/rand/related?x=mdvis&y=disea&epsilon={epsilon}&alpha={epsilon / 10}"
        browser.visit(service.url + place)
        browser.follow("button[value=run]")
        browser.wait(".result .answer")
    token(browser, service, "carol")
    browser.visit(service.url + "/custody/datasets/rand")
    keep("custody", (900, 900), dark=True)


def token(browser: Browser, service: Running, who: str) -> None:
    browser.forget_cookies()
    browser.visit(service.url + "/sign-in")
    browser.fill("#token", service.tokens[who])
    browser.follow("form.stack button")
    browser.wait(".who .name")


if __name__ == "__main__":
    main()
