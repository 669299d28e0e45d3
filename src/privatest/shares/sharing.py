"""What an owner publishes: noisy moments of features, and everything needed to use them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.core.documents import fingerprint
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount
from privatest.core.results import privacy_sentence
from privatest.core.validation import Rng, reject
from privatest.data.bounds import schema_of
from privatest.data.persons import check_persons
from privatest.data.samples import encode_sample
from privatest.data.tables import read_data
from privatest.mechanisms.moments import NoisyMoments, release_moments
from privatest.shares import document
from privatest.shares.plan import SharePlan, plan_of, plan_share
from privatest.statistics.moments import moments, svec_size

__all__ = ["Share", "share"]

KIND = "privatest share"
_SIGMAS = 40.0  # noise never gets this large: share() did not write a value beyond it


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Private moments of one owner's sample; may be published and compared with others.

    Attributes
    ----------
    plan : SharePlan
        The public parameters.
    moments : NoisyMoments
        Public n, noisy mean and second moment of the features, and the scales of the noise.
    simulated : bool
        True if the noise came from a seeded generator: no privacy.
    """

    plan: SharePlan
    moments: NoisyMoments
    simulated: bool

    @property
    def n(self) -> int:
        """Public number of rows."""
        return self.moments.n

    @property
    def guarantee(self) -> str:
        """The sentence on privacy."""
        plan = self.plan
        sentence = privacy_sentence(plan.budget, plan.schema.unit, self.simulated, what="share")
        more = " Comparing the share costs nothing more, however often."
        return sentence + more * (not self.simulated)

    @property
    def checksum(self) -> str:
        """A fingerprint of the whole share."""
        return fingerprint(self._content())

    def _content(self) -> dict[str, Any]:
        released, rows = self.moments, np.triu_indices(len(self.moments.mean))
        return {
            "plan": self.plan.parameters,
            "digest": self.plan.digest,
            "n": released.n,
            "sigma": released.sigma,
            "sigma_second": released.sigma_second,
            "mean": released.mean.tolist(),
            "second": released.second[rows].tolist(),  # on and above the diagonal, by rows
            "simulated": self.simulated,
        }

    def to_json(self) -> str:
        """Return the document that :meth:`save` writes; numbers read back exactly."""
        return document.seal(KIND, self._content())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the share as JSON."""
        document.write(path, self.to_json())

    @classmethod
    def from_json(cls, text: str | bytes) -> Share:
        """Read the document that :meth:`to_json` gives, or refuse it with the reason."""
        content = document.open_document(text, KIND)
        plan = plan_of(content)
        size = plan.embedding().dimension
        n = document.integer(content, "n", 2)
        mean = document.numbers(content, "mean", (size,))
        second = np.empty((size, size))
        rows, columns = np.triu_indices(size)
        entries = document.numbers(content, "second", (svec_size(size),))
        second[rows, columns] = second[columns, rows] = entries
        scales = document.positive(content, "sigma"), document.positive(content, "sigma_second")
        released = NoisyMoments(n, mean, second, *scales)
        _check_scales(plan, released)
        return cls(plan, released, document.field(content, "simulated", bool))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Share:
        """Read a share, or refuse it with the reason."""
        text = document.read(path, "share")
        try:
            return cls.from_json(text)
        except DataError as error:
            raise document.named(path, error) from None

    def __str__(self) -> str:
        """Describe the share, and what it cost."""
        return f"Share of {self.n:,} rows, plan {self.plan.digest[:12]}\n{self.guarantee}"


def _check_scales(plan: SharePlan, released: NoisyMoments) -> None:
    """Refuse noise that does not match the plan, and values that the noise cannot explain."""
    stated = released.sigma, released.sigma_second
    for value, expected in zip(stated, plan.scales(released.n), strict=True):
        if not math.isclose(value, expected, rel_tol=1e-6):
            raise DataError("its noise does not match its plan and its n.")
    for values, sigma in ((released.mean, stated[0]), (released.second, stated[1])):
        if np.abs(values).max() > 1 + _SIGMAS * sigma:  # features have length 1 at most
            raise DataError("it has a number that its noise cannot explain.")


def share(
    x: Any,
    *,
    plan: SharePlan | None = None,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    bounds: Any = None,
    locations: Any = None,
    frequencies: Any = None,
    kernel: str | None = None,
    bandwidth: float | None = None,
    balance: float | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Share:
    """Release private moments of one sample, to be compared with those of others.

    Parameters
    ----------
    x : array, data frame, series or Arrow table
        The sample.
    plan : SharePlan, optional
        From :func:`plan_share` or ``SharePlan.load(path)``; all owners use the same.
    epsilon, delta, bounds, locations, frequencies, kernel, bandwidth, balance, rng
        Instead of a plan, as in :func:`plan_share`.
    noise : NoiseSource, optional
        Secret randomness; omit it except in simulations.

    Returns
    -------
    Share
        With ``save(path)``; ``Share.load(path)`` reads it back.

    Notes
    -----
    **Sensitivity** Features have length at most 1 and are at most ``spread`` apart; mean and
    second moment of n of them, each divided by its noise, move together by at most
    :func:`privatest.statistics.moments.joint_sensitivity`, times the rows per person. Proofs:
    docs/proofs/moments.md and docs/proofs/shares.md.

    **Privacy** Mean and second moment together are (epsilon, delta)-private by one Gaussian
    mechanism; n is public. Comparing shares is post-processing. A second share of the same
    people costs again.

    References
    ----------
    Raj, Law, Sejdinovic and Park (2019), A differentially private kernel two-sample test,
    section 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 80, size=500)
    >>> mine = share(x, bounds=(0, 80), epsilon=1, delta=1e-6, locations=4)
    >>> mine.n, mine.moments.mean.shape
    (500, (4,))
    """
    source, bounds = noise_source(noise), check_persons(bounds, [x])
    agreed = _agreed(
        plan,
        bounds=schema_of(bounds, read_data(x, "x")),
        epsilon=epsilon,
        delta=delta,
        locations=locations,
        frequencies=frequencies,
        kernel=kernel,
        bandwidth=bandwidth,
        balance=balance,
        rng=rng,
    )
    sample = encode_sample(x, agreed.schema)
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    embedding = agreed.embedding()
    (private,) = moments(
        sample, psi=embedding, dimension=embedding.dimension, radius=embedding.radius
    )
    released = release_moments(private, noise=source, **agreed.release(embedding))
    return Share(agreed, released, source.simulated)


def _agreed(plan: SharePlan | None, **parts: Any) -> SharePlan:
    """Return the plan, given as such or by its parts."""
    given = {name: value for name, value in parts.items() if value is not None}
    if plan is not None:
        if not isinstance(plan, SharePlan):
            reject("plan", "a SharePlan: plan_share(...) or SharePlan.load(path)", plan)
        if given:
            raise ParameterError(f"pass a plan or {', '.join(given)}, not both: the plan has them.")
        return plan
    missing = [name for name in ("bounds", "epsilon", "delta") if name not in given]
    if missing:
        raise ParameterError(f"pass a plan, or {', '.join(missing)}.")
    return plan_share(given.pop("bounds"), **given)
