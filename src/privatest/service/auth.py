"""Authentication: API tokens, browser sessions, sign-in by OpenID Connect, and what they allow."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from authlib.integrations.starlette_client import OAuth
from starlette.requests import Request
from starlette.responses import Response

from privatest.core.errors import EngineError, ParameterError
from privatest.core.validation import integer_at_least, one_of
from privatest.curator.config import CuratorConfig, ServiceConfig
from privatest.service.errors import Forbidden, SignInNeeded
from privatest.service.store import Store, Token, now

if TYPE_CHECKING:
    from privatest.service.state import ServiceState

SCOPES = ("ask", "custodian", "auditor")
RETURN_PATH = "/sign-in/return"
SESSION_SECONDS = 8 * 3600
_TOKEN_PREFIX = "pt_"  # so that scanners for lost secrets recognise it
_MOST_DAYS = 3650
_KEY_FILE = "service.key"
_SHORTEST_KEY = 32
_MOST_ENDED = 10_000
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f-\uffff]*")
_SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_FAILED = "The sign-in failed: begin again. If it fails again, tell the custodian."


def random_text() -> str:
    """Return 256 bits of the system's randomness as text."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


# --- people and scopes ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is signed in: their name in the curator's file, and their scopes."""

    name: str
    scopes: tuple[str, ...]

    @property
    def sees_all(self) -> bool:
        """Whether they may see everybody's requests."""
        return bool({"custodian", "auditor"} & set(self.scopes))

    def must(self, *scopes: str) -> Person:
        """Return the person if they have one of the scopes."""
        if not set(scopes) & set(self.scopes):
            raise Forbidden(f"This needs the scope {' or '.join(scopes)}.")
        return self


def person_by_token(token: Token | None, config: CuratorConfig) -> Person:
    """Return the owner of a valid token; "ask" needs an analyst whom the file does not revoke."""
    if token is None or not token.is_valid:
        raise SignInNeeded
    analyst = config.analysts.get(token.name)
    asks = analyst is not None and not analyst.revoked
    scopes = tuple(scope for scope in token.scopes if scope != "ask" or asks)
    if not scopes:
        raise SignInNeeded
    return Person(token.name, scopes)


def person_by_subject(config: CuratorConfig, subject: str) -> Person:
    """Return the person whom an issuer's subject stands for."""
    everybody = config.analysts.values()
    names = [who.name for who in everybody if who.subject == subject and not who.revoked]
    service = config.service
    scopes = ["ask"] if names else []
    scopes += ["custodian"] if subject in service.custodians else []
    scopes += ["auditor"] if subject in service.auditors else []
    if not scopes or len(names) > 1:
        raise Forbidden("You are signed in, but the curator does not know you: tell the custodian.")
    return Person(names[0] if names else subject, tuple(scopes))


# --- tokens ---------------------------------------------------------------------------------


def new_token(store: Store, name: str, *, scopes: Sequence[str] = ("ask",), days: int = 90) -> str:
    """Make a token for an analyst, custodian or auditor, and return it; only a digest is stored."""
    if not scopes:
        raise ParameterError("scopes must be given.")
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if integer_at_least("days", days, 1) > _MOST_DAYS:
        raise ParameterError(f"days must be at most {_MOST_DAYS}.")
    text = _TOKEN_PREFIX + random_text()
    end = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")
    token = Token(uuid.uuid4().hex[:12], name, tuple(dict.fromkeys(scopes)), now(), end)
    store.add_token(token, _digest(text))
    return text


def find_token(store: Store, text: str) -> Token | None:
    """Return the token with this secret if it is valid."""
    found = store.token(digest=_digest(text))
    return found if found is not None and found.is_valid else None


def _digest(text: str) -> str:
    # of 256 random bits: a plain digest cannot be inverted
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# --- browser sessions: a signed cookie names the person, scopes are looked up ---------------


def session_key(config: CuratorConfig) -> str:
    """Return the key that signs cookies; the first start makes it, readable by its owner only."""
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


