"""What is known of a drive at a moment, beside pressures: the measures of a safety engineer, by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from radp.evaluation.measures import (
    brake_threat_number,
    encroachment,
    least_distance,
    pairs_of,
    required_deceleration,
    rss_deficit,
    speed_excess,
    time_headway,
    time_to_brake,
    time_to_line,
)
from radp.evaluation.risk import SHORTEST_TTC, progress_of
from radp.metrics.drive import box_centers, read_drive
from radp.metrics.lanes import locate
from radp.metrics.score import ScenarioScore
from radp.metrics.ttc import ttc_series
from radp.road.arrays import road_arrays
from radp.sim.rollout import Rollout

TTC_STEPS = 80  # of 0.1 s
MEASURES = {
    "TTC": "1 / time to collision, constant velocity, 8 s ahead",
    "TTB": "minus the time until full braking comes too late",
    "DRAC": "deceleration required to reach the leader's speed in time",
    "BTN": "the same over the possible one, the leader keeping its acceleration",
    "THW": "1 / time headway to the leader",
    "PET": "minus the post-encroachment time foretold by straight paths",
    "least distance": "minus the least distance of the next 8 s at constant velocity",
    "RSS deficit": "metres missing to RSS's safe distance behind the leader",
    "lane margin": "minus the margin to the route's border",
    "TLC": "minus the time to line crossing",
    "speed excess": "speed minus limit",
    "progress lag": "metres behind the expert, which only a replayed log knows",
}


def measures_of(rollout: Rollout, score: ScenarioScore, severity: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """(S,) of each measure of `radp.evaluation.measures`, larger = more critical; NaN for a drive without a score."""
    if score.details is None:
        return {name: np.full(len(rollout.ego), np.nan) for name in MEASURES}
    drive, progress = read_drive(rollout), progress_of(rollout)
    pairs = pairs_of(drive)
    return {
        "TTC": inverse_ttc(rollout, score),
        "TTB": time_to_brake(pairs),
        "DRAC": required_deceleration(pairs),
        "BTN": brake_threat_number(pairs),
        "THW": time_headway(pairs),
        "PET": encroachment(pairs),
        "least distance": least_distance(pairs),
        "RSS deficit": rss_deficit(pairs),
        "lane margin": severity["lane"],
        "TLC": time_to_line(-severity["lane"]),
        "speed excess": speed_excess(drive.speed, score.details.speed_limit.limit),
        "progress lag": progress.expert[: len(progress.ego)] - progress.ego,
    }


def inverse_ttc(rollout: Rollout, score: ScenarioScore) -> np.ndarray:
    """(S,) 1 / time to collision [1/s] of the present states going straight on, 0 if there is none within 8 s."""
    if score.details is None:
        return np.full(len(rollout.ego), np.nan)
    drive, scenario, found = read_drive(rollout), rollout.scenario, score.details.collisions
    where = locate(drive, box_centers(scenario.ego[scenario.start :]), road_arrays(scenario.map))
    ttc, _ = ttc_series(
        drive, score.details.connected, where.crossing, found.first_frame, found.at_fault, steps=TTC_STEPS
    )
    return np.where(np.isinf(ttc), 0.0, 1.0 / np.maximum(ttc, SHORTEST_TTC))
