"""A small run of the fuzz; `make fuzz` runs ten thousand inputs and more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fuzz.run import run
from tests.fuzz.targets import TARGETS, write_seeds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds memory and time as Linux does")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    write_seeds(folder)
    return folder


def test_every_reader_reads_its_sound_files(seeds: Path) -> None:
    for name, target in TARGETS.items():
        if not target.needs or pytest.importorskip(target.needs):
            target.read(seeds)
            assert any(list(seeds.glob(pattern)) for pattern in target.files), name


def test_mutated_files_are_read_or_refused(seeds: Path) -> None:
    report = run(seeds, seed=1, first=0, last=240)
    assert not report.findings and sum(report.by_target.values()) == 240, "\n".join(report.findings)
    assert report.outcomes["refused"] > 60 and report.outcomes["read"] > 10
