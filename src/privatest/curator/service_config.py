"""The table ``[service]`` of ``curator.toml``: who may sign in, where, and how often they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least

__all__ = ["ServiceConfig", "read_service"]

_COUNTS = {"workers": 2, "requests_per_minute": 120}
_TEXTS = ("database", "url", "issuer", "client_id", "client_secret", "claim")
_FLAGS = ("open_history", "open_metrics", "open_facts")
_LISTS = ("custodians", "auditors")
_KNOWN = (*_TEXTS, *_COUNTS, *_FLAGS, *_LISTS)
_HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """How the curator is served.

    Attributes
    ----------
    database : str
        File or address of what the service keeps: tokens and jobs.
    url : str
        The address that people type.
    issuer : str or None
        The OpenID Connect issuer that people sign in at; None: with tokens only.
    client_id : str
        What the issuer calls this service.
    client_secret : Path or None
        The file that holds the issuer's secret for this service.
    claim : str
        The claim that names a person: ``sub``, which an issuer never gives to another.
    custodians, auditors : tuple of str
        Who else may sign in, by that claim.
    workers : int
        How many requests are answered at once.
    requests_per_minute : int
        How many requests one person may make in a minute.
    open_history : bool
        Whether analysts see each other's requests.
    open_metrics : bool
        Whether metrics are shown without a token.
    open_facts : bool
        Whether the deployment facts of data sets are shown without a token.
    """

    database: str
    url: str = "http://127.0.0.1:8000"
    issuer: str | None = None
    client_id: str = "privatest"
    client_secret: Path | None = None
    claim: str = "sub"
    custodians: tuple[str, ...] = ()
    auditors: tuple[str, ...] = ()
    workers: int = _COUNTS["workers"]
    requests_per_minute: int = _COUNTS["requests_per_minute"]
    open_history: bool = False
    open_metrics: bool = False
    open_facts: bool = False

    @property
    def is_secure(self) -> bool:
        """Whether people reach it through TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        """The host name of the address."""
        return urlsplit(self.url).hostname or ""


class _Reader(Protocol):
    """What reads a file and notes mistakes: see config_file.py."""

    def table(self, key: tuple[str, ...], known: Iterable[str] | None) -> Mapping[str, Any]: ...
    def text(self, key: tuple[str, ...], values: Mapping[str, Any]) -> str: ...
    def trying(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any: ...
    def note(self, key: tuple[str, ...], message: str) -> None: ...
    def path(self, value: str) -> Path: ...


def read_service(reader: _Reader) -> ServiceConfig:
    """Read the table; mistakes are noted with their lines."""
    key = ("service",)
    values = reader.table(key, _KNOWN)
    texts: dict[str, Any] = {n: reader.text((*key, n), values) for n in _TEXTS if n in values}
    counts: dict[str, Any] = {name: values.get(name, usual) for name, usual in _COUNTS.items()}
    for name, value in counts.items():
        reader.trying((*key, name), partial(integer_at_least, name, value, 1))
    flags: dict[str, Any] = {name: _flag(reader, name, values) for name in _FLAGS}
    names: dict[str, Any] = {name: _names(reader, name, values) for name in _LISTS}
    if "url" in texts:
        reader.trying((*key, "url"), partial(_check_url, "url", texts["url"]))
    if "issuer" in texts:
        reader.trying((*key, "issuer"), partial(_check_url, "issuer", texts["issuer"]))
        if "client_secret" not in texts:
            reader.note((*key, "issuer"), "issuer needs client_secret, a file that holds it.")
    secret = texts.pop("client_secret", None)
    place = texts.pop("database", "service.db")
    return ServiceConfig(
        database=place if "://" in place else str(reader.path(place)),
        client_secret=None if secret is None else reader.path(secret),
        **texts,
        **counts,
        **flags,
        **names,
    )


def _flag(reader: _Reader, name: str, values: Mapping[str, Any]) -> bool:
    value = values.get(name, False)
    if not isinstance(value, bool):
        reader.note(("service", name), f"{name} must be true or false.")
    return value is True


def _names(reader: _Reader, name: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    listed = values.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        reader.note(("service", name), f'{name} must be a list of names, such as ["carol"].')
        return ()
    return tuple(listed)


def _check_url(name: str, url: str) -> None:
    """Refuse an address that others could read along with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError(f"{name} must be an address such as https://tests.example.org.")
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise ParameterError(f"{name} must begin with https:// (http:// is for this machine only).")
