"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privatest.core.errors import PrivatestError
from privatest.curator.config import CuratorConfig
from privatest.service.store import Store, Token
from privatest.service.tokens import find_token

__all__ = [
    "Forbidden",
    "Person",
    "SignInNeeded",
    "TooMany",
    "by_subject",
    "by_token",
    "by_token_number",
]


class SignInNeeded(PrivatestError):
    """There is no token, or it opens nothing: one sentence for all of that."""

    def __init__(self) -> None:
        super().__init__("A valid token is needed: Authorization: Bearer TOKEN.")


class Forbidden(PrivatestError):
    """Somebody known may not do this."""


class TooMany(PrivatestError):
    """Somebody asks too often."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__(f"Too many requests: try again in {seconds} seconds.")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is known.

    Attributes
    ----------
    name : str
        What the curator's file calls them.
    scopes : tuple of str
        What they may do: ask, custodian, auditor.
    """

    name: str
    scopes: tuple[str, ...]

    @property
    def sees_all(self) -> bool:
        """Whether they see the requests of everybody."""
        return bool({"custodian", "auditor"} & set(self.scopes))

    def must(self, *scopes: str) -> Person:
        """Return the person if one of the scopes is theirs."""
        if not set(scopes) & set(self.scopes):
            raise Forbidden(f"This needs the scope {' or '.join(scopes)}.")
        return self


def by_token(store: Store, config: CuratorConfig, text: str | None) -> Person:
    """Return whose token it is."""
    return _owner(find_token(store, text) if text else None, config)


def by_token_number(store: Store, config: CuratorConfig, number: str) -> Person:
    """Return whose token has this number, if it still opens anything."""
    found = store.token_numbered(number)
    return _owner(found if found is not None and found.is_valid else None, config)


def by_subject(config: CuratorConfig, subject: str) -> Person:
    """Return who the issuer of a sign-in speaks of."""
    everybody = config.analysts.values()
    names = [who.name for who in everybody if who.subject == subject and not who.revoked]
    service = config.service
    scopes = ["ask"] if names else []
    scopes += ["custodian"] if subject in service.custodians else []
    scopes += ["auditor"] if subject in service.auditors else []
    if not scopes or len(names) > 1:
        raise Forbidden("You are signed in, but the curator does not know you: tell the custodian.")
    return Person(names[0] if names else subject, tuple(scopes))


def _owner(found: Token | None, config: CuratorConfig) -> Person:
    scopes = () if found is None else _still(found.name, found.scopes, config)
    if found is None or not scopes:
        raise SignInNeeded
    return Person(found.name, scopes)


def _still(name: str, scopes: Sequence[str], config: CuratorConfig) -> tuple[str, ...]:
    """Return the scopes that hold: whoever the file leaves out, or revokes, may not ask."""
    who = config.analysts.get(name)
    asks = who is not None and not who.revoked
    return tuple(scope for scope in scopes if scope != "ask" or asks)
