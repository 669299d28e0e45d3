"""An audit of a test: its neighbours, their paths, their values before noise, their outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from privatest.audit.attacks import (
    ATTACKS,
    AttackResult,
    AuditReport,
    attack_floats,
    attack_level,
    attack_outputs,
    attack_time,
)
from privatest.audit.cases import Case, cases
from privatest.audit.losses import bound_by_sampling, by_draws, released_numbers
from privatest.audit.replay import TOLERANCE, PairResult, WorstPairs, run_case, search
from privatest.core.errors import ParameterError
from privatest.core.noise import SecureNoise
from privatest.core.validation import integer_at_least, number

_BEFORE_NOISE = ("sensitivity", "replay", "exact")
_FRAMED = {*_BEFORE_NOISE, "draws", "runs"}  # they need neighbours


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """How hard an audit tries.

    Attributes
    ----------
    pairs : int
        Pairs of neighbours whose numbers before noise are compared.
    draws, runs : int
        Of secret noise, by mechanisms alone and by whole tests, for each of two neighbours.
    nulls : int
        Runs on rows of a true null hypothesis, for each cell of the grid.
    seed : int
        Of the search.
    attacks : collection of str
        Which ones.
    """

    pairs: int = 60
    draws: int = 20_000
    runs: int = 200
    nulls: int = 40
    seed: int = 1
    attacks: Collection[str] = tuple(ATTACKS)


def audit(
    test: str,
    *,
    epsilon: float = 1.0,
    plan: AuditPlan | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[AuditReport]:
    """Attack a test with made-up people, and say what was found.

    Parameters
    ----------
    test : str
        Question and method, such as ``"two-sample/mmd"``; ``privatest.audit.NAMES`` lists them.
    epsilon : float
        What it shall spend.
    plan : AuditPlan, optional
        Which attacks, and how many pairs and runs.
    progress : callable, optional
        Is told which case is attacked, and how.

    Returns
    -------
    list of AuditReport
        One for each way to ask: private and public groups, and what neighbours differ by.

    Notes
    -----
    **Privacy**: no private data is used; rows are made up. An audit can find a violation; that it
    finds none is no proof. The proofs are in docs/proofs.

    Examples
    --------
    >>> from privatest.audit import AuditPlan, audit
    >>> found = audit("paired/sign", plan=AuditPlan(pairs=12, draws=0, attacks=["sensitivity"]))
    >>> [each.holds for each in found]
    [True, True]
    """
    plan = plan or AuditPlan()
    number("epsilon", epsilon, above=0)
    integer_at_least("pairs", plan.pairs, 1)
    for name in ("draws", "runs", "nulls"):
        integer_at_least(name, getattr(plan, name), 0)
    for attack in plan.attacks:
        if attack not in ATTACKS:
            raise ParameterError(f"attacks must be among {', '.join(ATTACKS)}.")
    asked = [case for case in cases(test, epsilon) if attacks_of(case, plan)]
    return [audit_case(case, plan, progress) for case in asked]


def attacks_of(case: Case, plan: AuditPlan) -> tuple[str, ...]:
    """Return which attacks a case gets."""
    return tuple(a for a in plan.attacks if case.plain or a in _BEFORE_NOISE)


def audit_case(
    case: Case, plan: AuditPlan, progress: Callable[[str], None] | None = None
) -> AuditReport:
    """Attack one case."""

    def tell(attack: str) -> None:
        if progress is not None:
            progress(f"{case.name}: {attack}")

    plan, findings = replace(plan, attacks=attacks_of(case, plan)), list[AttackResult]()
    if _FRAMED & {*plan.attacks}:
        tell("neighbours")
        worst = search(case, pairs=plan.pairs, seed=plan.seed)
        findings += _before_noise(case, worst)
        for attack in ("draws", "runs"):
            if attack in plan.attacks and getattr(plan, attack):
                tell(attack)
                findings.append(_distinguished(case, worst, plan, attack))
    for attack, run in _alone(case, plan):
        tell(attack)
        findings.append(run())
    kept = tuple(finding for finding in findings if finding.attack in plan.attacks)
    epsilon, delta = case.budget.as_floats
    return AuditReport(case.name, case.function, epsilon, delta, kept)


def _alone(case: Case, plan: AuditPlan) -> Iterator[tuple[str, Callable[[], AttackResult]]]:
    """Return the attacks that choose their own rows."""
    runs: dict[str, Callable[[], AttackResult]] = {
        "floats": lambda: attack_floats(case, plan.seed),
        "outputs": lambda: attack_outputs(case, plan.seed),
        "time": lambda: attack_time(case, plan.seed),
        "level": lambda: attack_level(case, plan.nulls, plan.seed),
    }
    yield from ((name, run) for name, run in runs.items() if name in plan.attacks)


def _before_noise(case: Case, worst: WorstPairs) -> list[AttackResult]:
    """Return what can be said without a draw of noise."""
    moved, lost, claimed = worst.moved, worst.lost, case.budget.as_floats[0]
    pair = None if moved.pair is None else moved.pair.to_dict(case.columns)
    words = f"ratio {max(moved.ratio, 0.0):.4f}{_drawn_by(moved)}"
    if moved.ratio <= 0:
        words = "no pair moved any number: nothing was attacked"
    ratio = {"ratio": max(moved.ratio, 0.0), "pairs": worst.pairs, "bounds": moved.bounds}
    sensitivity = AttackResult(
        "sensitivity",
        0 < moved.ratio <= 1 + TOLERANCE,
        words,
        {**ratio, "mechanism": moved.mechanism, "pair": pair},
    )
    differs = worst.differs
    path = "" if differs is None else differs.path
    apart = None if differs is None or differs.pair is None else differs.pair.to_dict(case.columns)
    replay = AttackResult("replay", differs is None, path or "the same path", {"pair": apart})
    told = {"loss": lost.loss, "pair": lost.pair and lost.pair.to_dict(case.columns)}
    within = lost.loss <= claimed * (1 + 1e-6)
    exact = AttackResult("exact", within, f"exact loss {lost.loss:.3f}", told)
    return [sensitivity, replay, exact]


def _drawn_by(found: PairResult) -> str:
    """Return which function drew the noise, for somebody who wants to read it."""
    calls = [c.repeat.func for c in found.calls[0] if c.mechanism == found.mechanism and c.repeat]
    names = [f"{function.__module__}.{function.__name__}" for function in calls[:1]]
    return "".join(f", noise by {name.removeprefix('privatest.')}" for name in names)


def _distinguished(case: Case, worst: WorstPairs, plan: AuditPlan, attack: str) -> AttackResult:
    epsilon, delta = case.budget.as_floats
    lost = worst.visible if worst.visible.pair is not None else worst.moved
    if lost.pair is None and worst.differs is not None:
        lost = worst.differs
    if lost.pair is None or (attack == "draws" and not case.composed):
        return AttackResult(attack, True, "left out", {"epsilon_at_least": 0.0, "runs": 0})
    if attack == "draws":
        found = by_draws(lost, runs=plan.draws, delta=delta, most=epsilon)
    else:
        tables, seed = lost.pair.tables(case.schema), lost.pair.seed

        def sample(which: int) -> list[float]:
            return released_numbers(run_case(case, tables[which], SecureNoise(), seed).result)

        found = bound_by_sampling(sample, runs=plan.runs, delta=delta, most=epsilon)
    numbers = {"epsilon_at_least": found.epsilon, "runs": found.runs, "event": found.event}
    words = f"epsilon >= {found.epsilon:.2f} by {found.runs} {attack}"
    return AttackResult(attack, found.epsilon <= epsilon, words, numbers)
