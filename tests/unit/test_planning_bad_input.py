"""What a statistician types by mistake, and what a plan says then."""

import pytest

from privatest.cli import main
from privatest.core.errors import ParameterError
from privatest.planning import recommend, sample_size
from privatest.simulation import shift


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("size --effect nan --epsilon 1", "effect must be a finite number"),
        ("size --effect 0.3 --epsilon nan", "epsilon must be"),
        ("size --effect 0.3 --epsilon abc", "epsilon must be"),
        ("size --effect 0.3 --epsilon 1 --power nan", "power must be a finite number"),
        ("power --n 9 --effect 0.3 --epsilon 1 --delta abc", "delta must be"),
        ("recommend --n 9 --epsilon abc", "epsilon must be"),
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
