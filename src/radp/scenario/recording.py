"""A log before anybody was chosen as its ego: what most data sets are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radp.road.road_map import RoadMap
from radp.runs.errors import BadInput
from radp.scenario.scenario import Tracks, TrafficLights


class NoEgo(BadInput):
    """A log that is sound, but in which nobody can be the ego that was asked for."""


@dataclass(frozen=True)
class Recording:
    """T frames of tracks on a map; `sdc` names the track of the car that recorded, None where nobody did.

    `start` is the frame at which a drive begins; the frames before it are history. Frames need not be valid throughout
    for any track.
    """

    token: str
    source: str
    map: RoadMap
    time_us: np.ndarray  # (T,) int64
    tracks: Tracks
    lights: TrafficLights
    sdc: str | None = None
    start: int = 0
    dt: float = 0.1
    tags: dict[str, str] = field(default_factory=dict)


def no_lights(frames: int) -> TrafficLights:
    """The lights of a log that knows none."""
    return TrafficLights(np.zeros(0, dtype=np.int64), np.zeros((frames, 0), dtype=np.uint8))


def usual_start(frames: int, history: int = 20) -> int:
    """Frame at which a drive begins in a log without a custom of its own: after 2 s, or a quarter of a short log."""
    return min(history, frames // 4)
