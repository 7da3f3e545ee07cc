"""q(X): geometric features of a plan, the second half of the attribution head's query. Listed here and only here."""

from __future__ import annotations

import torch
from torch import Tensor

from radp.rules.motion import Motion, heading_of, motion_of

WINDOWS = 8  # equal parts of the horizon
# name: (scale that brings it to about 1, how it is summed up over a window)
SERIES = {
    "speed": (10.0, ("mean", "max")),
    "a_lon": (3.0, ("mean", "max", "min")),
    "a_lat": (3.0, ("mean", "largest")),
    "curvature": (0.1, ("mean", "largest")),
    "jerk_lon": (8.0, ("largest", "rms")),
    "jerk_lat": (8.0, ("largest", "rms")),
    "curvature_rate": (0.3, ("largest", "rms")),
}
SUMMARIES = ("mean", "max", "min", "largest", "rms")
_CHOSEN = torch.tensor(
    [len(SUMMARIES) * i + SUMMARIES.index(s) for i, (_, chosen) in enumerate(SERIES.values()) for s in chosen]
)
PLACE = 3  # x, y, heading at the end of each window
NOW = 2  # speed and acceleration now


def feature_count() -> int:
    """Q: the length of q(X)."""
    return WINDOWS * (sum(len(summaries) for _, summaries in SERIES.values()) + PLACE) + NOW


def plan_features(trajectory: Tensor, speed_now: Tensor, accel_now: Tensor) -> Tensor:
    """trajectory (B, H, 4) in metres, speed and acceleration now (B,) -> (B, Q).

    Large values are compressed by sign(v) log(1 + |v|), so that one wild step does not drown the rest.
    """
    known = torch.ones_like(speed_now, dtype=torch.bool)
    motion = motion_of(trajectory, speed_now, accel_now, known)
    ends = _windows(trajectory.transpose(1, 2))[..., -1].transpose(1, 2)  # (B, W, 4)
    place = torch.cat((ends[..., :2] / 20.0, heading_of(ends).unsqueeze(-1)), -1).flatten(1)
    now = torch.stack((speed_now / SERIES["speed"][0], accel_now / SERIES["a_lon"][0]), -1)
    values = torch.cat((_summaries(motion), place, now), -1)
    return values.sign() * values.abs().log1p()


def _windows(series: Tensor) -> Tensor:
    """(..., H) -> (..., W, H / W); a rest that fills no window is left out."""
    length = series.shape[-1] // WINDOWS
    return series[..., : WINDOWS * length].unflatten(-1, (WINDOWS, length))


def _summaries(motion: Motion) -> Tensor:
    """(B, 15 W): all series at once, series by series, then summary by summary."""
    series = torch.stack([getattr(motion, name) for name in SERIES], 1)  # (B, 7, H)
    scale = series.new_tensor([scale for scale, _ in SERIES.values()])
    parts = _windows(series / scale[:, None])  # (B, 7, W, n)
    least, most = parts.aminmax(dim=-1)
    rms = parts.norm(dim=-1) / parts.shape[-1] ** 0.5
    made = torch.stack((parts.mean(-1), most, least, torch.maximum(most, -least), rms), 2)  # (B, 7, 5, W)
    return made.flatten(1, 2).index_select(1, _CHOSEN.to(made.device)).flatten(1)
