"""A planner as ONNX files with a manifest and one golden pair, which `radp.runtime` runs without torch."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from radp.model.geometry import plan_geometry
from radp.model.graphs import EncoderGraph, HeadGraph, LoopGraph, StepGraph, context_names, encoder_names
from radp.model.head import AttributionHead, head_inputs
from radp.model.network import DiffusionModel
from radp.model.sampler import TEMPERATURE, noise_of_seeds, sample_plans
from radp.model.solver_table import solver_table
from radp.runs.errors import BadInput, require
from radp.runs.files import atomic_path, make_folder, write_json_atomically
from radp.runtime.manifest import FORMAT, GEOMETRIES, GOLDEN, MANIFEST, VERSION
from radp.scenario.vehicle import PACIFICA
from radp.scene.scene import INPUT_FIELDS, Scene
from radp.version import __version__

OPSET = 20  # the first in which GELU is one operator
TRACED = 2  # scenes in the example that is traced: with one, the batch would be taken for a constant
MOST_BATCH = 4096
HEAD_INPUTS = ("trajectory", "ego_current_state", "ego_token", "tokens", "padded", "geometry")  # if it asks for it
LOOP_OUTPUTS = ("trajectories", "ego_token", "tokens", "padded")


def export_onnx(
    model: DiffusionModel,
    folder: Path | str,
    scene: Scene,
    head: AttributionHead | None = None,
    about: Mapping[str, Any] | None = None,
    steps: int | None = None,
    temperature: float = TEMPERATURE,
    loop: bool = False,
) -> Path:
    """Write encoder.onnx, step.onnx, head.onnx (and loop.onnx), manifest.json and golden.npz into a folder.

    `scene` (B >= 2, in metres) is what the golden pair is made of; `about` goes into the manifest. Needs the extra
    `onnx`. BadInput if the head looks at more than the cheap geometry of a plan, which only radp itself can compute.
    """
    for name in ("onnx", "onnxscript"):
        require(name, "onnx")
    if head is not None and head.config.geometry not in GEOMETRIES:
        raise BadInput(
            f"the head looks at the {head.config.geometry} geometry of a plan, which is not part of the network and "
            "cannot be exported (a head with the cheap one can); --no-head leaves the head out"
        )
    folder, size = make_folder(Path(folder)), model.config
    steps = steps or size.sampler_steps
    (folder / MANIFEST).unlink(missing_ok=True)  # written last, so that a folder with one is whole
    model.eval()
    scene = scene.crop(size.agents, size.static_objects, size.lanes, size.route_lanes)[:TRACED]
    scene = replace(scene, rules=None)  # geometry of what the model sees, as the runtime computes it
    files = {}
    with torch.no_grad():
        for name, graph in _graphs(model, head, scene, steps, temperature, loop).items():
            files[name] = _write_graph(graph, folder / f"{name}.onnx")
        golden = _write_golden(model, head, scene, steps, temperature, folder / GOLDEN)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "radp": __version__,
        "opset": OPSET,
        **(about or {}),
        "vehicle": {name: getattr(PACIFICA, name) for name in ("length", "width", "rear_axle_to_center")},
        "model": size.to_json(),
        "normaliser": model.normaliser.to_args(),
        "schedule": solver_table(steps),
        "temperature": temperature,
        "rules": [] if head is None else list(head.config.rules),
        "head": None if head is None else asdict(head.config),
        "graphs": files,
        "golden": golden,
    }
    write_json_atomically(folder / MANIFEST, manifest)
    return folder


@dataclass(frozen=True)
class _Traced:
    """A graph, an example of its inputs, and the names of inputs and outputs."""

    module: nn.Module
    example: tuple[Tensor, ...]
    inputs: Sequence[str]
    outputs: Sequence[str]


def _graphs(
    model: DiffusionModel, head: AttributionHead | None, scene: Scene, steps: int, temperature: float, loop: bool
) -> dict[str, _Traced]:
    given = tuple(getattr(scene, name) for name in INPUT_FIELDS)
    encoder = EncoderGraph(model)
    made = dict(zip(encoder_names(model), encoder(*given)))
    noise = noise_of_seeds(range(TRACED), model)[:, 0]
    x, time = torch.cat((made["current"].unsqueeze(2), noise), 2), torch.full((TRACED,), 0.5)
    context = context_names(model)
    graphs = {
        "encoder": _Traced(encoder, given, INPUT_FIELDS, encoder_names(model)),
        "step": _Traced(
            StepGraph(model),
            (x, time, *(made[name] for name in context)),
            ("x", "time", *context),
            ("clean", "ego_token"),
        ),
    }
    if head is not None:
        seen = [noise[:, 0], scene.ego_current_state, made["tokens"][:, 0], made["tokens"], made["padded"]]
        if kind := head.config.geometry:
            seen.append(plan_geometry(kind, noise[:, 0], scene))
        graphs["head"] = _Traced(HeadGraph(head), tuple(seen), HEAD_INPUTS[: len(seen)], ("pressures",))
    if loop:
        whole = LoopGraph(model, steps, temperature)
        graphs["loop"] = _Traced(whole, (noise, *given), ("noise", *INPUT_FIELDS), LOOP_OUTPUTS)
    return graphs


def _write_graph(graph: _Traced, path: Path) -> dict[str, Any]:
    """Trace, check with onnx's own checker and write -> the entry of the manifest."""
    import onnx

    batch = {0: torch.export.Dim("batch", min=1, max=MOST_BATCH)}
    signature = [parameter.kind for parameter in inspect.signature(graph.module.forward).parameters.values()]
    plain = sum(kind is not inspect.Parameter.VAR_POSITIONAL for kind in signature)
    shapes: tuple[Any, ...] = (batch,) * min(plain, len(graph.example))
    if len(shapes) < len(graph.example):
        shapes = (*shapes, (batch,) * (len(graph.example) - plain))
    with _quietly(), atomic_path(path) as temporary:
        program = torch.onnx.export(
            graph.module.eval(), graph.example, dynamo=True, opset_version=OPSET, dynamic_shapes=shapes,
            input_names=list(graph.inputs), output_names=list(graph.outputs), verbose=False,
        )  # fmt: skip
        if program is None:
            raise RuntimeError("torch gave no ONNX program")
        program.save(str(temporary))
        onnx.checker.check_model(onnx.load(str(temporary)), full_check=True)
    values = graph.module(*graph.example)
    values = values if isinstance(values, tuple) else (values,)
    return {
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "inputs": _described(graph.inputs, graph.example),
        "outputs": _described(graph.outputs, values),
    }


def _described(names: Sequence[str], values: Sequence[Tensor]) -> list[dict[str, Any]]:
    return [
        {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": ["batch", *value.shape[1:]]}
        for name, value in zip(names, values)
    ]


def _write_golden(
    model: DiffusionModel, head: AttributionHead | None, scene: Scene, steps: int, temperature: float, path: Path
) -> dict[str, str]:
    """Scenes and noise, and what torch makes of them."""
    noise = noise_of_seeds(range(len(scene)), model)
    drawn = sample_plans(model, scene, steps=steps, temperature=temperature, noise=noise)
    arrays = {name: getattr(scene, name).numpy() for name in INPUT_FIELDS}
    arrays |= {"noise": noise[:, 0].numpy(), "trajectories": drawn.trajectories[:, 0].numpy()}
    if head is not None:
        arrays["pressures"] = head(*head_inputs(drawn, scene, head.config.geometry)).numpy()
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """The exporter speaks of packages that are not installed and of its own deprecations; errors still come through."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
