"""radp leaderboard: check runs and rank them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class Leaderboard:
    """Check runs of whole splits and rank them in one page; exit code 2 if a run does not hold what it says.

    Scores are computed again from the drives, reactive traffic is driven again along the ego's path, and both must
    agree with what the run folder says. What a run folder must hold: docs/leaderboard.md.

    Example:
        radp leaderboard runs/idm runs/radp runs/mine --out board
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of radp simulate."""
    out: Path
    """Folder for leaderboard.html, leaderboard.md and leaderboard.json."""
    json: bool = False
    """Print the table as JSON."""

    def __call__(self) -> int:
        from radp.evaluation.submission import check_submission
        from radp.report.leaderboard import leaderboard_json, leaderboard_sections, write_leaderboard

        if not self.runs:
            raise BadInput("radp leaderboard needs at least one run")
        found = [check_submission(path) for path in self.runs]
        page = write_leaderboard(found, self.out)
        if self.json:
            print(json_text(leaderboard_json(found)))
        else:
            tables = [table.markdown() for section in leaderboard_sections(found) for table in section.tables]
            print("\n\n".join((*tables, page.resolve().as_uri())))
        for one in found:
            for problem in one.problems:
                print(f"radp: {one.path}: {problem}", file=sys.stderr)
        return 2 if any(one.row is None for one in found) else 0
