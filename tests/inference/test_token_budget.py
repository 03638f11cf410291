"""Throughput does not jump where a prompt grows past the token budget, whether prompts are cut or not."""

from __future__ import annotations

from itertools import pairwise

import pytest

import datahall as dh

MOST = 0.05  # of the tokens per second, between prompts that differ by less than that in length


@pytest.mark.parametrize("budget", [2048, 8192])
@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_throughput_is_continuous_in_the_prompt(engine: str, chunked: bool, budget: int) -> None:
    lengths = [budget - 60, budget - 1, budget, budget + 1, budget + 60]
    found = []
    for prompt in lengths:
        run = dh.simulate_serve(
            "llama-3.1-8b", chip="h100-sxm", engine=engine, rate=60, requests=500, isl=prompt, osl=100,
            chunked_prefill=chunked, token_budget=budget,
        ).results  # fmt: skip
        found.append(float(run["sustained_per_s"]) * prompt)  # type: ignore[arg-type]
    for before, after in pairwise(found):
        assert after == pytest.approx(before, rel=MOST), dict(zip(lengths, found, strict=True))
