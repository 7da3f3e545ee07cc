import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import get_type_hints

import pytest
from docstring_parser import parse_from_object
from tyro.conf import Suppress

from radp.cli import main as cli
from radp.cli.main import VERBS, BadInput, main, summary_of
from radp.version import __version__

GROUPS = [name for name, verb in VERBS.items() if isinstance(verb, dict)]
EVERY = {
    " ".join((*within, name)): verb
    for within, verbs in [((), VERBS), *(((group,), VERBS[group]) for group in GROUPS)]
    for name, verb in verbs.items()
    if name not in GROUPS
}


def leave(arguments: list[str]) -> int:
    """Exit code of the command, as a shell would see it."""
    try:
        return main(arguments)
    except SystemExit as exit:
        return int(exit.code or 0)


def words(text: str) -> str:
    """The words of a page of help, without the frames around them."""
    return " ".join(word for word in text.split() if word.strip("│─╭╮╰╯-•"))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_overview_lists_every_verb(capsys, arguments):
    assert leave(arguments) == 0
    out = words(capsys.readouterr().out)
    for name, verb in VERBS.items():
        assert f"{name} {', '.join(verb) if name in GROUPS else summary_of(verb)}" in out


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_verbs(capsys, group):
    assert leave([group]) == leave([group, "--help"]) == 0
    out = words(capsys.readouterr().out)
    for name, verb in VERBS[group].items():
        assert f"{name} {summary_of(verb)}" in out
    assert summary_of(VERBS["doctor"]) not in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"radp {__version__}\n"


@pytest.mark.parametrize("name", EVERY)
def test_every_verb_has_help_with_an_example(capsys, name):
    assert leave([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"usage: radp {name}" in out
    assert f"Example:\n  radp {name}" in out


def descriptions(kind: type) -> Iterator[str]:
    """What stands below every field, inherited ones and those of groups too; a field without a word is a KeyError."""
    found = [param for base in reversed(kind.__mro__[:-1]) for param in parse_from_object(base).params]
    described = {param.arg_name: param.description for param in found}
    hints, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    for field in fields(kind):
        if is_dataclass(plain[field.name]):
            yield from descriptions(plain[field.name])
        elif Suppress not in getattr(hints[field.name], "__metadata__", ()):
            yield described[field.name]


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_described(capsys, name):
    assert leave([*name.split(), "--help"]) == 0
    out = words(capsys.readouterr().out)
    for described in descriptions(EVERY[name]):
        assert words(described) in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], "unknown verb 'fly'; expected one of"),
        (["data", "fly"], "unknown verb 'data fly'; expected one of data list"),
        (["doctor", "--fly"], "--fly"),
        (["bench", "fly"], "invalid choice 'fly'"),
        (["bench"], "WHAT"),
        (["bench", "convert"], "needs --db and --maps"),
        (["bench", "sim", "--db", "."], "takes no logs"),
        (["export", "json", "somewhere", "--out", "x", "--limit", "two"], "two"),
        (["score", "--jsn", "x"], "perhaps you meant --json (see radp score --help)"),
        (["train", "curves", "--run", "x", "--out", "y"], "--runs [PATH [PATH ...]]"),
        (
            ["train", "curves", "--run", "x", "--out", "y"],
            "unrecognized options: --run x (see radp train curves --help)",
        ),
        (["data", "info", "no/such/path"], "'no/such/path' is neither a packaged split"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(capsys, arguments, words):
    assert leave(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("radp: ") and captured.err.count("\n") == 1 and words in captured.err


@dataclass(frozen=True)
class Try:
    """Try.

    Example:
        radp try
    """

    how: str = "well"
    """In which way."""
    times: int = 1
    """How often."""

    def __call__(self) -> int:
        print(f"{self.how}, {self.times} times", file=sys.stderr)
        if self.how == "badly":
            raise BadInput("no such road")
        if self.how == "interrupted":
            raise KeyboardInterrupt
        if self.how == "bug":
            raise RuntimeError("a bug is not the user's fault")
        return self.times


@pytest.fixture
def tries(monkeypatch):
    monkeypatch.setattr(cli, "VERBS", {"try": Try, "group": {"one": Try, "two": Try}})


@pytest.mark.usefixtures("tries")
def test_what_a_verb_returns_and_raises(capsys):
    assert main(["try", "--times", "3"]) == 3
    assert main(["group", "one", "--how", "well"]) == 1
    assert main(["try", "--how", "badly"]) == 2
    assert main(["try", "--how", "interrupted"]) == 130
    assert main(["try", "--how", "bug"]) == 1


@pytest.mark.usefixtures("tries")
def test_what_a_verb_writes_to_stderr_is_seen_before_the_reason_of_its_end(capsys):
    assert main(["try", "--how", "badly"]) == 2
    assert main(["group", "two", "--how", "interrupted"]) == 130
    said = "badly, 1 times\nradp: no such road\ninterrupted, 1 times\nradp: interrupted\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("words", [["--help"], ["demo", "--quick", "--out", "pages"]], ids=["help", "quick demo"])
def test_what_should_start_fast_imports_nothing_heavy(words, tmp_path):
    code = (
        f"import sys; from radp.cli import main\ntry: main.main({words})\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'numba', 'numpy', 'pyarrow', 'shapely', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.endswith("[]\n")


def test_a_reader_that_left_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "radp.cli.main", "--version"]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert run.returncode == 1 and run.stderr == ""
