"""The `radp` command, made by tyro of the dataclasses in this folder.

A verb is a frozen dataclass: its fields are the options, its docstring is the help (a summary, more of it, an
`Example:` section), and calling it does the work and gives the exit code. A new verb is one more line in VERBS.
Files of this folder import nothing heavy at their top, so that help starts fast.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import reduce
from io import StringIO, TextIOWrapper
from operator import or_
from pathlib import Path
from typing import Annotated, Any

import tyro

from radp.cli.alignment import EvaluateAlignment
from radp.cli.average import TrainAverage
from radp.cli.bench import Bench
from radp.cli.cache import Calibrate, MakeCache
from radp.cli.completion import Completion
from radp.cli.convert import DataConvert
from radp.cli.curves import TrainCurves
from radp.cli.data import DataInfo, DataList
from radp.cli.demo import Demo
from radp.cli.doctor import Doctor
from radp.cli.dose import EvaluateDose
from radp.cli.drive import DataDrive
from radp.cli.evaluate import EvaluateFidelity, EvaluatePlanners
from radp.cli.explain import Explain
from radp.cli.export import ExportJson
from radp.cli.export_diffusion_planner import ExportDiffusionPlanner
from radp.cli.export_onnx import ExportOnnx
from radp.cli.faithfulness import EvaluateFaithfulness
from radp.cli.gallery import DataGallery
from radp.cli.intervention import EvaluateIntervention
from radp.cli.keep_hardest import DataKeepHardest
from radp.cli.leaderboard import Leaderboard
from radp.cli.make_split import DataMakeSplit
from radp.cli.make_sumo import DataMakeSumo
from radp.cli.numbers import check_numbers
from radp.cli.package import TrainPackage
from radp.cli.pressure import EvaluatePressure
from radp.cli.prognosis import EvaluatePrognosis
from radp.cli.reproduce import Reproduce
from radp.cli.rounds import TrainRounds
from radp.cli.runs import RunsForget, RunsShow
from radp.cli.samples import DataSamples
from radp.cli.score import Score
from radp.cli.simulate import Simulate
from radp.cli.states import EvaluateStates
from radp.cli.studio import OpenStudio
from radp.cli.train import TrainAlign, TrainBase, TrainFocus, TrainHead
from radp.cli.train_planner import TrainPlanner
from radp.cli.view import ViewDrives
from radp.cli.winners import DataLogs, DataWinners
from radp.runs.engine import use_engine
from radp.runs.errors import BadInput, did_you_mean, one_line, sentence
from radp.version import __version__

Verb = type[Callable[[], int]]
Verbs = Mapping[str, Verb | Mapping[str, Verb]]

VERBS: Verbs = {
    "demo": Demo,
    "doctor": Doctor,
    "data": {
        "list": DataList,
        "info": DataInfo,
        "gallery": DataGallery,
        "convert": DataConvert,
        "drive": DataDrive,
        "samples": DataSamples,
        "make-sumo": DataMakeSumo,
        "make-split": DataMakeSplit,
        "keep-hardest": DataKeepHardest,
        "logs": DataLogs,
        "winners": DataWinners,
    },
    "train": {
        "base": TrainBase,
        "planner": TrainPlanner,
        "rounds": TrainRounds,
        "average": TrainAverage,
        "align": TrainAlign,
        "focus": TrainFocus,
        "package": TrainPackage,
        "head": TrainHead,
        "curves": TrainCurves,
    },
    "calibrate": Calibrate,
    "cache": MakeCache,
    "simulate": Simulate,
    "score": Score,
    "explain": Explain,
    "evaluate": {
        "planners": EvaluatePlanners,
        "states": EvaluateStates,
        "fidelity": EvaluateFidelity,
        "alignment": EvaluateAlignment,
        "intervention": EvaluateIntervention,
        "prognosis": EvaluatePrognosis,
        "faithfulness": EvaluateFaithfulness,
        "dose": EvaluateDose,
        "pressure": EvaluatePressure,
    },
    "leaderboard": Leaderboard,
    "reproduce": Reproduce,
    "runs": {"show": RunsShow, "forget": RunsForget},
    "view": ViewDrives,
    "studio": OpenStudio,
    "bench": Bench,
    "completion": Completion,
    "export": {"json": ExportJson, "diffusion-planner": ExportDiffusionPlanner, "onnx": ExportOnnx},
}
RESUMED = ("demo", "simulate", "evaluate", "reproduce", "cache")  # the same command goes on with what was interrupted
RESUMED_PAIRS = [["data", "convert"], ["data", "drive"], ["data", "samples"], ["train", "base"], ["train", "align"],
                 ["train", "rounds"], ["train", "planner"]]  # fmt: skip
ABOUT = "Rule-aligned diffusion planning for autonomous driving. `radp VERB --help` explains a verb; `radp --version`."
CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes, tyro.conf.PositionalMetavarFromFieldName)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `radp` script: the exit code (0 done, 1 failed, 2 bad input, 130 interrupted).

    Here errors become sentences. RADP_TRACEBACK=1 shows where one came from.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names of any alphabet, on a terminal of another
            stream.reconfigure(errors="backslashreplace")
    try:
        if words[:1] == ["--version"]:
            print(f"radp {__version__}")
            code = 0
        else:
            verb = _parse([*words])
            check_numbers(verb)
            code = _run(verb)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"radp: interrupted{_how_to_go_on(words)}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone (radp ... | head)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("RADP_TRACEBACK"):
            raise
        return _complain(error)


def _how_to_go_on(words: Sequence[str]) -> str:
    """The command that takes up what was interrupted, for verbs that can; --fresh would throw away what is there."""
    if words[0:1] not in [[verb] for verb in RESUMED] and list(words[:2]) not in RESUMED_PAIRS:
        return ""
    return f"; to go on: radp {shlex.join(word for word in words if word != '--fresh')}"


def _run(verb: Callable[[], int]) -> int:
    """The verb, its maps on the engine that it names."""
    where = getattr(verb, "where", None)
    if where is None:
        return int(verb() or 0)
    with use_engine(where):
        if not where.dry_run:
            return int(verb() or 0)
        from radp.runs.slurm_engine import script

        print(script(where, getattr(verb, "out", Path()), getattr(verb, "workers", 1)))
        return 0


def _complain(error: Exception) -> int:
    """One sentence on stderr. Values and files are the user's to mend (2), anything else is ours (1)."""
    looped = isinstance(error, RuntimeError) and str(error).startswith("Symlink loop")  # so says pathlib, before 3.13
    if looped or isinstance(error, ValueError | OSError):
        print(f"radp: {one_line(error) if looped else sentence(error)}", file=sys.stderr)
        return 2
    print(f"radp: a fault of radp: {sentence(error)}; RADP_TRACEBACK=1 shows where it came from", file=sys.stderr)
    return 1


