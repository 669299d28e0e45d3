"""Whoever opens a database closes it, also where the rest cannot be opened."""

from __future__ import annotations

import gc
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from privatest.core.errors import LedgerError
from privatest.curator import Curator
from privatest.curator.answers import NOT_OPEN
from privatest.curator.worker_process import WorkerSchedule, answer_job
from privatest.service.state import ServiceState
from privatest.service.store import Store
from tests.connections import unclosed
from tests.curators import opened, request


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    gc.disable()  # what is collected is closed
    yield
    gc.enable()
    assert unclosed(__file__) == []


@pytest.fixture
def config(tmp_path: Path) -> Path:
    opened(tmp_path).close()
    return tmp_path / "curator.toml"


def test_a_forgotten_connection_is_found(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")):
        (place,) = unclosed(__file__)
        assert place.startswith("tests/unit/test_service_connections.py:")
    assert unclosed(__file__) == []
    forgotten = sqlite3.connect(tmp_path / "b.db")
    with pytest.warns(ResourceWarning, match="not closed: tests/unit/test_service_connections"):
        forgotten.__del__()  # type: ignore[attr-defined]


def test_a_curator_that_cannot_be_opened(config, monkeypatch):
    def fail(_: Path) -> None:
        raise LedgerError("damaged in the meantime")

    monkeypatch.setattr("privatest.curator.curator.load_registrations", fail)
    with pytest.raises(LedgerError, match="in the meantime"):
        Curator.open(config)


def test_a_service_that_cannot_be_opened(config, monkeypatch):
    def fail(*_: Any) -> None:
        raise LedgerError("no jobs")

    monkeypatch.setattr("privatest.service.state.JobQueue", fail)
    with pytest.raises(LedgerError, match="no jobs"):
        ServiceState.open(config)


def test_a_store_that_cannot_be_written(tmp_path, monkeypatch):
    def fail(_: object) -> None:
        raise LedgerError("no tables")

    monkeypatch.setattr("privatest.service.store._METADATA.create_all", fail)
    with pytest.raises(LedgerError, match="no tables"):
        Store(str(tmp_path / "service.db"))


def test_a_worker_that_cannot_read_response_times(config):
    config.with_name("curator.times.json").write_text("?", encoding="utf-8")
    job = {"config": str(config), "request": request(), "analyst": "ada"}
    job |= {"number": "1", "start": 0.0, "public_times": False}  # type: ignore[dict-item]
    with closing(socket.socket()) as channel:
        reply = answer_job(job, WorkerSchedule(channel, job))
    assert reply is not None
    assert reply["document"]["message"] == NOT_OPEN
