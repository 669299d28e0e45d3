"""Questions to a release through the service: the document of ``privatest query --json``."""

from __future__ import annotations

from typing import Any

import pytest

from privatest.synthetic import SyntheticData
from privatest.synthetic.queries import Query, answer_query, describe_answer
from tests.curators import request
from tests.services import serving

RELEASE = request(
    "release", "subspace", columns=["visits", "age", "plan"], points=20, delta=1e-6, epsilon=1
)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("queries")) as service:
        job = service.answered(RELEASE)
        assert job["state"] == "answered", job["document"]
        yield service, job


@pytest.mark.parametrize(
    "query",
    [
        {"question": "mean", "words": ["visits"]},
        {"question": "mean", "words": ["visits"], "where": "age < 50"},
        {"question": "mean", "words": ["visits"], "by": "plan"},
        {"question": "mean", "words": ["visits"], "weights": "nonnegative"},
        {"question": "probability", "words": ["visits > 10 and plan == 'basic'"]},
        {"question": "probability", "words": ["visits / 0 > 1e308 * 1e308"]},
        {"question": "mean", "words": ["visits"], "where": "age > 1000"},
        {"question": "quantile", "words": ["age", "0.5"]},
        {"question": "correlation", "words": ["visits", "age"]},
        {"question": "regression", "words": ["visits", "age", "plan"]},
    ],
)
def test_the_document_is_that_of_the_command(released, query):
    service, job = released
    before = service.get("/datasets/people").json()["budget"]
    answer = service.post(f"/jobs/{job['id']}/query", query)
    assert answer.status_code == 200, answer.text
    made = SyntheticData.from_dict(job["document"])
    asked = Query.parse(query["question"], query["words"], query.get("where"), query.get("by"))
    expected = describe_answer(asked, answer_query(made, asked, query.get("weights")), made)
    assert answer.json() == {"format": answer.json()["format"], **expected}
    assert service.get("/datasets/people").json()["budget"] == before


WRONG: list[dict[str, Any]] = [
    {"question": "mean", "words": ["plan"]},
    {"question": "mean", "words": ["gone"]},
    {"question": "mean", "words": []},
    {"question": "mean", "words": ["visits", "age"]},
    {"question": "compare", "words": ["file.csv"]},
    {"question": "rows"},
    {"question": "quantile", "words": ["visits", "often"]},
    {"question": "quantile", "words": ["visits", "0.5"], "by": "plan"},
    {"question": "probability", "words": ["__import__('os').system('x')"]},
    {"question": "probability", "words": ["(" * 900]},
    {"question": "probability", "words": ["visits > " + "9" * 900]},
    {"question": "probability", "words": ["visits " + "- 1" * 300]},
    {"question": "mean", "words": ["visits"], "where": "x" * 1001},
    {"question": "mean", "words": ["visits"], "weights": "heavy"},
    {"question": "mean", "words": ["visits"], "weights": "released", "where": "age < 50"},
    {"question": "mean", "words": ["visits"] * 51},
    {"question": "mean", "words": [1]},
    {"question": "mean", "words": ["visits"], "noise": "none"},
    {"words": ["visits"]},
]


@pytest.mark.parametrize("query", WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_answered_is_refused(released, query):
    service, job = released
    answer = service.post(f"/jobs/{job['id']}/query", query)
    assert answer.status_code == 422, answer.text
    assert len(answer.text) < 2000


def test_only_releases_can_be_asked_and_only_ones_own(released):
    service, job = released
    other = service.answered(request(epsilon=0.125))
    query = {"question": "mean", "words": ["visits"]}
    assert service.post(f"/jobs/{other['id']}/query", query).status_code == 422
    assert service.post(f"/jobs/{job['id']}/query", query, "bob").status_code == 404
    assert service.post("/jobs/abc/query", query).status_code == 404
    assert service.post(f"/jobs/{job['id']}/query", query, "otto").status_code == 200
