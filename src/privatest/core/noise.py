"""Where secret randomness comes from.

:class:`SecureNoise` is the default everywhere: OpenDP's float-safe samplers on the operating
system's entropy. It cannot be seeded. :class:`SimulatedNoise` is seeded, is meant for
simulation only, and marks every result it touches.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.spending import refuse_unpaid_noise

_NOISE_BRANCH = 0x6E6F6973
_WIDE = 2.0**40
_WIDEST = 2.0**56  # of discrete Laplace noise: a draw of 64 scales still fits 64 bits
_DRAWN_ON = 1 << 62  # OpenDP's integers saturate at 2^63: from here on the rest is drawn again

Norm = Literal["absolute", "l1", "l2", "linf", "signed sums", "spectral", "permutation"]
"""How a change is measured; "permutation" has one bound for the first entry, one for the others."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MechanismCall:
    """A value and the noise added to it, recorded for an audit.

    Attributes
    ----------
    mechanism : str
        The kind of noise.
    values : ndarray
        The value before noise. Private, unless the rows are made up.
    norm : Norm
        The norm of its sensitivity.
    bounds : tuple of float
        The sensitivity; for "permutation" that of the observed statistic and of the permuted ones.
    scale : float
        The noise scale.
    repeat : partial or None
        The mechanism with its arguments except ``noise``: an audit calls it again.
    """

    mechanism: str
    values: NDArray[np.float64]
    norm: Norm
    bounds: tuple[float, ...]
    scale: float
    repeat: partial[Any] | None = None

    @property
    def public(self) -> tuple[object, ...]:
        """All that must not differ between neighbours."""
        return self.mechanism, self.values.shape, self.norm, self.bounds, self.scale

    def ratio(self, other: MechanismCall) -> float:
        """Return how far the values moved, in units of the sensitivity."""
        signed = (self.values - other.values).ravel()
        moved = np.abs(signed)
        if self.norm == "permutation":
            return float(max(moved[0] / self.bounds[0], moved[1:].max(initial=0) / self.bounds[1]))
        distances = {
            "absolute": moved.max(initial=0),
            "linf": moved.max(initial=0),
            "l1": moved.sum(),
            "l2": np.sqrt((moved**2).sum()),
            "signed sums": max(np.maximum(signed, 0).sum(), np.maximum(-signed, 0).sum()),
            "spectral": np.linalg.norm(np.atleast_2d(self.values - other.values), 2),
        }
        return float(distances[self.norm] / self.bounds[0])


class AuditHook:
    """Records what mechanisms do with simulated noise. Secure noise has none.

    Parameters
    ----------
    replacements : iterable, optional
        What mechanisms return instead, from the run of a neighbour: later queries may depend on
        it, and both runs have to make the same ones.

    Attributes
    ----------
    calls : list of MechanismCall
        In order.
    released : list
        What mechanisms returned, in order.
    """

    def __init__(self, replacements: Iterable[Any] | None = None) -> None:
        self.calls: list[MechanismCall] = []
        self.released: list[Any] = []
        self._replacements: Iterator[Any] = iter(replacements or ())


def record(
    noise: NoiseSource,
    mechanism: str,
    values: ArrayLike,
    norm: Norm,
    bounds: tuple[float, ...],
    scale: float,
    repeat: partial[Any] | None = None,
) -> None:
    """Record a mechanism's value before noise, if the noise source has an audit hook."""
    if noise.audit is not None:
        kept = np.array(values, dtype=np.float64)
        call = MechanismCall(mechanism, kept, norm, bounds, float(scale), repeat)
        noise.audit.calls.append(call)


def released(noise: NoiseSource, value: T) -> T:
    """Return what a mechanism releases; an audit hook may replace it by a neighbour's."""
    if noise.audit is None:
        return value
    value = next(noise.audit._replacements, value)
    noise.audit.released.append(value)
    return value


class NoiseSource(Protocol):
    """What a mechanism asks of its randomness. Callers validate; NaN never gets here."""

    @property
    def simulated(self) -> bool:
        """Whether the noise is seeded and gives no privacy."""

    @property
    def constant_time(self) -> bool:
        """Whether running time must follow from public sizes only, as under a curator."""

    @property
    def audit(self) -> AuditHook | None:
        """Records values before noise; None for secure noise."""

    def laplace(self, value: float, scale: float) -> float:
        """Return ``value`` plus Laplace noise of ``scale``."""

    def gaussian(self, values: NDArray[np.float64], scale: float, grid: int) -> NDArray[np.float64]:
        """Return ``values``, rounded to multiples of 2^grid, plus Gaussian noise."""

    def discrete_laplace(self, scale: float) -> int:
        """Return an integer j with probability proportional to exp(-|j|/scale)."""

    def discrete_laplaces(self, scale: float, size: int) -> NDArray[np.int64]:
        """Return ``size`` independent ones, any beyond ±2^63 saturated there."""

    def below(self, limit: int) -> int:
        """Return a uniform integer in [0, limit)."""

    def permutation(self, size: int) -> NDArray[np.intp]:
        """Return a uniform permutation of ``range(size)``."""

    def key(self) -> bytes:
        """Return 32 secret random bytes, from which a secret order of rows is made."""

    def uniforms(self, size: int) -> NDArray[np.float64]:
        """Return independent uniform numbers, odd multiples of 2^-53 in (0, 1)."""


