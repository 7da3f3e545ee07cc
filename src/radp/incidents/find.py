"""Which gates and metrics cost points, from when on, and with whom: read off the finished score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import shapely

from radp.evaluation.risk import progress_of
from radp.metrics.card import metric_costs, moments_of
from radp.metrics.comfort import BOUNDS
from radp.metrics.drivable_area import TOLERANCE
from radp.metrics.drive import Drive, read_drive
from radp.metrics.driving_direction import COMPLIANT
from radp.metrics.score import METRICS, Details, ScenarioScore
from radp.metrics.ttc import LEAST
from radp.sim.rollout import Rollout

LEAST_LOSS = 0.0005  # of a metric's value: less is shown as nothing
LOSING = 30  # samples over which progress is lost fastest

RULE_OF = {
    "no_ego_at_fault_collisions": "collision",
    "drivable_area_compliance": "lane",
    "ego_is_making_progress": "goal",
    "driving_direction_compliance": "lane",
    "ego_progress_along_expert_route": "goal",
    "time_to_collision_within_bound": "collision",
    "speed_limit_compliance": "speed",
    "ego_is_comfortable": "comfort",
}


@dataclass(frozen=True)
class Event:
    """What happened, before it is explained. Samples frame..end; agent: row of the drive's tracks, -1: nobody."""

    metric: str
    cost: float
    value: float
    frame: int
    end: int
    what: str
    agent: int = -1

    @property
    def rule(self) -> str:
        return RULE_OF[self.metric]


def events_of(rollout: Rollout, score: ScenarioScore) -> list[Event]:
    """One for each gate or metric below 1, for collisions one for each at fault; the dearest first, then by time."""
    if score.details is None:
        return []
    costs, found = metric_costs(score.metrics), []
    for name in METRICS:
        metric = score.metrics[name]
        if metric.valid and metric.value < 1.0 - LEAST_LOSS:
            for first, last, what, agent in _FINDERS[name](rollout, score, score.details):
                found.append(Event(name, costs[name], metric.value, int(first), int(last), what, agent))
    return sorted(found, key=lambda event: (-event.cost, event.frame))


Found = Iterator[tuple[int, int, str, int]]


