"""The studio's server, asked with plain requests: by its page, by strangers, and by somebody who means harm."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from radp.evaluation.closed_loop import Run, run_simulation
from radp.evaluation.settings import Simulation
from radp.scenario.neutral_json import read_scenario, save_json, scenario_from_json, scenario_to_json
from radp.sources.synthetic import make_scenario
from radp.studio.server import StudioServer
from radp.studio.studio import Studio

PLANNER = "constant_velocity"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenarios")
    for seed in range(2):
        save_json(scenario_to_json(make_scenario(seed, 6, frames=31)), folder / f"s{seed}.json.gz")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[StudioServer]:
    server = StudioServer(Studio(str(folder), (PLANNER,)))
    server.serve_in_background()
    yield server
    server.close()


def send(
    server: StudioServer, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body; a path without a leading slash stands behind the token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    place = path if path.startswith("/") else f"/{server.token}/{path}"
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        given = {"Content-Type": "application/json", **given}
    connection.request(method, place, body, given)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def ask(server: StudioServer, what: str, **question: Any) -> tuple[int, Any]:
    body = {"scenario": 0, "planner": PLANNER, "step": 3, **question}
    status, _, answer = send(server, "POST", f"api/{what}", json.dumps(body).encode())
    return status, json.loads(answer)


def test_the_page_allows_its_own_script_alone(server: StudioServer) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    assert len(server.token) >= 32
    status, headers, body = send(server, "GET", "")
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert b"radp studio" in body and b"{{script}}" not in body and b"{{style}}" not in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe-eval" not in policy
    assert b"http://" not in body.replace(b"http://www.w3.org", b"") and b"https://" not in body
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_holds_every_class_that_it_makes(server: StudioServer) -> None:
    """Its scripts are the viewer's in part, and what these need must come along."""
    script = server.page.decode()
    known, made = set(re.findall(r"^class (\w+)", script, re.M)), set(re.findall(r"\bnew ([A-Z]\w+)", script))
    of_browsers = {"Set", "Map", "Promise", "Error", "Path2D", "DOMMatrix", "Blob", "ResizeObserver", "Uint8Array"}
    assert made - known <= of_browsers | {"ARRAYS"}
    assert {"Drive", "SceneView", "Overlays", "Curves", "Editor"} <= known


def test_every_studio_has_a_token_of_its_own(server: StudioServer, folder: Path) -> None:
    other = StudioServer(server.studio)
    assert other.token != server.token
    other.server_close()


@pytest.mark.parametrize(
    "path, headers, status, words",
    [
        ("/", {}, 403, "token"),
        ("/api/start", {}, 403, "token"),
        ("/wrong/api/start", {}, 403, "token"),
        ("api/start", {"Origin": "http://example.org"}, 403, "other origins"),
        ("api/start", {"Origin": "null"}, 403, "other origins"),
        ("api/start", {"Sec_Fetch_Site": "cross-site"}, 403, "other origins"),
        ("api/start", {"Host": "example.org"}, 403, "host name"),
        ("api/nothing", {}, 404, "nothing here"),
        ("../../etc/passwd", {}, 404, "nothing here"),
        ("api/scenario/7", {}, 400, "expected 0 to"),
        ("api/scenario/-1", {}, 400, "expected a number"),
        ("api/scenario/" + "9" * 400, {}, 400, "expected a number"),
        ("api/drive/99", {}, 400, "no drive 99"),
    ],
)
def test_strangers_get_nothing(
    server: StudioServer, path: str, headers: dict[str, str], status: int, words: str
) -> None:
    got, _, body = send(server, "GET", path, **headers)
    assert got == status
    assert words in json.loads(body)["error"]


