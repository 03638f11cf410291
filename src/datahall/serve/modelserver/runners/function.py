"""A model that is a Python function: rows in, as many rows out."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path

import numpy as np

from datahall.errors import ScenarioError
from datahall.serve.modelserver.runners.runner import Arrays
from datahall.serve.modelserver.tensor import ANY, Array, Tensor

INPUT, OUTPUT = "features", "prediction"


class Function:
    """`predict(features)`. What it says of itself, as an attribute, is checked before it runs: `num_features`."""

    platform = "python"
    has_rows = True
    outputs: tuple[Tensor, ...] = (Tensor(OUTPUT, "FP32", (ANY,), is_open=True),)

    def __init__(self, predict: Callable[[Array], object]) -> None:
        self._predict = predict
        self.inputs: tuple[Tensor, ...] = (
            Tensor(INPUT, "FP32", (ANY, int(getattr(predict, "num_features", ANY)))),
        )

    def run(self, arrays: Arrays) -> Arrays:
        return {OUTPUT: np.asarray(self._predict(arrays[INPUT]))}


def function_in(file: Path, name: str) -> Function:
    """The function of that name in a Python file, which is run: whoever names a file trusts it."""
    spec = importlib.util.spec_from_file_location(f"datahall_model_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{file} is not a Python file", where=str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # what it defines finds itself
    spec.loader.exec_module(module)
    predict = getattr(module, name, None)
    if not callable(predict):
        known = [key for key, value in vars(module).items() if isfunction(value) and not key.startswith("_")]
        raise ScenarioError(
            f"{file} has no function {name}",
            where=str(file),
            hint=f"name one of {', '.join(known)}: {file}:{known[0]}"
            if known
            else "def predict(features): …",
        )
    return Function(predict)


def unpickled(file: Path) -> Function:
    """`predict` of a pickled object; loading it runs whatever code it was made to run."""
    with file.open("rb") as stream:
        model = pickle.load(stream)
    if not callable(getattr(model, "predict", None)):
        raise ScenarioError(f"{file} holds a {type(model).__name__}, which has no predict", where=str(file))
    return Function(model.predict)
