"""``privatest serve`` as a process of its own, and a token for it."""

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

from privatest.ledger import Ledger
from privatest.service.auth import new_token
from privatest.service.store import Store

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
