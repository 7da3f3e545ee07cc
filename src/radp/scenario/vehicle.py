"""The ego vehicle: the Chrysler Pacifica of nuPlan, which every planner and metric here assumes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Vehicle:
    """All lengths in metres, measured from the rear axle where a direction matters."""

    width: float = 2.297
    front_length: float = 4.049
    rear_length: float = 1.127
    wheel_base: float = 3.089
    height: float = 1.777

    @property
    def length(self) -> float:
        return self.front_length + self.rear_length

    @property
    def rear_axle_to_center(self) -> float:
        """Distance from the rear axle forward to the centre of the box."""
        return self.length / 2 - self.rear_length


PACIFICA = Vehicle()
