"""A model in the open format ONNX, run by onnxruntime."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from datahall.errors import ScenarioError
from datahall.serve.modelserver.runners.runner import Arrays
from datahall.serve.modelserver.tensor import ANY, WORDS, Tensor

# onnxruntime's words where they are not NumPy's
ONNX_WORDS = {"float": "float32", "double": "float64", "string": "object"}
SILENT = 4  # what it would print is in its errors


class Onnx:
    """A session on the CPU; it lets go of the interpreter's lock while it computes."""

    platform = "onnx_onnxv1"

    def __init__(self, file: Path) -> None:
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError:
            raise ScenarioError("ONNX models need onnxruntime", hint='pip install "datahall[onnx]"') from None
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # batches, not their parts, run side by side
        options.inter_op_num_threads = 1
        options.log_severity_level = SILENT
        self._session = runtime.InferenceSession(
            str(file), sess_options=options, providers=["CPUExecutionProvider"]
        )
        self.inputs = tuple(map(_declared, self._session.get_inputs()))
        self.outputs = tuple(map(_declared, self._session.get_outputs()))
        self._names = [tensor.name for tensor in self.outputs]
        self.has_rows = all(tensor.shape[:1] == (ANY,) for tensor in (*self.inputs, *self.outputs))

    def run(self, arrays: Arrays) -> Arrays:
        return dict(zip(self._names, self._session.run(self._names, dict(arrays)), strict=True))


def _declared(node: Any) -> Tensor:
    word = str(node.type).removeprefix("tensor(").removesuffix(")")
    name = ONNX_WORDS.get(word, word)
    if name not in WORDS:
        raise ScenarioError(
            f"{node.name} of this model is a {node.type}, which no request can carry",
            hint="export it with tensors as inputs and outputs (of scikit-learn: without zipmap)",
        )
    shape = tuple(side if isinstance(side, int) and side >= 0 else ANY for side in node.shape)
    return Tensor(str(node.name), WORDS[name], shape)
