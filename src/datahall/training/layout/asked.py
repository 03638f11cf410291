"""The layout that somebody asks for: what was said, under it what their file says, under that what is usual."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import fields
from datahall.scenario.kinds import Plain
from datahall.scenario.sections.training import TrainingLayout
from datahall.training.layout.file import LayoutFile
from datahall.training.layout.layout import Layout

# attributes of a layout that are inputs, with their names: drawn from the declaration
INPUTS = {one.attribute: one.name for one in fields("layout") if one.attribute in Layout.__struct_fields__}


def layout_inputs(layout: Layout, than: Layout | None = None) -> dict[str, Plain | None]:
    """What of a layout differs from another, by default from the usual one, as inputs of a question.

    Data parallelism is left out: it takes the chips left over.
    """
    other = than or Layout()
    found: dict[str, Plain | None] = {}
    for attribute, name in INPUTS.items():
        value = getattr(layout, attribute)
        if attribute != "dp" and value != getattr(other, attribute):
            found[name] = (list(value) or None) if isinstance(value, tuple) else value
    return found


def layout_of(
    asked: TrainingLayout, model: Model, *, file: LayoutFile | None = None, num_chips: int | None = None
) -> Layout:
    """The layout on so many chips; without their number, on as few as its degrees need.

    Data parallelism that neither was said nor stands in the file takes the chips left over.
    """
    layout = named_layout(file.layout if file is not None else Layout(), asked)
    if asked.dp is None and not (file is not None and file.states_dp):
        group = layout.tp * layout.pp * layout.cp
        fewest = layout.ep // (layout.tp * layout.cp)
        replicas = fewest if num_chips is None else num_chips // group
        layout = msgspec.structs.replace(layout, dp=max(1, replicas))
    return layout if file is None else file.finished(layout, model)


def named_layout(layout: Layout, asked: TrainingLayout) -> Layout:
    """A layout with what was said in place of its own.

    >>> named_layout(Layout(tp=8, zero=0), TrainingLayout(tp=4, modules=("mlp",))).words
    'tp 4, mb 1, recompute mlp'
    """
    said = {name: getattr(asked, name) for name in INPUTS}
    given = {name: value for name, value in said.items() if value not in (None, ())}
    if "modules" in given:
        if given.get("recompute") in ("none", "full"):
            raise ScenarioError(
                f"{option('modules')} beside {option('recompute', given['recompute'])}", field="modules",
                hint=f"modules are recomputed one by one: {option('recompute', 'selective')}, or leave one of them out",
            )  # fmt: skip
        given["recompute"] = "selective"
    elif "recompute" in given:
        given["modules"] = ()
    return msgspec.structs.replace(layout, **given)
