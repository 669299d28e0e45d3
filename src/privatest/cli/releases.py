"""``privatest release``, ``query`` and ``report``: synthetic rows, questions to them, pages."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.output import (
    PICTURES,
    Page,
    check_new,
    check_picture,
    check_report,
    misplaced,
    print_either,
    print_json,
    progress,
    read_json,
    save_paid,
    save_picture,
    working,
    write_report,
)
from privatest.cli.questions import answer, describe, read_request
from privatest.cli.spending import Purse
from privatest.core.errors import ParameterError
from privatest.data.reading import Place

if TYPE_CHECKING:
    from privatest.data.schema import Schema
    from privatest.requests.request import Request
    from privatest.synthetic import Estimate, SyntheticData
    from privatest.synthetic.queries import Query, QueryAnswer

# --- release ------------------------------------------------------------------------------------


def release(**values: Any) -> None:
    """Publish synthetic rows, from the values of the command's options."""
    data, output, public_points = values["data"], values["output"], values["public_points"]
    _check_files(data, public_points, output, values["plot"], values["force"])
    if values["report"] is not None:
        check_new(values["report"], "--report", values["force"])
    described = describe(values["schema"], values["bounds"], values["rows_per_person"])
    points = _points(public_points, described, values["columns"])
    request = read_request("release", values | {"public_points": points}, described)
    if values["dry_run"]:
        _print_plan(request, data, described, as_json=values["as_json"])
        return
    written = _Written(output)

    def show(made: SyntheticData, more: Mapping[str, Any]) -> None:
        written.show(made, more, as_json=values["as_json"])

    answer(
        request,
        [data],
        described,
        Purse(values["ledger"], values["dataset"], values["no_ledger"]),
        as_json=values["as_json"],
        plot=values["plot"],
        report=values["report"],
        about={"file": str(output)},
        keep=written.keep,
        show=show,
        shortened={} if public_points is None else {"public_points": str(public_points)},
    )
    misplaced(written.place, output)


def _print_plan(request: Request, data: Place, described: Schema | None, *, as_json: bool) -> None:
    """Say what would be measured; only the number of rows is taken from the data."""
    from privatest.requests.prepare import prepare  # noqa: PLC0415

    prepared = prepare(request, described, samples=1)
    data.check(prepared.names)
    assert prepared.schema is not None
    rows = data.count(prepared.names)
    given = {name: value for name, value in request.options.items() if value is not None}
    rounds = request.entry.planned_rounds(prepared.schema, rows, request.budget, given)
    if as_json:
        print_json(
            {"rows": rows, "columns": list(prepared.names), "rounds": [*map(asdict, rounds)]}
        )
        return
    page = Page()
    page.line(f"{rows:,} rows of {', '.join(prepared.names)}; {request.budget}.")
    for part in rounds:
        noise = f"{part.sigma:.2g} of the bounds" if not part.groups else f"{part.sigma:.3g} rows"
        size = f", at most {part.groups} groups a column" if part.groups else ""
        page.line(f"  {part.tables} {part.what}{size}: noise ± {noise} ({part.share:.0%})")
    if not rounds:
        page.line("  Weights of points, and no tables.")
    page.line("Nothing was spent.")


class _Written:
    """The file of a release: written before the release is recorded, shown afterwards."""

    def __init__(self, output: Path) -> None:
        self.output = self.place = output
        self.recorded: dict[str, Any] = {}

    def keep(self, made: SyntheticData) -> dict[str, Any]:
        """Write the file, and return what the ledger keeps of it."""
        from privatest.synthetic.storage import summary  # noqa: PLC0415

        self.place = save_paid(made.save, self.output)
        checksum = hashlib.sha256(self.place.read_bytes()).hexdigest()
        self.recorded = summary(made) | {"sha256": checksum}
        return self.recorded

    def show(self, made: SyntheticData, more: Mapping[str, Any], *, as_json: bool) -> None:
        """Print what is public about the release, and where it is."""
        from privatest.display.release_plots import strained  # noqa: PLC0415

        with working("Checking how well the rows represent the data ..."):
            poor = list(strained(made))
        if as_json:
            told = {"file": str(self.place), "poor": poor, "guarantee": made.guarantee}
            print_json(self.recorded | told | dict(more))
            return
        page = Page()
        page.text(made)
        if poor:
            page.line(
                f"Poorly represented: {', '.join(poor)}. Shares and quantiles there have long "
                "bars; release fewer columns, or --public-points where people are."
            )
        place = self.place
        page.line(f"Wrote {place}. Queries cost nothing more: privatest query {place} mean COLUMN")


