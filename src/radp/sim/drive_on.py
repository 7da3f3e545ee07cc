"""What would have happened: a drive repeated up to a sample, then driven on along another path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from radp.geometry.limits import states_fault
from radp.scenario import DT, Ego
from radp.sim.controller import trajectories_from_plan
from radp.sim.planner import plan_from_poses
from radp.sim.rollout import Rollout
from radp.sim.simulate import agent_model
from radp.sim.world import PAST, World

AHEAD = 40  # steps of a path that the tracker is shown at a time; it looks 10 ahead and smooths over the rest
REPEATED = 0.02  # m that road users may be off where a drive is repeated


def drive_on(rollout: Rollout, steps: np.ndarray, paths: Sequence[np.ndarray], until: int) -> list[Rollout]:
    """B other drives: as `rollout` up to sample steps[b], then along paths[b], to sample `until` (included).

    paths[b] (P, 3) x, y, heading of the rear axle in the world, every 0.1 s from that sample on; after its end the car
    stays there. Up to its sample each ego is put where it was, and the others meet it there; from then on tracker and
    bicycle follow the path without replanning, and reactive road users react.
    """
    world = World([rollout.scenario] * len(steps), agent_model(rollout.agent_mode), rollout.seed)
    until = min(until, len(rollout.ego) - 1)
    elapsed = (rollout.time_us - rollout.time_us[0]) * 1e-6
    for step in range(until):
        world.ego[:, PAST + step + 1], world.ego_valid[:, PAST + step + 1] = rollout.ego[step + 1], True
        rows = np.flatnonzero(steps <= step)
        if len(rows):
            now = world.ego[rows, PAST + step, : Ego.HEADING + 1]
            since = elapsed[step] - elapsed[steps[rows]]
            poses = np.stack([pose_on(paths[int(b)], s + DT * np.arange(AHEAD + 1)) for b, s in zip(rows, since)])
            times = np.broadcast_to(DT * np.arange(AHEAD + 1), poses.shape[:2])
            reached = world.steer(rows, trajectories_from_plan(plan_from_poses(now, poses, times), len(rows)))
            for b, state in zip(rows, reached):
                if states_fault(state):
                    world.halt(int(b))
        world.tick()
    return [_as_rollout(rollout, world, b, until + 1) for b in range(len(steps))]


def pose_on(path: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """(T, 3) poses of a path (P, 3), every 0.1 s, at these seconds; the last one after its end."""
    grid = DT * np.arange(len(path))
    heading = np.unwrap(path[:, 2])
    return np.stack([np.interp(seconds, grid, column) for column in (path[:, 0], path[:, 1], heading)], -1)


def is_repeated(rollout: Rollout, again: Rollout) -> bool:
    """Whether the road users of a drive move as before where its ego does; foreign simulators cannot be repeated."""
    samples, same = len(again.ego), rollout.agents.ids == again.agents.ids
    if not same or not np.array_equal(rollout.agents.valid[:, :samples], again.agents.valid):
        return False
    apart = rollout.agents.state[:, :samples, :2] - again.agents.state[..., :2]
    return bool((np.abs(apart) <= REPEATED).all())


def _as_rollout(rollout: Rollout, world: World, b: int, samples: int) -> Rollout:
    time_us, ego, agents = world.drive_of(b, samples)
    kept = ("plans", "pressures", "exact_pressures", "rule_costs", "predictions", "agent_shares", "predicted_tracks",
            "share_tracks", "seam_shares")  # fmt: skip
    bare = dict.fromkeys(kept)
    return replace(rollout, time_us=time_us, ego=ego, agents=agents, rules=(), failure=None, **bare)  # type: ignore[arg-type]
