"""A model's file, opened by what runs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from datahall.errors import DatahallError, ScenarioError, option
from datahall.serve.modelserver.runners.function import function_in, unpickled
from datahall.serve.modelserver.runners.onnx import Onnx
from datahall.serve.modelserver.runners.runner import Runner
from datahall.serve.modelserver.runners.torchscript import TorchScript

TORCHSCRIPT = (".pt", ".pth", ".ts")
PICKLES = (".pkl", ".pickle")
KINDS = ".onnx, .pt (TorchScript), .py (its function predict, or FILE:FUNCTION)"


def file_and_function(path: str) -> tuple[Path, str]:
    """The file of a model, and its function where it is Python.

    >>> file_and_function("models/rank.py:score")
    (PosixPath('models/rank.py'), 'score')
    """
    file, colon, name = path.rpartition(":")
    if colon and file.endswith(".py"):
        return Path(file), name
    return Path(path), "predict"


def check(path: str, allow_pickle: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be served, before anything is loaded."""
    file, _ = file_and_function(path)
    if not file.is_file():
        raise ScenarioError(f"there is no file {file}", field="model")
    if not file.stem.isprintable():
        raise ScenarioError("the name of this file cannot be the name of a model", where=repr(str(file)))
    if file.suffix in PICKLES and file.name not in allow_pickle:
        raise ScenarioError(
            f"{file} is a pickle, which runs whatever code its maker put in it when it is loaded",
            field="model",
            hint=f"export it to ONNX, or, where you trust it, {option('allow_pickle', file.name)}",
        )
    if file.suffix not in (".onnx", ".py", *TORCHSCRIPT, *PICKLES):
        raise ScenarioError(f"{file}: no model that is served has this ending", field="model", hint=KINDS)


def opened(path: str, allow_pickle: tuple[str, ...] = ()) -> Runner:
    """Load a model; whatever goes wrong in its file is said of that file."""
    check(path, allow_pickle)
    with ThreadPoolExecutor(1) as thread:  # keeps whatever foreign code raises
        loading = thread.submit(_opened, path)
    error = loading.exception()
    if error is None:
        return loading.result()
    if isinstance(error, DatahallError):
        raise error
    first = (str(error).splitlines() or [""])[0]
    raise ScenarioError(f"{path} cannot be loaded: {type(error).__name__}: {first}", field="model") from error


def _opened(path: str) -> Runner:
    file, name = file_and_function(path)
    if file.suffix == ".onnx":
        return Onnx(file)
    if file.suffix in TORCHSCRIPT:
        return TorchScript(file)
    return unpickled(file) if file.suffix in PICKLES else function_in(file, name)
