"""How far a job is, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool

from privatest.service.house import House
from privatest.service.people import Person

__all__ = ["events"]

_EVERY = 0.25  # seconds between two looks
_QUIET = 40  # looks without news, after which a comment keeps the connection open
_MOST = 14_400  # looks: an hour


async def events(house: House, number: str, person: Person) -> AsyncIterator[str]:
    """Tell each state of a job once, and end with the whole of it."""
    told, quiet = "", 0
    for _ in range(_MOST):
        job = await run_in_threadpool(house.job, number, person)
        if job.state != told:
            told, quiet = job.state, 0
            yield _event("state", {"id": number, "state": told})
        if job.is_done:
            yield _event("done", job.to_dict())
            return
        quiet += 1
        if quiet % _QUIET == 0:
            yield ": still here\n\n"
        await asyncio.sleep(_EVERY)


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(document, allow_nan=False)}\n\n"
