"""A function of the user's runs on private rows: nothing of what goes wrong there is said."""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.core.noise import AuditHook, SimulatedNoise
from privatest.core.user_code import UserCodeError, run_user_code
from privatest.methods.ks import read_cdf
from tests.unit.test_public_budget import Till, paying

CANARY = 0.7346291
X = np.append(np.linspace(0.01, 0.6, 59), CANARY)
Y = np.linspace(0.02, 0.61, 60)


class OwnError(BaseException):
    """An error that a handler of Exception does not see."""


FAULTS = [ValueError, MemoryError, SystemExit, KeyboardInterrupt, GeneratorExit, OwnError]


def _spoiled(function, fault):
    """Return the function, with a fault where the canary is among what it sees."""

    def call(*rows):
        if any(np.isin(CANARY, side) for side in rows):
            try:
                raise ValueError(f"saw {rows}")  # what follows has this as its context
            except ValueError:
                fault(rows)
        return function(*rows)

    return call


def _raising(error):
    def fault(rows):
        raise error(f"saw {rows}")

    return fault


def _gap(x, y):
    return abs(np.mean(x) - np.mean(y))


def _tot(fault, test: Any = pt.test_of_tests, **options: Any):
    shared: dict[str, Any] = {"epsilon": 40, "rng": 1, "noise": SimulatedNoise(1)}
    shared |= options
    return test(X, Y, pvalue=_spoiled(lambda x, y: 0.0, fault), **shared)


def _custom(fault, **options: Any):
    shared: dict[str, Any] = {
        "epsilon": 1,
        "rng": 1,
        "noise": SimulatedNoise(1),
        "n_permutations": 9,
    }
    shared |= options
    statistic = _spoiled(_gap, fault)
    return pt.permutation_test((X, Y), statistic, sensitivity=1 / 60, bounds=(0, 1), **shared)


def _crt(fault, **options: Any):
    shared: dict[str, Any] = {"epsilon": 1, "rng": 1, "noise": SimulatedNoise(1), "n_resamples": 9}
    shared |= options
    quantile = _spoiled(lambda u, z: u, fault)
    bounds: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1)}
    return pt.conditional_randomisation_test(Y, Y, X, quantile, **bounds, **shared)


def _ks(fault, **options: Any):
    shared: dict[str, Any] = {"epsilon": 1, "rng": 1, "noise": SimulatedNoise(1)}
    shared |= options
    return pt.ks_1samp(X, _spoiled(stats.norm.cdf, fault), bounds=(-5, 5), **shared)


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("call", [_custom, _crt])
def test_what_a_function_raises_is_one_fixed_error(call, error):
    with pytest.raises(pt.PrivatestError, match="failed on the private data") as caught:
        call(_raising(error))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(pt.PrivatestError) as other:
        call(_raising(IndexError))
    assert str(caught.value) == str(other.value)  # not even the name of the error


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("test", [pt.test_of_tests, pt.sarrm_test])
def test_a_p_value_that_raises_counts_as_one(test, error):
    found = _tot(_raising(error), test)
    assert found.to_dict() == _expected(test).to_dict()


def _expected(test=pt.test_of_tests):
    """Return the result if the p-value of the subset with the canary is 1."""

    def call(x, y):
        return float(np.isin(CANARY, x))

    return test(X, Y, pvalue=call, epsilon=40, rng=1, noise=SimulatedNoise(1))


@pytest.mark.parametrize("error", FAULTS)
def test_a_distribution_function_that_raises_moves_one_record(error):
    _, right = read_cdf(_spoiled(stats.norm.cdf, _raising(error))).limits(X)
    assert right[-1] == 0.5
    assert np.array_equal(right[:-1], stats.norm.cdf(X[:-1]))
    assert 0 < _ks(_raising(error)).pvalue <= 1


# --- warnings --------------------------------------------------------------------------------


def _warning(*actions):
    """Warn after the function has set filters of its own."""

    def fault(rows):
        for action in actions:
            warnings.simplefilter(action)
        warnings.warn(f"saw {rows}", stacklevel=1)

    return fault


@pytest.mark.parametrize("outside", ["default", "ignore", "error", "once"])
@pytest.mark.parametrize("inside", [(), ("default",), ("once",), ("always",), ("error",)])
def test_a_warning_counts_as_one_whatever_filters_are_set(outside, inside, capfd):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter(outside)
        found = _tot(_warning(*inside))
        for call in (_custom, _crt, _ks):
            if inside != ("error",) or call is _ks:
                call(_warning(*inside))
    assert found.to_dict() == _expected().to_dict()
    assert shown == []
    assert capfd.readouterr() == ("", "")


def test_a_warning_in_one_subset_does_not_hide_that_in_another():
    def once(x, y):
        if np.isin(x, X).any():
            warnings.simplefilter("once")
            warnings.warn("odd values", stacklevel=1)
        return 0.0

    options: dict[str, Any] = {"epsilon": 40, "rng": 1}
    found = pt.test_of_tests(X, Y, pvalue=once, noise=SimulatedNoise(1), **options)
    ones = pt.test_of_tests(X, Y, pvalue=lambda x, y: 1.0, noise=SimulatedNoise(1), **options)
    assert found.statistic == ones.statistic


def test_a_function_that_warns_of_made_up_rows_is_refused():
    def warns(x, y):
        warnings.warn("always", UserWarning, stacklevel=1)
        return 0.5

    with pytest.raises(pt.ParameterError, match=r"must not warn.*it did \(UserWarning\)"):
        pt.test_of_tests(X, Y, pvalue=warns, epsilon=1)


