"""Questions to what was released: post-processing, so they cost nothing."""

from __future__ import annotations

from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of
from privatest.service.models import NewQuery
from privatest.service.store import Job
from privatest.synthetic import SyntheticData
from privatest.synthetic.queries import (
    WEIGHTS,
    Query,
    answer_query,
    check_options,
    describe_answer,
)

__all__ = ["ask_release"]


def ask_release(job: Job, query: NewQuery) -> dict[str, Any]:
    """Return the document of ``privatest query --json`` for the release of a job."""
    if job.state != "answered" or job.document is None or "parquet" not in job.document:
        raise ParameterError("the job must be a release that was answered: only rows can be asked.")
    if query.weights is not None:
        one_of("weights", query.weights, WEIGHTS)
    check_options(query.question, query.where, query.by, query.weights)
    asked = Query.parse(query.question, query.words, query.where, query.by)
    made = SyntheticData.from_dict(job.document)
    asked.check(made)
    return describe_answer(asked, answer_query(made, asked, query.weights), made)
