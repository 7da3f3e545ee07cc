"""How scenarios are driven: one place for the command line, the Python call and config.json. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from radp.runs.errors import BadInput

Agents = Literal["reactive", "nonreactive"]
Controller = Literal["lqr", "perfect"]
Backend = Literal["torch", "onnx", "openvino", "auto"]
AGENT_MODES: tuple[Agents, ...] = get_args(Agents)
CONTROLLERS: tuple[Controller, ...] = get_args(Controller)
BACKENDS: tuple[Backend, ...] = get_args(Backend)


@dataclass(frozen=True)
class DriveOptions:
    """How to drive; everything here decides the result, the batch size does not."""

    agents: Agents = "reactive"
    """How the others move: reactive (IDM) or nonreactive (as in the log)."""
    seed: int = 0
    """Of the planner's randomness."""
    controller: Controller = "lqr"
    """lqr (tracker and bicycle, as nuPlan) or perfect (the ego is put on its plan)."""
    keep_plans: bool = False
    """Keep every plan and rule pressure with the drives."""

    def __post_init__(self) -> None:
        for name, allowed in (("agents", AGENT_MODES), ("controller", CONTROLLERS)):
            if getattr(self, name) not in allowed:
                raise BadInput(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(allowed)}")
