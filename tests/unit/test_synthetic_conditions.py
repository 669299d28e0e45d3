"""Conditions as text: what they mean, and that nothing else is understood."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.synthetic.queries import number_column, selected

COLUMNS = {
    "visits": np.array([0, 5, 12, 40]),
    "idp": np.array([0, 1, 1, 0]),
    "plan": np.array(["basic", "plus", "basic", "pro"], dtype=object),
    "my visits": np.array([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("visits > 10", [0, 0, 1, 1]),
        ("visits > 10 and idp == 1", [0, 0, 1, 0]),
        ("visits < 5 or visits >= 40", [1, 0, 0, 1]),
        ("not idp == 1", [1, 0, 0, 1]),
        ("0 < visits <= 12", [0, 1, 1, 0]),
        ("plan == 'basic'", [1, 0, 1, 0]),
        ("plan != 'basic' and not (visits > 10)", [0, 1, 0, 0]),
        ("plan in ('plus', 'pro')", [0, 1, 0, 1]),
        ("plan not in ['plus', 'pro']", [1, 0, 1, 0]),
        ("idp == '1'", [0, 1, 1, 0]),
        ("idp in (1, 7)", [0, 1, 1, 0]),
        ("visits - 2 * idp > 2 + 0.5", [0, 1, 1, 1]),
        ("visits / 4 > -1", [1, 1, 1, 1]),
        ('column("my visits") > 2', [0, 0, 1, 1]),
        ("1 < 2", [1, 1, 1, 1]),
        ("  visits > 10 ", [0, 0, 1, 1]),
    ],
)
def test_meaning(condition, expected):
    assert selected(condition, COLUMNS).astype(int).tolist() == expected


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "visits",
        "visits >",
        "visits = 10",
        "__import__('os').system('true') == 0",
        "visits.real > 1",
        "visits[0] > 1",
        "(lambda: 1)() > 0",
        "[v for v in visits] == 1",
        "open('file') == 1",
        "visits ** 99999999 > 1",
        "visits is 1",
        "visits > 1 if True else visits < 1",
        "visits in plan",
        "visits in ()",
        "plan > 'a'",
        "plan + 1 > 2",
        "-plan == 1",
        "visits > 1; visits < 3",
        "(x := 3) > 1",
        "f'{visits}' == '1'",
        "column('visits', 2) > 1",
        "visits > 1j",
        "not visits",
        "visits and idp",
        "(" * 300 + "visits" + ")" * 300 + " > 1",
        "visits > " + "1" * 2000,
        7,
        None,
    ],
)
def test_everything_else_is_refused(condition):
    with pytest.raises(ParameterError, match=r"the condition|not a condition|region must be"):
        selected(condition, COLUMNS)


@pytest.mark.parametrize("name", ["age group", "class", "größe m", 'a "b"', "it's"])
def test_a_suggested_condition_can_be_asked(name):
    columns = {name: np.array(["A", "B"])}
    with pytest.raises(ParameterError) as refused:
        number_column(name, columns)
    (condition,) = shlex.split(str(refused.value).partition("such as ")[2].removesuffix("."))
    assert selected(condition, columns).tolist() == [True, False]
    with pytest.raises(ParameterError, match=r"not a condition; write the name as column\("):
        selected(f"{name} == 'A'", columns)


def test_an_unknown_column_is_named_with_those_there_are():
    with pytest.raises(ParameterError, match="no column 'visit'; the columns are: visits, idp"):
        selected("visit > 10", COLUMNS)
    with pytest.raises(ParameterError, match="no column 'x'"):
        selected("column('x') > 10", COLUMNS)