def lock_curator(path: str | os.PathLike[str]) -> int:
    """Return a descriptor that keeps other services off this curator until it is closed.

    A service marks requests that a stopped one left. A second one would mark requests that the
    first is still running. The lock ends with the process, however it ends.
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
    """Return the settings of the session cookie."""
    secure = config.service.is_secure
    return {
        "secret_key": session_key(config),
        # the prefix: no other host, and no page without TLS, can set it
        "session_cookie": "__Host-privatest" if secure else "privatest",
        "max_age": SESSION_SECONDS,
        "same_site": "lax",  # strict would lose it on the way back from an issuer
        "https_only": secure,
    }


class EndedSessions:
    """Sessions that were signed out: a copy of their cookie is no longer valid."""

    __slots__ = ("_ended", "_lock")

    def __init__(self) -> None:
        self._ended: dict[str, float] = {}
        self._lock = Lock()

    def add(self, number: str) -> None:
        """Remember a session for as long as its cookie would last."""
        with self._lock:
            moment = time.time()
            recent = [(n, at) for n, at in self._ended.items() if moment - at < SESSION_SECONDS]
            self._ended = dict(recent[-_MOST_ENDED:]) | {number: moment}

    def __contains__(self, number: object) -> bool:
        """Whether it was signed out."""
        return number in self._ended


def begin_session(request: Request, **who: str) -> None:
    """Begin a session; nothing of an earlier one remains."""
    request.session.clear()
    request.session.update(who)
    request.session.update(id=random_text(), since=int(time.time()), form=random_text())


def end_session(request: Request) -> None:
    """End the session of this browser."""
    request.app.state.ended.add(request.session.get("id"))
    request.session.clear()


def person_of_session(request: Request, state: ServiceState) -> Person:
    """Return who is signed in; scopes are read anew from the token or the curator's file."""
    session = request.session
    since, number = session.get("since"), session.get("id")
    if not isinstance(since, int) or time.time() - since > SESSION_SECONDS:
        raise SignInNeeded
    if number in request.app.state.ended:
        raise SignInNeeded
    if "token" in session:
        return person_by_token(state.store.token(number=session["token"]), state.config)
    if session.get("issuer") != state.config.service.issuer or "subject" not in session:
        raise SignInNeeded
    return person_by_subject(state.config, session["subject"])


def form_token(request: Request) -> str:
    """Return the secret in every form of this session, which other sites cannot know."""
    found: str = request.session.get("form") or ""
    if not found:
        found = request.session["form"] = random_text()
    return found


def check_form(request: Request, given: object) -> None:
    """Refuse a form that did not come from a page of this session."""
    known = str(request.session.get("form") or "")
    if not known or not hmac.compare_digest(known.encode(), str(given).encode()):
        raise Forbidden("This form has expired: go back, load the page again, and send it again.")


# --- OpenID Connect -------------------------------------------------------------------------


class IssuerUnreachable(EngineError):
    """The issuer does not answer, or not as it should."""

    def __init__(self) -> None:
        super().__init__("The issuer of sign-ins does not answer: tell the custodian.")


def local_path(text: object) -> str:
    """Return a path of this service, and the first page for anything else."""
    return text if isinstance(text, str) and _LOCAL.fullmatch(text) else "/"


class Issuer:
    """The authorization code flow with PKCE, state and nonce, by Authlib.

    Notes
    -----
    **Invariant**: a subject is returned only from an ID token that the issuer's public keys have
    signed, for this service, for this browser's own attempt, and that has not expired.
    """

    __slots__ = ("_client", "_settings")

    def __init__(self, settings: ServiceConfig) -> None:
        assert settings.issuer is not None
        assert settings.client_secret is not None
        try:
            secret = settings.client_secret.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ParameterError(f"client_secret cannot be read: {error.strerror}.") from None
        self._settings = settings
        scope = "openid" if settings.claim == "sub" else "openid email profile"
        self._client: Any = OAuth().register(
            "issuer",
            client_id=settings.client_id,
            client_secret=secret,
            server_metadata_url=settings.issuer.rstrip("/") + "/.well-known/openid-configuration",
            client_kwargs={"scope": scope, "code_challenge_method": "S256", "timeout": 10.0},
        )

    async def redirect(self, request: Request) -> Response:
        """Send the browser to the issuer."""
        for name in [n for n in request.session if n.startswith("_state_")]:
            del request.session[name]  # of abandoned attempts: a cookie is small
        try:
            await self._load_metadata()
            url = self._settings.url.rstrip("/") + RETURN_PATH
            response: Response = await self._client.authorize_redirect(request, url)
        except Exception:  # whatever the network or the issuer did
            raise IssuerUnreachable from None
        return response

    async def subject(self, request: Request) -> str:
        """Return who came back, by the claim that the custodian chose."""
        settings, claims = self._settings, None
        options = {
            "iss": {"essential": True, "values": [settings.issuer]},
            "aud": {"essential": True, "values": [settings.client_id]},
        }
        try:
            await self._load_metadata()
            token = await self._client.authorize_access_token(
                request, claims_options=options, leeway=30
            )
            # without an ID token that was checked, these would be the issuer's plain words
            claims = token.get("userinfo") if "id_token" in token else None
        except Exception:  # a wrong state, code, nonce, signature, audience, issuer or time
            claims = None
        if not claims:
            raise Forbidden(_FAILED)
        subject = claims.get(settings.claim)
        if settings.claim == "email" and claims.get("email_verified") is not True:
            raise Forbidden("The issuer has not verified this address: tell the custodian.")
        if not isinstance(subject, str) or not subject:
            raise Forbidden(_FAILED)
        return subject

    async def _load_metadata(self) -> None:
        """Read the issuer's metadata, and accept signatures by its public keys only."""
        metadata = await self._client.load_server_metadata()
        named = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [n for n in named if n in _SIGNED]
