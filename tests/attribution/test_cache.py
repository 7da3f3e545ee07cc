"""The cache: kill -9 loses nothing and doubles nothing, and what does not fit is refused in a sentence."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import radp.attribution.cache as module
from radp.attribution.cache import Cache
from radp.attribution.states import explain_samples, sample_seeds
from radp.model.head import AttributionHead, HeadConfig, head_inputs
from radp.model.sampler import noise_of_seeds
from radp.planners.diffusion import DiffusionPlanner
from radp.rules import comfort
from radp.runs.errors import BadInput
from radp.scene.log_samples import LogSamples
from radp.storage.arrays import map_arrays, write_arrays
from tests.attribution import making_cache
from tests.attribution.making_cache import CONFIG, COUNT, PART, SCALES, awake, make_cache, make_samples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("samples") / "logs"
    make_samples(path)
    return path


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART", PART)
        yield


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """Made in one go; only looked at."""
    return make_cache(tmp_path_factory.mktemp("whole") / "c", data)


@pytest.fixture
def mine(whole: Cache, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(whole.path, tmp_path / "mine")


def parts(path: Path) -> list[Path]:
    return sorted(path.glob("part-*.safetensors"))


def test_a_killed_run_goes_on_to_the_same_bytes(data: Path, whole: Cache, tmp_path: Path) -> None:
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
    resumed = make_cache(path, data)
    assert all((path / name).stat().st_mtime_ns == when for name, when in kept.items())  # nothing is made twice
    assert len(resumed) == len(whole) == COUNT
    for mine, theirs in zip(parts(path), parts(whole.path), strict=True):
        assert mine.name == theirs.name and mine.read_bytes() == theirs.read_bytes()
    rows = np.concatenate([part["row"] for part in resumed.rows.parts])
    assert len(set(rows.tolist())) == COUNT


def test_reading_gives_what_head_and_teacher_had(whole: Cache) -> None:
    order = np.array([7, 0, COUNT - 1])
    state, pressure = whole.read(order)
    np.testing.assert_array_equal(pressure.numpy(), whole.pressure[order])
    for k, row in enumerate(order):
        part = whole.rows.parts[row // PART]
        np.testing.assert_array_equal(state.features[k].numpy(), part["features"][row % PART])
        np.testing.assert_array_equal(state.ego_token[k].numpy(), part["tokens"][row % PART, 0].astype(np.float32))
    assert whole.rules == SCALES.rules


def test_the_head_learns_from_what_it_is_served(data: Path) -> None:
    """Also for a planner whose plans start at the ego's own speed."""
    planner = DiffusionPlanner(awake(replace(CONFIG, seam_s=0.6)))
    planner.head = AttributionHead(HeadConfig(CONFIG.hidden, SCALES.rules, hidden=16)).eval()
    scene, seeds = LogSamples.open(data, planner.scenes).read([0, 9, 20]), [4, 5, 6]
    drawn, inputs, _ = explain_samples(planner.model, scene, SCALES, seeds)
    served = planner.draw(scene, noise_of_seeds(seeds, planner.model))
    assert torch.equal(drawn.trajectories, served.trajectories)
    assert torch.equal(planner.head(*inputs), planner.pressures(served, scene))
    without, _, _ = explain_samples(awake(CONFIG), scene, SCALES, seeds)
    assert not torch.allclose(without.trajectories, served.trajectories)


