"""The kernels of a serving pass in three parts: what all tokens share, attention of decodes, attention of a chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.chip import Chip
from datahall.catalog.number_formats import bytes_per_value
from datahall.errors import ScenarioError
from datahall.inference.engine.replica import Replica
from datahall.inference.step.expert_load import imbalance
from datahall.silicon.attention import BLOCK
from datahall.silicon.calibration import NEAREST_STACK, Calibration, calibrate, num_sms
from datahall.silicon.joined_attention import empty_blocks_time, joined_decode_times
from datahall.silicon.kernel import KernelTime, memory_bandwidth, time_operators
from datahall.workload.division import check_stage
from datahall.workload.forward import Latent, Part, forward_pass, served_pass
from datahall.workload.operator import Attention, Operator
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding

Column = NDArray[np.float64]

ATTENTION = {"attention", "kv_up", "kv_up_quantise", "absorb_q", "absorb_v"}
STATE = {"conv_scan"}  # recurrent layers read and write one state per sequence
HEAD = {"head"}
BUSY_FRACTION = 0.8  # of the multiprocessors: with fewer blocks of queries FlashAttention splits the keys


class Fused(NamedTuple):
    """What a stack does inside other kernels."""

    # its all-reduce adds the residual and normalises, by default inside NVLink
    norms_in_reduction: bool = False
    # casts to FP8 with one scale per tensor, or to NVFP4, that the kernel before them does; casts of whole blocks stay
    # kernels of their own
    casts: frozenset[str] = frozenset()


CASTS_AFTER_STREAMS = frozenset(f"{one}_quantise" for one in ("qkv", "qkv_down", "q_up", "gate_up", "down"))
FUSED = {
    "vllm": Fused(casts=CASTS_AFTER_STREAMS),  # its compiler, after norms and activations
    "trtllm": Fused(
        norms_in_reduction=True, casts=CASTS_AFTER_STREAMS | {"attention_output_quantise"}
    ),  # 1.0
    "sglang": Fused(norms_in_reduction=True),  # 0.5
}  # by stack; any other fuses nothing


class Passes(msgspec.Struct, frozen=True, kw_only=True):
    """A replica's kernels as functions of tokens, sequences and contexts; for all layers, on one chip."""

    replica: Replica
    sharding: Sharding
    calibration: Calibration
    stack: str | None

    @classmethod
    def of(cls, replica: Replica) -> Passes:
        """Check that the model divides as asked, and find the kernels' constants."""
        sharding = sharding_of(replica)
        stack, found = calibration_of(replica.chip, replica.engine.stack)
        return cls(replica=replica, sharding=sharding, calibration=found, stack=stack)

    def token_kernels(self, num_tokens: Column) -> list[KernelTime]:
        """GEMMs, norms and the rest that sees all new tokens of a step; the head is not in it."""
        skew = imbalance(self.replica, num_tokens)
        ops = self.operators(1.0, num_tokens, 0.0)
        plain = [one for one in ops if one.name not in ATTENTION | HEAD]
        if np.any(skew > 1.0):
            busiest = {one.name: one for one in self.operators(1.0, num_tokens * skew, 0.0)}
            plain = [busiest[one.name] if one.name.startswith("expert_") else one for one in plain]
        return self.timed(plain)

    def tokens_s(self, num_tokens: Column) -> tuple[Column, Column]:
        """All of it, and of that the experts."""
        kernels = self.token_kernels(num_tokens)
        experts = [one for one in kernels if one.operator.name.startswith("expert_")]
        return _total(kernels, num_tokens), _total(experts, num_tokens)

    def head_kernels(self, num_rows: Column) -> list[KernelTime]:
        ops = self.operators(num_rows, 1.0, 0.0, part="head")
        return self.timed(one for one in ops if one.name in HEAD)

    def head_s(self, num_rows: Column) -> Column:
        return _total(self.head_kernels(num_rows), num_rows)

    def decode_kernels(self, num_sequences: Column, context: Column, verified: int) -> list[KernelTime]:
        """Attention of sequences that each bring `verified` tokens after `context`, as columns side by side."""
        ops = self.operators(num_sequences, 1.0, context, "absorbed", part="mixers")
        kept = [_packed(one, float(verified)) for one in ops if one.name in ATTENTION]
        return self.timed(kept)

    def decode_s(self, num_sequences: Column, contexts: Column, verified: int = 1) -> NDArray[np.float64]:
        """Attention by sequences × context."""
        n, c = (np.ravel(one) for one in np.meshgrid(num_sequences, contexts, indexing="ij"))
        found = _total(self.decode_kernels(n, c, verified), n).reshape(num_sequences.size, contexts.size)
        return found + self.states_s(num_sequences)[:, None]

    def joined_s(self, num_sequences: Column, contexts: Column) -> tuple[NDArray[np.float64] | None, float]:
        """Attention of decodes beside prompts by sequences × context, and what a decode adds per token of a chunk.

        None where prompts make no difference: decodes have a kernel of their own, or one that packs their heads.
        """
        constants, chip = self.calibration.constants, self.replica.chip
        if not constants.prefill.empty_block_s:
            return None, 0.0
        n, c = (np.ravel(one) for one in np.meshgrid(num_sequences, contexts, indexing="ij"))
        every = self.operators(n, 1.0, c, "absorbed", part="mixers")
        ops = [one for one in every if one.name in ATTENTION]
        if any(one.name != "attention" for one in ops):
            return None, 0.0
        rate = memory_bandwidth(chip) * constants.decode.memory_efficiency
        total_s, empty_s = np.zeros_like(n), 0.0
        for one in ops:
            assert isinstance(one.shape, Attention)
            total_s += one.count * joined_decode_times(
                one.shape, constants.prefill, num_sms=num_sms(chip), peak_flop_per_s=chip.peak(one.precision),
                memory_bytes_per_s=rate, l2_bytes=cache_bytes(chip), kv_bytes=bytes_per_value(one.weight_precision),
                sharpness=constants.decode.sharpness,
            )  # fmt: skip
            empty_s += float(one.count) * empty_blocks_time(
                one.shape, constants.prefill, num_sms=num_sms(chip)
            )
        found = total_s.reshape(num_sequences.size, contexts.size)
        return found + self.states_s(num_sequences)[:, None], empty_s

    def prefill_kernels(self, chunk: Column, past: Column) -> list[KernelTime]:
        """Attention of one chunk of a prompt after `past` tokens, as columns side by side.

        A short chunk has too few blocks of queries to fill the chip; the keys are then split as in decode.
        """
        every = self.operators(1.0, chunk, past, "expanded", part="mixers")
        ops = [one for one in every if one.name in ATTENTION]
        return [self._faster(one, kernel) for one, kernel in zip(ops, self.timed(ops), strict=True)]

    def prefill_s(self, chunks: Column, pasts: Column) -> NDArray[np.float64]:
        """Attention by chunk × past."""
        q, p = (np.ravel(one) for one in np.meshgrid(np.maximum(chunks, 1e-9), pasts, indexing="ij"))
        return _total(self.prefill_kernels(q, p), q).reshape(chunks.size, pasts.size)

    def timed(self, operators: Iterable[Operator]) -> list[KernelTime]:
        timed = time_operators(
            self.replica.chip, tuple(operators), stack=self.stack, block_scaled=self.replica.block_scaled
        )
        return [_beside_routed(one) for one in timed.kernels]

    def operators(
        self,
        batch: Column | float,
        query: Column | float,
        past: Column | float,
        latent: Latent = "auto",
        part: Part = "all",
    ) -> tuple[Operator, ...]:
        """A forward pass as the engine launches it: what it folds into other kernels is not there."""
        replica = self.replica
        fused = FUSED.get(replica.engine.stack, Fused())
        folded = frozenset[str]() if replica.block_scaled else fused.casts
        reduced = replica.tp > 1 and fused.norms_in_reduction

        def described(precision: Precision) -> list[Operator]:
            every = forward_pass(
                replica.model, batch=batch, query=query, past=past, sharding=self.sharding, precision=precision,
                latent=latent, fusion="reduced" if reduced else "fused", part=part,
            )  # fmt: skip
            return [one for one in every if one.name not in folded]

        return served_pass(described, replica.model, replica.precision)

    def states_s(self, num_sequences: Column) -> Column:
        """What the states of n sequences add to those of the one that `tokens_s` counts."""
        if self.replica.model.recurrent is None:
            return np.zeros_like(num_sequences)
        many_s, one_s = (
            _total(self.timed(state for state in every if state.name in STATE), num_sequences)
            for every in (
                self.operators(num_sequences, 1.0, 0.0, part="mixers"),
                self.operators(1.0, num_sequences, 0.0, part="mixers"),
            )
        )
        return many_s - one_s

    def _faster(self, operator: Operator, kernel: KernelTime) -> KernelTime:
        """The faster of a block of queries walking all keys and the keys split over idle multiprocessors."""
        shape = operator.shape
        if not isinstance(shape, Attention):
            return kernel
        num_blocks = np.ceil(shape.q_len * shape.num_heads / shape.num_kv_heads / BLOCK)
        units = shape.num_kv_heads * num_blocks
        packed = msgspec.structs.replace(
            shape, q_len=1.0, num_heads=shape.num_heads * shape.q_len, num_kv_heads=units
        )
        (split,) = self.timed([msgspec.structs.replace(operator, shape=packed)])
        idle = units < BUSY_FRACTION * num_sms(self.replica.chip)
        time_s = np.where(idle, np.minimum(split.time_s, kernel.time_s), kernel.time_s)
        return msgspec.structs.replace(kernel, time_s=time_s)


