"""The pages in a real browser: opened from a file, driven with mouse and keys."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

import radp
from radp.evaluation.closed_loop import Run
from radp.report.viewer import Site, write_site
from radp.zoo import DEMO
from tests.report.chromium import Chromium
from tests.report.conftest import FRAMES, HOSTILE
from tests.report.test_viewer_weights import at

pytestmark = pytest.mark.browser
LAST = FRAMES - 2  # position of the last sample


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def one(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site([run], tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def two(run: Run, other_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site([run, other_run], tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def several(run: Run, other_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One planner at three weights, two of goal and two of collision; the drives are of two planners."""
    runs = [at(run), at(other_run, "goal=4"), at(other_run, "collision=2")]
    return write_site(runs, tmp_path_factory.mktemp("several"), limit=1, weighted=True)


@pytest.fixture(autouse=True)
def nothing_wrong(browser: Chromium) -> Iterator[None]:
    """No console error, and no request but for the pages themselves."""
    browser.errors.clear()
    browser.requests.clear()
    yield
    assert browser.errors == []
    assert all((url.startswith("file://") and ".html" in url) or url.startswith("blob:") for url in browser.requests)


def first(site: Site) -> Path:
    return next(iter(site.pages.values()))


def box(browser: Chromium, selector: str) -> dict[str, float]:
    return browser.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().toJSON()")


def shown(browser: Chromium) -> dict[str, Any]:
    """What every part of the page says the moment is."""
    return browser.evaluate(
        "({frame: viewer.player.frame, scrub: Number(document.getElementById('scrub').value),"
        " views: viewer.views.map((v) => v.shownTime), clock: document.getElementById('clock').textContent})"
    )


