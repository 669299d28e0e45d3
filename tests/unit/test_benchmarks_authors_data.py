"""JAX's random numbers in NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.power.authors_data import split, threefry


def test_keys_are_those_of_jax():
    # jax.random.split(jax.random.PRNGKey(0)), with jax_threefry_partitionable = False
    found = split(np.zeros(2, np.uint32))
    assert found.tolist() == [[4146024105, 967050713], [2718843009, 1272950319]]


def test_bits_are_those_of_the_authors_of_threefry():
    # from the known answers of Random123, threefry2x32 with 20 rounds
    ones = np.full(2, 0xFFFFFFFF, np.uint32)
    assert threefry(ones, ones).tolist() == [0x1CB996FC, 0xBB002BE7]
