"""What Argoverse 2 calls things, and how large things are where it does not say."""

from __future__ import annotations

from radp.scenario import ObjectType

EGO_SIZE = (4.877, 1.852, 1.473)  # m, a Ford Fusion
EGO_TO_CENTER = 1.42  # m from its rear axle to the centre of its box

_VEHICLES = (
    "REGULAR_VEHICLE", "LARGE_VEHICLE", "BUS", "BOX_TRUCK", "TRUCK", "TRUCK_CAB", "VEHICULAR_TRAILER", "SCHOOL_BUS",
    "ARTICULATED_BUS", "MESSAGE_BOARD_TRAILER", "TRAFFIC_LIGHT_TRAILER", "RAILED_VEHICLE",
)  # fmt: skip
_TWO_WHEELS = ("BICYCLE", "BICYCLIST", "MOTORCYCLE", "MOTORCYCLIST", "WHEELED_DEVICE", "WHEELED_RIDER")
_PEOPLE = ("PEDESTRIAN", "OFFICIAL_SIGNALER", "STROLLER", "WHEELCHAIR", "DOG", "ANIMAL")

SENSOR = {
    **dict.fromkeys(_VEHICLES, ObjectType.VEHICLE),
    **dict.fromkeys(_TWO_WHEELS, ObjectType.BICYCLE),
    **dict.fromkeys(_PEOPLE, ObjectType.PEDESTRIAN),
    "CONSTRUCTION_CONE": ObjectType.TRAFFIC_CONE,
    "CONSTRUCTION_BARREL": ObjectType.BARRIER,
    "SIGN": ObjectType.CZONE_SIGN,
}
FORECASTING = {  # type -> kind and usual length, width, height [m]
    "vehicle": (ObjectType.VEHICLE, (4.6, 1.9, 1.6)),
    "bus": (ObjectType.VEHICLE, (11.5, 2.7, 3.2)),
    "pedestrian": (ObjectType.PEDESTRIAN, (0.7, 0.7, 1.7)),
    "motorcyclist": (ObjectType.BICYCLE, (2.0, 0.8, 1.7)),
    "cyclist": (ObjectType.BICYCLE, (1.8, 0.7, 1.7)),
    "riderless_bicycle": (ObjectType.BICYCLE, (1.8, 0.6, 1.2)),
    "static": (ObjectType.GENERIC_OBJECT, (0.8, 0.8, 1.0)),
    "background": (ObjectType.GENERIC_OBJECT, (0.8, 0.8, 1.0)),
    "construction": (ObjectType.BARRIER, (0.8, 0.8, 1.0)),
    "unknown": (ObjectType.GENERIC_OBJECT, (0.8, 0.8, 1.0)),
}
