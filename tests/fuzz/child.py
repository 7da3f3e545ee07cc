"""One process of the fuzz: `python -m tests.fuzz.child FOLDER SEED FIRST LAST [TARGETS]`, a line for each input.

> 17 store store/manifest.json   begins
= refused                        or read, or the sentence of a finding
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import traceback
import warnings
from importlib.util import find_spec
from pathlib import Path

from radp.runs.errors import BadInput
from tests.fuzz.mutations import mutate
from tests.fuzz.targets import TARGETS, Target

MOST_SECONDS = 20.0  # of processor time for one input
MOST_BYTES = 3 << 30


def files_of(folder: Path, target: Target) -> list[Path]:
    return sorted({path for pattern in target.files for path in folder.glob(pattern) if path.is_file()})


def attempt(folder: Path, name: str, path: Path, content: bytes, loud: bool = False) -> str:
    """What the reader makes of a file with another content: read, refused, or how it failed."""
    sound = path.read_bytes()
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        TARGETS[name].read(folder)
        return "read"
    except BadInput as error:
        text = str(error)
        return "refused" if text and "\n" not in text else f"a refusal of several lines or none: {text[:100]!r}"
    except FileNotFoundError as error:
        return f"FileNotFoundError: {error}"
    except BaseException as error:
        if loud:
            traceback.print_exc()
        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = [f for f in traceback.extract_tb(error.__traceback__) if "/radp/" in f.filename]
        near = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else where.name
        return f"{type(error).__name__} at {near}: {' '.join(str(error).split())[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.write_bytes(sound)


def main(folder: Path, seed: int, first: int, last: int, wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    names = [name for name in wanted or TARGETS if not TARGETS[name].needs or find_spec(TARGETS[name].needs)]
    files = {name: files_of(folder, TARGETS[name]) for name in names}
    for i in range(first, last):
        name, chance = names[i % len(names)], random.Random(f"{seed} {i}")
        path = chance.choice(files[name])
        content = mutate(path.name, path.read_bytes(), chance)
        print(f"> {i} {name} {path.relative_to(folder)}", flush=True)
        print(
            f"= {attempt(folder, name, path, content, loud=last - first == 1)}".encode("ascii", "replace").decode(),
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5:])  # type: ignore[arg-type]
