"""What would make a model fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.inference.memory_case import CACHE, Serve, replace, small

from datahall.cluster.cluster import cluster_of
from datahall.errors import spelled
from datahall.inference.memory.kv_pool import divide_memory
from datahall.inference.memory.remedy import fits, longest_context, remedies
from datahall.workload.precision import Precision


@given(st.integers(0, 60), st.integers(1, 5), st.floats(0.0, 3.0))
def test_the_longest_context_is_found(num_blocks: int, num_sequences: int, state: float) -> None:
    held = replace(CACHE, num_blocks=num_blocks, state_blocks=state, window_blocks=())
    found = longest_context(held, num_sequences)
    enough = [tokens for tokens in range(num_blocks * 16 + 1) if held.num_sequences(tokens) >= num_sequences]
    assert found == max(enough, default=0)


def test_a_replica_fits_when_it_holds_the_sequences_and_its_chip_runs_the_format() -> None:
    one = small(kv_blocks=10)
    assert fits(one, 160)
    assert not fits(one, 161)
    assert fits(one, 80, 2)
    assert not fits(one, 81, 2)
    assert not fits(replace(one, precision=Precision.named("nvfp4")), 16)  # an H100 has no FP4
    assert not fits(replace(one, engine=replace(one.engine, reserved_bytes=1e12)), 16)


def test_remedies_are_the_least_changes_that_are_enough(serve: Serve) -> None:
    short = serve("llama-3.1-70b", tp=2, max_context=131_072)
    hint = spelled(remedies(short, 131_072))
    parts = hint.removeprefix("enough: ").split(", or ")
    longest = longest_context(divide_memory(short), num_sequences=1)
    assert parts[0] == f"max_context={longest // 16 * 16} or less"
    assert parts[1:] == ['precision="fp8"', "tp=4"]
    assert fits(replace(short, precision=Precision.named("fp8")), 131_072)
    # a group that is too small for one sequence says nothing of its length
    alone = serve("llama-3.1-70b", max_context=131_072)
    assert "max_context" not in remedies(alone, 131_072)
    vast = serve("deepseek-v3", "l40s", max_context=131_072)
    assert remedies(vast, 10**9) == "no single change of context, precision or tp is enough"


def test_a_precision_that_the_chip_cannot_run_is_replaced_by_the_widest_that_fits(serve: Serve) -> None:
    wrong = serve("llama-3.1-8b", precision="nvfp4")
    assert 'precision="bf16"' in spelled(remedies(wrong, 1000))
    assert "max_context" not in remedies(wrong, 1000)


def test_a_group_wider_than_a_server_needs_a_network(serve: Serve) -> None:
    """405e9 parameters of two bytes are 810 GB: more than eight chips of 80 GB hold, less than sixteen, two servers."""
    server = serve("llama-3.1-405b", tp=8)
    apart = replace(server, system=replace(cluster_of(server.chip, 8).system, nic_bytes_per_s=0.0))
    assert server.num_domain == apart.num_domain == 8
    assert "tp=16" in spelled(remedies(server, 4096))
    assert "tp" not in remedies(apart, 4096)
    assert "tp=16" in spelled(
        remedies(apart, 4096, memory_only=True)
    )  # who asks for room alone joins nothing
    # 70e9 parameters of two bytes fit on two chips of one server, which exchange over its own links
    lone = replace(serve("llama-3.1-70b"), system=apart.system)
    assert "tp=2" in spelled(remedies(lone, 4096))
