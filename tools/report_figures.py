"""Write the pictures of the page on reports: python -m tools.report_figures

Real commands on the RAND data, and a real browser (Debian: chromium and chromium-driver). Answers
are noisy: pictures differ a little from run to run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from privatest import planning, simulation
from privatest.cli import main as privatest
from privatest.core.privacy import Budget
from privatest.datasets import randhie
from privatest.display.reports import report
from privatest.requests.results import result_from_dict
from tests.e2e.browsers import Browser, browsing

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
DESKTOP, PHONE = (900, 1500), (390, 1200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FIGURES, help="Where to write.")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as place, browsing() as browser:
        document = answer(Path(place))
        page = Path(place) / "report.html"
        report(document, page)
        take(browser, page, folder)
    pictures(document, folder)


def answer(place: Path) -> dict[str, Any]:
    """Compare two plans of the RAND experiment, with a ledger, as a user would."""
    rand, ledger = randhie(), str(place / "ledger.db")
    data = place / rand.data.name
    data.write_bytes(rand.data.read_bytes())
    privatest(["ledger", "init", "randhie", "--epsilon", "3", "--ledger", ledger])
    words = ["two-sample", str(data), "--schema", str(rand.schema), "--group", "idp"]
    words += ["--columns", "mdvis", "--method", "mann-whitney", "--membership", "public"]
    document: dict[str, Any] = json.loads(
        printed([*words, "--epsilon", "0.05", "--ledger", ledger, "--json"])
    )
    return document | {"files": [rand.data.name]}


def printed(words: list[str]) -> str:
    """Return what a command prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert privatest(words) == 0
    return output.getvalue()


def take(browser: Browser, page: Path, folder: Path) -> None:
    """Keep what is seen on a wide screen, and on a phone in the dark."""
    for name, size, dark in (("desktop", DESKTOP, False), ("phone", PHONE, True)):
        browser.resize(*size)
        browser.dark(dark)
        browser.visit(page.as_uri())
        browser.screenshot(folder / f"report-{name}.png")


def pictures(document: dict[str, Any], folder: Path) -> None:
    """Draw a statistic against its null law, and the price of privacy."""
    drawn: dict[str, Any] = {
        "null-law": result_from_dict(document, Budget(document["epsilon"])),
        "price": planning.price_of_privacy("mann-whitney", simulation.shift(0.3)),
    }
    for name, result in drawn.items():
        result.plot().figure.savefig(folder / f"plot-{name}.png", dpi=110)


if __name__ == "__main__":
    main()
