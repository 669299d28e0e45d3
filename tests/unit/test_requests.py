"""Requests: public words, checked against a schema before any data is read."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privatest
from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.ledger import request_digest
from privatest.noise import SimulatedNoise
from privatest.requests.catalogue import METHODS, PARTS
from privatest.requests.prepare import prepare
from privatest.requests.rehearsal import rehearse
from privatest.requests.request import Request

SCHEMA = Schema(
    {
        "visits": NumericColumn(0, 80),
        "age": NumericColumn(0, 100),
        "plan": CategoricalColumn(("basic", "plus")),
        "region": CategoricalColumn(("north", "south"), membership="public"),
    }
)
TABLE = pa.table(
    {
        "visits": [1.0, 5.0, 9.0, 30.0] * 10,
        "age": [20.0, 40.0, 60.0, 80.0] * 10,
        "plan": ["basic", "plus"] * 20,
        "region": ["north", "north", "south", "south"] * 10,
    }
)
ENTRIES = [(question, name) for question, methods in METHODS.items() for name in methods]


def asked(question: str = "two-sample", method: str = "mmd", **document) -> Request:
    return Request.from_dict({"question": question, "method": method, "epsilon": "1"} | document)


@pytest.mark.parametrize(("question", "name"), ENTRIES)
def test_every_entry_loads_and_takes_its_options(question, name):
    entry = METHODS[question][name]
    parameters = inspect.signature(entry.function).parameters
    wanted = {*entry.options.values(), *entry.preset}
    if question == "independence":  # the same kernel for both sides
        wanted -= {"kernel", "bandwidths"}
    assert wanted <= set(parameters)
    assert {"epsilon", "delta", "noise"} <= set(parameters)
    assert ("alpha" in parameters) == entry.level
    assert not entry.steps or "progress" in parameters


def test_options_and_parts_have_different_names():
    for question, methods in METHODS.items():
        for entry in methods.values():
            assert not set(PARTS[question]) & set(entry.options)


def digest(request: Request) -> str:
    return request_digest(request.to_dict())


@pytest.mark.parametrize(
    "document",
    [
        {"group": "plan", "columns": ["visits"], "permutations": 99, "delta": "1e-6"},
        {"group": "region", "groups": ["north", "south"], "release": "decision", "alpha": 0.1},
    ],
)
def test_a_request_comes_back_from_json(document):
    request = asked(**document)
    again = Request.from_dict(json.loads(json.dumps(request.to_dict())))
    assert again.to_dict() == request.to_dict()
    assert digest(again) == digest(request)


def test_the_digest_tells_requests_apart_and_not_spellings():
    assert digest(asked(group="plan")) != digest(asked(group="region"))
    assert digest(asked(group="plan", epsilon="1.0")) == digest(asked(group="plan", epsilon=1))
    assert digest(asked(group="plan")) == digest(asked(epsilon=1, group="plan", alpha=0.05))
    assert digest(asked(epsilon="0.5")) != digest(asked(epsilon="0.50001"))


@pytest.mark.parametrize(
    ("document", "fragment"),
    [
        ({"question": "weather", "method": "mmd", "epsilon": 1}, "question"),
        ({"question": "two-sample", "method": "guess", "epsilon": 1}, "mmd, mean"),
        ({"question": "two-sample", "epsilon": 1}, "method must be given, one of mmd, mean, "),
        ({"method": "mmd", "epsilon": 1}, "question must be given, one of two-sample, "),
        ({"question": "two-sample", "method": 3, "epsilon": 1}, "method must be one of .* got 3"),
        ({"question": ["fit"], "method": "mmd", "epsilon": 1}, "question must be one of"),
        ({"question": "two-sample", "method": "mmd"}, "epsilon"),
        ({"question": "two-sample", "method": "mmd", "epsilon": 0}, "epsilon"),
        ({"question": "two-sample", "method": "mmd", "epsilon": 1, "alpha": 2}, "alpha"),
        ({"question": "two-sample", "method": "mmd", "epsilon": 1, "noise": 0}, "unknown key"),
        ({"question": "two-sample", "method": "ks", "epsilon": 1, "norm": "l1"}, "unknown key"),
        ({"question": "two-sample", "method": "mmd", "epsilon": 1, "columns": "a"}, "list"),
        ([], "table"),
    ],
)
def test_mistakes_are_named(document, fragment):
    with pytest.raises(ParameterError, match=fragment):
        Request.from_dict(document)


def test_an_option_of_another_method_is_refused():
    with pytest.raises(ParameterError, match="norm does not go with method ks"):
        Request("two-sample", "ks", Budget(1), options={"norm": "l1"})
    with pytest.raises(ParameterError, match="before does not go"):
        Request("two-sample", "ks", Budget(1), parts={"before": "a"})


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (asked(group="plan", columns=["visits"]), ["visits", "plan"]),
        (asked(method="ks", group="region", columns=["age"]), ["age", "region"]),
        (asked("independence", "hsic", x=["age"], y=["visits"]), ["age", "visits"]),
        (asked("paired", "wilcoxon", before="visits", after="age"), ["visits", "age"]),
        (asked("fit", "distribution", column="age", dist="uniform(0, 100)"), ["age"]),
        (asked("fit", "family", column="age", family="norm"), ["age"]),
    ],
)
def test_a_prepared_request_runs_on_what_it_asked_to_read(request_, names):
    prepared = prepare(request_, SCHEMA)
    assert list(prepared.names) == names
    result = prepared.run(TABLE.select(names), noise=SimulatedNoise(0))
    assert result.simulated
    assert result.spent == Budget(1)
    assert result.to_dict()["alpha"] == 0.05


def test_private_groups_hide_their_sizes():
    private = prepare(asked(group="plan", columns=["visits"]), SCHEMA)
    public = prepare(asked(group="region", columns=["visits"]), SCHEMA)
    assert private.arguments["adjacency"] == "row"
    assert public.arguments["adjacency"] == "one"
    with pytest.raises(PrivacyError, match="group sizes would leak"):
        prepare(asked(group="plan", columns=["visits"], adjacency="one"), SCHEMA)


@pytest.mark.parametrize("method", ["kruskal", "median", "tot", "sarrm"])
def test_methods_that_need_sizes_say_why(method):
    with pytest.raises(ParameterError, match="needs public membership: it"):
        prepare(asked(method=method, group="plan", columns=["visits"]), SCHEMA)


@pytest.mark.parametrize(
    ("request_", "fragment"),
    [
        (asked(), "group must be given"),
        (asked(group="plan", columns=["height"]), "height"),
        (asked(group="visits"), "categorical"),
        (asked("independence", "hsic", x=["age"], y=["age"]), "share"),
        (asked("independence", "hsic", x=["age"]), "x and y"),
        (asked("paired", "ks", before="age"), "two columns"),
        (asked("fit", "distribution", column="age"), "dist must be given"),
        (asked("fit", "distribution", column="age", dist="nonsense(1)"), "nonsense"),
        (asked("fit", "family", column="age", family="norm", statistic="cvm"), "statistic"),
        (asked("fit", "family", column="age", dist="norm(0, 1)"), "method"),
        (asked("fit", "shares", column="age", shares="equal"), "takes one categorical column:"),
        (asked("fit", "shares", column="plan", shares="basic"), 'shares must be "equal"'),
        (asked("fit", "shares", column="plan", shares="basic=1"), "shares must have a share"),
        (asked("fit", "shares", column="plan", shares="equal", dist="norm(0, 1)"), "Only one"),
        (asked("independence", "chi2", x=["age"], y=["plan"]), "column on each side"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_before_data(request_, fragment):
    with pytest.raises(ParameterError, match=fragment):
        prepare(request_, SCHEMA)


@pytest.mark.parametrize(
    ("method", "more", "expected"),
    [
        ("me", {"delta": "1e-6", "locations": 3}, True),
        ("me", {"delta": "1e-6", "locations": 3, "release": "moments"}, True),
        ("me", {"delta": "1e-6", "locations": 3, "release": "statistic"}, False),
        ("me", {"locations": 3}, False),
        ("hotelling", {"delta": "1e-6"}, True),
        ("hotelling", {}, False),
        ("mmd", {"delta": "1e-6"}, False),
    ],
)
def test_only_gaussian_mechanisms_are_charged_as_such(method, more, expected):
    """Laplace noise that were charged as Gaussian would cost too little under zCDP."""
    assert asked(method=method, group="region", **more).gaussian is expected


@pytest.mark.parametrize("method", ["ks", "kuiper", "mann-whitney", "kruskal", "median", "ttest"])
@pytest.mark.parametrize("columns", [["visits", "age"], ["plan"]])
def test_methods_of_one_column_say_so_before_anything_is_spent(method, columns):
    with pytest.raises(ParameterError, match="one numeric column"):
        prepare(asked(method=method, group="region", columns=columns), SCHEMA)


# --- the catalogue is the only place that knows a method -----------------------------------------

SOURCE = Path(privatest.__file__).parent


PUBLIC: dict[str, Any] = {"group": "region", "columns": ["visits"]}
NAMED = [
    (asked("mean", "moments", alpha=1e-300, columns=["visits"]), "alpha must be at least 0.001"),
    (asked(method="tot", permutations=2, **PUBLIC), "permutations must be"),
    (asked(method="tot", subtest="nothing", **PUBLIC), "subtest must be"),
    (asked(method="tot", subtest="hsic", **PUBLIC), "subtest 'hsic' is for the question indep"),
    (asked(computation="x", **PUBLIC), "computation must be one of 'auto'"),
    (asked(statistics=["mean"], bandwidths=[1], **PUBLIC), "bandwidths needs statistics with"),
    (asked(method="scf", locations="x", delta="1e-6", **PUBLIC), "locations must be"),
    (asked("independence", "hsic", x=["visits"], y=["age"], kernel="x"), "kernel must be"),
    (asked("fit", "distribution", column="visits", dist="norm(0"), "dist must be a distribution"),
    (asked("fit", "distribution", column="visits", dist="norma"), "dist must name"),
]


@pytest.mark.parametrize(("request_", "start"), NAMED, ids=[start for _, start in NAMED])
def test_a_refusal_names_what_was_asked(request_, start):
    with pytest.raises(ParameterError) as refused:
        rehearse(prepare(request_, SCHEMA), [40] if request_.question != "two-sample" else [20, 20])
    assert str(refused.value).startswith(start)
    assert len(str(refused.value)) < 600


SIDES: dict[str, Any] = {
    "question": "independence",
    "method": "hsic",
    "x": ["visits"],
    "y": ["age"],
}


@pytest.mark.parametrize(
    ("document", "start"),
    [
        (PUBLIC | {"statistics": ["median"]}, "statistics must be one of 'kernel'"),
        (PUBLIC | {"statistics": 3}, "statistics must be one or more of kernel"),
        (PUBLIC | {"statistics": []}, "statistics must be one or more of kernel"),
        (PUBLIC | {"statistics": ["pairwise"]}, "statistics='pairwise' needs two columns"),
        (PUBLIC | {"columns": ["plan"], "statistics": ["mean"]}, "statistics='mean' needs a"),
        (SIDES | {"statistics": ["pairwise"]}, "statistics must be one of 'kernel'"),
        (SIDES | {"statistics": {"mean": 1}}, "statistics must be one or more of kernel"),
        (SIDES | {"statistics": ["mean"], "bandwidths": [1]}, "bandwidths needs statistics with"),
        (PUBLIC | {"statistics": ["mean"], "bandwidths": [1]}, "bandwidths needs statistics with"),
    ],
)
def test_members_of_a_family_are_checked_against_the_schema(document, start):
    with pytest.raises(ParameterError) as refused:
        prepare(asked(**document), SCHEMA)
    assert str(refused.value).startswith(start)


@pytest.mark.parametrize("document", [PUBLIC | {"columns": ["visits", "plan", "age"]}, SIDES])
def test_members_of_a_family_reach_the_test(document):
    prepared = prepare(asked(**document, statistics=["mean", "kernel"], permutations=9), SCHEMA)
    document = prepared.run(TABLE).to_dict()
    assert list(document["parameters"]["statistics"]) == ["kernel", "mean"]


def test_only_the_catalogue_names_methods():
    """Words that mean something else too are left out: questions, parts, what is released."""
    entries = [entry for methods in METHODS.values() for entry in methods.values()]
    other = {*METHODS, *(part for parts in PARTS.values() for part in parts)}
    other |= {word for entry in entries for word in entry.releases}
    other |= {"auto"}  # of other options too
    names = {name for methods in METHODS.values() for name in methods} - other
    assert len(names) > 20
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.value}"
        for folder in ("cli", "curator", "requests")
        for path in sorted((SOURCE / folder).glob("*.py"))
        if path.name != "catalogue.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert found == []


def test_a_part_chooses_the_method():
    by_dist = {"question": "fit", "column": "age", "dist": "norm(0, 1)", "epsilon": 1}
    assert Request.from_dict(by_dist).method == "distribution"
    by_family = {"question": "fit", "column": "age", "family": "norm", "epsilon": 1}
    assert Request.from_dict(by_family).method == "family"
    with pytest.raises(ParameterError, match="method must be given"):
        Request.from_dict(by_dist | by_family)
    with pytest.raises(ParameterError, match="method family needs family"):
        prepare(Request.from_dict(by_dist | {"method": "family"}), SCHEMA)
