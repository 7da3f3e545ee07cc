"""radp doctor: what is installed, what is missing, and where data were found."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text
from radp.version import __version__


@dataclass(frozen=True)
class DataFolder:
    """A folder that an environment variable names: what is looked for, and where else it usually lies."""

    what: str
    pattern: str
    usual: Path


PROJECT = Path(__file__).parents[3]
DATA_FOLDERS = {
    "RADP_SHARED": DataFolder("golden numbers and real logs for tests", "*", PROJECT.parent / "shared"),
    "NUPLAN_DATA_ROOT": DataFolder("nuPlan logs, .db", "**/*.db", Path.home() / "nuplan" / "dataset"),
    "NUPLAN_MAPS_ROOT": DataFolder("nuPlan maps, map.gpkg", "**/map.gpkg", Path.home() / "nuplan" / "dataset" / "maps"),
}
MOST_FILES = 100_000  # that a search counts


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, what is missing and how to get it, where data were found, and what is packaged.

    Example:
        radp doctor
        radp doctor --filters val14.yaml test14-hard.yaml test14-random.yaml
        radp doctor --json
    """

    filters: tuple[Path, ...] = ()
    """nuPlan: scenario filters (or folders of them) whose scenarios are counted in the logs."""
    json: bool = False
    """Print one JSON object."""

    def __call__(self) -> int:
        for path in self.filters:
            if not path.exists():
                raise BadInput(f"{path} does not exist")
        findings = examine(self.filters)
        print(json_text(findings) if self.json else readable(findings))
        return 0 if all(package["version"] for package in findings["packages"].values()) else 1


def examine(filters: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Everything the doctor knows, ready for JSON."""
    from importlib import metadata

    from radp.runs.folder import source_commit
    from radp.runs.worker import cpu_count
    from radp.sources.nuplan.inventory import take_stock
    from radp.zoo import list_models, list_splits

    core, extras = requirements(metadata.requires("radp") or ())
    return {
        "radp": {"version": __version__, "commit": source_commit(), "folder": str(Path(__file__).parents[1])},
        "python": {"version": platform.python_version(), "system": platform.platform(), "processors": cpu_count()},
        "torch": _torch(),
        "providers": _providers(),
        "packages": {name: {"version": installed_version(name)} for name in core},
        "extras": {extra: _extra(extra, names) for extra, names in extras.items()},
        "engines": _engines(),
        "data": {variable: _look_for(variable, folder) for variable, folder in DATA_FOLDERS.items()},
        "nuplan": take_stock(_folder("NUPLAN_DATA_ROOT"), _folder("NUPLAN_MAPS_ROOT"), filters),
        "splits": list_splits(),
        "models": list_models(),
    }


def requirements(lines: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Requirement strings of a package -> names it always needs, and names for each extra."""
    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if match:
            (extras.setdefault(extra[1], []) if extra else core).append(match[1])
    return core, extras


def installed_version(name: str) -> str | None:
    """Version of an installed package, or None."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _extra(extra: str, names: list[str]) -> dict[str, Any]:
    missing = [name for name in names if installed_version(name) is None]
    install = f'pip install "radp[{extra}]"' if missing else None
    return {"present": not missing, "missing": missing, "install": install}


def _engines() -> dict[str, dict[str, Any]]:
    """Which engines can be used here, and what is missing for the others."""
    from shutil import which

    ray, submitit = installed_version("ray"), installed_version("submitit")
    slurm = [] if submitit else ['pip install "radp[slurm]"']
    return {
        "local": {"ready": True, "version": None, "missing": []},
        "ray": {"ready": bool(ray), "version": ray, "missing": [] if ray else ['pip install "radp[ray]"']},
        "slurm-local": {"ready": bool(submitit), "version": submitit, "missing": slurm},
        "slurm": {
            "ready": bool(submitit and which("sbatch")),
            "version": submitit,
            "missing": slurm + ([] if which("sbatch") else ["sbatch is not on the path"]),
        },
    }


def _torch() -> dict[str, Any]:
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"version": None, "problem": str(error)}
    return {"version": torch.__version__, "threads": torch.get_num_threads(), "cuda": torch.cuda.is_available()}


def _providers() -> dict[str, Any]:
    """What can run exported planners, and whether planners can be exported here."""
    from radp.runtime.sessions import PACKAGES

    found: dict[str, Any] = {name: installed_version(package) for name, package in PACKAGES.items()}
    return {**found, "export": all(installed_version(name) for name in ("onnx", "onnxscript"))}


def _folder(variable: str) -> Path:
    return Path(os.environ.get(variable) or DATA_FOLDERS[variable].usual)


def _look_for(variable: str, folder: DataFolder) -> dict[str, Any]:
    """Where a variable (or habit) points, and how many files are there."""
    value = os.environ.get(variable)
    path = _folder(variable)
    files = sum(1 for _ in islice(path.glob(folder.pattern), MOST_FILES)) if path.is_dir() else 0
    return {"what": folder.what, "set": bool(value), "path": str(path), "found": path.is_dir(), "files": files}


def _provider_line(providers: dict[str, Any]) -> str:
    shown = [f"{name} {providers[name] or 'not installed'}" for name in ("onnx", "openvino")]
    return f"providers {', '.join(shown)}; {'can' if providers['export'] else 'cannot'} export to ONNX"


def readable(findings: dict[str, Any]) -> str:
    """The findings as lines."""
    from radp.sources.nuplan.inventory import in_words

    radp, python, torch = findings["radp"], findings["python"], findings["torch"]
    commit = f", commit {radp['commit']}" if radp["commit"] else ""
    lines = [
        f"radp      {radp['version']}{commit} ({radp['folder']})",
        f"python    {python['version']} on {python['system']}, {python['processors']} processors",
        f"torch     {torch['version']}, {torch['threads']} threads, {'with' if torch['cuda'] else 'no'} GPU"
        if torch["version"]
        else f"torch     cannot be loaded: {torch['problem']}",
        _provider_line(findings["providers"]),
        "packages  "
        + ", ".join(f"{name} {entry['version'] or 'MISSING'}" for name, entry in findings["packages"].items()),
    ]
    for name, extra in findings["extras"].items():
        state = "present" if extra["present"] else f"lacks {', '.join(extra['missing'])}: {extra['install']}"
        lines.append(f"extra     {name}: {state}")
    for name, engine in findings["engines"].items():
        version = f" ({engine['version']})" if engine["version"] else ""
        lines.append(f"engine    {name}{version}: {'; '.join(engine['missing']) or 'ready'}")
    for variable, data in findings["data"].items():
        origin = "" if data["set"] else "not set; "
        state = f"{data['files']} found in {data['path']}" if data["found"] else f"{data['path']} is not a folder"
        lines.append(f"data      {variable} ({data['what']}): {origin}{state}")
    if findings["nuplan"]["logs"] or any(findings["nuplan"]["maps"].values()):
        lines += [f"nuplan    {line}" for line in in_words(findings["nuplan"])]
    lines.append(f"splits    {', '.join(findings['splits']) or 'none packaged'}")
    lines.append(f"models    {', '.join(findings['models']) or 'none packaged'}")
    return "\n".join(lines)
