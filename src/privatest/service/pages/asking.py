"""From a data set to a question: what there is, what suits, what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.validation import printable
from privatest.curator.answers import Price, Rehearsal
from privatest.methods.ks import CLOSED_FORMS
from privatest.service.advice import Advice, advice
from privatest.service.describing import describe_dataset, visible_datasets
from privatest.service.guard import describe_error
from privatest.service.house import NotFound
from privatest.service.pages.common import Posted, Visit, Visitor, fragment, goto
from privatest.service.pages.kinds import ALTERNATIVES, KINDS, Fields, document_of, options_of
from privatest.service.pages.words import budget_words, column_words, shown

__all__ = ["asking_pages"]

asking_pages = APIRouter()
_SMALLEST, _USUAL = 0.01, 0.1


@asking_pages.get("/")
def datasets(visit: Visitor) -> Response:
    """List what one may ask about."""
    curator, person = visit.house.curator, visit.person
    names = visible_datasets(curator, person.name, everything=person.sees_all)
    found = [describe_dataset(curator, name, person.name) for name in names]
    budgets = {each["name"]: budget_words(each["budget"]) for each in found}
    return visit.page("datasets.html", datasets=found, budgets=budgets)


@asking_pages.get("/datasets/{name}")
def dataset(name: str, visit: Visitor) -> Response:
    """Describe a data set in words, and offer questions."""
    about = _described(visit, name)
    tests = sorted(visit.house.config.datasets[name].policy.tests)
    offered = {key: kind for key, kind in KINDS.items() if kind.offered(tests)}
    return visit.page(
        "dataset.html",
        dataset=about,
        columns=[(each["name"], column_words(each)) for each in about["columns"]],
        budget=budget_words(about["budget"]),
        kinds=offered if "ask" in visit.person.scopes else {},
    )


@asking_pages.get("/datasets/{name}/{key}")
def form(name: str, key: str, visit: Visitor) -> Response:
    """Show the form of a question, filled in from the address where it says so."""
    given = visit.request.query_params
    _kind(visit, name, key)
    view = _looked(visit, name, key, given) if "epsilon" in given else None
    return _form(visit, name, key, given, view)


@asking_pages.get("/datasets/{name}/{key}/advice")
def advise(name: str, key: str, visit: Visitor) -> Response:
    """Say what suits the columns that are chosen by now, for the form's script."""
    _kind(visit, name, key)
    view = _looked(visit, name, key, visit.request.query_params)
    return HTMLResponse(fragment("_advice.html", view=view, budget=_budget(visit, name)))


@asking_pages.post("/datasets/{name}/{key}")
def send(name: str, key: str, visit: Visitor, form: Posted) -> Response:
    """Look at, rehearse or run what a form asks."""
    _kind(visit, name, key)
    view = _looked(visit, name, key, form)
    wanted = form.get("do")
    if view.problem or view.document is None or wanted not in ("run", "rehearse"):
        return _form(visit, name, key, form, view)
    curator, person = visit.house.curator, visit.person
    try:
        if wanted == "rehearse":
            found = visit.house.rehearse(view.document, visit.person)
            return _form(visit, name, key, form, view, rehearsal=found)
        curator.price(view.document, analyst=person.name, afford=True)
        job = visit.house.jobs.submit(person.name, view.document)
    except PrivatestError as error:
        status, document = describe_error(error)
        failed = View(view.document, view.chosen, view.advice, view.price, document, status)
        return _form(visit, name, key, form, failed)
    return goto(f"/jobs/{job.id}")


@dataclass(frozen=True, slots=True)
class View:
    """What is known of a form: the request, what suits, its price; or what is wrong with it.

    Attributes
    ----------
    document : mapping or None
        The request with its method, if there is one that can be asked.
    chosen : Advice or None
        The method that is taken.
    advice : Advice or None
        The method that is recommended.
    price : Price or None
        What it would cost.
    problem : mapping or None
        The document of a refusal, with its status.
    """

    document: Mapping[str, Any] | None = None
    chosen: Advice | None = None
    advice: Advice | None = None
    price: Price | None = None
    problem: Mapping[str, Any] | None = None
    status: int = 200


