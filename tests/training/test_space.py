"""The space of layouts: exactly what loops over every degree would find."""

from collections import Counter
from itertools import product
from math import ceil

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.catalog import Catalog
from datahall.errors import ScenarioError, spelled
from datahall.training.layout.columns import unique_rows
from datahall.training.layout.layout import Layout
from datahall.training.layout.legality import nearest_legal
from datahall.training.layout.space import LEAST_CONTEXT, Options, divisors, layout_space
from datahall.training.step.step import Job
from datahall.workload.memory.recompute import RECOMPUTES

SHELF = Catalog(user=False)
LLAMA = SHELF.model("llama-3.1-8b")
MOE = SHELF.model("qwen3-30b-a3b")
SEVEN = msgspec.structs.replace(LLAMA, num_layers=7, layers=LLAMA.layers[:7])
SMALL = Options(micro_batch=(1, 2, 3))


def brute_force(job: Job, num_chips: int, options: Options) -> set[Layout]:
    """Every combination of every number up to the chips, kept where each rule holds."""
    degrees = range(1, num_chips + 1)
    experts = range(1, (job.model.moe.num_experts if job.model.moe else 1) + 1)
    found = set()
    for tp, pp, cp in product(degrees, degrees, degrees):
        if num_chips % (tp * pp * cp) or job.seq % (2 * cp) or (job.seq / cp < LEAST_CONTEXT and cp > 1):
            continue
        dp = num_chips // (tp * pp * cp)
        chunks = range(1, job.model.num_layers + 1)
        for vpp, ep, batch in product(chunks, experts, options.micro_batch):
            if ceil(job.model.num_layers / pp) % vpp or (tp * cp * dp) % ep or (vpp > 1 and pp == 1):
                continue
            for zero, recompute in product(options.zero, RECOMPUTES):
                if (zero >= 2 and pp > 1) or (dp * cp == 1 and zero != min(options.zero)):
                    continue
                layout = Layout(
                    tp=tp, pp=pp, vpp=vpp, cp=cp, ep=ep, dp=dp, zero=zero, micro_batch=batch,
                    recompute=recompute, sequence_parallel=tp > 1,
                )  # fmt: skip
                if layout.is_legal(job.model, num_chips, job.global_batch):
                    found.add(layout)
    return found


@pytest.mark.parametrize(
    ("model", "num_chips", "batch", "seq"),
    [
        (LLAMA, 1, 4, 4096), (LLAMA, 8, 16, 8192), (LLAMA, 12, 24, 4096), (LLAMA, 16, 6, 16384),
        (SEVEN, 6, 12, 2048), (SEVEN, 14, 28, 2048), (MOE, 8, 16, 4096), (MOE, 12, 12, 4096), (LLAMA, 7, 14, 1000),
    ],
)  # fmt: skip
def test_the_space_is_what_loops_find(model: object, num_chips: int, batch: int, seq: int) -> None:
    job = Job(model=model, seq=seq, global_batch=batch)
    space = layout_space(job, num_chips, SMALL)
    rows = [space.row(row) for row in range(len(space))]
    assert len(set(rows)) == len(rows)
    assert set(rows) == brute_force(job, num_chips, SMALL)


