"""The page of evidence on real logs, from made logs: every part is there, and a second call drives nothing again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from radp.scenario.egos import choose_egos
from radp.sources.waymo.gpudrive import read_recording
from tests.sources.made_logs import waymo_json

SCRIPT = Path(__file__).parents[2] / "scripts" / "real_logs.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("real_logs_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw" / "womd_json"
    folder.mkdir(parents=True)
    for name in ("log1", "log15"):  # log15 is held out
        (folder / f"{name}.json").write_text(json.dumps({**waymo_json(), "scenario_id": name}))
    (folder / "broken.json").write_text("{")
    return tmp_path / "raw"


def test_one_command_makes_the_page(script: ModuleType, raw: Path, tmp_path: Path) -> None:
    work, page = tmp_path / "work", tmp_path / "page.md"
    held_out = ("waymo-all@held-out",)
    two = ("constant_velocity", "log_replay")
    script.main(raw, work, page, planners=("log_replay",), models=two, tests=held_out, pictures=2)
    text = page.read_text()
    assert "| waymo-sdc | 3 | 2 |" in text and "| waymo-all | 3 | 6 |" in text
    assert "- waymo-sdc: broken.json" in text and "speed limits 2" in text
    assert "| waymo-sdc | reactive | log_replay |" in text and "| waymo-sdc | nonreactive | log_replay |" in text
    assert "n/a" in text.split("## Planners")[1]  # no speed limits, no such metric
    assert "waymo-sdc: 2 scenarios, each 7.9 s long." in text
    assert "waymo-all@held-out: 3 scenarios of 1 logs, which are resampled whole, each 7.9 s long." in text
    assert "difference to constant_velocity" in text
    assert (work / "pictures" / "waymo-sdc.png").stat().st_size > 1000
    drives = {file: file.stat().st_mtime_ns for file in (work / "drives").rglob("drives/*") if file.is_file()}
    three = ("constant_velocity", "log_replay", "idm")
    one_mode = ("nonreactive",)
    script.main(raw, work, page, planners=two, models=three, tests=held_out, modes=one_mode, pictures=2)
    again = page.read_text()
    assert "| waymo-sdc | nonreactive | constant_velocity |" in again
    learned, aligned = again.split("## Learned from people")[1].split("## Aligned, against its own base")
    assert "difference to constant_velocity" in learned and "difference to log_replay" in aligned
    assert drives and all(file.stat().st_mtime_ns == time for file, time in drives.items())


def test_offsets_from_lanes(script: ModuleType, raw: Path) -> None:
    (scenario,) = choose_egos(read_recording(raw / "womd_json" / "log1.json"))
    poses = np.array([[50.0, -1.8, 0.0], [50.0, -1.3, 0.0], [50.0, -1.8, np.pi], [50.0, 60.0, 0.0]])
    found = list(script.offsets(scenario, poses))
    assert found[:2] == pytest.approx([0.0, 0.5]) and np.isnan(found[3])
    assert np.isnan(found[2]) or found[2] > 1.0  # against the lane: at best the lane beyond the middle of the street
    assert script.OnLanes(np.array(found)).cells()[:2] in (("4", "50.0 %"), ("4", "75.0 %"))
