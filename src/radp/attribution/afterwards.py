"""The teacher asked afterwards: a drive that is over, moment by moment, as it was while it was driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from radp.attribution.calibration import Calibration
from radp.attribution.reasons import Reasons, reasons_of
from radp.attribution.teacher import Attribution, attribute
from radp.road.route import correct_route
from radp.rules import Rule, RuleContext, needs_road, rule_costs, rule_set
from radp.rules.sets import V2
from radp.scenario import Ego
from radp.scene.builder import RULES_ALONE, Moment, ego_state, empty_arrays, fill, to_scene
from radp.scene.scene import RuleView, Scene
from radp.sim.observation import HISTORY
from radp.sim.plan import STEP_SECONDS
from radp.sim.rollout import Rollout


@dataclass(frozen=True)
class Judged:
    """K plans of a drive as the rules of one set see them, each in its own moment."""

    rules: tuple[Rule, ...]
    rule_set: str
    plans: Tensor  # (K, H, 4)
    context: RuleContext  # B = K
    why: Attribution
    reasons: Reasons
    jump: np.ndarray  # (K,) m/s between the plan's first step and the speed now


def judge_drive(rollout: Rollout, calibration: Calibration | None = None, rules: str = "") -> Judged | None:
    """What the teacher says about the plans that a drive kept; None if it kept none.

    `rules` is the rule set: that of the calibration, or v2, if not given. Neighbours move as the planner forecast them,
    as far as the drive kept that (every 0.5 s, straight between); everybody else keeps their velocity.
    """
    if rollout.plans is None or not len(rollout.plans):
        return None
    name = rules or (V2 if calibration is None else calibration.rule_set)
    chosen = rule_set(name)
    plans, context = _kept(rollout, rollout.plans, chosen)
    why = attribute(plans, context, None, calibration, chosen)
    reasons = reasons_of(why, plans, context, chosen, calibration)
    first = np.linalg.norm(rollout.plans[:, 0, :2], axis=-1) / STEP_SECONDS
    speed = np.hypot(rollout.ego[: len(first), Ego.VX], rollout.ego[: len(first), Ego.VY])
    return Judged(chosen, name, plans, context, why, reasons, first - speed)


@torch.no_grad()
def costs_of_drive(rollout: Rollout, rules: str, every: int = 1) -> dict[str, np.ndarray]:
    """(K,) costs by rule of the plans that a drive kept, of one in `every`; none if it kept no plans."""
    if rollout.plans is None or not len(rollout.plans):
        return {}
    chosen = rule_set(rules)
    plans, context = _kept(rollout, rollout.plans, chosen, every)
    return dict(zip((rule.name for rule in chosen), rule_costs(plans, context, chosen).T.double().numpy()))


def _kept(rollout: Rollout, plans: np.ndarray, rules: Sequence[Rule], every: int = 1) -> tuple[Tensor, RuleContext]:
    """Plans (K, H, 4) of a drive, each in its own moment."""
    scene = scenes_of_drive(rollout, len(plans), needs_road(rules), every)
    forecasts, about = kept_forecasts(rollout, plans.shape[1])
    if forecasts is not None and about is not None:
        forecasts, about = forecasts[::every], about[::every]
    chosen = torch.from_numpy(plans[::every]).float()
    return chosen, RuleContext.from_scene(scene, forecasts, about, horizon=chosen.shape[1])


def kept_forecasts(rollout: Rollout, horizon: int) -> tuple[Tensor | None, Tensor | None]:
    """Forecasts (K, N, H, 4) in the frames of the plans, and the tracks (K, N) they are about; None: not kept."""
    kept, tracks = rollout.predictions, rollout.predicted_tracks
    if kept is None or tracks is None or not kept.shape[1]:
        return None, None
    count, rows = kept.shape[:2]
    seen = np.maximum(tracks, 0)
    agents, ego = rollout.agents, rollout.ego[:count]
    sample = np.arange(count)[:, None]
    cos, sin = np.cos(ego[:, None, Ego.HEADING]), np.sin(ego[:, None, Ego.HEADING])
    gap = agents.state[seen, sample, :2] - ego[:, None, :2]
    now = np.stack((cos * gap[..., 0] + sin * gap[..., 1], cos * gap[..., 1] - sin * gap[..., 0]), -1)
    turn = agents.state[seen, sample, 2] - ego[:, None, Ego.HEADING]
    points = np.concatenate((now[:, :, None], kept), 2)  # (K, N, 1 + P, 2)
    place = np.arange(1, horizon + 1) * kept.shape[2] / horizon
    before = np.minimum(place.astype(int), kept.shape[2] - 1)
    share = (place - before)[:, None]
    xy = points[:, :, before] * (1 - share) + points[:, :, before + 1] * share
    step = np.diff(points, axis=2)[:, :, before]
    moving = np.linalg.norm(step, axis=-1) > 0.1  # m in half a second: slower, and the heading is kept
    angle = np.where(moving, np.arctan2(step[..., 1], step[..., 0]), turn[..., None])
    poses = np.concatenate((xy, np.cos(angle)[..., None], np.sin(angle)[..., None]), -1)
    about = np.where((tracks >= 0) & agents.valid[seen, sample], tracks, -1)
    assert poses.shape == (count, rows, horizon, 4)
    return torch.from_numpy(poses).float(), torch.from_numpy(about.astype(np.int64))


def tracks_of_drive(rollout: Rollout, samples: int) -> np.ndarray:
    """(samples, N) the track that each object of the scenes is, -1: nobody; for drives that do not say so."""
    view = RuleView.of(scenes_of_drive(rollout, samples))
    assert view.object_tracks is not None  # scenes that were built know
    return view.object_tracks.numpy()


def scenes_of_drive(rollout: Rollout, samples: int, road: bool = False, every: int = 1) -> Scene:
    """What the first `samples` moments of the drive looked like, as the teacher beside the planner sees them.

    `road`: with what the rules of the road look at. `every`: only the first of so many moments.
    """
    config = replace(RULES_ALONE, road=road)
    scenario, start = rollout.scenario, rollout.scenario.start
    known = min(HISTORY - 1, start)
    position = {name: i for i, name in enumerate(scenario.tracks.ids)}
    same = [position[name] for name in rollout.agents.ids]
    past = slice(start - known, start)
    states = np.concatenate((scenario.tracks.state[same, past], rollout.agents.state), 1).swapaxes(0, 1)
    valid = np.concatenate((scenario.tracks.valid[same, past], rollout.agents.valid), 1).T
    ego = np.concatenate((scenario.ego[past], rollout.ego))
    moments = range(0, samples, every)
    arrays = empty_arrays(len(moments), config)
    for row, s in enumerate(moments):
        now = known + s
        window, pose = slice(max(0, now + 1 - HISTORY), now + 1), np.ascontiguousarray(ego[now, : Ego.HEADING + 1])
        moment = Moment(
            road_map=scenario.map,
            pose=pose,
            states=np.ascontiguousarray(states[window]),
            valid=np.ascontiguousarray(valid[window]),
            types=rollout.agents.type,
            sizes=rollout.agents.size,
            light_lanes=scenario.lights.lane,
            light_states=scenario.lights.state[start + s],
            route=correct_route(scenario.map, scenario.route, pose),
        )
        fill(arrays, row, moment, config)
        arrays["ego_current_state"][row] = ego_state(ego[max(0, now - 1)], ego[now])
    return to_scene(arrays)