def widened(job: Job, plain: set[Layout], num_chips: int) -> set[Layout]:
    """Every layout with every expert width, group of ranks and exchange of a context, none said twice."""
    found = set()
    widths = range(17) if job.model.moe else [0]
    for one in plain:
        for etp, shard, context in product(widths, range(num_chips + 1), ("ring", "all-to-all")):
            layout = msgspec.structs.replace(one, etp=etp, shard=shard, context_exchange=context)
            twice = shard == one.dp or (shard and one.zero == 0) or (context != "ring" and one.cp == 1)
            if twice or (etp and etp == max(one.tp // one.ep, 1)):
                continue
            if layout.is_legal(job.model, num_chips, job.global_batch):
                found.add(layout)
    return found


@pytest.mark.parametrize(("model", "num_chips", "batch"), [(LLAMA, 8, 8), (MOE, 8, 4), (MOE, 6, 12)])
def test_the_wide_space_is_what_loops_find(model: object, num_chips: int, batch: int) -> None:
    job = Job(model=model, seq=4096, global_batch=batch)
    few = Options(micro_batch=(1,), zero=(0, 3), recompute=("none",), vpp=(1,))
    wide = msgspec.structs.replace(
        few, etp=tuple(range(17)), shard=tuple(range(num_chips + 1)), context_exchange=("ring", "all-to-all")
    )
    space, plain = layout_space(job, num_chips, wide), layout_space(job, num_chips, few)
    rows = [space.row(row) for row in range(len(space))]
    assert len(set(rows)) == len(rows) > len(plain)
    nested = {plain.row(row) for row in range(len(plain))}
    loops = widened(job, nested, num_chips)
    # an expert width that is named also allows an ep that neither divides tp nor is its multiple
    assert {one for one in rows if not one.etp or max(one.tp, one.ep) % min(one.tp, one.ep) == 0} == loops
    for one in rows:
        one.check(model, num_chips, batch)


@settings(max_examples=30)
@given(st.integers(1, 48), st.integers(1, 48), st.integers(1, 12), st.integers(1, 40), st.integers(1, 64))
def test_what_is_suggested_is_legal(tp: int, pp: int, cp: int, ep: int, batch: int) -> None:
    layout = Layout(tp=tp, pp=pp, cp=cp, ep=ep)
    for model, num_chips in ((LLAMA, 48), (MOE, 64)):
        for name in ("tp", "pp", "cp", "ep", "dp"):
            for value in nearest_legal(layout, name, model, num_chips, batch):
                changed = msgspec.structs.replace(layout, **{name: value})
                group = changed.tp * changed.pp * changed.cp
                if name in ("tp", "pp", "cp"):
                    changed = msgspec.structs.replace(changed, dp=num_chips // group)
                changed.check(model, num_chips, batch)


@given(
    st.sampled_from(["llama-3.1-8b", "gpt-3-175b", "deepseek-v3", "gpt-oss-20b", "nemotron-h-8b"]),
    st.sampled_from([1, 8, 24, 64, 96, 512]),
    st.sampled_from([1, 96, 256, 1536]),
)
def test_every_row_passes_the_check(name: str, num_chips: int, batch: int) -> None:
    job = Job(model=SHELF.model(name), seq=4096, global_batch=batch)
    space = layout_space(job, num_chips)
    for row in range(0, len(space), max(1, len(space) // 50)):
        space.row(row).check(job.model, num_chips, batch)


def test_options_narrow_the_space() -> None:
    job = Job(model=LLAMA, seq=4096, global_batch=64)
    options = Options(tp=(2,), pp=(2, 4), zero=(1,), micro_batch=(1,), recompute=("full",), vpp=(1,))
    space = layout_space(job, 16, options)
    assert {space.row(row).words for row in range(len(space))} == {
        "tp 2, pp 2, dp 4, zero 1, mb 1, recompute full",
        "tp 2, pp 2, cp 2, dp 2, zero 1, mb 1, recompute full",
        "tp 2, pp 4, dp 2, zero 1, mb 1, recompute full",
        "tp 2, pp 4, cp 2, zero 1, mb 1, recompute full",
    }


def test_what_cannot_divide_leaves_nothing() -> None:
    assert len(layout_space(Job(model=LLAMA, seq=4096, global_batch=1), 37)) == 0
    with pytest.raises(ScenarioError, match="0 chips"):
        layout_space(Job(model=LLAMA, seq=4096, global_batch=1), 0)


BAD = [
    (Layout(tp=3, dp=2), 6, 12, "tp=3 does not divide 32 attention heads", "nearest: tp=2"),
    (Layout(tp=3, dp=2), 6, 2, "tp=3 does not divide 32 attention heads", "nearest: tp=2; with a global_batch"),
    (Layout(tp=6, pp=3), 64, 64, "is 18 chips, not 64", "no change of one degree"),
    (Layout(tp=6, pp=2), 64, 64, "is 12 chips, not 64", "nearest: tp=4 with dp=8 or tp=8 with dp=4"),
    (Layout(tp=2, dp=2), 8, 8, "is 4 chips, not 8", "dp=4 would fit"),
    (Layout(pp=32, vpp=2), 32, 64, "32 stages of 2 chunks are 64", "at most 34"),
    (Layout(pp=64), 64, 64, "64 stages of 1 chunk are 64, but Llama 3.1 8B has 32 layers", "at most 34"),
    (Layout(pp=33), 33, 33, "pp 33 leaves 1 stage without a layer", "nearest: pp=11; at most pp=32"),
    (Layout(vpp=2), 1, 8, "one stage has nothing to interleave", "vpp=1"),
    (Layout(pp=4, vpp=3), 4, 8, "vpp=3 does not divide 8 layers of a stage", "vpp=2 or vpp=4"),
    (Layout(pp=4, vpp=2), 4, 6, "micro-batches in multiples of pp 4; there are 6", "vpp=1"),
    (
        Layout(dp=8, micro_batch=3), 8, 64, "dp · micro_batch 24 does not divide 64",
        "nearest: micro_batch=2 or micro_batch=4; nearest: global_batch=48 or global_batch=72",
    ),
    (Layout(dp=12, zero=3, shard=5), 12, 12, "shard=5 does not divide 12 data-parallel ranks", "shard=4 or shard=6"),
    (Layout(dp=8, zero=0, shard=4), 8, 8, "zero 0 shares nothing", "zero=1, 2 or 3"),
    (Layout(shard=-1), 1, 1, "shard is -1", ""),
    (Layout(etp=2, dp=2), 2, 2, "etp is 2, but Llama 3.1 8B has no experts", "etp=1"),
    (Layout(tp=8, cp=5, context_exchange="all-to-all"), 40, 4, "32 heads do not divide by tp 8 × cp 5 = 40", "cp=1"),
    (Layout(context_exchange="spiral"), 1, 1, '"spiral" is no context exchange', "one of ring, all-to-all"),
    (Layout(pp=4, split=(8, 8, 8, 7)), 4, 4, "the split adds up to 31 layers", "e.g. 9 8 8 7"),
    (Layout(pp=4, split=(8, 8, 16)), 4, 4, "the split names 3 stages, but pp 4", "4 numbers"),
    (Layout(pp=4, split=(17, 8, 8, -1)), 4, 4, "the split holds -1", ""),
    (
        Layout(pp=4, vpp=2, split=(8, 8, 9, 7)), 4, 4, "stage 2 has 9 layers, which do not divide into 2 chunks",
        "nearest: 8 or 10; or name all 8 chunks",
    ),
    (Layout(recompute="selective", modules=("moe",)), 1, 1, "moe is to be recomputed, but Llama 3.1 8B has no", ""),
    (Layout(recompute="selective", modules=("mlp_act",)), 1, 1, '"mlp_act" is no recompute module', "did you mean m"),
    (Layout(modules=("mlp",)), 1, 1, "modules mlp are named, but recompute is none", 'recompute="selective"'),
    (Layout(offload=("optimiser",)), 1, 1, '"optimiser" is no part to offload', "did you mean optimizer?"),
    (Layout(offload=("optimizer:disk",)), 1, 1, '"disk" is no tier of offload', "one of host, nvme"),
    (Layout(offload=("activations",), recompute="full"), 1, 1, "keeps nothing worth an offload", "one of the two"),
    (Layout(compression="zip"), 1, 1, '"zip" is no compression', "one of none, bf16, fp8, top-k, 1-bit, power-sgd"),
    (Layout(dp=2, zero=2, compression="1-bit"), 2, 2, "keeps its error on every rank", "zero=0 or 1"),
    (Layout(ep=8, dp=8), 8, 8, "Llama 3.1 8B has no experts", "ep=1"),
    (Layout(zero=4), 1, 1, "zero is 4", ""),
    (Layout(tp=0), 0, 1, "tp=0: it must be at least 1", ""),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "num_chips", "batch", "message", "hint"), BAD)
def test_a_layout_that_cannot_run_says_the_rule_and_the_nearest(
    layout: Layout, num_chips: int, batch: int, message: str, hint: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        layout.check(LLAMA, num_chips, batch)
    assert message in spelled(caught.value.message)
    assert hint in spelled(caught.value.hint)


@pytest.mark.parametrize(
    ("layout", "message", "hint"),
    [
        (Layout(ep=256, dp=256), "ep=256 does not divide 128 experts", "nearest: ep=128"),
        (Layout(ep=128, dp=64), "ep=128 does not divide 64 chips of a stage", "nearest: ep=64"),
        (Layout(ep=6, dp=6), "ep=6 does not divide 128 experts", "nearest: ep=2"),
        (Layout(ep=8, etp=3, dp=16), "ep 8 × etp 3 = 24 does not divide 16 chips", "nearest: etp=2"),
        (Layout(tp=4, ep=2, etp=5, dp=5), "etp=5 does not divide 768 columns of an expert", "etp"),
        (Layout(tp=4, ep=2, etp=-1, dp=2), "etp is -1", ""),
    ],
)
def test_experts_spread_no_further_than_they_are(layout: Layout, message: str, hint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        layout.check(MOE, layout.num_chips, layout.dp)
    assert message in spelled(caught.value.message)
    assert hint in spelled(caught.value.hint)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([1.0, 2.5, 1e9]), st.integers(0, 300)),
        min_size=1,
        max_size=40,
    )
)
def test_distinct_rows_are_those_of_numpy(rows: list[tuple[float, float, float]]) -> None:
    table = np.array(rows, dtype=np.float64)
    distinct, index = unique_rows(table.T)
    expected, where = np.unique(table, axis=0, return_inverse=True)
    assert np.array_equal(distinct, expected)
    assert np.array_equal(index, np.ravel(where))


@given(st.integers(1, 5000))
def test_divisors(number: int) -> None:
    assert divisors(number) == [value for value in range(1, number + 1) if number % value == 0]


class MoreOptions(Options, frozen=True, kw_only=True):
    """What a search might try besides."""

    compression: tuple[str, ...] = ("none", "fp8")


def test_an_option_that_is_declared_is_crossed_with_all_others() -> None:
    """One more choice is one more field: each layout stands once with each of its values."""
    job = Job(model=LLAMA, seq=4096, global_batch=64)
    plain, more = (layout_space(job, 16, options) for options in (Options(), MoreOptions()))
    without = msgspec.structs.replace
    found = Counter(without(more.row(at), compression="none") for at in range(len(more)))
    assert found == dict.fromkeys((plain.row(at) for at in range(len(plain))), 2)
    assert {more.row(at).compression for at in range(len(more))} == {"none", "fp8"}
