"""Shares: private moments of one owner's sample, which anybody may compare with those of others.

Owners agree on a plan, which is public. Plans and shares are JSON documents with a checksum, which
guards against accidents (an edit, a truncated file, a faulty disk) and is no signature: an
attacker can recompute it. Proof: docs/proofs/shares.md.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core import documents
from privatest.core.documents import fingerprint, write_text
from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome, declare_level, privacy_sentence
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import encode_sample
from privatest.data.reading import check_person_rows, read_data, schema_of
from privatest.data.schema import Bounds, CategoricalColumn, Column, NumericColumn, Schema
from privatest.mechanisms.moments import moment_scale, release_moments
from privatest.methods.descriptor import Method
from privatest.methods.locations import (
    embedding_estimates,
    in_own_units,
    unpacked_frequencies,
    unpacked_locations,
)
from privatest.numerics.features import Embedding, mean_embedding, smooth_characteristic
from privatest.numerics.kernels import KERNEL_FAMILIES, Kernel
from privatest.numerics.moments import (
    NoisyMoments,
    moment_pvalue,
    moments,
    pool_releases,
    svec_size,
)

Floats = NDArray[np.float64]
Document = TypeVar("Document")
Features = Literal["mean embedding", "characteristic function"]
FEATURES: tuple[str, ...] = get_args(Features)
VERSION = 1
PLAN_KIND = "privatest plan of shares"
SHARE_KIND = "privatest share"
NOTE = "comparing costs nothing more: shares may be compared any number of times"
DEFAULT_LOCATIONS = 10
_LONGEST = 64 * 2**20  # characters; no plan or share comes near
_MOST_POINTS = 256  # a share holds the square of it
_NARROWEST, _WIDEST = 1e-6, 1e6  # bandwidths, in shares of the bounds
_FASTEST = 1e6  # radians per column
_SIGMAS = 40.0  # noise never gets this large: share() did not write a value beyond it


# --- documents ---


def seal(kind: str, content: Mapping[str, Any]) -> str:
    """Write a document of one ``kind`` with its checksum."""
    document = {"format": kind, "version": VERSION, **content}
    document["checksum"] = fingerprint(document)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def open_document(text: str | bytes, kind: str) -> dict[str, Any]:
    """Return the content of a document of ``kind``, or refuse it with the reason."""
    document = _parse(text, kind)
    if document.get("format") != kind:
        raise DataError(f"it is not a {kind}: its format is another.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise DataError(
            f"its version is not {VERSION}: use the version of privatest that wrote it, or ask "
            "for a new copy."
        )
    stated = document.pop("checksum", None)
    if stated != fingerprint(document):
        raise DataError(
            "its checksum does not match: it was edited or damaged. Ask for a new copy."
        )
    return {key: value for key, value in document.items() if key not in ("format", "version")}


def _parse(text: str | bytes, kind: str) -> dict[str, Any]:
    if len(text) > _LONGEST:
        raise DataError(f"it is too long for a {kind}.")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        document = json.loads(decoded, parse_constant=_not_finite, object_pairs_hook=_unique)
    except DataError:
        raise
    except (ValueError, RecursionError):  # also text that is not UTF-8, and endless integers
        raise DataError(
            f"it is not a complete JSON document of a {kind}: was it truncated or edited?"
        ) from None
    if not isinstance(document, dict):
        raise DataError(f"it is not a {kind}.")
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:  # 1e999 is read as infinity
        _not_finite("")
    return document


def _not_finite(_: str) -> NoReturn:
    raise DataError("it has a number that is not finite.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DataError("it has the same key twice.")
    return result


def field(content: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return an entry of one of the given types."""
    value = content.get(name)
    if type(value) not in kinds:  # not isinstance: true is no number
        raise DataError(f"its {name!r} is missing or of another type.")
    return value


def integer(content: Mapping[str, Any], name: str, minimum: int) -> int:
    """Return an entry that is an integer of at least ``minimum``."""
    value = field(content, name, int)
    if not minimum <= value < 2**53:
        raise DataError(f"its {name!r} is out of range.")
    return int(value)


