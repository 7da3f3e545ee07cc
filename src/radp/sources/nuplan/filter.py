"""Scenario filters: the YAML files by which the community names its benchmarks (val14, test14-hard, ...)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from radp.runs.errors import require
from radp.sources.convert import SourceError
from radp.sources.limits import MOST_YAML_BYTES

HYDRA = ("_target_", "_convert_", "_recursive_", "_partial_", "defaults")  # keys that say nothing about scenarios
NULLS = ("", "~", "null", "none")
SPLITTERS = ("../splitter/nuplan.yaml", "nuplan.yaml", "splitter/nuplan.yaml")  # beside a filter file


@dataclass(frozen=True)
class ScenarioFilter:
    """What a filter file says; None means no restriction."""

    scenario_types: tuple[str, ...] | None = None
    scenario_tokens: tuple[str, ...] | None = None  # 16 hex digits of the tag's frame
    log_names: tuple[str, ...] | None = None
    map_names: tuple[str, ...] | None = None
    num_scenarios_per_type: int | None = None
    limit_total_scenarios: int | float | None = None  # a float is a share
    timestamp_threshold_s: float | None = None
    ego_displacement_minimum_m: float | None = None
    ego_start_speed_threshold: float | None = None  # m/s, passed from below
    ego_stop_speed_threshold: float | None = None  # m/s, passed from above
    speed_noise_tolerance: float | None = None  # m/s
    remove_invalid_goals: bool = False
    shuffle: bool = False


REFUSED = {  # known to the devkit, without meaning or not followed here: only null and false are accepted
    "expand_scenarios": "scenarios of one frame cannot be driven",
    "token_set_path": "lists of frames are not read",
    "fraction_in_token_set_threshold": "lists of frames are not read",
    "ego_route_radius": "the route is not tested",
}


def read_filter(path: Path | str) -> ScenarioFilter:
    """The filter in a YAML file; SourceError names the file, the key and what was expected."""
    path = Path(path)
    data = _load_yaml(path)
    known = {field.name for field in fields(ScenarioFilter)}
    unknown = [key for key in data if key not in known and key not in REFUSED and key not in HYDRA]
    if unknown:
        raise SourceError(
            f"{path}: unknown keys {', '.join(map(str, unknown))[:200]}; known are {', '.join(sorted(known))}"
        )
    for key, why in REFUSED.items():
        if not _is_null(data.get(key)) and str(data[key]).lower() != "false":
            raise SourceError(f"{path}: {key} is {str(data[key])[:80]!r}, but {why}; set it to null")
    values = {}
    for key in known & set(data):
        if _is_null(data[key]):
            continue
        try:
            values[key] = READERS[key](data[key])
        except (ValueError, TypeError, OverflowError) as error:
            raise SourceError(f"{path}: {key}: {error}") from None
    if data.get("log_names") is not None and "log_names" in values:
        values["log_names"] = _log_names(path, values["log_names"])
    return ScenarioFilter(**values)


def _load_yaml(path: Path) -> dict[str, Any]:
    """A mapping whose scalars are all text: a token such as 4e10 must not become a number."""
    yaml = require("yaml", "nuplan")

    class PlainLoader(yaml.BaseLoader):  # type: ignore[name-defined]
        """Without references to other parts, by which a few lines become billions of values."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it refers to other parts of itself")
            return super().compose_node(parent, index)

    try:
        if path.stat().st_size > MOST_YAML_BYTES:
            raise yaml.YAMLError(f"it is larger than {MOST_YAML_BYTES} bytes")
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=PlainLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{path}: not a readable YAML file ({' '.join(str(error).split())})") from None
    if not isinstance(data, dict):
        raise SourceError(f"{path}: expected a mapping of filter keys, found {type(data).__name__}")
    return data


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.lower() in NULLS)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected a list of names")
    return tuple(value)


def _tokens(value: Any) -> tuple[str, ...]:
    """A list of tokens, or of [log, token] pairs as older files have them."""
    if not isinstance(value, list):
        raise ValueError("expected a list of tokens")
    tokens = [item[-1] if isinstance(item, list) and item else item for item in value]
    for token in tokens:
        if not isinstance(token, str) or not re.fullmatch(r"[0-9a-fA-F]{16}", token):
            raise ValueError(f"{token!r} is no token of 16 hex digits")
    return tuple(token.lower() for token in tokens)


def _flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return str(value).lower() == "true"


def _count(value: Any) -> int:
    if int(value) <= 0:
        raise ValueError(f"{value} is not a positive number")
    return int(value)


def _count_or_share(value: Any) -> int | float:
    if re.fullmatch(r"[+-]?\d+", value):
        return _count(value)
    if not 0.0 < float(value) <= 1.0:
        raise ValueError(f"{value} is neither a count nor a share of at most 1")
    return float(value)


READERS: Mapping[str, Callable[[Any], Any]] = {
    "scenario_types": _texts,
    "scenario_tokens": _tokens,
    "log_names": _texts,
    "map_names": _texts,
    "num_scenarios_per_type": _count,
    "limit_total_scenarios": _count_or_share,
    "timestamp_threshold_s": float,
    "ego_displacement_minimum_m": float,
    "ego_start_speed_threshold": float,
    "ego_stop_speed_threshold": float,
    "speed_noise_tolerance": float,
    "remove_invalid_goals": _flag,
    "shuffle": _flag,
}


def _log_names(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of logs; `${splitter.log_splits.X}` is looked up in the splitter file that the devkit keeps near by."""
    reference = re.fullmatch(r"\$\{splitter\.log_splits\.(\w+)\}", names[0]) if len(names) == 1 else None
    if reference is None:
        return names
    for place in SPLITTERS:
        splitter = path.parent / place
        if splitter.is_file():
            splits = _load_yaml(splitter).get("log_splits")
            if not isinstance(splits, dict) or not isinstance(splits.get(reference[1]), list):
                raise SourceError(f"{splitter}: log_splits has no list {reference[1]!r}")
            return _texts(splits[reference[1]])
    raise SourceError(
        f"{path}: log_names refers to {names[0]}: put the devkit's splitter nuplan.yaml beside the filter, "
        f"or set log_names to null and give the folder of that split as --db"
    )
