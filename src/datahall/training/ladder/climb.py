"""One rung on top of the other, and each alone on the plainest job: a step of each, and whether it is worth keeping.

A rung is kept where a step is then shorter; ZeRO and recomputation, which are there for memory, also where a chip lacks
less of it.  What comes after stands on what was kept; what is then no longer needed is taken back at the end.
"""

from __future__ import annotations

import msgspec

from datahall.errors import InfeasibleError
from datahall.training.ladder.rungs import Rung, compressions, rungs
from datahall.training.ladder.setting import Setting, plainest
from datahall.training.layout.columns import Space
from datahall.training.layout.legality import broken_rules
from datahall.training.memory.peak import peak_memory
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.step.compression import wire_bytes
from datahall.workload.precision import PRESETS

SHORTER = 1e-6  # share of a step below which another is no shorter
FOR_MEMORY = ("ZeRO", "recompute")  # choices that may have been kept for memory alone
SAME = 5e-4  # and within which two are said to be the same


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a setting: what it takes, and what it lacks to fit."""

    setting: Setting
    run: Execution
    memory_bytes: float  # of the fullest chip
    headroom_bytes: float  # negative: it does not fit

    @property
    def step_s(self) -> float:
        return self.run.step_s

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0

    @property
    def limit_bytes(self) -> float:
        return self.memory_bytes + self.headroom_bytes

    @property
    def over_bytes(self) -> float:
        return max(0.0, -self.headroom_bytes)

    def is_shorter(self, other: Effect) -> bool:
        """Whether a step takes less time."""
        return self.step_s < (1.0 - SHORTER) * other.step_s

    def is_worth(self, rung: Rung, other: Effect) -> bool:
        """Whether a rung that leads to it from another is kept."""
        if rung.choice in FOR_MEMORY and self.over_bytes != other.over_bytes:
            return self.over_bytes < other.over_bytes
        return self.is_shorter(other)

    def gain_over(self, other: Effect) -> float:
        """How many times faster it is than another."""
        return other.step_s / self.step_s


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A rung tried on something: its effect, or why there is none."""

    rung: Rung
    on: Effect
    effect: Effect | None = None
    why_not: str = ""
    kept: bool = False
    taken_back: bool = False  # what was kept of it is left again: with what came later it is not needed

    @property
    def gain(self) -> float | None:
        """How many times faster a step is than what it was tried on."""
        return None if self.effect is None else self.effect.gain_over(self.on)

    @property
    def longer(self) -> float | None:
        """How many times longer a step is than what it was tried on."""
        return None if self.effect is None else self.on.gain_over(self.effect)

    @property
    def more_bytes(self) -> float | None:
        """What a chip then holds beside what it held."""
        return None if self.effect is None else self.effect.memory_bytes - self.on.memory_bytes

    @property
    def slower_fraction(self) -> float:
        """By what share a step is longer; 0 where that cannot be told."""
        if self.effect is None:
            return 0.0
        away = self.effect.step_s / self.on.step_s - 1.0
        return away if abs(away) >= SAME else 0.0

    @property
    def fewer_bytes(self) -> float | None:
        """How many times fewer bytes a gradient has on the wire; None of what does not make it smaller."""
        if self.rung.compression is None:
            return None
        setting = self.on.setting
        plain = setting.framework.sent_bytes(setting.job.value_bytes)
        return plain / wire_bytes(self.rung.compression, setting.job.model, plain)


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """The plainest job, each rung on top of those kept, each alone, and what changes what a step learns."""

    plain: Effect
    together: tuple[Step, ...]
    alone: tuple[Step, ...]
    without: tuple[Step, ...]  # all that was kept but one of them
    compressed: tuple[Step, ...]  # each alone, on top of all that was kept

    @property
    def top(self) -> Effect:
        """All that was kept."""
        kept = [step.effect for step in self.together if step.kept]
        return (kept and kept[-1]) or self.plain

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of what was kept, of a choice the last stage."""
        back = [step.rung for step in self.together if step.taken_back]
        kept = [step.rung for step in self.together if step.kept and step.rung not in back]
        last = {one.choice: one for one in kept}
        return tuple(one.name for one in kept if not one.choice or last[one.choice] is one)

    @property
    def matters_most(self) -> Step | None:
        """What was kept and is missed the most: the longest step without one of it."""
        return max(self.without, key=lambda step: step.longer or 0.0, default=None)

    @property
    def precision(self) -> str:
        """The format of the top by name."""
        precision = self.top.setting.job.precision
        return next(name for name, one in PRESETS.items() if one == precision)

    @property
    def gain(self) -> float:
        """How many times faster all of it makes a step."""
        return self.top.gain_over(self.plain)


def climb(own: Setting) -> Ladder:
    """The ladder of a job from the plainest to what its framework does, and beyond."""
    plain = effect_of(plainest(own))
    together, current = [], plain
    for rung in rungs(own):
        step = tried(rung, current)
        kept = step.effect is not None and step.effect.is_worth(rung, current)
        together.append(msgspec.structs.replace(step, kept=kept))
        if kept and step.effect is not None:
            current = step.effect
    stack = [step.rung for step in together if step.kept]
    for rung in [one for one in reversed(stack) if one.choice in FOR_MEMORY]:
        left = _without(rung, stack, plain, current)
        if left.effect is not None and left.effect.is_worth(rung, current):
            together.append(msgspec.structs.replace(left, kept=True, taken_back=True))
            stack, current = [one for one in stack if one is not rung], left.effect
    return Ladder(
        plain=plain,
        together=tuple(together),
        alone=tuple(tried(rung, plain) for rung in (*rungs(own), *compressions())),
        without=tuple(_without(rung, stack, plain, current) for rung in stack),
        compressed=tuple(tried(rung, current) for rung in compressions()),
    )


def _without(left: Rung, kept: list[Rung], plain: Effect, top: Effect) -> Step:
    """What is left of the top without one rung, nor what goes on from it: all others that were kept, in their order."""
    setting, later = plain.setting, kept[kept.index(left) :]
    for rung in kept:
        falls = rung is left or (rung in later and bool(rung.choice) and rung.choice == left.choice)
        changed = setting if falls else rung.change(setting)
        setting = setting if isinstance(changed, str) else changed
    return Step(rung=left, on=top, effect=top if setting == top.setting else effect_of(setting))


def tried(rung: Rung, on: Effect) -> Step:
    """A rung on something; one that cannot run there says which rule it breaks."""
    changed = rung.change(on.setting)
    if isinstance(changed, str):
        return Step(rung=rung, on=on, why_not=changed)
    job, layout = changed.job, changed.layout
    broken = next(broken_rules(layout, job.model, layout.num_chips, job.global_batch), None)
    if broken is not None:
        return Step(rung=rung, on=on, why_not=broken.message)
    return Step(rung=rung, on=on, effect=effect_of(changed))


def effect_of(setting: Setting) -> Effect:
    """A step of a setting, simulated, and the most that one of its chips holds."""
    job, cluster, layout = setting.job, setting.cluster, setting.layout
    memory = peak_memory(job, cluster.chip, Space.of(layout), setting.books, schedule=setting.schedule)
    run = simulate_step(job, cluster, layout, setting.framework, order=setting.schedule)
    if not run.step_s < float("inf"):
        raise InfeasibleError(f"a step of {job.model.name} never ends on this network", field="nic")
    return Effect(
        setting=setting,
        run=run,
        memory_bytes=float(memory.total_bytes[0]),
        headroom_bytes=float(memory.headroom_bytes[0]),
    )
