"""radp explain: say what went wrong in drives, why, and what would have avoided it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text
from radp.sim.settings import Agents

if TYPE_CHECKING:
    from radp.attribution.calibration import Calibration
    from radp.incidents import Explained
    from radp.sim.rollout import Rollout

NONE = "none"


@dataclass(frozen=True)
class Explain:
    """Say what went wrong in a drive: every gate or metric that cost points, with whom, how it came, which rule pressed
    when, from when on it was lost, and what would have avoided it, driven in the simulator. Then the highest pressures.

    Either a planner drives scenarios, or the drives of a run or of a SimulationLog of nuplan-devkit are explained,
    whatever planner made them, or one trajectory in a file.

    Example:
        radp explain --scenarios sumo14-val --planner idm --token 3847af748faf7403
        radp explain --run runs/idm --token 3847af748faf7403 --at 5.0
        radp explain --scenario scenario.json.gz --trajectory plan.csv --at 2.5
        radp explain --log drive.msgpack.xz --maps nuplan/maps
    """

    scenarios: str | None = None
    """Name of a packaged split, or a path (store, neutral JSON file, folder of them), to drive."""
    planner: str | None = None
    """Who drives."""
    run: Path | None = None
    """Folder of radp simulate --keep-plans (or --attribution teacher) whose drives are explained."""
    token: tuple[str, ...] = ()
    """Only scenarios with these tokens."""
    scenario: Path | None = None
    """A file with one scenario (neutral JSON)."""
    trajectory: Path | None = None
    """A plan of the rear axle: .csv with columns x, y, heading (or cos, sin) and perhaps t, or .npz."""
    log: Path | None = None
    """A SimulationLog file (.msgpack.xz)."""
    maps: Path | None = None
    """Folder of nuPlan's maps, for the log; without it rules that need a map have no pressure."""
    calibration: str | None = None
    """Packaged model or folder with the usual levels of the rules, or none; the planner's own if not given, and those
    of radp-mini if it has none."""
    rule_set: str = "v2"
    """Rules that judge: v2 (made for attribution), road-v2 (eight more), paper, road, v2-2s, v2-discount."""
    at: float | None = None
    """Seconds after the start: the moment of the drive to look at, or that in which the trajectory was planned."""
    coordinates: Literal["ego", "world"] = "ego"
    """Of the trajectory: ego (x ahead, y left) or world (as in the scenario)."""
    agents: Agents = "reactive"
    """How the others move: reactive (IDM) or nonreactive (as in the log)."""
    limit: int | None = None
    """At most this many scenarios: the first of each kind, then the second of each, and so on."""
    worst: int = 3
    """Moments to report beside the incidents, those of the highest pressure."""
    all_frames: bool = False
    """Report every moment instead."""
    verify: bool = True
    """Look for what would have avoided an incident by driving it; some seconds for each."""
    seed: int = 0
    """Of the planner's randomness."""
    json: bool = False
    """Print everything as JSON."""

    def __call__(self) -> int:
        from radp.incidents.words import explained_text

        if self.worst < 1 or (self.limit or 1) < 1:
            raise BadInput("worst and limit must be at least 1")
        explained = self._explained()
        failures = [one.failure for one in explained if one.failure and not one.moments and not one.incidents]
        if failures and len(failures) == len(explained):
            raise BadInput(f"every drive failed; the first: {failures[0]}")
        if self.json:
            calibrated = all(one.levels is not None for one in explained)
            print(json_text({"calibrated": calibrated, "scenarios": [one.to_json() for one in explained]}))
        else:
            print(explained_text(explained))
        return 0

    def _explained(self) -> list[Explained]:
        """Of the one source that was named."""
        given = {
            "drive": bool(self.scenarios or self.planner),
            "run": self.run is not None,
            "plan": bool(self.scenario or self.trajectory),
            "log": self.log is not None,
        }
        if [name for name, there in given.items() if there] == ["drive"] and self.scenarios and self.planner:
            return self._drives(self._driven(self.scenarios, self.planner), self.planner)
        if sum(given.values()) == 1 and self.run is not None:
            return self._drives(*_kept(self.run, self.token, self.limit))
        if sum(given.values()) == 1 and self.scenario and self.trajectory:
            return [self._one_plan(self.scenario, self.trajectory)]
        if sum(given.values()) == 1 and self.log is not None:
            from radp.sources.nuplan.simulation_log import read_simulation_log

            return self._drives([read_simulation_log(self.log, self.maps)], "")
        raise BadInput("give --scenarios and --planner, or --run, or --scenario and --trajectory, or --log")

    def _driven(self, scenarios: str, planner: str) -> Iterable[Rollout]:
        from radp.planners import load_planner
        from radp.scenario.splits import limited, open_split, with_tokens
        from radp.sim.simulate import simulate

        split = open_split(scenarios)
        chosen = limited(with_tokens(split, self.token) if self.token else split, self.limit)
        return simulate(load_planner(planner), chosen, self.agents, seed=self.seed, keep_plans=True)

    def _drives(self, rollouts: Iterable[Rollout], planner: str) -> list[Explained]:
        from radp.incidents import explain
        from radp.incidents.explain import at_moment

        levels = self._levels(planner)
        worst = None if self.all_frames or self.at is not None else self.worst
        explained = []
        for rollout in rollouts:
            if self.at is not None and not 0 <= round(self.at / rollout.scenario.dt) < len(rollout.ego):
                raise BadInput(f"at is {self.at:g} s, expected 0 to {0.1 * (len(rollout.ego) - 1):g} s")
            one = explain(rollout, levels, self.rule_set, worst, self.verify)
            explained.append(one if self.at is None else at_moment(one, self.at))
        return explained

    def _one_plan(self, scenario: Path, trajectory: Path) -> Explained:
        from radp.incidents import explain_plan
        from radp.report.plan_file import read_plan
        from radp.scenario.splits import open_split
        from radp.sim.replay import observe_logs

        found = open_split(scenario)
        if len(found) != 1:
            raise BadInput(f"{scenario} holds {len(found)} scenarios, expected one")
        step, one = round((self.at or 0.0) / 0.1), found[0]
        if not 0 <= step < one.frames:
            raise BadInput(f"at is {self.at or 0:g} s, expected 0 to {0.1 * (one.frames - 1):g} s")
        plan = read_plan(trajectory, observe_logs([one], step), self.coordinates == "world")
        return explain_plan(plan, one, step, self._levels(""), self.rule_set)[0]

    def _levels(self, planner: str) -> Calibration | None:
        from radp.attribution.online import calibration_of, levels_of

        if self.calibration == NONE:
            return None
        if self.calibration is None:
            return levels_of(planner, self.rule_set)
        found = calibration_of(None, self.calibration, self.rule_set)
        if found is None:
            raise BadInput(
                f"{self.calibration} has no usual levels of the rule set {self.rule_set!r}; radp calibrate makes them"
            )
        return found


def _kept(folder: Path, wanted: tuple[str, ...], limit: int | None) -> tuple[Iterable[Rollout], str]:
    """The drives of a run, and who drove."""
    from radp.evaluation.closed_loop import Run
    from radp.scenario.splits import limited, with_tokens

    run = Run.open(folder)
    asked = with_tokens(run.split, wanted) if wanted else run.split
    driven = asked.select([place for place, token in enumerate(asked.tokens()) if token in run.store])
    if not len(driven):
        raise BadInput(f"{folder} holds no such drive yet")
    return (run.store.read(scenario) for scenario in limited(driven, limit)), run.job.planner
