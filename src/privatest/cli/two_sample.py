"""``privatest two-sample``: do two groups of people come from the same distribution?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.privacy import Budget

if TYPE_CHECKING:
    from privatest.cli.question import Question
    from privatest.results import Decision

__all__ = ["two_sample"]

# What each method takes besides the data, the budget and the level.
_OPTIONS = {
    "mmd": ("release", "permutations", "kernel", "bandwidths", "computation", "estimator"),
    "mean": ("release", "permutations", "norm"),
    "wasserstein": ("release", "permutations"),
    "tv": ("release", "permutations"),
    "kolmogorov": ("release", "permutations"),
    "ks": ("permutations",),
    "kuiper": ("permutations",),
    "mann-whitney": ("alternative",),
    "kruskal": (),
    "median": ("alternative",),
    "tot": ("subtest", "permutations"),
    "sarrm": ("subtest", "permutations"),
}

_RANKS = ("mann-whitney", "kruskal", "median")


def two_sample(
    data: options.DataFile,
    other: options.OtherFile = None,
    *,
    group: options.GroupColumn = None,
    groups: options.Groups = None,
    columns: options.Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    membership: options.MembershipOption = None,
    adjacency: options.AdjacencyOption = None,
    rows_per_person: options.RowsPerPerson = None,
    release: options.Release = None,
    alpha: options.Alpha = "0.05",
    method: options.TwoSampleMethod = "mmd",
    permutations: options.Permutations = None,
    kernel: options.KernelOption = None,
    bandwidths: options.Bandwidths = None,
    computation: options.Computation = None,
    estimator: options.Estimator = None,
    norm: options.Norm = None,
    alternative: options.AlternativeOption = None,
    subtest: options.Subtest = None,
    as_json: options.Json = False,
) -> None:
    """Test whether two samples come from the same distribution.

    Give one file with the column that holds the group, or two files. Whole
    distributions are compared, not only means. Columns are described by
    --bounds or by a schema: bounds found from the data would leak it.

    \b
    Example:
      privatest two-sample visits.csv --group plan --groups basic rest \\
        --bounds visits=0:80 --epsilon 1
    """
    budget, level = Budget(epsilon, delta), options.read_alpha(alpha)
    chosen = options.given(
        method,
        _OPTIONS[method],
        release=release,
        permutations=permutations,
        kernel=kernel,
        bandwidths=options.read_bandwidths(bandwidths),
        computation=computation,
        estimator=estimator,
        norm=norm,
        alternative=alternative,
        subtest=subtest,
    )

    from privatest.cli.question import Question, describe  # noqa: PLC0415

    question = Question.ask(
        files=[data] if other is None else [data, other],
        described=describe(schema, bounds or [], rows_per_person),
        columns=None if columns is None else options.read_names(columns),
        group=group,
        groups=groups,
        membership=membership,
        adjacency=adjacency,
    )
    with working("Reading the data and testing ..."):
        result = _run(
            method, question, chosen, epsilon=budget.epsilon, delta=budget.delta, alpha=level
        )
    print_result(result, compared=question.words, as_json=as_json)


def _run(method: str, question: Question, chosen: dict[str, Any], **common: Any) -> Decision:
    """Read the samples and call the test."""
    import privatest as pt  # noqa: PLC0415

    renamed = {"permutations": "n_permutations", "computation": "method", "subtest": "pvalue"}
    arguments = {renamed.get(name, name): value for name, value in chosen.items()}
    arguments |= common | {"bounds": question.schema, "adjacency": question.adjacency}
    subsampled = method in ("tot", "sarrm")
    if subsampled and question.adjacency == "row":
        raise ParameterError(
            f"--method {method} needs public membership: it cuts each group into parts by its "
            "size. Pass --membership public if sizes are public, or use --method mmd."
        )
    test: Callable[..., Decision]
    if method in _RANKS:
        return _by_ranks(method, question, arguments)
    if method == "mmd":
        test = pt.mmd_test
    elif method in ("ks", "kuiper"):
        from privatest.two_sample.ks import ks_2samp as test  # noqa: PLC0415

        arguments["statistic"] = method
    elif subsampled:
        test = pt.test_of_tests if method == "tot" else pt.sarrm_test
        arguments = {"pvalue": "mmd"} | arguments
    else:
        test = pt.ipm_test
        arguments["distance"] = "total-variation" if method == "tv" else method
    return test(*question.samples(), **arguments)


def _by_ranks(method: str, question: Question, arguments: dict[str, Any]) -> Decision:
    from privatest.two_sample.kruskal import kruskal  # noqa: PLC0415
    from privatest.two_sample.ranks import mannwhitneyu, median_test  # noqa: PLC0415

    if question.adjacency == "row":
        raise ParameterError(
            f"--method {method} needs public membership: its p-value needs the group sizes. Pass "
            "--membership public if they are, or use --method mmd or kolmogorov."
        )
    tests: dict[str, Callable[..., Decision]] = {
        "mann-whitney": mannwhitneyu,
        "kruskal": kruskal,
        "median": median_test,
    }
    return tests[method](*question.samples(), **arguments)
