"""radp explain: say which rule presses on plans, in sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text
from radp.sim.settings import Agents

if TYPE_CHECKING:
    from radp.attribution.calibration import Calibration
    from radp.report.explain import Explained


@dataclass(frozen=True)
class Explain:
    """Say which rule presses on a plan: how strongly, from which second of the plan on, because of which object.

    Either a planner drives scenarios and its worst moments are reported, or one trajectory in a file is explained, or
    the plans in a SimulationLog of nuplan-devkit, whatever planner made them.

    Example:
        radp explain --scenarios sumo14-val --planner pdm_closed --limit 3 --calibration radp-mini
        radp explain --scenario scenario.json.gz --trajectory plan.csv --at 2.5
        radp explain --log drive.msgpack.xz --maps nuplan/maps
    """

    scenarios: str | None = None
    """Name of a packaged split, or a path (store, neutral JSON file, folder of them), to drive."""
    planner: str | None = None
    """Who drives."""
    scenario: Path | None = None
    """A file with one scenario (neutral JSON)."""
    trajectory: Path | None = None
    """A plan of the rear axle: .csv with columns x, y, heading (or cos, sin) and perhaps t, or .npz."""
    log: Path | None = None
    """A SimulationLog file (.msgpack.xz)."""
    maps: Path | None = None
    """Folder of nuPlan's maps, for the log; without it rules that need a map have no pressure."""
    calibration: str | None = None
    """Packaged model or folder with the usual levels of the rules; the planner's own if not given."""
    rule_set: str = "v2"
    """Rules that judge: v2 (made for attribution), paper, v2-2s, v2-discount."""
    at: float = 0.0
    """When the trajectory was planned, in seconds after the scenario's start."""
    coordinates: Literal["ego", "world"] = "ego"
    """Of the trajectory: ego (x ahead, y left) or world (as in the scenario)."""
    agents: Agents = "reactive"
    """How the others move: reactive (IDM) or nonreactive (as in the log)."""
    limit: int | None = None
    """At most this many scenarios, from the first."""
    worst: int = 3
    """Moments to report of each scenario, those of the highest pressure."""
    all_frames: bool = False
    """Report every frame instead."""
    seed: int = 0
    """Of the planner's randomness."""
    json: bool = False
    """Print everything as JSON."""

    def __call__(self) -> int:
        from radp.report.explain import explained_text

        if self.log and not (self.scenarios or self.planner or self.scenario or self.trajectory):
            worst = None if self.all_frames else self.worst
            explained, scale = _logged(self.log, self.maps, self.calibration, self.rule_set, worst)
        elif (self.scenarios and self.planner) and not (self.log or self.scenario or self.trajectory):
            if self.worst < 1 or (self.limit or 1) < 1:
                raise BadInput("worst and limit must be at least 1")
            explained, scale = _drive(
                self.scenarios,
                self.planner,
                self.calibration,
                self.rule_set,
                self.agents,
                self.limit,
                None if self.all_frames else self.worst,
                self.seed,
            )
            failures = [one.failure for one in explained if one.failure and not one.moments]
            if failures and len(failures) == len(explained):
                raise BadInput(f"every drive failed; the first: {failures[0]}")
        elif (self.scenario and self.trajectory) and not (self.log or self.scenarios or self.planner):
            explained, scale = _one_plan(
                self.scenario, self.trajectory, self.calibration, self.rule_set, self.at, self.coordinates == "world"
            )
        else:
            raise BadInput("give --scenarios and --planner, or --scenario and --trajectory, or --log")
        if self.json:
            print(json_text({"calibrated": scale is not None, "scenarios": [asdict(t) for t in explained]}))
        else:
            print(explained_text(explained, scale is not None))
        return 0


def _drive(
    scenarios: str,
    name: str,
    calibration: str | None,
    rules: str,
    agents: Agents,
    limit: int | None,
    worst: int | None,
    seed: int,
) -> tuple[list[Explained], Calibration | None]:
    from radp.attribution.online import calibration_of
    from radp.planners import load_planner
    from radp.report.explain import explain_planner
    from radp.scenario.splits import open_split

    planner = load_planner(name)
    scale = _calibration(calibration, rules) if calibration else calibration_of(planner, name, rules)
    return explain_planner(planner, open_split(scenarios)[:limit], scale, agents, worst, seed, rules), scale


def _one_plan(
    scenario: Path, trajectory: Path, calibration: str | None, rules: str, at: float, world: bool
) -> tuple[list[Explained], Calibration | None]:
    from radp.report.explain import explain_plan
    from radp.report.plan_file import read_plan
    from radp.scenario.splits import open_split
    from radp.sim.replay import observe_logs

    found = open_split(scenario)
    if len(found) != 1:
        raise BadInput(f"{scenario} holds {len(found)} scenarios, expected one")
    scale = _calibration(calibration, rules) if calibration else None
    step, one = round(at / 0.1), found[0]
    if not 0 <= step < one.frames:
        raise BadInput(f"at is {at:g} s, expected 0 to {0.1 * (one.frames - 1):g} s")
    plan = read_plan(trajectory, observe_logs([one], step), world)
    return [explain_plan(plan, one, step, scale, rules)[0]], scale


def _logged(
    log: Path, maps: Path | None, calibration: str | None, rules: str, worst: int | None
) -> tuple[list[Explained], Calibration | None]:
    from radp.report.explain import explain_rollout
    from radp.sources.nuplan.simulation_log import read_simulation_log

    scale = _calibration(calibration, rules) if calibration else None
    return [explain_rollout(read_simulation_log(log, maps), scale, worst, rules)], scale


def _calibration(name: str, rules: str) -> Calibration:
    from radp.attribution.online import calibration_of

    found = calibration_of(None, name, rules)
    if found is None:
        raise BadInput(f"{name} has no usual levels of the rule set {rules!r}; radp calibrate makes them")
    return found
