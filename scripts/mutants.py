"""Do the tests bite? Change one spot of the code at a time and see whether a test fails.

    python scripts/mutants.py                      a seeded sample over all modules below
    python scripts/mutants.py --sample 400 --seed 1
    python scripts/mutants.py --only rules/collision.py --sample 0      (0: every mutant)

A mutant is one changed comparison, operator, number, condition or call. Each is judged by the few test files that
concern its module, in a process forked from one that has the heavy libraries loaded; compiled kernels run as plain
Python there, so that a mutant needs no compiler. A mutant that survives and cannot be told from the original by
any input is listed in EQUIVALENT, with the reason, and not counted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "radp"
HEAVY = ("torch", "numba", "scipy.stats", "shapely", "hypothesis", "pytest", "safetensors.torch", "pyarrow", "peft")
NOTHING_TO_RUN = 5  # what pytest says if the marks leave no test of a file
LONGEST = 300  # s of processor time; a mutant that needs more hangs, which a test would notice

RULES = (
    "rules/test_costs.py",
    "rules/test_sets.py",
    "rules/test_properties.py",
    "rules/test_invariance.py",
    "rules/test_contact.py",
    "attribution/test_teacher.py",
    "scene/test_rule_view.py",
    "rules/test_road.py",
)
# The slow reference on a few of its random drives: without the compiler each takes seconds.
REFERENCE = tuple(
    f"metrics/test_reference.py::test_kernels_equal_the_slow_reference[{seed}-{made}_rollout]"
    for seed in range(3)
    for made in ("wandering", "patchwork")
)
METRICS = ("metrics/test_score.py", "metrics/test_card.py", *REFERENCE)
SAMPLER = ("model/test_sampler.py", "runtime/test_solver.py", "model/test_switches.py")
TRAINING = (
    "training/test_align.py",
    "training/test_focus.py",
    "training/test_anchored.py",
    "training/test_conditioned.py",
)
TARGETS: dict[str, tuple[str, ...]] = {
    **{
        f"rules/{name}.py": RULES
        for name in (
            "collision",
            "comfort",
            "costs",
            "goal",
            "kinematics",
            "lane",
            "motion",
            "penalty",
            "speed",
            "context",
        )
    },
    "rules/route.py": ("rules/test_route.py", *RULES),
    "rules/scales.py": ("rules/test_scales.py",),
    **{
        f"metrics/{name}.py": (f"metrics/test_{name}.py", *METRICS)
        for name in ("collisions", "comfort", "drivable_area", "driving_direction", "progress", "speed_limit", "ttc")
    },
    "metrics/lanes.py": (
        "metrics/test_lanes.py",
        "metrics/test_driving_direction.py",
        "metrics/test_collisions.py",
        *REFERENCE,
    ),
    "metrics/score.py": METRICS,
    "model/sampler.py": SAMPLER,
    "model/schedule.py": SAMPLER,
    "evaluation/risk.py": ("evaluation/test_risk.py", "evaluation/test_committed.py"),
    "evaluation/alignment.py": ("evaluation/test_alignment.py", "evaluation/test_series.py"),
    "training/align.py": TRAINING,
    "training/align_task.py": TRAINING,
}
SLOW = "not slow and not golden and not realdata and not browser"
LEFT_OUT = "not whatever_the_threads and not knows_nothing"  # slow without the compiler, and no judges of such changes

EQUIVALENT = {  # "file: the line: what was changed" -> why no input tells it from the original
    "rules/collision.py: ttc = pairs.separation.clamp(min=0) / pairs.closing.clamp(min=1e-3): 0.001 -> 0.1015": (
        "a pair that closes at less than 0.1 m/s is gated by `near`, the larger one"
    ),
    "evaluation/alignment.py: risk, score = np.where(valid, risk, 0.0), np.where(valid, score, 0.0): 0.0 -> 0.1": (
        "what is not valid counts nowhere, whatever stands there"
    ),
    "metrics/collisions.py: if not drive.agent_valid[a, i] or dx * dx + dy * dy > reach * reach:: "
    "dx * dx + dy * dy -> dx * dx - dy * dy": "fewer pairs are passed over, and those that remain are tested exactly",
    "rules/route.py: offset = torch.where(known, -along, 0.0): 0.0 -> 0.1": (
        "what is not known is written over, or belongs to a lane that is not placed and counts nowhere"
    ),
    "evaluation/risk.py: box_centers(rollout.ego), rollout.ego[:, Ego.HEADING], PACIFICA.length * ones, "
    "PACIFICA.width * ones: PACIFICA.width * ones -> PACIFICA.width / ones": "ones are ones",
    "training/align_task.py: generator = torch.Generator().manual_seed("
    "step_seed(self.config.loop.seed + 1, step, rank)): self.config.loop.seed + 1 -> self.config.loop.seed - 1": (
        "any number that no other draw has will do"
    ),
    "metrics/driving_direction.py: window = int(WINDOW_US / step_us) if step_us > 0.0 else 0: 0.0 -> 0.1": (
        "no drive has steps below a millisecond"
    ),
    "rules/collision.py: short = CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - "
    "(gap / 2**0.5 - reach) > -AMPLE: CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - "
    "(gap / 2 ** 0.5 - reach) > -AMPLE -> CLEARANCE + HEADWAY * closing + closing.square() / (2 * BRAKING) - "
    "(gap / 2 ** 0.5 - reach) >= -AMPLE": "a pair at the very edge of the net has a gate of 0",
    "rules/route.py: index = nearest.unsqueeze(-1).expand(*nearest.shape, 2): 1 -> 2": "the last axis has length 1",
    **dict.fromkeys(
        (
            "rules/route.py: return self.station[..., -1].masked_fill(~self.placed, 0.0).amax(-1): -1 -> 1",
            "rules/route.py: return torch.where(self.red & (start >= minimum), start, torch.inf).amin(-1): -1 -> 1",
            "rules/route.py: return torch.where(self.red & ~goes_on & (start > minimum), start, torch.inf).amin(-1): "
            "-1 -> 1",
            "rules/route.py: valid = self.placed.any(-1, keepdim=True).expand(lane.shape): -1 -> 1",
            "rules/route.py: nearest = gap.masked_fill(~valid, torch.inf).argmin(-1, keepdim=True): -1 -> 1",
            "rules/route.py: known = torch.where(beside.any(-1, keepdim=True), beside, is_nearest): -1 -> 1",
            "rules/route.py: left = valid & ~known & known.any(-1, keepdim=True): -1 -> 1",
            "rules/collision.py: return (across[0] - reach / 2) / moved.norm(dim=-1).clamp(min=1e-6): -1 -> 1",
        ),
        "of two axes the last is the second",
    ),
}

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
OPERATORS |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult}
NAMES = {"min": "max", "any": "all", "amin": "amax", "argmin": "argmax", "sin": "cos", "minimum": "maximum",
         "floor": "ceil", "sum": "mean"}  # fmt: skip
NAMES |= {after: before for before, after in NAMES.items()}


@dataclass(frozen=True)
class Mutant:
    """One change: the file below src/radp, the line, and the code of the spot before and after."""

    file: str
    line: int
    before: str
    after: str
    number: int  # of the change in its file
    code: str = ""  # the line

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"

    @property
    def key(self) -> str:
        return f"{self.file}: {self.code}: {self.before} -> {self.after}"


def changes(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Every expression that can be changed, and what it becomes; the tree itself stays as it is."""
    for node in expressions(tree):
        new = copy.deepcopy(node)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            new.ops[0] = COMPARISONS[type(node.ops[0])]()  # type: ignore[attr-defined]
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            new.op = OPERATORS[type(node.op)]()  # type: ignore[attr-defined]
        elif isinstance(node, ast.BoolOp):
            new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()  # type: ignore[attr-defined]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
            new = copy.deepcopy(node.operand)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            new = ast.Constant(not node.value)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            new = ast.Constant(node.value + 1 if type(node.value) is int else node.value * 1.5 + 0.1)
        elif isinstance(node, ast.IfExp):
            new.test = ast.UnaryOp(ast.Not(), new.test)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
            new.func.attr = NAMES[node.func.attr]  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            new.func.id = NAMES[node.func.id]  # type: ignore[attr-defined]
        else:
            continue
        yield node, new


