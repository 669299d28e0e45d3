"""Signing in and out."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from privatest.service.pages.common import Posted, TheHouse, goto, render
from privatest.service.people import Forbidden, SignInNeeded, by_subject, by_token_number
from privatest.service.sessions import begin, end, person_of
from privatest.service.signing_in import RETURN, local_path
from privatest.service.tokens import find_token

__all__ = ["signing_pages"]

signing_pages = APIRouter()
_WRONG = "This token opens nothing: it may be mistyped, expired or revoked."
_LONGEST_TOKEN = 200


@signing_pages.get("/sign-in")
def ask(request: Request, house: TheHouse, next: str = "/") -> Response:
    """Show how to sign in; whoever is signed in goes on."""
    back = local_path(next)
    try:
        person_of(request, house)
        return goto(back)
    except (SignInNeeded, Forbidden):
        return _sign_in(request, back)


@signing_pages.post("/sign-in")
def with_token(request: Request, house: TheHouse, form: Posted) -> Response:
    """Sign in with a token; the cookie keeps its number, not the token."""
    _count(request)
    back = local_path(form.get("next"))
    text = str(form.get("token") or "").strip()[:_LONGEST_TOKEN]
    found = find_token(house.store, text)
    try:
        if found is None:
            raise SignInNeeded
        by_token_number(house.store, house.config, found.id)
    except SignInNeeded:
        return _sign_in(request, back, status=401, problem=_WRONG)
    begin(request, token=found.id)
    return goto(back)


@signing_pages.get("/sign-in/issuer")
async def at_issuer(request: Request, next: str = "/") -> Response:
    """Go to the issuer. A link, not a form: forms may lead to this service only."""
    _count(request)
    issuer = request.app.state.issuer
    if issuer is None:
        return goto("/sign-in")
    request.session["next"] = local_path(next)
    response: Response = await issuer.redirect(request)
    return response


@signing_pages.get(RETURN)
async def came_back(request: Request, house: TheHouse) -> Response:
    """Come back from the issuer."""
    _count(request)
    issuer = request.app.state.issuer
    if issuer is None:
        return goto("/sign-in")
    back = local_path(request.session.get("next"))
    subject = await issuer.subject(request)
    await run_in_threadpool(by_subject, house.config, subject)  # nobody else gets a session
    begin(request, subject=subject, issuer=house.config.service.issuer or "")
    return goto(back)


@signing_pages.post("/sign-out")
def sign_out(request: Request, form: Posted) -> Response:
    """End the session, wherever its cookie has been copied to."""
    del form
    end(request)
    return goto("/sign-in")


def _count(request: Request) -> None:
    """Count an attempt; nobody may guess without end."""
    request.app.state.attempts.take("" if request.client is None else request.client.host)


def _sign_in(request: Request, back: str, status: int = 200, problem: str = "") -> Response:
    issuer = request.app.state.issuer is not None
    return render(request, "sign_in.html", status, back=back, issuer=issuer, problem=problem)
