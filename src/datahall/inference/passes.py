"""The kernels of a serving pass in three parts: what all tokens share, attention of decodes, attention of a chunk."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.chip import Chip
from datahall.errors import ScenarioError
from datahall.inference.replica import Replica
from datahall.inference.routing import imbalance
from datahall.silicon.attention import BLOCK
from datahall.silicon.calibration import Calibration, calibrate, num_sms
from datahall.silicon.kernel import KernelTime, time_operators
from datahall.workload.forward import Latent, forward_pass
from datahall.workload.operator import Attention, Operator
from datahall.workload.sharding import Sharding

Column = NDArray[np.float64]

ATTENTION = {"attention", "kv_up", "kv_up_quantise", "absorb_q", "absorb_v"}
STATE = {"conv_scan"}  # recurrent layers read and write one state per sequence
HEAD = {"head"}
NEAREST_STACK = "vllm"  # whose kernels stand in where an engine's own were not measured
BUSY_FRACTION = 0.8  # of the multiprocessors: with fewer blocks of queries FlashAttention splits the keys


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
        sharding.check(replica.model)
        stack, found = calibration_of(replica.chip, replica.engine.stack)
        return cls(replica=replica, sharding=sharding, calibration=found, stack=stack)

    def token_kernels(self, num_tokens: Column) -> list[KernelTime]:
        """GEMMs, norms and the rest that sees all new tokens of a step; the head is not in it."""
        skew = imbalance(self.replica, num_tokens)
        ops = self._operators(1.0, num_tokens, 0.0)
        plain = [one for one in ops if one.name not in ATTENTION | HEAD]
        if np.any(skew > 1.0):
            busiest = {one.name: one for one in self._operators(1.0, num_tokens * skew, 0.0)}
            plain = [busiest[one.name] if one.name.startswith("expert_") else one for one in plain]
        return self.timed(plain)

    def tokens_s(self, num_tokens: Column) -> tuple[Column, Column]:
        """All of it, and of that the experts."""
        kernels = self.token_kernels(num_tokens)
        experts = [one for one in kernels if one.operator.name.startswith("expert_")]
        return _total(kernels, num_tokens), _total(experts, num_tokens)

    def head_kernels(self, num_rows: Column) -> list[KernelTime]:
        ops = self._operators(num_rows, 1.0, 0.0)
        return self.timed(one for one in ops if one.name in HEAD)

    def head_s(self, num_rows: Column) -> Column:
        return _total(self.head_kernels(num_rows), num_rows)

    def decode_kernels(self, num_sequences: Column, context: Column, verified: int = 1) -> list[KernelTime]:
        """Attention of sequences that each bring `verified` tokens after `context`, as columns side by side."""
        ops = self._operators(num_sequences, 1.0, context, "absorbed")
        kept = [_packed(one, float(verified)) for one in ops if one.name in ATTENTION]
        return self.timed(kept)

    def decode_s(self, num_sequences: Column, contexts: Column, verified: int = 1) -> NDArray[np.float64]:
        """Attention by sequences × context."""
        n, c = (np.ravel(one) for one in np.meshgrid(num_sequences, contexts, indexing="ij"))
        found = _total(self.decode_kernels(n, c, verified), n).reshape(num_sequences.size, contexts.size)
        return found + self._state_s(num_sequences)[:, None]

    def prefill_kernels(self, chunk: Column, past: Column) -> list[KernelTime]:
        """Attention of one chunk of a prompt after `past` tokens, as columns side by side.

        A short chunk has too few blocks of queries to fill the chip; the keys are then split as in decode.
        """
        ops = [one for one in self._operators(1.0, chunk, past, "expanded") if one.name in ATTENTION]
        return [self._faster(one, kernel) for one, kernel in zip(ops, self.timed(ops), strict=True)]

    def prefill_s(self, chunks: Column, pasts: Column) -> NDArray[np.float64]:
        """Attention by chunk × past."""
        q, p = (np.ravel(one) for one in np.meshgrid(np.maximum(chunks, 1e-9), pasts, indexing="ij"))
        return _total(self.prefill_kernels(q, p), q).reshape(chunks.size, pasts.size)

    def timed(self, operators: Iterable[Operator]) -> list[KernelTime]:
        timed = time_operators(
            self.replica.chip, tuple(operators), stack=self.stack, block_scaled=self.replica.block_scaled
        )
        return list(timed.kernels)

    def _operators(
        self, batch: Column | float, query: Column | float, past: Column | float, latent: Latent = "auto"
    ) -> tuple[Operator, ...]:
        return forward_pass(
            self.replica.model, batch=batch, query=query, past=past, sharding=self.sharding,
            precision=self.replica.precision, latent=latent,
        )  # fmt: skip

    def _state_s(self, num_sequences: Column) -> Column:
        """What the states of n sequences add to those of the one that `tokens_s` counts."""
        if self.replica.model.recurrent is None:
            return np.zeros_like(num_sequences)
        many = [one for one in self._operators(num_sequences, 1.0, 0.0) if one.name in STATE]
        one = [one for one in self._operators(1.0, num_sequences, 0.0) if one.name in STATE]
        return _total(self.timed(many), num_sequences) - _total(self.timed(one), num_sequences)

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


def sharding_of(replica: Replica) -> Sharding:
    """One chip's share: dp attention ranks of tp chips each, whose batches meet at experts spread over ep chips."""
    ep = replica.ep if replica.model.moe is not None else 1
    groups = replica.dp if replica.model.moe is not None else 1
    if (replica.tp * replica.dp) % ep:
        raise ScenarioError(
            f"ep = {ep} does not divide the tp {replica.tp} · dp {replica.dp} chips of a stage",
            hint=f"ep 1 or {replica.tp * replica.dp}",
        )
    return Sharding(tp=float(replica.tp), ep=float(ep), num_groups=float(groups))


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
