"""The figures of `silicon/` are what they were: see `record.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
from tests.recorded.record import check_calls, check_questions, or_refused, shipped
from tests.recorded.sampled import sampled

from datahall.catalog.entries.chip import Chip
from datahall.silicon.attention import BLOCK
from datahall.silicon.calibration import calibrate, constant_sets, num_sms, weakest
from datahall.silicon.hierarchy import CLIFF_POLICIES, cliff, curves, steps
from datahall.silicon.joined_attention import empty_blocks_time, joined_decode_times
from datahall.silicon.kernel import KernelTime, time_operators, warm_bytes
from datahall.silicon.roofline import ridge_intensity
from datahall.workload.backward import training_pass
from datahall.workload.forward import forward_pass
from datahall.workload.operator import Attention, Operator
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-2-9b", "nemotron-h-8b", "gpt2")
FORMATS = ("bf16", "fp8", "fp8-kv8", "w4a16", "nvfp4", "fp16")
CHIPS = sorted(chip.name for chip in shipped().chips())
STACKS = (None, *sorted({one.stack for one in constant_sets().values() if one.chip}))
# rows of products around the steps of a tile, and far from them
BATCHES = np.array([1, 2, 7, 8, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 300, 2000], dtype=float)
PAST = np.array([0, 1, 15, 127, 128, 129, 1000, 4095, 4096, 4097, 30_000, 100_000], dtype=float)


def decode(model: str, precision: str, tp: float = 1.0) -> tuple[Operator, ...]:
    return forward_pass(
        shipped().model(model), batch=BATCHES[:, None], query=1.0, past=PAST[None, :],
        precision=Precision.named(precision), sharding=Sharding(tp=tp),
    )  # fmt: skip


def prefill(model: str, precision: str, tp: float = 1.0) -> tuple[Operator, ...]:
    return forward_pass(
        shipped().model(model), batch=np.array([1.0, 3.0, 16.0])[:, None], query=PAST[None, 2:], past=100.0,
        precision=Precision.named(precision), sharding=Sharding(tp=tp), fusion="eager", logits="all",
    )  # fmt: skip


def train(model: str, precision: str, tp: float = 1.0) -> tuple[Operator, ...]:
    return training_pass(
        shipped().model(model), batch=np.array([1.0, 2.0]), seq=np.array([1000.0, 4096.0]),
        precision=Precision.named(precision), sharding=Sharding(tp=tp), recompute="selective",
    )  # fmt: skip


PASSES = {"decode": decode, "prefill": prefill, "train": train}
OPTIONS = (
    {}, {"graph": False}, {"sustained": False}, {"block_scaled": True, "graph": False}, {"warm": True},
    {"level": "datasheet"}, {"level": "family"},
)  # fmt: skip


def timed(chip: Chip, operators: tuple[Operator, ...], **options: object) -> list[object]:
    times = time_operators(chip, operators, **options)  # type: ignore[arg-type]
    whole = [times.total_s, times.roofline_s, times.heaviest, times.shares(), times.level]
    return [*whole, len(times.merged().kernels), *map(parts, times.kernels)]


def parts(kernel: KernelTime) -> list[object]:
    return [
        kernel.kind, kernel.bound, kernel.time_s, kernel.compute_s, kernel.memory_s, kernel.roofline_s,
        kernel.launch_s, kernel.host_s, kernel.replayed_s,
    ]  # fmt: skip


def kernels() -> Iterator[tuple[str, object]]:
    """Passes over columns of batches and lengths: each model, format and stack meets some chips, and each chip some."""
    measured = sorted({one.chip for one in constant_sets().values() if one.chip})
    every = [*measured * 3, *CHIPS]
    cases = list(product(MODELS, FORMATS, PASSES, STACKS))
    for place, name in enumerate([*every, *every]):
        model, precision, kind, stack = cases[place * 79 % len(cases)]
        options = OPTIONS[place % len(OPTIONS)]
        tp = (1.0, 2.0, 4.0)[place % 3]
        label = f"{place} {kind} of {model} in {precision} on {name} by {stack} {options}"
        call = partial(
            timed, shipped().chip(name), PASSES[kind](model, precision, tp), stack=stack, **options
        )
        found = or_refused(call)
        if not isinstance(found, str):
            yield label, found


def memories() -> Iterator[tuple[str, object]]:
    """Scans of working sets just below, at and just above what each level of a chip holds."""
    for name, policy, offload in product(CHIPS, CLIFF_POLICIES, ("none", "host", "nvme")):
        chip = shipped().chip(name)

        def scanned(chip: Chip = chip, policy: str = policy, offload: str = offload) -> object:
            held = [one.capacity_bytes for one in steps(chip, offload) if np.isfinite(one.capacity_bytes)]
            sizes = [size * ratio for size in held for ratio in (0.5, 0.999, 1.0, 1.001, 1.5)]
            return [steps(chip, offload), cliff(chip, np.array(sizes), policy=policy, offload=offload)]

        if policy == "pinned" or name in {"h100-sxm", "mi300x", "tpu-v4", "a10"}:
            yield f"{policy} scans on {name} with {offload}", or_refused(scanned)
    for name in ("h100-sxm", "gb200", "groq-lpu", "epyc-9654"):
        yield f"curves of {name}", or_refused(partial(curves, shipped().chip(name), "host"))


def joined() -> Iterator[tuple[str, object]]:
    """Decodes beside a chunk of a prompt, for caches around what L2 keeps and around a block of keys."""
    lengths = np.array([1, BLOCK - 1, BLOCK, BLOCK + 1, 5000, 40_000], dtype=float)
    for name, constants in sorted(constant_sets().items()):
        chip = shipped().chip(constants.chip or "h100-sxm")
        for window, heads in product((0.0, 1024.0), (8.0, 32.0)):
            shape = Attention(
                batch=np.array([1.0, 16.0, 200.0])[:, None], num_heads=32.0, num_kv_heads=heads, q_len=1.0,
                kv_len=lengths[None, :], head_dim=128.0, value_dim=112.0, window=window,
            )  # fmt: skip
            found = joined_decode_times(
                shape, constants.prefill, num_sms=num_sms(chip), peak_flop_per_s=9e14, memory_bytes_per_s=3e12,
                l2_bytes=5e7, kv_bytes=2.0, sharpness=3.0,
            )  # fmt: skip
            empty_s = empty_blocks_time(shape, constants.prefill, num_sms=num_sms(chip))
            yield f"decodes joined by {name} of {heads:g} heads in {window:g}", [found, empty_s]


def sets() -> Iterator[tuple[str, object]]:
    """The constants that a chip is given, at each level."""
    for name in CHIPS:
        chip = shipped().chip(name)
        found = [or_refused(partial(calibrate, chip, level)) for level in ("datasheet", "family", "measured")]
        yield f"constants of {name}", [*found, num_sms(chip)]
        constants = calibrate(chip).constants
        formats = [
            (constants.path(one), constants.gemm_for(one, sustained=True), constants.expert(one))
            for one in FORMATS
        ]
        yield f"formats of {name}", [*formats, warm_bytes(chip, constants.decode)]
    yield "weakest", [weakest(["measured", "datasheet only"]), ridge_intensity(9e14, 3e12)]


def calls() -> Iterator[tuple[str, object]]:
    for some in (kernels, memories, joined, sets):
        yield from some()
    yield from sampled("silicon")


def test_figures_of_calls(update: bool) -> None:
    check_calls("silicon", calls(), update)


def test_figures_of_questions(update: bool) -> None:
    check_questions("silicon", update)
