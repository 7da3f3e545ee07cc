"""What a case study shows of the road ahead, from executed states."""

from __future__ import annotations

import numpy as np
import torch

from radp.geometry.boxes import make_boxes, separation
from radp.geometry.frames import pose_frame
from radp.metrics.drive import box_centers
from radp.metrics.ttc import COS_AHEAD
from radp.scenario import PACIFICA, Box, Ego
from radp.sim.rollout import Rollout

FARTHEST = 50.0  # m


def front_clearance(rollout: Rollout) -> np.ndarray:
    """(S,) gap between the boxes of the ego and the nearest object within 30 degrees ahead [m]; NaN beyond 50 m.

    The gap is the largest over the four box axes, 0 at contact.
    """
    tracks, centers, heading = rollout.agents, box_centers(rollout.ego), rollout.ego[:, Ego.HEADING]
    if not len(tracks):
        return np.full(len(centers), np.nan)
    forward = np.stack((np.cos(heading), np.sin(heading)), -1)
    way = tracks.state[..., :2] - rollout.ego[None, :, :2]
    distance = np.linalg.norm(way, axis=-1)
    ahead = tracks.valid & ((way * forward).sum(-1) > COS_AHEAD * distance)
    ego = _boxes(np.concatenate((centers, heading[:, None]), -1), np.array(PACIFICA.length), np.array(PACIFICA.width))
    others = _boxes(tracks.state[..., : Box.VX], tracks.size[:, None, 0], tracks.size[:, None, 1])
    gap = separation(ego.unsqueeze(0), others).numpy()
    nearest = np.where(ahead, np.maximum(gap, 0.0), np.inf).min(0)
    return np.where(nearest <= FARTHEST, nearest, np.nan)


def _boxes(poses: np.ndarray, length: np.ndarray, width: np.ndarray) -> torch.Tensor:
    pose = torch.from_numpy(np.ascontiguousarray(poses))
    frames = pose_frame(pose)
    return make_boxes(frames, torch.as_tensor(length), torch.as_tensor(width))
