"""A layout from options and, under them, from a file that somebody already has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from datahall.answers.bounds import whole
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, nearest
from datahall.scenario.words import OFFLOADS, RECOMPUTES, TIERS
from datahall.training.layout.codes import offload_parts
from datahall.training.layout.file import LayoutFile, read_layout
from datahall.training.layout.layout import Layout

MOST = 2**20  # of any degree


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The run that options and file describe together."""

    layout: Layout
    num_chips: int
    seq: int
    global_batch: int
    precision: str
    file: LayoutFile | None


def asked_layout(
    model: Model,
    degrees: dict[str, str | int | None],
    *,
    chips: str | int | None,
    seq: str | int | None,
    global_batch: str | int | None,
    words: Mapping[str, str | None],
    precision: str | None,
    layout_file: str,
) -> Asked:
    """Read options; what is not given comes from the file, then from what is usual; the layout is checked."""
    file = read_layout(layout_file) if layout_file else None
    layout = named_layout(file.layout if file is not None else Layout(), degrees, words)
    group = layout.tp * layout.pp * layout.cp
    if chips is not None:
        num_chips = whole("chips", chips)
        if degrees.get("dp") is None and not (file and file.states_dp):
            layout = msgspec.structs.replace(layout, dp=max(1, num_chips // group))
    else:
        if degrees.get("dp") is None and not (file and file.states_dp):
            layout = msgspec.structs.replace(layout, dp=max(1, layout.ep // (layout.tp * layout.cp)))
        num_chips = layout.num_chips
    usual = layout.dp * layout.micro_batch * (4 * layout.pp if layout.pp > 1 else 1)
    stated = (file.global_batch or file.accumulation * layout.dp * layout.micro_batch) if file else 0
    batch = whole("global-batch", global_batch) if global_batch is not None else stated or usual
    length = whole("seq", seq) if seq is not None else (file.seq if file and file.seq else 4096)
    layout = file.finished(layout, model) if file is not None else layout
    layout.check(model, num_chips, batch)
    return Asked(
        layout=layout,
        num_chips=num_chips,
        seq=length,
        global_batch=batch,
        precision=precision or (file.precision if file and file.precision else "bf16"),
        file=file,
    )


def named_layout(
    layout: Layout, degrees: Mapping[str, str | int | None], words: Mapping[str, str | None]
) -> Layout:
    """A layout with what options name in place of its own."""
    given: dict[str, object] = {
        name: whole(
            name.replace("_", "-"),
            value,
            at_least=0 if name in ("zero", "etp", "shard") else 1,
            at_most=3 if name == "zero" else MOST,
        )
        for name, value in degrees.items()
        if value is not None
    }
    said = {name: text for name, text in words.items() if text}
    recompute = said.get("recompute")
    if recompute is not None and recompute not in RECOMPUTES:
        raise ScenarioError(f'--recompute is "{recompute}"', hint=f"one of {', '.join(RECOMPUTES)}")
    given |= {name: said[name] for name in ("recompute", "context", "compression") if name in said}
    if "modules" in said:
        given["modules"] = tuple(_listed(said["modules"]))
        given["recompute"] = "selective" if given.get("recompute", "none") == "none" else given["recompute"]
    elif "recompute" in given:
        given["modules"] = ()
    if "offload" in said:
        given["offload"] = read_offload(said["offload"])
    if "split" in said:
        given["split"] = _numbers(said["split"])
    return msgspec.structs.replace(layout, **given)


def _listed(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def read_offload(text: str) -> tuple[str, ...]:
    """What is to leave a chip's memory, e.g. "optimizer:nvme,activations"; unknown words are an error."""
    found = tuple(_listed(text))
    for what, tier in map(offload_parts, found):
        for word, known in ((what, OFFLOADS), (tier, TIERS)):
            if word not in known:
                close = nearest(word, known, 1)
                guess = f"did you mean {close[0]}? " if close else ""
                raise ScenarioError(
                    f'--offload: "{word}" cannot be read', hint=f"{guess}one of {', '.join(known)}"
                )
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Layers of stages, e.g. "3 4 4 4" or "3,4x3"."""
    found: list[int] = []
    for word in _listed(text):
        layers, _, times = word.replace("×", "x").partition("x")
        if not layers.isdigit() or (times and not times.isdigit()):
            raise ScenarioError(
                f'--split: "{word}" is no number of layers', hint='e.g. --split "3 4 4 4", or "3,4x3"'
            )
        found += [int(layers)] * int(times or 1)
    return tuple(found)
