import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from radp.runs.errors import BadInput
from radp.runs.folder import RunError, RunFolder
from radp.version import __version__

SETTINGS = {"planner": "idm", "limit": None, "weights": [1.0, 2.0]}


def test_config_holds_settings_version_commit_and_seed(tmp_path):
    RunFolder.create(tmp_path / "run", "simulate", SETTINGS, seed=7, execution={"workers": 2})
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["settings"] == SETTINGS
    assert (config["command"], config["seed"], config["radp"]) == ("simulate", 7, __version__)
    assert config["execution"] == {"workers": 2}
    assert "commit" in config


def test_the_same_configuration_resumes_and_others_are_refused_in_one_sentence(tmp_path):
    path = tmp_path / "run"
    RunFolder.create(path, "simulate", SETTINGS, execution={"workers": 1}).write_json("piece.json", 1)
    (path / ".tmp-9-piece.json").write_bytes(b"half")
    again = RunFolder.create(path, "simulate", dict(SETTINGS), execution={"workers": 4})
    assert again.read_json("piece.json") == 1
    assert not (path / ".tmp-9-piece.json").exists()
    for arguments, words in [
        (("simulate", {**SETTINGS, "planner": "pdm"}, 0), "planner is 'idm' there and 'pdm' now"),
        (("simulate", {**SETTINGS, "extra": 1}, 0), "extra is None there and 1 now"),
        (("simulate", {"planner": "idm", "weights": [1.0, 2.0]}, 0), "limit"),
        (("simulate", SETTINGS, 1), "seed is 0 there and 1 now"),
        (("score", SETTINGS, 0), "command"),
    ]:
        with pytest.raises(RunError, match=words) as caught:
            RunFolder.create(path, *arguments)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@dataclass(frozen=True)
class Loop:
    steps: int = 10
    decay: int = 0


@dataclass(frozen=True)
class Training:
    data: Path
    loop: Loop = field(default_factory=lambda: Loop(steps=20))
    shares: tuple[float, ...] = ()


def older_run(path: Path, settings: dict) -> Path:
    """A run whose config.json holds these settings only."""
    run = RunFolder.create(path, "train", settings, execution={"threads": 1})
    assert run.settings == settings
    return path


def test_a_dataclass_is_kept_as_json_with_the_facts_beside_it(tmp_path):
    run = RunFolder.create(tmp_path / "run", "train", Training(Path("a"), Loop(decay=3)), facts={"samples": 7})
    expected = {"data": "a", "loop": {"steps": 10, "decay": 3}, "shares": [], "samples": 7}
    assert run.settings == RunFolder.open(tmp_path / "run").settings == expected


@pytest.mark.parametrize(
    "stored",
    [
        {"data": "a", "loop": {"steps": 20}},  # neither decay nor shares were there then
        {"data": "a", "shares": []},  # the whole group was not there
    ],
)
def test_an_older_run_goes_on_with_the_defaults_of_newer_settings(tmp_path, stored):
    path = older_run(tmp_path / "run", {**stored, "samples": 7})
    again = RunFolder.create(path, "train", Training(Path("a")), facts={"samples": 7})
    assert again.settings == {**stored, "samples": 7}


@pytest.mark.parametrize(
    ("settings", "facts", "words"),
    [
        (Training(Path("a"), Loop(20, decay=5)), {"samples": 7}, "loop.decay is 0 there and 5 now"),
        (Training(Path("a"), shares=(0.5,)), {"samples": 7}, r"shares is \[\] there and \[0.5\] now"),
        (Training(Path("b")), {"samples": 7}, "data is 'a' there and 'b' now"),
        (Training(Path("a")), {"samples": 8}, "samples is 7 there and 8 now"),
        (Training(Path("a")), {}, "samples is 7 there and None now"),
        (Training(Path("a")), {"samples": 7, "more": 1}, "more is None there and 1 now"),
    ],
)
def test_another_value_of_a_newer_setting_is_another_run(tmp_path, settings, facts, words):
    path = older_run(tmp_path / "run", {"data": "a", "loop": {"steps": 20}, "samples": 7})
    with pytest.raises(RunError, match=words):
        RunFolder.create(path, "train", settings, facts=facts)


@dataclass(frozen=True)
class Seeded:
    seed: int = 0


def test_the_seed_of_an_older_run_is_the_one_beside_its_settings(tmp_path):
    RunFolder.create(tmp_path / "run", "train", {}, seed=5)
    assert RunFolder.create(tmp_path / "run", "train", Seeded(5), seed=5).settings == {}
    with pytest.raises(RunError, match="seed is 5 there and 0 now"):
        RunFolder.create(tmp_path / "run", "train", Seeded(), seed=0)


def test_a_setting_without_a_default_is_not_invented(tmp_path):
    with pytest.raises(RunError, match="data is None there and 'a' now"):
        RunFolder.create(older_run(tmp_path / "run", {"loop": {"steps": 20}}), "train", Training(Path("a")))


def test_a_run_of_another_version_is_refused(tmp_path):
    run = RunFolder.create(tmp_path / "run", "simulate", {})
    config = {**run.config, "radp": "0.0.1"}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match=r"radp is '0\.0\.1' there"):
        RunFolder.create(tmp_path / "run", "simulate", {})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "other"}', b'{"format": "radp-run"}'])
def test_a_damaged_or_foreign_config_is_named(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(RunError, match=r"config\.json"):
        RunFolder.open(tmp_path)


def test_folders_that_hold_something_else_are_not_used(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty"):
        RunFolder.create(tmp_path, "simulate", {})
    with pytest.raises(RunError, match="is a file"):
        RunFolder.create(tmp_path / "notes.txt", "simulate", {})
    with pytest.raises(RunError, match="holds no run"):
        RunFolder.open(tmp_path)
    assert issubclass(RunError, BadInput)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "a/.."])
def test_paths_stay_inside(tmp_path, name):
    run = RunFolder.create(tmp_path / "run", "simulate", {})
    with pytest.raises(RunError, match="leads out"):
        run.write_bytes(name, b"")


def test_a_link_does_not_lead_out(tmp_path):
    run = RunFolder.create(tmp_path / "run", "simulate", {})
    (tmp_path / "run" / "link").symlink_to(tmp_path)
    with pytest.raises(RunError, match="leads out"):
        run.write_bytes("link/x", b"")


def test_files_in_subfolders(tmp_path):
    run = RunFolder.create(tmp_path / "run", "simulate", {})
    assert not run.exists("a/b.json")
    assert run.write_json("a/b.json", {"x": 1}) == tmp_path / "run" / "a" / "b.json"
    assert run.exists("a/b.json") and run.read_json("a/b.json") == {"x": 1}
    run.write_bytes("a/broken.json", b"{")
    with pytest.raises(RunError, match=r"broken\.json is not readable"):
        run.read_json("a/broken.json")
    with pytest.raises(RunError, match=r"c\.json is missing"):
        run.read_json("a/c.json")


def test_the_commit_is_that_of_the_checkout():
    from radp.runs.folder import source_commit

    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=__file__.rsplit("/", 1)[0], capture_output=True,
                              text=True, check=True).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    assert (source_commit() or "").removesuffix("-dirty") == head
