"""Options that commands share, and how their text is read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from privatest.cli.completing import completing
from privatest.cli.places import DataFile as DataFile  # noqa: PLC0414 - for all commands
from privatest.cli.places import OtherFile as OtherFile  # noqa: PLC0414
from privatest.core.errors import ParameterError
from privatest.core.privacy import Adjacency
from privatest.core.results import Adjustment
from privatest.core.validation import number, reject
from privatest.data.schema import Membership, Schema
from privatest.requests.catalogue import METHODS, such, usual

_DATA, _PRIVACY, _TEST, _OUTPUT = "Data", "Privacy", "Test", "Output"
_SOME = "Options of some methods"  # after those that everybody needs

GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column that says which sample a row is in.",
        rich_help_panel=_DATA,
    ),
]
Groups = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--groups",
        metavar="A B",
        help="The two values of the group column; B may be the word rest: all other values.",
        rich_help_panel=_DATA,
    ),
]
MoreGroups = Annotated[
    str | None,
    typer.Option(
        "--more-groups",
        metavar="NAMES",
        help=f"Further groups besides A and B, with commas between; the last may be rest. For "
        f"{such('two-sample', lambda m: m.several)}, which take all categories of a schema where "
        "no group is named.",
        rich_help_panel=_DATA,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to compare, with commas between; by default all that are described. Write a "
        "name that has a comma in double quotes.",
        rich_help_panel=_DATA,
    ),
]
EachColumn = Annotated[
    bool,
    typer.Option(
        "--each-column",
        help="Test each column on its own: epsilon and delta are shared equally, and p-values are "
        "adjusted for their number.",
        rich_help_panel=_DATA,
    ),
]
Adjust = Annotated[
    Adjustment | None,
    typer.Option(
        "--adjust",
        metavar="HOW",
        help="With --each-column: holm or bonferroni (chance of any false rejection), bh or by "
        "(share of false ones).",
        rich_help_panel=_TEST,
        show_default="holm",
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        metavar="NAME=LOW:HIGH",
        help="Public bounds of a numeric column; values outside are clipped. Repeat it for others.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="TOML file that describes the columns; `privatest schema` writes a template.",
        rich_help_panel=_DATA,
    ),
]
Epsilon = Annotated[
    str,
    typer.Option(
        "--epsilon",
        metavar="NUMBER",
        help="Privacy to spend, above 0: the smaller, the more private and the noisier.",
        rich_help_panel=_PRIVACY,
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="Probability, below 1, with which the guarantee may fail.",
        rich_help_panel=_PRIVACY,
    ),
]
MembershipOption = Annotated[
    Membership | None,
    typer.Option(
        "--membership",
        help="Whether everybody may know who is in which group.",
        rich_help_panel=_PRIVACY,
        show_default="the schema's, else private; public for two files",
    ),
]
AdjacencyOption = Annotated[
    Adjacency | None,
    typer.Option(
        "--adjacency",
        help="What is hidden: a record within its group, one in each group, "
        "or a record together with its group.",
        rich_help_panel=_PRIVACY,
        show_default="row where membership is private, else one",
    ),
]
RowsPerPerson = Annotated[
    int | None,
    typer.Option(
        "--rows-per-person",
        metavar="K",
        min=1,
        help="The most rows that one person has; noise grows by this factor.",
        rich_help_panel=_PRIVACY,
        show_default="the schema's, else 1",
    ),
]
Release = Annotated[
    Literal["pvalue", "decision", "moments", "statistic"] | None,
    typer.Option(
        "--release",
        metavar="WHAT",
        help="What is published: a pvalue, or only the decision, which needs less noise; for me "
        "and scf moments (estimates; needs --delta) or one statistic.",
        rich_help_panel=_PRIVACY,
        show_default="pvalue; moments or statistic",
    ),
]
LocationsFile = Annotated[
    Path | None,
    typer.Option(
        "--locations",
        metavar="FILE",
        help="File with public rows at which me compares, or frequencies for scf.",
        rich_help_panel=_SOME,
    ),
]
DrawLocations = Annotated[
    int | None,
    typer.Option(
        "--draw-locations",
        metavar="J",
        min=1,
        help="Compare at J points spread over the bounds instead.",
        rich_help_panel=_SOME,
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw what was released to a .png, .svg or .pdf file.",
        rich_help_panel=_OUTPUT,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page about the answer: guarantee, budget, picture, a paragraph for a paper, "
        "and how to ask again.",
        rich_help_panel=_OUTPUT,
    ),
]
Alpha = Annotated[
    str,
    typer.Option(
        "--alpha",
        metavar="NUMBER",
        help="Level of the test: the largest risk of rejecting a true hypothesis.",
        rich_help_panel=_TEST,
    ),
]
KernelOption = Annotated[
    Literal["gaussian", "laplace", "imq"] | None,
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="How likeness falls off with distance: gaussian, laplace or imq.",
        rich_help_panel=_SOME,
        show_default="gaussian",
    ),
]
Bandwidths = Annotated[
    str | None,
    typer.Option(
        "--bandwidths",
        metavar="NUMBERS",
        help="Widths of the kernel, with commas between, where each column's bounds are 0 and 1.",
        rich_help_panel=_SOME,
        show_default="a grid for all scales",
    ),
]
Statistics = Annotated[
    str | None,
    typer.Option(
        "--statistics",
        metavar="NAMES",
        help="Members of the family of statistics whose maximum is taken, with commas between: "
        "kernel, additive, pairwise (two samples), kolmogorov, mean; and trend (independence).",
        rich_help_panel=_SOME,
        show_default="all that apply",
    ),
]
Cells = Annotated[
    int | None,
    typer.Option(
        "--cells",
        metavar="COUNT",
        min=2,
        help="Cells of the public grid that ends of intervals lie on, at most 8192.",
        rich_help_panel=_SOME,
        show_default="1024",
    ),
]
Permutations = Annotated[
    int | None,
    typer.Option(
        "--permutations",
        metavar="COUNT",
        min=1,
        help="Number of permutations.",
        rich_help_panel=_SOME,
        show_default="999; 199 in subtests",
    ),
]
Subtest = Annotated[
    str | None,
    typer.Option(
        "--subtest",
        metavar="NAME",
        help="Two-sample test to run on parts of the data: one of scipy.stats, such as "
        f"ttest_ind, for --method {such('two-sample', lambda m: 'subtest' in m.options)}.",
        rich_help_panel=_SOME,
        show_default=usual("two-sample"),
    ),
]
TwoSampleAlternative = Annotated[
    Literal["two-sided", "greater", "less"] | None,
    typer.Option(
        "--alternative",
        metavar="SIDE",
        help=f"For {such('two-sample', lambda m: 'alternative' in m.options)}: two-sided; greater: "
        "the first sample is larger (ks, as in SciPy: its distribution function lies above, so "
        "that it is smaller); or less.",
        rich_help_panel=_SOME,
        show_default="two-sided",
    ),
]
Norm = Annotated[
    Literal["l1", "l2", "linf"] | None,
    typer.Option(
        "--norm",
        help=f"For {such('two-sample', lambda m: 'norm' in m.options)}: norm of the difference.",
        rich_help_panel=_SOME,
        show_default="l2",
    ),
]
Computation = Annotated[
    Literal["auto", "exact", "nystrom", "fourier"] | None,
    typer.Option(
        "--computation",
        metavar="HOW",
        help="How the kernel is computed: exact, nystrom or fourier; auto goes by size.",
        rich_help_panel=_SOME,
        show_default="auto",
    ),
]
Estimator = Annotated[
    Literal["v", "u"] | None,
    typer.Option(
        "--estimator",
        help="Distance (v) or unbiased square (u).",
        rich_help_panel=_SOME,
        show_default="v",
    ),
]
Success = Annotated[
    str | None,
    typer.Option(
        "--success",
        metavar="VALUE",
        help="For shares of successes: the value that is one; all others are failures.",
        rich_help_panel=_SOME,
        show_default="true, or 1 of integers between 0 and 1",
    ),
]


def _limit(name: str, side: str, example: int) -> Any:
    words = f"For tost: equivalent are differences {side} this, such as {example}."
    return typer.Option(f"--{name}", metavar="NUMBER", help=words, rich_help_panel=_SOME)


Calibration = Annotated[
    Literal["classical", "any"] | None,
    typer.Option(
        "--calibration",
        metavar="HOW",
        help="For ttest, tost and anova: classical (SciPy's test plus the noise) or any (valid for "
        "every law within the bounds; needs a larger effect).",
        rich_help_panel=_SOME,
        show_default="classical",
    ),
]
Low = Annotated[float | None, _limit("low", "above", -1)]
High = Annotated[float | None, _limit("high", "below", 1)]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document instead.", rich_help_panel=_OUTPUT),
]


def method_option(question: str, lead: str, *, panel: str = _TEST) -> Any:
    """Return ``--method`` of a question, with what the catalogue says of each."""
    listed = [
        f"{name} ({entry.about})" if entry.about else name
        for name, entry in METHODS[question].items()
    ]
    return typer.Option(
        "--method",
        metavar="METHOD",
        help=f"{lead}: {', '.join(listed)}.",
        rich_help_panel=panel,
        show_default=usual(question),
        autocompletion=completing(lambda: METHODS[question]),
    )


def read_each(each_column: bool, adjust: str | None) -> str | None:
    """Return how p-values of each column are adjusted; None where columns are tested together."""
    if adjust is not None and not each_column:
        raise ParameterError("--adjust goes with --each-column: one test needs no adjustment.")
    return (adjust or "holm") if each_column else None


def read_alpha(text: str) -> float:
    """Return the level of the test as a number."""
    try:
        value = float(text)
    except ValueError:
        reject("alpha", "a number above 0 and below 1", text)
    return value  # what it may be is checked with the rest of the request


def read_bandwidths(text: str | None) -> list[float] | None:
    """Return bandwidths from text such as ``1,0.5``."""
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        reject("bandwidths", "positive numbers with commas between", text)
    return [number("bandwidths", value, above=0) for value in values]


def read_statistics(text: str | None) -> list[str] | None:
    """Return names from text such as ``kernel,mean``; which there are is the test's to say."""
    return None if text is None else [part.strip() for part in text.split(",")]


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
