"""Graphs that run: ONNX Runtime, or OpenVINO where it is installed and wanted. Both on the processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from radp.runs.errors import BadInput, reading_file, require

Provider = Literal["onnx", "openvino"]
PACKAGES: dict[Provider, str] = {"onnx": "onnxruntime", "openvino": "openvino"}


class Session(Protocol):
    """A loaded graph."""

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs in the order of the graph."""
        ...


def installed() -> tuple[Provider, ...]:
    """Providers whose package is there."""
    return tuple(provider for provider, package in PACKAGES.items() if find_spec(package) is not None)


def open_session(path: Path, provider: str = "onnx", threads: int = 1) -> Session:
    """BadInput if the provider is unknown or not installed, or the graph cannot be loaded."""
    if provider not in PACKAGES:
        raise BadInput(f"no provider {provider!r}; expected one of {', '.join(PACKAGES)}")
    kind = OrtSession if provider == "onnx" else OpenVinoSession
    require(PACKAGES[provider], provider)
    with reading_file(path, "ONNX graph"):
        return kind(path, threads)


class OrtSession:
    """ONNX Runtime on the processor."""

    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads would burn a core
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.names: Sequence[str] = [entry.name for entry in self.session.get_inputs()]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return self.session.run(None, {name: inputs[name] for name in self.names})


class OpenVinoSession:
    """OpenVINO on the processor, in float32."""

    def __init__(self, path: Path, threads: int) -> None:
        import openvino

        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        model = openvino.Core().compile_model(str(path), "CPU", {**settings, "PERFORMANCE_HINT": "LATENCY"})
        self.request = model.create_infer_request()
        self.names: Sequence[str] = [port.get_any_name() for port in model.inputs]
        self.outputs = range(len(model.outputs))

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        self.request.infer({name: inputs[name] for name in self.names}, share_inputs=True)
        return [self.request.get_output_tensor(i).data.copy() for i in self.outputs]
