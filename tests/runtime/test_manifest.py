"""Folders that are no export, or are hostile or damaged ones: one sentence each."""

import hashlib
import json

import numpy as np
import pytest

from radp.model.config import MINI
from radp.model.solver_table import solver_table
from radp.runs.errors import BadInput
from radp.runtime.manifest import read_manifest
from radp.runtime.runtime import _arrays
from radp.scene.normaliser import Normaliser


def entry(path):
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.fixture
def folder(tmp_path):
    """An export whose graphs hold nothing; only what the manifest says is looked at."""
    for name in ("encoder.onnx", "step.onnx"):
        (tmp_path / name).write_bytes(b"graph")
    np.savez(tmp_path / "golden.npz", noise=np.zeros(3))
    values = {
        "format": "radp-onnx", "version": "1.3", "model": MINI.to_json(), "temperature": 0.5,
        "normaliser": Normaliser.published(MINI.neighbours).to_args(), "schedule": solver_table(10),
        "graphs": {name: entry(tmp_path / f"{name}.onnx") for name in ("encoder", "step")},
        "golden": entry(tmp_path / "golden.npz"),
    }  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(values))
    return tmp_path


def change(folder, **values):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_later_minor_version_is_read(folder):
    manifest = read_manifest(folder)
    assert manifest.predicted == 7 and len(manifest.schedule.keep) == 10 and manifest.graphs["step"].name == "step.onnx"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"format": "other"}, "format"),
        ({"version": "2.0"}, "other inputs"),
        ({"graphs": {}}, "no graph 'encoder'"),
        ({"graphs": 3}, "not a readable manifest"),
        ({"temperature": float("nan")}, "temperature"),
        ({"schedule": solver_table(10) | {"keep": [1.0]}}, "schedule"),
        ({"schedule": solver_table(3) | {"take": [1.0, float("inf"), 1.0]}}, "schedule"),
        ({"normaliser": {"state_normalizer": {"mean": [[[0, 0, 0, 0]]], "std": [[[0, 1, 1, 1]]]}}}, "normaliser"),
        ({"normaliser": Normaliser.published(3).to_args()}, "does not fit"),
        ({"model": {}}, "not a readable manifest"),
        ({"golden": {"file": "../golden.npz", "sha256": ""}}, "no plain file name"),
        ({"head": {"geometry": "full"}}, "geometry 'full', which this radp cannot compute"),
        ({"head": {"geometry": "a\nb" * 999}}, "cannot compute"),
        ({"head": {"geometry": ["cheap"]}}, "cannot compute"),
        ({"head": 3}, "not a readable manifest"),
        ({"golden": {"file": "gone.npz", "sha256": ""}}, "missing"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused_in_one_sentence(folder, values, sentence):
    change(folder, **values)
    with pytest.raises(BadInput, match=sentence) as error:
        read_manifest(folder)
    assert "\n" not in str(error.value)


def test_files_that_were_cut_and_folders_without_an_export(folder, tmp_path):
    (folder / "step.onnx").write_bytes(b"gra")
    with pytest.raises(BadInput, match=r"step\.onnx is not the file that was exported"):
        read_manifest(folder)
    (folder / "manifest.json").write_text('{"format": "radp-onnx", ')
    with pytest.raises(BadInput, match="not a readable manifest"):
        read_manifest(folder)
    with pytest.raises(BadInput, match="holds no exported planner"):
        read_manifest(tmp_path / "nothing")


def test_a_golden_pair_that_would_fill_the_memory_is_refused(folder):
    """A megabyte on the disk, a gigabyte in memory."""
    np.savez_compressed(folder / "golden.npz", noise=np.zeros((1 << 28) // 8 + 1))
    assert (folder / "golden.npz").stat().st_size < 1 << 20
    with pytest.raises(ValueError, match="expected at most"):
        _arrays(folder / "golden.npz")
