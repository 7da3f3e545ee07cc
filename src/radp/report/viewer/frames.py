"""From the ego's frames to the world."""

from __future__ import annotations

import numpy as np
import torch

from radp.geometry.frames import points_from_frame, pose_frame
from radp.scenario import Ego


def to_world(ego: np.ndarray, points: np.ndarray) -> np.ndarray:
    """points (K, ..., 2) in the ego frames of the first K states -> world, same shape."""
    poses = torch.from_numpy(ego[: len(points), : Ego.VX]).reshape(len(points), *(1,) * (points.ndim - 2), 3)
    frames = pose_frame(poses)
    return points_from_frame(torch.from_numpy(points).double(), frames).numpy()
