"""The table of parts: trained from one start, driven, averaged over seeds, and nothing done twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.scripts import script
from tests.training.test_processes import samples  # noqa: F401  (a fixture)


def test_parts_are_trained_and_driven_once(
    samples: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = script("parts")
    short = {name: parts.replace(parts.VARIANTS[name], seeds=(0, 1)) for name in ("all", "no-takeovers")}
    monkeypatch.setattr(parts, "VARIANTS", short | {"no-seam": parts.VARIANTS["no-seam"]})
    work, page = tmp_path / "work", tmp_path / "page.md"
    with ScenarioWriter(tmp_path / "logs") as writer:
        writer.add(make_scenario(3, agents=6, frames=16))  # 1.5 s to drive
    options = {"variants": tuple(parts.VARIANTS), "split": str(tmp_path / "logs"), "steps": 2, "decay": 1}
    parts.main(samples, samples, samples, work, page, **options)
    text = page.read_text()
    assert "| all parts | 2 |" in text and "| no takeovers | 2 |" in text and "2 steps of batches of 16" in text
    mixed, unmixed = (
        json.loads((work / "runs" / name / "config.json").read_text()) for name in ("all-0", "no-takeovers-0")
    )
    assert [len(run["settings"]["data"].split()) for run in (mixed, unmixed)] == [3, 2]
    seamless = json.loads((work / "models" / "no-seam-0" / "config.json").read_text())
    assert seamless["model"]["seam_s"] is None and seamless["model"]["ego_speed"] is True
    files = {file: file.stat().st_mtime_ns for file in work.rglob("*.safetensors")}
    parts.main(samples, samples, samples, work, page, **options)
    assert page.read_text() == text and all(file.stat().st_mtime_ns == time for file, time in files.items())
