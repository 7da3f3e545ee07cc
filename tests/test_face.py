"""The public face: every name is there and shown in an example that runs, and `import radp` stays fast."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import radp

PUBLIC = [name for name in radp.__all__ if name != "__version__"]
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_in_the_docstring_runs(name: str) -> None:
    finder = doctest.DocTestFinder(recurse=False, exclude_empty=False)
    (found,) = finder.find(getattr(radp, name), f"radp.{name}", module=False, globs={"radp": radp})  # type: ignore[arg-type]
    assert found.examples
    runner, said = doctest.DocTestRunner(), []
    runner.run(found, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_names_are_imported_when_they_are_asked_for() -> None:
    code = (
        "import sys, radp; print(sorted({'torch', 'numba', 'numpy', 'pyarrow', 'tyro'} & set(sys.modules)));"
        "print(set(radp.__all__) <= set(dir(radp))); radp.Plan; print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n") == ["[]", "True", "True", ""]
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        radp.fly  # noqa: B018


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_examples_import_from_radp_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not [name for name in names if name.startswith("radp.")]
