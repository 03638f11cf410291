"""A model compiled to TorchScript, run by PyTorch where it is installed."""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path
from typing import Any

from datahall.errors import ScenarioError
from datahall.serve.modelserver.runners.runner import Arrays
from datahall.serve.modelserver.tensor import ANY, Tensor


class TorchScript:
    """A module on the CPU, by the names that its `forward` gives its arguments; no class of Python's is loaded."""

    platform = "pytorch_torchscript"
    has_rows = True

    def __init__(self, file: Path) -> None:
        _refuse_pickles(file)
        try:
            self._torch: Any = importlib.import_module("torch")
        except ImportError:
            raise ScenarioError(
                "TorchScript models need PyTorch",
                hint="its CPU build is enough: pip install torch   or export the model to ONNX",
            ) from None
        self._torch.set_num_threads(1)  # batches, not their parts, run side by side
        self._module: Any = self._torch.jit.load(str(file), map_location="cpu").eval()
        arguments = self._module.forward.schema.arguments[1:]  # after self
        self.inputs = tuple(Tensor(one.name, "FP32", (ANY,), is_open=True) for one in arguments)
        returns = self._module.forward.schema.returns
        kinds = getattr(returns[0].type, "elements", None)  # of a tuple
        num_outputs = len(kinds()) if kinds else 1
        names = ("prediction", *(f"output_{place}" for place in range(1, num_outputs)))
        self.outputs = tuple(Tensor(name, "FP32", (ANY,), is_open=True) for name in names)

    def run(self, arrays: Arrays) -> Arrays:
        tensors = [self._torch.from_numpy(arrays[one.name]) for one in self.inputs]
        with self._torch.inference_mode():
            out = self._module(*tensors)
        parts = out if isinstance(out, tuple) else (out,)
        return {one.name: part.numpy() for one, part in zip(self.outputs, parts, strict=True)}


def _refuse_pickles(file: Path) -> None:
    """What `torch.save` writes has the same ending, but no code: it is a pickle of Python's classes."""
    if not zipfile.is_zipfile(file):
        raise ScenarioError(f"{file} is not TorchScript, which is a zip archive", where=str(file))
    with zipfile.ZipFile(file) as archive:
        if not any("/code/" in name for name in archive.namelist()):
            raise ScenarioError(
                f"{file} is a pickle of weights, not TorchScript",
                where=str(file),
                hint="torch.jit.script(model).save(FILE), or export the model to ONNX",
            )
