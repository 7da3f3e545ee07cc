"""The table of switches: trained, driven, compared, and nothing done twice."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from radp.model.config import MINI, NUPLAN
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.training.test_processes import samples  # noqa: F401  (a fixture)

SCRIPT = Path(__file__).parents[2] / "scripts" / "switches.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("switches_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_all_switches_of_the_preset_are_switched(script: ModuleType) -> None:
    sizes = {"agents", "lanes", "route_lanes", "neighbours", "hidden", "encoder_depth", "preproj_hidden"}
    sizes |= {"mixer_tokens", "mixer_channels", "mixer_depth", "encoder_dropout", "decoder_dropout"}
    published = NUPLAN.to_json()
    differing = {name for name, value in MINI.to_json().items() if value != published[name]}
    assert differing - sizes == set(script.SWITCHES)


def test_variants_are_trained_and_driven_once(script: ModuleType, samples: Path, tmp_path: Path) -> None:  # noqa: F811
    work, page = tmp_path / "work", tmp_path / "page.md"
    with ScenarioWriter(tmp_path / "logs") as writer:
        writer.add(make_scenario(3, agents=6, frames=16))  # 1.5 s to drive
    options = {"split": str(tmp_path / "logs"), "steps": 4, "batch": 4, "warmup": 1}
    script.main(samples, work, page, variants=("mini", "one-draw"), **options)
    text = page.read_text()
    assert "| mini | the preset |" in text and "| one-draw | one noise draw" in text and "4 steps, batch 4" in text
    files = {file: file.stat().st_mtime_ns for file in work.rglob("*.safetensors")}
    script.main(samples, work, page, variants=("mini", "one-draw"), **options)
    assert page.read_text() == text and all(file.stat().st_mtime_ns == time for file, time in files.items())
