"""What a statistician types by mistake, and what a plan says then."""

import pytest

from privatest.cli import main
from privatest.core.errors import ParameterError
from privatest.planning import expected_power, recommend, sample_size
from privatest.simulation import shift


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("size --effect nan --epsilon 1", "effect must be a finite number"),
        ("size --effect 0.3 --epsilon nan", "epsilon must be a finite number above 0; got 'nan'"),
        ("size --effect 0.3 --epsilon inf", "epsilon must be a finite number above 0; got 'inf'"),
        ("size --effect 0.3 --epsilon 0", "epsilon must be a finite number above 0"),
        ("size --effect 0.3 --epsilon abc", "epsilon must be a finite number above 0"),
        ("size --effect 0.3 --epsilon 1 --power nan", "power must be a finite number"),
        ("power --n 9 --effect 0.3 --epsilon 1 --delta abc", "delta must be a finite"),
        ("recommend --n 9 --epsilon abc", "epsilon must be"),
        ("recommend --n 9 --epsilon 1 --kind x", "error: --kind must be one of 'shift'"),
        ("size --effect 0.3 --epsilon 1 --kind x", "error: --kind must be one of 'shift'"),
        ("size --effect 0.3 --epsilon 1 --method hsic", "(hsic belongs to question independence)"),
    ],
)
def test_no_mistake_is_an_internal_error(words, expected, capsys):
    assert main(["plan", *words.split()]) == 2
    assert expected in capsys.readouterr().err


def test_an_effect_that_is_too_small_is_not_called_unseen():
    with pytest.raises(ParameterError, match="would take more than 1,000,000,000 people"):
        sample_size("mann-whitney", shift(0.0001), epsilon=1)


def test_a_ranking_says_that_its_tables_are_for_another_level():
    assert "for level 0.05" in recommend("two-sample", 180, epsilon=1, alpha=0.01).source
    assert "level" not in recommend("two-sample", 180, epsilon=1).source


@pytest.mark.parametrize(
    ("n", "epsilon", "outside"),
    [
        (1, 1.0, "extrapolated (n = 1, where the simulated studies have 20 to 640)"),
        (20, 0.05, ""),
        (640, 1.0, ""),
        ((19, 500), 1.0, ""),  # as 37 in each
        (5000, 1.0, "extrapolated (n = 5,000, where the simulated studies have 20 to 640)"),
        (100, 0.01, "extrapolated (epsilon 0.01, where they have at least 0.05)"),
    ],
)
def test_a_plan_says_where_the_tables_are_extrapolated(n, epsilon, outside):
    for found in (
        expected_power("mann-whitney", shift(0.3), n=n, epsilon=epsilon),
        recommend("two-sample", n, epsilon=epsilon),
    ):
        assert outside in str(found)
        assert ("extrapolated" in found.source) == bool(outside)


@pytest.mark.parametrize("membership", ["public", "private"])
def test_a_plan_says_which_membership_it_assumes(membership):
    for found in (
        sample_size("ks", shift(0.3), epsilon=1, membership=membership),
        recommend("two-sample", 180, epsilon=1, membership=membership),
    ):
        assert f"roups are taken to be {membership}: " in str(found)


def test_where_there_are_no_groups_nothing_is_said_of_them():
    effect = shift(0.3, question="paired")
    assert "groups" not in str(sample_size("sign", effect, epsilon=1))
    assert "groups" not in str(recommend("paired", 180, epsilon=1))


def test_a_ranking_says_what_it_looks_for_in_words():
    assert str(recommend("two-sample", 180, epsilon=1)).startswith("To find a shift of 0.")
    spread = recommend("two-sample", 180, epsilon=1, looking_for="scale")
    assert str(spread).startswith("To find a factor of spread of 1.")
    several = recommend("two-sample", 180, epsilon=1, looking_for="anything")
    assert str(several).startswith("To find anything with n = ")