def numbers(content: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return a list, or a list of lists, of finite numbers; None in ``shape`` is any length."""
    value = field(content, name, list)
    if not _fits(value, shape):
        raise DataError(f"its {name!r} does not hold the numbers that it should.")
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, OverflowError):  # lists of unequal lengths, integers beyond all floats
        raise DataError(f"its {name!r} does not hold the numbers that it should.") from None
    if not np.isfinite(array).all():
        raise DataError(f"its {name!r} has a number that is not finite.")
    return array


def _fits(value: Any, shape: tuple[int | None, ...]) -> bool:
    if not shape:
        return type(value) in (int, float)
    if type(value) is not list or not value or shape[0] not in (None, len(value)):
        return False
    return all(_fits(item, shape[1:]) for item in value)


def positive(content: Mapping[str, Any], name: str) -> float:
    """Return an entry that is a finite number above 0."""
    value = float(numbers({name: [content.get(name)]}, name, (1,))[0])
    if not value > 0:
        raise DataError(f"its {name!r} must be above 0.")
    return value


def load_document(
    path: str | os.PathLike[str], what: str, parse: Callable[[bytes], Document]
) -> Document:
    """Read a document from a file; ``what`` names it in messages."""
    file = Path(path)
    try:
        content = file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise DataError(f"{what} {file.name} cannot be read: {_reason(error)}.") from None
    try:
        return parse(content)
    except DataError as error:
        raise DataError(f"{file.name} is refused: {error}") from None


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write a file completely or not at all: half a share would cost as much as a whole one."""
    with _naming(path):
        write_text(path, text)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`write` could not write to."""
    with _naming(path):
        documents.check_writable(path)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ParameterError(f"{Path(path).name} cannot be written: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is not the name of a file"


def names_that_differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys under which two contents differ."""
    return [key for key in sorted({*first, *second}) if first.get(key) != second.get(key)]


def written_columns(schema: Schema) -> list[dict[str, Any]]:
    """Return the columns in their order, as plain values."""
    return [{"name": name} | _column_document(column) for name, column in schema.columns.items()]


def _column_document(column: Column) -> dict[str, Any]:
    if isinstance(column, NumericColumn):
        bounds = [column.lower, column.upper]
        shape: dict[str, Any] = {"type": "numeric", "bounds": bounds, "integer": column.integer}
    else:
        shape = {"type": "categorical", "categories": list(column.categories)}
    return shape | {"missing": column.missing}


def read_columns(parameters: Mapping[str, Any]) -> Schema:
    """Return the schema of what :func:`written_columns` wrote."""
    columns: dict[str, Column] = {}
    for entry in field(parameters, "columns", list):
        if not isinstance(entry, dict):
            raise DataError("its 'columns' do not describe columns.")
        name = field(entry, "name", str)
        if name in columns or not name.isprintable():
            raise DataError("its 'columns' have a name twice, or one that cannot be printed.")
        try:
            columns[name] = _read_column(entry)
        except ParameterError as error:
            raise DataError(f"its column {name!r} cannot be used: {error}") from None
    return Schema(columns, field(parameters, "rows_per_person", int))


def _read_column(entry: Mapping[str, Any]) -> Column:
    kind, missing = field(entry, "type", str), entry.get("missing")
    if kind == "categorical":
        categories = field(entry, "categories", list)
        return CategoricalColumn(tuple(categories), missing=missing)  # type: ignore[arg-type]
    bounds = field(entry, "bounds", list)
    if kind != "numeric" or len(bounds) != 2:
        raise DataError("its 'columns' do not describe columns.")
    lower, upper = bounds
    integer = field(entry, "integer", bool)
    return NumericColumn(lower, upper, integer=integer, missing=missing)  # type: ignore[arg-type]


# --- plans ---


@dataclass(frozen=True, slots=True, eq=False)
class SharePlan:
    """What owners have to agree on; made by :func:`plan_share`, nothing in it is private.

    Attributes
    ----------
    schema : Schema
        The columns, their bounds or categories, and the rows that a person may have.
    features : {"mean embedding", "characteristic function"}
        What is averaged: kernel values at locations, or waves.
    points : ndarray
        Locations in encoded units (0 and 1 are a column's bounds; categories are 0, 1, ...), or
        frequencies in radians per such unit; one per row.
    kernel : str or None
        Family of the kernel; None for waves.
    bandwidth : float or None
        Of the kernel, or of the smoothing of waves, where each column's bounds are 0 and 1.
    budget : Budget
        What each share costs its owner's people.
    balance : float
        Noise on second moments by noise on means.
    """

    schema: Schema
    features: Features
    points: Floats
    kernel: str | None
    bandwidth: float | None
    budget: Budget
    balance: float

    def __post_init__(self) -> None:
        """Refuse a plan that no share could follow, before any data is read."""
        if len(self.points) > _MOST_POINTS:
            reject(_points_name(self.features), f"at most {_MOST_POINTS}", len(self.points))
        number("balance", self.balance, at_least=1e-3, below=1e3)
        if self.bandwidth is not None:
            number("bandwidth", self.bandwidth, at_least=_NARROWEST, below=_WIDEST)
        self.points.flags.writeable = False
        self.scales(2)

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters as plain values, in the form that is hashed."""
        return {
            "columns": written_columns(self.schema),
            "rows_per_person": self.schema.rows_per_person,
            "features": self.features,
            "kernel": self.kernel,
            "bandwidth": self.bandwidth,
            _points_name(self.features): self.points.tolist(),
            # text: exact decimals, which floats are not
            "epsilon": f"{self.budget.epsilon:f}",
            "delta": f"{self.budget.delta:f}",
            "balance": self.balance,
        }

    @property
    def digest(self) -> str:
        """The SHA-256 of :attr:`parameters`: shares can be compared if theirs are equal."""
        return fingerprint(self.parameters)

    def embedding(self) -> Embedding:
        """Return the map from encoded rows to features."""
        if self.features == "characteristic function":
            return smooth_characteristic(self.points, self.bandwidth, self.schema.domain)
        kernel = Kernel(self.kernel, self.bandwidth)  # type: ignore[arg-type]
        return mean_embedding(kernel, self.points, self.schema.domain)

    def scales(self, n: int) -> tuple[float, float]:
        """Return the noise on means and on second moments of a share of ``n`` rows."""
        embedding = self.embedding()
        return moment_scale(
            integer_at_least("n", n, 2), embedding.dimension, **self.release(embedding)
        )

    def release(self, embedding: Embedding) -> dict[str, Any]:
        """Return the parameters for releasing the moments, all of them public."""
        return {
            "radius": embedding.radius,
            "spread": embedding.spread,
            "budget": self.budget,
            "balance": self.balance,
            "rows_per_person": self.schema.rows_per_person,
            "feature_error": embedding.rounding,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, for all owners."""
        write(path, self.to_json())

    def to_json(self) -> str:
        """Return the document that :meth:`save` writes."""
        return seal(PLAN_KIND, {"plan": self.parameters, "digest": self.digest})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SharePlan:
        """Read a plan, or refuse it with the reason."""
        return load_document(path, "plan", cls.from_json)

    @classmethod
    def from_json(cls, text: str | bytes) -> SharePlan:
        """Read the document that :meth:`to_json` gives."""
        return plan_of(open_document(text, PLAN_KIND))

    def __str__(self) -> str:
        """Say what the plan fixes."""
        count, names = len(self.points), ", ".join(self.schema.columns)
        words = "locations" if self.features == "mean embedding" else "frequencies"
        lines = [
            f"Plan of shares {self.digest[:12]}",
            f"  columns   {names}",
            f"  features  {self.features} at {count} public {words}"
            + (f", {self.kernel} kernel" if self.kernel else "")
            + (f", bandwidth {self.bandwidth:g}" if self.bandwidth is not None else ""),
            f"  each      {self.budget} (one {self.schema.unit} replaced; n is public)",
        ]
        return "\n".join(lines)


def plan_share(
    bounds: Bounds,
    *,
    epsilon: Amount,
    delta: Amount,
    locations: Any = None,
    frequencies: Any = None,
    kernel: str = "gaussian",
    bandwidth: float | None = None,
    balance: float = 1.0,
    rng: Rng = None,
) -> SharePlan:
    """Fix the public parameters of shares.

    Parameters
    ----------
    bounds : Schema, mapping of names to (lower, upper), (lower, upper) or (d, 2) array
        The public columns. Data outside is clipped.
    epsilon, delta : float, int, str or Decimal
        The budget of each share; delta must be above 0.
    locations : int, table or ChosenLocations, optional
        How many points to spread evenly over the box; public points in the units of the data,
        never those of private data; or what :func:`privatest.optimise_locations` found, with its
        bandwidth. 10 points by default.
    frequencies : int, (count, d) array or ChosenFrequencies, optional
        Instead of locations: how many frequencies to draw, or the frequencies, in radians per
        unit of the data. Numeric columns only.
    kernel : {"gaussian", "laplace", "imq"}
        Kernel at the locations.
    bandwidth : float, optional
        Width of the kernel where each column's bounds are 0 and 1; a quarter of the box's diameter
        by default. For frequencies: of the smoothing, none by default.
    balance : float
        Noise on second moments by noise on means.
    rng : None, int or Generator
        Public randomness, for frequencies that are drawn; with None the same in every run.

    Returns
    -------
    SharePlan
        With ``save(path)``; ``SharePlan.load(path)`` reads it back.

    Examples
    --------
    >>> plan = plan_share({"visits": (0, 80)}, epsilon=1, delta="1e-6", locations=4)
    >>> plan.points.ravel().tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    budget, schema = Budget(epsilon, delta), schema_of(bounds)
    if schema is None:
        raise ParameterError("bounds must be given: all shares are made with the same.")
    schema = schema.select(schema.columns)  # without ids: each owner counts their own
    one_of("kernel", kernel, KERNEL_FAMILIES)
    scale = number("balance", balance, above=0)
    if frequencies is not None:
        if locations is not None:
            raise ParameterError("pass locations or frequencies, not both.")
        waves = _frequencies(unpacked_frequencies(frequencies), schema, rng)
        width = None if bandwidth is None else number("bandwidth", bandwidth, above=0)
        return SharePlan(schema, "characteristic function", waves, None, width, budget, scale)
    locations, bandwidth = unpacked_locations(locations, kernel, bandwidth)
    width = _default_bandwidth(kernel, schema) if bandwidth is None else bandwidth
    width = number("bandwidth", width, above=0)
    points = _locations(DEFAULT_LOCATIONS if locations is None else locations, schema)
    return SharePlan(schema, "mean embedding", points, kernel, width, budget, scale)


def _default_bandwidth(kernel: str, schema: Schema) -> float:
    """Return a quarter of the diameter of the box, in the distance of the kernel."""
    columns = schema.domain.dimension
    return 0.25 * (columns if kernel == "laplace" else math.sqrt(columns))


def _locations(value: Any, schema: Schema) -> Floats:
    if np.ndim(value) == 0 and not hasattr(value, "__len__"):
        count = integer_at_least("locations", value, 1)
        if count > _MOST_POINTS:
            reject("locations", f"at most {_MOST_POINTS}", count)
        return schema.domain.points(count)
    rows = encode_sample(value, schema, "locations").rows.copy()
    if len(rows) == 0:
        raise ParameterError("locations must have at least one row.")
    return rows


def _frequencies(value: Any, schema: Schema, rng: Rng) -> Floats:
    columns = schema.domain.dimension
    if np.ndim(value) == 0 and not hasattr(value, "__len__"):
        count = integer_at_least("frequencies", value, 1)
        if count > _MOST_POINTS:
            reject("frequencies", f"at most {_MOST_POINTS}", count)
        # those of the default Gaussian kernel exp(-|x-y|²/w²): normal with variance 2/w²
        width = _default_bandwidth("gaussian", schema)
        generator = public_generator(0 if rng is None else rng)
        return generator.normal(scale=math.sqrt(2) / width, size=(count, columns))
    try:
        waves = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        reject("frequencies", "a number of them or an array of numbers", value)
    if waves.ndim != 2 or waves.shape[1] != columns or len(waves) == 0:
        reject("frequencies", f"an array with {columns} columns, one for each of the data", value)
    waves *= schema.box.width
    if not (np.abs(waves) <= _FASTEST).all():
        reject("frequencies", f"finite, and at most {_FASTEST:g} over a column's bounds", value)
    return waves


def _points_name(features: str) -> str:
    return "locations" if features == "mean embedding" else "frequencies"


def plan_of(content: Mapping[str, Any]) -> SharePlan:
    """Return the plan of a document's content; its digest must be right."""
    parameters = field(content, "plan", dict)
    stated = field(content, "digest", str)
    try:
        plan = _read_plan(parameters)
    except ParameterError as error:
        raise DataError(f"its plan cannot be used: {error}") from None
    if fingerprint(parameters) != stated or plan.digest != stated:
        raise DataError("its digest is not the one of its public parameters: they were edited.")
    return plan


def _read_plan(parameters: Mapping[str, Any]) -> SharePlan:
    features = one_of("features", parameters.get("features"), FEATURES)
    schema = read_columns(parameters)
    points = numbers(parameters, _points_name(features), (None, schema.domain.dimension))
    kernel, bandwidth = parameters.get("kernel"), parameters.get("bandwidth")
    if features == "mean embedding":
        one_of("kernel", kernel, KERNEL_FAMILIES)
        bandwidth = number("bandwidth", bandwidth, above=0)
        _check_encoded(points, schema)
    else:
        kernel = None
        if not (np.abs(points) <= _FASTEST).all():
            raise DataError("its 'frequencies' are out of range.")
        if bandwidth is not None:
            bandwidth = number("bandwidth", bandwidth, above=0)
    budget = Budget(parameters.get("epsilon"), parameters.get("delta"))  # type: ignore[arg-type]
    balance = number("balance", parameters.get("balance"), above=0)
    return SharePlan(schema, features, points, kernel, bandwidth, budget, balance)  # type: ignore[arg-type]


def _check_encoded(points: Floats, schema: Schema) -> None:
    for index, levels in enumerate(schema.domain.levels):
        column = points[:, index]
        top = levels - 1 if levels else 1
        if column.min() < 0 or column.max() > top or (levels and (column % 1 != 0).any()):
            raise DataError("its 'locations' lie outside of its columns.")


# --- shares ---


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
        return seal(SHARE_KIND, self._content())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the share as JSON."""
        write(path, self.to_json())

    @classmethod
    def from_json(cls, text: str | bytes) -> Share:
        """Read the document that :meth:`to_json` gives, or refuse it with the reason."""
        content = open_document(text, SHARE_KIND)
        plan = plan_of(content)
        size = plan.embedding().dimension
        n = integer(content, "n", 2)
        mean = numbers(content, "mean", (size,))
        second = np.empty((size, size))
        rows, columns = np.triu_indices(size)
        entries = numbers(content, "second", (svec_size(size),))
        second[rows, columns] = second[columns, rows] = entries
        scales = positive(content, "sigma"), positive(content, "sigma_second")
        released = NoisyMoments(n, mean, second, *scales)
        _check_scales(plan, released)
        return cls(plan, released, field(content, "simulated", bool))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Share:
        """Read a share, or refuse it with the reason."""
        return load_document(path, "share", cls.from_json)

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
    :func:`privatest.numerics.moments.joint_sensitivity`, times the rows per person. Proofs:
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
    source, bounds = noise_source(noise), check_person_rows(bounds, [x])
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
    options = {name: value for name, value in parts.items() if value is not None}
    if plan is not None:
        if not isinstance(plan, SharePlan):
            reject("plan", "a SharePlan: plan_share(...) or SharePlan.load(path)", plan)
        if options:
            raise ParameterError(
                f"pass a plan or {', '.join(options)}, not both: the plan has them."
            )
        return plan
    missing = [name for name in ("bounds", "epsilon", "delta") if name not in options]
    if missing:
        raise ParameterError(f"pass a plan, or {', '.join(missing)}.")
    return plan_share(options.pop("bounds"), **options)


# --- comparisons ---


@declare_level("measured")
def compare(
    a: Share, b: Share, *, alpha: float = 0.05, n_bootstrap: int = 999, rng: Rng = None
) -> Outcome:
    """Test whether two owners' data have the same distribution, from their shares alone.

    Parameters
    ----------
    a, b : Share
        Two shares of one plan, by different owners.
    alpha : float
        Level of the test.
    n_bootstrap : int
        Draws of the null law.
    rng : None, int or Generator
        Public randomness, for these draws. With None they follow from the shares, so that
        everybody who compares the same two gets the same p-value, in either order.

    Returns
    -------
    Outcome
        ``spent`` is what the shares cost their owners' people; comparing adds nothing.

    Notes
    -----
    **Sensitivity** None: no private data is touched.

    **Privacy** Post-processing of the shares. A person in the data of both owners is protected
    by the sum of both budgets. Proof: docs/proofs/shares.md.

    **Validity** T = H w'(Sigma + gamma I)^-1 w, w the difference of means; its law under the
    null hypothesis is redrawn with the sampling error of w and the noise of all that was
    released. The p-value is valid up to the normal approximation of means.

    References
    ----------
    Raj et al. (2019), section 5.3.

    Examples
    --------
    >>> import numpy as np, privatest.methods.shares as ps
    >>> plan = ps.plan_share((0, 1), epsilon=2, delta=1e-6, locations=4)
    >>> rng = np.random.default_rng(0)
    >>> a = ps.share(rng.uniform(size=2000), plan=plan)
    >>> b = ps.share(rng.beta(2, 1, size=2000), plan=plan)
    >>> ps.compare(a, b).reject
    True
    """
    alpha = number("alpha", alpha, above=0, below=1)
    n_bootstrap = integer_at_least("n_bootstrap", n_bootstrap, 1)
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Share):
            reject(name, "a Share: share(...) or Share.load(path)", given)
    _check_plans(a, b)
    marks = a.checksum, b.checksum
    if marks[0] == marks[1]:
        raise ParameterError("the two shares are the same: compare those of two owners.")
    first, second = (a, b) if marks[0] < marks[1] else (b, a)
    seed = int(fingerprint(sorted(marks))[:16], 16)
    generator = public_generator(seed if rng is None else rng)
    statistic, pvalue = moment_pvalue(
        pool_releases(first.moments, second.moments), n_bootstrap=n_bootstrap, rng=generator
    )
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=a.plan.budget,
        adjacency="one",
        method=f"comparison of two shares ({_features(a)})",
        null_hypothesis="the two samples come from the same distribution",
        sizes={"n": a.n, "m": b.n},
        parameters=_parameters(a, n_bootstrap),
        estimated="feature_differences",
        estimates=embedding_estimates(pool_releases(a.moments, b.moments), a.plan.embedding()),
        rows_per_person=a.plan.schema.rows_per_person,
        simulated=a.simulated or b.simulated,
    )


@declare_level("measured")
def compare_all(
    shares: Mapping[str, Share],
    *,
    alpha: float = 0.05,
    n_bootstrap: int | None = None,
    rng: Rng = None,
) -> dict[tuple[str, str], Outcome]:
    """Compare every pair of shares; p-values are corrected by Holm's method.

    Parameters
    ----------
    shares : mapping of str to Share
        At least two shares of one plan, keyed by owner.
    alpha : float
        Familywise error rate: the probability of rejecting any true hypothesis.
    n_bootstrap : int, optional
        Draws of each null law; by default enough for the smallest corrected p-value to be
        a tenth of ``alpha``, at least 999.
    rng : None, int or Generator
        As in :func:`compare`.

    Returns
    -------
    dict of (str, str) to Outcome
        For each pair: ``pvalue`` is corrected, ``parameters["raw_pvalue"]`` is not.

    Notes
    -----
    **Sensitivity** None: no private data is touched.

    **Privacy** Post-processing, as :func:`compare`: all pairs together cost nothing more.
    """
    given: object = shares
    if not isinstance(given, Mapping) or len(given) < 2:
        reject("shares", "at least two shares by the names of their owners", shares)
    alpha = number("alpha", alpha, above=0, below=1)
    pairs = list(combinations(shares, 2))
    draws = max(999, math.ceil(10 * len(pairs) / alpha)) if n_bootstrap is None else n_bootstrap
    generator = None if rng is None else public_generator(rng)
    raw = [
        compare(shares[a], shares[b], alpha=alpha, n_bootstrap=draws, rng=generator)
        for a, b in pairs
    ]
    corrected = holm([outcome.pvalue for outcome in raw])
    return {
        pair: replace(
            outcome,
            pvalue=pvalue,
            reject=pvalue <= alpha,
            parameters=dict(outcome.parameters)
            | {"raw_pvalue": outcome.pvalue, "correction": f"Holm, {len(pairs)} pairs"},
        )
        for pair, outcome, pvalue in zip(pairs, raw, corrected, strict=True)
    }


def holm(pvalues: list[float]) -> list[float]:
    """Correct p-values for multiple testing (Holm, 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")
    factors = np.arange(len(pvalues), 0, -1)
    rising = np.maximum.accumulate(np.asarray(pvalues)[order] * factors)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.minimum(rising, 1.0)
    return [float(value) for value in corrected]


def _check_plans(a: Share, b: Share) -> None:
    if a.plan.digest != b.plan.digest:
        names = ", ".join(names_that_differ(a.plan.parameters, b.plan.parameters))
        raise ParameterError(
            f"the two shares are of different plans: they differ in {names}. Owners who want to "
            "be compared use one plan."
        )


def _features(share: Share) -> str:
    kernel = share.plan.kernel
    return share.plan.features + (f", {kernel} kernel" if kernel else "")


def _parameters(share: Share, n_bootstrap: int) -> dict[str, Any]:
    plan = share.plan
    parameters: dict[str, Any] = {
        "plan": plan.digest,
        "features": plan.features,
        "bandwidth": plan.bandwidth,
    }
    if plan.features == "mean embedding":
        locations = in_own_units(plan.points, plan.schema)
        parameters |= {"kernel": plan.kernel, "locations": locations}
    else:
        parameters["frequencies"] = plan.points.tolist()
    return parameters | {"n_bootstrap": n_bootstrap, "cost": NOTE}


DESCRIPTORS = (
    Method(
        name="compare",
        question="",
        function=compare,
        sentence="The owners published noisy moments of public features, and these were compared",
        papers=("raj2019",),
    ),
)
