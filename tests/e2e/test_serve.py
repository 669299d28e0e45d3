"""``privatest serve`` as a process of its own: asked, stopped, killed, and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from privatest.ledger import Ledger
from privatest.service.store import Store
from privatest.service.tokens import new_token
from tests.curators import opened, request

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
_PATIENCE = 120.0  # seconds; a limit for a machine that is busy, not a measurement


class Served:
    """A service in a process, and a token for it."""

    def __init__(self, folder: Path, token: str) -> None:
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.token = token
        words = ["-m", "privatest.cli", "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, *words], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        self._wait_for(lambda: self.ask("/health")["status"] == "ok")

    def ask(self, place: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        address = f"http://127.0.0.1:{self.port}/api/v1{place}"
        with urlopen(Request(address, data, headers), timeout=30) as answer:
            return json.load(answer)

    def ended(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def done() -> bool:
            found.update(self.ask(f"/jobs/{number}"))
            return found["state"] not in ("waiting", "running")

        self._wait_for(done)
        return found

    def _wait_for(self, happened: Any) -> None:
        for _ in range(int(_PATIENCE / 0.1)):
            with suppress(URLError, ConnectionError, HTTPError):
                if happened():
                    return
            assert self.process.poll() is None, "the service ended"
            time.sleep(0.1)
        raise AssertionError("it takes too long")

    def end(self, how: signal.Signals) -> str:
        os.kill(self.process.pid, how)
        return self.process.communicate(timeout=_PATIENCE)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    opened(tmp_path).close()
    return tmp_path


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    store = Store(str(folder / "service.db"))
    token = new_token(store, "ada")
    store.close()
    running = Served(folder, token)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)


def spent(folder: Path) -> float:
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.verify()
        return float(ledger.totals("people").account.spent.epsilon)


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
