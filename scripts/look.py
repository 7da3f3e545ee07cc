"""Pictures of pages in a real browser, to look at before a release: light, dark, on a phone, and the studio.

    python scripts/look.py --pages demo/index.html "demo/0001-5f69d601ff652504.html#t=4" --out pictures
    python scripts/look.py --studio sumo14-val --out pictures

A page gives NAME-light.png, NAME-dark.png and NAME-phone.png (the whole length of it), the studio studio-light.png and
studio-dark.png with its first plan and somebody selected, studio-phone.png, and studio-drive.png: the last three
seconds without and with that one stopped. Needs Chromium (scripts/install_browser.sh).
"""

from __future__ import annotations

import argparse
import base64
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.chromium import Chromium

FAN = (
    "for (const [id, value] of [['fan', 8], ['noise', 3]]) { const field = document.getElementById(id);"
    " field.value = value; field.dispatchEvent(new Event('change')) }"
)
SCREEN, PHONE = (1400, 900), (390, 844)


def set_size(browser: Chromium, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser._call("Emulation.setDeviceMetricsOverride", **size)
    browser.settle()


def whole_page(browser: Chromium, path: Path) -> None:
    """Everything, however long the page is."""
    height = browser.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": PHONE[0], "height": height, "scale": 1}
    answer = browser._call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    path.write_bytes(base64.b64decode(answer["data"]))


def look_at_page(browser: Chromium, address: str, out: Path) -> None:
    file, _, fragment = address.partition("#")
    name, at = Path(file).stem, f"#{fragment}" if fragment else ""
    for dark in (False, True):
        set_size(browser, *SCREEN)
        browser.dark(dark)
        browser.open(Path(file), at)
        browser.screenshot(out / f"{name}-{'dark' if dark else 'light'}.png")
    set_size(browser, *PHONE)
    browser.dark(False)
    browser.open(Path(file), at)
    whole_page(browser, out / f"{name}-phone.png")


def look_at_studio(browser: Chromium, scenarios: str, planner: str, number: int, out: Path) -> None:
    from radp.studio.server import StudioServer
    from radp.studio.studio import Studio

    server = StudioServer(Studio(scenarios, (planner,)))
    server.serve_in_background()
    try:
        set_size(browser, *SCREEN)
        browser.dark(False)
        browser.open(server.address)
        browser.wait_for("studio.state.answers > 0 && studio.plans.idle")
        browser.evaluate(f"studio.open({number})")
        browser.wait_for("studio.state.answers > 1 && studio.plans.idle")
        browser.evaluate(FAN)
        browser.wait_for("studio.editor.fan !== null && studio.plans.idle && studio.fans.idle")
        browser.evaluate("studio.editor.select(studio.editor.drive.tracks[0]?.id ?? 'ego')")
        for dark in (False, True):
            browser.dark(dark)
            browser.screenshot(out / f"studio-{'dark' if dark else 'light'}.png")
        set_size(browser, *PHONE)
        browser.dark(False)
        whole_page(browser, out / "studio-phone.png")
        set_size(browser, *SCREEN)
        browser.evaluate("studio.seek(studio.editor.page.samples - 31)")
        browser.wait_for("studio.plans.idle")
        browser.evaluate("document.getElementById('stop').click()")
        browser.wait_for("studio.plans.idle")
        browser.click_on("#drive")
        browser.wait_for("studio.state.drive !== null")
        browser.evaluate("(studio.state.drive.player.pause(), studio.state.drive.player.seek(20))")
        browser.settle()
        browser.screenshot(out / "studio-drive.png")
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", nargs="*", default=[])
    parser.add_argument("--studio", default="")
    parser.add_argument("--planner", default="radp-mini")
    parser.add_argument("--number", type=int, default=0, help="of the scenario in the studio")
    parser.add_argument("--out", type=Path, required=True)
    wanted = parser.parse_args()
    wanted.out.mkdir(parents=True, exist_ok=True)
    with Chromium(*SCREEN) as browser:
        for address in wanted.pages:
            look_at_page(browser, address, wanted.out)
        if wanted.studio:
            look_at_studio(browser, wanted.studio, wanted.planner, wanted.number, wanted.out)
        if browser.errors:
            raise SystemExit(f"errors of the pages: {browser.errors}")


if __name__ == "__main__":
    main()