def test_page_opens_and_draws(browser: Chromium, one: Site, tmp_path: Path) -> None:
    browser.open(first(one))
    assert shown(browser) == {"frame": 0, "scrub": 0, "views": [0], "clock": "0.0 / 3.9 s"}
    browser.screenshot(tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as picture:
        assert picture.size == (1280, 800)
        view = box(browser, ".view canvas")
        middle = picture.convert("RGB").getpixel(
            (int(view["x"] + view["width"] / 2), int(view["y"] + view["height"] / 2))
        )
        assert middle == (122, 63, 242)  # the ego
    fits = "document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"
    assert browser.evaluate(fits)


def test_play_advances_and_pause_stops(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    browser.key(" ")
    browser.wait_for("viewer.player.frame >= 3")
    assert browser.evaluate("viewer.player.playing")
    browser.click_on("#play")
    assert not browser.evaluate("viewer.player.playing")
    now = shown(browser)
    browser.settle()
    assert shown(browser) == now
    assert now["scrub"] == now["frame"]


def test_play_stops_at_the_end_and_starts_again(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    browser.evaluate("viewer.player.speed = 100")
    browser.key(" ")
    browser.wait_for(f"viewer.player.frame === {LAST} && !viewer.player.playing")
    browser.evaluate("viewer.player.speed = 0.01")
    browser.key(" ")
    assert browser.evaluate("viewer.player.playing && viewer.player.frame < 5")


def test_keys(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    for key, shift, frame in (
        ("ArrowRight", 0, 1), ("ArrowRight", 8, 11), ("ArrowLeft", 0, 10), ("End", 0, LAST), ("ArrowRight", 0, LAST),
        ("Home", 0, 0), ("ArrowLeft", 8, 0),
    ):  # fmt: skip
        browser.key(key, shift)
        assert shown(browser)["frame"] == frame
    browser.key("f")
    assert not browser.evaluate("viewer.camera.follow")
    browser.key("+")
    assert browser.evaluate("viewer.player.speed") == 2


def test_scrubbing_moves_everything(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    place = box(browser, "#scrub")
    browser.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    now = shown(browser)
    assert abs(now["frame"] - LAST / 2) <= 1
    assert now["scrub"] == now["frame"] == now["views"][0]
    assert now["clock"].startswith(f"{now['frame'] / 10:.1f} /")


def test_click_on_a_curve_jumps_there(browser: Chromium, two: Site) -> None:
    browser.open(first(two))
    place = box(browser, "#curves")
    for frame in (30, 7):
        x = browser.evaluate(f"viewer.curves.x({frame})")
        browser.click(place["x"] + x, place["y"] + 40)
        assert shown(browser)["frame"] == frame
        assert shown(browser)["views"] == [frame, frame]
    browser.mouse("Pressed", place["x"] + x, place["y"] + 40)
    browser.mouse("Moved", place["x"] + browser.evaluate("viewer.curves.x(20)"), place["y"] + 40, buttons=1)
    browser.settle()
    assert shown(browser)["frame"] == 20
    browser.mouse("Released", place["x"] + x, place["y"] + 40)


def test_side_by_side_stays_in_step(browser: Chromium, two: Site) -> None:
    browser.open(first(two))
    assert browser.evaluate("viewer.views.length") == 2
    browser.key(" ")
    for _ in range(5):
        browser.settle()
        times = shown(browser)["views"]
        assert times[0] == times[1]
    browser.wait_for("viewer.player.frame > 2")
    left, right = (box(browser, f".view:nth-child({i})") for i in (1, 2))
    assert left["width"] == pytest.approx(right["width"], abs=1)
    browser.click_on("#which button:nth-child(2)")
    assert box(browser, ".view:nth-child(2)")["width"] == 0
    assert box(browser, ".view:nth-child(1)")["width"] > 1.9 * left["width"]


def test_hover_tells_about_an_agent(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    view = box(browser, ".view canvas")
    found = browser.evaluate(
        "(() => { const v = viewer.views[0], d = v.drive; for (let i = 0; i < d.tracks.length; i++) {"
        " const p = d.pose(d.tracks[i], 0); if (!p) continue; const [x, y] = v.toCanvas(p.x, p.y);"
        " if (x > 150 && x < v.width - 150 && y > 80 && y < v.height - 40)"
        " return [x, y, d.tracks[i].id, p.speed] } })()"
    )
    x, y, name, speed = found
    browser.mouse("Moved", view["x"] + x, view["y"] + y)
    browser.settle()
    tip = browser.evaluate("document.getElementById('tip').innerText")
    assert name in tip
    assert f"{speed:.1f} m/s" in tip
    assert "% of the collision pressure" in tip
    browser.mouse("Moved", 5, 5)
    browser.settle()
    assert browser.evaluate("document.getElementById('tip').hidden")


def test_zoom_and_pan(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    view = box(browser, ".view canvas")
    x, y = view["x"] + 200, view["y"] + 150
    before = browser.evaluate("viewer.camera.zoom")
    browser.mouse("Wheel", x, y, deltaX=0, deltaY=-200)
    browser.wait_for(f"viewer.camera.zoom > {before}")
    spot = browser.evaluate("viewer.views[0].toWorld(200, 150)")
    browser.mouse("Pressed", x, y)
    browser.mouse("Moved", x + 90, y + 60, buttons=1)
    browser.mouse("Released", x + 90, y + 60)
    browser.settle()
    assert not browser.evaluate("viewer.camera.follow")
    assert browser.evaluate("viewer.views[0].toWorld(290, 210)") == pytest.approx(spot, abs=0.05)
    browser.click_on("#follow")
    assert browser.evaluate("viewer.camera.follow")


def test_light_and_dark(browser: Chromium, one: Site) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    browser.dark(False)
    browser.open(first(one))
    light = browser.evaluate(ground)
    browser.dark(True)
    dark = browser.evaluate(ground)
    assert light != dark
    browser.click_on("#theme")
    assert browser.evaluate(ground) == light
    browser.key("d")
    assert browser.evaluate(ground) == dark
    browser.evaluate("localStorage.clear()")
    browser.dark(False)


def test_moment_of_the_card_jumps_there(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    frame = browser.evaluate("viewer.drives[0].card.flatMap((row) => row.moments)[0].frame")
    browser.click_on(".moment")
    assert shown(browser)["frame"] == frame


def test_legend_opens(browser: Chromium, one: Site) -> None:
    browser.open(first(one))
    browser.click_on("#legend-button")
    assert "red light" in browser.evaluate("document.getElementById('legend').innerText")
    browser.key("Escape")
    assert browser.evaluate("document.getElementById('legend').hidden")


def test_hostile_names_are_shown_as_text(browser: Chromium, two: Site) -> None:
    for page in (two.pages[HOSTILE], two.index):
        browser.open(page)
        assert browser.evaluate("window.hacked === undefined")
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert HOSTILE in browser.evaluate("document.body.textContent")
    browser.open(two.pages[HOSTILE])
    assert browser.evaluate("document.getElementById('token').textContent") == HOSTILE


def order(browser: Chromium) -> list[str]:
    return browser.evaluate("[...document.querySelectorAll('td.name small:first-of-type')].map((s) => s.textContent)")


def test_index_sorts_by_any_column(browser: Chromium, two: Site) -> None:
    browser.open(two.index)
    keys = browser.evaluate("[...document.querySelectorAll('th[data-key]')].map((th) => th.dataset.key)")
    assert {"score", "metric-ego_is_comfortable", "pressure-collision"} <= set(keys)
    assert len(keys) == 2 + 8 + 6 + 1
    for key, value, down in (
        ("pressure-comfort", lambda row: row["drives"][0]["pressures"][4], True),
        ("metric-ego_progress_along_expert_route", lambda row: row["drives"][0]["metrics"][4], False),
    ):
        browser.click_on(f"th[data-key={key}] button")
        expected = sorted(two.rows, key=value, reverse=down)
        assert order(browser) == [row["token"] for row in expected]
        browser.click_on(f"th[data-key={key}] button")
        assert order(browser) == [row["token"] for row in sorted(two.rows, key=value, reverse=not down)]


def test_index_filters_and_leads_to_a_page(browser: Chromium, one: Site) -> None:
    browser.open(one.index)
    browser.evaluate(
        "(() => { const field = document.getElementById('filter'); field.value = '000001';"
        " field.dispatchEvent(new Event('input')) })()"
    )
    assert order(browser) == ["synthetic_000001"]
    browser.click_on("tbody tr td.thumb")
    browser.wait_for("typeof viewer === 'object' && viewer.page.token === 'synthetic_000001'")
    browser.click_on("#home")
    browser.wait_for("document.getElementById('runs') !== null")


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IDM drives into s0-t0.1 at 6.2 s."""
    split, folder = radp.open_split("sumo14-val"), tmp_path_factory.mktemp("crash")
    scenario = split[split.tokens().index("3847af748faf7403")]
    return radp.view(radp.simulate(radp.load_planner("idm"), [scenario], keep_plans=True), folder).pages[0]


def resize(browser: Chromium, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser._call("Emulation.setDeviceMetricsOverride", **size)
    browser.settle()


def colour_at(browser: Chromium, path: Path, x: float, y: float) -> tuple[int, ...]:
    browser.screenshot(path)
    with Image.open(path) as picture:
        return picture.convert("RGB").getpixel((int(x), int(y)))


def test_incidents_stand_beside_the_film_and_lead_there(browser: Chromium, crash: Path, tmp_path: Path) -> None:
    browser.open(crash)
    text = browser.evaluate("document.getElementById('incidents').innerText")
    assert (
        "2 incidents" in text and "Collision at fault" in text and "s0-t0.1" in text and "Pressing: collision" in text
    )
    browser.click_on("button.incident")
    assert shown(browser)["frame"] == 62
    assert browser.evaluate("document.querySelector('.entry').classList.contains('now')")
    view = box(browser, ".view canvas")
    x, y = browser.evaluate("viewer.views[0].toCanvas(...viewer.drives[0].incidents[0].impact)")
    assert colour_at(browser, tmp_path / "impact.png", view["x"] + x, view["y"] + y) == (184, 74, 0)
    browser.click_on(".entry .jump")
    assert shown(browser)["frame"] == 32
    browser.key("n")
    assert shown(browser)["frame"] == 51  # the time to collision is short


def test_a_car_without_pressure_is_not_tinted(browser: Chromium, crash: Path) -> None:
    browser.open(crash, "#t=4.3")
    tint = "Math.max(...viewer.drives[0].tracks.map((_, i) => viewer.drives[0].tintOf(i, %d)))"
    assert browser.evaluate(tint % 43) > 0.5
    browser.evaluate("viewer.drives[0].pressure.fill(0)")
    assert browser.evaluate("viewer.drives[0].shareOf(viewer.drives[0].incidents[0].track, 43)") > 0.9
    assert browser.evaluate(tint % 43) == 0


def test_layers_are_switched_and_drawn(browser: Chromium, crash: Path, tmp_path: Path) -> None:
    browser.open(crash, "#t=4.3&layers=")
    bare = browser.screenshot(tmp_path / "bare.png")
    browser.click_on("#layers-button")
    for name in ("labels", "envelope", "corridor", "arrows", "speed"):
        browser.click_on(f"#layer-{name}")
        assert browser.evaluate(f"viewer.layers.{name}")
    browser.key("Escape")
    assert browser.screenshot(tmp_path / "all.png") != bare


def test_address_keeps_moment_and_view(browser: Chromium, crash: Path, two: Site) -> None:
    browser.open(crash, "#t=4.3&zoom=12&up=1&layers=arrows,corridor")
    assert shown(browser)["frame"] == 43
    assert browser.evaluate("[viewer.camera.zoom, viewer.camera.headingUp]") == [12, True]
    assert browser.evaluate("[viewer.layers.arrows, viewer.layers.labels]") == [True, False]
    browser.key("ArrowRight")
    browser.wait_for("location.hash.includes('t=4.4')")
    kept = browser.evaluate("location.hash")
    browser.open(crash, kept)
    assert shown(browser)["frame"] == 44 and browser.evaluate("viewer.camera.zoom") == 12
    browser.open(first(two), "#t=1&show=1&x=3&y=4")
    assert browser.evaluate("[viewer.views[0].box.hidden, viewer.camera.follow, viewer.camera.x]") == [True, False, 3]
    browser.open(crash, "#t=nan&zoom=1e999&layers=<img>&show=9")  # nonsense changes nothing
    assert shown(browser)["frame"] == 0


def test_moment_and_curves_can_be_taken_away(browser: Chromium, crash: Path) -> None:
    browser.open(crash, "#t=6.2")
    png = browser.evaluate("exporting.png(viewer.views, viewer.curves).then((blob) => [blob.type, blob.size])")
    assert png[0] == "image/png" and png[1] > 10_000
    svg = ElementTree.fromstring(browser.evaluate("exporting.svg(viewer.views[0], viewer.road, viewer.player.time)"))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "s0-t0.1" in texts and len(svg) > 50
    rows = list(csv.DictReader(browser.evaluate("exporting.csv(viewer.drives, viewer.page)").splitlines()))
    assert len(rows) == 150
    pressure, level = (float(rows[43][f"{name}_collision"]) for name in ("pressure", "times_usual"))
    assert level == pytest.approx(math.expm1(pressure), abs=1e-3) and level > 5
    assert "collision" in rows[62]["risks"]
    browser.click_on("#export-button")
    for name in ("png", "svg", "csv"):
        browser.click_on(f"#save-{name}")


def test_one_scale_with_its_usual_line(browser: Chromium, crash: Path) -> None:
    browser.open(crash, "#t=4.3")
    assert "usual level" in browser.evaluate("document.getElementById('pressure-note').textContent")
    assert not browser.evaluate("viewer.curves.common")
    assert browser.evaluate("viewer.curves.rules.every((_, i) => viewer.curves.top(i) > Math.log(2))")
    assert browser.evaluate("viewer.curves.wordsOf(Math.log1p(5657))") == ">20×"
    assert browser.evaluate("viewer.curves.wordsOf(Math.log(2))") == "1.0×"
    browser.click_on("#scale")
    assert len(set(browser.evaluate("viewer.curves.rules.map((_, i) => viewer.curves.top(i))"))) == 1


def test_calm_ones_of_many_rules_are_folded(browser: Chromium) -> None:
    """A packaged page, with fourteen rules."""
    page = next(iter(sorted(DEMO.glob("0*.html"))))
    browser.open(page)
    shown, calm = browser.evaluate("[viewer.curves.rows.length, viewer.curves.calm.length]")
    assert calm > 0 and shown + calm == browser.evaluate("viewer.page.rules.length") == 14
    peaks = "viewer.curves.calm.map((rule) => viewer.curves.peaks[rule])"
    assert max(browser.evaluate(peaks)) <= math.log(2.5), "their tops are the least that a row shows"
    assert "never above their usual level" in browser.evaluate("document.getElementById('fold').textContent")
    browser.click_on("#fold")
    assert browser.evaluate("viewer.curves.rows.length") == 14
    assert browser.evaluate("viewer.curves.rowHeight") >= 26
    box_of_rows = "document.querySelector('.rows')"
    assert browser.evaluate(f"{box_of_rows}.scrollHeight > {box_of_rows}.clientHeight"), "more than fits"
    assert browser.evaluate(f"viewer.curves.axis < {box_of_rows}.clientHeight"), "the axis is in view"
    browser.wait_for("location.hash.includes('rules=all')")
    browser.open(page, "#rules=all")
    assert browser.evaluate("viewer.curves.rows.length") == 14
    browser.open(DEMO / "index.html")
    assert "×" in browser.evaluate("document.querySelector('#body td:nth-child(12)').textContent")


@pytest.mark.parametrize("pages", ["crash", "two"])
def test_a_phone_shows_everything(browser: Chromium, crash: Path, two: Site, pages: str) -> None:
    resize(browser, 390, 844)
    try:
        browser.open(crash if pages == "crash" else first(two), "#t=2")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        for name in browser.evaluate(
            "[...document.querySelectorAll('.badge')].map((b) => [b.clientWidth, b.clientHeight])"
        ):
            assert name[0] > 2 * name[1]  # a name in one line, not set vertically
        for button in ("#layers-button", "#export-button", "#legend-button", "#play"):
            place = box(browser, button)
            assert place["left"] >= 0 and place["right"] <= 390
    finally:
        resize(browser, 1280, 800)


def slide(browser: Chromium, rule: str, place: int) -> dict[str, Any]:
    """Move a slider as a user does -> what the page then shows."""
    browser.evaluate(
        f"(() => {{ const slider = document.getElementById('weight-{rule}'); slider.value = {place};"
        " slider.dispatchEvent(new Event('input')); })()"
    )
    browser.settle()
    return browser.evaluate(
        "({drive: viewer.sliders.chosen, shown: viewer.views[0].drive.planner, views: viewer.views.length,"
        " said: [...document.querySelectorAll('#weights output')].map((one) => one.textContent),"
        " card: document.querySelector('#card .who').textContent, frame: viewer.player.frame})"
    )


def test_sliders_choose_the_drive_of_their_weights(browser: Chromium, several: Site, one: Site) -> None:
    browser.open(first(several))
    names = "[...document.querySelectorAll('#weights label span')].map((one) => one.textContent)"
    assert browser.evaluate(names) == ["goal", "collision"]
    browser.key("ArrowRight", 8)  # ten samples on, which stay
    more = slide(browser, "goal", 1)
    assert more == {
        "drive": 1,
        "shown": "log_replay",
        "views": 1,
        "said": ["4×", "1×"],
        "card": "log_replay",
        "frame": 10,
    }
    other = slide(browser, "collision", 1)  # nobody drove with both: the other slider goes back
    assert (other["drive"], other["said"]) == (2, ["1×", "2×"])
    back = slide(browser, "collision", 0)
    assert (back["drive"], back["shown"], back["card"]) == (0, "constant_velocity", "constant_velocity")
    browser.open(first(one))
    assert browser.evaluate("document.getElementById('weights').hidden && viewer.sliders === null")
