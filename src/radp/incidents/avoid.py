"""What would have avoided an incident: other drives from moments before it, driven in the simulator and judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from radp.attribution.afterwards import Judged
from radp.attribution.control import begin, descent, pushed
from radp.evaluation.risk import progress_of
from radp.incidents.find import Event
from radp.incidents.incident import Remedy
from radp.metrics.comfort import BOUNDS
from radp.metrics.drivable_area import TOLERANCE
from radp.metrics.driving_direction import COMPLIANT
from radp.metrics.score import ScenarioScore, evaluate
from radp.metrics.ttc import LEAST
from radp.scenario import DT, Ego
from radp.sim.drive_on import drive_on, is_repeated
from radp.sim.rollout import Rollout

BACK = 50  # samples before an incident in which something is tried
AFTER = 30  # samples after it for which it has to stay avoided
HARDEST = 8.0  # m/s2, full braking on a dry road
BRAKING = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, HARDEST)  # m/s2
EARLIER = (30, 20, 10)  # samples before it at which the least braking is looked for
PUSHES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  # m/s2 along and across
SHIFTED = (30, 25, 20, 15, 10, 5)  # samples before it at which the plan is shifted
SMOOTH = (0.3, 0.6, 1.0, 1.5)  # s
PATH_SECONDS = 8.0
GAINED = 0.5  # of the metres that were lost: enough for a push to count


@dataclass(frozen=True)
class OtherDrive:
    """A path (P, 3) from a sample on, and what it would be if it helps."""

    step: int
    path: np.ndarray
    remedy: Remedy


@dataclass(frozen=True)
class Findings:
    """The remedies that help, and the first moment from which on nothing that was tried does (None: not known)."""

    remedies: tuple[Remedy, ...] = ()
    no_return: float | None = None
    tried: int = 0
    note: str | None = None


def find_remedies(rollout: Rollout, score: ScenarioScore, judged: Judged | None, event: Event) -> Findings:
    """Try what fits the kind of incident, all of it in one batch of drives."""
    until = min(event.end if event.metric == "ego_is_comfortable" else event.frame, event.frame + AFTER) + AFTER
    if event.rule == "goal":
        until = event.frame + round(PATH_SECONDS / DT)
    until = min(until, len(rollout.ego) - 1)
    trials = list(_trials(rollout, score, judged, event, until))
    if not trials:
        return Findings(note="the drive kept no plans, so that nothing can be tried")
    steps = np.array([trial.step for trial in trials] + [until + 1])
    again = drive_on(rollout, steps, [*(trial.path for trial in trials), rollout.ego[-1:, :3]], until)
    if not is_repeated(rollout, again.pop()):
        return Findings(note="the road users of this drive cannot be repeated, so that nothing can be tried")
    helps = [_helps(rollout, event, trial, other) for trial, other in zip(trials, again)]
    return _chosen(rollout, event, trials, helps)


def _trials(
    rollout: Rollout, score: ScenarioScore, judged: Judged | None, event: Event, until: int
) -> Iterable[OtherDrive]:
    if event.metric == "ego_is_comfortable":
        yield from _smoother(rollout, event, until)
    elif event.rule == "goal":
        yield from _shifts(rollout, judged, event, (0,), sideways=False)
    else:
        yield from _braking(rollout, score, event)
        if event.rule != "speed":
            yield from _shifts(rollout, judged, event, SHIFTED, sideways=True)


def _braking(rollout: Rollout, score: ScenarioScore, event: Event) -> Iterable[OtherDrive]:
    """Full braking at every sample, and less of it earlier, along the way that was driven."""
    floor = 0.0
    if event.rule == "speed" and score.details is not None:
        limits = score.details.speed_limit.limit[event.frame : event.end + 1]
        floor = max(0.0, float(limits[limits > 0].min()) - 0.1)
    amounts = {step: [HARDEST] for step in range(max(0, event.frame - BACK), event.frame)}
    for back in EARLIER:
        if event.frame - back >= 0:
            amounts[event.frame - back] = list(BRAKING)
    for step, tried in amounts.items():
        for amount in tried:
            remedy = Remedy("brake", _seconds(rollout, step), amount)
            yield OtherDrive(step, braked(rollout.ego[step:, :3], rollout.ego[step, Ego.VX], amount, floor), remedy)


def braked(way: np.ndarray, speed: float, amount: float, floor: float = 0.0) -> np.ndarray:
    """(P, 3): along a way (N, 3) from its start on, slower by `amount` m/s2 until the speed is `floor`."""
    times = DT * np.arange(round(PATH_SECONDS / DT) + 1)
    floor = min(floor, speed)
    until = np.minimum(times, (speed - floor) / amount)
    return on_way(way, speed * until - amount * until**2 / 2 + floor * (times - until))


def on_way(way: np.ndarray, stations: np.ndarray) -> np.ndarray:
    """Poses (P, 3) at so many metres along a way (N, 3); straight on after its end."""
    lengths = np.linalg.norm(np.diff(way[:, :2], axis=0), axis=1)
    along = np.concatenate(([0.0], np.cumsum(lengths)))
    kept = np.concatenate(([True], lengths > 1e-6))
    columns = (way[kept, 0], way[kept, 1], np.unwrap(way[kept, 2]))
    x, y, heading = (np.interp(stations, along[kept], column) for column in columns)
    beyond = np.maximum(stations - along[-1], 0.0)
    return np.stack((x + beyond * np.cos(heading), y + beyond * np.sin(heading), heading), -1)


def _shifts(
    rollout: Rollout, judged: Judged | None, event: Event, backs: Sequence[int], sideways: bool
) -> Iterable[OtherDrive]:
    """Plans pushed along the direction in which the rule's cost falls, by accelerations on knots a second apart."""
    steps = [event.frame - back for back in backs if judged is not None and 0 <= event.frame - back < len(judged.plans)]
    if judged is None or not steps:
        return
    rule = next(rule for rule in judged.rules if rule.name == event.rule)
    rows = torch.tensor(steps)
    plans, context = judged.plans[rows], judged.context.rows(rows)
    start = torch.zeros(len(rows), 2)
    direction = descent(plans, context, rule, start, sideways)
    for amount in (0.0, *PUSHES):  # 0 is the control: a shift helps only where the plan itself, kept to, does not
        moved = pushed(plans, begin(start) + amount * direction).double().numpy()
        for i, step in enumerate(steps):
            if not direction[i].any():
                continue
            at = min(max(event.frame - step, 1), plans.shape[1]) - 1 if event.rule != "goal" else -1
            gap = moved[i, at, :2] - plans[i, at, :2].numpy()
            cos, sin = plans[i, at, 2:].double().numpy()
            ahead, left = cos * gap[0] + sin * gap[1], cos * gap[1] - sin * gap[0]
            kind = "hold" if amount == 0 else "push" if event.rule == "goal" else "shift"
            remedy = Remedy(kind, _seconds(rollout, step), amount, round(float(ahead), 3), round(float(left), 3))
            yield OtherDrive(step, _in_world(rollout.ego[step, :3], moved[i]), remedy)


