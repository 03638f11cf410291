"""Power of the chips of a serving replica: what they do in a step of prefills, decodes or both.

A step is the closed form's and the simulation's: the same kernels that give its time give its activity, and in what
the host takes the chip waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec
import numpy as np

from datahall.breakdown import Breakdown, derived, modelled, product, quotient
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import num_verified
from datahall.inference.step.exchange import reduced_blocks
from datahall.inference.step.figure import step_figure
from datahall.inference.step.kernels import STATE, Passes
from datahall.inference.step.price import uneven_stages
from datahall.power.activity import Activity, kernels_activity
from datahall.power.chip import chip_power
from datahall.silicon.kernel import KernelTime, scalar


class StepWork(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a replica's rank: how long it takes, and what a chip does in it."""

    time_s: float
    device_s: float  # of that, kernels and exchange
    activity: Activity

    def within(self, time_s: float) -> Activity:
        """Its activity where a step is known to have taken so long: kernels take their time, gaps the rest."""
        return self.activity.over(max(time_s, self.device_s) / self.time_s)


def step_work(
    replica: Replica,
    *,
    num_decodes: int = 0,
    mean_context: float = 0.0,
    chunks: Sequence[tuple[float, float]] = (),
) -> StepWork:
    """A step of so many decodes and of chunks (tokens, tokens before them)."""
    step = step_figure(replica, num_decodes=num_decodes, mean_context=mean_context, chunks=chunks)
    time_s, host_s = step.figure.value, step.taken_s.get("host", 0.0)
    found = kernels_activity(
        replica.chip,
        _kernels(replica, num_decodes, mean_context, chunks),
        time_s,
        block_scaled=replica.block_scaled,
    )
    tokens = num_decodes + sum(chunk for chunk, _ in chunks)
    activity = msgspec.structs.replace(
        found,
        memory_fraction=found.memory_fraction + _states_s(replica, num_decodes) / time_s,
        link_fraction=_sent_s(replica, tokens) / time_s,
        busy_fraction=1.0 - host_s / time_s,
    )
    return StepWork(time_s=time_s, device_s=time_s - host_s, activity=activity)


def _kernels(
    replica: Replica, num_decodes: int, mean_context: float, chunks: Sequence[tuple[float, float]]
) -> list[KernelTime]:
    """The kernels that one chip runs in a step; a stage of a pipeline runs its share of the layers for all parts."""
    passes, pp, verified = Passes.of(replica), replica.pp, num_verified(replica.speculation)
    tokens = num_decodes * verified + sum(chunk for chunk, _ in chunks)
    rows = num_decodes * verified + len(chunks)
    found = passes.token_kernels(np.array([max(tokens / pp, 1.0)]))
    if num_decodes:
        sequences = np.array([max(num_decodes / pp, 1.0)])
        found += passes.decode_kernels(sequences, np.array([mean_context]), verified)
    found = [_times(one, uneven_stages(replica)) for one in found]
    for chunk, past in chunks:
        attended = passes.prefill_kernels(np.array([max(chunk, 1e-9)]), np.array([past]))
        found += [_times(one, uneven_stages(replica) / pp) for one in attended]
    return found + passes.head_kernels(np.array([max(rows / pp, 1.0)]))


def _times(kernel: KernelTime, times: float) -> KernelTime:
    operator = msgspec.structs.replace(kernel.operator, count=kernel.operator.count * times)
    return msgspec.structs.replace(kernel, operator=operator)


def _states_s(replica: Replica, num_decodes: int) -> float:
    """What moving the states of sequences beyond one would take at full bandwidth [s]."""
    if replica.model.recurrent is None or not num_decodes:
        return 0.0
    passes, sequences = Passes.of(replica), np.array([float(num_decodes)])
    many, one = (
        sum(
            state.count * scalar(state.read_bytes + state.write_bytes)
            for state in passes.operators(batch, query, 0.0, part="mixers")
            if state.name in STATE
        )
        for batch, query in ((sequences, 1.0), (1.0, sequences))
    )
    return max(0.0, many - one) / replica.chip.memory_bytes_per_s


