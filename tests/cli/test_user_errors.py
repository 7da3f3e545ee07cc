"""What people get wrong: one sentence on stderr, no traceback, exit code 2, whatever the verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from radp.cli.main import main
from radp.model.checkpoint import save_model
from radp.model.head import AttributionHead, HeadConfig, save_head
from radp.runs.files import write_json_atomically
from radp.scenario.neutral_json import save_json, scenario_to_json
from tests.made_models import SMALL, randomised
from tests.small_scenarios import small_scenario

RULES = ("collision", "lane", "speed", "kinematics", "comfort", "goal")
ADAPTER = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["decoder.blocks.0.mlp1.fc1"]}


class Place:
    """A folder in which things are made that are almost right."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.scenario = path / "scenario.json"
        save_json(scenario_to_json(small_scenario()), self.scenario)

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def json(self, name: str, content: object) -> Path:
        return self.file(name, json.dumps(content))

    def folder(self, name: str) -> Path:
        (self.path / name).mkdir(parents=True)
        return self.path / name

    def model(self, name: str = "model") -> Path:
        return save_model(randomised(SMALL), self.path / name)

    def with_head(self, width: int = SMALL.hidden) -> Path:
        folder = self.model()
        save_head(AttributionHead(HeadConfig(width, RULES, 2, 8)), folder)
        return folder

    def adapted(self, **changes: object) -> Path:
        """A planner of a base and adapters."""
        self.model("base")
        folder = self.folder("adapted")
        write_json_atomically(folder / "planner.json", {"base": "../base"})
        self.json("adapted/adapter_config.json", ADAPTER | changes)
        width = SMALL.hidden
        layer = randomised(SMALL).decoder.blocks[0].mlp1.fc1
        name = "base_model.model.decoder.blocks.0.mlp1.fc1.lora_{}.weight"
        tensors = {name.format("A"): torch.zeros(2, width), name.format("B"): torch.zeros(layer.out_features, 2)}
        save_file(tensors, folder / "adapter_model.safetensors")
        return folder

    def simulate(self, planner: object, *more: str) -> list[str]:
        return ["simulate", "--planner", str(planner), "--scenarios", str(self.scenario), "--out",
                str(self.path / "run"), "--agents", "nonreactive", *more]  # fmt: skip

    def own(self, code: str, name: str = "Mine") -> list[str]:
        return self.simulate(f"{self.file('own.py', code)}:{name}")


