"""The pages: the curator in a browser, with cookies; tokens are for the API.

The custodian's pages show budgets, who asked what, and tokens. Auditors see them and change
nothing.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import Response

from privatest.core.documents import JSON_FORMAT, canonical
from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome
from privatest.core.validation import printable
from privatest.curator.answers import Price, Rehearsal
from privatest.display.plots import draw
from privatest.display.reports import report_html
from privatest.display.style import plain_text
from privatest.ledger import Entry
from privatest.methods.ks import CLOSED_FORMS
from privatest.requests.catalogue import METHODS
from privatest.requests.results import Result, result_from_dict
from privatest.service.auth import (
    RETURN_PATH,
    SCOPES,
    Person,
    begin_session,
    check_form,
    end_session,
    find_token,
    form_token,
    local_path,
    new_token,
    person_by_subject,
    person_by_token,
    person_of_session,
)
from privatest.service.errors import Forbidden, NotFound, SignInNeeded, describe_error
from privatest.service.forms import (
    ALTERNATIVES,
    FORMS,
    Advice,
    Fields,
    QuestionForm,
    advice,
    question_words,
    request_of,
    with_method,
)
from privatest.service.jobs import job_events
from privatest.service.state import ServiceState, StateDep, service_state
from privatest.service.store import JobRecord

pages = APIRouter(include_in_schema=False)
Number = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$")]
Table = tuple[str, list[tuple[str, ...]]]  # a caption and rows
_MOST_FIELDS = 1000
_MOST_JOBS = 200
_MOST_ENTRIES = 500  # of the ledger, on one page
_MOST_CATEGORIES = 30
_LONGEST_TOKEN = 200
_LEAST_EPSILON, _USUAL_EPSILON = 0.01, 0.1
_LOW = 0.2  # of a budget left: time to tell the custodian
_LEAST_PVALUE = 1e-4  # smaller ones are drawn at the end of the scale
_WIDTH, _HEIGHT = 600.0, 160.0  # of the drawn budget
_DRAWING = Lock()  # matplotlib draws one picture at a time
_WRONG_TOKEN = "This token opens nothing: it may be mistyped, expired or revoked."
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
_SCRIPT = '''"""Ask a curator. The same request of the same person costs nothing again."""

import os

import privatest

# privatest curator token NAME makes a token; keep it out of files.
client = privatest.connect({url!r}, os.environ["PRIVATEST_TOKEN"])
answer = client.run(
    {request}
)
print(answer)
'''


# --- budgets, columns and results for readers -----------------------------------------------


@dataclass(frozen=True, slots=True)
class BudgetView:
    """What is left of a budget in words, and the share that is used.

    ``left`` is what is left of epsilon where prices simply add up.
    """

    words: str
    used: float
    left: float | None = None

    @property
    def low(self) -> bool:
        """Whether little is left."""
        return 1 - self.used < _LOW

    @property
    def percent(self) -> int:
        """How much is left, in percent."""
        return round(100 * (1 - self.used))


def budget_view(account: Mapping[str, Any]) -> BudgetView:
    """Return a budget in the terms of its composition."""
    left, limits, used = account["left"], account["limits"], float(account["used"])
    if "events" in limits:
        return BudgetView(f"{left['events']} of {limits['events']} requests left", used)
    if "epsilon" in limits:
        rest = float(left["epsilon"])
        words = f"epsilon {rest:.4g} of {float(limits['epsilon']):.4g} left"
        if float(limits.get("delta", 0)):
            words += f", delta {float(left['delta']):.3g} of {float(limits['delta']):.3g}"
        return BudgetView(words, used, rest)
    return BudgetView(f"{100 * (1 - used):.3g}% left (composed tightly)", used)


def _budget_views(budget: Mapping[str, Any] | None) -> dict[str, BudgetView]:
    """Return the budgets of a data set for one person: its own, and theirs."""
    if budget is None:
        return {}
    views = {"Budget of the data set": budget_view(budget["dataset"])}
    return views | ({"Your budget": budget_view(budget["own"])} if budget["own"] else {})


def _column_words(column: Mapping[str, Any]) -> str:
    """Describe a column, as the schema declares it."""
    if column["type"] == "numeric":
        low, high = (f"{end:g}" for end in column["bounds"])
        return f"{'whole numbers' if column['integer'] else 'numbers'} from {low} to {high}"
    names = column["categories"]
    hidden = len(names) - _MOST_CATEGORIES
    listed = ", ".join(names[:_MOST_CATEGORIES]) + (f" and {hidden} more" if hidden > 0 else "")
    public = "everybody may know" if column["membership"] == "public" else "it is hidden"
    return f"one of {listed}; {public} who is which"


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result as a sentence, its guarantee and tables."""

    sentence: str
    guarantee: str
    tables: list[Table]
    pvalue: float | None = None
    alpha: float | None = None


