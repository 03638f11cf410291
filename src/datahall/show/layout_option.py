"""A layout from options and, under them, from a file that somebody already has."""

from __future__ import annotations

import msgspec

from datahall.catalog.model import Model
from datahall.errors import ScenarioError
from datahall.show.bounds import whole
from datahall.training.layout import RECOMPUTES, Layout
from datahall.training.layout_file import LayoutFile, read_layout

DEGREES = ("tp", "pp", "vpp", "cp", "ep", "dp", "zero", "micro_batch")


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
    recompute: str | None,
    precision: str | None,
    layout_file: str,
) -> Asked:
    """Read options; what is not given comes from the file, then from what is usual; the layout is checked."""
    file = read_layout(layout_file) if layout_file else None
    layout = _layout(file, degrees, recompute)
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
    layout.check(model, num_chips, batch)
    return Asked(
        layout=layout,
        num_chips=num_chips,
        seq=length,
        global_batch=batch,
        precision=precision or (file.precision if file and file.precision else "bf16"),
        file=file,
    )


def _layout(file: LayoutFile | None, degrees: dict[str, str | int | None], recompute: str | None) -> Layout:
    layout = file.layout if file is not None else Layout()
    given = {
        name: whole(name.replace("_", "-"), value, at_least=0 if name == "zero" else 1)
        for name, value in degrees.items()
        if value is not None
    }
    if given.get("zero", 0) > 3:
        raise ScenarioError(f"--zero is {given['zero']}; it must be 0, 1, 2 or 3")
    if recompute is not None and recompute not in RECOMPUTES:
        raise ScenarioError(f'--recompute is "{recompute}"', hint=f"one of {', '.join(RECOMPUTES)}")
    changed = msgspec.structs.replace(layout, **given)
    return changed if recompute is None else msgspec.structs.replace(changed, recompute=recompute)