def _parse(words: list[str]) -> Callable[[], int]:
    """The verb with its options, to be called. Bad words: BadInput; --help: prints and exits."""
    found: Any = VERBS
    program = ["radp"]
    while words and isinstance(found, Mapping) and words[0] in found:
        found = found[words[0]]
        program.append(words.pop(0))
    if not isinstance(found, Mapping):
        return _tyro(found, " ".join(program), words)
    if words and not words[0].startswith("-"):
        within = program[1:]
        known = ", ".join(" ".join((*within, name)) for name in found)
        near = did_you_mean(words[0], found)
        raise BadInput(f"unknown verb '{' '.join((*within, words[0]))}'; expected one of {known}{near}")
    return _tyro(_union(found), " ".join(program), words or ["--help"])


def _union(verbs: Verbs) -> Any:
    """Verbs as subcommands."""
    parts = []
    for name, verb in verbs.items():
        about = ", ".join(verb) if isinstance(verb, Mapping) else summary_of(verb)
        kind = _union(verb) if isinstance(verb, Mapping) else verb
        parts.append(Annotated[kind, tyro.conf.subcommand(name, description=about)])
    return reduce(or_, parts)


def _tyro(verb: Any, program: str, words: list[str]) -> Callable[[], int]:
    """What tyro makes of the words; its complaints, framed and many lines long, become one sentence."""
    help_wanted = not {"-h", "--help"}.isdisjoint(words)
    complaint = StringIO()
    try:
        with redirect_stderr(complaint), nullcontext() if help_wanted else redirect_stdout(StringIO()):
            about = ABOUT if program == "radp" else None
            return tyro.cli(verb, prog=program, description=about, args=words, config=CONFIG)
    except SystemExit as leave:
        if leave.code:
            raise BadInput(f"{_one_sentence(complaint.getvalue())} (see {program} --help)") from None
        if example := example_of(verb):
            print(example)
        raise


def completion_script(shell: str) -> str:
    """A script for a shell, made by tyro of all verbs and their options."""
    script = StringIO()
    with redirect_stdout(script), redirect_stderr(StringIO()), suppress(SystemExit):
        tyro.cli(_union(VERBS), prog="radp", args=["--tyro-print-completion", shell], config=CONFIG)
    if not script.getvalue().strip():
        raise BadInput(f"this version of tyro makes no script for {shell}: pip install --upgrade tyro")
    return script.getvalue().rstrip()


def summary_of(verb: Verb) -> str:
    """The first paragraph of the docstring, in one line."""
    return " ".join(inspect.cleandoc(verb.__doc__ or "").partition("\n\n")[0].split())


def example_of(verb: Any) -> str:
    """The `Example:` section of the docstring, ready to print."""
    _, title, section = inspect.cleandoc(verb.__doc__ or "").partition("\nExample:\n")
    return title.lstrip() + textwrap.indent(textwrap.dedent(section).rstrip(), "  ")


def _one_sentence(complaint: str) -> str:
    """tyro's complaint has a title, a message and hints, divided by rules; kept are the message and its best hint."""
    parts = [" ".join(part.split()) for part in re.split(r"^[ -]*---[ -]*$", complaint, flags=re.MULTILINE)]
    if len(parts) < 2:
        return "these options cannot be read"
    said = [parts[1].rstrip(".")]
    for hint in parts[2:]:
        if hint.startswith("Unrecognized"):
            said.append(hint[0].lower() + hint[1:])
        elif hint.startswith(("Perhaps", "Arguments similar")):
            said.append(f"perhaps you meant {hint.partition(': ')[2].split()[0].rstrip(',')}")
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(main())
