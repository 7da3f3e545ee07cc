"""Normalisation of scenes and trajectories: (value - mean) / std, with padding kept at zero.

Two JSON layouts are read and written: the published `normalization.json` ("ego", "neighbor" and one entry
for each observation) and the published `args.json` ("state_normalizer", "observation_normalizer"). Our own
`config.json` carries the latter pair as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from radp.scene.scene import Scene, present


@dataclass(frozen=True)
class StateNormaliser:
    """mean, std (P, 1, 4): x, y, cos, sin of the ego (row 0) and the P - 1 predicted neighbours."""

    mean: Tensor
    std: Tensor

    def normalise(self, states: Tensor) -> Tensor:
        """(B, P, T, 4) m -> (B, P, T, 4). Nothing is masked here."""
        return (states - self.mean) / self.std

    def denormalise(self, states: Tensor) -> Tensor:
        """(B, P, T, 4) -> (B, P, T, 4) m."""
        return states * self.std + self.mean


@dataclass(frozen=True)
class ObservationNormaliser:
    """(mean, std) for each normalised field of a Scene, each broadcast over the field's last axis."""

    moments: Mapping[str, tuple[Tensor, Tensor]]

    def of(self, name: str, like: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and deviation (C,) of a field `like` (..., C), on its device; 0 and 1 where it is not normalised."""
        mean, std = self.moments.get(name, (torch.zeros(1), torch.ones(1)))
        return mean.to(like).expand(like.shape[-1]), std.to(like).expand(like.shape[-1])

    def normalise(self, scene: Scene) -> Scene:
        """Scene in m -> normalised Scene. Rows that are all zero stay zero (else x = 0 would become -0.5)."""
        return self._apply(scene, lambda value, mean, std: (value - mean) / std)

    def denormalise(self, scene: Scene) -> Scene:
        """Normalised Scene -> Scene in m. Rows that are all zero stay zero."""
        return self._apply(scene, lambda value, mean, std: value * std + mean)

    def _apply(self, scene: Scene, change: Any) -> Scene:
        changed = {}
        for name, (mean, std) in self.moments.items():
            value = getattr(scene, name)
            changed[name] = change(value, mean, std).masked_fill(~present(value).unsqueeze(-1), 0.0)
        return replace(scene, **changed)


@dataclass(frozen=True)
class Normaliser:
    """The pair that travels with a model. Both agree on x, y, cos, sin of the current states."""

    state: StateNormaliser
    observation: ObservationNormaliser

    def to(self, device: torch.device | str) -> Normaliser:
        moments = {name: (mean.to(device), std.to(device)) for name, (mean, std) in self.observation.moments.items()}
        state = StateNormaliser(self.state.mean.to(device), self.state.std.to(device))
        return Normaliser(state, ObservationNormaliser(moments))

    @property
    def neighbours(self) -> int:
        return self.state.mean.shape[0] - 1

    @staticmethod
    def published(neighbours: int = 10) -> Normaliser:
        """The constants of the published planner, for a given number of predicted neighbours."""
        return Normaliser.from_normalization_json(PUBLISHED_NORMALIZATION, neighbours)

    @staticmethod
    def from_normalization_json(layout: Mapping[str, Any], neighbours: int) -> Normaliser:
        """From the published `normalization.json`; "ego" and "neighbor" become rows of the state normaliser."""
        rows = [layout["ego"]] + [layout["neighbor"]] * neighbours
        state = StateNormaliser(*(torch.tensor([[row[moment]] for row in rows]) for moment in ("mean", "std")))
        return Normaliser(state, _observation({k: v for k, v in layout.items() if k not in STATE_KEYS}))

    @staticmethod
    def from_args(args: Mapping[str, Any]) -> Normaliser:
        """From the state_normalizer and observation_normalizer of `args.json` (or of our config.json)."""
        missing = [key for key in ("state_normalizer", "observation_normalizer") if key not in args]
        if missing:
            raise ValueError(f"no normaliser in the settings: {', '.join(missing)} missing")
        mean, std = _moments("state_normalizer", args["state_normalizer"])
        if mean.ndim != 3 or mean.shape[1:] != (1, len(_POSE_STD)) or len(mean) < 1 or std.shape != mean.shape:
            raise ValueError(f"state_normalizer: shape {tuple(mean.shape)}, expected a row of {len(_POSE_STD)} each")
        return Normaliser(StateNormaliser(mean, std), _observation(args["observation_normalizer"]))

    def to_args(self) -> dict[str, Any]:
        """Inverse of `from_args`; exact, since float32 -> JSON -> float32 loses nothing."""
        return {
            "state_normalizer": {"mean": self.state.mean.tolist(), "std": self.state.std.tolist()},
            "observation_normalizer": {
                name: {"mean": mean.tolist(), "std": std.tolist()}
                for name, (mean, std) in self.observation.moments.items()
            },
        }


def _moments(name: str, entry: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation; ValueError if they cannot be used."""
    mean, std = (torch.tensor(entry[part], dtype=torch.float32) for part in ("mean", "std"))
    if not bool(mean.isfinite().all() and std.isfinite().all() and (std > 0).all()):
        raise ValueError(f"{name}: means must be finite, and deviations positive")
    return mean, std


def _observation(layout: Mapping[str, Any]) -> ObservationNormaliser:
    moments = {}
    for name, entry in layout.items():
        if name not in PUBLISHED_NORMALIZATION or name in STATE_KEYS:
            raise ValueError(f"observation_normalizer: a scene has no {name!r}")
        moments[name] = mean, std = _moments(name, entry)
        columns = len(PUBLISHED_NORMALIZATION[name]["mean"])
        if not mean.shape == std.shape == (columns,):
            raise ValueError(f"{name}: {tuple(mean.shape)} means and {tuple(std.shape)} deviations, expected {columns}")
    return ObservationNormaliser(moments)


STATE_KEYS = ("ego", "neighbor")


def _entry(std: list[float]) -> dict[str, list[float]]:
    """x is centred 10 m ahead of the ego; every other column is centred at zero."""
    return {"mean": [10.0] + [0.0] * (len(std) - 1), "std": std}


_POSE_STD = [20.0, 20.0, 1.0, 1.0]
_LANE_STD = [20.0] * 8 + [1.0] * 4
PUBLISHED_NORMALIZATION: dict[str, dict[str, list[float]]] = {
    "ego": _entry(_POSE_STD),
    "neighbor": _entry(_POSE_STD),
    "ego_current_state": _entry([*_POSE_STD, 20.0, 20.0, 20.0, 20.0, 1.0, 1.0]),
    "neighbor_agents_past": _entry([*_POSE_STD, 20.0, 20.0, 20.0, 20.0, 1.0, 1.0, 1.0]),
    "static_objects": _entry([*_POSE_STD, 20.0, 20.0, 1.0, 1.0, 1.0, 1.0]),
    "lanes": _entry(_LANE_STD),
    "lanes_speed_limit": {"mean": [0.0], "std": [20.0]},
    "route_lanes": _entry(_LANE_STD),
    "route_lanes_speed_limit": {"mean": [0.0], "std": [20.0]},
}
