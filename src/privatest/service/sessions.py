"""Who sits at the browser: a signed cookie names them, and what they may do is looked up."""

from __future__ import annotations

import base64
import hmac
import os
import time
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request

from privatest.core.errors import ParameterError
from privatest.curator.config import CuratorConfig
from privatest.service.house import House
from privatest.service.people import (
    Forbidden,
    Person,
    SignInNeeded,
    by_subject,
    by_token_number,
)

__all__ = [
    "LASTS",
    "EndedSessions",
    "begin",
    "check_form",
    "cookie_settings",
    "end",
    "form_token",
    "hold_alone",
    "person_of",
    "random_text",
    "session_key",
]

LASTS = 8 * 3600  # seconds
_KEY_FILE = "service.key"
_SHORTEST_KEY = 32
_MOST_ENDED = 10_000


def random_text() -> str:
    """Return 256 bits of the system's randomness as text."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def session_key(config: CuratorConfig) -> str:
    """Return the key that signs cookies; it is made at the first start, for its owner alone."""
    path = config.path.parent / _KEY_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_key(path)
    except OSError as error:
        raise ParameterError(f"{_KEY_FILE} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        key = random_text()
        file.write(key)
    return key


def _read_key(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise ParameterError(f"{_KEY_FILE} can be read by others: chmod 600 {_KEY_FILE}.")
        key = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ParameterError(f"{_KEY_FILE} cannot be read: {error.strerror}.") from None
    if len(key) < _SHORTEST_KEY:
        raise ParameterError(f"{_KEY_FILE} is too short: remove it, and a new one is made.")
    return key


def hold_alone(path: str | os.PathLike[str]) -> int:
    """Return a descriptor that keeps other services off this curator until it is closed.

    A service marks requests that another one left when it was stopped. Beside a running one it
    would mark requests that are on their way. The lock ends with the process, however it ends.
    """
    import fcntl  # noqa: PLC0415 - workers need Linux or macOS, too

    descriptor = os.open(Path(path).absolute().parent / _KEY_FILE, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ParameterError(
            "this curator is served already, by another process. Stop that first: two would not "
            "know of each other's requests."
        ) from None
    return descriptor


def cookie_settings(config: CuratorConfig) -> dict[str, Any]:
    """Return how the cookie is kept by browsers."""
    secure = config.service.is_secure
    return {
        "secret_key": session_key(config),
        # the prefix: no other host, and no page without TLS, can set it
        "session_cookie": "__Host-privatest" if secure else "privatest",
        "max_age": LASTS,
        "same_site": "lax",  # strict would lose it on the way back from an issuer
        "https_only": secure,
    }


class EndedSessions:
    """Sessions that were signed out: a copy of their cookie opens nothing any more."""

    __slots__ = ("_ended", "_lock")

    def __init__(self) -> None:
        self._ended: dict[str, float] = {}
        self._lock = Lock()

    def add(self, number: str) -> None:
        """Remember one for as long as its cookie would last."""
        with self._lock:
            now = time.time()
            kept = {each: when for each, when in self._ended.items() if now - when < LASTS}
            self._ended = dict(list(kept.items())[-_MOST_ENDED:]) | {number: now}

    def __contains__(self, number: object) -> bool:
        """Whether it was signed out."""
        return number in self._ended


def begin(request: Request, **who: str) -> None:
    """Begin a session; nothing of an earlier one stays."""
    request.session.clear()
    request.session.update(who)
    request.session.update(id=random_text(), since=int(time.time()), form=random_text())


def end(request: Request) -> None:
    """End the session of this browser."""
    request.app.state.ended.add(request.session.get("id"))
    request.session.clear()


def person_of(request: Request, house: House) -> Person:
    """Return who is signed in; scopes come from the token or the curator's file, each time anew."""
    session = request.session
    since, number = session.get("since"), session.get("id")
    if not isinstance(since, int) or time.time() - since > LASTS:
        raise SignInNeeded
    if number in request.app.state.ended:
        raise SignInNeeded
    if "token" in session:
        return by_token_number(house.store, house.config, session["token"])
    if session.get("issuer") != house.config.service.issuer or "subject" not in session:
        raise SignInNeeded
    return by_subject(house.config, session["subject"])


def form_token(request: Request) -> str:
    """Return what every form of this session carries; other sites cannot know it."""
    found: str = request.session.get("form") or ""
    if not found:
        found = request.session["form"] = random_text()
    return found


def check_form(request: Request, given: object) -> None:
    """Refuse a form that did not come from a page of this session."""
    known = str(request.session.get("form") or "")
    if not known or not hmac.compare_digest(known.encode(), str(given).encode()):
        raise Forbidden("This form has expired: go back, load the page again, and send it again.")
