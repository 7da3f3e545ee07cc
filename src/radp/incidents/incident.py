"""The types of an explanation, ready for JSON. Seconds count from the start of the drive."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass, field
from typing import Any

OF_MOTION = ("kinematics", "comfort")  # rules of differences: they see how a plan begins


@dataclass(frozen=True)
class Beat:
    """One line of the seconds before an incident."""

    time: float
    speed: float  # m/s, of the ego
    acceleration: float  # m/s2
    gap: float | None = None  # m between the boxes of the ego and the other; negative: they overlap
    other_speed: float | None = None  # m/s


@dataclass(frozen=True)
class Press:
    """A rule that pressed on the plans before an incident more than usual, or most of all where no level is known."""

    rule: str
    begins: float  # s, first and last moment above the usual level
    ends: float
    peak: float  # s, when it pressed most
    pressure: float
    level: float | None  # times its usual level; None: not calibrated
    track: str | None = None  # collision: because of whom
    jump: float | None = None  # m/s; not None: most of it is that the plan's first step does not begin as the car moves


@dataclass(frozen=True)
class Remedy:
    """What would have avoided an incident; found and verified by driving it in the simulator."""

    kind: str  # brake, shift, hold (keep to the plan of that moment), push (faster), smooth
    at: float  # s, when it begins
    amount: float  # m/s2 of braking or of the push; s over which speeds are smoothed; 0 of hold
    ahead: float = 0.0  # m, shift of the plan at the time of the incident: forward, and to the left
    left: float = 0.0
    latest: bool = False  # whether nothing that was tried later helps
    gained: float | None = None  # m along the route, of a push


@dataclass(frozen=True)
class Incident:
    """A gate or metric that cost points: what, when, with whom, how it came, and what would have avoided it."""

    metric: str
    rule: str  # whose matter it is
    title: str
    cost: float  # of the score, 0 to 1; 0 where gates had taken everything before
    value: float  # of the metric
    frame: int  # sample at which it happened, or began
    time: float
    end: int  # last sample of it
    what: str
    track: str | None = None
    object: str | None = None
    impact: tuple[float, float] | None = None  # m, world: where the boxes first touch
    course: tuple[Beat, ...] = ()
    presses: tuple[Press, ...] = ()
    trades: tuple[dict[str, Any], ...] = ()  # plans before it that gave up its rule for one of a higher tier
    no_return: float | None = None  # s, from then on nothing that was tried avoids it
    remedies: tuple[Remedy, ...] = ()
    tried: int = 0  # drives of the search
    note: str | None = None  # why nothing could be tried
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explained:
    """A drive, its incidents (dearest first), and the moments of highest pressure without one, in the order of time.

    >>> split = radp.open_split("sumo14-val")[3:4]
    >>> (rollout,) = radp.simulate(radp.load_planner("idm"), split, keep_plans=True)
    >>> why = radp.explain(rollout, verify=False)
    >>> isinstance(why, radp.Explained), why.incidents[0].track
    (True, 's0-t0.1')
    """

    token: str
    kind: str
    moments: list[dict[str, Any]]
    failure: str | None = None
    incidents: list[Incident] = field(default_factory=list)
    planner: str = ""
    score: float | None = None
    levels: str | None = None  # whose usual levels count; None: not calibrated
    rule_set: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        from radp.incidents.words import explained_text

        return explained_text([self])

    def _repr_html_(self) -> str:
        head = f"<b>{html.escape(self.kind)}</b> {html.escape(self.token)} ({html.escape(self.planner)})"
        items = [
            f"<li><b>{html.escape(one.sentences[0])}</b><br>{html.escape(' '.join(one.sentences[1:]))}</li>"
            for one in self.incidents
            if one.sentences
        ]
        items += [f"<li>{html.escape(moment['sentence'])}</li>" for moment in self.moments]
        return f"<div>{head}<ul>{''.join(items)}</ul></div>"
