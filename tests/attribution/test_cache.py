"""The cache: kill -9 loses nothing and doubles nothing, and what does not fit is refused in a sentence."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import radp.attribution.cache as module
from radp.attribution.cache import Cache
from radp.runs.errors import BadInput
from tests.attribution.making_cache import COUNT, PART, SCALES, make_cache, make_samples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples") / "logs"
    make_samples(path)
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", PART)


def parts(path: Path) -> list[Path]:
    return sorted(path.glob("part-*.safetensors"))


def test_a_killed_run_goes_on_to_the_same_bytes(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed"
    command = [sys.executable, "-m", "tests.attribution.making_cache", str(path), str(data)]
    process = subprocess.Popen(command, cwd=ROOT)
    while len(parts(path)) < 2:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {part.name: part.stat().st_mtime_ns for part in parts(path)}
    if len(kept) < -(-COUNT // PART):
        with pytest.raises(BadInput, match="is not complete"):
            Cache(path)
    resumed, whole = make_cache(path, data), make_cache(tmp_path / "whole", data)
    assert all((path / name).stat().st_mtime_ns == when for name, when in kept.items())  # nothing is made twice
    assert len(resumed) == len(whole) == COUNT
    for mine, theirs in zip(parts(path), parts(tmp_path / "whole"), strict=True):
        assert mine.name == theirs.name and mine.read_bytes() == theirs.read_bytes()
    rows = np.concatenate([part["row"] for part in resumed._parts])
    assert len(set(rows.tolist())) == COUNT


def test_reading_gives_what_head_and_teacher_had(data: Path, tmp_path: Path) -> None:
    cache = make_cache(tmp_path / "c", data)
    order = np.array([7, 0, COUNT - 1])
    state, pressure = cache.read(order)
    np.testing.assert_array_equal(pressure.numpy(), cache.pressure[order])
    for k, row in enumerate(order):
        part = cache._parts[row // PART]
        np.testing.assert_array_equal(state.features[k].numpy(), part["features"][row % PART])
        np.testing.assert_array_equal(state.ego_token[k].numpy(), part["tokens"][row % PART, 0].astype(np.float32))
    assert cache.rules == SCALES.rules


@pytest.mark.parametrize("change", ["calibration", "seed"])
def test_a_stale_cache_is_refused(change: str, data: Path, tmp_path: Path) -> None:
    make_cache(tmp_path / "c", data)
    other = replace(SCALES, kappa=(1.0, *SCALES.kappa[1:])) if change == "calibration" else SCALES
    what = "planner, rules or calibration" if change == "calibration" else "seed"
    with pytest.raises(BadInput, match=f"is a stale cache: its {what} differ from what is asked for"):
        make_cache(tmp_path / "c", data, other, seed=5 if change == "calibration" else 6)


def test_a_folder_without_a_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no cache"):
        Cache(tmp_path)
