import io
import sys
import time

import pytest

from radp.runs import progress as progress_module
from radp.runs.progress import Progress, clock


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75.4, "1:15"), (3700, "1:01:40"), (59.7, "1:00")])
def test_clock(seconds, text):
    assert clock(seconds) == text


def test_the_line_counts_failures_and_estimates_from_fresh_pieces_only(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    progress = Progress("drive", total=10, done=4)
    assert progress.line() == "drive: 4/10 (40%)"
    now[0] += 6.0
    progress.advance(2)
    progress.advance(failed=1)
    assert progress.line() == "drive: 7/10 (70%), 1 failed, 0:06 left"


def show(monkeypatch, terminal: bool, work_s: float) -> str:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("drive", total=2) as progress:
        progress.advance()
        time.sleep(work_s)
        progress.advance()
    return screen.getvalue()


def test_short_work_is_silent(monkeypatch):
    assert show(monkeypatch, False, 0.0) == ""
    assert show(monkeypatch, True, 0.0) == ""


def test_long_work_shows_lines_off_a_terminal_and_a_bar_on_one(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0.02)
    monkeypatch.setattr(progress_module, "LINE_EVERY_S", 0.05)
    lines = show(monkeypatch, False, 0.3).splitlines()
    assert any(line.startswith("drive: 1/2 (50%)") for line in lines) and lines[-1].startswith("drive: 2/2 (100%)")
    assert "2/2" in show(monkeypatch, True, 0.3)


def test_a_line_is_printed_again_only_if_something_was_done(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0.01)
    monkeypatch.setattr(progress_module, "LINE_EVERY_S", 0.02)
    counts = [line.split()[1] for line in show(monkeypatch, False, 0.5).splitlines()]
    assert counts[-1] == "2/2" and len(set(counts)) == len(counts)


def test_what_is_counted_within_a_piece_or_in_a_worker_is_not_shown(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0.01)
    monkeypatch.setattr(progress_module, "LINE_EVERY_S", 0.02)
    monkeypatch.setattr(Progress, "_outermost", Progress("outer", total=1))
    assert show(monkeypatch, False, 0.2) == ""
    monkeypatch.setattr(Progress, "_outermost", None)
    monkeypatch.setenv(progress_module.QUIET, "1")
    assert show(monkeypatch, False, 0.2) == ""


def test_no_pieces():
    assert Progress("drive", total=0).line() == "drive: 0/0 (100%)"
