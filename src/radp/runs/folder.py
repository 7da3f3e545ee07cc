"""The run folder: one configuration, its results, and what failed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from radp.runs.claim import BOOKS
from radp.runs.errors import BadInput
from radp.runs.files import TEMPORARY_PREFIX, remove_temporaries, write_atomically, write_json_atomically
from radp.runs.ledger import Ledger
from radp.runs.manifest import Manifest
from radp.runs.settings import as_json, first_difference, with_defaults
from radp.version import __version__

CONFIG = "config.json"
COMPARED = ("command", "seed", "radp")


class RunError(BadInput):
    """A folder that cannot hold this run; the message is one sentence that names the folder."""


RUN = Manifest(CONFIG, "radp-run", 1, "run", RunError, version_key="format_version")


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
        settings: Any,
        seed: int = 0,
        execution: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> RunFolder:
        """Make the folder, or take up a run with the same configuration where it stopped.

        `settings` (a dataclass, or a mapping) and the `facts` that were found about the inputs decide the result and
        must be equal on resuming; `execution` (workers, batch size) may differ. A setting that an older run does not
        know counts as its default there.
        """
        path = Path(path)
        config = {
            "command": command,
            "seed": seed,
            "radp": __version__,
            "commit": source_commit(),
            "settings": as_json(settings) | as_json(facts or {}),
            "execution": as_json(execution or {}),
        }
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; expected a folder for the run")
        if RUN.is_in(path):
            run = cls.open(path)
            if difference := _difference(run.config, config, settings):
                raise RunError(f"{path} holds another run ({difference}); choose another folder or delete this one")
            remove_temporaries(path)
            return run
        if path.is_dir() and any(
            child for child in path.iterdir() if not child.name.startswith((TEMPORARY_PREFIX, BOOKS))
        ):
            raise RunError(f"{path} is not empty and holds no run; choose another folder")
        RUN.write(path, config)
        return cls(path, RUN.read(path))

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """An existing run, as it was configured."""
        path = Path(path)
        config = RUN.read(path)
        if not isinstance(config.get("settings"), dict) or "command" not in config:
            raise RunError(f"{path / CONFIG} is damaged: it lacks command or settings")
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
        write_atomically(place, data)
        return place

    def write_json(self, name: str, data: Any) -> Path:
        """Write atomically, making folders on the way."""
        place = self.path_of(name)
        write_json_atomically(place, data)
        return place

    def read_json(self, name: str) -> Any:
        place = self.path_of(name)
        try:
            return json.loads(place.read_bytes())
        except FileNotFoundError:
            raise RunError(f"{place} is missing") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(f"{place} is not readable JSON ({error})") from None


def discard_run(path: Path | str, command: str) -> None:
    """Delete the folder of a run of this command, if there is one; RunError where it holds anything else."""
    path = Path(path)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not RUN.is_in(path) or RunFolder.open(path).config["command"] != command:
        raise RunError(f"{path} holds no run of radp {command}, so it is not deleted; choose another folder")
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise RunError(f"{path} cannot be deleted ({error.strerror or error})") from None


def _difference(before: Mapping[str, Any], after: Mapping[str, Any], settings: Any) -> str:
    """The first value that differs, in words; empty when there is none. `after` was made of `settings`."""
    old, new = ({name: config.get(name) for name in COMPARED} for config in (before, after))
    known = dict(before["settings"])
    if "seed" in after["settings"]:
        known.setdefault("seed", before.get("seed"))  # older runs kept it beside their settings only
    return first_difference(old, new) or first_difference(with_defaults(known, settings), after["settings"])


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
