"""The risk endpoints in three readings, fixed here and shared by every source of pressure.

`main` is the headline. `paper` is the nearest to the paper's text: raw differences of executed motion, and progress
against the expert's. `committed` is of plans that were driven for 2 s without replanning. `BESIDE` stands beside a
reading's seven endpoints and is in no mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Endpoint:
    """An event is a risk above `threshold`; the risk of a frame is made of the severity in its window."""

    name: str
    channel: str  # the rule whose pressure should foretell it
    window: float  # s
    aggregate: Literal["max", "mean", "last", "now"]  # now: the severity looks over the window itself
    threshold: float
    severity: str  # what is measured at one moment
    measured: str = ""  # name of the severity, if not that of the endpoint
    known: str = ""  # name of the severity that is known at this moment, for persistence, if not the same
    begin: float = 0.0  # s from now after which the window begins, itself not in it; at 0 the present counts too

    @property
    def series(self) -> str:
        return self.measured or self.name

    @property
    def persistence(self) -> str:
        return self.known or self.series


_INVERSE_TTC = "1 / time to collision [1/s], at most 10; 0 if infinite"
_BORDER = "minus the margin of the ego's body to the route's border [m]"
_KINEMATICS = "largest of a/6, -a/8, |a_lat|/4.5, |curvature|/0.35"
_COMFORT = "largest of |jerk|/8.37 along and across, |curvature rate|/0.30"
_SMOOTH, _RAW = "smoothed as in nuPlan's comfort metric", "raw differences"
_COMMON = (
    Endpoint("collision", "collision", 2.0, "max", 0.0, "area of the ego's box that overlaps other boxes [m2]"),
    Endpoint("ttc", "collision", 2.0, "max", 1 / 0.95, _INVERSE_TTC),
    Endpoint("lane", "lane", 8.0, "max", -0.30, _BORDER),
    Endpoint("speed", "speed", 8.0, "max", 0.0, "speed above the limit [m/s]"),
)
ENDPOINTS = (
    *_COMMON,
    Endpoint("kinematics", "kinematics", 8.0, "max", 1.0, f"{_KINEMATICS}; {_SMOOTH}"),
    Endpoint("comfort", "comfort", 8.0, "max", 1.0, f"{_COMFORT}; {_SMOOTH}"),
    Endpoint(
        "goal", "goal", 8.0, "now", 0.20, "1 - progress made in the window / progress in reach, v t + 0.25 t^2",
        known="goal_before",
    ),
)  # fmt: skip
PAPER = (
    *_COMMON,
    Endpoint("kinematics", "kinematics", 8.0, "max", 1.0, f"{_KINEMATICS}; {_RAW}", "kinematics_raw"),
    Endpoint("comfort", "comfort", 8.0, "max", 1.0, f"{_COMFORT}; {_RAW}", "comfort_raw"),
    Endpoint("goal", "goal", 8.0, "last", 0.20, "1 - progress of the ego / progress of the expert so far", "goal_same"),
)
_OF_TOTAL = Endpoint(
    "goal_total", "goal", 8.0, "last", 0.20, "1 - progress of the ego / progress of the expert in the whole drive"
)
_LATE_TTC = Endpoint("ttc_late", "collision", 2.0, "max", 1 / 0.95, _INVERSE_TTC, "ttc", begin=1.0)
_MEAN_LANE = Endpoint("lane_mean", "lane", 8.0, "mean", -0.30, _BORDER, "lane")
COMMITTED_SECONDS = 2.0
COMMITTED = tuple(
    replace(
        e, window=COMMITTED_SECONDS, aggregate="now", severity=e.severity.replace("the window", "the 2 s"),
        measured=f"committed_{e.name}", known=e.persistence,
    )
    for e in ENDPOINTS
)  # fmt: skip

Reading = Literal["main", "paper", "committed"]
READINGS: dict[Reading, tuple[Endpoint, ...]] = {"main": ENDPOINTS, "paper": PAPER, "committed": COMMITTED}
BESIDE: dict[Reading, tuple[Endpoint, ...]] = {
    "main": (_LATE_TTC, _MEAN_LANE, _OF_TOTAL), "paper": (_OF_TOTAL,), "committed": (),
}  # fmt: skip


def series_of(readings: Sequence[Reading]) -> tuple[str, ...]:
    """Names of the severities that these readings are made of."""
    every = [e for reading in readings for e in (*READINGS[reading], *BESIDE[reading])]
    return tuple(dict.fromkeys(name for e in every for name in (e.series, e.persistence)))


EXECUTED = series_of(("main", "paper"))  # severities of executed states
MIN_WINDOW_LEFT = 0.5  # share of a window that must remain before the drive ends
MIN_FRAMES = 20  # valid frames for a correlation
TOP_SHARE = 0.10  # of the frames, for the lift
