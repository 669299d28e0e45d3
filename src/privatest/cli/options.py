"""Options of commands: their names, types and help, and how their text is read."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger
from privatest.core.errors import ParameterError
from privatest.core.privacy import Adjacency
from privatest.core.results import Adjustment
from privatest.core.validation import number, reject
from privatest.data.engines import Engine
from privatest.data.reading import Place
from privatest.data.schema import Membership, Schema
from privatest.requests.catalogue import METHODS, PARTS, default_method, methods_where

_DATA, _PRIVACY, _TEST, _OUTPUT, _LARGE = "Data", "Privacy", "Test", "Output", "Large data"
_SOME = "Options of some methods"  # after those that everybody needs

Side = Literal["two-sided", "greater", "less"] | None
Kernel = Literal["gaussian", "laplace", "imq"]


def _option(panel: str, flag: str, metavar: str | None, words: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, help=words, rich_help_panel=panel, **more)


def flag(
    panel: str,
    metavar: str | None,
    words: str,
    *flags: str,
    kind: Any = str | None,
    default: str | bool = True,
    **more: Any,
) -> Any:
    """Return the type of an option in a table; by default its flag is its name there.

    ``default`` says in words what happens without the option.
    """
    annotated: Any = Annotated
    option = typer.Option(
        *flags, metavar=metavar, help=words, rich_help_panel=panel, show_default=default, **more
    )
    return annotated[kind, option]


def _taking(question: str, option: str) -> str:
    """Return the methods that take an option, in words.

    It imports them: call it in a lambda, so that ``privatest --help`` need not.
    """
    return methods_where(question, lambda method: option in method.options)


_data, _privacy, _test = partial(flag, _DATA), partial(flag, _PRIVACY), partial(flag, _TEST)
_output, _some, _large = partial(flag, _OUTPUT), partial(flag, _SOME), partial(flag, _LARGE)
_release, _estimate = partial(flag, "Release"), partial(flag, "Estimate")

# --- options of commands of all kinds -----------------------------------------------------------

DataFile = Annotated[
    Place,
    typer.Argument(
        metavar="DATA",
        parser=Place,
        help="CSV, Parquet, Arrow or Feather file, a folder or a pattern of them (in quotes), or "
        "the address of a database.",
        show_default=False,
    ),
]
OtherFile = Annotated[
    Place | None,
    typer.Argument(
        metavar="OTHER",
        parser=Place,
        help="Second file, where each sample has a file of its own.",
        show_default=False,
    ),
]
GroupColumn = Annotated[
    str | None,
    _option(_DATA, "--group", "COLUMN", "Column that says which sample a row is in."),
]
Groups = Annotated[
    tuple[str, str] | None,
    _option(
        _DATA,
        "--groups",
        "A B",
        "The two values of the group column; B may be the word rest: all other values.",
    ),
]
Columns = Annotated[
    str | None,
    _option(
        _DATA,
        "--columns",
        "NAMES",
        "Columns to compare, with commas between; by default all that are described. Write a "
        "name that has a comma in double quotes.",
    ),
]
Bounds = Annotated[
    list[str] | None,
    _option(
        _DATA,
        "--bounds",
        "NAME=LOW:HIGH",
        "Public bounds of a numeric column; values outside are clipped. Repeat it for others.",
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path | None,
    _option(
        _DATA,
        "--schema",
        "FILE",
        "TOML file that describes the columns; `privatest schema` writes a template.",
    ),
]
Epsilon = Annotated[
    str,
    _option(
        _PRIVACY,
        "--epsilon",
        "NUMBER",
        "Privacy to spend, above 0: the smaller, the more private and the noisier.",
    ),
]
Delta = Annotated[
    str,
    _option(
        _PRIVACY,
        "--delta",
        "NUMBER",
        "Probability, below 1, with which the guarantee may fail.",
    ),
]
MembershipOption = Annotated[
    Membership | None,
    _option(
        _PRIVACY,
        "--membership",
        None,
        "Whether everybody may know who is in which group.",
        show_default="the schema's, else private; public for two files",
    ),
]
RowsPerPerson = Annotated[
    int | None,
    _option(
        _PRIVACY,
        "--rows-per-person",
        "K",
        "The most rows that one person has; noise grows by this factor.",
        min=1,
        show_default="the schema's, else 1",
    ),
]
Alpha = Annotated[
    str,
    _option(
        _TEST,
        "--alpha",
        "NUMBER",
        "Level of the test: the largest risk of rejecting a true hypothesis.",
    ),
]
Picture = Annotated[
    Path | None,
    _option(_OUTPUT, "--plot", "FILE", "Draw what was released to a .png, .svg or .pdf file."),
]
Report = Annotated[
    Path | None,
    _option(
        _OUTPUT,
        "--report",
        "FILE.html",
        "Write a page about the answer: guarantee, budget, picture, a paragraph for a paper, "
        "and how to ask again.",
    ),
]
Json = Annotated[bool, _option(_OUTPUT, "--json", None, "Print one JSON document instead.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]
ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", help="The curator's file.")]
CONFIG = Path("curator.toml")

# What is read of a database, and by which engine: of every command that reads data.
READING: Mapping[str, Any] = {
    "table": _data(
        "NAME",
        "Table of the database that DATA is the address of; repeat it for that of OTHER.",
        kind=list[str] | None,
        default=False,
    ),
    "query": _data(
        "SQL",
        "SELECT statement instead of a table; its answer is held in memory.",
        kind=list[str] | None,
        default=False,
    ),
    "engine": _large(
        "NAME",
        "Who reads large data: threads of this process (local), or a Dask cluster (dask).",
        kind=Engine | None,
        default="local",
    ),
    "scheduler": _large(
        "ADDRESS",
        "Of the Dask cluster, such as tcp://host:8786.",
        default="a cluster on this machine",
    ),
    "threads": _large(
        "NUMBER",
        "Threads of the local engine, or Dask workers that are started here.",
        kind=int | None,
        min=1,
        default="one for each processor",
    ),
}

# --- options of questions, in the order of their help -------------------------------------------

OPTIONS: Mapping[str, Any] = {
    "x": _data("NAMES", "Columns of one side, with commas between.", kind=str),
    "y": _data("NAMES", "Columns of the other side, with commas between.", kind=str),
    "given": _data(
        "NAMES",
        "Are they independent given these columns? With commas between; x and y are then one "
        "numeric column each.",
    ),
    "before": _data("COLUMN", "The first measurement.", kind=str),
    "after": _data("COLUMN", "The second measurement.", kind=str),
    "column": _data("NAME", "The column.", kind=str),
    "dist": _test(
        "NAME(NUMBERS)",
        'Distribution of scipy.stats with all its parameters, such as "norm(0, 1)".',
    ),
    "family": _test(
        "NAME",
        "Family of scipy.stats with unknown location and scale, such as norm, laplace, "
        "cauchy, logistic, gumbel_r, expon or uniform; needs --bounds or a schema.",
    ),
    "shares": _test(
        "A=SHARE,...",
        "Shares of the categories of a categorical column, such as yes=0.2,no=0.8; or "
        "equal. Needs a schema.",
    ),
    "group": GroupColumn,
    "groups": Groups,
    "more_groups": _data(
        "NAMES",
        "Further groups besides A and B, with commas between; the last may be rest. Only for "
        "methods of several groups, which take all categories of a schema where no group is "
        "named.",
    ),
    "columns": Columns,
    "each_column": _data(
        None,
        "Test each column on its own: epsilon and delta are shared equally, and p-values are "
        "adjusted for their number.",
        "--each-column",
        kind=bool,
    ),
    "bounds": Bounds,
    "schema": SchemaFile,
    "public_points": _data(
        "FILE",
        "Rows that are public already, such as a published part of the data or made-up "
        "rows: they are in the release as they stand. Never private rows.",
        kind=Path | None,
        default="points spread over the bounds",
    ),
    "epsilon": Epsilon,
    "delta": Delta,
    "membership": MembershipOption,
    "adjacency": _privacy(
        None,
        "What is hidden: a record within its group, one in each group, "
        "or a record together with its group.",
        kind=Adjacency | None,
        default="row where membership is private, else one",
    ),
    "rows_per_person": RowsPerPerson,
    "release": _privacy(
        "WHAT",
        "What is published: a pvalue, or only the decision, which needs less noise.",
        kind=Literal["pvalue", "decision"] | None,
        default="pvalue",
    ),
    "alpha": Alpha,
    "adjust": _test(
        "HOW",
        "With --each-column: holm or bonferroni (chance of any false rejection), bh or by "
        "(share of false ones).",
        kind=Adjustment | None,
        default="holm",
    ),
    "statistic": _test(
        "DISTANCE",
        "Distance of distribution functions: ks (largest), kuiper (shape), "
        "cvm (mean square) or wasserstein (mean).",
        default="the largest",
    ),
    "q": _estimate(
        "NUMBER", "Estimate this quantile of one column: 0.5 is the median.", kind=float | None
    ),
    "ledger": LedgerOption,
    "dataset": DatasetOption,
    "no_ledger": NoLedger,
    "plot": Picture,
    "report": Report,
    "as_json": Json,
    "permutations": _some(
        "COUNT", "Number of permutations.", kind=int | None, min=1, default="999; 199 in subtests"
    ),
    "kernel": _some(
        "KERNEL",
        "How likeness falls off with distance: gaussian, laplace or imq.",
        kind=Kernel | None,
        default="gaussian",
    ),
    "bandwidths": _some(
        "NUMBERS",
        "Widths of the kernel, with commas between, where each column's bounds are 0 and 1.",
        default="a grid for all scales",
    ),
    "statistics": _some(
        "NAMES",
        "Members of the family of statistics whose maximum is taken, with commas between: "
        "kernel, additive, pairwise (two samples), kolmogorov, mean; and trend "
        "(independence).",
        default="all that apply",
    ),
    "computation": _some(
        "HOW",
        "How the kernel is computed: exact, nystrom or fourier; auto goes by size.",
        kind=Literal["auto", "exact", "nystrom", "fourier"] | None,
        default="auto",
    ),
    "estimator": _some(
        None, "Distance (v) or unbiased square (u).", kind=Literal["v", "u"] | None, default="v"
    ),
    "norm": lambda: _some(
        None,
        f"For {_taking('two-sample', 'norm')}: norm of the difference.",
        kind=Literal["l1", "l2", "linf"] | None,
        default="l2",
    ),
    "alternative": lambda: _some(
        "SIDE",
        f"For {_taking('two-sample', 'alternative')}: two-sided; greater: "
        "the first sample is larger (ks, as in SciPy: its distribution function lies above, "
        "so that it is smaller); or less.",
        kind=Side,
        default="two-sided",
    ),
    "locations": _some(
        "FILE",
        "File with public rows at which me compares, or frequencies for scf.",
        kind=Path | None,
    ),
    "draw_locations": _some(
        "J", "Compare at J points spread over the bounds instead.", kind=int | None, min=1
    ),
    "subtest": lambda: _some(
        "NAME",
        "Two-sample test to run on parts of the data: one of scipy.stats, such as "
        f"ttest_ind, for --method {_taking('two-sample', 'subtest')}.",
        default=default_method("two-sample"),
    ),
    "success": _some(
        "VALUE",
        "For shares of successes: the value that is one; all others are failures.",
        default="true, or 1 of integers between 0 and 1",
    ),
    "cells": _some(
        "COUNT",
        "Cells of the public grid that ends of intervals lie on, at most 8192.",
        kind=int | None,
        min=2,
        default="1024",
    ),
    "grid": _some(
        "COUNT|NUMBERS",
        "For distances of distribution functions: a number of equal cells between the "
        "bounds, at most 8192; public cut points with commas between; or exact.",
        default="exact, unless many rows are permuted",
    ),
    "calibration": _some(
        "HOW",
        "For ttest, tost and anova: classical (SciPy's test plus the noise) or any (valid for "
        "every law within the bounds; needs a larger effect).",
        kind=Literal["classical", "any"] | None,
        default="classical",
    ),
    "low": _some(
        "NUMBER", "For tost: equivalent are differences above this, such as -1.", kind=float | None
    ),
    "high": _some(
        "NUMBER", "For tost: equivalent are differences below this, such as 1.", kind=float | None
    ),
    "points": _release(
        "COUNT",
        "Synthetic rows to release.",
        kind=int | None,
        min=1,
        default="as many as there are, but at most 50,000 (tables) or 500",
    ),
    "weights": _release(
        "KIND",
        "signed (nearest to the data), bounded (in sum of sizes), nonnegative (as "
        "probabilities are), or equal (rows are repeated instead).",
        kind=Literal["signed", "bounded", "nonnegative", "equal"] | None,
        default="equal for tables, signed for points, nonnegative for features",
    ),
    "bandwidth": _release(
        "NUMBER",
        "Width of the kernel, where each column's bounds are 0 and 1.",
        kind=float | None,
        default="as wide as the points lie apart",
    ),
    "bins": _release(
        "KIND",
        "Bins of numbers in tables: even (of equal length between the bounds), or adaptive "
        "(finer where there are many rows, found with up to a tenth of the budget).",
        kind=Literal["adaptive", "even"] | None,
        default="adaptive, for tables",
    ),
    "output": _output("FILE", "Where to write it: a .parquet file.", "--output", "-o", kind=Path),
    "force": _output(None, "Overwrite files that are there.", "--force", kind=bool),
    "dry_run": _output(
        None,
        "Only say which tables would be measured and with how much noise, from public "
        "sizes; nothing is spent.",
        "--dry-run",
        kind=bool,
    ),
}

# Options that a question words in its own way.
OF_QUESTION: Mapping[tuple[str, str], Any] = {
    ("two-sample", "release"): _privacy(
        "WHAT",
        "What is published: a pvalue, or only the decision, which needs less noise; for me "
        "and scf moments (estimates; needs --delta) or one statistic.",
        kind=Literal["pvalue", "decision", "moments", "statistic"] | None,
        default="pvalue; moments or statistic",
    ),
    ("independence", "cells"): _some(
        "NUMBER",
        "Equal parts of each given numeric column, in each of which x and y have a mean.",
        kind=int | None,
        min=2,
        default="as many as noise allows",
    ),
    ("independence", "subtest"): lambda: _some(
        "NAME",
        "Test to run on parts of the data: one of scipy.stats, such as pearsonr, for --method "
        f"{_taking('independence', 'subtest')}.",
        default=default_method("independence"),
    ),
    ("independence", "alternative"): lambda: _some(
        "SIDE",
        f"For {_taking('independence', 'alternative')}: two-sided; "
        "greater: y rises with x; or less.",
        kind=Side,
        default="two-sided",
    ),
    ("paired", "alternative"): lambda: _test(
        "SIDE",
        f"For {_taking('paired', 'alternative')}: two-sided; greater: "
        "after is larger than before; or less.",
        kind=Side,
        default="two-sided",
    ),
    ("fit", "alternative"): _test(
        "SIDE",
        "For --dist and ks: two-sided; greater, as in SciPy: the distribution function of "
        "the column lies above; or less.",
        kind=Side,
        default="two-sided",
    ),
    ("mean", "columns"): _data(
        "NAMES", "Columns, with commas between; by default all that are described."
    ),
    ("mean", "alpha"): _estimate(
        "NUMBER", "One minus the confidence: 0.05 gives simultaneous 95% intervals.", kind=str
    ),
    ("release", "columns"): _data(
        "NAMES", "Columns to release, with commas between; by default all that are described."
    ),
    ("release", "delta"): _privacy(
        "NUMBER",
        "Probability with which the guarantee may fail: above 0, and well below 1 divided "
        "by the number of rows.",
        kind=str,
    ),
    ("release", "kernel"): _release(
        "KERNEL",
        "How likeness falls off with distance: gaussian, laplace or imq.",
        kind=Kernel | None,
        default="gaussian, where there is one",
    ),
    ("release", "plot"): _output(
        "FILE", "Draw each column of the release to a .png, .svg or .pdf file.", kind=Path | None
    ),
}

_METHODS = {  # what --method says, and where
    "two-sample": ("How samples are compared", _TEST),
    "independence": ("The test", _TEST),
    "paired": ("The test", _TEST),
    "mean": ("What is estimated", "Estimate"),
    "release": ("How rows are made", "Release"),
}
# Options of a question besides its parts and the options of its methods; fit has no --method.
_MORE = {
    "two-sample": ("more_groups", "adjust", "draw_locations"),
    "release": ("output", "force", "dry_run"),
}
_COMMON = (
    *("bounds", "schema", "epsilon", "delta", "rows_per_person", "alpha"),
    *("ledger", "dataset", "no_ledger", "plot", "report", "as_json"),
)
_DEFAULTS = {"delta": "0", "alpha": "0.05"}


def method_option(question: str) -> Any:
    """Return ``--method`` of a question, with a few words about each."""
    lead, panel = _METHODS[question]
    names = [
        f"{name} ({entry.about})" if entry.about else name
        for name, entry in METHODS[question].items()
    ]
    return flag(
        panel,
        "METHOD",
        f"{lead}: {', '.join(names)}.",
        default=default_method(question),
        autocompletion=completing(lambda: METHODS[question]),
    )


def question_parameters(question: str) -> list[inspect.Parameter]:
    """Return the parameters of a question's command: its arguments and options."""
    methods = METHODS[question].values()
    names = {*_COMMON, *PARTS[question], *_MORE.get(question, ())}
    names |= {name for method in methods for name in method.options}
    if question == "release":
        names.remove("alpha")
    hints: dict[str, Any] = {"data": DataFile}
    if question == "two-sample":
        hints["other"] = OtherFile
    for name, hint in OPTIONS.items():
        if name in names:
            words = OF_QUESTION.get((question, name), hint)
            hints[name] = words() if inspect.isfunction(words) else words
        if name == "rows_per_person" and question in _METHODS:
            hints["method"] = method_option(question)
    return [_parameter(question, name, hint) for name, hint in hints.items()]


