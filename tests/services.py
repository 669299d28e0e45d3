"""A small service for tests: the curator of curators.py behind HTTP, in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi.testclient import TestClient

from privatest.core.errors import PrivatestError
from privatest.curator import Curator
from privatest.service import create_app
from privatest.service.auth import new_token
from privatest.service.jobs import JobQueue
from privatest.service.middleware import RateLimit
from privatest.service.state import ServiceState
from privatest.service.store import Store
from tests.curators import CONFIG, opened


@dataclass
class WorkersHere:
    """Answers in this process: the tests of workers are elsewhere."""

    curator: Curator

    def run(
        self,
        request: Mapping[str, Any],
        *,
        analyst: str,
        progress: Callable[[str], None] | None = None,
    ) -> Any:
        try:
            answer = self.curator.run(request, analyst=analyst)
        except PrivatestError as error:
            document = {"error": type(error).__name__, "message": str(error)}
            return SimpleNamespace(kind="refused", document=document)
        words = {"words": answer.words, "label": answer.label}
        return SimpleNamespace(kind="answer", document=answer.to_dict() | words)

    def close(self, *, wait: float = 0) -> None:
        pass


@dataclass
class Service:
    """A client, and the tokens of everybody."""

    client: TestClient
    state: ServiceState
    tokens: dict[str, str]
    folder: Path
    log: StringIO

    def get(self, place: str, who: str | None = "ada", **more: Any) -> Any:
        return self.client.get(f"/api/v1{place}", headers=self.headers(who), **more)

    def post(self, place: str, document: Any = None, who: str | None = "ada", **more: Any) -> Any:
        return self.client.post(f"/api/v1{place}", json=document, headers=self.headers(who), **more)

    def headers(self, who: str | None) -> dict[str, str]:
        text = self.tokens.get(who, who) if who is not None else None
        return {} if text is None else {"Authorization": f"Bearer {text}"}

    def answered(self, document: Mapping[str, Any], who: str = "ada") -> dict[str, Any]:
        """Run a request to its end."""
        began = self.post("/run", document, who)
        assert began.status_code == 202, began.text
        for _ in range(600):
            job: dict[str, Any] = self.get(f"/jobs/{began.json()['id']}", who).json()
            if job["state"] not in ("waiting", "running"):
                return job
            time.sleep(0.05)
        raise AssertionError("the job does not end")


def opening_here(place: str | os.PathLike[str], per_minute: int = 100_000) -> ServiceState:
    """Open a curator whose requests are answered in this process."""
    curator = Curator.open(place)
    store = Store(curator.config.service.database)
    return ServiceState(
        curator, store, JobQueue(store, WorkersHere(curator), 1), RateLimit(per_minute)
    )


@contextmanager
def serving(
    folder: Path, config: str = CONFIG, *, per_minute: int = 100_000, **changes: Any
) -> Iterator[Service]:
    """Serve a small curator with analysts ada and bob, custodian carol and auditor otto."""
    opened(folder, config, **changes).close()
    path = folder / "curator.toml"

    log = StringIO()
    app = create_app(path, opening=partial(opening_here, per_minute=per_minute), log=log)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        state: ServiceState = app.state.service
        scopes = {"ada": "ask", "bob": "ask", "carol": "custodian", "otto": "auditor"}
        tokens = {who: new_token(state.store, who, scopes=[s]) for who, s in scopes.items()}
        yield Service(client, state, tokens, folder, log)
