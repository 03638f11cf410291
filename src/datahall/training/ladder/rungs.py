"""The rungs: what each technique changes of a job, or why it has nothing to change."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.scenario.words import COMPRESSIONS
from datahall.training.ladder.setting import SHARES, Setting
from datahall.training.layout.columns import Space
from datahall.training.step.attention import attention_share
from datahall.training.step.compression import METHODS, Compression, wire_bytes
from datahall.workload.memory.recompute import RECOMPUTES, Recompute
from datahall.workload.precision import HALVES, Precision

ALREADY = "already so"
Change = Callable[[Setting], Setting | str]  # a sentence: it changes nothing here, and why


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One technique: its name, which no input changes, what it does in a few words, and how."""

    name: str
    does: str
    change: Change
    compression: Compression | None = None  # of gradients on the wire
    choice: str = ""  # of which it is one stage: a later one takes its place


def rungs(own: Setting) -> tuple[Rung, ...]:
    """What is put one on top of the other: none of these changes what a step computes but for its rounding."""
    return (
        Rung(name="compiled", does="element-wise kernels fused", change=_compiled(own)),
        Rung(name="flash attention", does="scores never written", change=_fused),
        Rung(name="bf16", does="16 bits in place of 32", change=_halved, choice="format"),
        Rung(name="fp8", does="products in 8 bits", change=_narrowed, choice="format"),
        Rung(name="overlap", does="exchange beside kernels", change=_overlapped(own)),
        *(
            Rung(name=f"ZeRO-{stage}", does=does, change=_shared(own, stage), choice="ZeRO")
            for stage, does in SHARED.items()
        ),
        *(
            Rung(name=f"recompute {level}", does=does, change=_recomputed(level), choice="recompute")
            for level, does in AGAIN.items()
        ),
    )


def compressions() -> tuple[Rung, ...]:
    """What changes the gradients that are summed."""
    return tuple(
        Rung(
            name=f"gradients {name}",
            does=METHODS[name].title,
            change=_compressed(name),
            compression=METHODS[name],
        )
        for name in COMPRESSIONS
        if name in METHODS
    )


SHARED = {1: "optimizer states shared", 2: "gradients too", 3: "weights too"}
AGAIN: dict[Recompute, str] = {
    level: {"selective": "attention's core again", "full": "every layer again"}[level]
    for level in RECOMPUTES
    if level != "none"
}


def _framed(setting: Setting, **changes: object) -> Setting:
    return msgspec.structs.replace(setting, framework=msgspec.structs.replace(setting.framework, **changes))


def _laid(setting: Setting, **changes: object) -> Setting:
    return msgspec.structs.replace(setting, layout=msgspec.structs.replace(setting.layout, **changes))


def _formatted(setting: Setting, name: str) -> Setting:
    job = msgspec.structs.replace(setting.job, precision=Precision.named(name))
    return msgspec.structs.replace(setting, job=job)


def _compiled(own: Setting) -> Change:
    def apply(setting: Setting) -> Setting | str:
        if not setting.eager:
            return f"the constants of {own.framework.title} are of compiled kernels"
        style = own.framework
        fused = _framed(setting, fusion=style.fusion, host_s=style.host_s, captured=style.captured)
        return msgspec.structs.replace(fused, eager=False)

    return apply


def _fused(setting: Setting) -> Setting | str:
    if not attention_share(setting.job.model):
        return "no layer has scores"
    return ALREADY if setting.framework.flash_attention else _framed(setting, flash_attention=True)


def _halved(setting: Setting) -> Setting | str:
    if setting.job.value_bytes <= 2:
        return ALREADY
    chip = setting.cluster.chip
    name = next((one for one in HALVES if chip.multiplies(one)), "")
    return _formatted(setting, name) if name else f"{chip.title} does not multiply 16 bits"


def _narrowed(setting: Setting) -> Setting | str:
    chip = setting.cluster.chip
    return _formatted(setting, "fp8") if chip.multiplies("fp8") else f"{chip.title} does not multiply FP8"


def _overlapped(own: Setting) -> Change:
    def apply(setting: Setting) -> Setting | str:
        if setting.layout.num_chips == 1:
            return "one chip exchanges nothing"
        shares = {name: getattr(own.framework, name) for name in SHARES}
        return _framed(setting, parameters_exposed=own.framework.parameters_exposed, **shares)

    return apply


def _shared(own: Setting, stage: int) -> Change:
    """State shared by all replicas, or at the stage of the layout itself in groups as there."""
    shard = own.layout.shard if own.layout.zero == stage else 0

    def apply(setting: Setting) -> Setting | str:
        shared = Space.of(msgspec.structs.replace(setting.layout, zero=1)).is_shared[0]
        return _laid(setting, zero=stage, shard=shard) if shared else "each chip holds its weights alone"

    return apply


def _recomputed(level: Recompute) -> Change:
    def apply(setting: Setting) -> Setting | str:
        if level == "selective" and not attention_share(setting.job.model):
            return "no layer has scores"
        return _laid(setting, recompute=level, modules=())

    return apply


def _compressed(name: str) -> Change:
    def apply(setting: Setting) -> Setting | str:
        if float(Space.of(setting.layout).sharers[0]) == 1:
            return "no replica to exchange gradients with"
        plain = setting.framework.sent_bytes(setting.job.value_bytes)
        if wire_bytes(METHODS[name], setting.job.model, plain) >= plain:
            return f"gradients have {8 * plain:g} bits on the wire already"
        return _laid(setting, compression=name)

    return apply
