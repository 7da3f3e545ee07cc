"""The three seconds before an incident: how the two cars moved, and which rules pressed on the plans."""

from __future__ import annotations

import numpy as np
import torch

from radp.attribution.afterwards import Judged
from radp.geometry.boxes import separation_of
from radp.incidents.find import Event
from radp.incidents.incident import OF_MOTION, Beat, Press
from radp.metrics.drive import LENGTH, WIDTH, Drive
from radp.scenario import Ego
from radp.sim.rollout import Rollout

BEFORE = 30  # samples
EVERY = 5  # samples between beats
MOSTLY = 0.5  # share of the first three steps above which a pressure is a matter of how the plan begins


def beats(rollout: Rollout, drive: Drive, event: Event) -> tuple[Beat, ...]:
    """Every half second of the three before it, and the moment itself."""
    gap = gaps(drive, event.agent)
    seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
    out = []
    for frame in range(max(event.frame % EVERY, event.frame - BEFORE), event.frame + 1, EVERY):
        met = event.agent >= 0 and bool(drive.agent_valid[event.agent, frame])
        out.append(
            Beat(
                round(float(seconds[frame]), 3),
                round(float(drive.speed[frame]), 2),
                round(float(rollout.ego[frame, Ego.AX]), 2),
                round(float(gap[frame]), 2) if met else None,
                round(float(drive.agent_speed[event.agent, frame]), 2) if met else None,
            )
        )
    return tuple(out)


def gaps(drive: Drive, agent: int) -> np.ndarray:
    """(S,) m between the boxes of the ego and one other; negative: they overlap."""
    if agent < 0:
        return np.full(len(drive.ego), np.nan)

    def poses(center: np.ndarray, heading: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.column_stack((center, np.cos(heading), np.sin(heading))))

    own, other = torch.tensor([LENGTH, WIDTH]).double(), torch.from_numpy(drive.agent_size[agent, :2].copy())
    state = drive.agent_state[agent]
    mine, theirs = poses(drive.center, drive.ego[:, 2]), poses(state[:, :2], state[:, 2])
    return separation_of(mine, own, theirs, other).numpy()


def presses(rollout: Rollout, judged: Judged | None, event: Event) -> tuple[Press, ...]:
    """Rules above their usual level in these seconds, the incident's own first, then by their peak.

    Where the incident has somebody else in it, their part of the collision pressure is kept apart from that of all
    others. Without levels: all that press, since nothing says what is usual.
    """
    if judged is None:
        return ()
    reasons, window = judged.reasons, slice(max(0, event.frame - BEFORE), min(event.frame + 1, len(judged.plans)))
    if window.start >= window.stop:
        return ()
    found = []
    for m, rule in enumerate(reasons.rules):
        strength = np.expm1(reasons.pressure[:, m])  # the level, or the plain gradient where none is known
        if rule != "collision":
            found.append(_press(rollout, judged, window, m, strength))
            continue
        shares = shares_of(rollout, judged)
        if event.agent >= 0:
            own = shares[:, event.agent].copy()
            found.append(_press(rollout, judged, window, m, strength * own, event.agent))
            shares[:, event.agent] = 0.0
        rest = strength * shares.sum(1)
        peak = window.start + int(rest[window].argmax())
        who = int(shares[peak].argmax()) if shares[peak].any() else -1
        found.append(_press(rollout, judged, window, m, rest, who))
    loud = [press for press in found if press is not None]
    named = rollout.agents.ids[event.agent] if event.agent >= 0 else None
    return tuple(sorted(loud, key=lambda one: (one.rule != event.rule, one.track != named, -one.pressure)))


def shares_of(rollout: Rollout, judged: Judged) -> np.ndarray:
    """(K, A) share of each track of the drive in the collision cost of each plan."""
    share, tracks = judged.why.agent_share.double().numpy(), judged.why.tracks
    out = np.zeros((len(share), len(rollout.agents)))
    if tracks is not None:
        sample, row = np.nonzero(tracks.numpy() >= 0)
        out[sample, tracks.numpy()[sample, row]] = share[sample, row]
    return out


def _press(
    rollout: Rollout, judged: Judged, window: slice, m: int, strength: np.ndarray, track: int = -1
) -> Press | None:
    """One rule, or one road user's part of it, with strength (K,); None where it stays below what is usual."""
    reasons = judged.reasons
    known = reasons.calibrated[m]
    loud = np.flatnonzero(strength[window] >= 1 if known else strength[window] > 0)
    if not len(loud):
        return None
    seconds = (rollout.time_us - rollout.time_us[0]) * 1e-6
    peak = window.start + int(strength[window].argmax())
    return Press(
        reasons.rules[m],
        round(float(seconds[window.start + loud[0]]), 3),
        round(float(seconds[window.start + loud[-1]]), 3),
        round(float(seconds[peak]), 3),
        round(float(np.log1p(strength[peak])), 4),
        round(float(strength[peak]), 4) if known else None,
        rollout.agents.ids[track] if track >= 0 else None,
        is_jump(judged, peak, m),
    )


def is_jump(judged: Judged, sample: int, m: int) -> float | None:
    """m/s by which the plan's first step is faster than the car, if that is most of what presses; None otherwise."""
    if judged.reasons.rules[m] not in OF_MOTION or not judged.reasons.seam[sample, m] > MOSTLY:
        return None
    return round(float(judged.jump[sample]), 2)
