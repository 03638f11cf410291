"""One pass on one chip: what it brings forward, and how fast."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.inference.step.one_pass import OnePass, pass_of
from datahall.scenario.read import read_names


def asked(shelf: Catalog, **given: object) -> OnePass:
    said = {"chip": "h200-sxm", "model": "llama-3.1-8b", "batch": 4, "context": 1000, **given}
    return pass_of(read_names(form_of("show roofline"), said, shelf, bare=True))  # type: ignore[arg-type]


def test_a_decode_brings_a_token_of_each_sequence_and_a_prefill_all_of_their_prompts(shelf: Catalog) -> None:
    decode, prefill = (asked(shelf, phase=phase) for phase in ("decode", "prefill"))
    assert (decode.num_tokens, prefill.num_tokens) == (4, 4000)
    for one in (decode, prefill):
        assert one.tokens_per_s * one.figure.value == pytest.approx(one.num_tokens)
        assert sum(part.share_fraction for part in one.operators) == pytest.approx(1.0)
        assert 0.0 < one.roofline_fraction <= 1.0
        assert one.heaviest.share_fraction == max(part.share_fraction for part in one.operators)
    # a prompt is computed far faster than its answer is decoded
    assert prefill.tokens_per_s > 10 * decode.tokens_per_s


def test_a_longer_past_costs_a_decode_its_cache(shelf: Catalog) -> None:
    """4 sequences of 20,000 tokens more, 131,072 bytes of cache each: read once, at the datasheet's rate at best."""
    short, long = (asked(shelf, phase="decode", context=context).figure.value for context in (1000, 21_000))
    least_s = 4 * 20_000 * 131_072 / 4.8e12
    assert least_s <= long - short < 2 * least_s
