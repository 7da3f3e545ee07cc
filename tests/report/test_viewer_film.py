"""Films of drives."""

from __future__ import annotations

import builtins
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from radp.cli.main import main
from radp.evaluation.closed_loop import Run
from radp.report.viewer import film
from radp.report.viewer.film import EVERY, write_film
from radp.report.viewer.site import report_drive


def test_gif_has_a_picture_for_every_other_sample(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVERY, ".gif", 10)  # few pictures: drawing is slow
    drive = report_drive(run, run.split[0], None)
    write_film([drive], tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.n_frames == -(-len(drive.rollout.ego) // 10)
        first = picture.convert("RGB").tobytes()
        picture.seek(picture.n_frames - 1)
        assert picture.convert("RGB").tobytes() != first
    assert [path.name for path in tmp_path.iterdir()] == ["film.gif"]


def test_two_drives_make_a_wider_film(
    run: Run, other_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EVERY, ".gif", 100)
    write_film([report_drive(one, run.split[2], None) for one in (run, other_run)], tmp_path / "film.gif")
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.width == 1280


def test_missing_ffmpeg_is_reported_before_anything_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain_import = builtins.__import__

    def without_imageio(name: str, *rest: Any) -> Any:
        if name == "imageio_ffmpeg":
            raise ImportError(name)
        return plain_import(name, *rest)

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(builtins, "__import__", without_imageio)
    assert main(["view", str(run.folder.path), "--out", str(tmp_path / "p"), "--mp4"]) == 2
    assert 'pip install "radp[film]"' in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_mp4(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(film.EVERY, ".mp4", 20)
    write_film([report_drive(run, run.split[0], None)], tmp_path / "film.mp4")
    assert b"ftyp" in (tmp_path / "film.mp4").read_bytes()[:16]
