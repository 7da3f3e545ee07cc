"""Loss curves from a run's log."""

from __future__ import annotations

import json

import numpy as np

from radp.cli.main import main
from radp.report.learning_curves import _running_mean, read_log


def write_run(folder, steps):
    rows = [{"step": s, "part": "train", "ego": 1 / s, "neighbour": 2 / s} for s in steps]
    rows.append({"step": steps[-1], "part": "validation", "ego": 0.5, "neighbour": 0.7})
    folder.mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_log_is_read_by_part(tmp_path):
    write_run(tmp_path / "run", [1, 2, 4])
    assert read_log(tmp_path / "run", "train")["ego"].tolist() == [1.0, 0.5, 0.25]
    assert read_log(tmp_path / "run", "validation")["neighbour"].tolist() == [0.7]


def test_running_mean_against_a_loop():
    values = np.random.default_rng(0).normal(size=37)
    wanted = [values[max(0, i - 9) : i + 1].mean() for i in range(37)]
    np.testing.assert_allclose(_running_mean(values), wanted)


def test_the_picture_of_two_runs(tmp_path):
    for name in ("one", "two"):
        write_run(tmp_path / name, [1, 2, 4])
    out = tmp_path / "loss.png"
    assert main(["train", "curves", "--runs", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_log_is_one_sentence(tmp_path, capsys):
    assert main(["train", "curves", "--runs", str(tmp_path), "--out", str(tmp_path / "x.png")]) == 2
    assert "log.jsonl is missing" in capsys.readouterr().err