def expressions(tree: ast.AST) -> Iterator[ast.expr]:
    """All of them but those in annotations, decorators, messages, docstrings and imports."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from expressions(child)


def mutants_of(file: str) -> list[Mutant]:
    text = (SOURCE / file).read_text()
    lines = [line.strip() for line in text.splitlines()]
    found = enumerate(changes(ast.parse(text)))
    return [Mutant(file, a.lineno, ast.unparse(a), ast.unparse(b), i, lines[a.lineno - 1]) for i, (a, b) in found]


class Spot(ast.NodeTransformer):
    """Puts another expression in the place of one."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else super().generic_visit(node)


def changed_code(mutant: Mutant) -> ast.AST:
    tree = ast.parse((SOURCE / mutant.file).read_text())
    old, new = list(changes(tree))[mutant.number]
    return ast.fix_missing_locations(Spot(old, new).visit(tree))


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the changed code in place of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = "radp." + mutant.file.removesuffix(".py").replace("/", ".")
        self.file, self.code = str(SOURCE / mutant.file), changed_code(mutant)

    def find_spec(self, name, path, target=None):  # type: ignore[no-untyped-def]
        found = importlib.util.spec_from_file_location(name, self.file, loader=self) if name == self.name else None
        return found

    def exec_module(self, module):  # type: ignore[no-untyped-def]
        exec(compile(self.code, self.file, "exec"), module.__dict__)


