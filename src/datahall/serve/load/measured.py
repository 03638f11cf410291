"""What a load measured, under the names of vLLM's benchmark; latencies count from when a request was due."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.serve.load.target import Sample

Floats = NDArray[np.float64]

SHARES = {"median": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
LUMP = 1.5  # tokens a piece
LATE_S = 0.01  # behind its time at the 99th percentile: who sends could not keep up


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One load; columns are over requests that were answered, but for gaps, which are over tokens."""

    duration_s: float  # from the start to the last token
    num_failed: int
    errors: dict[str, int]
    row: NDArray[np.int64]
    ttft_s: Floats
    tpot_s: Floats  # of answers of two tokens and more
    itl_s: Floats
    e2e_s: Floats
    late_s: Floats  # sent after it was due
    prompt_tokens: int
    output_tokens: int
    num_kept: int = 0  # of the answered, by a cache of answers
    num_uncounted: int = 0  # of the answered, whose tokens the endpoint does not say

    @property
    def num_completed(self) -> int:
        return int(self.e2e_s.size)

    @property
    def is_late(self) -> bool:
        """Whether the load generator itself was behind."""
        return at(self.late_s, 99.0) > LATE_S

    @property
    def comes_in_lumps(self) -> bool:
        """Whether pieces of an answer hold several tokens, so that gaps between them are none between tokens."""
        return self.output_tokens > LUMP * (self.itl_s.size + self.num_completed) and self.itl_s.size > 0

    def per_s(self, amount: float) -> float:
        return amount / self.duration_s if self.duration_s > 0.0 else 0.0

    def latencies_s(self) -> dict[str, Floats]:
        """By the names that vLLM's benchmark gives them."""
        return {"ttft": self.ttft_s, "tpot": self.tpot_s, "itl": self.itl_s, "e2el": self.e2e_s}


def at(values_s: Floats, percent: float) -> float:
    """A percentile; 0 of nothing.

    >>> at(np.array([1.0, 2.0, 3.0]), 50.0)
    2.0
    """
    return float(np.percentile(values_s, percent)) if values_s.size else 0.0


def measure(samples: Sequence[Sample]) -> Measured:
    """The figures of a load."""
    good = [sample for sample in samples if not sample.error]
    errors: dict[str, int] = {}
    for sample in samples:
        if sample.error:
            errors[sample.error] = errors.get(sample.error, 0) + 1
    due, sent, first, end = (
        np.array([getattr(sample, name) for sample in good], np.float64)
        for name in ("due_s", "sent_s", "first_s", "end_s")
    )
    output = np.array([sample.output or 1 + len(sample.gaps_s) for sample in good], np.int64)
    several = output > 1
    return Measured(
        duration_s=max((sample.end_s for sample in samples), default=0.0),
        num_failed=len(samples) - len(good),
        errors=dict(sorted(errors.items(), key=lambda item: -item[1])),
        row=np.array([sample.row for sample in good], np.int64),
        ttft_s=first - due,
        tpot_s=((end - first) / np.maximum(1, output - 1))[several],
        itl_s=np.array([gap for sample in good for gap in sample.gaps_s], np.float64),
        e2e_s=end - due,
        late_s=sent - due,
        prompt_tokens=sum(sample.prompt for sample in good),
        output_tokens=int(output.sum()),
        num_kept=sum(sample.is_kept for sample in good),
        num_uncounted=sum(not sample.is_counted for sample in good),
    )


def vllm_figures(found: Measured) -> dict[str, float | int]:
    """Names and units of `vllm bench serve --save-result`: per second, and latencies in milliseconds."""
    figures: dict[str, float | int] = {
        "duration": found.duration_s,
        "completed": found.num_completed,
        "failed": found.num_failed,
        "total_input_tokens": found.prompt_tokens,
        "total_output_tokens": found.output_tokens,
        "request_throughput": found.per_s(found.num_completed),
        "output_throughput": found.per_s(found.output_tokens),
        "total_token_throughput": found.per_s(found.prompt_tokens + found.output_tokens),
    }
    for name, values_s in found.latencies_s().items():
        if not values_s.size:
            continue
        figures[f"mean_{name}_ms"] = float(values_s.mean()) * 1e3
        figures[f"std_{name}_ms"] = float(values_s.std()) * 1e3
        for share, place in SHARES.items():
            figures[f"{share}_{name}_ms"] = at(values_s, place) * 1e3
    return figures
