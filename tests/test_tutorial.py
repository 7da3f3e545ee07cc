"""The tutorial's commands, run as they stand on the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from radp.cli.main import VERBS

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(PAGE.read_text()) if kind == language]


def commands() -> list[list[str]]:
    """What is marked as sh, without comments."""
    return [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_every_command_of_the_page_is_a_verb() -> None:
    lines = [line for block in (*blocks("sh"), *blocks("")) for line in block.splitlines() if line.startswith("radp ")]
    assert len(lines) >= 9
    assert {line.split()[1] for line in lines} <= set(VERBS)


@pytest.mark.slow
def test_the_commands_run_in_order(tmp_path: Path) -> None:
    (mine,) = blocks("python")
    (tmp_path / "mine.py").write_text(mine)
    source = str(Path(__file__).parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((source, os.environ.get("PYTHONPATH", "")))}
    for words in commands():
        assert words[0] == "radp"
        run = [sys.executable, "-m", "radp.cli.main", *words[1:]]
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr[-2000:]}"
    assert (tmp_path / "pages" / "index.html").is_file()
    assert "gentle" in (tmp_path / "explained" / "index.html").read_text()
