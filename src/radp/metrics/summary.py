"""The summary of many scored drives: means with bootstrap intervals, overall and per kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.metrics.score import METRICS
from radp.scenario.parts import log_of
from radp.statistics.bootstrap import LEVEL, RESAMPLES, means_of
from radp.statistics.estimate import LEGEND, Estimate
from radp.version import __version__


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
