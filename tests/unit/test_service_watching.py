"""Logs and counts of the service: places and statuses, never what somebody typed or owns."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.curators import CONFIG, request
from tests.services import Service, serving

CANARY = "canary-7f3a"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


def test_a_line_for_each_request(service):
    service.get("/datasets/people")
    line = json.loads(service.log.getvalue().splitlines()[-1])
    assert line.keys() == {"time", "method", "place", "status", "ms", "person"}
    assert (line["method"], line["status"], line["person"]) == ("GET", 200, "ada")
    assert line["place"] == "/api/v1/datasets/{name}"


def test_what_was_typed_is_nowhere(service):
    service.get(f"/datasets/{CANARY}")
    service.get(f"/{CANARY}")
    service.get("/me", CANARY)
    service.post("/price", request(columns=[CANARY], dataset=CANARY))
    service.client.request(CANARY.upper(), "/api/v1/me")
    service.client.get("/api/v1/me", headers={"x-more": CANARY, "cookie": f"a={CANARY}"})
    counts = service.get("/metrics", "otto").text
    for text in (service.log.getvalue(), counts):
        assert CANARY not in text.lower()
    assert 'place="nowhere",status="404"' in counts


def test_counts(service):
    service.answered(request(epsilon=0.5))
    counts = service.get("/metrics", "otto").text
    used = next(line for line in counts.splitlines() if line.startswith("privatest_budget_used{"))
    assert float(used.split()[-1]) == pytest.approx(0.5 / 3)
    assert 'privatest_jobs{state="running"} 0.0' in counts
    assert service.get("/metrics").status_code == 403
    assert service.get("/metrics", None).status_code == 401


def test_counts_for_all_where_the_file_says_so(tmp_path):
    with serving(tmp_path, CONFIG + "\n[service]\nopen_metrics = true\n") as service:
        assert service.get("/metrics", None).status_code == 200