def _result_of(job: JobRecord) -> Result | None:
    """Return the result of a job; None where it has none that can be read."""
    if job.state != "answered" or job.document is None:
        return None
    try:
        spent = Budget(job.document["epsilon"], job.document.get("delta", 0))
        return result_from_dict(job.document, spent)
    except (PrivatestError, KeyError, TypeError, ValueError):
        return None


def _result_view(result: Result) -> ResultView:
    if isinstance(result, Decision):
        tables: list[Table] = []
        estimates = result.estimate_table()
        if estimates is not None:
            tables.append((estimates.caption, [*estimates.rows]))
        tables.append(("the test", [*result.facts().items()]))
        pvalue = result.pvalue if isinstance(result, Outcome) else None
        return ResultView(result.verdict, result.guarantee, tables, pvalue, result.alpha)
    released: Any = result
    sentence, rows = released.heading, [*released.estimate_table().rows]
    if len(rows) == 1 and len(rows[0]) == 3:  # one estimate fits in the sentence
        name, value, interval = rows[0]
        sentence = f"{sentence}: {name} is {value} {interval}"
    return ResultView(f"{sentence}.", result.guarantee, [("the numbers", rows)])


def pvalue_scale(pvalue: float | None, alpha: float | None) -> dict[str, Any] | None:
    """Return where a p-value and its level are on a logarithmic scale, for SVG."""
    if pvalue is None or alpha is None:
        return None

    def place(value: float) -> float:
        share = 1 - math.log(max(value, _LEAST_PVALUE)) / math.log(_LEAST_PVALUE)
        return 20 + 560 * round(share, 4)

    return {
        "pvalue": place(pvalue),
        "alpha": place(alpha),
        "ticks": [(f"{value:g}", place(value)) for value in (1e-4, 1e-3, 0.01, 0.1, 1)],
        "words": f"p-value {pvalue:.3g}, level {alpha:g}, on a logarithmic scale",
    }


def spending_line(charges: Sequence[tuple[str, float]], total: float) -> dict[str, Any] | None:
    """Return the steps of a sum over time and the whole budget, for SVG.

    ``charges`` are pairs of a time as ISO text and epsilon, oldest first.
    """
    if not charges or total <= 0:
        return None
    times = [datetime.fromisoformat(time).timestamp() for time, _ in charges]
    first = times[0]
    span, top = max(times[-1] - first, 1.0), 1.1 * max(total, sum(cost for _, cost in charges))

    def height(value: float) -> float:
        return round(_HEIGHT * (1 - value / top), 2)

    spent, points = 0.0, [f"0,{_HEIGHT:g}"]
    for time, (_, cost) in zip(times, charges, strict=True):
        across = round(_WIDTH * (0.02 + 0.94 * (time - first) / span), 2)
        points.append(f"{across:g},{height(spent):g}")
        spent += cost
        points.append(f"{across:g},{height(spent):g}")
    points.append(f"{_WIDTH:g},{height(spent):g}")
    return {
        "points": " ".join(points),
        "limit": height(total),
        "first": charges[0][0][:10],
        "last": charges[-1][0][:10],
        "words": f"{len(charges)} charges, epsilon {spent:.4g} of {total:.4g}",
    }


