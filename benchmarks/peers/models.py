"""The models that every server of the benchmark runs, ours and others': rows in, as many rows out."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np

Rows = np.ndarray[Any, Any]
Model = Callable[[Rows], Rows]
BATCH_S = 0.010


def perceptron(file: str) -> Model:
    """The ONNX file that ours runs."""
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def predict(rows: Rows) -> Rows:
        (output,) = session.run(None, {"x": rows.astype(np.float32)})
        return np.asarray(output)

    return predict


def slow() -> Model:
    """A model whose every batch takes 10 ms, whatever is in it, and as much longer as this machine oversleeps.

    Asked for a row of ones it says how long its calls took on average.
    """
    spent_s: list[float] = []

    def predict(rows: Rows) -> Rows:
        asks, said = rows.all(axis=1), rows[:, :10].astype(np.float64)
        if asks.all():
            said[:, 0] = mean(spent_s)
            return said
        start_s = time.perf_counter()
        time.sleep(BATCH_S)
        spent_s.append(time.perf_counter() - start_s)
        said[asks, 0] = mean(spent_s)  # beside rows of clients that have left
        return said

    return predict


def model(word: str) -> Model:
    """The slow one, or that of a file."""
    return slow() if word == "slow" else perceptron(word)