def changed(file: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """A safetensors file with other content."""
    tensors = {name: value.clone() for name, value in load_file(file).items()}
    change(tensors)
    save_file(tensors, file)


def cut(file: Path, share: float = 0.5) -> Path:
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    return file


# ---- models ----


def pth_without_args(p: Place) -> list[str]:
    torch.save({}, p.path / "model.pth")
    return p.simulate(p.path / "model.pth")


def foreign_pth(p: Place) -> list[str]:
    p.json("args.json", {})
    return p.simulate(p.file("model.pth", b"PK\x03\x04 no zip"))


def pth_of_numbers(p: Place) -> list[str]:
    p.json("args.json", {})
    torch.save([1, 2], p.path / "model.pth")
    return p.simulate(p.path / "model.pth")


def empty_folder(p: Place) -> list[str]:
    return p.simulate(p.folder("nothing"))


def cut_weights(p: Place) -> list[str]:
    return p.simulate(cut(p.model() / "model.safetensors").parent)


def cut_header(p: Place) -> list[str]:
    return p.simulate(cut(p.model() / "model.safetensors", 0.0001).parent)


def weights_of_nothing(p: Place) -> list[str]:
    p.model()
    return p.simulate(p.file("model/model.safetensors").parent)


def weights_not_finite(p: Place) -> list[str]:
    folder = p.model()
    changed(folder / "model.safetensors", lambda tensors: next(iter(tensors.values())).fill_(torch.nan))
    return p.simulate(folder)


def weights_missing(p: Place) -> list[str]:
    folder = p.model()
    changed(folder / "model.safetensors", lambda tensors: tensors.popitem())
    return p.simulate(folder)


def config_of_a_list(p: Place) -> list[str]:
    p.model()
    return p.simulate(p.json("model/config.json", []).parent)


def config_too_deep(p: Place) -> list[str]:
    p.model()
    return p.simulate(p.file("model/config.json", "[" * 100_000).parent)


def config_unknown(p: Place) -> list[str]:
    stored = json.loads((p.model() / "config.json").read_text())
    stored["model"]["wings"] = 2
    return p.simulate(p.json("model/config.json", stored).parent)


def config_of_words(p: Place) -> list[str]:
    stored = json.loads((p.model() / "config.json").read_text())
    stored["model"]["hidden"] = "wide"
    return p.simulate(p.json("model/config.json", stored).parent)


def normaliser_not_finite(p: Place) -> list[str]:
    stored = json.loads((p.model() / "config.json").read_text())
    stored["normaliser"]["state_normalizer"]["std"][0][0][0] = float("nan")
    return p.simulate(p.json("model/config.json", stored).parent)


def base_is_itself(p: Place) -> list[str]:
    return p.simulate(p.json("planner/planner.json", {"base": "."}).parent)


def bases_in_a_ring(p: Place) -> list[str]:
    p.json("one/planner.json", {"base": "../two"})
    return p.simulate(p.json("two/planner.json", {"base": "../one"}).parent)


def no_base(p: Place) -> list[str]:
    return p.simulate(p.json("planner/planner.json", ["base"]).parent)


def no_such_base(p: Place) -> list[str]:
    return p.simulate(p.json("planner/planner.json", {"base": "nobody"}).parent)


def adapters_without_settings(p: Place) -> list[str]:
    folder = p.adapted()
    (folder / "adapter_config.json").unlink()
    return p.simulate(folder)


def adapters_without_weights(p: Place) -> list[str]:
    folder = p.adapted()
    (folder / "adapter_model.safetensors").unlink()
    return p.simulate(folder)


def special_adapters_without_weights(p: Place) -> list[str]:
    """PEFT would look them up in a hub."""
    folder = p.adapted(use_dora=True)
    (folder / "adapter_model.safetensors").unlink()
    return p.simulate(folder)


def adapters_cut(p: Place) -> list[str]:
    folder = p.adapted()
    cut(folder / "adapter_model.safetensors")
    return p.simulate(folder)


def adapters_by_half(p: Place) -> list[str]:
    folder = p.adapted()
    changed(folder / "adapter_model.safetensors", lambda tensors: tensors.pop(sorted(tensors)[1]))
    return p.simulate(folder)


def adapters_of_no_layer(p: Place) -> list[str]:
    return p.simulate(p.adapted(target_modules=["decoder.blocks.0.mlp1.fc1", "decoder.blocks.0.mlp2.fc1"]))


def adapters_too_narrow(p: Place) -> list[str]:
    folder = p.adapted()
    changed(folder / "adapter_model.safetensors", lambda t: t.update({n: v[:, :1].clone() for n, v in t.items()}))
    return p.simulate(folder)


def adapters_not_finite(p: Place) -> list[str]:
    folder = p.adapted()
    changed(folder / "adapter_model.safetensors", lambda tensors: next(iter(tensors.values())).fill_(torch.inf))
    return p.simulate(folder)


def alpha_not_finite(p: Place) -> list[str]:
    return p.simulate(p.adapted(lora_alpha=float("nan")))


def alpha_too_large(p: Place) -> list[str]:
    folder = p.adapted(lora_alpha=1e308)
    changed(folder / "adapter_model.safetensors", lambda tensors: [value.fill_(1.0) for value in tensors.values()])
    return p.simulate(folder)


def rank_of_nothing(p: Place) -> list[str]:
    return p.simulate(p.adapted(r=0))


def adapter_settings_of_a_list(p: Place) -> list[str]:
    folder = p.adapted()
    p.json("adapted/adapter_config.json", [])
    return p.simulate(folder)


def head_cut(p: Place) -> list[str]:
    return p.simulate(cut(p.with_head() / "head.safetensors").parent)


def head_without_settings(p: Place) -> list[str]:
    folder = p.with_head()
    (folder / "head.json").unlink()
    return p.simulate(folder)


def head_of_another_planner(p: Place) -> list[str]:
    return p.simulate(p.with_head(2 * SMALL.hidden))


def calibration_of_words(p: Place) -> list[str]:
    p.json("model/calibration.json", {"rules": RULES, "kappa": ["much"] * 6, "samples": 3})
    return p.simulate(p.model(), "--attribution", "teacher")


def calibration_not_finite(p: Place) -> list[str]:
    p.json("model/calibration.json", {"rules": RULES, "kappa": [float("inf")] * 6, "samples": 3})
    return p.simulate(p.model(), "--attribution", "teacher")


# ---- a user's own planner ----


def own_syntax(p: Place) -> list[str]:
    return p.own("class Mine:\n    def plan(self, now)\n        return None\n")


def own_import(p: Place) -> list[str]:
    return p.own("import numpi\n")


def own_constructor(p: Place) -> list[str]:
    return p.own("class Mine:\n    name = 'mine'\n    def __init__(self):\n        self.x = 1 / 0\n")


def own_exit(p: Place) -> list[str]:
    return p.own("import sys\nsys.exit(3)\n")


def own_class_missing(p: Place) -> list[str]:
    return p.own("x = 1\n")


def own_no_class(p: Place) -> list[str]:
    return p.own("Mine = 5\n")


def own_needs_more(p: Place) -> list[str]:
    return p.own("class Mine:\n    def __init__(self, size): pass\n")


def own_plan(p: Place) -> list[str]:
    return p.own("class Mine:\n    name = 'mine'\n    def plan(self, now):\n        return now.no_such_field\n")


def own_plan_explained(p: Place) -> list[str]:
    p.file("own.py", "class Mine:\n    name = 'mine'\n    def plan(self, now):\n        return 1 / 0\n")
    return ["explain", "--scenarios", str(p.scenario), "--planner", f"{p.path / 'own.py'}:Mine"]


def own_name(p: Place) -> list[str]:
    return p.own("class Mine:\n    name = 5\n    def plan(self, now):\n        return None\n")


def own_not_python(p: Place) -> list[str]:
    return p.simulate(f"{p.file('own.py', bytes(range(256)))}:Mine")


# ---- scenarios, drives and runs ----


def with_scenario(p: Place, content: str | bytes) -> list[str]:
    p.scenario.write_bytes(content if isinstance(content, bytes) else content.encode())
    return p.simulate("constant_velocity")


def surrogate_in_a_token(p: Place) -> list[str]:
    stored = json.loads(p.scenario.read_text()) | {"token": "\ud800"}
    return with_scenario(p, json.dumps(stored))


def out_is_a_file(p: Place) -> list[str]:
    return p.simulate("constant_velocity", "--out", str(p.file("taken")))


def out_below_a_file(p: Place) -> list[str]:
    return p.simulate("constant_velocity", "--out", str(p.file("taken") / "run"))


def drive_of_another_kind(p: Place) -> list[str]:
    run = p.json(
        "run/config.json", {"format": "radp-run", "format_version": 1, "command": "train base", "settings": {}}
    )
    return ["view", str(run.parent)]


def run_of_words(p: Place) -> list[str]:
    settings = {"planner": "idm", "scenarios": str(p.scenario), "agents": "friendly"}
    about = {"format": "radp-run", "format_version": 1, "command": "simulate", "seed": 0, "settings": settings}
    return ["view", str(p.json("run/config.json", about).parent)]


def run_of_another_type(p: Place) -> list[str]:
    settings = {"planner": "idm", "scenarios": str(p.scenario), "limit": "few"}
    about = {"format": "radp-run", "format_version": 1, "command": "simulate", "seed": 0, "settings": settings}
    return ["score", str(p.json("run/config.json", about).parent)]


def run_of_nothing(p: Place) -> list[str]:
    return ["view", str(p.json("run/config.json", {"format": "radp-run", "format_version": 1}).parent)]


def links_in_a_ring(p: Place) -> list[str]:
    (p.path / "ring").symlink_to(p.path / "ring")
    return p.simulate("constant_velocity", "--scenarios", str(p.path / "ring"))


def cards_of_nothing(p: Place) -> list[str]:
    run = p.file("run/cards.jsonl", "{}\n").parent
    return [
        "data",
        "drive",
        "--scenarios",
        str(p.scenario),
        "--after",
        "idm",
        "--run",
        str(run),
        "--out",
        str(p.path / "d"),
    ]


# ---- training ----


def log_of_another_training(p: Place) -> list[str]:
    run = p.json("run/log.jsonl", {"part": "train", "step": 1}).parent
    return ["train", "curves", "--runs", str(run), "--out", str(p.path / "curves.png")]


def npz(p: Place, content: bytes) -> list[str]:
    for i in range(2):
        p.file(f"samples/{i}.npz", content)
    return ["train", "base", "--data", str(p.path / "samples"), "--out", str(p.path / "t"), "--batch", "1", "--steps",
            "1", "--validation-samples", "1"]  # fmt: skip


def npz_of_other_arrays(p: Place) -> list[str]:
    np.savez(p.path / "other.npz", x=np.zeros(3))
    return npz(p, (p.path / "other.npz").read_bytes())


def trajectory(p: Place, name: str, content: bytes) -> list[str]:
    return ["explain", "--scenario", str(p.scenario), "--trajectory", str(p.file(name, content))]


def focus_of_words(p: Place) -> list[str]:
    about = {"format": "radp-focus", "rows": ["x"], "looked_at": 1, "of": 2, "planner": "", "within": 5.0, "seed": 0}
    model, data = p.model(), p.file("samples/0.npz").parent
    return ["train", "align", "--base", str(model), "--data", str(data), "--focus", str(p.json("focus.json", about)),
            "--out", str(p.path / "t")]  # fmt: skip


CASES: dict[str, tuple[Callable[[Place], list[str]], str]] = {
    case.__name__: (case, words)
    for case, words in {
        links_in_a_ring: "ring",
        cards_of_nothing: "cards.jsonl: not a readable list of score cards",
        log_of_another_training: "log.jsonl: not a readable log of a training (it lacks the losses ego and neighbour)",
        pth_without_args: "args.json beside it",
        foreign_pth: "not a plain weights file",
        pth_of_numbers: "expected a dict, found list",
        empty_folder: "neither model.safetensors nor exactly one .pth",
        cut_weights: "model.safetensors: not a readable weights file",
        cut_header: "model.safetensors: not a readable weights file",
        weights_of_nothing: "model.safetensors: not a readable weights file",
        weights_not_finite: "holds a value that is not finite",
        weights_missing: "do not fit the model: missing",
        config_of_a_list: "config.json: expected a JSON object",
        config_too_deep: "config.json: not a readable JSON file",
        config_unknown: "unknown settings wings",
        config_of_words: "config.json: not a readable description of a model",
        normaliser_not_finite: "means must be finite, and deviations positive",
        base_is_itself: "base is '.', which leads back to this planner",
        bases_in_a_ring: "leads back to this planner",
        no_base: "expected the name of its base",
        no_such_base: "'nobody' is neither a packaged model",
        adapters_without_settings: "adapter_config.json is missing",
        adapters_without_weights: "adapter_model.safetensors is missing",
        special_adapters_without_weights: "adapter_model.safetensors is missing",
        adapters_cut: "adapter_model.safetensors: not a readable weights file",
        adapters_by_half: "lora_B.weight is missing",
        adapters_of_no_layer: "the adapter of 'decoder.blocks.0.mlp2.fc1' is missing",
        adapters_too_narrow: "does not fit the model",
        adapters_not_finite: "holds a value that is not finite",
        alpha_not_finite: "lora_alpha is nan",
        alpha_too_large: "decoder.blocks.0.mlp1.fc1.weight holds a value that is not finite",
        rank_of_nothing: "r is 0, expected a finite number and at least 1",
        adapter_settings_of_a_list: "adapter_config.json: not a readable description of adapters",
        head_cut: "head.safetensors: not a readable weights file",
        head_without_settings: "head.json: not a readable attribution head (No such file",
        head_of_another_planner: "the attribution head is for tokens of 64 values",
        calibration_of_words: "calibration.json: not a readable calibration",
        calibration_not_finite: "expected one finite scale",
        own_syntax: "own.py, line 2: def plan(self, now)",
        own_import: "No module named 'numpi' (own.py, line 1, in <module>: import numpi)",
        own_constructor: "ZeroDivisionError: division by zero (own.py, line 4, in __init__: self.x = 1 / 0)",
        own_exit: "SystemExit: 3 (own.py, line 2",
        own_class_missing: "has no 'Mine'",
        own_no_class: "Mine is a int, expected a class",
        own_needs_more: "missing 1 required positional argument: 'size'",
        own_plan: "every drive failed; the first: step 0: AttributeError",
        own_plan_explained: "the first: step 0: ZeroDivisionError: division by zero (own.py, line 4",
        own_name: "its name is 5, expected text",
        own_not_python: "own.py:Mine cannot be used",
        surrogate_in_a_token: "half a surrogate pair",
        out_is_a_file: "expected a folder for the run",
        out_below_a_file: "cannot be written (Not a directory)",
        drive_of_another_kind: "holds a run of radp train base",
        run_of_words: "agents is 'friendly', expected one of",
        run_of_another_type: "limit is 'few', expected int | None",
        run_of_nothing: "config.json is damaged: it lacks command or settings",
        npz_of_other_arrays: "arrays missing",
        focus_of_words: "rows must be whole numbers from 0 to 1",
    }.items()
}
CASES |= {
    "scenario_cut": (lambda p: with_scenario(p, p.scenario.read_bytes()[:500]), "not a readable JSON file"),
    "scenario_of_a_number": (lambda p: with_scenario(p, "7"), "expected one JSON object"),
    "scenarios_nowhere": (lambda p: p.simulate("idm", "--scenarios", "nowhere"), "neither a packaged split"),
    "planner_nobody": (lambda p: p.simulate("nobody"), "no planner 'nobody'"),
    "seed_below_zero": (lambda p: p.simulate("idm", "--seed", "-1"), "seed is -1, expected at least 0"),
    "seed_too_large": (lambda p: p.simulate("idm", "--seed", str(2**70)), "expected at most"),
    "limit_of_nothing": (lambda p: p.simulate("idm", "--limit", "0"), "limit is 0, expected at least 1"),
    "npz_cut": (lambda p: npz(p, b"PK\x03\x04"), "not a readable sample"),
    "npz_of_nothing": (lambda p: npz(p, b""), "not a readable sample"),
    "trajectory_npz": (lambda p: trajectory(p, "plan.npz", b"PK\x03\x04 cut"), "trajectory"),
    "trajectory_csv": (lambda p: trajectory(p, "plan.csv", b"x,y,heading\n1,2,north\n"), "header and numbers"),
    "trajectory_bytes": (lambda p: trajectory(p, "plan.csv", bytes(range(256))), "plan.csv"),
    "trajectory_far": (lambda p: trajectory(p, "plan.csv", b"x,y,heading\n1e300,2,0\n2,2,0\n"), "within 1e+08 m"),
    "explain_half": (lambda p: ["explain", "--scenarios", "sumo14-val"], "give --scenarios and --planner"),
    "doctor_of_nothing": (lambda p: ["doctor", "--filters", str(p.path / "no.yaml")], "no.yaml does not exist"),
    "score_nothing": (lambda p: ["score", str(p.path / "nothing.json")], "nothing.json"),
    "score_cut": (lambda p: ["score", str(p.file("drive.json.gz", b"\x1f\x8b cut"))], "not a readable JSON file"),
    "score_empty_folder": (lambda p: ["score", str(p.folder("empty"))], "holds no drives"),
    "view_nothing": (lambda p: ["view", str(p.folder("empty"))], "holds neither a run of radp simulate"),
    "info_nothing": (lambda p: ["data", "info", str(p.path / "nothing")], "neither a packaged split"),
    "convert_unknown": (lambda p: ["data", "convert", "--source", "x", "--out", str(p.path / "o")], "unknown source"),
    "gallery_suffix": (
        lambda p: ["data", "gallery", "--scenarios", str(p.scenario), "--out", str(p.path / "picture.xyz")],
        "xyz",
    ),
    "samples_below_a_file": (
        lambda p: ["data", "samples", "--scenarios", str(p.scenario), "--out", str(p.file("taken") / "s")],
        "Not a directory",
    ),
    "hardest_of_nothing": (
        lambda p: ["data", "keep-hardest", "--run", str(p.folder("run")), "--out", str(p.path / "o")],
        "config.json is missing",
    ),
    "logs_of_nothing": (
        lambda p: ["data", "logs", "--run", str(p.folder("run")), "--out", str(p.path / "o")],
        "config.json is missing",
    ),
    "winners_over_nobody": (
        lambda p: ["data", "winners", "--base", str(p.folder("run")), "--runs", "--out", str(p.path / "o")],
        "name at least one run",
    ),
    "winners_of_nothing": (
        lambda p: ["data", "winners", "--base", str(p.folder("run")), "--runs", "r", "--out", str(p.path / "o")],
        "config.json is missing",
    ),
    "split_unknown": (lambda p: ["data", "make-split", "sumo15"], "sumo15"),
    "sumo_of_nothing": (
        lambda p: ["data", "make-sumo", "--out", str(p.path / "o"), "--per-kind", "0"],
        "per-kind is 0, expected at least 1",
    ),
    "drive_without_a_driver": (
        lambda p: ["data", "drive", "--scenarios", str(p.scenario), "--run", "r", "--out", str(p.path / "o")],
        "name that driver as well",
    ),
    "train_on_nothing": (
        lambda p: ["train", "base", "--data", str(p.path / "nothing"), "--out", str(p.path / "o")],
        "no folder of samples",
    ),
    "switch_of_a_list": (
        lambda p: ["train", "base", "--data", str(p.path), "--out", str(p.path / "o"), "--switches", "hidden=[1]"],
        "hidden is [1], expected int",
    ),
    "rate_not_finite": (
        lambda p: ["train", "base", "--data", str(p.path), "--out", str(p.path / "o"), "--lr", "nan"],
        "lr is nan, expected a finite number",
    ),
    "no_threads": (
        lambda p: ["train", "head", "--cache", str(p.path), "--out", str(p.path / "o"), "--threads", "0"],
        "threads is 0, expected at least 1",
    ),
    "head_without_a_cache": (
        lambda p: ["train", "head", "--cache", str(p.folder("empty")), "--out", str(p.path / "o")],
        "cache.json is missing",
    ),
    "cache_of_nothing": (
        lambda p: [
            "train",
            "head",
            "--cache",
            str(p.json("c/cache.json", {"version": 2}).parent),
            "--out",
            str(p.path / "o"),
        ],
        "c",
    ),
    "curves_of_nothing": (
        lambda p: ["train", "curves", "--runs", str(p.folder("run")), "--out", str(p.path / "c.png")],
        "run",
    ),
    "calibrate_nothing": (
        lambda p: ["calibrate", "--planner", str(p.model()), "--data", str(p.path / "no"), "--out", str(p.path / "o")],
        "no folder of samples",
    ),
    "cache_uncalibrated": (
        lambda p: ["cache", "--planner", str(p.model()), "--data", str(p.path), "--out", str(p.path / "o")],
        "run radp calibrate first",
    ),
    "compare_with_nobody": (
        lambda p: [
            "evaluate",
            "planners",
            "--planners",
            "idm",
            "--splits",
            "sumo14-val",
            "--base",
            "pdm_closed",
            "--out",
            str(p.path / "o"),
        ],
        "base is 'pdm_closed'",
    ),
    "fidelity_without_a_head": (
        lambda p: ["evaluate", "fidelity", "--planner", "idm", "--splits", str(p.scenario), "--out", str(p.path / "o")],
        "head",
    ),
    "states_of_one_planner": (
        lambda p: ["evaluate", "states", "--planners", str(p.model()), "--data", str(p.path)],
        "name the base planner and at least one other",
    ),
    "chain_without_its_base": (
        lambda p: ["train", "align", "--base", "b", "--data", "d", "--way", "chain", "--out", str(p.path / "o")],
        "--way chain needs --hold base",
    ),
    "package_of_nothing": (
        lambda p: ["train", "package", "--base", str(p.model()), "--adapters", str(p.path), "--out", str(p.path / "o")],
        "adapter_config.json is missing",
    ),
    "alignment_of_no_run": (lambda p: ["evaluate", "alignment"], "name at least one folder"),
    "prognosis_of_no_run": (lambda p: ["evaluate", "prognosis"], "name at least one folder"),
    "alignment_of_nothing": (lambda p: ["evaluate", "alignment", str(p.folder("run"))], "config.json is missing"),
    "intervention_of_nothing": (
        lambda p: ["evaluate", "intervention", str(p.folder("run")), "--out", str(p.path / "o")],
        "config.json is missing",
    ),
    "reproduce_nothing": (lambda p: ["reproduce", "--out", str(p.path / "o"), "--scenarios", "0"], "scenarios is 0"),
    "reproduce_nowhere": (lambda p: ["reproduce", "--out", str(p.path / "o"), "--splits", "nowhere"], "'nowhere'"),
    "reproduce_nobody": (lambda p: ["reproduce", "--out", str(p.path / "o"), "--ours", "nobody"], "'nobody'"),
    "drive_by_nobody": (
        lambda p: ["data", "drive", "--scenarios", str(p.scenario), "--planner", "nobody", "--out", str(p.path / "o")],
        "no planner 'nobody'",
    ),
    "demo_on_a_file": (lambda p: ["demo", "--out", str(p.file("taken"))], "is a file"),
    "bench_of_too_much": (lambda p: ["bench", "sim", "--planner", "idm"], "takes no planner"),
    "bench_of_nobody": (lambda p: ["bench", "attribution", "--planner", "nobody"], "nobody"),
    "export_nothing": (lambda p: ["export", "json", str(p.path / "no"), "--out", str(p.path / "o")], "neither"),
    "export_below_a_file": (
        lambda p: ["export", "json", str(p.scenario), "--out", str(p.file("taken") / "o")],
        "Not a directory",
    ),
    "export_elsewhere": (
        lambda p: ["export", "diffusion-planner", "--planner", str(p.model()), "--out", str(p.path / "m.pt")],
        "does not end in .pth",
    ),
    "unknown_verb": (lambda p: ["fly"], "unknown verb 'fly'"),
    "unknown_option": (lambda p: p.simulate("idm", "--wings", "2"), "--wings"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_and_code_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radp.runs.progress.SHOW_AFTER_S", 1e6)  # slow machines show the progress of a drive
    make, words = CASES[name]
    arguments = make(Place(tmp_path / "place"))
    assert main(arguments) == 2
    said = capsys.readouterr().err
    if make is own_plan:  # the user's own lines of the traceback come first, once
        lines, said = said.split("radp: ")[0], "radp: " + said.split("radp: ", 1)[1]
        assert "own.py" in lines and "site-packages" not in lines
    assert said.startswith("radp: ") and said.count("\n") == 1 and said.endswith("\n"), said
    assert words in said
    assert "Traceback" not in said and said.strip().isprintable()


def test_the_adapters_of_these_cases_are_almost_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path / "place")
    assert main(place.simulate(place.adapted())) == 0, capsys.readouterr().err


def test_a_fault_of_radp_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise KeyError("x\x1b[31m")

    monkeypatch.setattr("radp.zoo.list_splits", broken)
    assert main(["data", "list"]) == 1
    assert capsys.readouterr().err == (
        "radp: a fault of radp: KeyError: 'x\\x1b[31m'; RADP_TRACEBACK=1 shows where it came from\n"
    )
    monkeypatch.setenv("RADP_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["data", "list"])
