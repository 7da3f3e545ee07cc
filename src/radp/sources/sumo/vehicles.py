"""Who is on the road: sizes and manners of cars, trucks, buses, two-wheelers and people."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radp.scenario import ObjectType

PERSON_SIZE = (0.5, 0.6, 1.75)  # length, width, height [m]
LANE_CHANGE = {  # sublane model: lateral motion is accelerated, nobody slides sideways at rest
    "laneChangeModel": "SL2015",
    "maxSpeedLat": "1.0",
    "lcAccelLat": "0.8",
    "lcSigma": "0",
    "lcMaxSpeedLatStanding": "0",
    "lcMaxSpeedLatFactor": "0.2",
    "latAlignment": "center",
    "lcSpeedGain": "2",
}
RED_RUNNER = {"jmDriveAfterRedTime": "12", "jmDriveRedSpeed": "14", "jmIgnoreFoeProb": "1", "jmIgnoreFoeSpeed": "30"}
IGNORER = {"jmIgnoreFoeProb": "1", "jmIgnoreFoeSpeed": "30", "jmTimegapMinor": "0.2"}


@dataclass(frozen=True)
class Category:
    """A kind of road user: share of traffic, ranges of size [m], headway [s] and acceleration [m/s^2]."""

    share: float
    length: tuple[float, float]
    width: tuple[float, float]
    height: tuple[float, float]
    tau: tuple[float, float] = (0.7, 1.4)
    accel: tuple[float, float] = (1.3, 1.8)
    decel: tuple[float, float] = (2.4, 2.8)
    vehicle_class: str = "passenger"
    type: ObjectType = ObjectType.VEHICLE
    variants: int = 2
    extra: dict[str, str] = field(default_factory=dict)


CATEGORIES = {
    "car": Category(0.60, (4.2, 4.8), (1.75, 1.9), (1.4, 1.55), variants=6),
    "suv": Category(0.14, (4.7, 5.1), (1.9, 2.05), (1.65, 1.85), variants=3),
    "van": Category(0.05, (5.0, 5.6), (1.95, 2.1), (1.9, 2.3), tau=(0.9, 1.4)),
    "truck": Category(0.08, (8.4, 11.0), (2.4, 2.5), (3.0, 3.8), (1.0, 1.5), (0.9, 1.2), vehicle_class="truck"),
    "bus": Category(0.05, (11.5, 12.2), (2.5, 2.55), (3.0, 3.3), (1.1, 1.5), (0.9, 1.1), vehicle_class="bus"),
    "motorcycle": Category(
        0.02, (2.0, 2.2), (0.8, 0.9), (1.4, 1.5), vehicle_class="motorcycle", type=ObjectType.BICYCLE
    ),
    "bicycle": Category(
        0.06, (1.7, 1.9), (0.6, 0.7), (1.6, 1.8), (1.0, 1.4), (0.7, 1.0), (1.8, 2.2), "bicycle", ObjectType.BICYCLE,
        extra={"maxSpeed": "5.5", "latAlignment": "right"},
    ),
}  # fmt: skip
EGO_CATEGORIES = ("car", "suv", "van")  # may serve as ego, whose box is then the Pacifica's


@dataclass(frozen=True)
class VehicleType:
    """One SUMO vType."""

    name: str
    category: str
    length: float
    width: float
    height: float
    attributes: dict[str, str]

    @property
    def object_type(self) -> ObjectType:
        return CATEGORIES[self.category].type


SPECIAL = {  # name -> category and manners of vehicles that exist for one purpose
    "redrunner": ("car", RED_RUNNER),
    "ignorer": ("car", IGNORER),
    "taxi": ("car", {"vClass": "taxi"}),
    "delivery": ("van", {"vClass": "delivery"}),
    "kerbbus": ("bus", {}),
    "doubleparked": ("van", {"latAlignment": "right"}),
}
PEOPLE = {
    "walker": {"speedFactor": "normc(1,0.15,0.6,1.4)"},
    "jaywalker": {"speedFactor": "1.2", "jmIgnoreFoeProb": "1", "jmIgnoreFoeSpeed": "30"},
}


def draw_types(rng: np.random.Generator, special: dict[str, tuple[str, dict[str, str]]]) -> list[VehicleType]:
    """All variants of all categories, then the special ones."""
    usual = [(f"{name}{i}", name, kind.extra) for name, kind in CATEGORIES.items() for i in range(kind.variants)]
    return [_draw(rng, *row) for row in [*usual, *((name, *how) for name, how in special.items())]]


def _draw(rng: np.random.Generator, name: str, category: str, extra: dict[str, str]) -> VehicleType:
    kind = CATEGORIES[category]
    length, width, height = (round(float(rng.uniform(*r)), 2) for r in (kind.length, kind.width, kind.height))
    tau, accel, decel = (round(float(rng.uniform(*r)), 2) for r in (kind.tau, kind.accel, kind.decel))
    attributes = {
        "vClass": kind.vehicle_class, "length": str(length), "width": str(width), "height": str(height),
        "carFollowModel": "EIDM", "tau": str(tau), "accel": str(accel), "decel": str(decel), "emergencyDecel": "8",
        "minGap": str(round(float(rng.uniform(2.2, 3.2)), 2)), "minGapLat": "0.5", "jmCrossingGap": "14",
        "speedFactor": "normc(0.93,0.06,0.75,1.04)", **LANE_CHANGE,
    }  # fmt: skip
    return VehicleType(name, category, length, width, height, attributes | extra)
