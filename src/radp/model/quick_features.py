"""q(X), compiled: a head asks for it with every plan, so at batch 1 it may cost next to nothing.

`radp.model.features` lists the features and has the same in plain torch, for training graphs and exports; the tests
compare both.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import torch
from torch import Tensor

from radp.model.cheap_geometry import compressed
from radp.model.features import NOW, PLACE, SERIES, SUMMARIES, WINDOWS, feature_count
from radp.rules.motion import MIN_DISPLACEMENT
from radp.sim.plan import STEP_SECONDS

SCALES = np.array([scale for scale, _ in SERIES.values()])
CHOSEN = np.array([(i, SUMMARIES.index(s)) for i, (_, chosen) in enumerate(SERIES.values()) for s in chosen])
_TINY = 1e-12


@torch.no_grad()
def quick_plan_features(trajectory: Tensor, speed_now: Tensor, accel_now: Tensor) -> Tensor:
    """`plan_features` without gradients: (B, H, 4), (B,), (B,) -> (B, Q)."""
    out = np.zeros((len(trajectory), feature_count()), np.float32)
    _fill(out, *(given.detach().cpu().contiguous().numpy() for given in (trajectory, speed_now, accel_now)))
    return torch.from_numpy(out).to(trajectory)


@numba.njit(nogil=True, cache=True)
def _fill(out, plans, speed_now, accel_now):  # type: ignore[no-untyped-def]
    steps = plans.shape[1]
    length, chosen = steps // WINDOWS, len(CHOSEN)
    place, now = chosen * WINDOWS, (chosen + PLACE) * WINDOWS
    for b in range(len(plans)):
        motion = _motion(plans[b], speed_now[b], accel_now[b])
        for i in range(chosen):
            series, kind = CHOSEN[i]
            for w in range(WINDOWS):
                value = _summary(motion[series, w * length : (w + 1) * length], kind) / SCALES[series]
                out[b, i * WINDOWS + w] = compressed(value)
        for w in range(WINDOWS):
            end = plans[b, (w + 1) * length - 1]
            out[b, place + w * PLACE] = compressed(end[0] / 20.0)
            out[b, place + w * PLACE + 1] = compressed(end[1] / 20.0)
            out[b, place + w * PLACE + 2] = compressed(_heading(end))
        out[b, now] = compressed(speed_now[b] / SCALES[0])
        out[b, now + NOW - 1] = compressed(accel_now[b] / SCALES[1])


@numba.njit(nogil=True, cache=True)
def _motion(plan, speed_now, accel_now):  # type: ignore[no-untyped-def]
    """A plan (H, 4) -> (7, H): the series in their order, as `radp.rules.motion` defines them."""
    made = np.zeros((7, len(plan)))
    x, y, heading, speed = 0.0, 0.0, 0.0, speed_now
    a_lon, a_lat, curvature = accel_now, 0.0, 0.0
    for h in range(len(plan)):
        distance = math.sqrt((plan[h, 0] - x) ** 2 + (plan[h, 1] - y) ** 2 + _TINY)
        there = _heading(plan[h])
        turn = (there - heading + math.pi) % (2 * math.pi) - math.pi
        made[0, h] = distance / STEP_SECONDS
        made[1, h] = (made[0, h] - speed) / STEP_SECONDS
        made[2, h] = made[0, h] * turn / STEP_SECONDS
        made[3, h] = turn / max(distance, MIN_DISPLACEMENT)
        made[4, h] = (made[1, h] - a_lon) / STEP_SECONDS
        if h > 0:  # what is before the first step is not known
            made[5, h] = (made[2, h] - a_lat) / STEP_SECONDS
            made[6, h] = (made[3, h] - curvature) / STEP_SECONDS
        x, y, heading = plan[h, 0], plan[h, 1], there
        speed, a_lon, a_lat, curvature = made[0, h], made[1, h], made[2, h], made[3, h]
    return made


@numba.njit(nogil=True, cache=True)
def _heading(pose):  # type: ignore[no-untyped-def]
    return 0.0 if pose[2] ** 2 + pose[3] ** 2 < _TINY else math.atan2(pose[3], pose[2])


@numba.njit(nogil=True, cache=True)
def _summary(values, kind):  # type: ignore[no-untyped-def]
    """In the order of SUMMARIES: mean, max, min, largest, rms."""
    if kind == 0:
        return values.mean()
    if kind == 1:
        return values.max()
    if kind == 2:
        return values.min()
    if kind == 3:
        return max(values.max(), -values.min())
    return math.sqrt((values**2).mean())
