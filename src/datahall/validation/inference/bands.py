"""P10–P90 of measured over predicted figures by engine: from the rows that constants were fitted on."""

from __future__ import annotations

from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT

USUAL = (0.7, 1.4)
BANDS: dict[str, dict[str, tuple[float, float]]] = {
    "vllm": {TPOT: (0.77, 1.10), TTFT: (0.78, 1.91)},
    "vllm-0-11": {TPOT: (0.60, 1.33), TTFT: (0.41, 1.48), THROUGHPUT: (0.63, 1.25)},
    "sglang": {TPOT: (0.75, 1.14), TTFT: (0.59, 2.35)},
    "trtllm": {TPOT: (0.69, 1.36), TTFT: (0.76, 3.22), THROUGHPUT: (0.85, 1.41)},
}


def band_of(engine: str, metric: str) -> tuple[float, float]:
    """The band of a figure of an engine, as factors on what is predicted."""
    return BANDS.get(engine, {}).get(metric, USUAL)
