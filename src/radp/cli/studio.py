"""radp studio: change a scenario, plan again, drive on."""

from __future__ import annotations

from dataclasses import dataclass

from tyro.conf import Positional


@dataclass(frozen=True)
class OpenStudio:
    """Open a page in which a scenario can be changed: what would the planner do if?

    Drag, delete, add, stop or speed up road users, move the ego, switch lights, weigh rules; the plan, its forecasts
    and its pressures follow at once. "Drive on" drives from that moment with and without the changes. The changed
    scenario can be saved as neutral JSON for every other command. The page is served to this machine alone, at an
    address with a random token; Ctrl-C ends it.

    Example:
        radp studio sumo14-val
        radp studio runs/idm --planner radp-mini
        radp studio sumo14-val --rule-set road-v2
        radp studio edited.json --planner my_planner.py:MyPlanner --no-browser
    """

    scenarios: Positional[str] = "sumo14-val"
    """Name of a packaged split, a run folder, or a path (store, neutral JSON file, folder of them)."""
    planner: tuple[str, ...] = ()
    """Planners to offer besides the packaged ones; the first is chosen at the start. Your own as file.py:Class."""
    rule_set: str = ""
    """Rules that judge and pull: paper, v2, road-v2 (eight more); those of the planner's head if not given."""
    port: int = 0
    """Of the page; 0 = any that is free."""
    no_browser: bool = False
    """Only print the address."""
    allow_missing: bool = False
    """Take what can be read of a store that is incomplete."""

    def __call__(self) -> int:
        import webbrowser

        from radp.planners import load_planner
        from radp.rules import rule_set
        from radp.runs.errors import BadInput
        from radp.studio.server import StudioServer
        from radp.studio.studio import Studio

        if not 0 <= self.port <= 65535:
            raise BadInput(f"port is {self.port}, expected 0 to 65535")
        for name in self.planner:
            load_planner(name)  # refused now rather than in the page
        if self.rule_set:
            rule_set(self.rule_set)
        server = StudioServer(Studio(self.scenarios, self.planner, self.allow_missing, self.rule_set), self.port)
        print(f"radp studio: {server.address}", flush=True)
        print("Ctrl-C ends it.", flush=True)
        if not self.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
        finally:
            server.server_close()
            server.studio.jobs.close()
        return 0
