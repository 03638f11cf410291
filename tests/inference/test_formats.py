"""One model in several formats on one chip: what each holds, what is lacking, where the memory goes."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.inference.memory.figure import parts_of, shares_of
from datahall.inference.memory.formats import Formats, formats_of
from datahall.scenario.sections.deployment import Deployment


def formats(
    shelf: Catalog, model: str = "llama-3.1-70b", *, context: int = 8192, batch: int = 1, **said: object
) -> Formats:
    deployment = Deployment(**said)  # type: ignore[arg-type]
    return formats_of(deployment, shelf.model(model), shelf, context=context, num_sequences=batch)


def test_a_better_format_takes_fewer_chips_or_holds_more_on_as_many(shelf: Catalog) -> None:
    asked = formats(shelf)
    found = asked.smallest("bf16")
    assert found is not None
    better = asked.better(found)
    assert better is not None
    name, other = better
    assert name != "bf16"
    assert other.tp < found.tp or (other.tp == found.tp and other.num_sequences > found.num_sequences)
    # the first of the list that is better, so none before it is
    earlier = list(asked.replicas)[: list(asked.replicas).index(name)]
    for before in filter(None, map(asked.smallest, earlier)):
        assert (before.tp, -before.num_sequences) >= (found.tp, -found.num_sequences)


def test_nothing_is_better_than_the_best(shelf: Catalog) -> None:
    asked = formats(shelf)
    fits = [fit for name in asked.replicas if (fit := asked.smallest(name)) is not None]
    best = min(fits, key=lambda fit: (fit.tp, -fit.num_sequences))
    assert asked.better(best) is None


def test_on_a_group_that_was_asked_for_the_better_one_holds_more(shelf: Catalog) -> None:
    asked = formats(shelf, tp=8)
    found = asked.smallest("bf16")
    assert found is not None
    better = asked.better(found)
    assert better is not None
    assert better[1].tp == found.tp == 8
    assert better[1].num_sequences > found.num_sequences


def test_a_group_that_was_asked_for_has_a_column(shelf: Catalog) -> None:
    assert formats(shelf).groups() == [1, 2, 4, 8]
    assert formats(shelf, tp=4).groups() == [1, 2, 4, 8]
    assert formats(shelf, tp=16).groups() == [2, 4, 8, 16]


def test_a_format_that_the_chip_cannot_multiply_in_holds_nothing_known(shelf: Catalog) -> None:
    asked = formats(shelf, "llama-3.1-8b", chip="h100-sxm")
    assert asked.held(1, "nvfp4") is None
    assert asked.held(1, "bf16") == asked.on(1, "bf16").num_sequences


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_bytes_are_missing_exactly_where_sequences_do_not_fit(shelf: Catalog, tp: int) -> None:
    fit = formats(shelf, context=8000).on(tp, "fp8")
    held = fit.num_sequences
    assert held > 1
    for num in (1, held, held + 1, 2 * held + 2):
        assert (fit.missing_bytes(num) <= 0) == (num <= held)
    # each further sequence lacks its own blocks of cache
    assert fit.missing_bytes(held + 3) - fit.missing_bytes(held) == pytest.approx(3 * fit.sequence_bytes)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("chip", ["h100-sxm", "mi300x"])
def test_the_parts_of_the_memory_are_all_of_it(shelf: Catalog, engine: str, chip: str) -> None:
    fit = formats(shelf, "llama-3.1-8b", chip=chip, engine=engine, adapters=10).on(1, "bf16")
    assert sum(parts_of(fit).values()) == pytest.approx(fit.capacity.memory_bytes)
    shares = shares_of(fit)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["weights"] == pytest.approx(fit.weight_bytes / fit.capacity.memory_bytes)
    assert all(share >= 0 for share in shares.values())


def test_weights_and_cache_share_what_is_handed_out(shelf: Catalog) -> None:
    fit = formats(shelf, "llama-3.1-8b").on(1, "bf16")
    left = fit.free_bytes / (fit.weight_bytes + fit.free_bytes)
    assert fit.weight_fraction + left == pytest.approx(1.0)


def test_where_the_weights_are_more_than_the_chip_nothing_is_left(shelf: Catalog) -> None:
    """Llama 3.1 405B on one chip: no block, no cache, nothing kept back."""
    fit = formats(shelf, "llama-3.1-405b").on(1, "bf16")
    assert fit.weight_bytes > fit.capacity.memory_bytes
    assert (fit.capacity.num_blocks, fit.num_sequences, fit.holds(1)) == (0, 0, False)
    assert (parts_of(fit)["cache"], parts_of(fit)["kept back"]) == (0.0, 0.0)
    assert fit.missing_bytes(0) == pytest.approx(-fit.free_bytes)
