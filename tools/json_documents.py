"""What commands print with ``--json``, as a JSON Schema: the one place where it is written down.

``python -m tools.json_reference`` makes the schema's file and the reference page from it.
"""

from __future__ import annotations

from typing import Any

from privatest.core.results import LEVELS

Schema = dict[str, Any]


def _of(kind: str | list[str], about: str, **more: Any) -> Schema:
    return {"type": kind, **more, "description": about}


def _text(about: str, *choices: str) -> Schema:
    return _of("string", about, **({"enum": list(choices)} if choices else {}))


def _list(about: str, items: Schema | None = None) -> Schema:
    return _of("array", about, items=items or {"type": "string"})


def _decimal(about: str) -> Schema:
    return _text(f"{about} (exact decimal)")


def _number(about: str) -> Schema:
    return _of("number", about)


def _count(about: str) -> Schema:
    return _of("integer", about)


def _true(about: str) -> Schema:
    return _of("boolean", about)


def _table(about: str) -> Schema:
    return _of("object", about)


def _part(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(about: str, needed: Schema, optional: Schema | None = None) -> Schema:
    properties = {**needed, **(optional or {})}
    return _of("object", about, properties=properties, required=list(needed))


def _document(about: str, needed: Schema, optional: Schema | None = None) -> Schema:
    version = {"const": 1, "description": "Version of the format."}
    return _object(about, {"format": version, **needed}, optional)


_NUMBERS: Schema = {"type": "array", "items": {"type": "number"}}
_COST = {"epsilon": _number("Epsilon spent."), "delta": _number("Delta spent.")}
_SIMULATED = {"simulated": _true("True if the noise was simulated: no privacy.")}
_GUARANTEE = {"guarantee": _text("The sentence on privacy.")}
_HIDDEN = {
    "adjacency": _text("Which data sets cannot be told apart.", "one", "both", "row"),
    "unit": _text("What is hidden: a row, or a person with at most k rows."),
}
_IDENTIFIED = {
    "rows_per_person": _count("The most rows that one person has, as declared."),
    "method_id": _text(
        "The function of the library, and after a slash which of its tests; it never changes."
    ),
}
_PAID = {
    "request": _table(
        "The request in full: question, method, columns, groups, options, epsilon and delta."
    ),
    "files": _list("The files that were read."),
    "ledger": _list("The data sets that were charged; empty with --no-ledger.", _part("line")),
}
_DESCRIBED = {
    "schema": _text("The columns that were used, as TOML; absent where none was described.")
}
_RESULT = {
    "reject": _true("Whether the hypothesis is rejected at level alpha."),
    "alpha": _number("The level."),
    **_COST,
    **_HIDDEN,
    "method": _text("The test, in words."),
    "null_hypothesis": _text("What was tested, in words."),
    "sizes": _table("Public sizes: n and m, or N where groups are private."),
    "parameters": _table("Public parameters of the test, by name."),
    **_SIMULATED,
    "verdict": _text("The sentence a statistician would write."),
    **_GUARANTEE,
}
_OUTCOME = {
    "pvalue": _number("The private p-value; absent where only a decision was released."),
    "statistic": _of(["number", "null"], "The private statistic, or null if there is none."),
    "statistic_name": _text(
        "What the statistic is; absent where it is the one that the method is known for."
    ),
    "estimates": _table("Private estimates, by name: numbers, lists or matrices."),
    "estimated": _text("What the interval among them is about; empty without one."),
    **_IDENTIFIED,
    "level": _text(
        "How the level is known: proved for every sample size, or measured in simulations.",
        *LEVELS,
    ),
    "interval_widening": _number(
        "How many times as wide noise makes the interval; absent where unknown or without an end."
    ),
    "noise_note": _text("What noise does to the p-value and to the interval, in words."),
}
_NOISE = {
    "noise_to_chance": _number(
        "Noise over sampling error in the p-value, from public sizes and the budget alone; absent "
        "where unknown."
    )
}
_COMPARED = {"compared": _text("What was compared with what.")}
_EACH = {
    "columns": _of(
        "object",
        "The test of each column, with its adjusted p-value.",
        additionalProperties=_part("column-test"),
    ),
    "order": _list("The columns as they were asked for."),
    "adjustment": _text("How p-values were adjusted.", "holm", "bonferroni", "bh", "by"),
    **_COST,
    **_SIMULATED,
    **_GUARANTEE,
}
_PUBLISHED = {
    "rows": _count("Synthetic rows."),
    "columns": _list("Their columns."),
    "n": _count("Number of private rows that they represent; public."),
    **_COST,
    **_HIDDEN,
    "method": _text("How they were made."),
    "bandwidth": _of(["number", "null"], "Of the kernel."),
    "parameters": _table("Public parameters, by name."),
    **_SIMULATED,
}
_MEANS = {
    "estimated": _text("What the means are.", "mean", "share"),
    "mean": _list("Private means.", {"type": "number"}),
    "lower": _list("Lower ends of the intervals.", {"type": "number"}),
    "upper": _list("Upper ends of the intervals.", {"type": "number"}),
    "covariance": _list("Private covariance.", _NUMBERS),
    "region_shape": _list("Shape of the elliptic confidence region.", _NUMBERS),
    "region_radius": _number("Its radius."),
    "region_centre": _of(
        ["array", "null"],
        "Its centre, the means before they were cut to the bounds; null if these are the same.",
        items={"type": "number"},
    ),
    "confidence": _number("Simultaneous confidence of the intervals."),
    **_COST,
    "n": _count("Rows; public."),
    "columns": _list("The columns, in the order of the means."),
    "unit": _HIDDEN["unit"],
    **_SIMULATED,
}
_QUANTILE = {
    "quantile": _number("The private quantile."),
    "lower": _number("Lower end of its interval."),
    "upper": _number("Upper end of its interval."),
    "q": _number("Which quantile: 0.5 is the median."),
    "confidence": _number("Level of the interval."),
    **_COST,
    "n": _count("Rows; public."),
    "column": _of(["string", "null"], "The column; null if it has no name."),
    "unit": _HIDDEN["unit"],
    **_SIMULATED,
}
_ASKED = {
    "words": _list("What it was about."),
    "where": _of(["string", "null"], "The condition on rows; null for all rows."),
    "by": _of(["string", "null"], "The column of the groups; null without groups."),
    "weights": _text(
        "What the answer was made from: what was measured, or the rows' weights.",
        "measured",
        "released",
        "nonnegative",
    ),
    "release": _part("published"),
}
_ESTIMATE = {
    "value": _of(["number", "null"], "The estimate."),
    "error": _of(["number", "null"], "Standard deviation of the noise; null if there is no bar."),
    "sampling": _of(["number", "null"], "Standard deviation of the sampling error, not in error."),
    "limits": _of(
        ["array", "null"],
        "Without a bar: the value lies between these with probability .95 or more.",
    ),
    "reason": _of(["string", "null"], "Why there is no bar."),
    "misfit": _of(["number", "null"], "Bound on the error because rows represent others."),
    "poor": _true("Whether that is most of the error."),
}
_CURATED = {
    "dataset": _text("What was asked about."),
    "id": _of(["string", "null"], "Entry of the ledger; null if it is from the record."),
    "recorded": _true("Whether it came from the record, at no cost."),
}
_BUDGET = {"epsilon": _decimal("Whole budget"), "delta": _decimal("Whole budget")}
_LEFT = {
    "left": _table("What is left of each limit, by name, as exact decimals."),
    "used": _number("Share of the budget that is gone, from 0 to 1."),
}
_HEADS = {
    "heads": _of(
        "object",
        "End of each data set's chain, by name.",
        additionalProperties=_part("head"),
    )
}
_TOTALS = {
    "dataset": _text("Its name."),
    "composition": _text("Which sums decide.", "basic", "tight", "equal"),
    **_BUDGET,
    "limits": _table("Sums that may not be passed, by name, as exact decimals."),
    "spent": _part("spent"),
    **_LEFT,
    "closed": _true("Whether nothing is granted any more."),
    "parts": _table("What was spent on each part of the partition."),
    "analysts": _table("The same for each analyst."),
    "each": _of(["object", "null"], "What every request costs, if all must cost the same."),
    "partition": _list("The public parts."),
    "schema_digest": _text("Digest of the schema, or nothing."),
    "head": _part("head"),
    "time": _text("Time of the last entry, UTC."),
}

TESTS = {
    "test": _document(
        "Of `two-sample`, `independence`, `paired`, `fit` and `demo`.",
        {**_RESULT, **_COMPARED, **_PAID},
        _OUTCOME | _NOISE | _DESCRIBED,
    ),
    "tests": _document(
        "Of `two-sample --each-column`.",
        {
            **_EACH,
            **_COMPARED,
            **_PAID,
        },
        _DESCRIBED,
    ),
    "comparison": _document(
        "Of `compare`, with two shares.",
        {**_RESULT, **_COMPARED, "shares": _list("The two files.")},
        _OUTCOME,
    ),
    "comparisons": _document(
        "Of `compare`, with more than two shares.",
        {"pairs": _list("Each pair, with p-values corrected for all (Holm).", _part("pair"))},
    ),
    "curator-answer": _document(
        "Of `curator run`, for a test.",
        {
            **_RESULT,
            **_COMPARED,
            **_CURATED,
        },
        _OUTCOME | _NOISE,
    ),
    "curator-tests": _document(
        "Of `curator run`, for a test of each column.", {**_EACH, **_COMPARED, **_CURATED}
    ),
    "study": _document(
        "Of `plan power`, `plan size` and `plan epsilon`. No data is read, no budget spent.",
        {
            "wanted": _text("What was asked for.", "power", "n", "effect", "epsilon"),
            "sentence": _text("The answer in words."),
            "question": _text("What would be asked of data."),
            "test": _text("The method."),
            "kind": _text("What is assumed to differ."),
            "n": _list("People in each group, or in all.", {"type": "integer"}),
            "effect": _number("How large the effect is."),
            "epsilon": _number("Epsilon of the test."),
            "delta": _number("Delta of the test."),
            "alpha": _number("Its level."),
            "membership": _text("Whether groups are public.", "public", "private"),
            "power": _number("Expected power."),
            "low": _of(["number", "null"], "Lower end of its 95% interval, if simulated."),
            "high": _of(["number", "null"], "Upper end."),
            "target": _of(["number", "null"], "The power that was asked for."),
            "without_noise": _of(["integer", "null"], "People needed without noise."),
            "price": _of(["number", "null"], "People needed, over those without noise."),
            "noise_ratio": _of(["number", "null"], "Noise over sampling error."),
            "source": _text("Tables with their date, or simulation with its runs."),
            "curve": _list("Values of what was asked for, with their power.", _NUMBERS),
            "curve_without_noise": _list("The same without noise, from the tables.", _NUMBERS),
            "band": _list("Interval of the power at each point of a simulated curve.", _NUMBERS),
        },
    ),
    "study-recommendation": _document(
        "Of `plan recommend`. No data is read, no budget spent.",
        {
            "question": _text("What would be asked of data."),
            "membership": _text("Whether groups are public.", "public", "private"),
            "sizes": _list("People in each group, or in all.", {"type": "integer"}),
            "epsilon": _number("Epsilon of the test."),
            "delta": _number("Delta of the test."),
            "alpha": _number("Its level."),
            "looking_for": _text("What is assumed to differ."),
            "effect": _of(["number", "null"], "How large the effect is."),
            "choices": _list("Tests that fit, the most powerful first.", _part("choice")),
            "excluded": _table("Methods that do not fit, and why."),
            "source": _text("Where powers are from."),
        },
    ),
    "check": _document(
        "Of `check`. It is not private.",
        {
            "file": _text("The file."),
            "rows": _count("Its rows."),
            "fits": _true("Whether all columns fit their description."),
            "columns": _list("Each column, and what is wrong with it.", _part("checked")),
        },
    ),
    "price": _document(
        "Of `curator price`, and of `curator run --dry-run`.",
        {
            "dataset": _text("The data set."),
            "epsilon": _number("Epsilon it would cost."),
            "delta": _number("Delta it would cost."),
            "part": _of(["string", "null"], "The part that is charged; null is all of the data."),
            "affordable": _true("Whether the budgets have that left."),
            "recorded": _true("Whether the answer is recorded already, so that it is free."),
        },
    ),
    "calibration": _document(
        "Of `curator calibrate`.",
        {
            "date": _text("When it was measured."),
            "machine": _table("Where: processors, and the version of Python."),
            "datasets": _table(
                "By data set and question/method: the longest `seconds` of a request on made-up "
                "rows, and its `response_time`."
            ),
        },
    ),
}
ESTIMATES = {
    "mean": _document(
        "Of `mean`; a share is the mean of outcomes 0 and 1.",
        {
            **_MEANS,
            **_GUARANTEE,
            **_PAID,
        },
        _DESCRIBED | _IDENTIFIED,
    ),
    "quantile": _document(
        "Of `mean --q`.",
        {
            **_QUANTILE,
            **_GUARANTEE,
            **_PAID,
        },
        _DESCRIBED | _IDENTIFIED,
    ),
    "release": _document(
        "Of `release`.",
        {
            **_PUBLISHED,
            "file": _text("The file that was written."),
            "sha256": _text("Its checksum."),
            "poor": _list("Columns that the rows represent poorly."),
            **_GUARANTEE,
            **_PAID,
        },
        _DESCRIBED,
    ),
    "curator-mean": _document(
        "Of `curator run`, for means.", {**_MEANS, **_GUARANTEE, **_CURATED}, _IDENTIFIED
    ),
    "curator-quantile": _document(
        "Of `curator run`, for a quantile.", {**_QUANTILE, **_GUARANTEE, **_CURATED}, _IDENTIFIED
    ),
    "curator-release": _document(
        "Of `curator run`, for a release. `privatest query` reads it as a .json file.",
        {
            **_PUBLISHED,
            "parquet": _text("The file that `privatest release` would write, in base64."),
            **_GUARANTEE,
            **_CURATED,
        },
    ),
    "query": _document(
        "Of `query` with mean, probability, quantile, correlation or compare.",
        {
            "question": _text(
                "What was asked.", "mean", "probability", "quantile", "correlation", "compare"
            ),
            **_ASKED,
            **_ESTIMATE,
        },
    ),
    "query-several": _document(
        "Of `query` with regression or --by: an estimate for each predictor or group.",
        {
            "question": _text("What was asked.", "mean", "probability", "regression"),
            **_ASKED,
            "estimates": _list(
                "The parts of an estimate as in `query`, and its name.", {"type": "object"}
            ),
        },
    ),
    "query-about": _document(
        "Of `query` with about, rows, plot or report.",
        {
            "question": _text("What was asked.", "about", "rows", "plot", "report"),
            "release": _part("published"),
        },
        {"file": _text("The file that was written.")},
    ),
    "plan": _document(
        "Of `plan-share`.",
        {
            "file": _text("The file that was written."),
            "plan": _text("Digest of the plan."),
            "columns": _list("Descriptions of the columns.", {"type": "object"}),
            "rows_per_person": _count("The most rows of one person."),
            "features": _text("What is averaged.", "mean embedding", "characteristic function"),
            "kernel": _of(["string", "null"], "The kernel; null for waves."),
            "bandwidth": _of(["number", "null"], "Its width."),
            "epsilon": _decimal("What a share costs"),
            "delta": _decimal("What a share costs"),
            "balance": _number("Noise on second moments by noise on means."),
        },
        {
            "locations": _list("Points, in encoded units.", _NUMBERS),
            "frequencies": _list("Waves, in encoded units.", _NUMBERS),
        },
    ),
    "share": _document(
        "Of `share`.",
        {
            "share": _text("Checksum of the share."),
            "plan": _text("Digest of the plan."),
            "n": _count("Rows; public."),
            **_COST,
            "columns": _list("The columns."),
            "file": _text("The file that was written."),
            **_GUARANTEE,
            **_PAID,
        },
    ),
}
LEDGER = {
    "ledger-budget": _document(
        "Of `ledger init` and `ledger set`.",
        _TOTALS,
        {"before": _table("The budget before it was changed.")},
    ),
    "ledger-show": _document(
        "Of `ledger show`.",
        {"datasets": _list("All data sets, or the one that was named.", _part("totals"))},
    ),
    "ledger-history": _document(
        "Of `ledger history`.",
        {"dataset": _text("Its name."), "entries": _list("The newest first.", _part("entry"))},
    ),
    "ledger-answer": _document(
        "Of `ledger answer`.",
        {
            "id": _text("Id of the request."),
            "dataset": _text("What was asked about."),
            "analyst": _of(["string", "null"], "Who asked; null is the custodian."),
            "sequence": _count("Place in the chain."),
            "time": _text("UTC."),
            "state": _text("What became of it.", "committed", "failed", "open"),
            "epsilon": _decimal("What it cost"),
            "delta": _decimal("What it cost"),
            "asked": _of(["object", "null"], "The request; null where it was not recorded."),
            "released": {"description": "What its command recorded; null if nothing was."},
            "reason": _text("Why it failed."),
        },
    ),
    "ledger-verify": _document(
        "Of `ledger verify`.",
        {
            "verified": {"const": True, "description": "Else the command ends with an error."},
            **_HEADS,
            "compared": _list("Data sets that were compared with earlier heads."),
            "log": _true("Whether entries are in a log beside the file, which cp forgets."),
        },
    ),
    "ledger-backup": _document(
        "Of `ledger backup`.",
        {"file": _text("The copy."), "entries": _count("How many."), **_HEADS},
    ),
    "ledger-restore": _document(
        "Of `ledger restore`.",
        {
            **_HEADS,
            "lost": _table("What the backup lacked, by data set: heads, entries, what was spent."),
            "unknown": _true("Whether there was nothing to compare with."),
            "kept": _of(["string", "null"], "The ledger that was replaced, if there was one."),
        },
    ),
    "ledger-head": _document(
        "Of `ledger head`.",
        {**_HEADS, "file": _of(["string", "null"], "The file to which a line was added.")},
    ),
    "ledger-export": _document(
        "Of `ledger export`.",
        {"file": _text("The file that was written."), "entries": _count("How many.")},
    ),
}
_TOKEN = {
    "id": _text("What it is called when it is revoked."),
    "name": _text("Whose it is."),
    "scopes": _list("What it opens."),
    "created": _text("UTC."),
    "expires": _text("UTC."),
    "revoked": _of(["string", "null"], "When it was revoked; null if it was not."),
}
SERVICE = {
    "curator-token": _document(
        "Of `curator token`.", {"token": _text("The token, shown this once."), **_TOKEN}
    ),
    "curator-tokens": _document(
        "Of `curator tokens`.", {"items": _list("Tokens.", _part("token"))}
    ),
    "curator-revoked": _document(
        "Of `curator revoke-token`.",
        {"id": _text("Of the token."), "revoked": _true("That it opens nothing any more.")},
    ),
    "curator-facts": _document(
        "Of `curator facts`, in the terms of NIST SP 800-226.",
        {
            "dataset": _text("Its name."),
            "unit_of_privacy": _text("What one person can change."),
            "rows_per_person": _count("The most rows of one person."),
            "model": _text("Who is trusted."),
            "epsilon": _decimal("What all answers together may cost"),
            "delta": _decimal("What all answers together may cost"),
            "period": _text("How long that holds."),
            "composition": _text("How costs add up."),
            "share_spent": _number("Share of the budget that is spent."),
            "largest_epsilon_of_one_answer": _decimal("By the policy"),
            "mechanisms": _table("Kinds of noise, by question."),
            "methods": _list("What is offered."),
            "public": _list("What is treated as public."),
            "noise": _text("Where it comes from."),
            "side_channels": _text("What is done about time."),
            "record": _text("What is kept."),
            "not_covered": _text("What no such guarantee says."),
        },
    ),
}
AUDIT = {
    "audit": _document("Of `audit`.", {"audited": _list("Tests.", _part("audited"))}),
}
DOCUMENTS = TESTS | ESTIMATES | LEDGER | SERVICE | AUDIT
PARTS = {
    "checked": _object(
        "A column.",
        {
            "name": _text("Its name."),
            "problem": _of(["string", "null"], "What does not fit; null if it does."),
        },
    ),
    "line": _object(
        "A data set that was charged.",
        {
            "dataset": _text("Its name in the ledger."),
            "entry": _text("Id: `privatest ledger answer ID` prints the answer again."),
            "budget": _object("The whole budget.", _BUDGET),
            "spent": _part("spent"),
            **_LEFT,
        },
    ),
    "spent": _object(
        "Sums over all requests, this one included.",
        {
            "epsilon": _decimal("Sum of epsilons"),
            "delta": _decimal("Sum of deltas"),
            "rho": _decimal("Sum under zCDP"),
            "rho_delta": _decimal("Deltas that zCDP needs besides"),
            "events": _count("Number of requests."),
        },
    ),
    "column-test": _object(
        "The test of one column.",
        {k: v for k, v in _RESULT.items() if k not in ("verdict", "guarantee")},
        _OUTCOME,
    ),
    "choice": _object(
        "A test, and what to expect of it.",
        {
            "method": _text("Its name on the command line."),
            "function": _text("Its name in Python."),
            "power": _of(["number", "null"], "Expected power; null where no table has it."),
            "people": _of(["integer", "null"], "How many it needs for power .8."),
            "without_noise": _of(["integer", "null"], "How many it would need without noise."),
            "reason": _text("Why it stands there."),
        },
    ),
    "pair": _object("Two shares.", {**_RESULT, "shares": _list("The two files.")}, _OUTCOME),
    "published": _object("A release.", _PUBLISHED),
    "totals": _object("All budgets of a data set.", _TOTALS),
    "token": _object("A token as it is kept.", _TOKEN),
    "audited": _object(
        "What attacks found on a test.",
        {
            "test": _text("Question, method, and which groups."),
            "function": _text("Its function in Python."),
            "epsilon": _number("What it claims."),
            "delta": _number("What it claims."),
            "holds": _true("Whether nothing was found."),
            "caught_by": _list("Which attacks found something."),
            "attacks": _table("By attack: whether it holds, in words, and its numbers."),
        },
    ),
    "head": _object(
        "The end of a chain.", {"sequence": _count("Entries."), "hash": _text("Last hash.")}
    ),
    "entry": _object(
        "An entry of the ledger.",
        {
            "sequence": _count("Place in the chain."),
            "time": _text("UTC."),
            "kind": _text("What happened."),
            "hash": _text("Digest of this entry and all before."),
            "body": _table("Everything that was recorded."),
        },
    ),
}
# What privatest-papers prints.
_EXPERIMENT = {
    "name": _text("On the command line."),
    "paper": _text("Whose it is."),
    "figure": _text("Which figure or table."),
    "title": _text("What is compared."),
    "measure": _text("What a value is.", "power", "level", "distance"),
    "runs_in_paper": _count("Simulated studies in the paper."),
    "methods": _table("Methods, and whose they are: paper or ours."),
    "points": _list("Places of the figure.", _part("point")),
}
PAPERS = {
    "experiments": _document(
        "Of `reproduce list`.", {"experiments": _list("All of them.", _part("experiment"))}
    ),
    "experiment_run": _document(
        "Of `reproduce run` and `reproduce show`.",
        {**_EXPERIMENT, "rows": _list("What was found.", _part("row"))},
    ),
}
PAPERS_PARTS = {
    "experiment": _object("A figure or a table of a paper.", _EXPERIMENT),
    "point": _object(
        "One place of a figure.",
        {
            "panel": _text("The part of the figure."),
            "x": _number("The place in it."),
            "study": _table("What data is drawn."),
            "settings": _table("What the tests are given."),
            "published": _table("What the paper has there, by method."),
        },
    ),
    "row": _object(
        "One method at one point.",
        {
            "panel": _text("The part of the figure."),
            "x": _number("The place in it."),
            "method": _text("Its name."),
            "by": _text("Whose it is.", "paper", "ours"),
            "runs": _count("Simulated studies."),
            "total": _number("Sum of what was found: of rejections, or of distances."),
            "squares": _number("Sum of its squares."),
        },
    ),
}


def schema(documents: Schema = DOCUMENTS, parts: Schema = PARTS) -> Schema:
    """Return the JSON Schema of documents and their parts."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What privatest prints with --json",
        "anyOf": [_part(name) for name in documents],
        "$defs": documents | parts,
    }