@pytest.mark.parametrize(
    "body, headers, status, words",
    [
        (b"{}", {"Origin": "http://example.org"}, 403, "other origins"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "application/json"),
        (b"{" * 1_000_001, {}, 413, "1,000,000 bytes"),
        (b"not json", {}, 400, "not readable as JSON"),
        (b"[" * 200_000, {}, 400, "not readable as JSON"),
        (b"[1]", {}, 400, "one JSON object"),
        (b'{"step": NaN}', {}, 400, "NaN is not a number"),
        (b'{"step": 1e999}', {}, 400, "step is"),
        (b'{"step": ' + b"9" * 5000 + b"}", {}, 400, ""),
        (b"\xff\xfe", {}, 400, "not readable as JSON"),
    ],
)
def test_bodies_that_are_no_question(
    server: StudioServer, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    got, _, answer = send(server, "POST", "api/plan", body, **headers)
    assert got == status
    assert words in json.loads(answer)["error"]


@pytest.mark.parametrize(
    "question, words",
    [
        ({"scenario": "0"}, "scenario is 0, expected a whole number"),
        ({"scenario": 10**30}, "scenario is"),
        ({"planner": "/etc/passwd"}, "planner is '/etc/passwd', expected one of"),
        ({"planner": "evil.py:Planner"}, "expected one of"),
        ({"planner": ["idm"]}, "planner is not a text"),
        ({"step": True}, "step is True"),
        ({"step": 30}, "step is 30, expected 0 to 29"),
        ({"agents": "aliens"}, "agents is 'aliens'"),
        ({"edits": {"kind": "move"}}, "edits is not a list"),
        ({"edits": [{"kind": "move", "who": "ego", "at": 0, "x": 1e300, "y": 0, "heading": 0}]}, "edit 1: x is 1e+300"),
        ({"rules": {"off": ["wings"]}}, "no rule 'wings'"),
        ({"rules": {"strength": -1}}, "rules.strength is -1"),
        ({"rules": {"weights": {"lane": "heavy"}}}, "the weight of lane is heavy"),
        ({"rules": {"off": ["collision", "lane", "speed", "kinematics", "comfort", "goal"]}}, "leave one"),
        ({"fan": 1000}, "fan is 1000"),
        ({"surprise": 1}, "unknown field 'surprise'"),
    ],
)
def test_questions_that_make_no_sense(server: StudioServer, question: dict[str, Any], words: str) -> None:
    status, answer = ask(server, "plan", **question)
    assert status == 400
    assert words in answer["error"]


def test_a_request_without_length_and_one_that_ends_early(server: StudioServer) -> None:
    head = f"POST /{server.token}/api/plan HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
    for more, status in (
        ("Content-Type: application/json\r\n\r\n", b"411"),
        ("Content-Type: application/json\r\nContent-Length: -5\r\n\r\n", b"411"),
        ("Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{}", b"400"),
    ):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as line:
            line.sendall((head + more).encode())
            line.shutdown(socket.SHUT_WR)
            assert line.recv(4096).split()[1] == status


def test_after_all_that_it_still_plans(server: StudioServer) -> None:
    status, answer = ask(server, "plan")
    assert status == 200
    assert answer["rules"] == ["collision", "lane", "speed", "kinematics", "comfort", "goal"]
    assert answer["drive"]["samples"] == 1
    assert answer["drive"]["plans"]["points"] > 10
    status, answer = ask(server, "plan", rules={"off": ["comfort"], "weights": {"lane": 2}, "strength": 0.5})
    assert "comfort" not in answer["rules"]


def test_an_edit_shows_in_the_answer(server: StudioServer) -> None:
    who = ask(server, "plan")[1]["drive"]["tracks"]["id"][0]
    _, answer = ask(server, "plan", edits=[{"kind": "remove", "who": who, "at": 3}])
    assert who not in answer["drive"]["tracks"]["id"]
    added = {"kind": "add", "who": "added 1", "at": 3, "type": "VEHICLE", "x": 0.0, "y": 0.0, "heading": None}
    _, answer = ask(server, "plan", edits=[added])
    assert "added 1" in answer["drive"]["tracks"]["id"]


def test_planners_without_chance_have_no_fan(server: StudioServer) -> None:
    assert ask(server, "fan", fan=8) == (200, {"plans": 0, "points": 0, "xy": {"t": "i2", "b": ""}})


def test_what_is_saved_can_be_loaded_and_driven(server: StudioServer, tmp_path: Path) -> None:
    who = ask(server, "plan")[1]["drive"]["tracks"]["id"][0]
    question = {
        "scenario": 0,
        "planner": PLANNER,
        "step": 5,
        "edits": [{"kind": "speed", "who": who, "at": 5, "speed": 0}],
    }
    status, _, saved = send(server, "POST", "api/save", json.dumps(question).encode())
    assert status == 200
    (tmp_path / "edited.json").write_bytes(saved)
    log = read_scenario(tmp_path / "edited.json")
    assert log.frames == 31 - 5
    assert not log.tracks.state[log.tracks.ids.index(who), :, 3:].any()
    assert log.tags["edited"].startswith("1 edits")
    status, _, body = send(server, "POST", "api/load", saved)
    number = json.loads(body)["scenario"]
    assert json.loads(body)["token"] == log.token
    assert ask(server, "plan", scenario=number)[0] == 200
    assert json.loads(send(server, "GET", "api/start")[2])["scenarios"][number]["token"] == log.token
    job = Simulation(planner=PLANNER, scenarios=str(tmp_path / "edited.json"), agents="nonreactive")
    (drive,) = run_simulation(job, tmp_path / "run").rollouts()
    assert drive.failure is None
    assert len(drive.ego) == 31 - 5 - 1


def test_a_scenario_that_is_not_sound_is_not_loaded(server: StudioServer) -> None:
    data = scenario_to_json(make_scenario(0, 2, frames=31))
    data["expert"]["x"] = data["expert"]["x"][:5]
    status, _, body = send(server, "POST", "api/load", json.dumps(data).encode())
    assert status == 400
    assert "expert: x has shape" in json.loads(body)["error"]


def finished(server: StudioServer, job: int) -> dict[str, Any]:
    for _ in range(2400):
        state = json.loads(send(server, "GET", f"api/drive/{job}")[2])
        if state["over"]:
            return state
        time.sleep(0.05)
    raise AssertionError("the drive never ended")


def test_drive_on_with_and_without_the_edits(server: StudioServer) -> None:
    edits = [{"kind": "move", "who": "ego", "at": 3, "x": 0.0, "y": 0.0, "heading": 0.0}]
    status, begun = ask(server, "drive", edits=edits, agents="nonreactive")
    assert (status, begun["total"]) == (200, 2 * 27)
    state = finished(server, begun["job"])
    assert state["error"] is None and state["done"] == state["total"]
    result = state["result"]
    assert [drive["samples"] for drive in result["drives"]] == [27, 27]
    assert result["drives"][0]["ego"]["xy"] != result["drives"][1]["ego"]["xy"]
    assert all(0 <= drive["score"] <= 1 for drive in result["drives"])
    planned, scenery = ask(server, "plan")[1], json.loads(send(server, "GET", "api/scenario/0")[2])
    assert result["drives"][0].keys() - {"trades", "overlay"} <= planned["drive"].keys(), "one script reads both"
    read = set(re.findall(r"\bpage\.(\w+)", server.page.decode()))
    assert read <= scenery.keys() | result.keys() | {"rules", "calibrated"}


def test_a_drive_can_be_stopped(server: StudioServer) -> None:
    begun = ask(server, "drive", agents="nonreactive")[1]
    assert send(server, "POST", "api/stop", b"{}")[0] == 200
    assert finished(server, begun["job"])["error"] in ("stopped", None)


def test_drives_of_a_run_are_shown_as_they_were_driven(folder: Path, tmp_path: Path) -> None:
    job = Simulation(planner=PLANNER, scenarios=str(folder), agents="nonreactive", limit=1)
    run: Run = run_simulation(job, tmp_path / "run")
    studio = Studio(str(tmp_path / "run"))
    assert studio.first_planner == PLANNER
    (drive,) = run.rollouts()
    shown = studio.library.scenery(0).scenario
    assert (shown.ego[shown.start :] == drive.ego).all()


def test_a_saved_scenario_equals_the_edited_one(server: StudioServer) -> None:
    question = json.dumps({"scenario": 1, "planner": PLANNER, "step": 0}).encode()
    saved = scenario_from_json(json.loads(send(server, "POST", "api/save", question)[2]))
    original = server.studio.library.scenery(1).scenario
    assert (saved.ego == original.ego).all()
    assert (saved.tracks.state == original.tracks.state).all()
