"""The `radp` command. A verb is one typed function in a file of this folder; a new one is one more line in VERBS.

The function's docstring is its help: a summary, an `Example:` section, an `Args:` section. It returns the exit code.
Verbs are imported only when they are called, so that `radp --help` stays fast.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path

from radp.runs.errors import BadInput
from radp.version import __version__

__all__ = ["VERBS", "BadInput", "Verb", "main"]


@dataclass(frozen=True)
class Verb:
    """`name` may be two words (a verb of a group); `place` is FILE:FUNCTION in radp.cli."""

    name: str
    place: str
    summary: str

    def exists(self) -> bool:
        """Found by reading: importing every verb only to list it would be slow."""
        file, function = self.place.split(":")
        source = Path(__file__).with_name(f"{file}.py")
        return source.exists() and f"\ndef {function}(" in source.read_text(encoding="utf-8")

    def load(self) -> Callable[..., int]:
        file, function = self.place.split(":")
        return getattr(import_module(f"radp.cli.{file}"), function)


VERBS = (
    Verb("demo", "demo:demo", "Drive the packaged benchmark and leave a page to look at."),
    Verb("doctor", "doctor:doctor", "Say what is installed, what is missing and where data were found."),
    Verb("data list", "data:list_data", "List the packaged splits and models."),
    Verb("data info", "data:info", "Say what a split, a store or a JSON file holds."),
    Verb("data gallery", "gallery:gallery", "Draw one scenario of each kind."),
    Verb("data convert", "convert:convert", "Turn logs of another format into a scenario store."),
    Verb("data drive", "drive:drive", "Drive scenarios and keep what was executed as logs to learn from."),
    Verb("data samples", "samples:make_samples", "Take training samples from logged drives."),
    Verb("data make-sumo", "make_sumo:make_sumo", "Make scenarios with the traffic simulator SUMO."),
    Verb("data make-split", "make_split:make_split", "Make a split of sumo14 that is not packaged."),
    Verb("data keep-hardest", "keep_hardest:keep_hardest", "Keep the scenarios that a planner drove worst."),
    Verb("train base", "train:train_base", "Train a diffusion planner from scratch."),
    Verb("train rounds", "rounds:train_rounds", "Drive, be taken over by an expert, go on training; several times."),
    Verb("train align", "train:train_align", "Align a planner with the driving rules (LoRA)."),
    Verb("train focus", "train:train_focus", "List samples on which a planner would touch somebody."),
    Verb("train head", "train:train_head", "Train the head that tells rule pressures online."),
    Verb("train curves", "curves:curves", "Draw the loss of training runs."),
    Verb("calibrate", "cache:calibrate", "Fit the usual gradient of each rule."),
    Verb("cache", "cache:cache", "Keep planner states and teacher pressures for the head."),
    Verb("simulate", "simulate:simulate", "Drive scenarios in closed loop."),
    Verb("score", "score:score", "Score drives as nuPlan does."),
    Verb("explain", "explain:explain", "Say which rule presses on a plan."),
    Verb("evaluate planners", "evaluate:evaluate_planners", "Compare planners over splits, with intervals."),
    Verb("evaluate fidelity", "evaluate:evaluate_fidelity", "Compare the head's pressures with the teacher's."),
    Verb("evaluate alignment", "alignment:evaluate_alignment", "Compare pressures with the risks that followed."),
    Verb("evaluate intervention", "intervention:evaluate_intervention", "Follow a rule's gradient; see what changes."),
    Verb("reproduce", "reproduce:reproduce", "Compute the tables of the paper."),
    Verb("view", "view:view", "Make an HTML page of drives."),
    Verb("bench", "bench:bench", "Measure speed on this machine."),
    Verb("export json", "export:export_json", "Write scenarios as neutral JSON files."),
    Verb(
        "export diffusion-planner", "export_diffusion_planner:export_diffusion_planner", "Write the published layout."
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `radp` script: the exit code (0 done, 1 failed, 2 bad input, 130 interrupted)."""
    try:
        code = _dispatch(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except BadInput as error:
        print(f"radp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("radp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone (radp ... | head)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help"):
        print(_overview(""))
        return 0
    if first == "--version":
        print(f"radp {__version__}")
        return 0
    verbs = {verb.name: verb for verb in VERBS if verb.exists()}
    if first in verbs:
        return _run(verbs[first], arguments[1:])
    group = [name.split()[1] for name in verbs if name.startswith(f"{first} ")]
    if not group:
        known = ", ".join(dict.fromkeys(name.split()[0] for name in verbs))
        raise BadInput(f"unknown verb {first!r}; expected one of {known}")
    second = arguments[1] if len(arguments) > 1 else "--help"
    if second in ("-h", "--help"):
        print(_overview(first))
        return 0
    if second not in group:
        raise BadInput(f"unknown verb '{first} {second}'; expected one of {', '.join(f'{first} {g}' for g in group)}")
    return _run(verbs[f"{first} {second}"], arguments[2:])


def _overview(group: str) -> str:
    """What `radp --help` (or `radp GROUP --help`) prints."""
    verbs = [verb for verb in VERBS if verb.exists() and (not group or verb.name.split()[0] == group)]
    width = max(len(verb.name) for verb in verbs)
    return "\n".join(
        [
            f"usage: radp {group or 'VERB'} {'VERB ' if group else ''}[OPTIONS]   (radp VERB --help says more)",
            "",
            "Rule-aligned diffusion planning for autonomous driving.",
            "",
            *(f"  {verb.name:<{width}}  {verb.summary}" for verb in verbs),
            "",
            "  --version, --help",
        ]
    )


def _run(verb: Verb, arguments: list[str]) -> int:
    function = verb.load()
    call = _parse(function, f"radp {verb.name}", arguments)
    return int(call() or 0)


def _parse(function: Callable[..., int], program: str, arguments: list[str]) -> Callable[[], int]:
    """The function with its arguments bound. Bad arguments: BadInput; --help: prints and exits."""
    import tyro

    @functools.wraps(function)
    def bind(*args: object, **kwargs: object) -> Callable[[], int]:
        return functools.partial(function, *args, **kwargs)

    config = (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName)
    complaint = StringIO()
    try:
        with redirect_stderr(complaint):
            return tyro.cli(bind, prog=program, args=arguments, config=config)
    except SystemExit as leave:
        if not leave.code:
            print(example_of(function))
            raise SystemExit(0) from None
        raise BadInput(f"{_one_sentence(complaint.getvalue())} (see {program} --help)") from None


def example_of(function: Callable[..., object]) -> str:
    """The `Example:` section of a docstring, ready to print."""
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    if "Example:" not in lines:
        return ""
    section = []
    for line in lines[lines.index("Example:") + 1 :]:
        if line and not line.startswith(" "):
            break
        section.append(line)
    return "Example:\n" + textwrap.indent(textwrap.dedent("\n".join(section)).strip(), "  ")


def _one_sentence(box: str) -> str:
    """tyro frames its complaints; keep the words, without the frame and its pointer to the help."""
    lines = [line.strip("│╭╮╰╯ ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    words = []
    for line in lines:
        if line.startswith("─"):
            break
        words.append(line)
    return " ".join(" ".join(words).split()).rstrip(".") or "these arguments cannot be read"


if __name__ == "__main__":
    sys.exit(main())