# --- rendering, and who sends a request -----------------------------------------------------


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("privatest.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["short"] = lambda value: f"{float(value):.4g}"
    templates.filters["when"] = lambda text: str(text)[:16].replace("T", " ")
    templates.filters["place"] = lambda text: quote(str(text), safe="")
    return templates


def _render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    known = {"person": None, "csrf": form_token(request), "path": request.url.path} | values
    return HTMLResponse(_templates().get_template(template).render(known), status)


def _redirect(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who is signed in."""

    request: Request
    state: ServiceState
    person: Person

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page for them."""
        return _render(self.request, template, status, person=self.person, **values)

    def dataset(self, name: str) -> dict[str, Any]:
        """Describe a data set that they may see."""
        self.state.check_visible(name, self.person)
        return self.state.describe_dataset(name, self.person.name)

    def form(self, name: str, key: str) -> QuestionForm:
        """Return the form of a question that they may ask about a data set."""
        self.state.check_visible(name, self.person)
        self.person.must("ask")
        if key not in FORMS or not FORMS[key].offered(self.tests(name)):
            raise NotFound("There is no such question here.")
        return FORMS[key]

    def tests(self, name: str) -> frozenset[tuple[str, str]]:
        """Return the questions and methods that the policy of a data set allows."""
        return frozenset(self.state.config.datasets[name].policy.tests)


def _visit(request: Request, state: StateDep) -> Visit:
    person = person_of_session(request, state)
    request.state.person = person.name  # for the service's own log
    state.rate.take(f"person {person.name}")
    return Visit(request, state, person)


async def _posted(request: Request) -> FormData:
    """Return the form, if it came from a page of this session; files in it are dropped."""
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as form:
        check_form(request, form.get("csrf"))
        return FormData([(k, v) for k, v in form.multi_items() if isinstance(v, str)])


Visitor = Annotated[Visit, Depends(_visit)]
Posted = Annotated[FormData, Depends(_posted)]


def error_page(request: Request, status: int, document: dict[str, Any]) -> Response:
    """Return a refusal as a page; who is not signed in is sent to the sign-in page."""
    if status == 401:
        back = request.url.path if request.method == "GET" else "/"
        return _redirect(f"/sign-in?next={quote(back)}")
    values = {
        "title": _TITLES.get(status, "Something failed"),
        "message": printable(str(document["message"])),
        "left": document.get("left") or {},
    }
    person = None
    if "session" not in request.scope:
        request.scope["session"] = {}
    elif status != 500:
        try:
            person = person_of_session(request, service_state(request))
        except Exception:  # the page is the same without a name
            person = None
    return _render(request, "error.html", status, person=person, **values)


# --- signing in and out ---------------------------------------------------------------------


def _count_attempt(request: Request) -> None:
    request.app.state.attempts.take("" if request.client is None else request.client.host)


def _sign_in_page(request: Request, back: str, status: int = 200, problem: str = "") -> Response:
    issuer = request.app.state.issuer is not None
    return _render(request, "sign_in.html", status, back=back, issuer=issuer, problem=problem)


@pages.get("/sign-in")
def sign_in(request: Request, state: StateDep, next: str = "/") -> Response:
    """Show how to sign in; go on if somebody is signed in."""
    back = local_path(next)
    try:
        person_of_session(request, state)
        return _redirect(back)
    except (SignInNeeded, Forbidden):
        return _sign_in_page(request, back)


@pages.post("/sign-in")
def sign_in_with_token(request: Request, state: StateDep, form: Posted) -> Response:
    """Sign in with a token; the cookie holds its number, not the token."""
    _count_attempt(request)
    back = local_path(form.get("next"))
    token = find_token(state.store, str(form.get("token") or "").strip()[:_LONGEST_TOKEN])
    try:
        person_by_token(token, state.config)
    except SignInNeeded:
        return _sign_in_page(request, back, status=401, problem=_WRONG_TOKEN)
    assert token is not None
    begin_session(request, token=token.id)
    return _redirect(back)


@pages.get("/sign-in/issuer")
async def sign_in_at_issuer(request: Request, next: str = "/") -> Response:
    """Go to the issuer. A link, not a form: forms may lead to this service only."""
    _count_attempt(request)
    issuer = request.app.state.issuer
    if issuer is None:
        return _redirect("/sign-in")
    request.session["next"] = local_path(next)
    response: Response = await issuer.redirect(request)
    return response


@pages.get(RETURN_PATH)
async def return_from_issuer(request: Request, state: StateDep) -> Response:
    """Come back from the issuer."""
    _count_attempt(request)
    issuer = request.app.state.issuer
    if issuer is None:
        return _redirect("/sign-in")
    back = local_path(request.session.get("next"))
    subject = await issuer.subject(request)
    await run_in_threadpool(person_by_subject, state.config, subject)  # nobody else gets a session
    begin_session(request, subject=subject, issuer=state.config.service.issuer or "")
    return _redirect(back)


@pages.post("/sign-out")
def sign_out(request: Request, _: Posted) -> Response:
    """End the session, wherever its cookie has been copied to."""
    end_session(request)
    return _redirect("/sign-in")


# --- from a data set to a request -----------------------------------------------------------


@pages.get("/")
def datasets(visit: Visitor) -> Response:
    """List the data sets that one may ask about."""
    found = [visit.dataset(name) for name in visit.state.visible_datasets(visit.person)]
    budgets = {each["name"]: _budget_views(each["budget"]) for each in found}
    return visit.page("datasets.html", datasets=found, budgets=budgets)


@pages.get("/datasets/{name}")
def dataset(name: str, visit: Visitor) -> Response:
    """Describe a data set, and offer questions."""
    about = visit.dataset(name)
    offered = {key: form for key, form in FORMS.items() if form.offered(visit.tests(name))}
    return visit.page(
        "dataset.html",
        dataset=about,
        columns=[(each["name"], _column_words(each)) for each in about["columns"]],
        budget=_budget_views(about["budget"]),
        kinds=offered if "ask" in visit.person.scopes else {},
    )


@pages.get("/datasets/{name}/{key}")
def question_form(name: str, key: str, visit: Visitor) -> Response:
    """Show the form of a question, filled in from the address where it says so."""
    fields = visit.request.query_params
    visit.form(name, key)
    preview = _preview(visit, name, key, fields) if "epsilon" in fields else Preview()
    return _question_page(visit, name, key, fields, preview)


@pages.get("/datasets/{name}/{key}/advice")
def form_advice(name: str, key: str, visit: Visitor) -> Response:
    """Say which method suits the columns that are chosen by now, for the form's script."""
    visit.form(name, key)
    preview = _preview(visit, name, key, visit.request.query_params)
    template = _templates().get_template("_advice.html")
    return HTMLResponse(template.render(view=preview))


@pages.post("/datasets/{name}/{key}")
def send_question(name: str, key: str, visit: Visitor, fields: Posted) -> Response:
    """Check, rehearse or run the request of a form."""
    visit.form(name, key)
    preview = _preview(visit, name, key, fields)
    action, request = fields.get("do"), preview.request
    if preview.problem or request is None or action not in ("run", "rehearse"):
        return _question_page(visit, name, key, fields, preview)
    try:
        if action == "rehearse":
            rehearsal = visit.state.rehearse(request, visit.person)
            return _question_page(visit, name, key, fields, preview, rehearsal)
        return _redirect(f"/jobs/{visit.state.submit(request, visit.person).id}")
    except PrivatestError as error:
        status, document = describe_error(error)
        failed = replace(preview, problem=document, status=status)
        return _question_page(visit, name, key, fields, failed)


@dataclass(frozen=True, slots=True)
class Preview:
    """What is known of a form before it is sent: method and price, or what is wrong with it.

    Attributes
    ----------
    request : mapping or None
        The request with its method, if there is one that can be sent.
    chosen, advice : Advice or None
        The method that is taken, and the one that is recommended.
    price : Price or None
        What it would cost.
    problem : mapping or None
        The document of a refusal, with its status.
    """

    request: Mapping[str, Any] | None = None
    chosen: Advice | None = None
    advice: Advice | None = None
    price: Price | None = None
    problem: Mapping[str, Any] | None = None
    status: int = 200


def _preview(visit: Visit, name: str, key: str, fields: Fields) -> Preview:
    try:
        return _advise(visit, name, FORMS[key], fields)
    except PrivatestError as error:
        status, document = describe_error(error)
        return Preview(problem=document, status=status)


def _advise(visit: Visit, name: str, form: QuestionForm, fields: Fields) -> Preview:
    """Take the method that was chosen, or the first that suits and that the curator accepts."""
    curator, request = visit.state.curator, request_of(form, name, fields)
    if "epsilon" not in request:
        raise ParameterError("epsilon must be given: what may the answer cost?")
    registration = curator.registration(name)
    suited = advice(
        request["question"],
        request | ({"success": ""} if "success" in form.fields else {}),
        schema=curator.config.datasets[name].schema,
        rows=0 if registration is None else registration.rows,
        epsilon=request["epsilon"],
        offered=form.offered(visit.tests(name)),
    )
    best, wanted, refusal = None, fields.get("method") or "", None
    for each in suited:
        complete = with_method(request, each.question, each.method)
        try:
            price = curator.price(complete, analyst=visit.person.name)
        except PrivatestError as error:
            refusal = refusal or error
            if each.method == wanted:
                raise
            continue
        best = best or each
        if wanted in ("", each.method):
            return Preview(complete, each, best, price)
    if wanted and wanted not in [each.method for each in suited]:
        raise ParameterError("method must be one that is offered for this question.")
    raise refusal or ParameterError("This question is not offered for this data set.")


def _question_page(
    visit: Visit,
    name: str,
    key: str,
    fields: Fields,
    preview: Preview,
    rehearsal: Rehearsal | None = None,
) -> Response:
    form, about = FORMS[key], visit.dataset(name)
    policy, columns = about["policy"], about["columns"]
    most = policy["each"] or policy["largest_epsilon"]
    return visit.page(
        "ask.html",
        preview.status,
        dataset=about,
        key=key,
        kind=form,
        given=fields,
        methods=form.offered(visit.tests(name)),
        numeric=[each for each in columns if each["type"] == "numeric"],
        categorical=[each for each in columns if each["type"] == "categorical"],
        public=[each for each in columns if each.get("membership") == "public"],
        alternatives=ALTERNATIVES,
        distributions=list(CLOSED_FORMS),
        slider={
            "least": min(_LEAST_EPSILON, most),
            "most": most,
            "usual": min(_USUAL_EPSILON, most),
        },
        delta=policy["largest_delta"] / 10 if form.question == "release" else 0,
        budget=_budget_views(about["budget"]),
        view=preview,
        problem=printable(str(preview.problem["message"])) if preview.problem else None,
        rehearsal=None if rehearsal is None else _result_view(rehearsal.result),
    )


# --- requests and their answers -------------------------------------------------------------


@pages.get("/jobs")
def jobs(visit: Visitor) -> Response:
    """List requests, newest first: one's own, or everybody's for those who may see them."""
    found = visit.state.jobs_of(visit.person, _MOST_JOBS)
    return visit.page("jobs.html", jobs=found, words=lambda job: question_words(job.request))


@pages.get("/jobs/{number}")
def job(number: Number, visit: Visitor) -> Response:
    """Show a request and its answer."""
    found = visit.state.job(number, visit.person)
    result = _result_of(found)
    view = None if result is None else _result_view(result)
    name, budget = str(found.request.get("dataset")), None
    if name in visit.state.datasets_of(found.analyst):
        budget = visit.state.describe_dataset(name, found.analyst)["budget"]
    return visit.page(
        "job.html",
        job=found,
        question=question_words(found.request),
        document=json.dumps(found.request, indent=1, ensure_ascii=False),
        shown=view,
        picture=result is not None and _has_picture(found),
        scale=None if view is None else pvalue_scale(view.pvalue, view.alpha),
        budget=_budget_views(budget),
    )


@pages.get("/jobs/{number}/events")
def watch_job(number: Number, visit: Visitor) -> StreamingResponse:
    """Stream the state of a request to the page."""
    request, state, name = visit.request, visit.state, visit.person.name
    state.job(number, visit.person)
    stream = job_events(name, lambda: state.job(number, person_of_session(request, state)))
    return StreamingResponse(stream, media_type="text/event-stream")


@pages.get("/jobs/{number}/picture.png")
def job_picture(number: Number, visit: Visitor) -> Response:
    """Draw what was released."""
    found = visit.state.job(number, visit.person)
    drawn = _picture(canonical(dict(found.to_dict()))) if _has_picture(found) else None
    if drawn is None:
        raise NotFound("There is no picture of this.")
    return Response(drawn, media_type="image/png")


@pages.get("/jobs/{number}/answer.json")
def job_json(number: Number, visit: Visitor) -> Response:
    """Return the whole job as a file."""
    found = visit.state.job(number, visit.person)
    text = json.dumps({"format": JSON_FORMAT, **found.to_dict()}, indent=1, allow_nan=False)
    return _file(text, "application/json", f"answer-{found.id[:8]}.json")


@pages.get("/jobs/{number}/script.py")
def job_script(number: Number, visit: Visitor) -> Response:
    """Return a program that asks the same."""
    found = visit.state.job(number, visit.person)
    lines = [f"        {name!r}: {value!r}," for name, value in found.request.items()]
    request = "\n".join(["{", *lines, "    }"])  # plain values, which repr escapes
    text = _SCRIPT.format(url=visit.state.config.service.url, request=request)
    return _file(text, "text/x-python", f"ask-{found.id[:8]}.py")


@pages.get("/jobs/{number}/report.html")
def job_report(number: Number, visit: Visitor) -> Response:
    """Return the report of an answer, as commands write it."""
    found = visit.state.job(number, visit.person)
    result, document = _result_of(found), found.document or {}
    if result is None:
        raise NotFound("There is no answer to report.")
    about = {"title": question_words(found.request), "request": dict(found.request)}
    about |= {name: document[name] for name in ("compared", "dataset", "id") if document.get(name)}
    with _DRAWING:
        text = report_html(result, about=about)
    return _file(text, "text/html", f"report-{found.id[:8]}.html")


def _file(text: str, kind: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


def _has_picture(job: JobRecord) -> bool:
    entry = METHODS.get(str(job.request.get("question")), {}).get(str(job.request.get("method")))
    return entry is not None and entry.drawn and find_spec("matplotlib") is not None


@lru_cache(maxsize=16)
def _picture(text: str) -> bytes | None:
    """Draw a job's answer; None where it cannot be drawn."""
    result = _result_of(JobRecord(**json.loads(text)))
    if result is None:
        return None
    stream = io.BytesIO()
    try:
        with _DRAWING, plain_text():
            drawn: Any = draw(result)
            drawn.figure.savefig(stream, format="png", dpi=110)
    except Exception:  # a released answer that has nothing to draw, such as a decision
        return None
    return stream.getvalue()


# --- the custodian's pages ------------------------------------------------------------------


@pages.get("/custody")
def custody(visit: Visitor) -> Response:
    """Show all budgets, low ones first named, and unfinished requests."""
    visit.person.must("custodian", "auditor")
    found = [_spending(visit, name) for name in visit.state.config.datasets]
    return visit.page("custody.html", datasets=found)


@pages.get("/custody/datasets/{name}")
def custody_dataset(name: str, visit: Visitor) -> Response:
    """Show one data set: its budget over time, its policy, and who asked what."""
    visit.person.must("custodian", "auditor")
    if name not in visit.state.config.datasets:
        raise NotFound("There is no such data set.")
    about = _spending(visit, name)
    ledger = visit.state.curator.ledger
    entries = ledger.history(name, last=_MOST_ENTRIES) if about["account"] is not None else []
    ends = {entry.body["closes"]: entry.kind for entry in entries if "closes" in entry.body}
    asked = [_charge(entry, ends) for entry in entries if entry.kind == "reserved"]
    charges = [(each["time"], float(each["epsilon"] or 0)) for each in reversed(asked)]
    return visit.page(
        "custody_dataset.html",
        about=about,
        asked=asked,
        line=spending_line(charges, about["total"]),
        whole=len(entries) < _MOST_ENTRIES,
    )


@pages.get("/custody/tokens")
def tokens(visit: Visitor) -> Response:
    """List tokens; a custodian makes and revokes them here."""
    visit.person.must("custodian", "auditor")
    return _tokens_page(visit)


@pages.post("/custody/tokens")
def make_token(visit: Visitor, form: Posted) -> Response:
    """Make a token and show it this once."""
    visit.person.must("custodian")
    name, scopes = str(form.get("name") or "").strip(), list(map(str, form.getlist("scope")))
    try:
        days = str(form.get("days") or "90")
        if not name or len(name) > 200 or not name.isprintable():
            raise ParameterError("name must have 1 to 200 printable characters.")
        visit.state.check_token_owner(name, scopes)
        if not days.isascii() or not days.isdigit() or len(days) > 6:
            raise ParameterError("days must be a whole number.")
        text = new_token(visit.state.store, name, scopes=scopes, days=int(days))
    except PrivatestError as error:
        status, document = describe_error(error)
        return _tokens_page(visit, status, problem=printable(str(document["message"])))
    return _tokens_page(visit, 201, made=text, owner=name)


@pages.post("/custody/tokens/revoke")
def revoke_token(visit: Visitor, form: Posted) -> Response:
    """Revoke a token at once: sessions that it opened end too."""
    visit.person.must("custodian")
    visit.state.revoke_token(str(form.get("id") or "")[:40])
    return _redirect("/custody/tokens")


def _tokens_page(
    visit: Visit,
    status: int = 200,
    *,
    made: str | None = None,
    owner: str = "",
    problem: str | None = None,
) -> Response:
    return visit.page(
        "tokens.html",
        status,
        made=made,
        owner=owner,
        problem=problem,
        scopes=SCOPES,
        tokens=visit.state.store.tokens(),
        may_change="custodian" in visit.person.scopes,
        analysts=list(visit.state.config.analysts),
    )


def _spending(visit: Visit, name: str) -> dict[str, Any]:
    """Describe a data set with all budgets and unfinished requests, if the ledger knows it."""
    about = visit.state.describe_dataset(name, visit.person.name)
    ledger = visit.state.curator.ledger
    if name not in ledger.datasets():
        return about | {"account": None, "total": 0.0, "analysts": {}, "unfinished": []}
    totals = ledger.totals(name)
    return about | {
        "account": budget_view(totals.account.to_dict()),
        "total": float(totals.account.budget.epsilon),
        "analysts": {who: budget_view(own.to_dict()) for who, own in totals.analysts.items()},
        "unfinished": [_charge(entry, {}) for entry in ledger.unfinished(name)],
    }


def _charge(entry: Entry, ends: dict[Any, str]) -> dict[str, Any]:
    """Return a charge for a reader: who, when, what, for how much, and how it ended."""
    body = entry.body
    return {
        "time": entry.time,
        "analyst": body.get("analyst") or "the custodian",
        "asked": body.get("asked") or {},
        "epsilon": body.get("epsilon"),
        "delta": body.get("delta"),
        "end": ends.get(body.get("opens"), "open"),
    }
