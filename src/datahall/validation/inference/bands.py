"""Bands of measured over predicted figures by engine: from the marked rows, `calibration/fit_inference.py --bands`."""

from __future__ import annotations

from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT

USUAL = (0.7, 1.4)
BANDS: dict[str, dict[str, tuple[float, float]]] = {
    "vllm": {TPOT: (0.76, 1.18), TTFT: (0.65, 1.80)},
    "vllm-0-11": {TPOT: (0.77, 1.54), TTFT: (0.75, 1.87), THROUGHPUT: (0.55, 1.13)},
    "sglang": {TPOT: (0.82, 1.44), TTFT: (0.58, 3.32)},
    "trtllm": {TPOT: (0.72, 1.17), TTFT: (0.73, 3.05), THROUGHPUT: (0.84, 1.34)},
}


def band_of(engine: str, metric: str) -> tuple[float, float]:
    """The band of a figure of an engine, as factors on what is predicted."""
    return BANDS.get(engine, {}).get(metric, USUAL)