def _points(
    file: Path | None, described: Schema | None, columns: str | None
) -> dict[str, list[Any]] | None:
    """Return the public rows of a file."""
    if file is None:
        return None
    from privatest.data.files import read_table  # noqa: PLC0415
    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415

    names = None if columns is None else options.read_names(columns, described)
    chosen = chosen_columns(described, names)
    table = read_table(file, list(chosen.columns), text=chosen.categorical_names)
    points: dict[str, list[Any]] = table.to_pydict()
    return points


def _check_files(
    data: Place, public_points: Path | None, output: Path, plot: Path | None, force: bool
) -> None:
    from privatest.methods.shares import check_writable  # noqa: PLC0415

    if public_points is not None and data.same(public_points):
        raise ParameterError("--public-points must not be the private data itself.")
    if data.same(output):
        raise ParameterError("--output must not be the private data itself.")
    if output.suffix.lower() != ".parquet":
        raise ParameterError("--output must end in .parquet.")
    check_new(output, "--output", force)
    check_writable(output)
    if plot is not None:
        check_picture(plot)
        check_new(plot, "--plot", force)
        check_writable(plot)


# --- query ---------------------------------------------------------------------------------------

_ROW_FILES = (".csv", ".parquet", ".arrow", ".feather")

Question = Literal[
    "about",
    "mean",
    "probability",
    "quantile",
    "correlation",
    "regression",
    "compare",
    "rows",
    "plot",
    "report",
]

_FORMS = {
    "about": "",
    "mean": "COLUMN",
    "probability": "CONDITION",
    "quantile": "COLUMN Q",
    "correlation": "COLUMN COLUMN",
    "regression": "TARGET PREDICTOR...",
    "compare": "PUBLIC_FILE",
    "rows": "-o FILE",
    "plot": "-o PICTURE",
    "report": "-o FILE.html",
}
_ENDINGS = {"plot": PICTURES, "rows": _ROW_FILES, "report": (".html",)}
_NO_WHERE = ("about", "compare", "rows", "plot", "report")

ReleaseFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Release, as privatest release wrote it.", show_default=False
    ),
]
QuestionArgument = Annotated[
    Question,
    typer.Argument(
        metavar="QUESTION",
        help="about, mean COLUMN, probability CONDITION, quantile COLUMN Q, correlation COLUMN "
        "COLUMN, regression TARGET PREDICTOR..., compare PUBLIC_FILE, rows -o FILE, plot -o "
        "PICTURE, or report -o FILE.html.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="WORDS", help="What the question is about.", show_default=False),
]
WeightsOption = Annotated[
    Literal["released", "nonnegative"] | None,
    typer.Option(
        "--weights",
        metavar="KIND",
        help="released (as they are), or nonnegative (the nearest that can be probabilities).",
        show_default="nonnegative for probability and quantile, and where those released nearly "
        "cancel; else released",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only rows that satisfy this: conditional means, shares and so on.",
        show_default=False,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Ask for the mean or the probability in every group of a column, with bars that "
        "hold for all groups together.",
        show_default=False,
    ),
]
QueryOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="What plot, report and rows write: a .png, .svg or .pdf picture; an .html page; "
        "rows as .csv, .parquet, .arrow or .feather.",
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "--number",
        metavar="N",
        min=1,
        help="With rows: draw N rows without weights.",
        show_default="the rows of the release with their weights",
    ),
]


