"""The log of a drive and the places where logs are kept."""

from radp.road.road_map import NO_AREAS, Areas, RoadMap
from radp.scenario.scenario import (
    DT,
    DT_US,
    Box,
    Briefing,
    Ego,
    LightState,
    ObjectType,
    Scenario,
    Tracks,
    TrafficLights,
)
from radp.scenario.vehicle import PACIFICA, Vehicle

__all__ = [
    "DT",
    "DT_US",
    "NO_AREAS",
    "PACIFICA",
    "Areas",
    "Box",
    "Briefing",
    "Ego",
    "LightState",
    "ObjectType",
    "RoadMap",
    "Scenario",
    "Tracks",
    "TrafficLights",
    "Vehicle",
]
