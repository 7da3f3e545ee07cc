"""Pressures of a drive that is over: those it was driven with, or the teacher's, computed from the plans it kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from radp.attribution import attribute
from radp.attribution.calibration import Calibration
from radp.road.route import correct_route
from radp.rules import default_rules, registered_rules, rule_set
from radp.rules.sets import ROAD
from radp.scenario import Ego
from radp.scene.builder import RULES_ALONE, Moment, ego_state, empty_arrays, fill, to_scene
from radp.scene.scene import RuleView, Scene
from radp.sim.observation import HISTORY
from radp.sim.rollout import Rollout


@dataclass(frozen=True)
class Explanation:
    """K samples of a drive (fewer than it has where it failed), M rules, A tracks."""

    rules: tuple[str, ...]
    pressure: np.ndarray  # (K, M)
    share: np.ndarray  # (K, A) share of each track in the collision pressure

    def columns(self, rules: Sequence[str]) -> np.ndarray:
        """(K, len(rules)) pressures of these rules; NaN for those that are not known here."""
        out = np.full((len(self.pressure), len(rules)), np.nan, dtype=np.float32)
        for i, name in enumerate(rules):
            if name in self.rules:
                out[:, i] = self.pressure[:, self.rules.index(name)]
        return out


def rules_reported(explanations: Iterable[Explanation | None]) -> list[str]:
    """The paper's six, then whatever other rules the drives report."""
    names = dict.fromkeys(rule.name for rule in default_rules())
    for why in explanations:
        names |= dict.fromkeys(why.rules if why is not None else ())
    return list(names)


def rule_words(names: Iterable[str]) -> list[dict[str, str]]:
    """What a page says about rules: name, and what is at stake if the rule is known."""
    describes = {rule.name: rule.describes for rule in (*rule_set(ROAD), *registered_rules())}
    return [{"name": name, "describes": describes.get(name, name)} for name in names]


def explain_drive(rollout: Rollout, calibration: Calibration | None = None) -> Explanation | None:
    """The exact pressures of the drive, or what its planner reported; where both are missing, the teacher is asked now.

    None without plans.
    """
    pressure, share, tracks = rollout.exact_pressures, rollout.agent_shares, rollout.share_tracks
    if pressure is None:
        pressure = rollout.pressures
    names = rollout.rules
    if pressure is not None and len(names) != pressure.shape[1]:
        return None  # pressures of rules that nobody named
    if pressure is None or share is None:
        if rollout.plans is None:
            return None
        why = attribute(
            torch.from_numpy(rollout.plans), scenes_of_drive(rollout, len(rollout.plans)), calibration=calibration
        )  # everybody else keeps their velocity
        if pressure is None:
            names, pressure = why.rules, why.pressure.numpy()
        share, tracks = why.agent_share.numpy(), None if why.tracks is None else why.tracks.numpy()
    if tracks is None:
        tracks = tracks_of_drive(rollout, len(share))
    return Explanation(names, pressure, _by_track(share, tracks, len(rollout.agents)))


def tracks_of_drive(rollout: Rollout, samples: int) -> np.ndarray:
    """(samples, N) the track that each object of the scenes is, -1: nobody; for drives that do not say so."""
    view = RuleView.of(scenes_of_drive(rollout, samples))
    assert view.object_tracks is not None  # scenes that were built know
    return view.object_tracks.numpy()


def _by_track(share: np.ndarray, tracks: np.ndarray, count: int) -> np.ndarray:
    """share (K, N) of the objects of scenes -> (K, count) of tracks."""
    out = np.zeros((len(share), count), dtype=np.float32)
    width = min(share.shape[1], tracks.shape[1])
    sample, row = np.nonzero(tracks[:, :width] >= 0)
    out[sample, tracks[sample, row]] = share[sample, row]
    return out


def scenes_of_drive(rollout: Rollout, samples: int, road: bool = False) -> Scene:
    """What the first `samples` moments of the drive looked like, as the teacher beside the planner sees them.

    `road`: with what the rules of the road look at.
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
    arrays = empty_arrays(samples, config)
    for s in range(samples):
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
        fill(arrays, s, moment, config)
        arrays["ego_current_state"][s] = ego_state(ego[max(0, now - 1)], ego[now])
    return to_scene(arrays)
