"""``privatest release``: publish private synthetic rows once, for any number of questions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.cli import options
from privatest.cli.asking import describe, public_words
from privatest.cli.output import Page, print_json, working
from privatest.cli.pictures import check_picture
from privatest.cli.release_options import (
    Bandwidth,
    Columns,
    Delta,
    Force,
    Kernel,
    MethodOption,
    Output,
    Picture,
    Points,
    PublicPoints,
    WeightsOption,
)
from privatest.cli.released import check_new, draw, facts, misplaced, progress, save_paid
from privatest.cli.spending import (
    DatasetOption,
    LedgerOption,
    NoLedger,
    Purse,
    spending,
)
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import number

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.schema import Schema
    from privatest.synthetic import SyntheticData

__all__ = ["release"]

_FEW = 20  # points of a rehearsal


def release(
    data: options.DataFile,
    *,
    columns: Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    public_points: PublicPoints = None,
    epsilon: options.Epsilon,
    delta: Delta,
    rows_per_person: options.RowsPerPerson = None,
    points: Points = None,
    method: MethodOption = "subspace",
    weights: WeightsOption = None,
    kernel: Kernel = "gaussian",
    bandwidth: Bandwidth = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    output: Output,
    plot: Picture = None,
    force: Force = False,
    as_json: options.Json = False,
) -> None:
    """Publish synthetic rows that represent the private ones.

    You pay once. Anyone may then query the synthetic rows for means,
    probabilities, quantiles and distances with `privatest query`, or train
    models on them, at no further cost. Columns are described by --bounds or
    by a schema; fewer columns make a better release.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
    """
    purse, budget = Purse(ledger, dataset, no_ledger), _budget(epsilon, delta)
    _check_choices(method, weights, bandwidth)
    _check_files(data, public_points, output, plot, force)

    from privatest.questions.prepare import chosen_columns  # noqa: PLC0415

    names = None if columns is None else options.read_names(columns)
    described = chosen_columns(describe(schema, bounds or [], rows_per_person), names)
    with working("Reading the data ..."):
        rows = _read(data, described)
        given = None if public_points is None else _read(public_points, described)
    # a mistake that can be found out before should not cost anything
    _check_points(given, points, rows.num_rows, described)
    settings: dict[str, Any] = {
        "bounds": described,
        "public_points": given,
        "n_points": points,
        "method": method,
        "weights": weights,
        "kernel": kernel,
        "bandwidth": bandwidth,
    }
    asked = public_words("release", budget, [data], described, **_told(settings, public_points))
    with spending(
        purse,
        budget,
        [data],
        gaussian=True,
        rehearsal=lambda: _rehearse(rows.num_rows, budget, settings),
        asked=asked,
    ) as record:
        made = _publish(rows, budget, settings)
        place = save_paid(made.save, output)
        checksum = hashlib.sha256(place.read_bytes()).hexdigest()
        receipt = record(facts(made) | {"sha256": checksum})
    with receipt.shown(as_json=as_json):
        if as_json:
            told: dict[str, Any] = {"file": str(place), "sha256": checksum, "poor": _strained(made)}
            told |= {"guarantee": made.facts.guarantee, "request": asked, "files": [str(data)]}
            print_json(facts(made) | told | {"ledger": receipt.to_list()})
        else:
            _print(made, place)
    misplaced(place, output)
    if plot is not None:
        draw(made, plot)


def _told(settings: dict[str, Any], points: Path | None) -> dict[str, Any]:
    """Return the settings in words: tables by the names of their files."""
    words = {name: settings[name] for name in ("method", "weights", "kernel", "bandwidth")}
    public = None if points is None else str(points)
    return words | {"points": settings["n_points"], "public_points": public}


def _rehearse(n: int, budget: Budget, settings: dict[str, Any]) -> None:
    """Release a few made-up rows; how many points fit has been checked."""
    from privatest.questions.rehearsal import made_up_rows, rehearse_call  # noqa: PLC0415
    from privatest.synthetic import release as publish  # noqa: PLC0415

    schema, given = settings["bounds"], settings["public_points"]
    few: dict[str, Any] = {"public_points": given.slice(0, _FEW)} if given is not None else {}
    points = settings["n_points"]
    if given is None or points is not None:
        few["n_points"] = min(_FEW, n if points is None else points)
    few |= {"epsilon": budget.epsilon, "delta": budget.delta}
    with working("Rehearsing on made-up rows ..."):
        rehearse_call(
            lambda m: publish(made_up_rows(schema.columns, schema, m), **(settings | few)), [n]
        )


def _publish(rows: pa.Table, budget: Budget, settings: dict[str, Any]) -> SyntheticData:
    from privatest.synthetic import release as publish  # noqa: PLC0415

    with progress("Releasing", settings["method"] == "features") as step:
        told = None if step is None else lambda done, steps: step(done / steps)
        cost: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        return publish(rows, **cost, **settings, progress=told)


def _print(made: SyntheticData, output: Path) -> None:
    page = Page()
    for line in str(made).splitlines():
        page.line(line)
    _print_strained(made, page)
    page.line(f"Wrote {output}. Queries cost nothing more: privatest query {output} mean COLUMN")


def _strained(made: SyntheticData) -> list[str]:
    """Return columns that the synthetic rows cannot represent."""
    from privatest.plots.marginals import strained  # noqa: PLC0415

    with working("Checking how well the rows represent the data ..."):
        return list(strained(made))


def _print_strained(made: SyntheticData, page: Page) -> None:
    if poor := _strained(made):
        page.line(
            f"Poorly represented: {', '.join(poor)}. Shares and quantiles there have long bars; "
            "release fewer columns, or --public-points where people are."
        )


def _budget(epsilon: str, delta: str) -> Budget:
    budget = Budget(epsilon, delta)
    if budget.delta == 0:
        raise ParameterError(
            "delta must be above 0: synthetic data needs Gaussian noise on many coefficients, "
            "which is not private for any epsilon alone. Choose delta well below 1 divided by "
            "the number of rows, for example 1e-6."
        )
    return budget


def _check_choices(method: str, weights: str | None, bandwidth: float | None) -> None:
    if method == "features" and weights == "signed":
        raise ParameterError("--weights signed needs --method subspace.")
    if bandwidth is not None:
        number("bandwidth", bandwidth, above=0)


def _check_files(
    data: Path, public_points: Path | None, output: Path, plot: Path | None, force: bool
) -> None:
    from privatest.shares.document import check_writable  # noqa: PLC0415

    if public_points is not None and _same(public_points, data):
        raise ParameterError("--public-points must not be the private data itself.")
    if _same(output, data):
        raise ParameterError("--output must not be the private data itself.")
    if output.suffix.lower() != ".parquet":
        raise ParameterError("--output must end in .parquet.")
    check_new(output, "--output", force)
    check_writable(output)
    if plot is not None:
        check_picture(plot)
        check_new(plot, "--plot", force)
        check_writable(plot)


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _read(path: Path, described: Schema) -> pa.Table:
    from privatest.data.sources import read_table  # noqa: PLC0415

    return read_table(path, list(described.columns), text=described.categorical_names)


def _check_points(given: Any, points: int | None, n: int, described: Schema) -> None:
    from privatest.data.encoding import encode_sample  # noqa: PLC0415
    from privatest.synthetic.points import check_points, check_size  # noqa: PLC0415

    if points is not None:
        check_size(points, n)
    if given is not None:
        check_points(encode_sample(given, described, "--public-points").rows, n)
