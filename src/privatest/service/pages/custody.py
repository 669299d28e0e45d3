"""The custodian's view: budgets, who asked what, tokens. Auditors see it and change nothing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.validation import printable
from privatest.ledger import Entry
from privatest.service.describing import describe_dataset
from privatest.service.guard import describe_error
from privatest.service.house import NotFound
from privatest.service.pages.common import Posted, Visit, Visitor, goto
from privatest.service.pages.drawing import spending_line
from privatest.service.pages.words import account_words
from privatest.service.tokens import SCOPES, new_token

__all__ = ["custody_pages"]

custody_pages = APIRouter()
_ENTRIES = 500  # of the ledger, on one page


@custody_pages.get("/custody")
def overview(visit: Visitor) -> Response:
    """Show all budgets, what runs low, and what is not finished."""
    visit.person.must("custodian", "auditor")
    found = [_about(visit, name) for name in visit.house.config.datasets]
    return visit.page("custody.html", datasets=found)


@custody_pages.get("/custody/datasets/{name}")
def dataset(name: str, visit: Visitor) -> Response:
    """Show one data set: its budget over time, its policy, and who asked what."""
    visit.person.must("custodian", "auditor")
    if name not in visit.house.config.datasets:
        raise NotFound("There is no such data set.")
    about = _about(visit, name)
    ledger = visit.house.curator.ledger
    entries = ledger.history(name, last=_ENTRIES) if about["account"] is not None else []
    ends = {entry.body["closes"]: entry.kind for entry in entries if "closes" in entry.body}
    asked = [_asked(entry, ends) for entry in entries if entry.kind == "reserved"]
    charges = [(each["time"], float(each["epsilon"] or 0)) for each in reversed(asked)]
    total = 0.0 if about["account"] is None else float(about["totals"].account.budget.epsilon)
    return visit.page(
        "custody_dataset.html",
        about=about,
        asked=asked,
        line=spending_line(charges, total),
        whole=len(entries) < _ENTRIES,
    )


@custody_pages.get("/custody/tokens")
def tokens(visit: Visitor) -> Response:
    """List tokens; a custodian makes and revokes them here."""
    visit.person.must("custodian", "auditor")
    return _tokens(visit)


@custody_pages.post("/custody/tokens")
def make_token(visit: Visitor, form: Posted) -> Response:
    """Make a token and show it this once."""
    visit.person.must("custodian")
    name, scopes = str(form.get("name") or "").strip(), list(map(str, form.getlist("scope")))
    try:
        days = str(form.get("days") or "90")
        if not name or len(name) > 200 or not name.isprintable():
            raise ParameterError("name must have 1 to 200 printable characters.")
        if "ask" in scopes and name not in visit.house.config.analysts:
            raise ParameterError("name must be that of an analyst in the curator's file.")
        if not days.isascii() or not days.isdigit() or len(days) > 6:
            raise ParameterError("days must be a whole number.")
        text = new_token(visit.house.store, name, scopes=scopes, days=int(days))
    except PrivatestError as error:
        status, document = describe_error(error)
        return _tokens(visit, status, problem=printable(str(document["message"])))
    return _tokens(visit, 201, made=text, owner=name)


@custody_pages.post("/custody/tokens/revoke")
def revoke_token(visit: Visitor, form: Posted) -> Response:
    """Revoke a token at once: sessions that it opened end too."""
    visit.person.must("custodian")
    if not visit.house.store.revoke(str(form.get("id") or "")[:40]):
        raise NotFound("There is no such token, or it is revoked already.")
    return goto("/custody/tokens")


def _tokens(visit: Visit, status: int = 200, **words: Any) -> Response:
    known = {"made": None, "owner": "", "problem": None, "scopes": SCOPES}
    found = visit.house.store.tokens()
    may = "custodian" in visit.person.scopes
    names = list(visit.house.config.analysts)
    return visit.page(
        "tokens.html", status, **known | words, tokens=found, may_change=may, analysts=names
    )


def _about(visit: Visit, name: str) -> dict[str, Any]:
    """Return budgets, policy and what is unfinished, of a data set that the ledger may not have."""
    curator = visit.house.curator
    ledger = curator.ledger
    known = name in ledger.datasets()
    totals = ledger.totals(name) if known else None
    account = None if totals is None else account_words(totals.account.to_dict())
    analysts = {} if totals is None else totals.analysts
    return {
        **describe_dataset(curator, name, visit.person.name),
        "totals": totals,
        "account": account,
        "analysts": {who: account_words(own.to_dict()) for who, own in analysts.items()},
        "unfinished": [_asked(entry, {}) for entry in ledger.unfinished(name)] if known else [],
    }


def _asked(entry: Entry, ends: dict[Any, str]) -> dict[str, Any]:
    """Return a charge for a reader: who, when, what, for how much, and how it ended."""
    body = entry.body
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "analyst": body.get("analyst") or "the custodian",
        "asked": body.get("asked") or {},
        "epsilon": body.get("epsilon"),
        "delta": body.get("delta"),
        "end": ends.get(body.get("opens"), "open"),
    }