@pytest.mark.parametrize("kind", ["cheap", "full"])
def test_a_head_with_geometry_learns_from_what_it_is_served(kind: str, data: Path, tmp_path: Path) -> None:
    config = HeadConfig(CONFIG.hidden, SCALES.rules, hidden=16, geometry=kind)
    planner = DiffusionPlanner(awake(CONFIG), head=AttributionHead(config).eval())
    assert planner.scenes.rules
    samples = LogSamples.open(data, planner.scenes)
    rows = np.array([0, 9, 20])
    cache = module.write_cache(tmp_path / "c", planner.model, samples, SCALES, rows, 5, geometry=[kind])
    served = planner.draw(samples.read(rows), noise_of_seeds(sample_seeds(5, 0, 3), planner.model))
    inputs, _ = cache.read(np.arange(3), kind)
    expected = head_inputs(served, samples.read(rows), kind)
    torch.testing.assert_close(inputs.geometry, expected.geometry, rtol=1e-5, atol=1e-5)  # batches round differently
    planner.head.standardise(cache.geometry(kind))
    predicted = planner.pressures(served, samples.read(rows))
    torch.testing.assert_close(planner.head(*inputs), predicted, rtol=0, atol=0.01)  # tokens are kept in half precision
    with pytest.raises(BadInput, match=r"keeps no .* geometry; radp cache --geometry"):
        cache.geometry("full" if kind == "cheap" else "cheap")
    with pytest.raises(BadInput, match=r"geometry\.kinds is"):
        module.write_cache(tmp_path / "c", planner.model, samples, SCALES, rows, 5, geometry=["cheap", "full"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("seed", "seed is 5 there and 6 now"),
        ("levels", r"levels is \[0\.5, .*\] there and \[1\.0, .*\] now"),
        ("weights", "planner is '[0-9a-f]{16}' there and '[0-9a-f]{16}' now"),
        ("constant", r"constants\.comfort\.MAX_JERK is 8\.37 there and 9\.0 now"),
        ("scale", r"constants\.comfort\.scale is 1\.0 there and 1\.1 now"),
        ("definition", "its rules judge fixed plans otherwise than those now"),
    ],
)
def test_a_stale_cache_is_refused(
    change: str, words: str, data: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "constant":
        monkeypatch.setattr(comfort, "MAX_JERK", 9.0)
    if change == "scale":
        monkeypatch.setattr(comfort.Comfort, "scale", 1.1)
    if change == "definition":
        terms = comfort.Comfort.terms
        monkeypatch.setattr(comfort.Comfort, "terms", lambda *given: terms(*given)[:2])
    if change == "weights":
        monkeypatch.setattr(making_cache, "awake", lambda config: awake(config, seed=1))
    levels = replace(SCALES, kappa=(1.0, *SCALES.kappa[1:])) if change == "levels" else SCALES
    with pytest.raises(BadInput, match=f"holds another cache \\({words}\\); choose another folder"):
        make_cache(mine, data, levels, seed=6 if change == "seed" else 5)


def test_the_text_of_source_files_does_not_matter(data: Path, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not read, it cannot: a comment makes no cache stale."""
    read = Path.read_bytes

    def without_source(path: Path) -> bytes:
        assert path.suffix != ".py"
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", without_source)
    monkeypatch.setattr(comfort.Comfort, "weight", 0.9)  # of the alignment loss: no part of a pressure
    assert len(make_cache(mine, data)) == COUNT


def test_training_and_validation_must_come_from_the_same(data: Path, whole: Cache, tmp_path: Path) -> None:
    assert whole.is_like(make_cache(tmp_path / "b", data, seed=6))
    assert not whole.is_like(make_cache(tmp_path / "c", data, replace(SCALES, kappa=(1.0, *SCALES.kappa[1:]))))


def test_a_folder_without_a_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no cache"):
        Cache(tmp_path)


WRONG = {
    "pressure": (np.nan, "pressure holds a value that is not finite"),
    "tokens": (np.nan, "tokens holds a value that is not finite"),
    "scene": (np.inf, "scene holds a value that is not finite"),
    "features": (np.nan, "features holds a value that is not finite"),
}


def test_wrong_content_is_refused(data: Path, tmp_path: Path) -> None:
    make_cache(tmp_path, data)
    file = parts(tmp_path)[0]
    whole = file.read_bytes()
    for name, (value, words) in WRONG.items():
        arrays, note = map_arrays(file)
        spoiled = {key: array.copy() for key, array in arrays.items()}
        spoiled[name][(0,) * spoiled[name].ndim] = value
        write_arrays(file, spoiled, note)
        with pytest.raises(BadInput, match=words):
            Cache(tmp_path).read(np.array([0]))
        file.write_bytes(whole)
    arrays, note = map_arrays(file)
    write_arrays(file, {name: array[:-1] for name, array in arrays.items()}, note)
    with pytest.raises(BadInput, match="row of shard 0 is"):
        Cache(tmp_path)
