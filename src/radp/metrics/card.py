"""The score card: which gate or metric cost how much, when, with which object, by what margin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.metrics.comfort import BOUNDS
from radp.metrics.drivable_area import TOLERANCE
from radp.metrics.driving_direction import COMPLIANT
from radp.metrics.metric import Metric
from radp.metrics.progress import MAKING_PROGRESS
from radp.metrics.score import GATES, METRICS, WEIGHTS, Details, ScenarioScore, aggregate
from radp.metrics.ttc import LEAST
from radp.runs.errors import BadInput, reading_file
from radp.scenario import ObjectType

CARDS = "cards.jsonl"  # of a run folder, one card per line


def read_cards(run: Path) -> list[dict[str, Any]]:
    """The score cards of a finished run, in its order; BadInput if there are none, or lines are no cards."""
    file = run / CARDS
    if not file.is_file():
        raise BadInput(f"{run} is not finished: {CARDS} is missing")
    with reading_file(file, "list of score cards"):
        cards = [json.loads(line) for line in file.read_bytes().splitlines()]
        for card in cards:
            _check_card(card)
    return cards


def _check_card(card: Any) -> None:
    """ValueError, KeyError or TypeError for what `score_card` cannot have made."""
    values = [card["score"], card.get("seconds"), *(card["metrics"][name]["value"] for name in METRICS)]
    if not all(value is None or (type(value) in (int, float) and np.isfinite(value)) for value in values):
        raise ValueError("a value is neither a finite number nor null")
    if not all(isinstance(card[name], str) for name in ("token", "kind")):
        raise ValueError("a token or a kind is no text")


@dataclass(frozen=True)
class WorstMoment:
    """The worst moment of a metric. margin > 0: that far from the bound; < 0: that far beyond it; None: unlimited."""

    frame: int
    time: float  # s since the start of the drive
    margin: float | None
    unit: str
    what: str
    track: str | None = None
    object: str | None = None


def score_card(score: ScenarioScore) -> dict[str, Any]:
    """JSON-ready. The costs of the metrics add up to 1 - score: gates take first, the weighted mean shares the rest.

    `gain` is what the score would win if this metric alone were perfect.
    """
    costs = metric_costs(score.metrics)
    details = score.details
    return {
        "token": score.token,
        "kind": score.kind,
        "planner": score.planner,
        "agents": score.agent_mode,
        "seed": score.seed,
        "score": None if np.isnan(score.score) else score.score,
        "seconds": _time(details, len(details.time_us) - 1) if details else None,
        "failure": score.failure,
        "metrics": {
            name: {
                "value": score.metrics[name].value if score.metrics[name].valid else None,
                "role": "gate" if name in GATES else "weighted",
                "weight": WEIGHTS.get(name),
                "cost": costs[name],
                "gain": _gain(score, name),
                "moments": [asdict(moment) for moment in moments_of(score, name)] if details else [],
            }
            for name in METRICS
        },
        "collisions": [
            {
                "frame": c.frame,
                "time": _time(details, c.frame) if details else 0.0,
                "time_us": c.time_us,
                "track": c.track,
                "object": c.object.name,
                "type": c.type.name,
                "at_fault": c.at_fault,
                "delta_v": c.delta_v,
            }
            for c in score.collisions
        ],
    }


def metric_costs(metrics: dict[str, Metric]) -> dict[str, float]:
    """What each metric takes from a perfect score of 1; metrics without a value take nothing."""
    costs = dict.fromkeys(METRICS, 0.0)
    left = 1.0
    for name in GATES:
        if metrics[name].valid:
            costs[name] = left * (1.0 - metrics[name].value)
            left *= metrics[name].value
    total = sum(weight for name, weight in WEIGHTS.items() if metrics[name].valid)
    for name, weight in WEIGHTS.items():
        if metrics[name].valid:
            costs[name] = left * weight / total * (1.0 - metrics[name].value)
    return costs


def _gain(score: ScenarioScore, name: str) -> float:
    if not score.metrics[name].valid or np.isnan(score.score):
        return 0.0
    return aggregate({**score.metrics, name: Metric(1.0)}) - score.score


def moments_of(score: ScenarioScore, name: str) -> Iterator[WorstMoment]:
    """The moments that decided a metric, or came nearest to it; nothing where there is nothing to report."""
    if score.details is None or not score.metrics[name].valid:
        return iter(())
    return _MOMENTS[name](score, score.details)


def _time(details: Details, frame: int) -> float:
    return round(float(details.time_us[frame] - details.time_us[0]) * 1e-6, 6)


def _at(details: Details, frame: int, margin: float | None, unit: str, what: str, **object_of: str) -> WorstMoment:
    return WorstMoment(int(frame), _time(details, frame), margin, unit, what, **object_of)


def _collisions(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    for c in score.collisions:
        if c.at_fault:
            what = f"{c.type.name.lower().replace('_', ' ')} collision at {details.speed[c.frame]:.2f} m/s"
            yield _at(details, c.frame, -c.delta_v, "m/s delta v", what, track=c.track, object=c.object.name)


def _drivable(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    outside = details.drivable.outside
    if outside.any():
        worst = int(outside.argmax())
        first = int((outside > 0.0).argmax())
        margin = float(TOLERANCE - outside[worst]) if np.isfinite(outside[worst]) else None
        distance = f"{outside[worst]:.2f} m" if np.isfinite(outside[worst]) else "without end"
        what = f"a corner is {distance} off the road, first at {_time(details, first):.1f} s"
        yield _at(details, worst, margin, "m", what)


def _making_progress(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    ratio = score.metrics["ego_progress_along_expert_route"].value
    what = f"{ratio:.3f} of the expert's way, {MAKING_PROGRESS} needed"
    yield _at(details, len(details.time_us) - 1, ratio - MAKING_PROGRESS, "ratio", what)


def _direction(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    worst = int(details.direction.series.argmin())
    backwards = abs(float(details.direction.series[worst]))
    what = f"{backwards:.2f} m against the lane within 1 s" if backwards > 0.0 else "never against the lane"
    yield _at(details, worst, COMPLIANT - backwards, "m", what)


def _progress(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    mine, theirs = details.progress.ego_total, details.progress.expert_total
    what = f"{mine:.1f} m along the route, the expert {theirs:.1f} m"
    yield _at(details, len(details.time_us) - 1, mine - theirs, "m", what)


def _ttc(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    worst = int(details.ttc.ttc.argmin())
    value, agent = float(details.ttc.ttc[worst]), int(details.ttc.agent[worst])
    if not np.isfinite(value):
        return
    short = int((details.ttc.ttc <= LEAST).sum())
    what = (f"too short in {short} of {len(details.time_us)} samples, at worst " if short else "") + f"{value:.1f} s"
    met = {"track": score.track_ids[agent], "object": ObjectType(score.track_types[agent]).name}
    yield _at(details, worst, value - LEAST, "s", what, **met)


def _speed_limit(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    limit = details.speed_limit.limit
    if not limit.any():
        return
    margin = np.where(limit > 0.0, limit - details.speed, np.inf)
    worst = int(margin.argmin())
    over = int((details.speed_limit.over > 0.0).sum())
    what = f"{details.speed[worst]:.2f} m/s where {limit[worst]:.2f} is the limit"
    yield _at(details, worst, float(margin[worst]), "m/s", what + (f", {over} samples too fast" if over else ""))


def _comfort(score: ScenarioScore, details: Details) -> Iterator[WorstMoment]:
    """Every bound that was broken, or the one that was nearest (as a share of its bound)."""
    found = []
    for name, (low, high) in BOUNDS.items():
        series = details.comfort.series[name]
        margin = np.minimum(series - low, high - series)
        worst = int(margin.argmin())
        share = float(margin[worst]) / high
        unit = "m/s2" if name.endswith("_acceleration") and "yaw" not in name else "m/s3" if "jerk" in name else "rad/s"
        unit = "rad/s2" if name == "yaw_acceleration" else unit
        bound = low if series[worst] - low < high - series[worst] else high
        what = f"{name} {series[worst]:.2f} {unit}, bound {bound:.2f}"
        found.append((share, details.comfort.flags[name], _at(details, worst, float(margin[worst]), unit, what)))
    broken = [moment for _, within, moment in found if not within]
    yield from broken or [min(found, key=lambda entry: entry[0])[2]]


_MOMENTS = {
    "no_ego_at_fault_collisions": _collisions,
    "drivable_area_compliance": _drivable,
    "ego_is_making_progress": _making_progress,
    "driving_direction_compliance": _direction,
    "ego_progress_along_expert_route": _progress,
    "time_to_collision_within_bound": _ttc,
    "speed_limit_compliance": _speed_limit,
    "ego_is_comfortable": _comfort,
}


def card_text(card: dict[str, Any]) -> str:
    """The card for people: what cost something first, then what was kept and how closely."""
    score = "n/a" if card["score"] is None else f"{card['score']:.4f}"
    head = f"{card['token']}  {card['kind']}  ({card['planner']}, {card['agents']})  score {score}"
    if card.get("seconds") is not None:
        head += f"  {card['seconds']:.1f} s"
    if card["failure"] is not None:
        return f"{head}\n  the planner failed: {card['failure']}"
    rows = sorted(card["metrics"].items(), key=lambda row: -row[1]["cost"])
    lines = [head, f"  {'cost':>6}  {'value':>6}  metric"]
    for name, entry in rows:
        value = "n/a" if entry["value"] is None else f"{entry['value']:.4f}"
        cost = f"-{entry['cost']:.4f}" if entry["cost"] > 0.0 else "."
        lines.append(f"  {cost:>7} {value:>6}  {name}{'  (gate)' if entry['role'] == 'gate' else ''}")
        lines += [f"{'':18}{_moment_text(moment)}" for moment in entry["moments"]]
    harmless = [c for c in card["collisions"] if not c["at_fault"]]
    for c in harmless:
        lines.append(f"  not at fault: {c['type'].lower()} with {c['object']} {c['track']} at {c['time']:.1f} s")
    return "\n".join(lines)


def _moment_text(moment: dict[str, Any]) -> str:
    met = f" with {moment['object']} {moment['track']}" if moment["track"] is not None else ""
    margin = moment["margin"]
    by = "" if margin is None else f" (margin {margin:+.3f} {moment['unit']})"
    return f"{moment['time']:5.1f} s  {moment['what']}{met}{by}"
