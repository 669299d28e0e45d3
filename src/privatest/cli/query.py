"""``privatest query``: ask a release for means, probabilities, quantiles and distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.files import PICTURES, check_new, check_picture, save_picture
from privatest.cli.output import Page, print_json, progress, working
from privatest.core.errors import DataError, ParameterError

if TYPE_CHECKING:
    from privatest.synthetic import Estimate, SyntheticData

__all__ = ["query"]

Question = Literal["about", "mean", "probability", "quantile", "compare", "plot"]

_SHARES = ("probability", "quantile")  # signed weights serve these badly
_FORMS = {
    "about": "",
    "mean": "COLUMN",
    "probability": "CONDITION",
    "quantile": "COLUMN Q",
    "compare": "PUBLIC_FILE",
    "plot": "-o PICTURE",
}
_BAR = (
    "The bar is one standard deviation of the privacy noise. It does not cover sampling error, "
    "and only in part how well the synthetic rows can represent the data."
)
_POOR = (
    "Poorly represented: no non-negative weights of these rows match what was released, so the "
    "bar is long. A release of fewer columns, or with --public-points where people are, would "
    "say more."
)
_DISTANCE_BAR = (
    "Distances (MMD, in the release's kernel) go from 0, alike, to 1.41. The bar is the size of "
    "the privacy noise: it moves the distance by no more than about that."
)
_FREE = "This query cost nothing."

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
        help="about, mean COLUMN, probability CONDITION, quantile COLUMN Q, compare PUBLIC_FILE, "
        "or plot -o PICTURE.",
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
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Picture of plot: a .png, .svg or .pdf file."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a picture that is there.")]


def query(
    file: ReleaseFile,
    question: QuestionArgument = "about",
    words: Words = None,
    *,
    weights: WeightsOption = None,
    output: Output = None,
    force: Force = False,
    as_json: options.Json = False,
) -> None:
    """Ask a release a question. No private data is needed, and nothing is spent.

    Each estimate has an error bar: one standard deviation of the privacy
    noise. A condition compares columns with numbers and texts by < <= > >= ==
    != and in, joined by and, or, not. With compare, the other file must be
    PUBLIC: what is computed from its rows is not protected.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
      privatest query synthetic.parquet mean visits
      privatest query synthetic.parquet probability "visits > 10 and age < 50"
      privatest query synthetic.parquet quantile visits 0.9
    """
    given = _words(question, words or [], output)
    if weights is not None and question in ("about", "plot"):
        raise ParameterError(f"--weights does not go with {question}.")
    if question == "plot":
        if output is None:
            raise ParameterError("plot needs a file for the picture: -o FILE.png.")
        if output.suffix not in PICTURES:
            raise ParameterError(f"--output must end in {', '.join(PICTURES)}.")
        check_picture(output)
        check_new(output, "--output", force)

    from privatest.synthetic import SyntheticData  # noqa: PLC0415

    with working("Reading the release ..."):
        made = SyntheticData.load(file)
    _check(made, question, given)
    if question == "about":
        _print_about(made, as_json=as_json)
    elif question == "plot" and output is not None:
        _draw(made, output)
        _print_written(output, made, as_json=as_json)
    else:
        chosen = weights or ("nonnegative" if question in _SHARES else "released")
        estimate, used = _asked(made, question, given, chosen, strict=weights is not None)
        if as_json:
            _print_json(estimate, question, given, used, made)
        else:
            _print_estimate(estimate, question, given, made)


def _words(question: Question, words: Sequence[str], output: Path | None) -> list[str]:
    """Refuse a question that has too few or too many words."""
    form = _FORMS[question]
    if question == "plot":
        expected = 0
    else:
        expected = len(form.split())
        if output is not None:
            raise ParameterError("--output is for plot only.")
    if len(words) != expected:
        raise ParameterError(f"write it as: privatest query FILE {question} {form}".rstrip() + ".")
    if question == "quantile":
        _share(words[1])
    return list(words)


def _check(made: SyntheticData, question: Question, words: Sequence[str]) -> None:
    """Refuse what cannot be answered before weights are looked for, which takes seconds."""
    from privatest.data.sources import check_columns  # noqa: PLC0415
    from privatest.synthetic.conditions import number_column, selected  # noqa: PLC0415

    if question in ("mean", "quantile"):
        number_column(words[0], made.columns)
    elif question == "probability":
        selected(words[0], made.columns)
    elif question == "compare":
        check_columns(words[0], list(made.columns))


def _asked(
    made: SyntheticData, question: Question, words: Sequence[str], weights: str, *, strict: bool
) -> tuple[Estimate, SyntheticData]:
    """Return the estimate, and the release with the weights it was made with."""
    if weights == "nonnegative":
        with working("Looking for weights that are not negative ..."):
            fitted = made.nonnegative()
        return _answer(fitted, question, words), fitted
    try:
        return _answer(made, question, words), made
    except DataError:  # the weights nearly cancel; the message speaks of functions
        if question == "compare":
            raise
        if strict:
            raise DataError(
                "the weights nearly cancel: there is more noise than signal; try --weights "
                "nonnegative."
            ) from None
    return _asked(made, question, words, "nonnegative", strict=strict)


def _answer(made: SyntheticData, question: Question, words: Sequence[str]) -> Estimate:
    answers: dict[str, Callable[..., Estimate]] = {
        "mean": made.mean,
        "probability": made.probability,
        "quantile": lambda column, q: made.quantile(column, _share(q)),
        "compare": lambda path: _compare(made, path),
    }
    return answers[question](*words)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:  # also NaN
        hint = f": {share / 100:g} is the {share:g}% quantile" if 1 < share <= 100 else ""
        raise ParameterError(f"Q must be a number between 0 and 1{hint}.")
    return share


def _compare(made: SyntheticData, path: str) -> Estimate:
    """Measure the distance to the rows of a public file."""
    from privatest.data.sources import read_table  # noqa: PLC0415

    schema = made.facts.schema
    text = () if schema is None else schema.categorical_names
    rows = read_table(path, list(made.columns), text=text)
    with progress("Comparing", counted=True) as step:
        return made.mmd(rows, progress=step)


def _print_json(
    estimate: Estimate,
    question: Question,
    words: Sequence[str],
    used: SyntheticData,
    made: SyntheticData,
) -> None:
    document: dict[str, Any] = {
        "question": question,
        "words": list(words),
        "value": estimate.value,
        # a release without draws has no error bar, and JSON no word for that but null
        "error": estimate.error if math.isfinite(estimate.error) else None,
        "misfit": estimate.misfit,
        "poor": bool(estimate.poor),
        "weights": "released" if used is made else "nonnegative",
        "release": _facts(made),
    }
    print_json(document)


def _print_estimate(
    estimate: Estimate, question: Question, words: Sequence[str], made: SyntheticData
) -> None:
    page = Page()
    page.line(f"{_name(question, words)}: {estimate}", style="bold")
    page.line(_DISTANCE_BAR if question == "compare" else _BAR)
    if estimate.poor:
        page.line(_POOR)
    if made.facts.simulated:
        page.line(made.facts.guarantee)
    page.line(_FREE)


def _name(question: Question, words: Sequence[str]) -> str:
    if question == "quantile":
        return f"{words[1]} quantile of {words[0]}"
    forms = {"mean": "mean of {}", "probability": "probability of {}", "compare": "distance to {}"}
    return forms[question].format(words[0])


def _print_about(made: SyntheticData, *, as_json: bool) -> None:
    if as_json:
        print_json({"question": "about", "release": _facts(made)})
        return
    page = Page()
    for line in str(made).splitlines():
        page.line(line)


def _print_written(output: Path, made: SyntheticData, *, as_json: bool) -> None:
    if as_json:
        document = {"question": "plot", "file": str(output), "release": _facts(made)}
        print_json(document)
    else:
        Page().line(f"Wrote {output}.")


def _facts(made: SyntheticData) -> dict[str, Any]:
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    return summary(made)


def _draw(made: SyntheticData, path: Path) -> None:
    from privatest.plots.marginals import plot_marginals  # noqa: PLC0415

    with working("Drawing ..."):
        save_picture(plot_marginals(made), path)