def _looked(visit: Visit, name: str, key: str, form: Fields) -> View:
    try:
        return _advised(visit, name, key, form)
    except PrivatestError as error:
        status, document = describe_error(error)
        return View(problem=document, status=status)


def _advised(visit: Visit, name: str, key: str, form: Fields) -> View:
    """Take the method that was chosen, or the first that suits and can be asked."""
    visit.person.must("ask")
    curator, kind = visit.house.curator, KINDS[key]
    dataset, document = curator.config.datasets[name], document_of(kind, name, form)
    if "epsilon" not in document:
        raise ParameterError("epsilon must be given: what may the answer cost?")
    offered = [
        (question, method)
        for question, method in kind.offered(sorted(dataset.policy.tests))
        if question == document["question"]
    ]
    registration = curator.registration(name)
    hints = {"success": ""} if "success" in kind.fields else {}
    found = advice(
        document["question"],
        document | hints,
        schema=dataset.schema,
        rows=0 if registration is None else registration.rows,
        epsilon=document["epsilon"],
        offered=offered,
    )
    best, wanted, first = None, form.get("method") or "", None
    for each in found:
        asked = options_of(document, each.question, each.method)
        try:
            price = curator.price(asked, analyst=visit.person.name)
        except PrivatestError as error:
            first = first or error
            if each.method == wanted:
                raise
            continue
        best = best or each
        if wanted in ("", each.method):
            return View(asked, each, best, price)
    if wanted and wanted not in [each.method for each in found]:
        raise ParameterError("method must be one that is offered for this question.")
    raise first or ParameterError("This question is not offered for this data set.")


def _form(
    visit: Visit,
    name: str,
    key: str,
    form: Fields,
    view: View | None = None,
    rehearsal: Rehearsal | None = None,
) -> Response:
    kind = _kind(visit, name, key)
    about, view = _described(visit, name), view or View()
    policy = about["policy"]
    most = policy["each"] or policy["largest_epsilon"]
    words = {
        "dataset": about,
        "key": key,
        "kind": kind,
        "given": form,
        "methods": kind.offered(sorted(visit.house.config.datasets[name].policy.tests)),
        "numeric": [c for c in about["columns"] if c["type"] == "numeric"],
        "categorical": [c for c in about["columns"] if c["type"] == "categorical"],
        "public": [c for c in about["columns"] if c.get("membership") == "public"],
        "alternatives": ALTERNATIVES,
        "distributions": list(CLOSED_FORMS),
        "slider": {"least": min(_SMALLEST, most), "most": most, "usual": min(_USUAL, most)},
        "delta": policy["largest_delta"] / 10 if kind.question == "release" else 0,
        "budget": _budget(visit, name),
        "view": view,
        "problem": None if view.problem is None else printable(str(view.problem["message"])),
        "rehearsal": None if rehearsal is None else shown(rehearsal.result),
    }
    return visit.page("ask.html", view.status, **words)


def _kind(visit: Visit, name: str, key: str) -> Any:
    _described(visit, name)
    visit.person.must("ask")
    tests = sorted(visit.house.config.datasets[name].policy.tests)
    if key not in KINDS or not KINDS[key].offered(tests):
        raise NotFound("There is no such question here.")
    return KINDS[key]


def _described(visit: Visit, name: str) -> dict[str, Any]:
    curator, person = visit.house.curator, visit.person
    if name not in visible_datasets(curator, person.name, everything=person.sees_all):
        raise NotFound("There is no such data set.")
    return describe_dataset(curator, name, person.name)


def _budget(visit: Visit, name: str) -> Any:
    return budget_words(_described(visit, name)["budget"])
