"""Result documents written in November 2026 are read, and print as they did.

``stored/results.json`` has the document of each catalogue entry and of other public functions, with
simulated noise, as the code wrote it before results had more fields. Never write it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privatest.core.privacy import Budget
from privatest.requests.results import result_from_dict

STORED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "stored" / "results.json").read_text(encoding="utf-8")
)
SAID = {"compared", "guarantee", "noise_note", "noise_to_chance", "verdict"}


@pytest.mark.parametrize("name", STORED)
def test_stored_results_are_read_and_written_again(name: str) -> None:
    document = STORED[name]["document"]
    result = result_from_dict(document, Budget(document["epsilon"], document["delta"]))
    assert result is not None
    assert str(result) == STORED[name]["text"]
    assert result.guarantee == document["guarantee"]
    written = result.to_dict()  # it may have more than was stored
    kept = {key: value for key, value in document.items() if key not in SAID}
    assert {key: written.get(key) for key in kept} == kept


@pytest.mark.parametrize("name", [n for n in STORED if "reject" in STORED[n]["document"]])
def test_stored_tests_say_the_same(name: str) -> None:
    document = STORED[name]["document"]
    result: Any = result_from_dict(document, Budget(document["epsilon"], document["delta"]))
    assert result.verdict == document["verdict"]
    assert result.noise_to_chance == document.get("noise_to_chance")
    assert result.noise_note == document.get("noise_note", "")
