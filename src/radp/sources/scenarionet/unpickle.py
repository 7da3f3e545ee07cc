"""Pickles without their danger: plain containers, numbers, strings and numpy arrays, and nothing that runs code."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from radp.sources.convert import SourceError
from radp.sources.log_files import read_bytes

ALLOWED = {
    ("builtins", "dict"), ("builtins", "list"), ("builtins", "tuple"), ("builtins", "set"), ("builtins", "frozenset"),
    ("builtins", "complex"), ("builtins", "bytearray"), ("builtins", "slice"), ("collections", "OrderedDict"),
    ("numpy", "ndarray"), ("numpy", "dtype"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    *(("numpy.dtypes", f"{kind}DType") for kind in ("Float64", "Float32", "Int64", "Int32", "Bool", "Str", "Object")),
    ("_codecs", "encode"),  # how Python 2 strings and the bytes of old protocols are written
}  # fmt: skip


class PlainUnpickler(pickle.Unpickler):
    """Refuses every name but those of containers and numpy arrays, before anything is called."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which plain data do not need")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def load_plain(path: Path) -> dict[str, Any]:
    """The dict in a pickle; SourceError where the file is broken or asks for anything else."""
    try:
        data = PlainUnpickler(io.BytesIO(read_bytes(path))).load()
    except SourceError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        text = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{path.name}: the pickle cannot be read ({text})") from None
    if not isinstance(data, dict):
        raise SourceError(f"{path.name}: expected a dict, found {type(data).__name__}")
    return data
