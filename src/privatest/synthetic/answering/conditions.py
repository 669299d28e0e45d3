"""Conditions on columns, as text: "visits > 10 and idp == 1". Nothing is ever executed.

The text is parsed into a tree; only the nodes listed here are accepted.
"""

from __future__ import annotations

import ast
import json
import keyword
import operator
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import listed
from privatest.data.categories import spelling

__all__ = [
    "column_values",
    "compared_numbers",
    "known_jumps",
    "number_column",
    "row_count",
    "selected",
]

_LONGEST = 1000
_EXAMPLE = "for example \"visits > 10 and plan == 'basic'\""
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Columns = Mapping[str, NDArray[Any]]


def selected(condition: object, columns: Columns) -> NDArray[np.bool_]:
    """Return which rows satisfy a condition.

    Columns, numbers and strings are compared with < <= > >= == != and ``in (…)``; comparisons
    are combined with and, or, not and parentheses; numbers may be added, subtracted, multiplied
    and divided. A name that is not a Python identifier is written in quotes after ``column``:
    column("my visits") > 3.

    Examples
    --------
    >>> import numpy as np
    >>> selected("1 < x <= 3 and not y == 'b'", {"x": np.array([1, 2, 3]), "y": np.array([*"abc"])})
    array([False, False,  True])
    """
    if not isinstance(condition, str):
        raise ParameterError(f"region must be a short condition, {_EXAMPLE}, or a function.")
    if len(condition) > _LONGEST:
        raise ParameterError(f"the condition must have at most {_LONGEST:,} characters.")
    try:
        tree = ast.parse(condition.strip(), mode="eval").body
        with np.errstate(all="ignore"):
            chosen = _truth(tree, columns)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ParameterError):
            raise
        odd = next((n for n in columns if not _is_word(n) and n in condition), None)
        hint = "" if odd is None else f"; write the name as {_spelled(odd)}"
        raise ParameterError(f"this is not a condition{hint}; write {_EXAMPLE}.") from None
    length = row_count(columns)
    return np.broadcast_to(np.asarray(chosen, dtype=np.bool_), (length,))


def compared_numbers(condition: object, columns: Columns) -> dict[str, list[float]]:
    """Return the numbers of a condition, by the columns that they are compared with.

    The condition may jump there, and nowhere else if it does no arithmetic.

    Examples
    --------
    >>> compared_numbers("1 < x <= 3 and y == 'b'", {"x": np.arange(2), "y": np.arange(2)})
    {'x': [1.0, 3.0]}
    """
    if not isinstance(condition, str):
        return {}
    found: dict[str, list[float]] = {}
    for node in ast.walk(ast.parse(condition.strip(), mode="eval")):
        if not isinstance(node, ast.Compare):
            continue
        inside = list(ast.walk(node))
        words = [part.id for part in inside if isinstance(part, ast.Name)]
        constants = [part.value for part in inside if isinstance(part, ast.Constant)]
        numbers = [float(each) for each in constants if isinstance(each, (int, float))]
        words += [each for each in constants if isinstance(each, str)]  # column("my visits")
        for name in words:
            if name in columns and numbers:
                found.setdefault(name, []).extend(numbers)
    return found


def known_jumps(words: object, columns: Columns) -> dict[str, list[float]] | None:
    """Return the only numbers at which a column or a condition may jump; None if that is not known.

    It is not for a function, for arithmetic, and for two columns in one comparison.

    Examples
    --------
    >>> columns = {"x": np.arange(2), "y": np.arange(2)}
    >>> known_jumps("x > 3 and y == 1", columns)
    {'x': [3.0], 'y': [1.0]}
    >>> known_jumps("x - y == 0", columns) is known_jumps("x == y", columns) is None
    True
    """
    if not isinstance(words, str):
        return None
    if words in columns:
        return {}
    for node in ast.walk(ast.parse(words.strip(), mode="eval")):
        if isinstance(node, ast.BinOp):
            return None
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):  # noqa: SIM102
            if not isinstance(node.operand, ast.Constant):
                return None
        # column("a name") has one name as well: its own
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        if isinstance(node, ast.Compare) and len(names) > 1:
            return None
    return compared_numbers(words, columns)


def row_count(columns: Columns) -> int:
    """Return how many rows there are, which uses no column."""
    count = getattr(columns, "rows", None)
    return len(next(iter(columns.values()))) if count is None else int(count)


