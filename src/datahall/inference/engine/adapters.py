"""LoRA adapters: one base model serves many fine-tuned ones, each a pair of thin matrices beside every projection.

    y = x·W + (x·A)·B      A: in × rank, B: rank × out

On the chip: resident · rank · Σ (in + out) · bytes.  In a step: a shrinking and an expanding product beside each
projection (qkv and gate-up are one launch each, with an A of their own for each part), and every adapter that some
sequence of the step uses is read once,

    E[different adapters of n sequences] = Σᵢ 1 − (1 − pᵢ)ⁿ.

Requests have no adapter of their own here: popularity is Zipf's law, and all is expected values.  Split over tp chips A
is whole where columns are split and B where rows are, as vLLM does by default.
References: Hu et al. (2021), LoRA; Chen et al. (2023), Punica, 2 ms a token more on Llama 2 7B; Sheng et al. (2023),
S-LoRA.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datahall.inference.engine.replica import Adapters, Replica
from datahall.inference.fleet.response_cache import lru_hits
from datahall.inference.memory.offload import host_bytes_per_s
from datahall.inference.step.kernels import Passes, sharding_of
from datahall.silicon.kernel import memory_bandwidth
from datahall.workload.adapters.count import Projection, projections
from datahall.workload.adapters.targets import Targets
from datahall.workload.operator import Gemm, Operator, Stream
from datahall.workload.traffic.popularity import zipf_shares

Column = NDArray[np.float64]

FORMAT, VALUE_BYTES = "bf16", 2.0


def adapted(replica: Replica) -> list[Projection]:
    """What the adapters of a replica stand beside."""
    if replica.adapters is None:
        return []
    targets: Targets = "all" if replica.adapters.mlp else "attention"
    return projections(replica.model, targets, sharding_of(replica))


def adapter_bytes(replica: Replica) -> float:
    """One adapter on one chip, all stages together [B]."""
    if replica.adapters is None:
        return 0.0
    widths = sum(one.num_layers * float(one.widths) for one in adapted(replica))
    return replica.adapters.rank * widths * VALUE_BYTES


def resident_bytes(replica: Replica) -> float:
    """Adapters on one chip of the heaviest stage [B]."""
    if replica.adapters is None:
        return 0.0
    num_layers = replica.model.num_layers
    return replica.adapters.resident * adapter_bytes(replica) * -(-num_layers // replica.pp) / num_layers


def different(adapters: Adapters, num_sequences: Column) -> Column:
    """Adapters that so many sequences use, expected; no more than are resident.

    >>> different(Adapters(num=4, zipf_factor=0.0), np.array([1.0, 2.0, 100.0])).round(6).tolist()
    [1.0, 1.75, 4.0]
    """
    shares = zipf_shares(adapters.num, adapters.zipf_factor)
    used = (-np.expm1(np.outer(num_sequences, np.log1p(-np.minimum(shares, 1.0 - 1e-15))))).sum(axis=1)
    return np.asarray(np.minimum(used, adapters.resident))


def products_s(passes: Passes, num_tokens: Column) -> Column:
    """Both thin products beside each projection of a whole pass, one adapter read for each [s]."""
    adapters = passes.replica.adapters
    if adapters is None:
        return np.zeros_like(num_tokens)
    operators: list[Operator] = []
    for one in adapted(passes.replica):
        inner = float(adapters.rank * one.num_parts)
        width_in, width_out = float(one.width_in), float(one.width_out)
        shrink, expand = (width_in, inner), (float(adapters.rank), width_out)
        operators += [_product(num_tokens, *shape, one.num_layers) for shape in (shrink, expand)]
        operators.append(_added(num_tokens * width_out * VALUE_BYTES, one.num_layers))
    return np.zeros_like(num_tokens) + sum((one.total_s for one in passes.timed(operators)), 0.0)


def reads_s(passes: Passes, num_sequences: Column) -> Column:
    """Reading the adapters of so many sequences in a whole pass, beyond the first [s]."""
    adapters = passes.replica.adapters
    if adapters is None:
        return np.zeros_like(num_sequences)
    rate = memory_bandwidth(passes.replica.chip) * passes.calibration.constants.stream.memory_efficiency
    further = np.maximum(different(adapters, num_sequences) - 1.0, 0.0)
    return np.asarray(further * adapter_bytes(passes.replica) / rate)


def miss_fraction(adapters: Adapters) -> float:
    """Share of requests whose adapter is not on the chips, the least recently used giving way (Che)."""
    if adapters.resident >= adapters.num:
        return 0.0
    shares = zipf_shares(adapters.num, adapters.zipf_factor)
    return float(1.0 - (shares * lru_hits(shares, 0.0, adapters.resident)).sum())


def first_token_s(replica: Replica) -> float:
    """What a first token waits for beside steps: the engine's front end, and an adapter that is fetched [s].

    Mean over requests; stages fetch their layers at once, from the memory of their hosts.
    """
    waited_s = replica.engine.first_token_s
    if replica.adapters is None or not (missed := miss_fraction(replica.adapters)):
        return waited_s
    return waited_s + missed * adapter_bytes(replica) / replica.pp / host_bytes_per_s(replica)


def _product(rows: Column, k: float, n: float, count: float) -> Operator:
    return Operator(
        name="adapter",
        shape=Gemm(rows, n, k),
        precision=FORMAT,
        weight_precision=FORMAT,
        flop=2.0 * rows * n * k,
        read_bytes=VALUE_BYTES * (rows * k + n * k),
        write_bytes=VALUE_BYTES * rows * n,
        weight_bytes=VALUE_BYTES * n * k,
        count=count,
    )


def _added(read_bytes: Column, count: float) -> Operator:
    """The output of the base model is read again to be added to, inside the expanding kernel."""
    return Operator(
        name="adapter_sum",
        shape=Stream(0.0),
        precision=FORMAT,
        weight_precision=FORMAT,
        flop=0.0,
        read_bytes=read_bytes,
        write_bytes=0.0,
        count=count,
    )
