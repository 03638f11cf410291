"""The oracle of the pipeline: each time as the longest path that leads to it."""

from functools import cache

from datahall.training.pipeline.orders import FULL, B, F, W
from datahall.training.pipeline.schedule import EMPTY, Schedule
from datahall.training.pipeline.simulate import Work


class LongestPath:
    """The oracle: each time as the longest path that leads to it, found by recursion over what it waits for."""

    def __init__(self, plan: Schedule, work: Work) -> None:
        self.plan, self.work = plan, work
        self.slot_of: dict[tuple[int, int, int], tuple[int, int]] = {}
        for stage in range(plan.num_stages):
            for slot in range(int((plan.kind[stage] != EMPTY).sum())):
                kind, place, micro = self.at(stage, slot)
                self.slot_of[1 if kind == FULL else kind, place, micro] = stage, slot
        self.start = cache(self._start)
        self.sent = cache(self._sent)

    def at(self, stage: int, slot: int) -> tuple[int, int, int]:
        place = stage * self.plan.num_chunks + int(self.plan.chunk[stage, slot])
        return int(self.plan.kind[stage, slot]), place, int(self.plan.micro[stage, slot])

    def group(self, stage: int, slot: int) -> list[int]:
        first = slot - 1 if slot and self.plan.joined[stage, slot - 1] else slot
        return [first, first + 1] if self.plan.joined[stage, first] else [first]

    def end(self, stage: int, slot: int) -> float:
        work, group = self.work, self.group(stage, slot)
        total = 0.0
        for one in group:
            kind, place, _ = self.at(stage, one)
            columns = {
                F: (work.forward_s,),
                B: (work.input_s,),
                W: (work.weight_s,),
                FULL: (work.input_s, work.weight_s),
            }
            total += sum(float(column[place]) for column in columns[kind])
        start = self.start(stage, group[0])
        end = start + total * (work.together_ratio if len(group) == 2 else 1.0)
        for one in group:
            kind, place, _ = self.at(stage, one)
            if kind == F and self.gathered(place) > start:
                end = max(end, self.gathered(place) + float(work.forward_s[place] / work.num_buckets[place]))
        return end

    def gathered(self, place: int) -> float:
        first = place // self.plan.num_chunks * self.plan.num_chunks
        return float(self.work.gather_s[first : place + 1].sum())

    def target(self, stage: int, slot: int) -> int:
        """Stage that a message goes to, or -1."""
        kind, place, _ = self.at(stage, slot)
        if kind == W:
            return -1
        there = int((self.plan.after if kind == F else self.plan.before)[place])
        return -1 if there < 0 or there // self.plan.num_chunks == stage else there // self.plan.num_chunks

    def free(self, stage: int, slot: int) -> float:
        """When the stage may go on after a slot."""
        num_sent = sum(self.target(stage, one) >= 0 for one in self.group(stage, slot))
        return self.end(stage, slot) + num_sent * self.work.blocked_s

    def _sent(self, stage: int, slot: int) -> float:
        """When a message leaves: after the last of the same way has filled the link."""
        forward = self.plan.kind[stage, slot] == F
        earlier = [
            one for one in range(slot)
            if self.target(stage, one) >= 0 and (self.plan.kind[stage, one] == F) == forward
        ]  # fmt: skip
        link = self.sent(stage, earlier[-1]) + self.work.transfer_s if earlier else 0.0
        return max(self.end(stage, slot), link)

    def arrives(self, kind: int, source: int, micro: int, stage: int) -> float:
        from_stage, slot = self.slot_of[kind, source, micro]
        if from_stage == stage:
            return self.end(from_stage, slot)
        return self.sent(from_stage, slot) + self.work.transfer_s + self.work.latency_s

    def _start(self, stage: int, slot: int) -> float:
        group = self.group(stage, slot)
        start = self.free(stage, group[0] - 1) if group[0] else 0.0
        for one in group:
            kind, place, micro = self.at(stage, one)
            if kind == F:
                rest = 1.0 - 1.0 / self.work.num_buckets[place]
                start = max(start, self.gathered(place) - float(self.work.gather_s[place]) * rest)
                if self.plan.before[place] >= 0:
                    start = max(start, self.arrives(0, int(self.plan.before[place]), micro, stage))
            elif kind != W and self.plan.after[place] >= 0:
                start = max(start, self.arrives(1, int(self.plan.after[place]), micro, stage))
            elif kind != W:
                start = max(start, self.end(*self.slot_of[0, place, micro]))
        return start
