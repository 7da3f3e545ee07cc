"""The notebooks run from top to bottom, each in a fresh process, without Jupyter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def code_of(notebook: Path) -> str:
    """Its code cells, one after the other; the value of a last expression is printed, as Jupyter would."""
    cells = json.loads(notebook.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_there_are_three() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["drive-and-score", "explain-a-failure", "own-rule-and-align"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_a_clean_notebook(notebook: Path) -> None:
    data = json.loads(notebook.read_text())
    assert data["nbformat"] == 4
    assert data["cells"][0]["cell_type"] == "markdown", "a title comes first"
    for cell in data["cells"]:
        assert cell["source"]
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None, "no outputs are kept"
    compile(code_of(notebook), notebook.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path, tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(code_of(notebook))
    done = subprocess.run([sys.executable, "cells.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
