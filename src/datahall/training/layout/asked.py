"""The layout that somebody asks for: what was said, under it what their file says, under that what is usual."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.fabric.design.chips import own_chips
from datahall.scenario.field import fields
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.training import TrainingJob, TrainingLayout
from datahall.scenario.usual import CHIPS_PER_SEQUENCE, USUAL_BATCH, USUAL_PRECISION, USUAL_TUNING_BATCH
from datahall.training.layout.file import LayoutFile, read_layout
from datahall.training.layout.layout import Layout
from datahall.training.layout.order import check_order
from datahall.training.pipeline.table import usual_order

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
    if not _states_dp(asked, file):
        group = layout.tp * layout.pp * layout.cp
        fewest = layout.ep // (layout.tp * layout.cp)
        replicas = fewest if num_chips is None else num_chips // group
        layout = msgspec.structs.replace(layout, dp=max(1, replicas))
    return layout if file is None else file.finished(layout, model)


def _states_dp(asked: TrainingLayout, file: LayoutFile | None) -> bool:
    return asked.dp is not None or (file is not None and file.states_dp)


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


class LaidOut(msgspec.Struct, frozen=True, kw_only=True):
    """A layout that can run, on so many chips, with its global batch and the order of its pipeline's work."""

    layout: Layout
    num_chips: int
    global_batch: int
    schedule: str
    file: LayoutFile | None = None
    fewest: bool = False  # replicas, as few as hold all experts: neither they nor the chips have a number

    @property
    def num_micro(self) -> int:
        """Micro-batches of a replica in a step."""
        return self.layout.num_micro(self.global_batch)


def laid_out(scenario: Scenario) -> LaidOut:
    """The layout that a scenario asks for, put together; whether it can run, `check_laid_out` says."""
    asked, job, design = (
        scenario.one(TrainingLayout),
        scenario.one(TrainingJob),
        scenario.one(FabricDesign),
    )
    model, file = scenario.model(), read_layout(asked.file) if asked.file else None
    chips = design.chips
    if chips is None and not _states_dp(asked, file):
        chips = own_chips(design, scenario.catalog)
    layout = layout_of(asked, model, file=file, num_chips=chips)
    return LaidOut(
        layout=layout,
        num_chips=chips or layout.num_chips,
        global_batch=_stated_batch(job, file, layout)
        or usual_batch(chips or layout.num_chips, layout, tunes=job.lora is not None),
        schedule=asked.schedule or usual_order(layout.vpp),
        file=file,
        fewest=chips is None and not _states_dp(asked, file),
    )


def check_laid_out(scenario: Scenario, laid: LaidOut) -> None:
    """Refuse a layout that cannot run, with the rule that it breaks.

    The one legality of every verb; it loads no array, so that a wrong layout is refused at once.
    """
    layout = laid.layout
    # a batch that nobody stated follows the layout: other degrees may be proposed with whatever divides then
    stated = _stated_batch(scenario.one(TrainingJob), laid.file, layout)
    layout.check(scenario.model(), laid.num_chips, stated)
    check_order(laid.schedule, num_stages=layout.pp, num_micro=laid.num_micro, num_chunks=layout.vpp)


def precision_of(job: TrainingJob, file: LayoutFile | None) -> str:
    """The number format that is trained in."""
    return job.precision or (file.precision if file is not None else "") or USUAL_PRECISION


def said_precision(scenario: Scenario) -> str:
    """The number format of a scenario: as said, as its layout file says, or the usual."""
    path = scenario.one(TrainingLayout).file
    return precision_of(scenario.one(TrainingJob), read_layout(path) if path else None)


def _stated_batch(job: TrainingJob, file: LayoutFile | None, layout: Layout) -> int:
    """The global batch that somebody or their layout file states, or 0."""
    return job.global_batch or (_batch_of_file(file, layout) if file is not None else 0)


def _batch_of_file(file: LayoutFile, layout: Layout) -> int:
    """The global batch that a layout file states, or 0."""
    return file.global_batch or file.accumulation * layout.dp * layout.micro_batch


def usual_batch(num_chips: int, layout: Layout | None = None, *, tunes: bool = False) -> int:
    """The global batch where nobody says one, of every verb that trains.

        batch = max(1,024 or of adapters 8, chips / 16), with a layout rounded up to what its replicas and chunks divide

    Llama 3 405B had a sequence for 8 of its 16,384 chips: with more chips a batch grows, or they have nothing to do.

    >>> usual_batch(64), usual_batch(32768), usual_batch(32, Layout(tp=8, dp=4)), usual_batch(24, Layout(tp=8, dp=3))
    (1024, 2048, 1024, 1026)
    """
    least = max(USUAL_TUNING_BATCH if tunes else USUAL_BATCH, num_chips // CHIPS_PER_SEQUENCE)
    if layout is None:
        return least
    unit = layout.dp * layout.micro_batch * (layout.pp if layout.vpp > 1 else 1)
    return -(-least // unit) * unit
