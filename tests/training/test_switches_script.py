"""The table of switches: trained, driven, compared, and nothing done twice."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from radp.model.config import MINI, NUPLAN
from radp.scenario.store import ScenarioWriter
from radp.sources.synthetic import make_scenario
from tests.scripts import script
from tests.training.test_processes import samples  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def switches() -> ModuleType:
    return script("switches")


def test_all_switches_of_the_preset_are_switched(switches: ModuleType) -> None:
    sizes = {"agents", "lanes", "route_lanes", "neighbours", "hidden", "encoder_depth", "preproj_hidden"}
    sizes |= {"mixer_tokens", "mixer_channels", "mixer_depth", "encoder_dropout", "decoder_dropout"}
    published = NUPLAN.to_json()
    differing = {name for name, value in MINI.to_json().items() if value != published[name]}
    assert differing - sizes == set(switches.SWITCHES)


def test_variants_are_trained_and_driven_once(switches: ModuleType, samples: Path, tmp_path: Path) -> None:  # noqa: F811
    work, page = tmp_path / "work", tmp_path / "page.md"
    with ScenarioWriter(tmp_path / "logs") as writer:
        writer.add(make_scenario(3, agents=6, frames=16))  # 1.5 s to drive
    options = {"split": str(tmp_path / "logs"), "steps": 4, "batch": 4, "warmup": 1}
    switches.main(samples, work, page, variants=("mini", "one-draw"), **options)
    text = page.read_text()
    assert "| mini | the preset |" in text and "| one-draw | one noise draw" in text and "4 steps, batch 4" in text
    files = {file: file.stat().st_mtime_ns for file in work.rglob("*.safetensors")}
    switches.main(samples, work, page, variants=("mini", "one-draw"), **options)
    assert page.read_text() == text and all(file.stat().st_mtime_ns == time for file, time in files.items())
