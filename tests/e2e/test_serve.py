"""``privatest serve`` as a process of its own: asked, stopped, killed, and started again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from privatest.service.store import Store
from tests.curators import opened, request
from tests.e2e.served import served, spent

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    opened(tmp_path).close()
    return tmp_path


def test_ask_and_stop(folder):
    with served(folder) as service:
        job = service.ended(service.ask("/run", request(epsilon=0.25))["id"])
        assert (job["state"], job["document"]["epsilon"]) == ("answered", 0.25)
        running = service.ask("/run", request(epsilon=0.125))["id"]
        log = service.end(signal.SIGTERM)
        assert service.process.returncode in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {line["place"] for line in lines} >= {"/api/v1/run", "/api/v1/jobs/{number}"}
    assert "Traceback" not in log
    store = Store(str(folder / "service.db"))
    found = store.job(running)
    store.close()
    assert found is not None
    assert found.is_done  # it was let to its end, or marked
    assert spent(folder) in (0.25, 0.375)
    assert (spent(folder) == 0.375) or found.state == "failed"


def test_killed_and_started_again(folder):
    with served(folder) as service:
        first = service.ended(service.ask("/run", request(epsilon=0.25))["id"])
        lost = service.ask("/run", request(epsilon=0.125))["id"]
        service.end(signal.SIGKILL)
    before = spent(folder)
    assert before in (0.25, 0.375)
    with served(folder) as service:
        assert service.ask(f"/jobs/{first['id']}") == first  # nothing lost
        assert service.ask(f"/jobs/{lost}")["state"] in ("failed", "answered")
        again = service.ended(service.ask("/run", request(epsilon=0.25))["id"])
        assert again["document"]["recorded"] is True  # nothing spent twice
        assert again["document"]["pvalue"] == first["document"]["pvalue"]
        service.end(signal.SIGTERM)
    # a worker may have outlived the service that was killed: its reservation is its own
    assert spent(folder) in (0.25, 0.375)
