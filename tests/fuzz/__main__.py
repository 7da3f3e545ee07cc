"""The fuzz from the command line; exit code 1 if anything but reading and refusing happened."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.run import run
from tests.fuzz.targets import write_seeds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="go on at this input, up to --inputs")
    parser.add_argument("--only", type=int, help="one input by its number, with the traceback")
    parser.add_argument("--targets", nargs="*", default=[], help="readers by name; all by default")
    parser.add_argument("--workers", type=int, default=2)
    words = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "seeds"
        folder.mkdir()
        write_seeds(folder)
        first, last = (words.first, words.inputs) if words.only is None else (words.only, words.only + 1)
        report = run(folder, words.seed, first, last, words.targets, min(words.workers, last - first), show=True)
    print(f"{report.summary()} in {time.monotonic() - started:.0f} s")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