class SecureNoise:
    """Float-safe noise on the operating system's entropy; there is no seed, by design.

    Parameters
    ----------
    constant_time : bool
        Avoid faster algorithms whose running time depends on private values. A curator does so,
        since analysts can time its answers; who holds the data need not.
    """

    __slots__ = ("_constant_time",)

    def __init__(self, *, constant_time: bool = False) -> None:
        self._constant_time = constant_time

    @property
    def simulated(self) -> bool:
        """False: this noise is secret."""
        return False

    @property
    def constant_time(self) -> bool:
        """Whether running time must follow from public sizes only."""
        return self._constant_time

    @property
    def audit(self) -> None:
        """None: nobody may record values before secret noise."""
        return

    def laplace(self, value: float, scale: float) -> float:
        """Return ``value`` plus exact discrete Laplace noise on the finest float grid."""
        return float(_laplace_measurement("f64", scale)(value))

    def gaussian(self, values: NDArray[np.float64], scale: float, grid: int) -> NDArray[np.float64]:
        """Return ``values`` on the grid 2^grid plus exact discrete Gaussian noise."""
        flat = [float(value) for value in values.ravel()]
        noisy = _gaussian_measurement(len(flat), scale, grid)(flat)
        return np.asarray(noisy, dtype=np.float64).reshape(values.shape)

    def discrete_laplace(self, scale: float) -> int:
        """Return integer noise, drawn exactly, however large it is."""
        drawn = int(_laplace_measurement("i64", _checked(scale))(0))
        if abs(drawn) < _DRAWN_ON:
            return drawn
        # what is left beyond a limit has the law of either half, which is geometric: memoryless
        again = self.discrete_laplace(scale)
        size = _DRAWN_ON + (again if again >= 0 else -again - 1)
        return size if drawn > 0 else -size

    def discrete_laplaces(self, scale: float, size: int) -> NDArray[np.int64]:
        """Return integers, each drawn exactly: in one call, since calls take longer than draws."""
        return np.array(_laplaces_measurement(_checked(scale))([0] * size), dtype=np.int64)

    def below(self, limit: int) -> int:
        """Return a uniform integer in [0, limit)."""
        return secrets.randbelow(limit)

    def permutation(self, size: int) -> NDArray[np.intp]:
        """Return the order of random keys; where some are equal, fresh ones decide: uniform."""
        # Keys with their places in the lowest bits are sorted twice as fast as an order is found.
        bits = np.uint64(max(size - 1, 1).bit_length())
        keys = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
        packed = np.sort((keys >> bits << bits) | np.arange(size, dtype=np.uint64))
        keys = packed >> bits
        order: NDArray[np.intp] = (packed ^ (keys << bits)).astype(np.intp)
        again = keys[1:] == keys[:-1]
        if again.any():
            tied = np.append(again, False) | np.append(False, again)
            runs = np.cumsum(~np.append(False, again))[tied]
            fresh = np.lexsort((self.permutation(len(runs)), runs))
            order[tied] = order[tied][fresh]
        return order

    def key(self) -> bytes:
        """Return 32 bytes of the operating system's entropy."""
        return secrets.token_bytes(32)

    def uniforms(self, size: int) -> NDArray[np.float64]:
        """Return uniform numbers from the operating system's entropy.

        For samplers that have no float-safe form (the axes of a private covariance).
        """
        keys = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64) >> np.uint64(12)
        return _odd_multiples(keys)


