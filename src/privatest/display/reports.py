"""Reports: one page of HTML for a result, a function of its JSON document and public words.

Text is escaped unless :func:`tag` made it. A page needs nothing else: no script, no other file.
"""

from __future__ import annotations

import base64
import html
import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from privatest.core.documents import JSON_FORMAT, write_text
from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome
from privatest.core.validation import of_type, reject
from privatest.data.schema import NumericColumn, Schema
from privatest.display.citations import REFERENCES, shorts
from privatest.display.plots import draw, plot_pvalues
from privatest.display.release_plots import plot_marginals, plot_pairs
from privatest.display.style import MISSING, plain_text, svg, themed
from privatest.planning.plans import Choice, Plan, Recommendation
from privatest.planning.recommendation import sampler_of
from privatest.planning.studies import price_of_privacy, sample_size
from privatest.requests.catalogue import METHODS, default_method, described
from privatest.requests.results import ColumnResults, result_document, result_from_dict
from privatest.synthetic import SyntheticData
from privatest.synthetic.table_means import TableMeans

_EMPTY = {"img", "meta", "source"}


class Markup(str):
    """Text that is HTML already, and is not escaped."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str) -> Markup:
    """Return an element; children that are not markup, and all attributes, are escaped.

    An underscore in an attribute becomes a hyphen; one at its end vanishes (``class_``).
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    inside = "".join(c if isinstance(c, Markup) else html.escape(c) for c in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def section(identity: str, title: str, *children: str) -> Markup:
    """Return a part of the page with its heading."""
    heading = tag("h2", title, id=identity)
    return tag("section", heading, *children, aria_labelledby=identity)


def table(caption: str, rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> Markup:
    """Return a table; the first cell of each row is its heading."""
    top = (
        [tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head)))] if head else []
    )
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    inside = tag("table", tag("caption", caption), *top, tag("tbody", *body))
    # wide tables scroll by themselves; a keyboard can reach them
    return tag("div", inside, class_="wide", tabindex="0", role="region", aria_label=caption)


def code(text: str, name: str) -> Markup:
    """Return lines to be copied."""
    return tag("pre", tag("code", text), tabindex="0", role="region", aria_label=name)


def paragraph(text: str, keys: Iterable[str]) -> list[Markup]:
    """Return a paragraph for a paper, and the references that it cites."""
    references = (tag("li", each) for each in sorted(REFERENCES[key].full for key in keys))
    return [tag("p", text), tag("p", "References", class_="soft"), tag("ol", *references)]


def code_blocks(command: str, program: str) -> list[Markup]:
    """Return the command and the Python code that reproduce a result; "" where there is none."""
    parts = []
    if command:
        parts += [tag("h3", "On the command line"), code(command, "Command")]
    if program:
        parts += [tag("h3", "In Python"), code(program, "Python")]
    return parts


def page(title: str, *children: str) -> str:
    """Return a whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # a file that is opened from a disk has no HTTP header for this
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Markup(f"<style>{_STYLE}</style>"),
    )
    body = tag("body", tag("main", *children))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root{--ink:#1c2024;--soft:#565c63;--paper:#fff;--line:#d6d9dd;--quiet:#f3f5f7;--mark:#0062a0}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e8eaed;--soft:#aab0b7;--paper:#15181c;--line:#3a4048;--quiet:#1e2328;--mark:#7cc4f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.5rem 0;overflow-wrap:anywhere}
.soft{color:var(--soft)}
.answer{font-size:1.2rem;border-left:4px solid var(--mark);
padding:.2rem 0 .2rem .8rem;margin:1rem 0}
.warning{border:2px solid #D55E00;padding:.5rem .8rem;font-weight:bold}
.formula{text-align:center;font-size:1.1rem;font-family:Georgia,serif;margin:1rem 0}
table{border-collapse:collapse;width:100%}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;
border-bottom:1px solid var(--line)}
th[scope=row]{font-weight:500;color:var(--soft);max-width:14rem;overflow-wrap:anywhere}
td{font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:.8rem 0}
pre{background:var(--quiet);border:1px solid var(--line);border-radius:4px;padding:.7rem;
white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem/1.45 ui-monospace,monospace}
figure{margin:1rem 0}
img{width:100%;height:auto;max-height:27rem;object-fit:contain;object-position:left;display:block}
figcaption{color:var(--soft);font-size:.9rem}
a{color:var(--mark)}
ol{padding-left:1.4rem;overflow-wrap:anywhere}
details summary{cursor:pointer}
@media print{
@page{margin:18mm}
main{max-width:none;padding:0}
body{font-size:11pt}
h2,h3,caption{break-after:avoid}
figure,tr,.answer,.formula{break-inside:avoid}
.wide{overflow:visible}
details{display:none}
}
"""


