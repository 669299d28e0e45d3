"""Reading answers: watching them come, their words and pictures, and files to take along."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.util import find_spec
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from privatest.core.documents import JSON_FORMAT, canonical
from privatest.plots.drawing import draw
from privatest.plots.style import plain_text
from privatest.reports import report_html
from privatest.requests.catalogue import METHODS
from privatest.requests.results import Result
from privatest.service.describing import describe_dataset, visible_datasets
from privatest.service.events import events
from privatest.service.house import NotFound
from privatest.service.pages.common import Visit, Visitor
from privatest.service.pages.drawing import pvalue_scale
from privatest.service.pages.kinds import KINDS
from privatest.service.pages.words import budget_words, result_of, shown
from privatest.service.sessions import person_of
from privatest.service.store import Job

__all__ = ["reading_pages"]

reading_pages = APIRouter()
Number = Annotated[str, Path(pattern="^[0-9a-f]{1,32}$")]
_MOST_LISTED = 200
_DRAWING = Lock()  # matplotlib draws one picture at a time
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


@reading_pages.get("/jobs")
def jobs(visit: Visitor) -> Response:
    """List requests, newest first: one's own, or everybody's for those who may see them."""
    found = visit.house.jobs_of(visit.person, _MOST_LISTED)
    return visit.page("jobs.html", jobs=found, words=_question_words)


@reading_pages.get("/jobs/{number}")
def job(number: Number, visit: Visitor) -> Response:
    """Show a request and its answer."""
    found = visit.house.job(number, visit.person)
    result = result_of(found)
    view = None if result is None else shown(result)
    words = {
        "job": found,
        "question": _question_words(found),
        "document": json.dumps(found.request, indent=1, ensure_ascii=False),
        "shown": view,
        "picture": result is not None and _has_picture(found),
        "scale": None if view is None else pvalue_scale(view.pvalue, view.alpha),
        "budget": _budget(visit, found),
    }
    return visit.page("job.html", **words)


@reading_pages.get("/jobs/{number}/events")
def watch(number: Number, visit: Visitor) -> StreamingResponse:
    """Tell the page how far a request is."""
    visit.house.job(number, visit.person)
    again = partial(person_of, visit.request, visit.house)
    stream = events(visit.house, number, visit.person, again)
    return StreamingResponse(stream, media_type="text/event-stream")


@reading_pages.get("/jobs/{number}/picture.png")
def picture(number: Number, visit: Visitor) -> Response:
    """Draw what was released."""
    found = visit.house.job(number, visit.person)
    drawn = _picture(canonical(dict(found.to_dict()))) if _has_picture(found) else None
    if drawn is None:
        raise NotFound("There is no picture of this.")
    return Response(drawn, media_type="image/png")


@reading_pages.get("/jobs/{number}/answer.json")
def as_json(number: Number, visit: Visitor) -> Response:
    """Give the whole job as a file."""
    found = visit.house.job(number, visit.person)
    text = json.dumps({"format": JSON_FORMAT, **found.to_dict()}, indent=1, allow_nan=False)
    return _file(text, "application/json", f"answer-{found.id[:8]}.json")


@reading_pages.get("/jobs/{number}/script.py")
def as_script(number: Number, visit: Visitor) -> Response:
    """Give a program that asks the same."""
    found = visit.house.job(number, visit.person)
    text = _SCRIPT.format(url=visit.house.config.service.url, request=_literal(found.request))
    return _file(text, "text/x-python", f"ask-{found.id[:8]}.py")


@reading_pages.get("/jobs/{number}/report.html")
def as_report(number: Number, visit: Visitor) -> Response:
    """Give a page that needs no other files."""
    found = visit.house.job(number, visit.person)
    result = result_of(found)
    if result is None:
        raise NotFound("There is no answer to report.")
    return _file(_report(found, result), "text/html", f"report-{found.id[:8]}.html")


def _report(job: Job, result: Result) -> str:
    """Return the page of an answer, as commands write it."""
    with _DRAWING:
        return report_html(result, about=_about(job))


def _about(job: Job) -> dict[str, Any]:
    """Return what the page says beside the result: public words of the job."""
    document = job.document or {}
    said = {name: document[name] for name in ("compared", "dataset", "id") if document.get(name)}
    return {"title": _question_words(job), "request": dict(job.request), **said}


def _file(text: str, kind: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


def _literal(request: Mapping[str, Any]) -> str:
    """Write a request as Python: plain values, which repr escapes."""
    lines = [f"        {name!r}: {value!r}," for name, value in request.items()]
    return "\n".join(["{", *lines, "    }"])


def _question_words(job: Job) -> str:
    """Return the question as people ask it."""
    question, method = job.request.get("question"), job.request.get("method")
    if method in ("proportion", "tost-proportion"):
        return KINDS["proportions"].words
    kinds = [kind.words for kind in KINDS.values() if kind.question == question]
    return kinds[0] if kinds else str(question)


def _has_picture(job: Job) -> bool:
    entry = METHODS.get(str(job.request.get("question")), {}).get(str(job.request.get("method")))
    return entry is not None and entry.drawn and find_spec("matplotlib") is not None


@lru_cache(maxsize=16)
def _picture(text: str) -> bytes | None:
    """Draw a job's answer; None where it cannot be drawn."""
    job = Job(**json.loads(text))
    result = result_of(job)
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


def _budget(visit: Visit, job: Job) -> Any:
    """Return what is left, for whoever asked."""
    curator, name = visit.house.curator, job.request.get("dataset")
    if name not in visible_datasets(curator, job.analyst, everything=False):
        return {}
    return budget_words(describe_dataset(curator, str(name), job.analyst)["budget"])
