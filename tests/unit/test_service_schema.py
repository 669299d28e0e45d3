"""What the service says of itself is true: schemathesis on its OpenAPI description.

Examples are the same in every run. Wrong requests are refused in the one shape; nothing is a 5xx.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from privatest.service.auth import SCOPES, new_token
from tests.curators import request
from tests.services import Service, serving
from tests.unit.test_service_api import GUARDED

BASE = "http://127.0.0.1:8000"
CHECKS: Any = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
PLACES = sorted(
    {
        (method, place.partition("?")[0].replace("abc", "{number}").replace("people", "{name}"))
        for method, place in [*GUARDED, ("GET", "/health")]
    }
)
QUICK = settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("schema")) as running:
        running.tokens["all"] = new_token(running.state.store, "ada", scopes=SCOPES)
        yield running


@pytest.fixture(scope="module")
def schema(service: Service) -> Any:
    return schemathesis.openapi.from_dict(service.client.get("/api/v1/openapi.json").json())


@pytest.fixture(scope="module")
def known(service: Service) -> dict[str, Any]:
    """What there is: else nearly all that is asked for would be found missing."""
    asked = request("release", "subspace", columns=["visits", "age", "plan"], points=10)
    job = service.answered(asked | {"epsilon": 1, "delta": 1e-6})
    return {"name": "people", "number": job["id"], "dataset": "people"}


BODIES: dict[str, dict[str, Any]] = {
    "/run": request(epsilon=0.03125),
    "/price": request(),
    "/rehearse": request(),
    "/tokens": {"name": "ada", "scopes": ["ask"]},
    "/jobs/{number}/query": {"question": "mean", "words": ["visits"]},
}


@pytest.mark.parametrize("mode", schemathesis.GenerationMode, ids=str)
@pytest.mark.parametrize(("method", "place"), PLACES)
def test_answers_are_as_described(service, schema, known, method, place, mode):
    operation = schema[f"/api/v1{place}"][method]
    described = operation.definition.raw
    if mode.name == "NEGATIVE" and not {"parameters", "requestBody"} & described.keys():
        return  # nothing can be wrong
    statuses = set()

    @QUICK
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def try_out(case: Any, real: bool) -> None:
        if real:  # something that there is, in the place of what was made up
            for given_names in (case.path_parameters, case.query):
                for name in given_names or ():
                    given_names[name] = known.get(name, given_names[name])
            case.body = BODIES.get(place, case.body)
        sent = case.as_transport_kwargs(base_url=BASE, headers=service.headers("all"))
        sent.pop("cookies", None)
        if "data" in sent:  # httpx calls it so
            sent["content"] = sent.pop("data")
        answer = service.client.request(**sent)
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    try_out()
    assert mode.name == "NEGATIVE" or method == "DELETE" or statuses & {200, 201, 202}


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
NAME = st.text(max_size=5)
JSON = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ASKED = [
    request(groups=["basic", "plus"], alpha=0.05, permutations=99, where={"region": "north"}),
    request("independence", "hsic", x=["age"], y=["visits"], bandwidths=0.5, statistics="kernel"),
    request("paired", "wilcoxon", before="age", after="visits", alternative="less"),
    request("fit", "distribution", column="visits", dist="norm(40, 10)", grid=5),
    request("fit", "shares", column="plan", shares="basic=0.5,plus=0.5"),
    request("mean", "quantiles", columns=["visits"], q=0.5, cells=64),
    request("release", "subspace", columns=["visits"], points=5, delta=1e-6, weights="signed"),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked['question']}-{asked['method']}")
def test_a_request_with_one_wrong_word_is_priced_or_refused(service, asked):
    headers = service.headers("ada") | {"content-type": "application/json"}

    def price(document: dict[str, Any]) -> Any:
        # not json=: clients refuse to send infinities, which the service has to refuse itself
        text = json.dumps(document)
        return service.client.post("/api/v1/price", content=text, headers=headers)

    @QUICK
    @given(name=st.sampled_from(sorted(asked)), value=JSON)
    def try_out(name: str, value: Any) -> None:
        answer = price(asked | {name: value})
        assert answer.status_code in (200, 422), answer.text
        assert {"format"} <= answer.json().keys()

    assert price(asked).status_code == 200
    try_out()


WORD = st.text(max_size=30) | st.sampled_from(["visits", "age", "plan", "visits > 10", "0.5"])


def test_a_question_to_a_release_is_answered_or_refused(service, known):
    questions = ["mean", "probability", "quantile", "correlation", "regression", "rows", ""]

    @settings(QUICK, max_examples=60)
    @given(
        question=st.sampled_from(questions),
        words=st.lists(WORD, max_size=3),
        where=st.none() | WORD,
        by=st.none() | st.sampled_from(["plan", "age", "gone"]),
    )
    def try_out(question: str, words: list[str], where: str | None, by: str | None) -> None:
        query = {"question": question, "words": words, "where": where, "by": by}
        answer = service.post(f"/jobs/{known['number']}/query", query)
        assert answer.status_code in (200, 422), answer.text

    try_out()
