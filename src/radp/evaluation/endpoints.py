"""The seven risk endpoints, fixed here before any result was looked at, and shared by every source of pressure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Endpoint:
    """An event is a risk above `threshold`; the risk of a frame is the severity over the next `window` seconds."""

    name: str
    channel: str  # the rule whose pressure should foretell it
    window: float  # s
    aggregate: Literal["max", "last"]
    threshold: float
    severity: str  # what is measured at one moment


ENDPOINTS = (
    Endpoint("collision", "collision", 2.0, "max", 0.0, "area of the ego's box that overlaps other boxes [m2]"),
    Endpoint("ttc", "collision", 2.0, "max", 1 / 0.95, "1 / time to collision [1/s], at most 10; 0 if infinite"),
    Endpoint("lane", "lane", 8.0, "max", -0.30, "minus the margin of the ego's body to the route's border [m]"),
    Endpoint("speed", "speed", 8.0, "max", 0.0, "speed above the limit [m/s]"),
    Endpoint("kinematics", "kinematics", 8.0, "max", 1.0, "largest of a/6, -a/8, |a_lat|/4.5, |curvature|/0.35"),
    Endpoint("comfort", "comfort", 8.0, "max", 1.0, "largest of |jerk|/8.37 along and across, |curvature rate|/0.30"),
    Endpoint("goal", "goal", 8.0, "last", 0.20, "1 - progress of the ego / progress of the expert so far"),
)
MIN_WINDOW_LEFT = 0.5  # share of a window that must remain before the drive ends
MIN_FRAMES = 20  # valid frames for a correlation
TOP_SHARE = 0.10  # of the frames, for the lift
