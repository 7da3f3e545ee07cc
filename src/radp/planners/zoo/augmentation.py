"""Augmentations of the published planners' training: planTF's and PLUTO's moved ego, UrbanDriver's dropped vehicles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import shapely

from radp.planners.zoo.batch import Sample
from radp.planners.zoo.places import turn_back
from radp.planners.zoo.tokens import PAST
from radp.planners.zoo.urban_driver import VEHICLES
from radp.planners.zoo.vector_features import to_ego_frame
from radp.planners.zoo.view import WorldView
from radp.scenario import DT, PACIFICA, Ego

# x, y [m], yaw [rad], speed [m/s], acceleration [m/s2], steering [rad], yaw rate [rad/s]: noise up to plus or minus
LARGEST = np.array([1.0, 0.75, 0.35, 1.0, 0.5, 0.2, 0.1])
CHECKED = 10  # nearest agents that the moved ego may not touch
TRIES = 5  # times that PLUTO halves its noise
PLANTF_SHARE, DROP_SHARE = 0.5, 0.5
ASIDE, TURN, BACK = 0.75, 0.15, 2.0  # m and rad by which `beside` moves at most, s until the driven way is reached


def perturbed_state(sample: Sample, noise: np.ndarray) -> np.ndarray:
    """(7,) current_state with noise; never backwards."""
    state = sample["current_state"] + noise
    state[3] = max(state[3], 0.0)
    return state


def touches(sample: Sample, state: np.ndarray) -> bool:
    """Whether the ego at a moved state would touch one of the nearest agents."""
    now = PAST - 1
    ahead = PACIFICA.rear_axle_to_center
    ego = _box(state[0] + ahead * np.cos(state[2]), state[1] + ahead * np.sin(state[2]), state[2],
               PACIFICA.length, PACIFICA.width)  # fmt: skip
    for i in range(1, min(CHECKED + 1, len(sample["agent/position"]))):
        (x, y), (width, length) = sample["agent/position"][i, now], sample["agent/shape"][i, now]
        if shapely.intersects(ego, _box(x, y, sample["agent/heading"][i, now], length, width)):
            return True
    return False


def _box(x: float, y: float, heading: float, length: float, width: float) -> shapely.Geometry:
    ahead = np.array([np.cos(heading), np.sin(heading)]) * length / 2
    aside = np.array([-np.sin(heading), np.cos(heading)]) * width / 2
    corners = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    return shapely.Polygon([np.array([x, y]) + a * ahead + b * aside for a, b in corners])


def moved(sample: Sample, state: np.ndarray) -> Sample:
    """The sample seen from a moved ego; the future stays where it was driven."""
    out = dict(sample)
    for name, values in (("agent/position", state[:2]), ("agent/heading", state[2])):
        out[name] = sample[name].copy()
        out[name][0, PAST - 1] = values
    return to_ego_frame(out | {"current_state": state}, None)


def perturb_plantf(sample: Sample, random: np.random.Generator) -> Sample:
    """Half of the samples start beside the logged pose, unless somebody is there."""
    noise = random.uniform(-LARGEST, LARGEST)
    if random.random() >= PLANTF_SHARE:
        return sample
    state = perturbed_state(sample, noise)
    return sample if touches(sample, state) else moved(sample, state)


def perturb_pluto(sample: Sample, random: np.random.Generator) -> Sample:
    """Every sample starts beside the logged pose; the noise is halved while somebody is there."""
    noise = random.uniform(-LARGEST, LARGEST)
    for _ in range(TRIES - 1):
        if not touches(sample, perturbed_state(sample, noise)):
            break
        noise = noise / 2
    return moved(sample, perturbed_state(sample, noise))


def beside(view: WorldView, random: np.random.Generator) -> WorldView:
    """The ego a little beside the logged pose and turned, with all its past, and a future that returns to what was
    driven. For planners that have no such augmentation of their own: drivers of made traffic keep the centre of their
    lane exactly, and who has never seen anything else does not come back to it."""
    aside, turn = random.uniform((-ASIDE, -TURN), (ASIDE, TURN))
    place, heading = view.pose[:2], view.pose[2]
    step = aside * np.array([-np.sin(heading), np.cos(heading)])
    ego, future = view.ego.copy(), view.future_ego.copy()
    ego[:, :2] = place + step + turn_back(view.ego[:, :2] - place, -turn)
    ego[:, Ego.HEADING] += turn
    left = np.clip(1.0 - DT * np.arange(1, len(future) + 1) / BACK, 0.0, 1.0)
    left = left**2 * (3.0 - 2.0 * left)  # 1 now, 0 from BACK on, smooth at both ends
    future[:, :2] += left[:, None] * step
    future[:, Ego.HEADING] += left * turn
    return replace(view, ego=ego, future_ego=future)


def drop_vehicles(sample: Sample, random: np.random.Generator) -> Sample:
    """In half of the samples every vehicle is left out with probability 0.5."""
    if random.random() >= DROP_SHARE:
        return sample
    gone = 1 + np.flatnonzero(random.random(VEHICLES) < DROP_SHARE)
    out = {name: value.copy() for name, value in sample.items()}
    out["features"][gone], out["avails"][gone] = 0.0, False
    return out
