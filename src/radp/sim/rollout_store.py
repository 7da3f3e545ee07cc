"""Drives on disk: one file per finished scenario, written whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from radp.runs.errors import BadInput
from radp.runs.files import remove_temporaries, write_atomically
from radp.scenario import Box, Scenario, Tracks
from radp.sim.rollout import Rollout, logged_agents
from radp.storage.codec import CodecError
from radp.storage.records import decode_fields, encode_fields, pack_blobs, unpack_blobs

SUFFIX = ".drive"
LEVEL = 3  # of compression: drives are written faster than they could be squeezed
NOBODY = Tracks((), np.zeros(0, np.uint8), np.zeros((0, 3)), np.zeros((0, 0, len(Box))), np.zeros((0, 0), bool))


class RolloutStoreError(BadInput):
    """A drive that is missing, damaged or of another scenario; the message names the file."""


@dataclass(frozen=True)
class _Stored:
    """A Rollout without its scenario, in fields that have blobs."""

    token: str
    agent_mode: str
    planner: str
    failure: str  # empty: none
    seed: np.ndarray  # (1,)
    time_us: np.ndarray
    ego: np.ndarray
    agents: Tracks  # NOBODY where they are the log's, which the scenario has
    plans: np.ndarray | None
    pressures: np.ndarray | None
    predictions: np.ndarray | None = None
    agent_shares: np.ndarray | None = None
    exact_pressures: np.ndarray | None = None
    rule_costs: np.ndarray | None = None
    rules: tuple[str, ...] = ()


def rollout_to_bytes(rollout: Rollout) -> bytes:
    """Everything but the scenario, of which only the token is kept."""
    stored = _Stored(
        token=rollout.scenario.token,
        agent_mode=rollout.agent_mode,
        planner=rollout.planner,
        failure=rollout.failure or "",
        seed=np.array([rollout.seed], dtype=np.int64),
        time_us=rollout.time_us,
        ego=rollout.ego,
        agents=NOBODY if rollout.agent_mode == "nonreactive" else rollout.agents,
        plans=rollout.plans,
        pressures=rollout.pressures,
        predictions=rollout.predictions,
        agent_shares=rollout.agent_shares,
        exact_pressures=rollout.exact_pressures,
        rule_costs=rollout.rule_costs,
        rules=rollout.rules,
    )
    return pack_blobs(encode_fields(stored, LEVEL))


def rollout_from_bytes(data: bytes, scenario: Scenario) -> Rollout:
    """The inverse, with the scenario that was driven; CodecError if damaged, ValueError if it is another scenario."""
    stored = decode_fields(_Stored, unpack_blobs(data))
    if stored.token != scenario.token:
        raise ValueError(f"holds a drive of scenario {stored.token!r}, expected {scenario.token!r}")
    return Rollout(
        scenario=scenario,
        time_us=stored.time_us,
        ego=stored.ego,
        agents=logged_agents(scenario, len(stored.ego)) if stored.agent_mode == "nonreactive" else stored.agents,
        agent_mode=stored.agent_mode,
        planner=stored.planner,
        seed=int(stored.seed[0]),
        plans=stored.plans,
        pressures=stored.pressures,
        predictions=stored.predictions,
        agent_shares=stored.agent_shares,
        exact_pressures=stored.exact_pressures,
        rule_costs=stored.rule_costs,
        rules=stored.rules or (),
        failure=stored.failure or None,
    )


class RolloutStore:
    """A folder of drives by token. Several processes may write to it at the same time."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def clean(self) -> None:
        """Make the folder and remove what writers that were killed left behind; call it before writing starts."""
        self.path.mkdir(parents=True, exist_ok=True)
        remove_temporaries(self.path)

    def path_of(self, token: str) -> Path:
        """Tokens may hold any character; file names may not."""
        return self.path / f"{quote(token, safe='').replace('.', '%2E')}{SUFFIX}"

    def tokens(self) -> set[str]:
        """Scenarios that are finished; files that a killed writer left half-written start with a dot."""
        return {unquote(path.name.removesuffix(SUFFIX)) for path in self.path.glob(f"[!.]*{SUFFIX}")}

    def write(self, rollout: Rollout) -> None:
        write_atomically(self.path_of(rollout.scenario.token), rollout_to_bytes(rollout))

    def read(self, scenario: Scenario) -> Rollout:
        path = self.path_of(scenario.token)
        try:
            return rollout_from_bytes(path.read_bytes(), scenario)
        except FileNotFoundError:
            raise RolloutStoreError(f"{path} is missing: scenario {scenario.token!r} was not driven") from None
        except (OSError, CodecError, ValueError) as error:
            raise RolloutStoreError(f"{path}: {error}") from None
