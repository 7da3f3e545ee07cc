"""The studio in a real browser: drag, plan again, drive on, save, load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from radp.scenario.neutral_json import read_scenario, save_json, scenario_to_json
from radp.sources.synthetic import make_scenario
from radp.studio.server import StudioServer
from radp.studio.studio import Studio
from tests.report.chromium import Chromium
from tests.report.conftest import hostile_scenario

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium(1400, 900) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioServer]:
    folder = tmp_path_factory.mktemp("scenarios")
    for i, scenario in enumerate((make_scenario(0, 8, frames=31), hostile_scenario())):
        save_json(scenario_to_json(scenario), folder / f"s{i}.json.gz")
    server = StudioServer(Studio(str(folder), ("constant_velocity",)))
    server.serve_in_background()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def opened(browser: Chromium, server: StudioServer) -> Iterator[None]:
    """The page with its first plan; no console error, and no request but to the studio."""
    browser.errors.clear()
    browser.requests.clear()
    browser.open(server.address)
    planned = "studio.state.ready && studio.state.answers > 0 && studio.plans.idle"
    browser.wait_for(f"({planned}) || document.querySelector('.status.bad') !== null")
    assert browser.evaluate("document.querySelector('.status.bad')?.textContent ?? ''") == ""
    yield
    assert browser.errors == []
    assert all(url.startswith((server.address, "data:", "blob:")) or url == "about:blank" for url in browser.requests)


def somebody(browser: Chromium) -> str:
    """A vehicle that is well inside the canvas."""
    return browser.evaluate(
        "(() => { const e = studio.editor; for (const t of e.drive.tracks) { const p = e.drive.pose(t, 0);"
        " if (!p || t.type !== 0) continue; const [x, y] = e.view.toCanvas(p.x, p.y), ego = e.drive.ego(0);"
        " if (Math.hypot(p.x - ego.x, p.y - ego.y) > 6 && x > 120 && x < e.view.width - 160 && y > 120"
        " && y < e.view.height - 120) return t.id } })()"
    )


def pose(browser: Chromium, who: str) -> dict[str, float]:
    return browser.evaluate(f"studio.editor.pose({json.dumps(who)})")


def on_screen(browser: Chromium, x: float, y: float) -> tuple[float, float]:
    box = browser.evaluate("document.querySelector('.view canvas').getBoundingClientRect().toJSON()")
    px, py = browser.evaluate(f"studio.editor.view.toCanvas({x}, {y})")
    return box["x"] + px, box["y"] + py


def drag(browser: Chromium, who: str, right: float, down: float) -> None:
    """Take somebody, go there in two moves, let go, and wait for the plan."""
    now = pose(browser, who)
    x, y = on_screen(browser, now["x"], now["y"])
    count = browser.evaluate("studio.state.latencies.length")
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y)
    for share in (0.5, 1.0):
        browser.mouse("Moved", x + share * right, y + share * down, buttons=1)
    browser.mouse("Released", x + right, y + down)
    browser.wait_for(f"studio.state.latencies.length > {count} && studio.plans.idle")


def edits(browser: Chromium) -> list[dict[str, Any]]:
    return browser.evaluate("studio.editor.edits")


def pick(browser: Chromium, name: str, value: str) -> None:
    browser.evaluate(
        f"(() => {{ const field = document.getElementById('{name}'); field.value = {json.dumps(value)};"
        " field.dispatchEvent(new Event('input')); field.dispatchEvent(new Event('change')) })()"
    )


def settled(browser: Chromium) -> None:
    browser.wait_for("studio.plans.idle && studio.fans.idle")


def test_it_opens_draws_and_fits(browser: Chromium, tmp_path: Path) -> None:
    browser.screenshot(tmp_path / "studio.png")
    ego = pose(browser, "ego")
    x, y = on_screen(browser, ego["x"], ego["y"])
    own = browser.evaluate("theme.color('ego-a')")
    with Image.open(tmp_path / "studio.png") as picture:
        assert "#{:02x}{:02x}{:02x}".format(*picture.convert("RGB").getpixel((int(x), int(y)))) == own
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate("document.querySelectorAll('[data-rule]').length") == 6


def test_drag_a_car_and_the_plan_follows(browser: Chromium) -> None:
    who = somebody(browser)
    before = pose(browser, who)
    drag(browser, who, 40, 24)
    after, zoom = pose(browser, who), browser.evaluate("studio.camera.zoom")
    assert after["x"] - before["x"] == pytest.approx(40 / zoom, abs=0.2)
    assert after["y"] - before["y"] == pytest.approx(-24 / zoom, abs=0.2)
    assert [edit["kind"] for edit in edits(browser)] == ["move"]
    assert "after the drop" in browser.evaluate("document.querySelector('.latency').textContent")
    drag(browser, who, -20, 0)
    assert len(edits(browser)) == 1, "a second drag of the same car at the same moment replaces the first"
    browser.click_on("#undo")
    settled(browser)
    assert pose(browser, who)["x"] == pytest.approx(before["x"], abs=0.02)


def test_drag_the_ego(browser: Chromium) -> None:
    before, plan = pose(browser, "ego"), "[...studio.editor.drive.plans.xy.slice(0, 2)]"
    first = browser.evaluate(plan)
    drag(browser, "ego", 0, -40)
    moved = 40 / browser.evaluate("studio.camera.zoom")
    assert pose(browser, "ego")["y"] - before["y"] == pytest.approx(moved, abs=0.2)
    assert browser.evaluate(plan)[1] - first[1] == pytest.approx(moved, abs=0.3)


def test_turn_by_the_handle(browser: Chromium) -> None:
    who = somebody(browser)
    now = pose(browser, who)
    browser.click(*on_screen(browser, now["x"], now["y"]))
    reach = now["length"] / 2 + 3.2
    hx, hy = (
        now["x"] + reach * browser.evaluate(f"Math.cos({now['heading']})"),
        now["y"] + reach * browser.evaluate(f"Math.sin({now['heading']})"),
    )
    x, y = on_screen(browser, hx, hy)
    tx, ty = on_screen(browser, now["x"], now["y"] + reach)
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y)
    browser.mouse("Moved", tx, ty, buttons=1)
    browser.mouse("Released", tx, ty)
    settled(browser)
    assert browser.evaluate(f"Math.sin(studio.editor.pose({json.dumps(who)}).heading)") == pytest.approx(1.0, abs=0.02)


def test_stop_speed_up_delete_and_add(browser: Chromium) -> None:
    who = somebody(browser)
    now = pose(browser, who)
    browser.click(*on_screen(browser, now["x"], now["y"]))
    browser.click_on("#faster")
    settled(browser)
    assert pose(browser, who)["speed"] == pytest.approx(now["speed"] + 2, abs=0.02)
    browser.click_on("#stop")
    settled(browser)
    assert pose(browser, who)["speed"] == 0
    browser.click_on("#delete")
    settled(browser)
    assert pose(browser, who) is None
    browser.click_on("[data-type=PEDESTRIAN]")
    ego = pose(browser, "ego")
    browser.click(*on_screen(browser, ego["x"] + 4, ego["y"] + 5))
    browser.wait_for("studio.editor.drive.tracks.some((track) => track.id === 'added 1')")
    settled(browser)
    assert pose(browser, "added 1")["x"] == pytest.approx(ego["x"] + 4, abs=0.1)
    assert [edit["kind"] for edit in edits(browser)] == ["speed", "remove", "add"]
    browser.key("Delete")
    settled(browser)
    assert [edit["kind"] for edit in edits(browser)] == ["speed", "remove"]


def test_switch_a_light(browser: Chromium) -> None:
    bar = browser.evaluate(
        "(() => { const b = studio.editor.road.bars; for (let i = 0; i < b.length / 4; i++) {"
        " const m = [(b[4*i] + b[4*i+2]) / 2, (b[4*i+1] + b[4*i+3]) / 2];"
        " if (studio.editor.find(...studio.editor.view.toCanvas(...m)).what === 'light') return [i, ...m] } })()"
    )
    if bar is None:
        pytest.skip("the scenario has no light in view")
    before = browser.evaluate(f"studio.editor.road.lights[{bar[0]}]")
    browser.evaluate(f"studio.editor.switchLight({bar[0]})")
    settled(browser)
    after = browser.evaluate(f"studio.editor.road.lights[{bar[0]}]")
    assert after != before
    assert edits(browser)[0]["kind"] == "light"


def test_scrub_to_a_moment(browser: Chromium) -> None:
    before = pose(browser, "ego")
    pick(browser, "scrub", "12")
    browser.wait_for("studio.editor.at === 12 && studio.plans.idle")
    assert pose(browser, "ego") != before
    assert browser.evaluate("document.getElementById('clock').textContent").startswith("1.2 /")
    browser.key("ArrowRight")
    browser.wait_for("studio.editor.at === 13")
    settled(browser)


def test_switch_a_rule_off(browser: Chromium) -> None:
    browser.click_on("[data-rule=comfort] input[type=checkbox]")
    settled(browser)
    assert "comfort" not in browser.evaluate("studio.editor.answer.rules")
    assert browser.evaluate("document.querySelector('[data-rule=comfort]').classList.contains('off')")
    browser.click_on("[data-rule=comfort] input[type=checkbox]")
    settled(browser)


def test_drive_on_shows_both_drives_in_step(browser: Chromium) -> None:
    pick(browser, "agents", "nonreactive")
    pick(browser, "scrub", "18")
    browser.wait_for("studio.editor.at === 18 && studio.plans.idle")
    drag(browser, "ego", 0, -30)
    browser.click_on("#drive")
    browser.wait_for("studio.state.drive !== null || document.querySelector('.status.bad') !== null")
    assert browser.evaluate("document.getElementById('status').textContent") == ""
    assert browser.evaluate("studio.state.drive.drives.length") == 2
    browser.evaluate("(studio.state.drive.player.pause(), studio.state.drive.player.seek(9))")
    browser.settle()
    assert browser.evaluate("studio.state.drive.views.map((view) => view.shownTime)") == [9, 9]
    starts = browser.evaluate("studio.state.drive.drives.map((drive) => drive.center[1])")
    assert starts[1] - starts[0] == pytest.approx(30 / browser.evaluate("studio.camera.zoom"), abs=0.3)
    browser.click_on("#back")
    assert browser.evaluate("studio.state.drive") is None
    assert len(edits(browser)) == 1


def test_save_and_load(browser: Chromium, tmp_path: Path) -> None:
    who = somebody(browser)
    drag(browser, who, 30, 0)
    moved = pose(browser, who)
    browser.evaluate("HTMLAnchorElement.prototype.click = function () { window.offered = this.download }")
    browser.click_on("#save")
    text = browser.wait_for("studio.state.saved")
    assert browser.evaluate("window.offered").endswith("-edited.json")
    (tmp_path / "edited.json").write_text(text)
    assert read_scenario(tmp_path / "edited.json").token.endswith("-edited")
    answers = browser.evaluate("studio.state.answers")
    browser.evaluate("studio.load(studio.state.saved)")
    browser.wait_for(f"studio.state.answers > {answers} && studio.plans.idle")
    assert edits(browser) == []
    ego = pose(browser, "ego")
    assert browser.evaluate("studio.editor.page.token").endswith("-edited")
    assert pose(browser, who)["speed"] == pytest.approx(moved["speed"], abs=0.02)
    assert ego["speed"] > 0


def test_what_cannot_be_loaded_is_said(browser: Chromium) -> None:
    browser.evaluate("studio.load('{\"expert\": 1}')")
    browser.wait_for("document.querySelector('.status.bad') !== null")
    assert "map" in browser.evaluate("document.getElementById('status').textContent")
    browser.errors.clear()  # the browser notes the refusal (400) in its console


def test_hostile_names_are_shown_as_text(browser: Chromium) -> None:
    answers = browser.evaluate("studio.state.answers")
    pick(browser, "scenario", "1")
    browser.wait_for(f"studio.state.answers > {answers} && studio.plans.idle")
    browser.evaluate("studio.editor.select(studio.editor.drive.tracks[0].id)")
    assert browser.evaluate("window.hacked === undefined && document.querySelectorAll('img').length === 0")
    assert "</script>" in browser.evaluate("document.getElementById('selected').textContent")
