"""Reports of plans and rankings: public assumptions only, and nothing spent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from privatest.core.errors import ParameterError
from privatest.planning.plans import Choice, Plan, Recommendation
from privatest.planning.recommendation import sampler_of
from privatest.planning.studies import price_of_privacy, sample_size
from privatest.plots.drawing import draw
from privatest.reports.citations import cited
from privatest.reports.markup import Markup, code, listed, page, section, table, tag
from privatest.reports.pictures import picture
from privatest.reports.references import REFERENCES
from privatest.reports.subject import software
from privatest.requests.catalogue import METHODS

__all__ = ["is_plan", "plan_page"]

_TITLES = {
    "power": "How often would it be seen?",
    "n": "How many people are needed?",
    "effect": "How large an effect can be seen?",
    "epsilon": "Which epsilon is needed?",
}
_RANKED = "Which test should be used?"
_NOTHING = (
    "No data was read and nothing was spent: this follows from public assumptions. The test itself "
    "will cost epsilon {epsilon:g}{delta} for everybody in the data. With that, no result is more "
    "than e^{epsilon:g} times as likely if one person's values were others."
)
_CALLS = {
    "power": "expected_power({test!r}, effect, n={n}, epsilon={epsilon!r}, {rest})",
    "n": "sample_size({test!r}, effect, {target!r}, epsilon={epsilon!r}, {rest})",
    "effect": "detectable_effect({test!r}, effect, {target!r}, n={n}, epsilon={epsilon!r}, {rest})",
    "epsilon": "epsilon_needed({test!r}, effect, {target!r}, n={n}, {rest})",
}


def is_plan(document: Mapping[str, Any]) -> bool:
    """Whether a document is that of a plan or a ranking."""
    return {"wanted", "test"} <= document.keys() or {"choices", "looking_for"} <= document.keys()


def plan_page(document: Mapping[str, Any]) -> str:
    """Return the page of a plan or a ranking."""
    try:
        if "choices" in document:
            return _ranking_page(_ranking(document))
        return _plan_page(_plan(document))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("There is nothing to report: the plan is not complete.") from None


def _plan(document: Mapping[str, Any]) -> Plan:
    known = {name: document[name] for name in Plan.__slots__ if name in document}
    curves = {
        name: tuple(tuple(point) for point in known.get(name, ()))
        for name in ("curve", "curve_without_noise", "band")
    }
    return Plan(**known | curves | {"n": tuple(known["n"])})


def _ranking(document: Mapping[str, Any]) -> Recommendation:
    known = {name: document[name] for name in Recommendation.__slots__}
    choices = tuple(Choice(**each) for each in known["choices"])
    return Recommendation(**known | {"choices": choices, "sizes": tuple(known["sizes"])})


def _plan_page(plan: Plan) -> str:
    title = _TITLES[plan.wanted]
    lines = [line.strip() for line in str(plan).splitlines()[1:]]
    assumed = [
        ("question", plan.question),
        ("test", plan.test),
        ("what differs", f"{plan.kind.replace('_', ' ')}, {plan.effect:g}"),
        ("people", " and ".join(f"{size:,}" for size in plan.n)),
        ("epsilon, delta", f"{plan.epsilon:.4g}, {plan.delta:g}"),
        ("level", f"{plan.alpha:g}"),
        ("groups", plan.membership),
        ("power", f"{plan.power:.3g}"),
    ]
    words = f"Power against what was asked for. {plan.sentence}"
    return page(
        title,
        tag("header", tag("h1", title), _answer(plan.sentence)),
        section("assumed", "What was assumed", table("Public assumptions", assumed)),
        section(
            "answer",
            "Answer",
            *(tag("p", line) for line in lines),
            picture(partial(draw, plan), words, "Power, and the answer."),
            *_prices(plan),
        ),
        section("cost", "What it costs", tag("p", _cost(plan))),
        section("methods", "For a paper", *_paragraph(plan.question, plan.test, plan)),
        section("again", "How to reproduce it", *_again(_command(plan), _program(plan))),
    )


def _prices(plan: Plan) -> list[Markup]:
    """Return the picture of people over epsilon, where the tables have the same answer."""
    if plan.wanted != "n" or not plan.source.startswith("tables") or plan.target is None:
        return []
    settings: dict[str, Any] = {"delta": plan.delta, "alpha": plan.alpha}
    settings |= {"membership": plan.membership}
    try:
        effect = sampler_of(plan.question, plan.kind, plan.effect, 1)
        same = sample_size(plan.test, effect, plan.target, epsilon=plan.epsilon, **settings)
        if same.n != plan.n:
            return []  # of several columns, which a plan does not say
        found = price_of_privacy(plan.test, effect, plan.target, **settings)
    except ParameterError:
        return []
    words = f"{found.sentence}, over epsilon and without noise."
    return [tag("h3", "The price of privacy"), picture(partial(draw, found), words)]


def _ranking_page(ranking: Recommendation) -> str:
    best = ranking.best
    people = " and ".join(f"{size:,}" for size in ranking.sizes)
    known = f" Its expected power is {best.power:.2f}." if best.power is not None else ""
    sentence = f"{best.method} is recommended.{known}"
    rows = [
        (c.method, "unknown" if c.power is None else f"{c.power:.2f}", c.reason)
        for c in ranking.choices
    ]
    excluded = [(name, why) for name, why in ranking.excluded.items()]
    assumed = [
        ("question", ranking.question),
        ("what differs", ranking.looking_for.replace("_", " ")),
        ("effect", "several kinds" if ranking.effect is None else f"{ranking.effect:.3g}"),
        ("people", people),
        ("epsilon, delta", f"{ranking.epsilon:g}, {ranking.delta:g}"),
        ("level", f"{ranking.alpha:g}"),
        ("groups", ranking.membership),
        ("from", ranking.source),
    ]
    words = f"Expected power of each test. {sentence}"
    return page(
        _RANKED,
        tag("header", tag("h1", _RANKED), _answer(sentence)),
        section("assumed", "What was assumed", table("Public assumptions", assumed)),
        section(
            "answer",
            "Answer",
            picture(partial(draw, ranking), words, "Expected power of each test."),
            table("The tests that fit", rows, ("test", "power", "why")),
            *([table("Those that do not", excluded, ("test", "why"))] if excluded else []),
        ),
        section("cost", "What it costs", tag("p", _cost(ranking))),
        section("methods", "For a paper", *_paragraph(ranking.question, best.method, ranking)),
        section("again", "How to reproduce it", *_again(_asked(ranking), _recommend(ranking))),
    )


def _answer(sentence: str) -> Markup:
    return tag("p", tag("strong", sentence), class_="answer")


def _cost(planned: Plan | Recommendation) -> str:
    delta = f", delta {planned.delta:g}" if planned.delta else ""
    return _NOTHING.format(epsilon=planned.epsilon, delta=delta)


def _paragraph(question: str, test: str, planned: Plan | Recommendation) -> list[Markup]:
    found = cited(METHODS[question][test].method_id)
    keys = ["dwork2006", *(found.keys if found is not None else ())]
    shorts = "; ".join(REFERENCES[key].short for key in keys)
    how = planned.sentence if isinstance(planned, Plan) else f"{test} was recommended."
    said = how[:1].upper() + how[1:]
    text = (
        f"The study was planned with {software()} for a differentially private test, {test}, at "
        f"ε = {planned.epsilon:g} and level {planned.alpha:g} ({shorts}). {said} This is from "
        f"{planned.source}."
    )
    references = sorted(REFERENCES[key].full for key in keys)
    return [tag("p", text), tag("p", "References", class_="soft"), listed(references)]


def _again(command: str, program: str) -> list[Markup]:
    first = [tag("h3", "On the command line"), code(command, "Command")] if command else []
    return [*first, tag("h3", "In Python"), code(program, "Python")]


def _shared(planned: Plan | Recommendation) -> str:
    words = f"--question {planned.question} --membership {planned.membership}"
    words += f" --delta {planned.delta:g}" if planned.delta else ""
    return words + (f" --alpha {planned.alpha:g}" if planned.alpha != 0.05 else "")


def _command(plan: Plan) -> str:
    if plan.wanted == "effect":
        return ""  # there is no such command
    people = ",".join(map(str, dict.fromkeys(plan.n)))
    head = "size" if plan.wanted == "n" else plan.wanted
    words = (
        f"privatest plan {head} --method {plan.test} --kind {plan.kind} --effect {plan.effect:g}"
    )
    words += "" if plan.wanted == "n" else f" --n {people}"
    words += "" if plan.wanted == "epsilon" else f" --epsilon {plan.epsilon:g}"
    words += "" if plan.target is None else f" --power {plan.target:g}"
    return f"{words} \\\n  {_shared(plan)}"


def _program(plan: Plan) -> str:
    rest = f"delta={plan.delta!r}, alpha={plan.alpha!r}, membership={plan.membership!r}"
    same = len(set(plan.n)) == 1
    call = _CALLS[plan.wanted].format(
        test=plan.test,
        n=plan.n[0] if same else plan.n,
        epsilon=plan.epsilon,
        target=plan.target,
        rest=rest,
    )
    return (
        "from privatest import planning\n"
        "from privatest.planning.recommendation import sampler_of\n\n"
        f"effect = sampler_of({plan.question!r}, {plan.kind!r}, {plan.effect!r}, 1)\n"
        f"print(planning.{call})\n"
    )


def _asked(ranking: Recommendation) -> str:
    people = ",".join(map(str, dict.fromkeys(ranking.sizes)))
    words = f"privatest plan recommend --n {people} --epsilon {ranking.epsilon:g}"
    words += f" --kind {ranking.looking_for}"
    words += "" if ranking.effect is None else f" --effect {ranking.effect:g}"
    return f"{words} \\\n  {_shared(ranking)}"


def _recommend(ranking: Recommendation) -> str:
    sizes = ranking.sizes[0] if len(set(ranking.sizes)) == 1 else ranking.sizes
    return (
        "from privatest import planning\n\n"
        f"print(planning.recommend({ranking.question!r}, {sizes}, epsilon={ranking.epsilon!r},\n"
        f"    membership={ranking.membership!r}, delta={ranking.delta!r}, "
        f"alpha={ranking.alpha!r},\n"
        f"    looking_for={ranking.looking_for!r}, effect={ranking.effect!r}))\n"
    )