def judge(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """The exit code of pytest in a forked process (0: nothing failed), or minus the signal that ended it."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    code = 99
    try:
        import pytest
        from hypothesis import settings

        settings.register_profile("few", settings(max_examples=15, database=None, deadline=None))
        settings.load_profile("few")
        if mutant is not None:
            sys.meta_path.insert(0, ChangedModule(mutant))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", SLOW, "-k", LEFT_OUT]
        code = NOTHING_TO_RUN
        for test in tests:  # one after the other: the first that fails spares collecting the rest
            found = int(pytest.main([*options, str(ROOT / "tests" / test)]))
            code = code if found == NOTHING_TO_RUN else found
            if code not in (0, NOTHING_TO_RUN):
                break
    finally:
        os._exit(code)


def warm_up() -> None:
    """Load what takes long and is never changed."""
    os.environ.update(NUMBA_DISABLE_JIT="1", OMP_NUM_THREADS="1", HYPOTHESIS_DATABASE="")
    sys.path.insert(0, str(SOURCE.parent))
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    for name in HEAVY:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="mutants to judge; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=[""], nargs="+", help="files whose names begin like one of these")
    parser.add_argument("--least", type=float, default=0.85, help="exit with 1 if a smaller share is killed")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a change first")
    parser.add_argument("--out", type=Path, help="JSON lines of every mutant and what became of it")
    options = parser.parse_args()
    files = [file for file in TARGETS if file.startswith(tuple(options.only))]
    every = [mutant for file in files for mutant in mutants_of(file)]
    chosen = sorted(random.Random(options.seed).sample(every, min(options.sample or len(every), len(every))), key=str)
    chosen = [mutant for mutant in chosen if mutant.key not in EQUIVALENT]
    warm_up()
    tests = tuple(dict.fromkeys(test for mutant in chosen for test in TARGETS[mutant.file]))
    if not options.trust and (code := judge(None, tests)):
        print(f"without any change {', '.join(tests)} end with code {code}", file=sys.stderr)
        return 2
    survived, counts, begin = [], {file: [0, 0] for file in files}, time.monotonic()
    for number, mutant in enumerate(chosen):
        code = judge(mutant, TARGETS[mutant.file])
        counts[mutant.file][0] += 1
        counts[mutant.file][1] += code != 0
        if code == 0:
            survived.append(mutant)
            print(f"survived: {mutant}", flush=True)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(json.dumps({"mutant": str(mutant), "code": code}) + "\n")
        if sys.stderr.isatty():
            print(f"{number + 1} of {len(chosen)}, {time.monotonic() - begin:.0f} s", end="\r", file=sys.stderr)
    killed = len(chosen) - len(survived)
    for file, (count, dead) in counts.items():
        if count:
            print(f"{file:34} {dead:4} of {count:4} killed")
    print(f"{killed} of {len(chosen)} killed ({100 * killed / max(1, len(chosen)):.1f} %), of {len(every)}")
    return 0 if killed >= options.least * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
