"""``privatest two-sample``: do two groups of people come from the same distribution?"""

from __future__ import annotations

from privatest.cli import options
from privatest.cli.output import print_result, working
from privatest.privacy import Budget

__all__ = ["two_sample"]


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
    release: options.Release = "pvalue",
    alpha: options.Alpha = "0.05",
    kernel: options.KernelOption = "gaussian",
    bandwidths: options.Bandwidths = None,
    permutations: options.Permutations = 999,
    computation: options.Computation = "auto",
    estimator: options.Estimator = "v",
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
    widths = options.read_bandwidths(bandwidths)

    from privatest import mmd_test  # noqa: PLC0415
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
        x, y = question.samples()
        result = mmd_test(
            x,
            y,
            epsilon=budget.epsilon,
            delta=budget.delta,
            alpha=level,
            release=release,
            adjacency=question.adjacency,
            bounds=question.schema,
            kernel=kernel,
            bandwidths=widths,
            estimator=estimator,
            method=computation,
            n_permutations=permutations,
        )
    print_result(result, compared=question.words, as_json=as_json)
