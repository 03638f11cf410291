"""Fitting: move a few constants to the least error on some rows, and say how far off the others are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import minimize

Frame = pd.DataFrame
CAPS = {"combine_s": 2e-5, "memory_efficiency": 0.97, "tensor_efficiency": 1.10, "power_efficiency": 1.0}


def simplex(
    loss: Callable[[np.ndarray], float], size: int, step: float = 0.15, restarts: int = 4
) -> np.ndarray:
    """Nelder-Mead with restarts over the logarithms of the constants."""
    best, value = np.zeros(size), loss(np.zeros(size))
    for turn in range(restarts):
        corners = np.vstack(
            [best, best + step * np.diag([1.0 if (i + turn) % 2 else -1.0 for i in range(size)])]
        )
        found = minimize(
            loss,
            best,
            method="Nelder-Mead",
            options={
                "maxiter": 220 * size,
                "xatol": 1e-3,
                "fatol": 1e-5,
                "adaptive": True,
                "initial_simplex": corners,
            },
        )
        if found.fun < value:
            best, value = found.x, found.fun
        step *= 0.7
    return best


def fit(
    start: dict[str, float],
    predict: Callable[[dict[str, float]], np.ndarray],
    measured: np.ndarray,
    *,
    free: list[str] | None = None,
    pull: float = 0.02,
    restarts: int = 4,
) -> dict[str, float]:
    """Move the `free` constants, held back by `pull`, to the least mean and P90 error."""
    names = free if free is not None else list(start)

    def at(shift: np.ndarray) -> dict[str, float]:
        moved = {name: start[name] * float(np.exp(s)) for name, s in zip(names, shift, strict=True)}
        return start | {
            name: min(value, next((cap for key, cap in CAPS.items() if name.endswith(key)), np.inf))
            for name, value in moved.items()
        }

    def loss(shift: np.ndarray) -> float:
        error = np.abs(np.log(predict(at(shift)) / measured))
        return float(
            np.minimum(error, 0.5).mean() + 0.3 * np.quantile(error, 0.9) + pull * np.abs(shift).mean()
        )

    return at(simplex(loss, len(names), restarts=restarts))


def quarter(frame: Frame, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).random(len(frame)) < 0.25


def errors(name: str, predicted: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """Print the error and return measured/predicted at P10 and P90."""
    ape = np.abs(predicted / measured - 1) * 100
    bias = np.median(predicted / measured - 1) * 100
    print(
        f"  {name:34s} {len(ape):5d} rows  median {np.median(ape):5.1f}  mean {ape.mean():5.1f}  "
        f"p90 {np.quantile(ape, 0.9):5.1f}  bias {bias:+5.1f}"
    )
    low, high = np.quantile(measured / predicted, [0.1, 0.9])
    return round(float(low), 3), round(float(high), 3)