def test_warnings_of_tests_that_are_called_by_name_do_not_count():
    """That of SciPy says that a p-value is smaller than it is given: far apart, it always warns."""
    far: dict[str, Any] = {"pvalue": "anderson_ksamp", "epsilon": 40, "n_subsets": 3, "rng": 1}
    found = pt.test_of_tests(X, 10 + Y, noise=SimulatedNoise(1), **far)
    assert found.to_dict()["statistic"] > 2


# --- signals ---------------------------------------------------------------------------------


def _interrupting(rows):
    os.kill(os.getpid(), signal.SIGINT)  # as a terminal does
    for _ in range(1000):
        pass


@pytest.fixture
def _at_a_terminal():
    """Handle interrupts as a program in the foreground: background shells ignore them."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("_at_a_terminal")
@pytest.mark.parametrize("call", [_tot, _custom, _crt, _ks])
def test_an_interrupt_from_the_terminal_stops_the_program(call):
    usual = signal.getsignal(signal.SIGINT)
    with paying(Till()) as till, pytest.raises(KeyboardInterrupt) as caught:
        call(_interrupting, noise=None)
    assert len(till.costs) == 1  # and what it was to cost is spent
    assert till.ends == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is usual
    text = "".join(traceback.format_exception(caught.value))
    assert "saw" not in text.replace("saw {rows}", "")
    assert caught.value.__context__ is None


def test_what_the_handler_of_a_program_raises_goes_on():
    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop("time is up")

    usual = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Stop, match="time is up"):
            run_user_code(lambda: os.kill(os.getpid(), signal.SIGALRM))
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.signal(signal.SIGALRM, usual)


def test_in_another_thread_there_are_no_signals():
    found: list[BaseException] = []

    def run():
        try:
            run_user_code(lambda: (_ for _ in ()).throw(KeyboardInterrupt("saw")))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [type(error) for error in found] == [UserCodeError]
    assert str(found[0]) == ""


def test_objects_that_a_function_returns_are_its_code_too():
    class Odd:
        def __array__(self, *_, **__):
            raise SystemExit(f"saw {CANARY}")

        @property
        def pvalue(self):
            raise KeyboardInterrupt(f"saw {CANARY}")

    def spoils(function):
        return lambda *rows: (
            Odd() if any(np.isin(CANARY, side) for side in rows) else function(*rows)
        )

    bounds: dict[str, Any] = {"bounds_x": (0, 1), "bounds_y": (0, 1), "epsilon": 1}
    with pytest.raises(pt.PrivatestError, match="failed on the private data"):
        pt.permutation_test((X, Y), spoils(_gap), sensitivity=1, bounds=(0, 1), epsilon=1)
    with pytest.raises(pt.PrivatestError, match="failed on the private data"):
        pt.conditional_randomisation_test(Y, Y, X, spoils(lambda u, z: u), **bounds)
    assert 0 < pt.ks_1samp(X, spoils(stats.norm.cdf), epsilon=1).pvalue <= 1
    assert 0 < pt.test_of_tests(X, Y, pvalue=spoils(lambda x, y: 0.5), epsilon=1).pvalue <= 1


# --- distribution functions that fail on some arrays ------------------------------------------


def squeezing(x):
    """An elementwise function that gives a single number for an array of one."""
    x = np.squeeze(np.asarray(x))
    if np.any(x > 1e16):
        raise OverflowError(f"saw {x}")
    return np.exp(-np.exp(-x))


def wide(x):
    """An elementwise function that gives a row, and fails far away."""
    if np.any(x > 1e16):
        raise OverflowError(f"saw {x}")
    return stats.norm.cdf(x)[None, :]


@pytest.mark.parametrize("cdf", [squeezing, wide])
@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_one_record_on_which_a_function_raises_moves_the_statistic_by_its_bound(cdf, statistic):
    rng = np.random.default_rng(0)
    values = rng.gumbel(size=200) if cdf is squeezing else rng.normal(size=200)
    met = []
    for last in (values[-1], 2e16):
        hook = AuditHook()
        pt.ks_1samp(
            np.append(values[:-1], last),
            cdf,
            epsilon=1,
            statistic=statistic,
            rng=1,
            noise=SimulatedNoise(1, audit=hook),
        )
        met.append(hook.calls[0])
    assert met[0].public == met[1].public
    assert met[0].ratio(met[1]) <= 1


@pytest.mark.parametrize("cdf", [squeezing, wide])
def test_the_others_keep_their_probabilities_to_the_last_bit(cdf):
    values = np.random.default_rng(1).normal(size=1001)
    _, whole = read_cdf(cdf).limits(values)
    _, spoiled = read_cdf(cdf).limits(np.append(values[:-1], 2e16))
    assert np.array_equal(whole[:-1], spoiled[:-1])
    assert spoiled[-1] == 0.5


def test_a_function_that_fails_on_arrays_of_one_is_refused_before_it_sees_data():
    def needs_two(x):
        return stats.norm.cdf(x) + 0 * x[1]

    with pytest.raises(pt.ParameterError, match="also of one; it failed with IndexError"):
        pt.ks_1samp(X, needs_two, epsilon=1)

    def doubles(x):
        return stats.norm.cdf(x if len(x) > 1 else np.append(x, x))

    with pytest.raises(pt.ParameterError, match="number for each number"):
        pt.ks_1samp(X, doubles, epsilon=1)

    def alone(x):
        return stats.norm.cdf(x if len(x) > 1 else x + 1)

    with pytest.raises(pt.ParameterError, match="on its own"):
        pt.ks_1samp(X, alone, epsilon=1)
