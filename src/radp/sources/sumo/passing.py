"""Drivers steer round vans in the second row; SUMO's own lateral model would now and then wait behind them for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from radp.sources.sumo.programs import sumo_module
from radp.sources.sumo.recording import Act, RoadUserTrace
from radp.sources.sumo.road import SumoRoad

LOOK_AHEAD = 45.0  # [m] before a van where drivers begin to steer round it
CLEARANCE = 0.75  # [m] between the van and who passes
EVERY = 5  # frames
DOUBLE_PARKED = "double."  # ids of vans in the second row begin with this


@dataclass
class Passing:
    """Asks everybody who comes up to a van in the second row to move to the left of it."""

    road: SumoRoad
    acts: list[Act] = field(default_factory=list)
    _vans: dict[str, list[tuple[float, float]]] | None = None  # lane -> front position and left edge of each van [m]

    def step(self, frame: int, vehicles: dict[str, RoadUserTrace]) -> None:
        """One frame."""
        if frame < 10 or frame % EVERY or not self.road.parking_beside:
            return
        sim = sumo_module("libsumo")
        if self._vans is None:
            self._vans = self._find(sim, [name for name in vehicles if name.startswith(DOUBLE_PARKED)])
        for lane, vans in self._vans.items():
            for name in sim.lane.getLastStepVehicleIDs(lane):
                place = sim.vehicle.getLanePosition(name)
                edges = [edge for front, edge in vans if 0.0 < front - place < LOOK_AHEAD]
                if edges and not name.startswith(DOUBLE_PARKED):
                    wanted = max(edges) + CLEARANCE + sim.vehicle.getWidth(name) / 2
                    shift = wanted - sim.vehicle.getLateralLanePosition(name)
                    if shift > 0.1:
                        sim.vehicle.changeSublane(name, shift)

    def _find(self, sim: Any, names: list[str]) -> dict[str, list[tuple[float, float]]]:
        vans: dict[str, list[tuple[float, float]]] = {}
        for name in sorted(names):
            left = sim.vehicle.getLateralLanePosition(name) + sim.vehicle.getWidth(name) / 2
            vans.setdefault(sim.vehicle.getLaneID(name), []).append((sim.vehicle.getLanePosition(name), left))
        return vans