def _collisions(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    drive = read_drive(rollout)
    for contact in score.collisions:
        if contact.at_fault:
            yield contact.frame, contact.frame, contact_words(drive, contact.frame, contact.agent), contact.agent


def _drivable(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    off = np.flatnonzero(details.drivable.outside > TOLERANCE)
    (moment,) = moments_of(score, "drivable_area_compliance")
    yield off[0], off[-1], moment.what, -1


def _direction(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    back = np.flatnonzero(details.direction.series <= -COMPLIANT)
    (moment,) = moments_of(score, "driving_direction_compliance")
    yield back[0] if len(back) else moment.frame, back[-1] if len(back) else moment.frame, moment.what, -1


def _progress(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    """Where the ego fell behind the expert fastest."""
    path, samples = progress_of(rollout), len(rollout.ego)
    mine, theirs = details.progress.ego_total, details.progress.expert_total
    what = f"{mine:.1f} m along the route where the expert made {theirs:.1f} m"
    window = min(LOSING, samples - 1)
    behind = path.expert[:samples] - path.ego
    lost = behind[window:] - behind[: samples - window]
    if not np.isfinite(lost).all() or lost.max() < 0.1:
        yield 0, samples - 1, what, -1
        return
    first = int(lost.argmax())
    made = path.ego[first + window] - path.ego[first]
    what += (
        f"; most of it lost from here on: {made:.1f} m in {0.1 * window:.0f} s, the expert {made + lost.max():.1f} m"
    )
    yield first, first + window, what, -1


def _ttc(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    short = np.flatnonzero(details.ttc.ttc <= LEAST)
    worst = int(details.ttc.ttc.argmin())
    value = float(details.ttc.ttc[worst])
    at_worst = "a contact" if value == 0 else f"{value:.1f} s"
    what = f"less than {LEAST:g} s to a collision in {len(short)} samples, at worst {at_worst}"
    yield short[0], short[-1], what, int(details.ttc.agent[worst])


def _speed_limit(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    over = np.flatnonzero(details.speed_limit.over > 0.0)
    worst = int(details.speed_limit.over.argmax())
    excess, limit = float(details.speed_limit.over[worst]), float(details.speed_limit.limit[worst])
    what = f"up to {excess:.1f} m/s above the limit of {limit:.1f} m/s, too fast in {len(over)} samples"
    yield over[0], over[-1], what, -1


def _comfort(rollout: Rollout, score: ScenarioScore, details: Details) -> Found:
    """Every bound that was broken, reported together, at the first of them."""
    broken = [moment for moment in moments_of(score, "ego_is_comfortable") if (moment.margin or 0) <= 0]
    outside = np.zeros(len(details.time_us), dtype=bool)
    for name, (low, high) in BOUNDS.items():
        outside |= (details.comfort.series[name] <= low) | (details.comfort.series[name] >= high)
    where = np.flatnonzero(outside)
    yield where[0], where[-1], "; ".join(moment.what.replace("_", " ") for moment in broken), -1


_FINDERS: dict[str, Callable[[Rollout, ScenarioScore, Details], Found]] = {
    "no_ego_at_fault_collisions": _collisions,
    "drivable_area_compliance": _drivable,
    "ego_is_making_progress": _progress,
    "driving_direction_compliance": _direction,
    "ego_progress_along_expert_route": _progress,
    "time_to_collision_within_bound": _ttc,
    "speed_limit_compliance": _speed_limit,
    "ego_is_comfortable": _comfort,
}


def touching(drive: Drive, frame: int, agent: int) -> tuple[float, float] | None:
    """The middle of what the two boxes share [m, world]; None where they share nothing."""
    shared = _box(drive, frame, agent).intersection(shapely.Polygon(drive.corners[frame]))
    return None if shared.is_empty else (float(shared.centroid.x), float(shared.centroid.y))


def _box(drive: Drive, frame: int, agent: int) -> shapely.Polygon:
    x, y, heading = drive.agent_state[agent, frame, :3]
    along, across = drive.agent_size[agent, :2] / 2
    c, s = np.cos(heading), np.sin(heading)
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    return shapely.Polygon([(x + c * a * along - s * b * across, y + s * a * along + c * b * across) for a, b in signs])


def contact_words(drive: Drive, frame: int, agent: int) -> str:
    """Which part of the ego meets which part of the other, and how fast both are."""
    place = touching(drive, frame, agent)
    own, other = drive.speed[frame], drive.agent_speed[agent, frame]
    speeds = f"ego {own:.1f} m/s, the other {other:.1f} m/s" if other > 0.05 else f"ego {own:.1f} m/s, the other stands"
    if place is None:
        return f"contact ({speeds})"
    ego = (*drive.center[frame], drive.ego[frame, 2])
    mine = side_of(place, ego, np.ptp(_local(drive.corners[frame], ego), axis=0))
    theirs = side_of(place, tuple(drive.agent_state[agent, frame, :3]), drive.agent_size[agent, :2])
    return f"the ego's {mine} meets its {theirs} ({speeds})"


def _local(points: np.ndarray, pose: tuple[float, ...]) -> np.ndarray:
    c, s = np.cos(pose[2]), np.sin(pose[2])
    gap = np.asarray(points) - pose[:2]
    return np.stack((c * gap[..., 0] + s * gap[..., 1], c * gap[..., 1] - s * gap[..., 0]), -1)


def side_of(place: tuple[float, float], pose: tuple[float, ...], size: np.ndarray) -> str:
    """front, rear, left side or right side: the edge of a box (x, y, heading), (length, width) nearest to a place."""
    ahead, left = _local(np.array(place), pose)
    room = {
        "front": size[0] / 2 - ahead,
        "rear": size[0] / 2 + ahead,
        "left side": size[1] / 2 - left,
        "right side": size[1] / 2 + left,
    }
    return min(room, key=lambda side: room[side])
