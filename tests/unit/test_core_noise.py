"""Sources of secret randomness: their laws, their seeds, what is accepted as one."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, laplace, norm

from privatest.core.errors import ParameterError
from privatest.core.noise import SecureNoise, SimulatedNoise, noise_source

# Checks of secure noise cannot be seeded: each fails by chance this often.
FALSE_ALARM = 1e-7
SOURCES = pytest.mark.parametrize(
    "noise", [SecureNoise(), SimulatedNoise(3)], ids=["secure", "simulated"]
)


@SOURCES
def test_laplace(noise):
    draws = [noise.laplace(5.0, 2.0) for _ in range(1_500)]
    assert kstest(draws, laplace(5, 2).cdf).pvalue > FALSE_ALARM


@SOURCES
def test_gaussian(noise):
    values = np.tile([[-1.0], [4.0]], (1, 700))
    draws = noise.gaussian(values, 3.0, -40)
    assert draws.shape == values.shape
    for row, mean in zip(draws, (-1, 4), strict=True):
        assert kstest(row, norm(mean, 3).cdf).pvalue > FALSE_ALARM


def test_secure_gaussian_noise_lies_on_its_grid():
    draws = SecureNoise().gaussian(np.array([0.3, 1.7]), 2.0, -3)
    assert np.array_equal(draws * 8, np.round(draws * 8))


@SOURCES
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_discrete_laplace(noise, scale, together):
    runs, decay = 1_500, math.exp(-1 / scale)
    # cells up to where 30 draws are expected beyond, or the chi-square law would not hold
    reach = max(k for k in range(1, 6) if runs * decay**k / (1 + decay) >= 30)
    if together:
        draws = noise.discrete_laplaces(scale, runs).tolist()
    else:
        draws = [noise.discrete_laplace(scale) for _ in range(runs)]
    found = Counter(max(-reach, min(reach, draw)) for draw in draws)
    middle = range(1 - reach, reach)
    law = {j: (1 - decay) / (1 + decay) * decay ** abs(j) for j in middle}
    law |= dict.fromkeys((-reach, reach), decay**reach / (1 + decay))
    expected = [runs * p for p in law.values()]
    assert chisquare([found[j] for j in law], expected).pvalue > FALSE_ALARM


def test_secure_discrete_laplace_has_room():
    # a 32-bit integer would clamp at 2^31: P(|j| > 2^31) = 0.94 here, so 40 all below: 1e-48
    largest = max(abs(SecureNoise().discrete_laplace(2.0**35)) for _ in range(40))
    assert largest > 2**31
    assert np.abs(SecureNoise().discrete_laplaces(2.0**35, 40)).max() > 2**31


def test_discrete_laplace_draws_are_independent():
    draws = SecureNoise().discrete_laplaces(4.0, 20_000)
    assert len({*map(tuple, draws.reshape(-1, 20).tolist())}) == 1000
    # of independent ones a correlation is normal with deviation .007; six of them: 2e-9
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 6 / np.sqrt(20_000)
    assert not np.array_equal(draws, SecureNoise().discrete_laplaces(4.0, 20_000))


def test_seeded_ones_are_the_same_together():
    one, all_at_once = SimulatedNoise(3), SimulatedNoise(3)
    each = [one.discrete_laplace(2.5) for _ in range(9)]
    assert all_at_once.discrete_laplaces(2.5, 9).tolist() == each


@SOURCES
def test_uniform_integers(noise):
    draws = [noise.below(5) for _ in range(1_000)]
    assert set(draws) == set(range(5))
    assert chisquare([draws.count(j) for j in range(5)]).pvalue > FALSE_ALARM
    assert {noise.below(1) for _ in range(5)} == {0}
    assert 0 <= noise.below(1 << 40) < 1 << 40


@SOURCES
def test_permutations_are_uniform(noise):
    draws = Counter(tuple(noise.permutation(4).tolist()) for _ in range(2_400))
    found = [draws[order] for order in itertools.permutations(range(4))]
    assert sum(found) == 2_400
    assert chisquare(found).pvalue > FALSE_ALARM


@SOURCES
@pytest.mark.parametrize("size", [0, 1, 2, 1_000, (1 << 21) + 1])
def test_permutations_have_every_index_once(noise, size):
    assert np.array_equal(np.sort(noise.permutation(size)), np.arange(size))


@pytest.mark.parametrize(
    ("fresh", "order"),
    [([[8, 4]], [2, 1, 0]), ([[4, 8]], [2, 0, 1]), ([[5, 4], [8, 4]], [2, 1, 0])],
)
def test_fresh_keys_decide_where_some_are_equal(monkeypatch, fresh, order):
    """Ties would make a sort decide the order, which is not uniform.

    The lowest bits of a key make room for its place: 7 and 6 are equal, and so are 5 and 4.
    """
    draws = iter([[7, 6, 1], *fresh])
    monkeypatch.setattr(
        "privatest.core.noise.secrets.token_bytes",
        lambda _: np.array(next(draws), dtype=np.uint64).tobytes(),
    )
    assert SecureNoise().permutation(3).tolist() == order
    assert next(draws, None) is None


def test_permutations_with_many_equal_keys_are_uniform(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(
        "privatest.core.noise.secrets.token_bytes",
        lambda size: rng.integers(16, size=size // 8, dtype=np.uint64).tobytes(),
    )
    draws = Counter(tuple(SecureNoise().permutation(4).tolist()) for _ in range(2_400))
    assert chisquare([draws[order] for order in itertools.permutations(range(4))]).pvalue > 1e-4


def test_simulated_noise_is_repeatable_and_marked():
    first, second = SimulatedNoise(9), SimulatedNoise(9)
    assert [first.laplace(0, 1) for _ in range(3)] == [second.laplace(0, 1) for _ in range(3)]
    assert first.permutation(9).tolist() == second.permutation(9).tolist()
    assert SimulatedNoise(9).laplace(0, 1) != SimulatedNoise(10).laplace(0, 1)
    assert SimulatedNoise(9).simulated
    assert not SecureNoise().simulated


def test_secure_noise_is_never_the_same():
    assert SecureNoise().laplace(0.0, 1.0) != SecureNoise().laplace(0.0, 1.0)
    # 1/1000! that they agree
    assert SecureNoise().permutation(1_000).tolist() != SecureNoise().permutation(1_000).tolist()


def test_what_is_accepted_as_a_source():
    assert isinstance(noise_source(None), SecureNoise)
    for source in (SecureNoise(), SimulatedNoise(0)):
        assert noise_source(source) is source
    for other in (0, "secure", SecureNoise, np.random.default_rng(0), object()):
        with pytest.raises(ParameterError, match="noise must be None"):
            noise_source(other)  # type: ignore[arg-type]


def test_simulated_noise_is_not_the_stream_of_the_same_public_seed():
    """rng=7 with SimulatedNoise(7) is what people write; the two must be independent."""
    noise = SimulatedNoise(7).gaussian(np.zeros(2000), 1.0, -40)
    public = np.random.default_rng(7).normal(size=2000)
    assert abs(np.corrcoef(noise, public)[0, 1]) < 0.15  # 6 standard errors
    again = SimulatedNoise(np.random.SeedSequence(7)).gaussian(np.zeros(2000), 1.0, -40)
    np.testing.assert_array_equal(noise, again)
    (child,) = np.random.SeedSequence(7).spawn(1)
    assert not np.array_equal(noise, SimulatedNoise(child).gaussian(np.zeros(2000), 1.0, -40))


@pytest.mark.parametrize("byte", [0x00, 0xFF])
def test_uniforms_are_never_0_or_1(monkeypatch, byte):
    """The outermost keys: a logarithm or a normal quantile of them is finite."""
    monkeypatch.setattr("secrets.token_bytes", lambda size: bytes([byte]) * size)
    draws = SecureNoise().uniforms(3)
    assert np.all((draws > 0) & (draws < 1))
    assert np.all(draws == (2.0**-53 if byte == 0 else 1 - 2.0**-53))


@pytest.mark.parametrize("noise", [SecureNoise(), SimulatedNoise(1)], ids=["secure", "simulated"])
def test_uniforms_have_all_their_bits(noise):
    """Each of 52 bits is 1 in half of the draws: 6 standard deviations, 1e-7 for all together."""
    draws = noise.uniforms(40_000)
    assert draws.min() > 0
    odd = (draws * 2.0**53).astype(np.uint64)
    assert np.all(odd % 2 == 1)
    ones = np.array([np.mean(odd >> np.uint64(bit) & np.uint64(1)) for bit in range(1, 53)])
    assert np.abs(ones - 0.5).max() < 6 * 0.5 / 200


_FORKED = """
import json, os
import numpy as np
from privatest.noise import SecureNoise

noise = SecureNoise()

def draw():
    found = [noise.laplace(0.0, 1e6) for _ in range(5)] + [*noise.gaussian(np.zeros(5), 1e6, -25)]
    found += [noise.discrete_laplace(1e13) for _ in range(5)] + [*noise.uniforms(5)]
    return [float(value) for value in found] + [float(noise.below(2**60)), noise.key().hex()]

drawn = draw()  # whatever has a state has it now
for _ in range(3):
    read, write = os.pipe()
    if not os.fork():
        os.write(write, json.dumps(draw()).encode())
        os._exit(0)
    os.wait()
    drawn += json.loads(os.read(read, 1 << 16))
print(json.dumps(drawn + draw()))
"""


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_forked_processes_share_no_noise():
    """By chance two of 25 draws are equal less than once in 1e10 runs: each is one of 1e13."""
    done = subprocess.run([sys.executable, "-c", _FORKED], capture_output=True, check=True)
    drawn = json.loads(done.stdout)
    assert len(drawn) == 5 * 22
    assert len(set(drawn)) == len(drawn)
