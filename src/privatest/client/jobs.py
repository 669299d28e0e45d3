"""Requests on their way: waiting for them, and what they end with."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privatest.client.talking import Talk, error_of
from privatest.core.errors import ServiceError
from privatest.requests.request import Request
from privatest.requests.results import Result, result_from_dict

__all__ = ["Job"]

_FIRST, _LONGEST, _GROWTH = 0.05, 2.0, 1.5  # seconds between two looks
_PATIENCE = 2.0  # before somebody at a terminal is told


@dataclass(frozen=True, slots=True)
class Job:
    """A request on its way, or at its end.

    Attributes
    ----------
    id : str
        Its number.
    state : {"waiting", "running", "answered", "refused", "failed"}
        How far it was when it was looked at.
    request : mapping
        What was asked.
    asked, ended : str or None
        When, in UTC.
    document : mapping or None
        The answer, or why there is none.
    """

    id: str
    state: str
    request: Mapping[str, Any]
    asked: str
    ended: str | None
    document: Mapping[str, Any] | None = field(repr=False)
    talk: Talk = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: Mapping[str, Any], talk: Talk) -> Job:
        """Read what the service says of it."""
        names = ("id", "state", "request", "asked", "ended", "document")
        return cls(**{name: document[name] for name in names}, talk=talk)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    @property
    def result(self) -> Result:
        """The library's own result; the library's own exception if there is none."""
        if not self.is_done:
            raise ServiceError(f"The job {self.id} is {self.state}: use wait().")
        document = self.document or {}
        if self.state != "answered":
            raise error_of(document)
        found = result_from_dict(document, Request.from_dict(self.request).budget)
        if found is None:
            raise ServiceError("The answer cannot be read: update privatest.")
        return found

    def look(self) -> Job:
        """Return how far it is now."""
        return Job.read(self.talk.get(f"/jobs/{self.id}"), self.talk)

    def wait(self) -> Result:
        """Wait for its end, and return the result. Ctrl+C leaves it running."""
        job, pause, began = self, _FIRST, time.monotonic()
        try:
            while not job.is_done:
                _tell(job, time.monotonic() - began)
                self.talk.sleep(pause)
                pause = min(pause * _GROWTH, _LONGEST)
                job = job.look()
        except KeyboardInterrupt as error:
            words = f"The job goes on, and is paid for: client.job({self.id!r}).wait()"
            print(f"\n{words}", file=sys.stderr)
            error.add_note(words)
            raise
        except ServiceError as error:
            error.add_note(f"The job may go on: client.job({self.id!r}).wait()")
            raise
        finally:
            _tell(None, time.monotonic() - began)
        return job.result

    def __str__(self) -> str:
        """One line: when, what, how far."""
        about = "/".join(str(self.request.get(key, "")) for key in ("question", "method"))
        cost = f"epsilon {self.request.get('epsilon', '')}"
        dataset = self.request.get("dataset", "")
        return f"{self.id[:8]}  {self.asked}  {dataset}: {about}, {cost}: {self.state}"


def _tell(job: Job | None, seconds: float) -> None:
    """Say on a terminal that something takes long; None wipes it out."""
    if seconds < _PATIENCE or not sys.stderr.isatty():
        return
    words = ""
    if job is not None:
        bar = "·" * (int(seconds) % 4)
        words = f"The curator's job {job.id[:8]} is {job.state}, {seconds:.0f} s {bar}"
    print(f"\r{words:<78}\r" if job is None else f"\r{words:<78}", end="", file=sys.stderr)
    sys.stderr.flush()
