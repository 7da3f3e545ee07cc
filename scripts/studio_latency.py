"""How long it takes in the studio from the drop of a road user to the drawn plan, in a real browser.

    python scripts/studio_latency.py [--scenarios sumo14-val] [--planner radp-mini] [--drops 21]

Changes somebody again and again and prints medians: by the clock of the page, and the processor time of the server and
of the browser, which depends less on what else the machine does. Needs Chromium (scripts/install_browser.sh).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.chromium import Chromium

from radp.studio.server import StudioServer
from radp.studio.studio import Studio

WARM = 3  # drops that do not count: the first plans compile and fill memories
SOMEBODY = (
    "(() => { const e = studio.editor, ego = e.drive.ego(0); const far = (p) => Math.hypot(p.x - ego.x, p.y - ego.y);"
    " const all = e.drive.tracks.map((t) => [t.id, e.drive.pose(t, 0)]);"
    " const seen = all.filter(([, p]) => p && far(p) > 8 && far(p) < 40);"
    " return seen.sort((a, b) => far(a[1]) - far(b[1]))[0][0] })()"
)


def place_of(browser: Chromium, who: str) -> tuple[float, float]:
    """In the window."""
    return browser.evaluate(
        f"(() => {{ const e = studio.editor, p = e.pose({who!r}), [x, y] = e.view.toCanvas(p.x, p.y),"
        " b = e.canvas.getBoundingClientRect(); return [b.x + x, b.y + y] })()"
    )


def server_seconds() -> float:
    """Processor time of the threads that answer; this one only drives the browser."""
    return time.process_time() - time.thread_time()


def browser_seconds(browser: Chromium) -> float:
    """Processor time of the browser and all its processes."""
    total, ticks = 0.0, os.sysconf("SC_CLK_TCK")
    family = {browser._process.pid}
    stats = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(folder.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks)
    while more := {pid for pid, (parent, _) in stats.items() if parent in family} - family:
        family |= more
    for pid in family:
        total += stats.get(pid, (0, 0.0))[1]
    return total


def in_motion(browser: Chromium, who: str, shift: float) -> None:
    """Let somebody go in the middle of a move: a plan of the moment before is under way."""
    x, y = place_of(browser, who)
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y)
    for share in (0.5, 1.0):
        browser.mouse("Moved", x + share * shift, y, buttons=1)
    browser.mouse("Released", x + shift, y)


def after_a_pause(browser: Chromium, who: str, shift: float) -> None:
    """Let somebody go when the plan of the place is drawn already."""
    x, y = place_of(browser, who)
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y)
    browser.mouse("Moved", x + shift, y, buttons=1)
    browser.wait_for("studio.plans.idle")
    browser.mouse("Released", x + shift, y)


def by_button(browser: Chromium, who: str, shift: float) -> None:
    """Change a speed: nothing was planned before."""
    browser.evaluate(f"studio.editor.setSpeed({who!r}, studio.editor.pose({who!r}).speed + {shift / 8})")


def measured(browser: Chromium, who: str, change: Callable[[Chromium, str, float], None], times: int) -> str:
    """A line with the times of a change, the first few left out."""
    own = theirs = answers = 0.0
    for i in range(WARM + times):
        if i == WARM:
            own, theirs = server_seconds(), browser_seconds(browser)
            answers = browser.evaluate("studio.state.answers")
        count = browser.evaluate("studio.state.latencies.length")
        change(browser, who, 4.0 if i % 2 else -4.0)
        browser.wait_for(f"studio.state.latencies.length > {count} && studio.plans.idle")
    own, theirs = server_seconds() - own, browser_seconds(browser) - theirs
    plans = browser.evaluate("studio.state.answers") - answers
    clock = sorted(browser.evaluate(f"studio.state.latencies.slice(-{times})"))
    what = change.__name__.replace("_", " ")
    return (
        f"{what}: clock {median(clock):.0f} ms ({clock[0]:.0f} to {clock[-1]:.0f}); "
        f"processor time for each of {plans:.0f} plans: server {1000 * own / plans:.0f} ms, "
        f"browser {1000 * theirs / plans:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default="sumo14-val")
    parser.add_argument("--planner", default="radp-mini")
    parser.add_argument("--drops", type=int, default=21)
    wanted = parser.parse_args()
    server = StudioServer(Studio(wanted.scenarios, (wanted.planner,)))
    server.serve_in_background()
    try:
        with Chromium(1400, 900) as browser:
            browser.open(server.address)
            browser.wait_for("studio.state.ready && studio.state.answers > 0 && studio.plans.idle")
            who = browser.evaluate(SOMEBODY)
            print(f"{wanted.planner}, {wanted.drops} changes each, from letting go to the drawn plan:")
            for change in (by_button, in_motion, after_a_pause):
                print(f"  {measured(browser, who, change, wanted.drops)}", flush=True)
    finally:
        server.close()
    print(
        f"load of the machine in the last minute: {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors"
    )


if __name__ == "__main__":
    main()
