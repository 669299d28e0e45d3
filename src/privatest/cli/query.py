"""``privatest query``: ask a release for means, shares, quantiles, correlations, distances."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privatest.cli import options
from privatest.cli.files import (
    PICTURES,
    check_new,
    check_picture,
    save_picture,
    write_report,
)
from privatest.cli.output import progress, working
from privatest.cli.query_output import (
    print_about,
    print_answer,
    print_answer_json,
    print_written,
)
from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from privatest.synthetic import Estimate, SyntheticData
    from privatest.synthetic.queries import Query, QueryAnswer

__all__ = ["query"]

ROW_FILES = (".csv", ".parquet", ".arrow", ".feather")

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
_ENDINGS = {"plot": PICTURES, "rows": ROW_FILES, "report": (".html",)}
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
Output = Annotated[
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
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def query(
    file: ReleaseFile,
    question: QuestionArgument = "about",
    words: Words = None,
    *,
    where: Where = None,
    by: By = None,
    weights: WeightsOption = None,
    output: Output = None,
    number: Number = None,
    force: Force = False,
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
    asked = _asked(question, given, where, by)

    from privatest.synthetic import SyntheticData  # noqa: PLC0415

    with working("Reading the release ..."):
        made = SyntheticData.load(file)
    if asked is not None:
        show = print_answer_json if as_json else print_answer
        show(asked, _found(made, asked, weights), made)
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
        mark="--",
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


def _asked(
    question: Question, words: Sequence[str], where: str | None, by: str | None
) -> Query | None:
    """Return the question, if it is one that a release answers alone or beside a public file."""
    from privatest.synthetic.queries import FORMS, Query  # noqa: PLC0415

    if question == "compare":
        return Query(question, tuple(words))
    return Query.parse(question, words, where, by) if question in FORMS else None


def _found(made: SyntheticData, asked: Query, weights: str | None) -> QueryAnswer:
    """Return the estimates, and what they were made from."""
    from privatest.data.sources import check_columns  # noqa: PLC0415
    from privatest.synthetic.queries import QueryAnswer, answer_query  # noqa: PLC0415

    if asked.question == "compare":
        check_columns(asked.words[0], list(made.columns))
        fitted = made.nonnegative() if weights == "nonnegative" else made
        return QueryAnswer({"": _compare(fitted, asked.words[0])}, weights or "released")
    asked.check(made)
    return answer_query(made, asked, weights, mark="--", working=working)


def _compare(made: SyntheticData, path: str) -> Estimate:
    """Measure the distance to the rows of a public file."""
    from privatest.data.sources import read_table  # noqa: PLC0415

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
