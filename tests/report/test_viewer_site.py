"""Pages of runs: all scenarios, small, replaced safely."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.attribution.afterwards import judge_drive
from radp.attribution.online import levels_of
from radp.cli.main import main
from radp.evaluation.closed_loop import Run
from radp.metrics.card import score_card
from radp.metrics.score import evaluate
from radp.report.viewer import write_site
from radp.report.viewer.drive import DriveReport, near_tracks
from radp.report.viewer.explain import explain_drive
from radp.report.viewer.pack import ANGLE_STEP, MISSING
from radp.report.viewer.scenario_page import MOST_BYTES, scenario_page
from radp.report.viewer.site import INDEX, LIST, page_name
from radp.runs.errors import BadInput
from radp.scenario import Box, Ego, Tracks
from radp.scene.builder import RULE_SCENES, build_scenes
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.rollout import Rollout
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from tests.report.conftest import HOSTILE, drive
from tests.report.test_viewer_pack import unpack
from tests.report.test_viewer_page import Elements
from tests.sim.made_worlds import RandomPlanner, empty_of_agents, short_scenarios, without_lights

LINKS: dict[str, str | None] = {"index": INDEX, "before": None, "after": None}


def data_of(page: Path | str) -> dict:
    text = page if isinstance(page, str) else page.read_text()
    return json.loads(Elements(text).texts["script"][0])


def test_all_scenarios_are_listed_and_linked(run: Run, tmp_path: Path) -> None:
    site = write_site([run], tmp_path / "pages")
    assert list(site.pages) == run.split.tokens()
    index = data_of(site.index)
    assert [row["token"] for row in index["rows"]] == run.split.tokens()
    for row, rollout in zip(index["rows"], run.rollouts()):
        card = score_card(evaluate(rollout))
        assert row["drives"][0]["score"] == card["score"]
        assert row["drives"][0]["metrics"] == [entry["value"] for entry in card["metrics"].values()]
        judged = judge_drive(rollout, levels_of("constant_velocity", "v2"))
        assert judged is not None
        assert row["drives"][0]["pressures"] == pytest.approx(judged.why.pressure.numpy().max(0), abs=1e-4)
        assert (site.index.parent / row["page"]).is_file()
    chain = [data_of(path)["links"] for path in site.pages.values()]
    assert [link["before"] for link in chain] == [None, *(path.name for path in list(site.pages.values())[:-1])]
    assert [link["after"] for link in chain] == [*(path.name for path in list(site.pages.values())[1:]), None]


def test_page_shows_the_drive_to_a_centimetre(run: Run) -> None:
    rollout = next(iter(run.rollouts()))
    report = DriveReport.of(rollout, explain_drive(rollout))
    page, _ = scenario_page([report], LINKS, calibrated=False)
    data = data_of(page)
    shown, step, count = data["drives"][0], data["step"], len(rollout.ego)
    assert step <= 0.0125
    axle = unpack(shown["ego"]["axle"]).reshape(count, 2) * step
    moved = rollout.ego[:, : Ego.HEADING] - rollout.ego[0, : Ego.HEADING]
    assert np.abs((axle - axle[0]) - moved).max() <= step
    heading = unpack(shown["ego"]["heading"]) * ANGLE_STEP
    assert np.abs(np.exp(1j * heading) - np.exp(1j * rollout.ego[:, Ego.HEADING])).max() <= ANGLE_STEP
    np.testing.assert_array_equal(unpack(shown["why"]["pressure"]).reshape(-1, 6), rollout.exact_pressures)
    chosen = near_tracks(rollout, 120.0)
    assert shown["tracks"]["id"] == [rollout.agents.ids[i] for i in chosen]
    share = unpack(shown["why"]["share"]).reshape(count, len(chosen)) / 255
    assert np.abs(share - report.explanation.share[:, chosen]).max() <= 0.5 / 255 + 1e-6
    first = unpack(shown["tracks"]["xy"]).reshape(-1, 2)[0] * step
    start = shown["tracks"]["span"][0][0]
    gap = rollout.agents.state[chosen[0], start, : Box.HEADING] - rollout.ego[0, : Ego.HEADING]
    assert np.abs((first - axle[0]) - gap).max() <= step


class StandingForecasts:
    """Plans to stay, and expects its nearest neighbours to stay where they are."""

    name = "standing"

    def plan(self, observation: Observation) -> Plan:
        now = build_scenes(observation, RULE_SCENES).neighbor_agents_past[:, :4, -1, :4]
        stay = torch.tensor([0.0, 0.0, 1.0, 0.0]).expand(len(observation), 80, 4)
        return Plan(stay, predictions=now.unsqueeze(2).expand(-1, -1, 80, -1))


def test_forecasts_start_from_their_own_tracks() -> None:
    rollout = next(simulate(StandingForecasts(), [make_scenario(3, 20, frames=12)], "nonreactive", keep_plans=True))
    assert rollout.predictions is not None and rollout.predictions.shape == (11, 4, 16, 2)
    data = data_of(scenario_page([DriveReport.of(rollout, None)], LINKS, False)[0])
    shown, step = data["drives"][0], data["step"]
    about = unpack(shown["forecasts"]["track"]).reshape(11, 4)
    places = unpack(shown["forecasts"]["xy"]).reshape(11, 4, 16, 2) * step
    axle = unpack(shown["ego"]["axle"]).reshape(11, 2) * step
    for sample in range(11):
        for row, track in enumerate(about[sample]):
            position = rollout.agents.ids.index(shown["tracks"]["id"][track])
            gap = rollout.agents.state[position, sample, : Box.HEADING] - rollout.ego[sample, : Ego.HEADING]
            np.testing.assert_allclose(places[sample, row] - axle[sample], gap[None].repeat(16, 0), atol=step + 1e-3)


def test_gaps_of_a_track_are_missing(run: Run) -> None:
    rollout = next(iter(run.rollouts()))
    valid, state = rollout.agents.valid.copy(), rollout.agents.state.copy()
    valid[0, :3], valid[0, 10:14] = False, False
    state[~valid] = 0.0
    holed = replace(rollout, agents=replace(rollout.agents, state=state, valid=valid))
    tracks = data_of(scenario_page([DriveReport.of(holed, None)], LINKS, False)[0])["drives"][0]["tracks"]
    assert tracks["span"][0] == [3, len(rollout.ego) - 3]
    x = unpack(tracks["xy"]).reshape(-1, 2)[: tracks["span"][0][1], 0]
    assert np.flatnonzero(x == MISSING).tolist() == [7, 8, 9, 10]


def crowd(rollout: Rollout, times: int) -> Rollout:
    """The same drive among many times as many tracks, all near the ego."""
    agents = rollout.agents
    ids = tuple(f"{name}-{k}" for k in range(times) for name in agents.ids)
    state = np.tile(agents.state, (times, 1, 1))
    state[..., :2] = rollout.ego[None, :, :2] + np.linspace(1.0, 110.0, len(ids))[:, None, None]
    several = Tracks(
        ids, np.tile(agents.type, times), np.tile(agents.size, (times, 1)), state, np.ones_like(state[..., 0], bool)
    )
    return replace(rollout, agents=several)


def test_page_of_a_crowd_stays_small(run: Run) -> None:
    rollout = next(iter(run.rollouts()))
    report = DriveReport.of(rollout, None)
    small, _ = scenario_page([report], LINKS, False)
    assert len(small.encode()) < 200_000
    crowded = replace(report, rollout=crowd(rollout, 800))
    page, _ = scenario_page([crowded, crowded], LINKS, False)
    shown = data_of(page)["drives"][0]["tracks"]["id"]
    assert len(page.encode()) <= MOST_BYTES
    assert 0 < len(shown) < len(crowded.rollout.agents)


def test_names_of_pages_are_plain(run: Run, tmp_path: Path) -> None:
    site = write_site([run], tmp_path)
    name = site.pages[HOSTILE].name
    assert name == page_name(2, HOSTILE)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
    assert page_name(0, "../../etc/passwd") == "0001-etc-passwd.html"
    assert page_name(1, "/") == "0002-.html"


def test_two_runs_stand_side_by_side(run: Run, other_run: Run, tmp_path: Path) -> None:
    site = write_site([run, other_run], tmp_path)
    for path in site.pages.values():
        assert [drive["planner"] for drive in data_of(path)["drives"]] == ["constant_velocity", "log_replay"]
    assert [len(row["drives"]) for row in data_of(site.index)["rows"]] == [2, 2, 2]


def test_scenario_that_the_other_run_lacks_is_shown_alone(run: Run, other_run: Run, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(other_run.folder.path, tmp_path / "part")
    part = Run.open(tmp_path / "part")
    part.store.path_of(part.split.tokens()[0]).unlink()
    site = write_site([run, part], tmp_path / "pages")
    assert [len(data_of(path)["drives"]) for path in site.pages.values()] == [1, 2, 2]
    assert site.rows[0]["drives"][1] is None
    for path in part.store.path.iterdir():
        path.unlink()
    with pytest.raises(BadInput, match="no scenario in common"):
        write_site([run, part], tmp_path / "pages")


def test_failed_drive_has_a_page(run: Run, tmp_path: Path) -> None:
    rollout = next(iter(run.rollouts()))
    agents = replace(rollout.agents, state=rollout.agents.state[:, :1], valid=rollout.agents.valid[:, :1])
    cut = Rollout(rollout.scenario, rollout.time_us[:1], rollout.ego[:1], agents, failure="step 0: lost")
    data = data_of(scenario_page([DriveReport.of(cut, explain_drive(cut))], LINKS, False)[0])
    assert data["drives"][0]["failure"] == "step 0: lost"
    assert data["samples"] == 1
    assert "why" not in data["drives"][0]


def test_empty_worlds_have_pages() -> None:
    for change in (empty_of_agents, without_lights):
        scenario = change(short_scenarios(1)[0])
        rollout = next(simulate(RandomPlanner(), [scenario], "nonreactive", keep_plans=True))
        data = data_of(scenario_page([DriveReport.of(rollout, explain_drive(rollout))], LINKS, False)[0])
        assert len(data["drives"][0]["tracks"]["id"]) == len(scenario.tracks)


def test_pages_are_replaced_and_strangers_kept(run: Run, tmp_path: Path) -> None:
    write_site([run], tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    site = write_site([run], tmp_path, limit=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["mine.txt", INDEX, LIST, *(p.name for p in site.pages.values())]
    )
    site = write_site([run], tmp_path, tokens=[HOSTILE])
    assert list(site.pages) == [HOSTILE]


@pytest.mark.parametrize("content", ["{", '{"format": "other", "files": ["x.html"]}', "[]"])
def test_foreign_list_of_pages_deletes_nothing(run: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / LIST).write_text(content)
    (tmp_path / "x.html").write_text("x")
    with pytest.raises(BadInput, match=r"pages\.json"):
        write_site([run], tmp_path)
    assert (tmp_path / "x.html").exists()


def test_foreign_index_is_kept(run: Run, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text("mine")
    with pytest.raises(BadInput, match="did not write"):
        write_site([run], tmp_path)
    assert (tmp_path / INDEX).read_text() == "mine"


def test_verb_prints_the_page(run: Run, other_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["view", str(run.folder.path), "--other", str(other_run.folder.path), "--out", str(tmp_path / "p")]
    assert main([*arguments, "--limit", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert Path(printed["index"]) == tmp_path / "p" / INDEX
    assert list(printed["pages"]) == run.split.tokens()[:1]
    assert main([*arguments, "--limit", "1"]) == 0
    assert (tmp_path / "p" / INDEX).as_uri() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"), [(("--token", "nobody"), "no drive of scenario 'nobody'"), (("--limit", "0"), "limit is 0")]
)
def test_bad_input_is_one_sentence(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, str], words: str
) -> None:
    assert main(["view", str(run.folder.path), "--out", str(tmp_path / "p"), *more]) == 2
    assert words in capsys.readouterr().err
    assert main(["view", str(tmp_path)]) == 2
    assert "holds neither a run" in capsys.readouterr().err


def test_run_without_plans_has_pages_without_pressures(scenario_folder: str, tmp_path: Path) -> None:
    plain = drive("constant_velocity", scenario_folder, tmp_path / "run", attribution="own")
    site = write_site([plain], tmp_path / "pages", limit=1)
    data = data_of(next(iter(site.pages.values())))["drives"][0]
    assert "why" not in data
    assert "plans" not in data
    assert site.rows[0]["drives"][0]["pressures"] is None