class SimulatedNoise:
    """Seeded noise for simulation, planning and audits. It gives no privacy.

    Parameters
    ----------
    seed : int
        The same seed gives the same noise.
    constant_time : bool
        As in :class:`SecureNoise`.
    audit : AuditHook, optional
        Records the values that noise is added to.
    """

    __slots__ = ("_rng", "audit", "constant_time")

    @property
    def simulated(self) -> bool:
        """True, and read-only: results say that they are not private."""
        return True

    def __init__(
        self,
        seed: int | np.random.SeedSequence,
        *,
        constant_time: bool = False,
        audit: AuditHook | None = None,
    ) -> None:
        self.constant_time, self.audit = constant_time, audit
        # spawned: it must not be the stream of default_rng(seed), the public randomness
        if isinstance(seed, np.random.SeedSequence):
            key = (*seed.spawn_key, _NOISE_BRANCH)
            branch = np.random.SeedSequence(seed.entropy, spawn_key=key)
        else:
            branch = np.random.SeedSequence(seed, spawn_key=(_NOISE_BRANCH,))
        self._rng = np.random.default_rng(branch)

    def laplace(self, value: float, scale: float) -> float:
        """Return ``value`` plus Laplace noise."""
        return float(value + self._rng.laplace(scale=scale))

    def gaussian(self, values: NDArray[np.float64], scale: float, grid: int) -> NDArray[np.float64]:
        """Return ``values`` plus Gaussian noise; the grid is too fine to matter here."""
        del grid
        noisy: NDArray[np.float64] = values + self._rng.normal(scale=scale, size=values.shape)
        return noisy

    def discrete_laplace(self, scale: float) -> int:
        """Return the difference of two geometric draws; a rounded draw if the scale is large."""
        if _checked(scale) > _WIDE:  # the two laws agree to the precision of a float
            return round(self._rng.laplace(scale=scale))
        success = -np.expm1(-1.0 / scale)
        first, second = self._rng.geometric(success, size=2)
        return int(first - second)

    def discrete_laplaces(self, scale: float, size: int) -> NDArray[np.int64]:
        """Return seeded integers: the same as one after the other."""
        return np.array([self.discrete_laplace(scale) for _ in range(size)], dtype=np.int64)

    def below(self, limit: int) -> int:
        """Return a uniform integer in [0, limit), of any size."""
        if limit <= 1 << 62:
            return int(self._rng.integers(limit))
        size = limit.bit_length()
        while True:  # at most one try in two fails
            drawn = int.from_bytes(self._rng.bytes(size // 8 + 1), "big") >> (8 - size % 8)
            if drawn < limit:
                return drawn

    def permutation(self, size: int) -> NDArray[np.intp]:
        """Return a seeded permutation."""
        return self._rng.permutation(size)

    def key(self) -> bytes:
        """Return seeded bytes."""
        return self._rng.bytes(32)

    def uniforms(self, size: int) -> NDArray[np.float64]:
        """Return seeded uniform numbers."""
        return _odd_multiples(self._rng.integers(1 << 52, size=size))


def noise_source(noise: NoiseSource | None) -> NoiseSource:
    """Return the given source, or :class:`SecureNoise` for None.

    Where a budget is open (``with privatest.budget(...)``), a function that it does not pay for is
    refused secret noise.
    """
    noise = SecureNoise() if noise is None else noise
    # not isinstance: a subclass could claim that it is not simulated
    if type(noise) not in (SecureNoise, SimulatedNoise):
        raise ParameterError("noise must be None, SecureNoise() or SimulatedNoise(seed).")
    if type(noise) is SecureNoise:
        refuse_unpaid_noise()
    return noise


def _checked(scale: float) -> float:
    """Return a public scale of discrete Laplace noise, unless integers of 64 bits end too near."""
    if scale > _WIDEST:
        raise ParameterError(
            "epsilon is too small: so many rows, or so many rows_per_person, need noise wider than "
            "2^56, and integers end at 2^63. Pass a larger epsilon or fewer rows_per_person."
        )
    return scale


def secret_coins(noise: NoiseSource, count: int) -> NDArray[np.bool_]:
    """Return ``count`` fair, independent coins: whether the first of two keys is the smaller."""
    places = noise.permutation(2 * count)
    first: NDArray[np.bool_] = places[:count] < places[count:]
    return first


def _odd_multiples(keys: NDArray[np.uint64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Map 52 bits to (2 key + 1)/2^53: all are floats, so none is rounded to 0 or to 1."""
    multiples: NDArray[np.float64] = (keys.astype(np.float64) + 0.5) * 2.0**-52
    return multiples


def _opendp() -> Any:
    # Module by module, and only when needed: the prelude would import scikit-learn.
    from types import SimpleNamespace  # noqa: PLC0415

    from opendp import domains, measurements, metrics, mod  # noqa: PLC0415

    mod.enable_features("contrib")
    return SimpleNamespace(domains=domains, measurements=measurements, metrics=metrics)


@lru_cache(maxsize=64)
def _laplace_measurement(atom: str, scale: float) -> Any:
    """OpenDP's Laplace mechanism; atom "i64" because plain int is 32 bits there."""
    dp = _opendp()
    domain = dp.domains.atom_domain(T=atom, **({"nan": False} if atom == "f64" else {}))
    return dp.measurements.make_laplace(domain, dp.metrics.absolute_distance(T=atom), scale=scale)


@lru_cache(maxsize=64)
def _laplaces_measurement(scale: float) -> Any:
    """OpenDP's Laplace mechanism on vectors of integers: independent noise on each."""
    dp = _opendp()
    vectors = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    return dp.measurements.make_laplace(vectors, dp.metrics.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _gaussian_measurement(size: int, scale: float, grid: int) -> Any:
    dp = _opendp()
    atoms = dp.domains.atom_domain(T="f64", nan=False)
    vectors = dp.domains.vector_domain(atoms, size=size)
    return dp.measurements.make_gaussian(
        vectors, dp.metrics.l2_distance(T="f64"), scale=scale, k=grid
    )