def _in_world(pose: np.ndarray, plan: np.ndarray) -> np.ndarray:
    """A plan (H, 4) in the frame of a pose (3,) -> (H + 1, 3) in the world, the pose itself first."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    heading = pose[2] + np.arctan2(plan[:, 3], plan[:, 2])
    poses = np.stack(
        (pose[0] + c * plan[:, 0] - s * plan[:, 1], pose[1] + s * plan[:, 0] + c * plan[:, 1], heading), -1
    )
    return np.concatenate((pose[None], poses))


def _smoother(rollout: Rollout, event: Event, until: int) -> Iterable[OtherDrive]:
    """The way that was driven, with speeds smoothed over time."""
    step = max(0, event.frame - EARLIER[0])
    way, speed = rollout.ego[step:, :3], rollout.ego[step:, Ego.VX]
    for width in SMOOTH:
        smooth = gaussian_filter1d(speed, width / DT, mode="nearest")
        smooth = speed[0] + (smooth - smooth[0])
        stations = np.concatenate(([0.0], np.cumsum(DT * np.maximum(smooth[:-1], 0.0))))
        yield OtherDrive(step, on_way(way, stations), Remedy("smooth", _seconds(rollout, step), width))


def _helps(rollout: Rollout, event: Event, trial: OtherDrive, other: Rollout) -> Remedy | None:
    """The remedy if the other drive avoids the incident, without a contact at fault and without leaving the road."""
    score, after = evaluate(other), slice(trial.step + 1, None)
    details = score.details
    if details is None or any(c.at_fault and c.frame > trial.step for c in score.collisions):
        return None
    if (details.drivable.outside[after] > TOLERANCE).any():
        return None
    if event.metric == "no_ego_at_fault_collisions":
        met = any(c.agent == event.agent and c.frame > trial.step for c in score.collisions)
        return None if met else trial.remedy
    if event.metric == "time_to_collision_within_bound":
        return trial.remedy if (details.ttc.ttc[after] > LEAST).all() else None
    if event.metric == "driving_direction_compliance":
        return trial.remedy if (details.direction.series[after] > -COMPLIANT).all() else None
    if event.metric == "speed_limit_compliance":
        return trial.remedy if not details.speed_limit.over[event.frame :].any() else None
    if event.metric == "ego_is_comfortable":
        calm = all(low < s[after].min() and s[after].max() < high for s, low, high in _bounded(score))
        return trial.remedy if calm else None
    if event.rule == "goal":
        return _gain(rollout, event, trial, other)
    return trial.remedy  # it stays on the road


def _bounded(score: ScenarioScore) -> list[tuple[np.ndarray, float, float]]:
    assert score.details is not None
    return [(score.details.comfort.series[name], low, high) for name, (low, high) in BOUNDS.items()]


def _gain(rollout: Rollout, event: Event, trial: OtherDrive, other: Rollout) -> Remedy | None:
    """A push that wins back at least half of what was lost in the seconds of the incident."""
    mine, theirs = progress_of(rollout), progress_of(other)
    gained = float(theirs.ego[-1] - mine.ego[len(other.ego) - 1])
    behind = mine.expert[: len(mine.ego)] - mine.ego
    lost = float(behind[event.end] - behind[event.frame])
    return replace(trial.remedy, gained=round(gained, 2)) if gained > 0 and gained >= GAINED * lost else None


def _chosen(rollout: Rollout, event: Event, trials: Sequence[OtherDrive], helps: Sequence[Remedy | None]) -> Findings:
    """Of each kind: the least that helps, earliest first among equals, and the latest moment at which any helps."""
    held = {trial.step for trial, remedy in zip(trials, helps) if remedy is not None and remedy.kind == "hold"}
    found = [
        (trial, remedy)
        for trial, remedy in zip(trials, helps)
        if remedy is not None and not (remedy.kind in ("shift", "push") and trial.step in held)
    ]
    if not found:
        return Findings(tried=len(trials))
    last = max(trial.step for trial, _ in found)
    chosen = []
    for kind in dict.fromkeys(remedy.kind for _, remedy in found):
        mine = [(trial.step, remedy) for trial, remedy in found if remedy.kind == kind]
        least = min(mine, key=lambda one: (one[1].amount, -one[0]))
        latest = max(mine, key=lambda one: (one[0], -one[1].amount))
        chosen += [least[1]] if least is latest else [least[1], replace(latest[1], latest=True)]
    lost = _seconds(rollout, last + 1) if event.rule not in ("goal", "comfort") else None
    return Findings(tuple(chosen), lost, len(trials))


def _seconds(rollout: Rollout, step: int) -> float:
    return round(float(rollout.time_us[step] - rollout.time_us[0]) * 1e-6, 3)
