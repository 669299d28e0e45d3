"""What all pages share: who is there, forms that are theirs, and HTML from templates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import FormData
from starlette.responses import Response

from privatest.core.validation import printable
from privatest.service.house import House
from privatest.service.people import Person
from privatest.service.sessions import check_form, form_token, person_of

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "Posted",
    "TheHouse",
    "Visit",
    "Visitor",
    "error_page",
    "goto",
    "render",
]

_MOST_FIELDS = 1000
_TITLES = {
    400: "That cannot be read",
    401: "Sign in",
    403: "That is not yours to do",
    404: "There is nothing here",
    405: "That is not how it works here",
    409: "The budget is too small",
    413: "That is too much at once",
    422: "That cannot be asked as it is",
    429: "Too many requests",
    503: "Something is not running",
}


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    found = Environment(
        loader=PackageLoader("privatest.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["short"] = lambda value: f"{float(value):.4g}"
    found.filters["when"] = lambda text: str(text)[:16].replace("T", " ")
    found.filters["place"] = lambda text: quote(str(text), safe="")
    return found


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


TheHouse = Annotated[House, Depends(_house)]


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who is signed in, at one of their requests."""

    request: Request
    house: House
    person: Person

    def page(self, template: str, status: int = 200, **words: Any) -> HTMLResponse:
        """Return a page for them."""
        return render(self.request, template, status, person=self.person, **words)


def _visit(request: Request, house: TheHouse) -> Visit:
    person = person_of(request, house)
    request.state.person = person.name  # for the service's own log
    house.rate.take(f"person {person.name}")
    return Visit(request, house, person)


Visitor = Annotated[Visit, Depends(_visit)]


async def _posted(request: Request) -> FormData:
    """Return the form, if it came from one of our pages; files in it are dropped."""
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
        check_form(request, form.get("csrf"))
        return FormData([(k, v) for k, v in form.multi_items() if isinstance(v, str)])


Posted = Annotated[FormData, Depends(_posted)]


def render(request: Request, template: str, status: int = 200, **words: Any) -> HTMLResponse:
    """Return a template with what all of them need."""
    known = {"person": None, "csrf": form_token(request), "path": request.url.path} | words
    return HTMLResponse(_templates().get_template(template).render(known), status)


def fragment(template: str, **words: Any) -> str:
    """Return a template's text alone, for a file or a part of a page."""
    return _templates().get_template(template).render(words)


def goto(path: str) -> RedirectResponse:
    """Send the browser elsewhere, with GET."""
    return RedirectResponse(path, 303)


def error_page(request: Request, status: int, document: dict[str, Any]) -> Response:
    """Return the words of a refusal as a page; strangers are sent to sign in."""
    if status == 401:
        back = request.url.path if request.method == "GET" else "/"
        return goto(f"/sign-in?next={quote(back)}")
    words = {
        "title": _TITLES.get(status, "Something failed"),
        "message": printable(str(document["message"])),
        "left": document.get("left") or {},
    }
    person = None
    if "session" in request.scope and status != 500:
        try:
            person = person_of(request, _house(request))
        except Exception:  # whoever it is: the page says the same
            person = None
    elif "session" not in request.scope:
        request.scope["session"] = {}
    return render(request, "error.html", status, person=person, **words)