def _beside_routed(kernel: KernelTime) -> KernelTime:
    """Shared experts run on a second stream beside the routed ones: they cost the traffic and the arithmetic alone."""
    if not kernel.operator.name.startswith("shared_"):
        return kernel
    return msgspec.structs.replace(kernel, time_s=np.maximum(kernel.compute_s, kernel.memory_s))


def sharding_of(replica: Replica) -> Sharding:
    """One chip's share: dp attention ranks of tp chips each, whose batches meet at experts spread over ep chips."""
    split = check_stage(replica.model, replica.tp, replica.dp, replica.ep)
    return Sharding(tp=split.tp, ep=split.ep, num_groups=split.num_groups)


def cache_bytes(chip: Chip) -> float:
    """The L2 of a chip; 0 where it is not published [B]."""
    l2 = next((level.capacity_bytes for level in chip.levels if level.name == "l2"), 0.0)
    return l2 if np.isfinite(l2) else 0.0


def calibration_of(chip: Chip, stack: str) -> tuple[str | None, Calibration]:
    """The constants nearest to an engine's kernels: its own stack's, the nearest stack's, or the best there are."""
    for wanted in (stack, NEAREST_STACK, None):
        try:
            return wanted, calibrate(chip, None, wanted)
        except ScenarioError:
            continue
    raise AssertionError("there are generic constants for every chip")


def _packed(operator: Operator, verified: float) -> Operator:
    """The same with `verified` queries per sequence that share one read of the cache."""
    shape = operator.shape
    if verified == 1.0:
        return operator
    if isinstance(shape, Attention):
        wider = msgspec.structs.replace(shape, num_heads=shape.num_heads * verified)
        return msgspec.structs.replace(operator, shape=wider, flop=operator.flop * verified)
    wider_rows = msgspec.structs.replace(shape, rows=shape.rows * verified)  # type: ignore[union-attr]
    return msgspec.structs.replace(operator, shape=wider_rows, flop=operator.flop * verified)


def _total(kernels: Iterable[KernelTime], like: Column) -> Column:
    return np.zeros_like(like) + sum((one.total_s for one in kernels), 0.0)