def picture(draw: Callable[[], Any], words: str, caption: str = "") -> Markup:
    """Return a figure for light and one for dark screens, or the reason why there is none.

    ``words`` describe the figure to a screen reader; they are the caption too if there is none.
    """

    def encoded(theme: str) -> str:
        with themed(theme), plain_text():
            return f"data:image/svg+xml;base64,{base64.b64encode(svg(draw())).decode()}"

    try:
        light, dark = encoded("light"), encoded("dark")
    except ModuleNotFoundError:
        return tag("p", MISSING, class_="soft")
    except ParameterError as error:
        return tag("p", str(error), class_="soft")
    # a printed page is light, whatever the screen is
    source = tag("source", media="screen and (prefers-color-scheme: dark)", srcset=dark)
    image = tag("picture", source, tag("img", alt=words, src=light))
    return tag("figure", image, tag("figcaption", caption or words))


QUESTIONS = {
    "two-sample": "Do the groups differ?",
    "independence": "Are the columns related?",
    "paired": "Do the pairs differ?",
    "fit": "Does the column follow a distribution?",
    "mean": "How large is it on average?",
    "release": "What do the rows look like?",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A JSON document and the result in it; the rows of a release may be in a file of their own."""

    document: Mapping[str, Any]
    result: Any

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Subject:
        """Read a document of a test, an estimate or a release."""
        try:
            cost = document.get("request") or document
            spent = Budget(cost["epsilon"], cost.get("delta", 0))
            result = result_from_dict(document, spent)
            if result is None and "rows" in document:
                file = document.get("file")
                if not isinstance(file, str) or not Path(file).is_file():
                    raise ParameterError(
                        "the file of this release was not found; the report draws its rows."
                    )
                result = SyntheticData.load(file)
        except PrivatestError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            result = None
        if result is None:
            raise ParameterError(
                "There is nothing to report: the document must be that of a result, as commands "
                "print it with --json."
            )
        return cls(document, result)

    @property
    def request(self) -> Mapping[str, Any]:
        """The request; empty where a function was called."""
        return self.document.get("request") or {}

    @property
    def one(self) -> Any:
        """The result, or the first one of tests of each column."""
        if isinstance(self.result, ColumnResults):
            return next(iter(self.result.columns.values()))
        return self.result

    @property
    def question(self) -> str:
        """The question as people ask it."""
        if "shares" in self.document:
            return "Do the owners' data differ?"
        question = str(self.request.get("question", ""))
        if not question and isinstance(self.result, SyntheticData):
            question = "release"
        if not question and not isinstance(self.one, Decision):
            question = "mean"
        return str(self.document.get("title") or QUESTIONS.get(question, "What is the result?"))

    @property
    def method_id(self) -> str:
        """The function that made the result, and which of its methods."""
        one = self.one
        if isinstance(one, SyntheticData):
            return f"release/{self.request.get('method') or one.facts.method.partition(' ')[0]}"
        return str(one.method_id)

    @property
    def method(self) -> str:
        """The method in words."""
        one = self.one
        if isinstance(one, SyntheticData):
            return str(one.facts.method)
        return one.method if isinstance(one, Decision) else one.method_id.replace("_", " ")

    @property
    def sizes(self) -> dict[str, int]:
        """Public sizes."""
        one = self.one
        if isinstance(one, SyntheticData):
            return {"n": one.facts.n}
        return dict(one.sizes) if isinstance(one, Decision) else {"n": one.n}

    @property
    def unit(self) -> str:
        """What the guarantee hides."""
        one = self.one
        return str(one.facts.unit if isinstance(one, SyntheticData) else one.unit)

    @property
    def neighbours(self) -> str:
        """How data sets differ that cannot be told apart."""
        one = self.one
        if isinstance(one, SyntheticData):
            return f"one {one.facts.unit} replaced; the number of rows is public"
        return str(one.neighbours)

    @property
    def schema(self) -> Schema | None:
        """The public description of the columns, if the document has it."""
        text = self.document.get("schema")
        if text is None and isinstance(self.result, SyntheticData):
            return self.result.facts.schema
        return None if text is None else Schema.from_text(str(text))


def software() -> str:
    """Return the name and the version of this program."""
    try:
        return f"privatest {version('privatest')}"
    except PackageNotFoundError:  # it runs from its source
        return "privatest"


_PLACES = {"n": "rows", "m": "rows of the second sample", "N": "rows in all"}


def amount(value: Decimal | float) -> str:
    """Write epsilon or delta as people do."""
    return f"{float(value):.10g}"


def facts(subject: Subject) -> list[tuple[str, str]]:
    """Return public facts of the data."""

    def names(values: Iterable[object]) -> str:
        return ", ".join(map(str, values))

    document, request = subject.document, subject.request
    rows = [
        ("compared", str(document.get("compared", ""))),
        ("files", names(document.get("files", ()))),
        ("shares", names(document.get("shares", ()))),
        ("data set", str(document.get("dataset", ""))),
    ]
    for name, size in subject.sizes.items():
        first = "rows of the first sample" if name == "n" and "m" in subject.sizes else ""
        rows.append((first or _PLACES.get(name, f"rows of {name}"), f"{size:,}"))
    rows += [("columns", names(request.get("columns", ())))]
    rows += [("groups", names(request.get("groups", ())))]
    if request.get("membership"):
        known = "public" if request["membership"] == "public" else "private"
        rows.append(("group membership", known))
    rows.append(("the guarantee hides", f"one {subject.unit}"))
    return [(name, text) for name, text in rows if text]


def reason(subject: Subject) -> list[str]:
    """Return the method and why it was chosen, which never depends on the data."""
    question, method = (str(subject.request.get(key, "")) for key in ("question", "method"))
    sentences = [f"{subject.method[:1].upper()}{subject.method[1:]}."]
    entry = METHODS.get(question, {}).get(method)
    if entry is not None:
        about = f" Scope: {entry.about}." if entry.about else ""
        why = "It is the default of the command." * (default_method(question) == method)
        why = why or f"It was requested by name, {method}, before the data was read."
        sentences.append(f"{why}{about}")
    one = subject.one
    note = one.noise_note if isinstance(one, Decision) else ""
    return [*sentences, note] if note else sentences


def guarantee(subject: Subject) -> list[Markup]:
    """Return the guarantee, in words and as a formula with its numbers."""
    result = subject.result
    if result.simulated:
        return [tag("p", result.guarantee, class_="warning")]
    spent: Budget = result.spent
    epsilon, delta = float(spent.epsilon), float(spent.delta)
    factor = f"{math.exp(min(epsilon, 700)):.3g}"
    fails = f", plus {amount(delta)}" if delta else ""
    words = (
        f"Let D and D′ be two data sets that are neighbours: {subject.neighbours}. For every set "
        "E of possible results"
    )
    meaning = (
        f"Even a reader who knows all other rows can hardly tell which of the two the result came "
        f"from: no result is more than e^{amount(epsilon)} = {factor} times as likely under one "
        f"of them as under the other{fails}. Anything computed from the result, such as this page, "
        "has the same guarantee."
    )
    more = f" + {amount(delta)}" if delta else ""
    formula = tag(
        "p",
        "P(result on D in E) ≤ e",
        tag("sup", amount(epsilon)),
        f" · P(result on D′ in E){more}",
        class_="formula",
    )
    return [tag("p", result.guarantee), tag("p", words), formula, tag("p", meaning)]


def methods_paragraph(subject: Subject) -> list[Markup]:
    """Return a paragraph for a paper, and its references."""
    citation = described(subject.method_id)
    keys = [] if citation is None else [*citation.papers]
    method = "" if citation is None else f"{citation.sentence} ({shorts(citation.papers)})."
    spent: Budget = subject.result.spent
    delta = f" and δ = {amount(spent.delta)}" if spent.delta else ""
    private = (
        "The noise was simulated, so the result is not private."
        if subject.result.simulated
        else f"The result is differentially private ({REFERENCES['dwork2006'].short}) with "
        f"ε = {amount(spent.epsilon)}{delta}; neighbouring data sets differ by "
        f"{subject.neighbours}."
    )
    sentences = [method, _answer_for_a_paper(subject), private, f"We used {software()}."]
    return paragraph(" ".join(filter(None, sentences)), [*keys, "dwork2006"])


def _answer_for_a_paper(subject: Subject) -> str:
    result: Any = subject.result
    if isinstance(result, ColumnResults):
        rejected = [name for name, each in result.columns.items() if each.reject]
        which = f": {', '.join(rejected)}" if rejected else ""
        return (
            f"Each of {len(result.columns)} columns was tested at level {subject.one.alpha:g}, "
            f"with p-values adjusted for their number ({result.adjustment}); the hypothesis was "
            f"rejected for {len(rejected)}{which}."
        )
    if isinstance(result, SyntheticData):
        rows, n = f"{len(result):,}", f"{result.facts.n:,}"
        return f"The release has {rows} synthetic rows for {n} private ones."
    sizes = ", ".join(f"{name} = {size:,}" for name, size in subject.sizes.items())
    if isinstance(result, Decision):
        value = f", p = {result.pvalue:.4g}" if isinstance(result, Outcome) else ""
        if result.parameters.get("adjusted"):
            value += f" (adjusted: {result.parameters['adjusted']})"
        word = "rejected" if result.reject else "not rejected"
        return (
            f"The hypothesis that {result.null_hypothesis} was {word} at level "
            f"{result.alpha:g} ({sizes}{value})."
        )
    estimates = (" ".join(row) for row in result.estimate_table().rows)
    return f"The estimates are {'; '.join(estimates)} ({sizes})."


# The command and the Python code that repeat a request.


SCHEMA_FILE = "schema.toml"
_HEAD = {"question", "dataset", "where"}
_USUAL = {"delta": "0", "alpha": 0.05}
_TWO = 2
_NAMES = {"columns", "x", "y", "given"}


def schema_file(subject: Subject) -> str:
    """Return the description of the columns where the command needs a file; "" if it does not."""
    schema = subject.schema
    return "" if schema is None or _is_bounds(schema) else schema.to_toml()


def command(subject: Subject) -> str:
    """Return the command line of a request; "" where a function was called."""
    request, document = subject.request, subject.document
    if "shares" in document:
        return _joined(["privatest", "compare", *document["shares"]])
    if not request or "dataset" in request:
        return ""
    words = ["privatest", str(request["question"]), *map(str, document.get("files", ()))]
    for name, value in request.items():
        if name not in _HEAD and _USUAL.get(name) != value:
            words += _option(name, value)
    words += _described(subject.schema)
    if document.get("file"):
        words += ["--output", str(document["file"])]
    lines = document.get("ledger")
    if lines == []:
        words.append("--no-ledger")
    return _joined(words)


def _option(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if name == "each_column":
        return [flag, "--adjust", str(value)]
    if name == "groups":
        first, more = [str(each) for each in value[:_TWO]], [str(each) for each in value[_TWO:]]
        return [flag, *first, *(["--more-groups", _named(more)] if more else [])]
    if name in _NAMES:
        return [flag, _named(value)]
    if isinstance(value, Mapping):
        return [flag, ",".join(f"{key}={part}" for key, part in value.items())]
    if isinstance(value, (list, tuple)):
        return [flag, ",".join(map(str, value))]
    return [flag, str(value)]


def _named(names: Any) -> str:
    """Write names with commas between, as the command line reads them."""
    quoted = ['"{}"'.format(name.replace('"', '""')) if "," in name else name for name in names]
    return ",".join(quoted)


def _described(schema: Schema | None) -> list[str]:
    if schema is None:
        return []
    if not _is_bounds(schema):
        return ["--schema", SCHEMA_FILE]
    words = []
    for name, (low, high) in _pairs(schema).items():
        words += ["--bounds", f"{name}={low!r}:{high!r}"]
    rows = schema.rows_per_person
    return words + (["--rows-per-person", str(rows)] if rows > 1 else [])


def _is_bounds(schema: Schema) -> bool:
    """Whether ``--bounds`` says all that the schema does."""
    pairs = _pairs(schema)
    if len(pairs) < len(schema.columns):
        return False
    return schema == Schema.from_bounds(pairs, rows_per_person=schema.rows_per_person)


def _pairs(schema: Schema) -> dict[str, tuple[float, float]]:
    """Return the bounds of the numeric columns."""
    return {
        name: (column.lower, column.upper)
        for name, column in schema.columns.items()
        if isinstance(column, NumericColumn)
    }


def _joined(words: list[str]) -> str:
    """Write a command in lines that fit on paper."""
    lines, current = [], ""
    for word in map(shlex.quote, words):
        starts = word.startswith("--") and len(current) > 50
        if starts:
            lines.append(current)
            current = f"  {word}"
        else:
            current = f"{current} {word}".lstrip(" ") if not lines else f"{current} {word}"
    return " \\\n".join([*lines, current])


_CURATED = """import os

import privatest as pt

client = pt.connect(os.environ["PRIVATEST_URL"], os.environ["PRIVATEST_TOKEN"])
answer = client.run(
    {request}
)
print(answer)
"""
_PROGRAM = """from privatest import Schema
from privatest.data.files import read_table
from privatest.requests.prepare import prepare
from privatest.requests.request import Request

request = Request.from_dict(
    {request}
)
schema = {schema}
prepared = prepare(request, schema, samples={samples})
tables = [read_table(file, prepared.names, text=prepared.text) for file in {files}]
print(prepared.run(*tables))  # nothing is charged: count what it costs
"""
_COMPARED = """import privatest as pt

shares = [pt.Share.load(file) for file in {files}]
print(pt.compare(*shares, alpha={alpha!r}))
"""


def program(subject: Subject) -> str:
    """Return the Python code that asks the same."""
    request, document = dict(subject.request), subject.document
    if "shares" in document:
        return _COMPARED.format(files=document["shares"], alpha=document.get("alpha", 0.05))
    if not request:
        return ""
    lines = [f"        {name!r}: {value!r}," for name, value in request.items()]
    written = "\n".join(["{", *lines, "    }"])
    if "dataset" in request:
        return _CURATED.format(request=written)
    files = [str(file) for file in document.get("files", ())]
    schema = subject.schema
    described = "None"
    if schema is not None:
        described = f"Schema.from_toml({SCHEMA_FILE!r})"
        if _is_bounds(schema):
            rows = schema.rows_per_person
            more = f", rows_per_person={rows}" if rows > 1 else ""
            described = f"Schema.from_bounds({_pairs(schema)}{more})"
    return _PROGRAM.format(request=written, schema=described, samples=len(files), files=files)


# Reports of releases.


_FITTED = (
    "Differences between noisy measured shares and those of the synthetic rows. If the rows fit, "
    "they are about as large as the noise."
)
_TABLE_HEAD = ("table", "cells", "noise of a cell", "typical difference", "largest, in noise")


def release_parts(release: SyntheticData) -> list[Markup]:
    """Return pictures and tables of a release."""
    fitted = release if release.facts.kernel is None else release.nonnegative()
    parts = [
        tag("h3", "Columns"),
        picture(partial(plot_marginals, release), "Shares of each column, with bands of the noise"),
        *_means(release),
    ]
    if len(release.columns) > 1:
        words = "Shares of each pair of columns among the synthetic rows"
        parts += [tag("h3", "Pairs of columns"), picture(partial(plot_pairs, fitted), words)]
    if isinstance(release.source, TableMeans):
        parts += [tag("h3", "Measured against fitted"), tag("p", _FITTED)]
        parts.append(table("Tables that were measured", _fit(release, release.source), _TABLE_HEAD))
    return parts


def _means(release: SyntheticData) -> list[Markup]:
    """Return the means of numbers, with bars or limits."""
    rows = [
        (name, str(release.mean(name)))
        for name, values in release.columns.items()
        if values.dtype.kind in "iuf"
    ]
    return [table("Means", rows)] if rows else []


def _fit(release: SyntheticData, source: TableMeans) -> list[tuple[str, ...]]:
    """Return how far the rows are from every table that was measured."""
    rows: list[tuple[str, ...]] = []
    for each in release.measured:
        if not each.is_table:
            continue
        shares, fitted = each.counts / release.facts.n, source.fitted(each)
        noise = each.sigma / release.facts.n
        away = np.abs(shares - fitted)
        rows.append(
            (
                " × ".join(each.columns),
                " × ".join(map(str, each.counts.shape)),
                f"{100 * noise:.2g}%",
                f"{100 * float(np.sqrt(np.mean(away**2))):.2g}%",
                f"{float(away.max()) / noise:.1f}",
            )
        )
    return rows


# Reports of plans and rankings, which follow from public assumptions alone.


_TITLES = {
    "power": "How often would it be seen?",
    "n": "How many people are needed?",
    "effect": "How large an effect can be seen?",
    "epsilon": "Which epsilon is needed?",
}
_NOTHING = (
    "No data was read and nothing was spent: this follows from public assumptions. The test itself "
    "will cost epsilon {epsilon:g}{delta} for everybody in the data. With that, no result is more "
    "than e^{epsilon:g} times as likely if one person's values were others."
)
_CALLS = {
    "power": "expected_power({test!r}, effect, n={n}, epsilon={epsilon!r}, {rest})",
    "n": "sample_size({test!r}, effect, {target!r}, epsilon={epsilon!r}, {rest})",
    "effect": "detectable_effect({test!r}, effect, {target!r}, n={n}, epsilon={epsilon!r}, {rest})",
    "epsilon": "epsilon_needed({test!r}, effect, {target!r}, n={n}, {rest})",
}


def is_plan(document: Mapping[str, Any]) -> bool:
    """Whether a document is that of a plan or a ranking."""
    return {"wanted", "test"} <= document.keys() or {"choices", "looking_for"} <= document.keys()


def plan_page(document: Mapping[str, Any]) -> str:
    """Return the page of a plan or a ranking."""
    try:
        if "choices" in document:
            return _ranking_page(_ranking(document))
        return _plan_page(_plan(document))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("There is nothing to report: the plan is not complete.") from None


def _plan(document: Mapping[str, Any]) -> Plan:
    known = {name: document[name] for name in Plan.__slots__ if name in document}
    curves = {
        name: tuple(tuple(point) for point in known.get(name, ()))
        for name in ("curve", "curve_without_noise", "band")
    }
    return Plan(**known | curves | {"n": tuple(known["n"])})


def _ranking(document: Mapping[str, Any]) -> Recommendation:
    known = {name: document[name] for name in Recommendation.__slots__}
    choices = tuple(Choice(**each) for each in known["choices"])
    return Recommendation(**known | {"choices": choices, "sizes": tuple(known["sizes"])})


def _plan_page(plan: Plan) -> str:
    assumed = [
        ("question", plan.question),
        ("test", plan.test),
        ("what differs", f"{plan.kind.replace('_', ' ')}, {plan.effect:g}"),
        ("people", " and ".join(f"{size:,}" for size in plan.n)),
        ("epsilon, delta", f"{plan.epsilon:.4g}, {plan.delta:g}"),
        ("level", f"{plan.alpha:g}"),
        ("groups", plan.membership),
        ("power", f"{plan.power:.3g}"),
    ]
    words = f"Power against {plan.wanted}. {plan.sentence}"
    answer = [
        *(tag("p", line.strip()) for line in str(plan).splitlines()[1:]),
        picture(partial(draw, plan), words, "Power, and the answer."),
        *_prices(plan),
    ]
    code = code_blocks(_plan_command(plan), _plan_program(plan))
    return _planning_page(plan, _TITLES[plan.wanted], plan.sentence, assumed, answer, code)


def _planning_page(
    plan: Plan | Recommendation,
    title: str,
    sentence: str,
    assumed: list[tuple[str, str]],
    answer: list[Markup],
    code: list[Markup],
) -> str:
    delta = f", delta {plan.delta:g}" if plan.delta else ""
    test = plan.test if isinstance(plan, Plan) else plan.best.method
    how = plan.sentence if isinstance(plan, Plan) else f"{test} was recommended."
    citation = described(METHODS[plan.question][test].method_id)
    keys = ["dwork2006", *(() if citation is None else citation.papers)]
    text = (
        f"The study was planned with {software()} for a differentially private test, {test}, at "
        f"ε = {plan.epsilon:g} and level {plan.alpha:g} ({shorts(keys)}). "
        f"{how[:1].upper()}{how[1:]} This is from {plan.source}."
    )
    cost = _NOTHING.format(epsilon=plan.epsilon, delta=delta)
    return page(
        title,
        tag("header", tag("h1", title), tag("p", tag("strong", sentence), class_="answer")),
        section("assumed", "What was assumed", table("Public assumptions", assumed)),
        section("answer", "Answer", *answer),
        section("cost", "What it costs", tag("p", cost)),
        section("methods", "For a paper", *paragraph(text, keys)),
        section("again", "How to reproduce it", *code),
    )


def _prices(plan: Plan) -> list[Markup]:
    """Return the picture of people over epsilon, where the tables have the same answer."""
    if plan.wanted != "n" or not plan.source.startswith("tables") or plan.target is None:
        return []
    settings: dict[str, Any] = {"delta": plan.delta, "alpha": plan.alpha}
    settings |= {"membership": plan.membership}
    try:
        effect = sampler_of(plan.question, plan.kind, plan.effect, 1)
        same = sample_size(plan.test, effect, plan.target, epsilon=plan.epsilon, **settings)
        if same.n != plan.n:
            return []  # of several columns, which a plan does not say
        found = price_of_privacy(plan.test, effect, plan.target, **settings)
    except ParameterError:
        return []
    words = f"{found.sentence}, over epsilon and without noise."
    return [tag("h3", "The price of privacy"), picture(partial(draw, found), words)]


def _ranking_page(ranking: Recommendation) -> str:
    best = ranking.best
    people = " and ".join(f"{size:,}" for size in ranking.sizes)
    known = f" Its expected power is {best.power:.2f}." if best.power is not None else ""
    sentence = f"{best.method} is recommended.{known}"
    rows = [
        (c.method, "unknown" if c.power is None else f"{c.power:.2f}", c.reason)
        for c in ranking.choices
    ]
    excluded = [(name, why) for name, why in ranking.excluded.items()]
    assumed = [
        ("question", ranking.question),
        ("what differs", ranking.looking_for.replace("_", " ")),
        ("effect", "several kinds" if ranking.effect is None else f"{ranking.effect:.3g}"),
        ("people", people),
        ("epsilon, delta", f"{ranking.epsilon:g}, {ranking.delta:g}"),
        ("level", f"{ranking.alpha:g}"),
        ("groups", ranking.membership),
        ("from", ranking.source),
    ]
    words = f"Expected power of each test. {sentence}"
    answer = [
        picture(partial(draw, ranking), words, "Expected power of each test."),
        table("The tests that fit", rows, ("test", "power", "why")),
        *([table("Those that do not", excluded, ("test", "why"))] if excluded else []),
    ]
    code = code_blocks(_ranking_command(ranking), _ranking_program(ranking))
    return _planning_page(ranking, "Which test should be used?", sentence, assumed, answer, code)


def _shared(planned: Plan | Recommendation) -> str:
    words = f"--question {planned.question} --membership {planned.membership}"
    words += f" --delta {planned.delta:g}" if planned.delta else ""
    return words + (f" --alpha {planned.alpha:g}" if planned.alpha != 0.05 else "")


def _plan_command(plan: Plan) -> str:
    if plan.wanted == "effect":
        return ""  # there is no such command
    people = ",".join(map(str, dict.fromkeys(plan.n)))
    head = "size" if plan.wanted == "n" else plan.wanted
    words = (
        f"privatest plan {head} --method {plan.test} --kind {plan.kind} --effect {plan.effect:g}"
    )
    words += "" if plan.wanted == "n" else f" --n {people}"
    words += "" if plan.wanted == "epsilon" else f" --epsilon {plan.epsilon:g}"
    words += "" if plan.target is None else f" --power {plan.target:g}"
    return f"{words} \\\n  {_shared(plan)}"


def _plan_program(plan: Plan) -> str:
    rest = f"delta={plan.delta!r}, alpha={plan.alpha!r}, membership={plan.membership!r}"
    same = len(set(plan.n)) == 1
    call = _CALLS[plan.wanted].format(
        test=plan.test,
        n=plan.n[0] if same else plan.n,
        epsilon=plan.epsilon,
        target=plan.target,
        rest=rest,
    )
    return (
        "from privatest import planning\n"
        "from privatest.planning.recommendation import sampler_of\n\n"
        f"effect = sampler_of({plan.question!r}, {plan.kind!r}, {plan.effect!r}, 1)\n"
        f"print(planning.{call})\n"
    )


def _ranking_command(ranking: Recommendation) -> str:
    people = ",".join(map(str, dict.fromkeys(ranking.sizes)))
    words = f"privatest plan recommend --n {people} --epsilon {ranking.epsilon:g}"
    words += f" --kind {ranking.looking_for}"
    words += "" if ranking.effect is None else f" --effect {ranking.effect:g}"
    return f"{words} \\\n  {_shared(ranking)}"


def _ranking_program(ranking: Recommendation) -> str:
    sizes = ranking.sizes[0] if len(set(ranking.sizes)) == 1 else ranking.sizes
    return (
        "from privatest import planning\n\n"
        f"print(planning.recommend({ranking.question!r}, {sizes}, epsilon={ranking.epsilon!r},\n"
        f"    membership={ranking.membership!r}, delta={ranking.delta!r}, "
        f"alpha={ranking.alpha!r},\n"
        f"    looking_for={ranking.looking_for!r}, effect={ranking.effect!r}))\n"
    )


# The parts of a report, in their order on the page.


_LONGEST_RECORD = 20_000  # characters


def sections(subject: Subject) -> list[Markup]:
    """Return all parts of a report."""
    head = tag("h1", subject.question)
    answer = tag("p", tag("strong", answer_sentence(subject.result)), class_="answer")
    return [
        tag("header", head, *_about(subject), answer),
        section("data", "Data: what everybody may know", table("Public facts", facts(subject))),
        section("test", "Method and reason", *(tag("p", each) for each in reason(subject))),
        section("answer", "Answer", *_numbers(subject.result), *_pictures(subject)),
        section("guarantee", "Guarantee", *guarantee(subject)),
        section("budget", "What was spent, and what is left", *_budget(subject)),
        section("methods", "For a paper", *methods_paragraph(subject)),
        *_reproduced(subject),
        _record(subject),
    ]


def answer_sentence(result: Any) -> str:
    """Return the answer in a sentence."""
    if isinstance(result, Decision):
        return result.verdict
    if isinstance(result, ColumnResults):
        rejected = sum(each.reject for each in result.columns.values())
        return f"The hypothesis is rejected for {rejected} of {len(result.columns)} columns."
    if isinstance(result, SyntheticData):
        return f"{len(result):,} synthetic rows for {result.facts.n:,} private ones."
    rows = result.estimate_table().rows
    return ": ".join([result.heading, *([" ".join(rows[0])] if len(rows) == 1 else [])]) + "."


def _about(subject: Subject) -> list[Markup]:
    compared = subject.document.get("compared")
    return [tag("p", str(compared), class_="soft")] if compared else []


def _numbers(result: Any) -> list[Markup]:
    if isinstance(result, Decision):
        found = [table("The test", [*result.facts().items(), ("alpha", f"{result.alpha:g}")])]
        estimates = result.estimate_table()
        if estimates is not None:
            found.append(table(f"Estimates: {estimates.caption}", estimates.rows))
        return found
    if isinstance(result, ColumnResults):
        return [
            table(
                f"Each column, p-values adjusted ({result.adjustment})",
                result.estimate_table().rows,
                ("column", "adjusted p-value", "decision"),
            )
        ]
    if isinstance(result, SyntheticData):
        return []
    rows = result.estimate_table().rows
    return [table(result.heading, [(first, " ".join(rest)) for first, *rest in rows])]


def _pictures(subject: Subject) -> list[Markup]:
    if isinstance(subject.result, SyntheticData):
        return release_parts(subject.result)
    words = f"Picture of the released numbers. {answer_sentence(subject.result)}"
    return [picture(partial(draw, subject.result), words, "What was released.")]


def _budget(subject: Subject) -> list[Markup]:
    document, spent = subject.document, subject.result.spent
    cost = [tag("p", f"This answer cost {spent}.")]
    if document.get("recorded"):
        cost = [tag("p", "It was answered from the record, and cost nothing now.")]
    if "shares" in document:
        return [tag("p", "Comparing shares costs nothing: what they cost was paid by each owner.")]
    lines = document.get("ledger")
    if lines:
        rows = [_line(each) for each in lines]
        head = ("data set", "budget", "left", "spent in all")
        return [*cost, table("Ledger, with this answer", rows, head)]
    unknown = "No ledger was charged: add up yourself what these people have spent."
    if document.get("id"):
        unknown = f"It is entry {document['id']} of the ledger."
    elif document.get("dataset"):
        unknown = "It is in the ledger of the data's custodian."
    return [*cost, tag("p", unknown)]


def _line(entry: Mapping[str, Any]) -> tuple[str, ...]:
    budget, left = (
        ", ".join(
            f"{name} {float(value):.6g}"
            for name, value in entry[part].items()
            if name == "epsilon" or float(value)
        )
        for part in ("budget", "left")
    )
    return str(entry["dataset"]), budget, left, f"{100 * entry['used']:.3g}%"


def _reproduced(subject: Subject) -> list[Markup]:
    text, line = program(subject), command(subject)
    if not text:
        return []
    fresh = (
        "Asking again draws new noise: the answer will differ a little, and costs as much again."
    )
    parts = [tag("p", fresh)] if "shares" not in subject.document else []
    schema = schema_file(subject)
    if schema:
        parts += [tag("h3", f"{SCHEMA_FILE}: the columns"), code(schema, "Schema")]
    parts += code_blocks(line, text)
    return [section("again", "How to reproduce it", *parts)]


def _record(subject: Subject) -> Markup:
    """Return the document itself, from which the page can be written again."""
    kept = {name: value for name, value in subject.document.items() if name != "parquet"}
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    if len(text) > _LONGEST_RECORD:
        return Markup("")
    return tag("details", tag("summary", "The whole record, as JSON"), code(text, "JSON"))


def report(
    result: Any, path: str | PathLike[str], *, about: Mapping[str, Any] | None = None
) -> None:
    """Write a result as one page of HTML, to be read, printed and passed on.

    Parameters
    ----------
    result : Decision, Outcome, MeanEstimate, SyntheticData, Plan, ... or mapping
        What was released, or the document that a command printed with ``--json``.
    path : str or path
        Where to write. The file is written whole, or not at all.
    about : mapping, optional
        What the document of a command says besides a result: ``title``, ``compared``, ``files``,
        ``request``, ``schema`` and ``ledger``. All of it is printed: public words only.

    Notes
    -----
    **Privacy** Post-processing: the page is a function of the result's JSON document.
    """
    if not of_type(path, str, PathLike):
        reject("path", "where to write the page", path)
    try:
        write_text(path, report_html(result, about=about))
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {error.strerror}.") from None


def report_html(result: Any, *, about: Mapping[str, Any] | None = None) -> str:
    """Return the page that :func:`report` writes."""
    document = _document(result) | dict(about or {})
    # what JSON cannot say is not on the page either: the report is that of the document
    read: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    if is_plan(read):
        return plan_page(read)
    if is_pairs(read):
        return pairs_page(read)
    subject = Subject.read(read)
    return page(subject.question, *sections(subject))


def _document(result: Any) -> dict[str, Any]:
    if isinstance(result, Mapping):
        return dict(result)
    if isinstance(result, (Plan, Recommendation)):
        return result.to_dict()
    if not hasattr(result, "to_dict") or not hasattr(result, "guarantee"):
        raise ParameterError(f"result must be a result or its JSON document; got {type(result)}.")
    told = result_document(result, "", "")
    return {"format": JSON_FORMAT} | {k: v for k, v in told.items() if v != "" or k != "compared"}


# The report of several shares: each pair.


_TITLE = "Which owners' data differ?"
_PAIR_HEAD = ("shares", "adjusted p-value", "decision")


def is_pairs(document: Mapping[str, Any]) -> bool:
    """Whether a document is that of ``compare`` with more than two shares."""
    return bool(document.get("pairs"))


def pairs_page(document: Mapping[str, Any]) -> str:
    """Return the page of all pairs."""
    outcomes = {}
    for each in document["pairs"]:
        found = result_from_dict(each, Budget(each["epsilon"], each["delta"]))
        if not isinstance(found, Outcome):
            raise ParameterError("There is nothing to report: the document has no pairs.")
        outcomes[" and ".join(map(str, each["shares"]))] = found
    names = [*dict.fromkeys(str(name) for each in document["pairs"] for name in each["shares"])]
    rejected = sum(each.reject for each in outcomes.values())
    first = next(iter(outcomes.values()))
    sentence = (
        f"{rejected} of {len(outcomes)} pairs differ in distribution, at level {first.alpha:g} "
        "for all pairs together (Holm)."
    )
    rows = [
        (name, f"{each.pvalue:.4g}", "differ" if each.reject else "no difference found")
        for name, each in outcomes.items()
    ]
    about = {"shares": names, "alpha": first.alpha}
    subject = Subject(about, first)
    draw = partial(plot_pvalues, outcomes)
    return page(
        _TITLE,
        tag("header", tag("h1", _TITLE), tag("p", tag("strong", sentence), class_="answer")),
        section("data", "Shares", tag("p", ", ".join(names))),
        section(
            "answer",
            "Answer",
            table("Each pair", rows, _PAIR_HEAD),
            picture(draw, f"The p-value of each pair. {sentence}", "P-values, adjusted (Holm)."),
        ),
        section(
            "guarantee",
            "Guarantee",
            tag("p", "Each owner's share has a guarantee of its own; comparing costs nothing."),
            *guarantee(subject),
        ),
        section("methods", "For a paper, of the first pair", *methods_paragraph(subject)),
        section("again", "How to reproduce it", *code_blocks(command(subject), "")),
    )
