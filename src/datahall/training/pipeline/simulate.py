"""A step of a pipeline, simulated piece by piece.

Each stage does its slots in order, so a piece of work starts when its stage is free and its input has come:

    start = max(stage free, input arrived, parameters gathered)        end = start + work · speed

and every time follows from earlier ones; there is no event to choose between, hence no queue.  Messages of
one stage and way share a link one after another.  Parameters are gathered for a chunk's first forward and
gradients reduced in its last backward, bucket by bucket, on a stream beside the kernels, which run slower
meanwhile: forward needs the first bucket to start and the last before its last part, backward has the last one
left when it ends.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.compiled import Bare, inline
from datahall.events import Trace, new_trace
from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.schedule import EMPTY, Schedule

Floats = NDArray[np.float64]
SMALL = 2_000  # slots that the interpreter works off sooner than machine code is loaded
KIND_NAMES = {
    F: "forward",
    B: "backward, input",
    W: "backward, weights",
    FULL: "backward",
    4: "gather",
    5: "reduce",
}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """How long each place and message takes."""

    forward_s: Floats  # by place, for one micro-batch
    input_s: Floats
    weight_s: Floats
    gather_s: Floats  # by place: parameters, for its first forward
    reduce_s: Floats  # by place: gradients, from its last backward
    num_buckets: NDArray[np.int64]  # by place: pieces that both are moved in
    latency_s: float  # of a message between stages
    transfer_s: float  # during which it fills the link
    blocked_s: float  # during which the sender does nothing else
    together_ratio: float = 1.0  # a joined forward and backward over their sum
    beside_ratio: float  # kernels beside a collective over kernels alone


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """When everything happened.  Columns are by stage, or stage × slot."""

    plan: Schedule
    start_s: Floats
    end_s: Floats
    gathered_s: Floats  # by place
    reduce_start_s: Floats
    reduced_s: Floats
    free_s: Floats  # by stage: its last work and message done

    @property
    def kernels_s(self) -> float:
        """When the last stage has done its last work."""
        return float(self.free_s.max())

    @property
    def makespan_s(self) -> float:
        """When the last gradient is reduced as well."""
        return max(self.kernels_s, float(self.reduced_s.max()))

    @property
    def busy_s(self) -> Floats:
        """By stage: time in its work; joined pieces count once."""
        own = np.where(self.plan.kind == EMPTY, 0.0, self.end_s - self.start_s)
        doubled = np.zeros_like(self.plan.joined)
        doubled[:, 1:] = self.plan.joined[:, :-1]
        return np.asarray(np.where(doubled, 0.0, own).sum(axis=1))

    def spent_s(self, *kinds: int) -> Floats:
        """By stage: time in work of some kinds that ran alone."""
        own = np.where(np.isin(self.plan.kind, kinds) & ~self._together, self.end_s - self.start_s, 0.0)
        return np.asarray(own.sum(axis=1))

    @property
    def together_s(self) -> Floats:
        """By stage: time in which a forward and a backward ran as one."""
        return np.asarray(np.where(self.plan.joined, self.end_s - self.start_s, 0.0).sum(axis=1))

    @property
    def _together(self) -> NDArray[np.bool_]:
        second = np.zeros_like(self.plan.joined)
        second[:, 1:] = self.plan.joined[:, :-1]
        return np.asarray(self.plan.joined | second)

    @property
    def idle_s(self) -> Floats:
        """By stage: the rest of the time until the last stage is done: bubble, and waiting for messages."""
        return self.kernels_s - self.busy_s


def simulate(plan: Schedule, work: Work, speed: Floats | None = None, *, num_runs: int = 1) -> Simulated:
    """Simulate a schedule; `speed` multiplies the work of each stage (1.1 is a tenth slower).

    `num_runs` is how many such runs are to come: many pay for machine code where one does not.
    """
    slow = np.ones(plan.num_stages) if speed is None else np.ascontiguousarray(speed, dtype=np.float64)
    start_s, end_s = np.zeros(plan.kind.shape), np.zeros(plan.kind.shape)
    num_places = plan.num_stages * plan.num_chunks
    gathered_s, reduce_start_s, reduced_s = np.zeros((3, num_places))
    free_s = np.zeros(plan.num_stages)
    messages = np.array(
        [work.latency_s, work.transfer_s, work.blocked_s, work.together_ratio, work.beside_ratio]
    )
    run = play.suited_to(num_runs * plan.kind.size, SMALL)
    num_left = run(
        plan.kind, plan.micro, plan.chunk, plan.joined, plan.before, plan.after,
        np.stack([work.forward_s, work.input_s, work.weight_s, work.input_s + work.weight_s]),
        work.gather_s, work.reduce_s, work.num_buckets, messages, slow,
        start_s, end_s, gathered_s, reduce_start_s, reduced_s, free_s,
        np.full((2, num_places, plan.micro.max() + 1), np.inf), np.zeros(plan.num_stages),
        np.zeros((2, plan.num_stages)), plan.num_visits.copy(), np.zeros(plan.num_stages, np.int64),
    )  # fmt: skip
    if num_left:
        raise ValueError(f"{plan.name}: {num_left} pieces of work wait for each other in a circle")
    return Simulated(
        plan=plan,
        start_s=start_s,
        end_s=end_s,
        gathered_s=gathered_s,
        reduce_start_s=reduce_start_s,
        reduced_s=reduced_s,
        free_s=free_s,
    )


@inline
def ended(start_s: float, work_s: float, beside_until_s: float, beside_ratio: float) -> float:
    """When work ends that runs slower until the collective beside it is done."""
    window_s = beside_until_s - start_s
    if window_s <= 0.0:
        return start_s + work_s
    if work_s * beside_ratio <= window_s:
        return start_s + work_s * beside_ratio
    return start_s + window_s + (work_s - window_s / beside_ratio)


def _play(
    kind: NDArray[np.int8],
    micro: NDArray[np.int32],
    chunk: NDArray[np.int32],
    joined: NDArray[np.bool_],
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    work_s: Floats,
    gather_s: Floats,
    reduce_s: Floats,
    num_buckets: NDArray[np.int64],
    messages: Floats,
    speed: Floats,
    start_s: Floats,
    end_s: Floats,
    gathered_s: Floats,
    reduce_start_s: Floats,
    reduced_s: Floats,
    free_s: Floats,
    arrived: Floats,
    stream_s: Floats,
    link_s: Floats,
    left: NDArray[np.int32],
    at: NDArray[np.int64],
) -> int:
    """Fill the columns after `speed`; return how many slots could not run.

    arrived: inputs of forward and of backward, by place and micro-batch; stream_s: when the collectives beside the
    kernels of a stage are done; link_s: its links, both ways; left: visits of a place that are to come; at: slots.
    """
    num_stages, num_slots = kind.shape
    num_chunks = before.size // num_stages
    latency_s, transfer_s, blocked_s = messages[0], messages[1], messages[2]
    together, beside = messages[3], messages[4]
    num_left = 0
    for stage in range(num_stages):
        for place in range(stage * num_chunks, (stage + 1) * num_chunks):
            stream_s[stage] += gather_s[place]
            gathered_s[place] = stream_s[stage]
        for slot in range(num_slots):
            num_left += kind[stage, slot] != EMPTY
    moved = True
    while moved:
        moved = False
        for stage in range(num_stages):
            while at[stage] < num_slots and kind[stage, at[stage]] != EMPTY:
                slot = at[stage]
                width = 2 if joined[stage, slot] else 1
                ready_s, total_s, whole_s, last_s = free_s[stage], 0.0, 0.0, 0.0
                for k in range(slot, slot + width):
                    what, place = kind[stage, k], stage * num_chunks + chunk[stage, k]
                    total_s += work_s[what, place]
                    if what == F:
                        piece = 1.0 / num_buckets[place]
                        ready_s = max(ready_s, gathered_s[place] - gather_s[place] * (1.0 - piece))
                        whole_s, last_s = gathered_s[place], work_s[what, place] * piece * speed[stage]
                        if before[place] >= 0:
                            ready_s = max(ready_s, arrived[0, place, micro[stage, k]])
                    elif what != W:
                        ready_s = max(ready_s, arrived[1, place, micro[stage, k]])
                if ready_s == np.inf:
                    break
                moved = True
                if width == 2:
                    total_s *= together
                total_s *= speed[stage]
                done_s = ready_s
                for k in range(slot, slot + width):
                    what, place = kind[stage, k], stage * num_chunks + chunk[stage, k]
                    if what >= W:  # W or FULL
                        left[place] -= 1
                        if left[place] == 0:  # the first bucket leaves when its part of this work is done
                            piece_s = total_s / num_buckets[place]
                            done_s = ended(done_s, piece_s, stream_s[stage], beside)
                            total_s -= piece_s
                            reduce_start_s[place] = max(stream_s[stage], done_s)
                            stream_s[stage] = reduce_start_s[place] + reduce_s[place]
                done_s = ended(done_s, total_s, stream_s[stage], beside)
                done_s = max(done_s, whole_s + last_s) if whole_s > ready_s else done_s
                free_s[stage] = done_s
                for k in range(slot, slot + width):
                    what, place = kind[stage, k], stage * num_chunks + chunk[stage, k]
                    start_s[stage, k], end_s[stage, k] = ready_s, done_s
                    way = 0 if what == F else 1
                    target = after[place] if what == F else before[place]
                    if what == F and target < 0:  # the loss: backward may start
                        arrived[1, place, micro[stage, k]] = done_s
                    elif what != W and target >= 0:
                        if target // num_chunks == stage:
                            arrived[way, target, micro[stage, k]] = done_s
                        else:
                            sent_s = max(done_s, link_s[way, stage])
                            link_s[way, stage] = sent_s + transfer_s
                            arrived[way, target, micro[stage, k]] = sent_s + transfer_s + latency_s
                            free_s[stage] += blocked_s
                    if what >= W and left[place] == 0:
                        last_bucket_s = reduce_s[place] / num_buckets[place]
                        reduced_s[place] = max(stream_s[stage], done_s + last_bucket_s)
                        stream_s[stage] = reduced_s[place]
                at[stage] += width
                num_left -= width
    return num_left


play = Bare(_play, compile_s=4.0)


def timeline(run: Simulated, work: Work) -> Trace:
    """Every piece of work on its stage's track, and collectives on a track beside it, for Perfetto."""
    plan = run.plan
    stages, slots = np.nonzero(plan.kind != EMPTY)
    places = np.arange(plan.before.size)
    gathers, reduces = places[work.gather_s > 0], places[work.reduce_s > 0]
    num = stages.size + gathers.size + reduces.size
    trace = new_trace(num)
    rows = trace.kept[:num]
    own, first, last = (
        rows[: stages.size],
        rows[stages.size : stages.size + gathers.size],
        rows[num - reduces.size :],
    )
    own["time_s"], own["duration_s"] = (
        run.start_s[stages, slots],
        (run.end_s - run.start_s)[stages, slots],
    )
    own["kind"], own["a"] = plan.kind[stages, slots], 2 * stages
    own["b"], own["x"] = plan.micro[stages, slots], plan.chunk[stages, slots]
    gather_start_s = run.gathered_s - work.gather_s
    for part, which, kind, from_s, until_s in (
        (first, gathers, 4, gather_start_s, run.gathered_s),
        (last, reduces, 5, run.reduce_start_s, run.reduced_s),
    ):
        part["time_s"], part["duration_s"] = from_s[which], (until_s - from_s)[which]
        part["kind"], part["a"] = kind, 2 * (which // plan.num_chunks) + 1
        part["b"], part["x"] = -1, which % plan.num_chunks
    trace.num_recorded[0] = num
    return trace


def track_names(plan: Schedule) -> dict[int, str]:
    """Names of a timeline's tracks."""
    stages = range(plan.num_stages)
    return {2 * s: f"stage {s}" for s in stages} | {
        2 * s + 1: f"stage {s}: gradients and parameters" for s in stages
    }