def query(
    file: ReleaseFile,
    question: QuestionArgument = "about",
    words: Words = None,
    *,
    where: Where = None,
    by: By = None,
    weights: WeightsOption = None,
    output: QueryOutput = None,
    number: Number = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Ask a release a question. No private data is needed, and nothing is spent.

    Each estimate has an error bar: one standard deviation of the privacy
    noise. Where what was measured does not tell, there are limits instead. A
    condition compares columns with numbers and texts by < <= > >= == != and
    in, joined by and, or, not. With compare, the other file must be PUBLIC:
    what is computed from its rows is not protected.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
      privatest query synthetic.parquet mean visits
      privatest query synthetic.parquet mean visits --where "age < 50"
      privatest query synthetic.parquet quantile visits 0.9
      privatest query synthetic.parquet correlation visits age
    """
    given = _words(question, words or [], output)
    _check_options(question, where, by, weights, number)
    if question in _ENDINGS:
        _check_output(question, output, force)
    parsed = _query(question, given, where, by)

    from privatest.synthetic import SyntheticData  # noqa: PLC0415

    with working("Reading the release ..."):
        made = SyntheticData.load(file)
    if parsed is not None:
        show = print_answer_json if as_json else print_answer
        show(parsed, _estimates(made, parsed, weights), made)
    elif output is not None:
        _write(made, question, output, number)
        print_written(question, output, made, as_json=as_json)
    else:
        print_about(made, as_json=as_json)


def _words(question: Question, words: Sequence[str], output: Path | None) -> list[str]:
    """Refuse a question that has too few or too many words."""
    form = _FORMS[question]
    expected = 0 if question in _ENDINGS else len(form.split())
    if question not in _ENDINGS and output is not None:
        raise ParameterError("--output is for plot, report and rows only.")
    more = question == "regression" and len(words) > expected
    if len(words) != expected and not more:
        raise ParameterError(
            f"write it as: privatest query FILE {question} {form}".rstrip(" .") + "."
        )
    return list(words)


def _check_options(
    question: Question, where: str | None, by: str | None, weights: str | None, number: int | None
) -> None:
    """Refuse options that do not go with the question."""
    from privatest.synthetic.queries import check_options  # noqa: PLC0415

    check_options(
        question,
        where,
        by,
        weights,
        conditional=question not in _NO_WHERE,
        weighted=question not in ("about", *_ENDINGS),
    )
    if number is not None and question != "rows":
        raise ParameterError("--number is for rows only.")


def _check_output(question: Question, output: Path | None, force: bool) -> None:
    endings = _ENDINGS[question]
    if output is None:
        raise ParameterError(f"{question} needs a file to write: -o FILE{endings[0]}.")
    if output.suffix not in endings:
        raise ParameterError(f"--output must end in {', '.join(endings)}.")
    if question == "plot":
        check_picture(output)
    if question == "report" and find_spec("matplotlib") is None:
        raise ParameterError('report needs matplotlib: pip install "privatest[plot]".')
    check_new(output, "--output", force)


def _query(
    question: Question, words: Sequence[str], where: str | None, by: str | None
) -> Query | None:
    """Return the question, if it is one that a release answers alone or beside a public file."""
    from privatest.synthetic.queries import FORMS, Query  # noqa: PLC0415

    if question == "compare":
        return Query(question, tuple(words))
    return Query.parse(question, words, where, by) if question in FORMS else None


def _estimates(made: SyntheticData, query: Query, weights: str | None) -> QueryAnswer:
    """Return the estimates, and what they were made from."""
    from privatest.data.files import check_columns  # noqa: PLC0415
    from privatest.synthetic.queries import QueryAnswer, answer_query  # noqa: PLC0415

    if query.question == "compare":
        check_columns(query.words[0], list(made.columns))
        fitted = made.nonnegative() if weights == "nonnegative" else made
        return QueryAnswer({"": _compare(fitted, query.words[0])}, weights or "released")
    query.check(made)
    return answer_query(made, query, weights, working=working)


def _compare(made: SyntheticData, path: str) -> Estimate:
    """Measure the distance to the rows of a public file."""
    from privatest.data.files import read_table  # noqa: PLC0415

    schema = made.facts.schema
    text = () if schema is None else schema.categorical_names
    rows = read_table(path, list(made.columns), text=text)
    with progress("Comparing", counted=True) as step:
        return made.mmd(rows, progress=step)


def _write(made: SyntheticData, question: Question, path: Path, number: int | None) -> None:
    if question == "plot":
        from privatest.display.release_plots import plot_marginals  # noqa: PLC0415

        with working("Drawing ..."):
            save_picture(plot_marginals(made), path)
    elif question == "report":
        write_report(made, path)
    else:
        made.write(path, number)


_BAR = (
    "The bar is one standard deviation of the privacy noise: the value ± 1.96 bars covers the "
    "private rows' own value with probability .95."
)
_OLD_BAR = (
    "The bar is one standard deviation of the privacy noise. It covers only in part how well the "
    "synthetic rows can represent the data."
)
_SAMPLING = "In brackets: the sampling error of {n:,} rows, which is not in the bar."
_TOGETHER = "Bars and limits hold for all groups together."
_POOR = (
    "Poorly represented: no non-negative weights of these rows match what was released, so the "
    "bar is long. A release of fewer columns, or with --public-points where people are, would "
    "say more."
)
_LIMITS = "The limits hold with probability .95 or more, whatever the data."
_DISTANCE_BAR = (
    "Distances (MMD, in the release's kernel) go from 0, alike, to 1.41. The bar is the size of "
    "the privacy noise: it moves the distance by no more than about that."
)
_FREE = "This query cost nothing."


def print_answer(query: Query, result: QueryAnswer, made: SyntheticData) -> None:
    """Print estimates, and what their bars mean."""
    page = Page()
    estimates = result.estimates
    if list(estimates) == [""]:
        page.line(f"{query.name}: {estimates['']}", style="bold")
    else:
        page.line(f"{query.name}:", style="bold")
        width = max(map(len, estimates))
        for name, estimate in estimates.items():
            page.line(f"  {name:<{width}}  {estimate}")
    every = [*estimates.values()]
    if any(math.isfinite(each.error) for each in every):
        page.line(_bar(query, result))
        if any(math.isfinite(each.sampling) and not each.reason for each in every):
            page.line(_SAMPLING.format(n=made.facts.n))
    for reason in dict.fromkeys(each.reason for each in every if each.reason):
        page.line(f"No bar: {reason}.")
    if any(each.limits is not None for each in every):
        page.line(_LIMITS)
    if query.by is not None:
        page.line(_TOGETHER)
    if any(each.poor for each in every):
        page.line(_POOR)
    if made.facts.simulated:
        page.line(made.facts.guarantee)
    page.line(_FREE)


def _bar(query: Query, result: QueryAnswer) -> str:
    if query.question == "compare":
        return _DISTANCE_BAR
    return _BAR if result.source == "measured" else _OLD_BAR


def print_answer_json(query: Query, result: QueryAnswer, made: SyntheticData) -> None:
    """Print the same as JSON."""
    from privatest.synthetic.queries import describe_answer  # noqa: PLC0415

    print_json(describe_answer(query, result, made))


def print_about(made: SyntheticData, *, as_json: bool) -> None:
    """Print what is public about a release."""
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    document = {"question": "about", "release": summary(made)}
    print_either(as_json, document, *str(made).splitlines())


def print_written(question: str, output: Path, made: SyntheticData, *, as_json: bool) -> None:
    """Say which file was written."""
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    document = {"question": question, "file": str(output), "release": summary(made)}
    print_either(as_json, document, f"Wrote {output}.")


# --- report --------------------------------------------------------------------------------------

Document = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.json", help="What a command printed with --json.", show_default=False
    ),
]
PageOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE.html", help="Where to write the page.")
]


def report(document: Document, *, output: PageOutput, force: options.Force = False) -> None:
    """Write a page about an answer that you have: from its JSON document alone.

    No data is read, and nothing is spent. The page of a release needs its file.

    \b
    Example:
      privatest plan size --effect 0.3 --epsilon 1 --json > answer.json
      privatest report answer.json -o answer.html
    """
    check_new(output, "--output", force)
    check_report(output, option="--output")
    write_report(read_json(document, "what a command printed with --json"), output)
    Page().line(f"Wrote {output}.")
