"""How unevenly tokens reach the ranks that hold experts."""

from __future__ import annotations

import numpy as np
import pytest

from datahall.workload.expert_load import evenly_routed, largest_of


@pytest.mark.parametrize(("num_ranks", "top_k"), [(8, 8), (16, 2), (64, 8)])
def test_chance_alone_loads_ranks_as_drawing_experts_at_random_does(num_ranks: int, top_k: int) -> None:
    tokens, experts, draws = 2048, 128, 60
    rng = np.random.default_rng(3)
    loads = []
    for _ in range(draws):
        chosen = np.argpartition(rng.random((tokens, experts)), top_k, axis=1)[:, :top_k]
        copies = np.bincount(chosen.ravel() * num_ranks // experts, minlength=num_ranks)
        loads.append(copies.max() / copies.mean())
    said = float(evenly_routed(float(tokens), experts, top_k, float(num_ranks)))
    assert said - 1.0 == pytest.approx(np.mean(loads) - 1.0, rel=0.1)


def test_one_rank_holds_everything_and_waits_for_nobody() -> None:
    assert evenly_routed(100.0, 64, 4, np.array([1.0, 2.0]))[0] == 1.0


def test_more_tokens_even_out_and_more_ranks_do_not() -> None:
    few, many = evenly_routed(np.array([1e3, 1e6]), 128, 8, 16.0)
    assert few > many > 1.0
    assert evenly_routed(1e4, 128, 8, 64.0) > evenly_routed(1e4, 128, 8, 8.0)


def test_the_largest_of_many_draws_lies_further_out() -> None:
    assert np.all(np.diff(largest_of(np.array([2.0, 8.0, 64.0, 1024.0]))) > 0)
