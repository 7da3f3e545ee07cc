"""radp bench: what each measurement takes, and what it prints."""

import json

import pytest

from radp.cli import bench
from radp.cli.main import main


def test_the_preset_reaches_the_measurement(monkeypatch, capsys):
    asked = []

    def measure(**options):
        asked.append(options)
        return {"samples_per_s": 1.5, "parts": {"encoder": 2}}

    monkeypatch.setattr(bench, "_bench_function", lambda place: measure)
    assert main(["bench", "train", "--preset", "mini", "--json"]) == 0
    assert asked == [{"config": "mini"}]
    assert json.loads(capsys.readouterr().out) == {"samples_per_s": 1.5, "parts": {"encoder": 2}}
    assert main(["bench", "train"]) == 0
    assert asked[1] == {}, "the published size is the measurement's own default"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sim", "--preset", "mini"], "takes no preset"),
        (["train", "--planner", "radp-mini"], "takes no planner"),
        (["plan", "--db", "logs"], "takes no logs"),
    ],
)
def test_what_a_measurement_cannot_use_is_refused(arguments, sentence, capsys):
    assert main(["bench", *arguments]) == 2
    assert sentence in capsys.readouterr().err
