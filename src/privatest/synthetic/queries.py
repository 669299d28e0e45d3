"""Questions about a release in words: conditions as text, and what front ends ask.

A condition such as "visits > 10 and idp == 1" is parsed into a tree of which only the nodes listed
here are accepted; nothing is ever executed. Answers are post-processing: nothing is spent.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import operator
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import listed, one_of
from privatest.data.schema import spelling
from privatest.synthetic.answers import Columns, Estimate, Function, row_count

if TYPE_CHECKING:
    from privatest.synthetic.data import SyntheticData

Expression = str | Function
"""A column or a condition, as text, or a function of the columns."""

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
    jumps: dict[str, list[float]] = {}
    for node in ast.walk(ast.parse(condition.strip(), mode="eval")):
        if not isinstance(node, ast.Compare):
            continue
        inside = list(ast.walk(node))
        names = [part.id for part in inside if isinstance(part, ast.Name)]
        constants = [part.value for part in inside if isinstance(part, ast.Constant)]
        numbers = [float(each) for each in constants if isinstance(each, (int, float))]
        names += [each for each in constants if isinstance(each, str)]  # column("my visits")
        for name in names:
            if name in columns and numbers:
                jumps.setdefault(name, []).extend(numbers)
    return jumps


def known_jumps(expression: object, columns: Columns) -> dict[str, list[float]] | None:
    """Return the only numbers at which an expression may jump, by column; None if not known.

    They are not known of a function, of arithmetic, and of a comparison of two columns.

    Examples
    --------
    >>> columns = {"x": np.arange(2), "y": np.arange(2)}
    >>> known_jumps("x > 3 and y == 1", columns)
    {'x': [3.0], 'y': [1.0]}
    >>> known_jumps("x - y == 0", columns) is known_jumps("x == y", columns) is None
    True
    """
    if not isinstance(expression, str):
        return None
    if expression in columns:
        return {}
    for node in ast.walk(ast.parse(expression.strip(), mode="eval")):
        if isinstance(node, ast.BinOp):
            return None
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):  # noqa: SIM102
            if not isinstance(node.operand, ast.Constant):
                return None
        # column("a name") has one name as well: its own
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        if isinstance(node, ast.Compare) and len(names) > 1:
            return None
    return compared_numbers(expression, columns)


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
        equal = [_compared(left, ast.Eq(), item, columns) for item in right.elts]
        among = np.logical_or.reduce(np.broadcast_arrays(*equal))
        return among if isinstance(link, ast.In) else np.logical_not(among)
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
    """Return how values are spelled, each different one computed once."""
    flat = values.ravel().tolist()
    if len({*map(type, flat)}) > 1:  # 1, 1.0 and True are one key
        return np.array([spelling(value) for value in flat], dtype=object).reshape(values.shape)
    known = {value: spelling(value) for value in {*flat}}
    spelled = np.empty(len(flat), dtype=object)
    spelled[:] = [known[value] for value in flat]
    return spelled.reshape(values.shape)


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


# --- queries of front ends ----------------------------------------------------------------------

FORMS = {
    "mean": "COLUMN",
    "probability": "CONDITION",
    "quantile": "COLUMN Q",
    "correlation": "COLUMN COLUMN",
    "regression": "TARGET PREDICTOR...",
}
"""The questions that a release answers alone, and the words that each takes."""

WEIGHTS = ("released", "nonnegative")
_SHARES = ("probability", "quantile")  # signed weights serve these badly
_GROUPED = ("mean", "probability")
_PHRASES = {
    "mean": "mean of {0}",
    "probability": "probability of {0}",
    "quantile": "{1} quantile of {0}",
    "correlation": "correlation of {0} and {1}",
    "regression": "regression of {0}",
    "compare": "distance to {0}",
}


@dataclass(frozen=True, slots=True)
class Query:
    """A question in words."""

    question: str
    words: tuple[str, ...]
    where: str | None = None
    by: str | None = None

    @property
    def name(self) -> str:
        """The question as a phrase."""
        text = _PHRASES[self.question].format(*self.words)
        if self.where is not None:
            text += f" where {self.where}"
        return text if self.by is None else f"{text}, by {self.by}"

    @classmethod
    def parse(
        cls, question: object, words: Sequence[str], where: str | None, by: str | None
    ) -> Query:
        """Refuse an unknown question, and too few or too many words."""
        known = one_of("question", question, FORMS)
        expected = len(FORMS[known].split())
        more = known == "regression" and len(words) > expected
        if len(words) != expected and not more:
            raise ParameterError(f"words of {known} must be {FORMS[known].rstrip('.')}.")
        if known == "quantile":
            _quantile_level(words[1])
        return cls(known, tuple(words), where, by)

    def check(self, release: SyntheticData) -> None:
        """Refuse what a release cannot answer before anything is computed."""
        words, columns = self.words, release.columns
        if self.question == "probability":
            selected(words[0], columns)
        else:
            numbers = 2 if self.question == "correlation" else 1
            for name in words[:numbers]:
                number_column(name, columns)
        if self.question == "regression":
            for name in words[1:]:
                column_values(name, columns)
        if self.where is not None:
            selected(self.where, columns)
        if self.by is not None:
            release.groups(self.by)


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """Estimates by their names (empty for a single one), and what they were made from."""

    estimates: Mapping[str, Estimate]
    source: str


def check_options(
    question: str,
    where: str | None,
    by: str | None,
    weights: str | None,
    *,
    conditional: bool = True,
    weighted: bool = True,
) -> None:
    """Refuse options that do not go with the question.

    Parameters
    ----------
    question, where, by, weights
        The question and its options.
    conditional, weighted : bool
        Whether the question takes ``where``, and ``weights``.
    """
    if weights is not None and (not weighted or where or by):
        other = "where and by" if weighted else question
        raise ParameterError("weights", f"does not go with {other}")
    if where is not None and not conditional:
        raise ParameterError("where", f"does not go with {question}")
    if by is not None and question not in _GROUPED:
        raise ParameterError("by", f"is for {' and '.join(_GROUPED)} only")


def answer_query(
    release: SyntheticData,
    query: Query,
    weights: str | None = None,
    *,
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> QueryAnswer:
    """Return the estimates, and what they were made from.

    Parameters
    ----------
    release : SyntheticData
        The release.
    query : Query
        The question, checked.
    weights : {"released", "nonnegative"}, optional
        Which weights answer; by default those that serve the question.
    working : callable
        Shows a message while something takes long.
    """
    measured = release.source is not None
    if measured or query.where is not None or query.by is not None:
        return QueryAnswer(_estimates(release, query), "measured" if measured else "released")
    chosen = weights or ("nonnegative" if query.question in _SHARES else "released")
    if chosen == "nonnegative":
        with working("Looking for weights that are not negative ..."):
            fitted = release.nonnegative()
        return QueryAnswer(_estimates(fitted, query), "released" if fitted is release else chosen)
    try:
        return QueryAnswer(_estimates(release, query), chosen)
    except DataError:  # the weights nearly cancel; the message speaks of functions
        if weights is not None:
            raise DataError(
                "the weights nearly cancel: there is more noise than signal. Nonnegative weights "
                "can answer.",
                remedy={"weights": "nonnegative"},
            ) from None
    return answer_query(release, query, "nonnegative", working=working)


def describe_answer(query: Query, answer: QueryAnswer, release: SyntheticData) -> dict[str, Any]:
    """Return an answer as plain values, with the facts of the release."""
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    document: dict[str, Any] = {"question": query.question, "words": list(query.words)}
    if list(answer.estimates) == [""]:
        document |= answer.estimates[""].to_dict()
    else:
        document["estimates"] = [
            {"name": name, **estimate.to_dict()} for name, estimate in answer.estimates.items()
        ]
    document |= {"where": query.where, "by": query.by, "weights": answer.source}
    return document | {"release": summary(release)}


def _estimates(release: SyntheticData, query: Query) -> dict[str, Estimate]:
    """Return one estimate (without a name), or one for each group or predictor."""
    (first, *more), where = query.words, query.where
    if query.by is not None:
        return release.by(query.by, first, where=where)
    match query.question:
        case "regression":
            return release.regression(first, more, where=where)
        case "mean":
            estimate = release.mean(first, where=where)
        case "probability":
            estimate = release.probability(first, where=where)
        case "quantile":
            estimate = release.quantile(first, _quantile_level(more[0]), where=where)
        case _:
            estimate = release.correlation(first, more[0], where=where)
    return {"": estimate}


def _quantile_level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not 0 <= level <= 1:  # also NaN
        hint = f": {level / 100:g} is the {level:g}% quantile" if 1 < level <= 100 else ""
        raise ParameterError(f"Q must be a number between 0 and 1{hint}.")
    return level
