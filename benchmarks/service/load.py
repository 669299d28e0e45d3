"""Many clients of one service: how long they wait, whether budgets stay exact, kill -9 included.

A service with a fresh ledger answers --clients clients for --seconds seconds. Each client waits
--pause seconds on average between two requests; with --pause 0 it asks as fast as it is answered.
Of ten requests four ask for a price, four for a data set's description, two run a KS test, which
costs epsilon = 0.001. At the end the ledger's sums are compared with the answers that were given.
With --kill the service is killed halfway, and started again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import save
from benchmarks.report import print_table
from privatest.curator import Curator
from privatest.ledger import Ledger
from privatest.service.auth import new_token
from privatest.service.store import Store

EPSILON = 0.001
_MOST_RUNS = 2  # of one client
SCHEMA = """\
[columns.visits]
type = "numeric"
bounds = [0, 80]
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
membership = "public"
"""
CONFIG = """\
ledger = "ledger.db"
[datasets.people]
source = "people.csv"
schema = "people.toml"
epsilon = 1000
[service]
requests_per_minute = 1000000
workers = 2
"""


def make(folder: Path, clients: int, rows: int) -> list[str]:
    """Write a curator with an analyst for each client; return their tokens."""
    rng = np.random.default_rng(1)
    plans = np.where(rng.uniform(size=rows) < 0.5, "basic", "plus")
    values = rng.integers(0, 81, size=rows)
    lines = "\n".join(f"{v},{p}" for v, p in zip(values, plans, strict=True))
    (folder / "people.csv").write_text(f"visits,plan\n{lines}\n", encoding="utf-8")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")
    analysts = "".join(f'[analysts.a{i}]\ndatasets = ["people"]\n' for i in range(clients))
    (folder / "curator.toml").write_text(CONFIG + analysts, encoding="utf-8")
    with Curator.open(folder / "curator.toml", create=True) as curator:
        curator.register("people")
        store = Store(curator.config.service.database)
    tokens = [new_token(store, f"a{i}") for i in range(clients)]
    store.close()
    return tokens


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the service and wait until it answers."""
    words = [sys.executable, "-m", "privatest.cli", "serve", "--port", str(port)]
    log = (folder / "serve.log").open("ab")
    process = subprocess.Popen(words, cwd=folder, stderr=log)
    for _ in range(600):
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), 1)):
            return process
        time.sleep(0.1)
    raise SystemExit("the service does not start")


@dataclass
class Client:
    """One client, its waiting times and its answers."""

    token: str
    port: int
    pause: float
    seed: int
    waits: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    lost: int = 0
    answered: int = 0
    running: list[str] = field(default_factory=list)

    async def ask(self, method: str, place: str, body: Any = None) -> tuple[int, Any]:
        """Make one request on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} /api/v1{place} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        writer.write(head.encode() + data)
        answer = await reader.read()
        writer.close()
        top, _, document = answer.partition(b"\r\n\r\n")
        if not top:
            raise ConnectionError
        return int(top.split()[1]), json.loads(document)

    async def live(self, until: float) -> None:
        """Ask until the end, then wait for what runs."""
        dice, count = random.Random(self.seed), 0
        while time.monotonic() < until:
            await asyncio.sleep(dice.expovariate(1 / self.pause) if self.pause else 0)
            kind = dice.choices(("price", "schema", "run"), (4, 4, 2))[0]
            count += 1
            alpha = 0.001 + 0.0001 * count  # each request another one
            asked: dict[str, Any] = {"dataset": "people", "question": "two-sample", "method": "ks"}
            asked |= {"columns": ["visits"], "group": "plan", "epsilon": EPSILON, "alpha": alpha}
            way: tuple[str, str, Any] = {
                "price": ("POST", "/price", asked),
                "schema": ("GET", "/datasets/people", None),
                "run": ("POST", "/run", asked),
            }[kind]
            if kind == "run" and len(self.running) >= _MOST_RUNS:
                continue  # two workers answer: a longer queue would measure nothing else
            await self.timed(kind, *way)
        for number in self.running:
            await self.wait_for(number)

    async def timed(self, kind: str, method: str, place: str, body: Any) -> None:
        began = time.monotonic()
        try:
            status, document = await self.ask(method, place, body)
        except (OSError, ConnectionError, asyncio.IncompleteReadError):
            self.lost += 1  # only where the service is killed
            await asyncio.sleep(0.5)
            return
        self.waits.setdefault(kind, []).append(time.monotonic() - began)
        if status >= 400:
            self.errors.append(f"{place}: {status} {document.get('error')}")
        elif kind == "run":
            self.running.append(document["id"])

    async def wait_for(self, number: str) -> None:
        for _ in range(3000):
            with suppress(OSError, ConnectionError):
                _, job = await self.ask("GET", f"/jobs/{number}")
                if job["state"] not in ("waiting", "running"):
                    self.answered += job["state"] == "answered"
                    return
            await asyncio.sleep(0.2)


async def everybody(clients: list[Client], seconds: float, halfway: Any) -> None:
    """Let all clients live, and do something halfway."""
    end = time.monotonic() + seconds

    async def interrupt() -> None:
        await asyncio.sleep(seconds / 2)
        await asyncio.to_thread(halfway)

    await asyncio.gather(*(client.live(end) for client in clients), interrupt())


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Serve, ask, and compare the ledger with what was answered."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = make(folder, options.clients, options.rows)
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        running = [start(folder, port)]

        def halfway() -> None:
            if options.kill:
                os.kill(running[-1].pid, signal.SIGKILL)
                running[-1].wait()
                running.append(start(folder, port))

        clients = [Client(t, port, options.pause, i) for i, t in enumerate(tokens)]
        asyncio.run(everybody(clients, options.seconds, halfway))
        running[-1].send_signal(signal.SIGTERM)
        running[-1].wait(120)
        with Ledger.open(folder / "ledger.db") as ledger:
            ledger.verify()
            totals = ledger.totals("people")
            unfinished = len(ledger.unfinished("people"))
    return _facts(options, clients, totals.account.spent, unfinished)


def _facts(
    options: argparse.Namespace, clients: list[Client], spent: Any, lost: int
) -> dict[str, Any]:
    waits = {
        kind: np.array([w for c in clients for w in c.waits.get(kind, [])])
        for kind in ("price", "schema", "run")
    }
    return {
        **{k: v for k, v in vars(options).items() if k != "repeat"},
        "waits": {
            kind: {
                "requests": len(w),
                "median_ms": round(1000 * float(np.median(w)), 1) if len(w) else None,
                "p99_ms": round(1000 * float(np.quantile(w, 0.99)), 1) if len(w) else None,
            }
            for kind, w in waits.items()
        },
        "errors": [e for c in clients for e in c.errors],
        "lost_connections": sum(c.lost for c in clients),
        "answered": sum(c.answered for c in clients),
        "granted": spent.events,
        "spent": float(spent.epsilon),
        "unfinished": lost,
        "exact": bool(abs(float(spent.epsilon) - EPSILON * spent.events) < 1e-12),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between requests")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--kill", action="store_true", help="kill -9 halfway, start again")
    found = measure(parser.parse_args())
    rows = [[kind, *each.values()] for kind, each in found["waits"].items()]
    print_table("Waiting times", ["request", "count", "median ms", "99% ms"], rows)
    print({k: v for k, v in found.items() if k not in ("waits", "errors")}, found["errors"][:5])
    save("service-load" + ("-killed" if found["kill"] else ""), found)


if __name__ == "__main__":
    main()
