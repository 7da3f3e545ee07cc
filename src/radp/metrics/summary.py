"""The summary of many scored drives: means with bootstrap intervals, overall and per kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radp.metrics.card import score_card
from radp.metrics.score import METRICS, ScenarioScore
from radp.runs.notebook import html_card
from radp.scenario.parts import log_of
from radp.statistics.bootstrap import LEVEL, RESAMPLES, means_of
from radp.statistics.estimate import LEGEND, Estimate
from radp.version import __version__


@dataclass(frozen=True)
class ScoreSummary:
    """Means of many scores with 95% intervals; `figures` is ready for JSON."""

    figures: dict[str, Any]

    def __str__(self) -> str:
        return summary_text(self.figures)

    def __repr__(self) -> str:
        score = self.figures["score"]["mean"]
        mean = "n/a" if score is None else f"{100 * score:.2f}"
        return f"ScoreSummary({self.figures['scenarios']} drives, score {mean})"

    def _repr_html_(self) -> str:
        rows = {"score": self.figures["score"], **self.figures["metrics"]}
        texts = {name.replace("_", " "): _interval_text(figures) for name, figures in rows.items()}
        return html_card(f"{self.figures['scenarios']} drives, {self.figures['failed']} failed; x100", texts)


def summary(scores: Iterable[ScenarioScore]) -> ScoreSummary:
    """Means of scores and metrics with intervals, over all drives and by kind.

    >>> split, planner = radp.open_split("sumo14-val")[:2], radp.load_planner("log_replay")
    >>> radp.summary(radp.score(radp.simulate(planner, split, agents="nonreactive")))
    ScoreSummary(2 drives, score 99.33)
    """
    return ScoreSummary(summarise([score_card(score) for score in scores]))


def summarise(cards: Sequence[dict[str, Any]], seed: int = 0) -> dict[str, Any]:
    """JSON-ready summary of score cards. A failed drive scores 0 and has no sub-scores.

    Means are over drives, so kinds weigh by their number, as in nuPlan. Sub-scores leave out drives without a value and
    say how many had one. Intervals: those of `radp.statistics.bootstrap`, drives of one log drawn together. `seed` is
    the seed of the run.
    """
    kinds = sorted({card["kind"] for card in cards})
    alone = len({log_of(card["token"]) for card in cards}) == len(cards)
    return {
        "version": __version__,
        "seed": seed,
        **_group(cards),
        "kinds": {kind: _group([card for card in cards if card["kind"] == kind]) for kind in kinds},
        "failures": [{"token": c["token"], "reason": c["failure"]} for c in cards if c["failure"] is not None],
        "bootstrap": {"resamples": RESAMPLES, "level": LEVEL, "over": "scenarios" if alone else "logs"},
    }


def _group(cards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    names, ordered = ("score", *METRICS), sorted(cards, key=lambda card: card["token"])  # as in every table
    values = np.array([[_value(card, name) for card in ordered] for name in names], dtype=np.float64)
    found = means_of(values, groups=[log_of(card["token"]) for card in ordered])
    columns = {name: _figures(estimate) for name, estimate in zip(names, found)}
    score = columns.pop("score")
    failed = sum(card["failure"] is not None for card in cards)
    lengths = [card["seconds"] for card in cards if card.get("seconds") is not None]
    seconds = {"least": min(lengths), "most": max(lengths)} if lengths else None
    return {"scenarios": len(cards), "failed": failed, "seconds": seconds, "score": score, "metrics": columns}


def _value(card: dict[str, Any], name: str) -> float:
    value = card["score"] if name == "score" else card["metrics"][name]["value"]
    return np.nan if value is None else value


def _figures(estimate: Estimate) -> dict[str, Any]:
    figures, others = estimate.to_json(), ("low", "high", "smallest_difference", "count")
    return {"mean": figures["value"], **{name: figures[name] for name in others}}


def summary_text(summary: dict[str, Any]) -> str:
    """The summary for people, times 100 as published numbers are."""
    long = summary["seconds"]
    length = f" {long['least']:.1f} to {long['most']:.1f} s long;" if long else ""
    over = f"95% intervals over {summary['bootstrap']['over']}"
    lines = [f"{summary['scenarios']} drives, {summary['failed']} failed;{length} {over}; x100"]
    lines.append(f"  {'score':<36} {_interval_text(summary['score'])}")
    lines += [f"  {name:<36} {_interval_text(figures)}" for name, figures in summary["metrics"].items()]
    if len(summary["kinds"]) > 1:
        lines.append("score by kind")
        lines += [
            f"  {kind:<56} {_interval_text(group['score'])}  n {group['scenarios']}"
            for kind, group in summary["kinds"].items()
        ]
    lines.append(LEGEND)
    if summary.get("missing"):
        lines.append(f"missing: {summary['missing']} scenarios are not among these drives")
    lines += [f"failed: {failure['token']}: {failure['reason']}" for failure in summary["failures"]]
    return "\n".join(lines)


def _interval_text(figures: dict[str, Any]) -> str:
    if figures["mean"] is None:
        return "   n/a"
    smallest = figures["smallest_difference"]
    d = "" if smallest is None else f"  d {100 * smallest:5.2f}"
    return f"{100 * figures['mean']:6.2f}  [{100 * figures['low']:6.2f}, {100 * figures['high']:6.2f}]{d}"
