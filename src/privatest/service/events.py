"""How far a job is, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from privatest.core.errors import PrivatestError
from privatest.service.house import House
from privatest.service.people import Person
from privatest.service.store import Job

__all__ = ["events"]

_EVERY = 0.25  # seconds between two looks
_QUIET = 40  # looks without news, after which a comment keeps the connection open
_MOST = 14_400  # looks: an hour


_MOST_OPEN = 20  # of one person: each looks four times a second
_open: Counter[str] = Counter()  # touched by the event loop alone


async def events(
    house: House, number: str, person: Person, again: Callable[[], Person]
) -> AsyncIterator[str]:
    """Tell each state of a job once, and end with the whole of it.

    ``again`` says who watches at each look: whoever is signed out or revoked meanwhile is told
    nothing more.
    """
    if _open[person.name] >= _MOST_OPEN:
        yield "retry: 10000\n\n"
        return
    _open[person.name] += 1
    try:
        async for words in _told(lambda: house.job(number, again())):
            yield words
    finally:
        _open[person.name] -= 1
        if not _open[person.name]:
            del _open[person.name]


async def _told(look: Callable[[], Job]) -> AsyncIterator[str]:
    told, quiet = "", 0
    for _ in range(_MOST):
        try:
            job = await run_in_threadpool(look)
        except PrivatestError:
            return
        if job.state != told:
            told, quiet = job.state, 0
            yield _event("state", {"id": job.id, "state": told})
        if job.is_done:
            yield _event("done", job.to_dict())
            return
        quiet += 1
        if quiet % _QUIET == 0:
            yield ": still here\n\n"
        await asyncio.sleep(_EVERY)


def _event(name: str, document: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(document, allow_nan=False)}\n\n"
