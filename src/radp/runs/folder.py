"""The run folder: one configuration, its results, and what failed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.runs.files import remove_temporaries, write_atomically, write_json_atomically
from radp.runs.ledger import Ledger
from radp.version import __version__

CONFIG = "config.json"
FORMAT = "radp-run"
FORMAT_VERSION = 1
COMPARED = ("command", "seed", "radp", "settings")


class RunError(BadInput):
    """A folder that cannot hold this run; the message is one sentence that names the folder."""


class RunFolder:
    """A folder with config.json; every path that it hands out stays inside it."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self.ledger = Ledger(path / "ledger.jsonl")

    @classmethod
    def create(
        cls,
        path: Path | str,
        command: str,
        settings: Mapping[str, Any],
        seed: int = 0,
        execution: Mapping[str, Any] | None = None,
    ) -> RunFolder:
        """Make the folder, or take up a run with the same configuration where it stopped.

        `settings` decide the result and must be equal on resuming; `execution` (workers, batch size) may differ.
        """
        path = Path(path)
        config = json.loads(
            json.dumps(
                {
                    "format": FORMAT,
                    "format_version": FORMAT_VERSION,
                    "command": command,
                    "seed": seed,
                    "radp": __version__,
                    "commit": source_commit(),
                    "settings": dict(settings),
                    "execution": dict(execution or {}),
                },
                allow_nan=False,
            )
        )
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; expected a folder for the run")
        if (path / CONFIG).exists():
            run = cls.open(path)
            difference = _first_difference(run.config, config)
            if difference:
                raise RunError(f"{path} holds another run ({difference}); choose another folder or delete this one")
            remove_temporaries(path)
            return run
        if path.is_dir() and any(child for child in path.iterdir() if not child.name.startswith(".tmp-")):
            raise RunError(f"{path} is not empty and holds no run; choose another folder")
        path.mkdir(parents=True, exist_ok=True)
        write_json_atomically(path / CONFIG, config)
        return cls(path, config)

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """An existing run, as it was configured."""
        path = Path(path)
        try:
            config = json.loads((path / CONFIG).read_bytes())
        except FileNotFoundError:
            raise RunError(f"{path} holds no run: {CONFIG} is missing") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{path / CONFIG} is not readable ({error})") from None
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise RunError(f"{path / CONFIG} does not describe a run of radp")
        if config.get("format_version") != FORMAT_VERSION:
            raise RunError(
                f"{path / CONFIG} has version {config.get('format_version')!r}; this radp reads {FORMAT_VERSION}"
            )
        return cls(path, config)

    @property
    def settings(self) -> dict[str, Any]:
        return self.config["settings"]

    def path_of(self, name: str) -> Path:
        """The place of `name` (may hold slashes) in the folder; names that lead out of it are refused."""
        root = self.path.resolve()
        place = (root / name).resolve()
        if place == root or not place.is_relative_to(root):
            raise RunError(f"{name!r} leads out of the run folder {self.path}")
        return self.path / place.relative_to(root)

    def exists(self, name: str) -> bool:
        return self.path_of(name).exists()

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write atomically, making folders on the way."""
        place = self.path_of(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, data)
        return place

    def write_json(self, name: str, data: Any) -> Path:
        """Write atomically, making folders on the way."""
        place = self.path_of(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json_atomically(place, data)
        return place

    def read_json(self, name: str) -> Any:
        place = self.path_of(name)
        try:
            return json.loads(place.read_bytes())
        except FileNotFoundError:
            raise RunError(f"{place} is missing") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{place} is not readable JSON ({error})") from None


def _first_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first compared value that differs, in words; empty when there is none."""
    for key in COMPARED:
        before, after = old.get(key), new.get(key)
        if key == "settings" and isinstance(before, dict) and isinstance(after, dict):
            for name in [*after, *(k for k in before if k not in after)]:
                if before.get(name) != after.get(name) or (name in before) != (name in after):
                    return f"{name} is {before.get(name)!r} there and {after.get(name)!r} now"
        elif before != after:
            return f"{key} is {before!r} there and {after!r} now"
    return ""


@cache
def source_commit() -> str | None:
    """The commit of radp's own checkout, with -dirty if files differ from it; None for an installed package."""
    package = Path(__file__).resolve().parents[1]
    try:
        root = _git(package, "rev-parse", "--show-toplevel")
        if Path(root).resolve() / "src" / "radp" != package:
            return None  # some other project's repository happens to be around an installed copy
        return _git(package, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
