"""The R package, checked by R, with its tests run against a service that is a process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import privatest as pt
from privatest.service.auth import new_token
from privatest.service.store import Store
from tests.curators import CONFIG, opened
from tests.e2e.flaky import bad_line
from tests.e2e.served import served, spent

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "r"
_DEBIAN = "r-base-core r-cran-generics r-cran-httr2 r-cran-jsonlite r-cran-testthat"
_PACKAGES = ("generics", "httr2", "jsonlite", "testthat")
_PATIENCE = 900.0  # seconds; a limit for a machine that is busy, not a measurement


def _missing() -> str | None:
    reason = f"R or one of its packages is not installed (Debian: apt-get install {_DEBIAN})"
    if shutil.which("R") is None:
        return reason
    code = f"quit(status = !all(sapply(c{_PACKAGES!r}, requireNamespace, quietly = TRUE)))"
    found = subprocess.run(["Rscript", "-e", code], capture_output=True, check=False)
    return None if found.returncode == 0 else reason


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as R builds it; without R it is skipped with the reason, where CI is set not."""
    reason = _missing()
    if reason is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("package")
    subprocess.run(["R", "CMD", "build", PACKAGE], cwd=folder, capture_output=True, check=True)
    (found,) = folder.glob("privatest_*.tar.gz")
    return found


def test_the_versions_agree():
    words = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    assert re.search(r"^Version: (.*)$", words, re.MULTILINE)[1] == pt.__version__  # type: ignore[index]


def test_checked_by_r_against_a_service(built, tmp_path):
    whole = "epsilon = 9\ndelta = 1e-5"  # bob may spend all of it
    opened(tmp_path, CONFIG.replace("epsilon = 3\ndelta = 1e-6", whole)).close()
    with served(tmp_path) as service, bad_line(service.port) as line:
        store = Store(str(tmp_path / "service.db"))
        custodian = new_token(store, "carol", scopes=["custodian"])
        reader = new_token(store, "bob")
        store.close()
        address = "http://127.0.0.1:{}".format
        places = {
            "PRIVATEST_TEST_URL": address(service.port),
            "PRIVATEST_TEST_FLAKY_URL": address(line.server_port),
            "PRIVATEST_TEST_TOKEN": service.token,
            "PRIVATEST_TEST_CUSTODIAN": custodian,
        }
        words = _check(built, places)
        assert "Status: OK" in words, words
        told = (built.parent / "privatest.Rcheck/tests/testthat.Rout").read_text(encoding="utf-8")
        assert "FAIL 0 | WARN 0 | SKIP 0" in told, told
        assert service.token not in words + told
        assert custodian not in words + told
        runs = {key: times for key, times in line.sent.items() if key[1].endswith("/run")}
        assert list(runs.values()) == [3]  # sent three times, and (the R tests) charged once
        _same_requests_as_python(tmp_path, address(service.port), service.token)
        _run_the_page(built.parent / "privatest.Rcheck", address(service.port), reader)


def _check(built: Path, places: dict[str, str]) -> str:
    shelf = built.parent / "shelf"  # in the place of CRAN, which R would ask for a list
    (shelf / "src" / "contrib").mkdir(parents=True)
    (shelf / "src" / "contrib" / "PACKAGES").touch()
    offline = built.parent / "Rprofile"
    offline.write_text(f'options(repos = c(CRAN = "{shelf.as_uri()}"))\n', encoding="utf-8")
    found = subprocess.run(
        ["R", "CMD", "check", "--no-manual", built.name],
        cwd=built.parent,
        env=os.environ | places | {"R_PROFILE_USER": str(offline), "NOT_CRAN": "true"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    return found.stdout + found.stderr


def _same_requests_as_python(folder: Path, url: str, token: str) -> None:
    """What R asked is answered from the record, so both clients say the same words."""
    before = spent(folder)
    people = pt.connect(url, token).dataset("people")
    people.ks_2samp("visits", group="plan", epsilon=0.0625)
    people.kendalltau("age", "visits", epsilon=0.015625)
    people.wilcoxon("age", "visits", epsilon=0.015625)
    people.chisquare("plan", {"basic": 0.5, "plus": 0.5}, epsilon=0.015625)
    assert spent(folder) == before > 0


def _run_the_page(library: Path, url: str, token: str) -> None:
    """Run all that the documentation shows."""
    page = (ROOT / "docs" / "how-to" / "r.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```r\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert code.count("https://curator.example") == 1
    found = subprocess.run(
        ["Rscript", "-e", code.replace("https://curator.example", url)],
        cwd=library,
        env=os.environ | {"R_LIBS": str(library), "PRIVATEST_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert token not in found.stdout + found.stderr
    assert (library / "people.parquet").stat().st_size > 0