def _parameter(question: str, name: str, hint: Any) -> inspect.Parameter:
    kind = get_args(hint)[0]
    default: Any = inspect.Parameter.empty
    if kind is bool:
        default = False
    elif type(None) in get_args(kind):
        default = None
    elif (question, name) not in OF_QUESTION or name == "alpha":
        default = _DEFAULTS.get(name, default)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion for Typer; the names are looked up when the key is pressed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


# --- reading text -------------------------------------------------------------------------------


def read_each(each_column: bool, adjust: str | None) -> str | None:
    """Return how p-values of each column are adjusted; None where columns are tested together."""
    if adjust is not None and not each_column:
        raise ParameterError("--adjust goes with --each-column: one test needs no adjustment.")
    return (adjust or "holm") if each_column else None


def read_alpha(text: str) -> float:
    """Return the level of the test as a number, which is checked with the request."""
    try:
        return float(text)
    except ValueError:
        reject("alpha", "a number above 0 and below 1", text)


def read_bandwidths(text: str) -> list[float]:
    """Return bandwidths from text such as ``1,0.5``."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        reject("bandwidths", "positive numbers with commas between", text)
    return [number("bandwidths", value, above=0) for value in values]


def read_statistics(text: str) -> list[str]:
    """Return names from text such as ``kernel,mean``; the method checks them."""
    return [part.strip() for part in text.split(",")]


def read_grid(text: str) -> int | list[float] | str:
    """Return a grid from text such as ``512``, ``0,1.5,7`` or ``exact``."""
    if text == "exact":
        return text
    try:
        return int(text) if text.strip().isdigit() else [float(part) for part in text.split(",")]
    except ValueError:
        reject("grid", "a number of cells, cut points with commas between, or exact", text)


def read_names(text: str, described: Schema | None, option: str = "columns") -> list[str]:
    """Return names from text such as ``a, b`` or ``"a, with a comma", b``, or one as it is."""
    if described is not None and text in described.columns:
        return [text]
    try:
        (parts,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):  # an open quote, or several lines
        parts = []
    names = [part.strip() for part in parts]
    if not names or not all(names) or len(set(names)) < len(names):
        wanted = "different names with commas between; a name with a comma in double quotes"
        reject(option, wanted, text)
    return names


READERS: Mapping[str, Callable[[str], Any]] = {
    "alpha": read_alpha,
    "bandwidths": read_bandwidths,
    "grid": read_grid,
    "statistics": read_statistics,
}