def _sent_s(replica: Replica, tokens: float) -> float:
    """What a chip sends in a step to reduce the outputs of blocks, at the full rate of its links [s].

    bytes = 2·(t − 1)/t · tokens · hidden · width · blocks      a ring over t chips
    """
    ranks, links = replica.tp * replica.dp, replica.chip.scale_up_bytes_per_s
    if ranks == 1 or not np.isfinite(links):
        return 0.0
    reduced, at_experts = reduced_blocks(replica.model, at_experts=replica.dp == 1)
    row_bytes = replica.model.hidden * replica.precision.wide_bytes_per_value
    blocks = (reduced if replica.tp > 1 else 0) + at_experts * replica.dp
    return 2.0 * (ranks - 1) / ranks * tokens * row_bytes * blocks / links


def decode_activity(replica: Replica, num_decodes: int, mean_context: float) -> Activity:
    """Mean activity of a chip while so many sequences of a rank decode."""
    return step_work(replica, num_decodes=num_decodes, mean_context=mean_context).activity


def prefill_activity(replica: Replica, prompt_tokens: float, past_tokens: float = 0.0) -> Activity:
    """Mean activity of a chip while a prompt, or a chunk of one, is prefilled."""
    return step_work(replica, chunks=((prompt_tokens, past_tokens),)).activity


def mean_work(replica: Replica, load: Load, decoding: float) -> StepWork:
    """The mean step of a rank in which so many sequences decode, with the prompts that start meanwhile."""
    num = max(1, round(decoding))
    return step_work(
        replica, num_decodes=num, mean_context=load.prompt + load.aged, chunks=_chunks(load, num)
    )


def _chunks(load: Load, num_decodes: int) -> tuple[tuple[float, float], ...]:
    """The prompts of a step in which so many decode: whole ones, or a mean piece of one, with what lies before it."""
    tokens = num_decodes / load.steps * load.computed
    num = max(1, ceil(tokens / load.computed - 1e-9))
    size = tokens / num
    return ((size, load.cached + (load.computed - size) / 2.0),) * num


class ReplicaPower(msgspec.Struct, frozen=True, kw_only=True):
    """What the chips of a replica draw at a load, and what a token takes."""

    chip: Breakdown  # each [W]
    energy_per_token: Breakdown  # of all chips of the replica, for an output token [J]
    activity: Activity


def replica_power(replica: Replica, load: Load, state: State) -> ReplicaPower:
    """Power of a replica's chips in a steady state of the closed form, or of a run with the same mean batch.

    As many steps are made as the requests take that come, and between them the chips rest:

    busy = requests per second · steps of a request / sequences of a step · time of a step
    """
    work = mean_work(replica, load, state.decoding)
    steps_per_s = state.rate_per_s * load.steps / max(1, round(state.decoding))
    activity = work.activity.over(1.0 / min(1.0, max(steps_per_s * work.time_s, 1e-12)))
    chip = chip_power(replica.chip, activity, f"power of a {replica.chip.name}")
    rate = state.rate_per_s * load.output * replica.dp
    return ReplicaPower(chip=chip, energy_per_token=energy_per_token(replica, chip, rate), activity=activity)


def energy_per_token(replica: Replica, chip: Breakdown, tokens_per_s: float) -> Breakdown:
    """Energy of an output token, prompts included: the power of all chips over their rate of tokens [J].

    E = chips · P / rate
    """
    rate = modelled(
        "output tokens per second", tokens_per_s, "tokens_per_s", "of the replica at this load",
        derived("chips of the replica", replica.num_chips, "count"),
    )  # fmt: skip
    drawn = product("power of the replica", (derived("chips", replica.num_chips, "count"), chip), "w")
    return quotient("energy of a token", drawn, rate, "j_per_token")
