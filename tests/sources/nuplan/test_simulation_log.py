"""SimulationLog files of nuplan-devkit: read without the devkit, with and without a map, and nothing of them runs."""

from __future__ import annotations

import json
import lzma
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from radp.cli.main import main
from radp.metrics.score import evaluate
from radp.scenario import Ego
from radp.scenario.store import ScenarioStore
from radp.sources.convert import SourceError
from radp.sources.nuplan.simulation_log import read_simulation_log
from tests.made_scenarios import made_scenario, thing
from tests.shared_data import NUPLAN_GOLDEN, shared_params
from tests.sources.nuplan.made_simulation_logs import write_log

REAL = "data/nuplan_snippets/simulation_logs/*.msgpack.xz"


@cache
def real(path: Path):
    return read_simulation_log(path)


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params(REAL))
def test_real_logs(path):
    drive = real(path)
    drive.scenario.validate()
    assert path.name.startswith(drive.scenario.token)
    assert drive.plans is not None and drive.plans.shape == (len(drive.ego), 80, 4)
    assert len(drive.agents) > 5
    # a plan begins where the ego is and goes at its speed
    speed = np.hypot(drive.ego[:, Ego.VX], drive.ego[:, Ego.VY])
    moved = np.hypot(*drive.plans[:, 0, :2].T) / 0.1
    assert np.abs(moved - speed).mean() < 1.0
    score = evaluate(drive)
    assert np.isnan(score.score)
    valid = {name for name, metric in score.metrics.items() if metric.valid}
    assert "ego_is_comfortable" in valid and valid <= {"ego_is_comfortable", "no_ego_at_fault_collisions"}


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("data/nuplan_snippets/simulation_logs/262a4b7a1f2c5ab6.*"))
def test_mean_speed_is_what_the_devkit_reports(path):
    drive = real(path)
    assert np.hypot(drive.ego[:, Ego.VX], drive.ego[:, Ego.VY]).mean() == pytest.approx(5.544878, abs=1e-6)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    cone = thing("cone", 60.0, type="TRAFFIC_CONE")
    scenario = made_scenario(things=(thing("car", 55.0, speed=4.0, first=3), cone), lights=("RED", "GREEN"))
    path = tmp_path_factory.mktemp("log") / "made.msgpack.xz"
    write_log(scenario, path, "nowhere")
    return scenario, path


def test_everything_comes_back(made):
    scenario, path = made
    drive = read_simulation_log(path)
    samples = scenario.frames - 1
    np.testing.assert_allclose(drive.ego, scenario.ego[:samples], atol=1e-9)
    np.testing.assert_array_equal(drive.time_us, scenario.time_us[:samples])
    order = [drive.agents.ids.index(name) for name in scenario.tracks.ids]
    np.testing.assert_array_equal(drive.agents.valid[order], scenario.tracks.valid[:, :samples])
    np.testing.assert_allclose(drive.agents.state[order], scenario.tracks.state[:, :samples], atol=1e-9)
    np.testing.assert_array_equal(drive.agents.type[order], scenario.tracks.type)
    assert (drive.planner, drive.scenario.kind) == ("OwnPlanner", scenario.kind)
    ahead = 8.0 * 0.1 * np.arange(1, 81)  # straight on at 8 m/s, also after the plan's end
    np.testing.assert_allclose(drive.plans[0, :, 0], ahead, atol=1e-4)


def test_verbs_without_a_map(made, tmp_path, capsys):
    _, path = made
    assert main(["score", str(path), "--json"]) == 0
    card = json.loads(capsys.readouterr().out)["drives"][0]
    assert card["score"] is None and card["metrics"]["speed_limit_compliance"]["value"] is None
    assert main(["explain", "--log", str(path), "--worst", "1"]) == 0
    assert "presses" in capsys.readouterr().out
    assert main(["view", str(path), "--out", str(tmp_path / "pages")]) == 0
    assert (tmp_path / "pages" / "index.html").is_file()
    assert main(["data", "convert", "--source", "nuplan-log", "--data", str(path), "--out", str(tmp_path / "s")]) == 0
    assert ScenarioStore.open(tmp_path / "s")[0].tags["unknown"] == "expert, map"


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("golden/nuplan/files/*/log.db")[:1])
def test_with_the_map_folder(path, tmp_path):
    pytest.importorskip("pyogrio", reason='pip install "radp[nuplan]"')
    from radp.sources.nuplan.source import NUPLAN
    from radp.sources.settings import LogChoice

    maps = NUPLAN_GOLDEN / "files" / path.parent.name / "maps"
    (item,) = NUPLAN.items(LogChoice(db=path.parent, maps=maps))
    (scenario,) = NUPLAN.scenarios(item)
    write_log(scenario, tmp_path / "a.msgpack.xz", scenario.map.name)
    drive = read_simulation_log(tmp_path / "a.msgpack.xz", maps)
    assert len(drive.scenario.map) and drive.scenario.route
    score = evaluate(drive)
    assert 0.0 <= score.score <= 1.0
    invalid = {name for name, metric in score.metrics.items() if not metric.valid}
    assert invalid == {"ego_is_making_progress", "ego_progress_along_expert_route"}


class Tripwire:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def packed(path, raw):
    path.write_bytes(lzma.compress(b"\xc6" + len(raw).to_bytes(4, "big") + raw, preset=0))
    return path


@pytest.mark.parametrize(
    "raw, reason",
    [
        (pickle.dumps({"a": 1}), "expected a SimulationLog"),
        (pickle.dumps([1, 2])[:-3], "damaged"),
        (b"\x80\x05\x95", "cut short"),
        (b"\x80\x02]" + b"2" * 90_000, "more than 80000 steps"),
        (b"\x80\x04P1\n.", "instruction"),
    ],
)
def test_hostile_files_are_refused(tmp_path, raw, reason, monkeypatch):
    monkeypatch.setattr("radp.sources.scenarionet.unpickle.MOST_PICKLE_STEPS", 80_000)  # 8 million take seconds
    with pytest.raises(SourceError, match=reason):
        read_simulation_log(packed(tmp_path / "a.msgpack.xz", raw))


def test_nothing_of_a_file_runs(tmp_path):
    trap = tmp_path / "trap"
    with pytest.raises(SourceError, match="expected a SimulationLog"):
        read_simulation_log(packed(tmp_path / "a.msgpack.xz", pickle.dumps(Tripwire(trap))))
    assert not trap.exists()


def test_a_log_of_other_content_names_the_field(made, tmp_path):
    raw = lzma.decompress(made[1].read_bytes())[5:]
    broken = raw.replace(b"_car_footprint", b"_car_footprinx")
    with pytest.raises(SourceError, match="ego_state"):
        read_simulation_log(packed(tmp_path / "a.msgpack.xz", broken))


def test_another_wrapping_is_refused(tmp_path):
    path = tmp_path / "a.msgpack.xz"
    path.write_bytes(lzma.compress(b"\x93\x01\x02\x03"))
    with pytest.raises(SourceError, match="one block of bytes in msgpack"):
        read_simulation_log(path)
