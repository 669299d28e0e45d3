"""Workers whose parent is killed: nothing is lost, and nothing is spent twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from privatest.curator import Curator
from privatest.ledger import Ledger
from tests.curators import opened, request

pytestmark = pytest.mark.e2e

PARENT = """
import json, sys
from privatest.curator import WorkerPool
WorkerPool(sys.argv[1]).run(json.loads(sys.argv[2]), analyst="bob")
"""


def wait_for(folder: Path, kind: str) -> None:
    """Look until the record has such an entry."""
    for _ in range(1200):
        with Ledger.open(folder / "ledger.db") as ledger:
            if kind in [entry.kind for entry in ledger.history("people")]:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing was {kind}")


def test_a_killed_parent_leaves_a_worker_that_ends_well(tmp_path):
    opened(tmp_path).close()
    words = [str(tmp_path / "curator.toml"), json.dumps(request())]
    with subprocess.Popen([sys.executable, "-c", PARENT, *words]) as parent:
        wait_for(tmp_path, "reserved")
        parent.kill()
    wait_for(tmp_path, "committed")
    with Curator.open(tmp_path / "curator.toml") as curator:
        assert curator.run(request(), analyst="bob").recorded
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.totals("people").account.spent.epsilon == Decimal("0.1")
        ledger.verify()