def column_values(name: object, columns: Columns) -> NDArray[Any]:
    """Return a column, or raise an error that lists them."""
    if not isinstance(name, str) or name not in columns:
        raise ParameterError(
            f"there is no column {str(name)[:60]!r}; the columns are: {listed(columns)}."
        )
    return columns[name]


def number_column(name: object, columns: Columns) -> NDArray[Any]:
    """Return a numeric column, or raise an error that says how to query categories."""
    values = column_values(name, columns)
    if values.dtype.kind not in "biuf":
        # in quotes that a shell and Python take
        example = (
            f"\"{name} == 'A'\"" if _is_word(name) else shlex.quote(f'{_spelled(name)} == "A"')
        )
        raise ParameterError(
            f"column {name!r} holds categories: ask for the probability of one, such as {example}."
        )
    return values


def _is_word(name: object) -> bool:
    """Return whether a condition can name a column as it is."""
    return str(name).isidentifier() and not keyword.iskeyword(str(name))


def _spelled(name: object) -> str:
    return f"column({json.dumps(name, ensure_ascii=False)})"


def _truth(node: ast.expr, columns: Columns) -> Any:
    """Evaluate a Boolean expression."""
    if isinstance(node, ast.BoolOp):
        parts = [_truth(part, columns) for part in node.values]
        function = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return function.reduce(np.broadcast_arrays(*parts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return np.logical_not(_truth(node.operand, columns))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        links = [
            _compared(left, link, right, columns)
            for left, link, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return np.logical_and.reduce(np.broadcast_arrays(*links))
    raise _unknown(node)


def _compared(left: ast.expr, link: ast.cmpop, right: ast.expr, columns: Columns) -> Any:
    if isinstance(link, (ast.In, ast.NotIn)):
        if not isinstance(right, (ast.Tuple, ast.List)) or not right.elts:
            raise _unknown(right)
        found = [_compared(left, ast.Eq(), item, columns) for item in right.elts]
        any_found = np.logical_or.reduce(np.broadcast_arrays(*found))
        return any_found if isinstance(link, ast.In) else np.logical_not(any_found)
    if type(link) not in _COMPARISONS:
        raise ParameterError("the condition may compare only with <, <=, >, >=, ==, != and in.")
    values = [np.asarray(_value(side, columns)) for side in (left, right)]
    kinds = {value.dtype.kind in "biuf" for value in values}
    if kinds == {True}:
        return _COMPARISONS[type(link)](*values)
    if isinstance(link, (ast.Eq, ast.NotEq)):  # categories: 1 and "1" are the same
        return _COMPARISONS[type(link)](*map(_spellings, values))
    raise ParameterError("the condition may compare strings only with ==, != and in.")


def _spellings(values: NDArray[Any]) -> NDArray[np.object_]:
    """Return how values are spelled; each that occurs is looked at once."""
    flat = values.ravel().tolist()
    if len({*map(type, flat)}) > 1:  # 1, 1.0 and True are one key
        return np.array([spelling(value) for value in flat], dtype=object).reshape(values.shape)
    known = {value: spelling(value) for value in {*flat}}
    found = np.empty(len(flat), dtype=object)
    found[:] = [known[value] for value in flat]
    return found.reshape(values.shape)


def _value(node: ast.expr, columns: Columns) -> Any:
    """Evaluate a column, a constant or arithmetic on numbers."""
    if isinstance(node, ast.Name):
        return column_values(node.id, columns)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        if isinstance(node.value, int) and abs(node.value) > 1 << 53:
            return _float(node.value)
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, columns)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        sides = (_number(side, columns) for side in (node.left, node.right))
        return _ARITHMETIC[type(node.op)](*sides)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "column"
        and len(node.args) == 1
        and not node.keywords
        and isinstance(node.args[0], ast.Constant)
    ):
        return column_values(str(node.args[0].value), columns)
    raise _unknown(node)


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ParameterError("the condition has a number that is too large.") from None


def _number(node: ast.expr, columns: Columns) -> NDArray[np.float64]:
    value = np.asarray(_value(node, columns))
    if value.dtype.kind not in "biuf":
        raise ParameterError("the condition may do arithmetic only with numbers.")
    return value.astype(np.float64)


def _unknown(node: ast.expr) -> ParameterError:
    kind = type(node).__name__
    return ParameterError(
        f"the condition has a part that is not understood ({kind}); write {_EXAMPLE}."
    )
