"""What a split holds, in numbers: the figures of its dataset card."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from radp.runs.json_text import json_text
from radp.scenario import Ego, ObjectType, Scenario
from radp.sources.sumo.kinds import KINDS

FILE = "card.json"


@dataclass(frozen=True)
class Card:
    """Counts and spreads of one split; spreads are mean, 5th, 50th and 95th percentile."""

    split: str
    scenarios: int
    kinds: dict[str, int]
    networks: dict[str, int]  # name -> scenarios
    with_hazard: int
    hazards: dict[str, int]  # kind of hazard -> scenarios
    road_users: dict[str, float]  # type -> mean number per scenario
    speed: dict[str, float]  # of the ego over all frames of the drive [m/s]
    travelled: dict[str, float]  # by the ego in 15 s [m]
    refused: dict[str, int]  # written rule -> windows thrown out
    failed: dict[str, str]  # network -> why it gave nothing
    short: dict[str, int]  # kind -> missing scenarios

    def write(self, folder: Path) -> None:
        """Beside the store."""
        (folder / FILE).write_text(json_text(asdict(self)) + "\n")


@dataclass
class Tally:
    """Counts scenarios as they come, without keeping them."""

    kinds: Counter[str] = field(default_factory=Counter)
    networks: Counter[str] = field(default_factory=Counter)
    hazards: Counter[str] = field(default_factory=Counter)
    users: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    with_hazard: int = 0
    speeds: list[np.ndarray] = field(default_factory=list)
    travelled: list[float] = field(default_factory=list)

    def add(self, scenario: Scenario) -> None:
        """One more scenario of the split."""
        hazards = [kind for kind in scenario.tags.get("hazard", "").split(",") if kind]
        drive = scenario.ego[scenario.start :]
        self.kinds[scenario.kind] += 1
        self.networks[scenario.tags.get("network", scenario.map.name)] += 1  # logs of other sources have no network
        self.hazards.update(hazards)
        self.with_hazard += bool(hazards)
        self.users.update(scenario.tracks.type.tolist())
        self.speeds.append(drive[:, Ego.VX])
        self.travelled.append(float(np.hypot(*np.diff(drive[:, :2], axis=0).T).sum()))

    def card(self, split: str, short: dict[str, int]) -> Card:
        """The figures of all scenarios so far."""
        count = sum(self.kinds.values())
        return Card(
            split=split,
            scenarios=count,
            kinds={kind: self.kinds[kind] for kind in (*KINDS, *sorted(set(self.kinds) - set(KINDS)))},
            networks=dict(sorted(self.networks.items())),
            with_hazard=self.with_hazard,
            hazards=dict(sorted(self.hazards.items())),
            road_users={t.name.lower(): round(self.users[t] / count, 1) for t in ObjectType if self.users[t]},
            speed=_spread(np.concatenate(self.speeds) if count else np.zeros(1)),
            travelled=_spread(np.array(self.travelled or [0.0])),
            refused=dict(sorted(self.refused.items())),
            failed=dict(sorted(self.failed.items())),
            short=short,
        )


def _spread(values: np.ndarray) -> dict[str, float]:
    shares = {f"p{share}": np.percentile(values, share) for share in (5, 50, 95)}
    return {name: round(float(value), 2) for name, value in {"mean": values.mean(), **shares}.items()}
