import os
import subprocess
import sys

import pytest

from radp.cli import main as cli
from radp.cli.main import VERBS, BadInput, Verb, main
from radp.version import __version__

EXISTING = [verb for verb in VERBS if verb.exists()]


def leave(arguments: list[str]) -> int:
    """Exit code of the command, as a shell would see it."""
    try:
        return main(arguments)
    except SystemExit as exit:
        return int(exit.code or 0)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_overview_lists_every_verb(capsys, arguments):
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for verb in EXISTING:
        assert verb.name in out and verb.summary in out


def test_a_group_lists_its_verbs(capsys):
    assert main(["data"]) == main(["data", "--help"]) == 0
    out = capsys.readouterr().out
    assert "data list" in out and "data info" in out and "doctor" not in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"radp {__version__}\n"


@pytest.mark.parametrize("verb", EXISTING, ids=[verb.name for verb in EXISTING])
def test_every_verb_has_help_with_an_example(capsys, verb):
    assert leave([*verb.name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"usage: radp {verb.name}" in out
    assert f"Example:\n  radp {verb.name}" in out


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
        (["data", "info", "no/such/path"], "'no/such/path' is neither a packaged split"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(capsys, arguments, words):
    assert leave(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("radp: ") and captured.err.count("\n") == 1 and words in captured.err


def fake(monkeypatch, function) -> None:
    monkeypatch.setattr(Verb, "exists", lambda self: True)
    monkeypatch.setattr(Verb, "load", lambda self: function)
    monkeypatch.setattr(cli, "VERBS", (Verb("try", "x:x", "Try."), Verb("group one", "x:x", "One.")))


def test_what_a_verb_returns_and_raises(monkeypatch, capsys):
    def verb(how: str = "well", times: int = 1) -> int:
        """Try.

        Example:
            radp try
        """
        if how == "badly":
            raise BadInput("no such road")
        if how == "interrupted":
            raise KeyboardInterrupt
        if how == "bug":
            raise ValueError("a bug is not the user's fault")
        return times

    fake(monkeypatch, verb)
    assert main(["try", "--times", "3"]) == 3
    assert main(["group", "one", "--how", "well"]) == 1
    assert main(["try", "--how", "badly"]) == 2
    assert main(["try", "--how", "interrupted"]) == 130
    assert capsys.readouterr().err == "radp: no such road\nradp: interrupted\n"
    with pytest.raises(ValueError, match="a bug"):
        main(["try", "--how", "bug"])


def test_what_a_verb_writes_to_stderr_is_seen(monkeypatch, capsys):
    def verb() -> int:
        """Try."""
        print("working", file=sys.stderr)
        return 0

    fake(monkeypatch, verb)
    assert main(["try"]) == 0
    assert capsys.readouterr().err == "working\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from radp.cli.main import main; main(['--help']);"
        "print(sorted({'torch', 'numba', 'numpy', 'pyarrow', 'shapely', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("[]\n")


def test_a_reader_that_left_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "radp.cli.main", "--version"]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert run.returncode == 1 and run.stderr == ""
