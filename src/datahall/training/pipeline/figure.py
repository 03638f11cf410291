"""A simulated step as a figure that can be opened: kernels, exchange, bubble and the rest on the heaviest stage."""

from __future__ import annotations

from math import log

from datahall.breakdown import (
    Breakdown,
    ceiling,
    derived,
    fitted,
    given,
    modelled,
    product,
    quotient,
    simulated,
    total,
)
from datahall.training.leaf import Degrees, dimension, part_of_bandwidth
from datahall.training.memory.figure import updated_figure
from datahall.training.memory.offload_figure import offload_figure
from datahall.training.pipeline.execution import Execution
from datahall.training.step.exchange_figure import ExchangeFigures
from datahall.training.step.figure import LayerFigures, layer_figures
from datahall.training.step.passes import STREAM_SHARE
from datahall.training.step.step import step_band

OTHERS = "all other parts"


def step_figure(run: Execution, degrees: Degrees | None = None) -> Breakdown:
    """The time of a step with the band of its framework; a layout that was planned is a decision in it."""
    low, high = step_band(run.job, run.cluster, run.framework)
    parts = _Parts(run, degrees or Degrees(run.layout)).all()
    figure = total("step", parts, f"on stage {run.heaviest}, which has the most work")
    return figure.with_band(low, high, f"{run.framework.title}: {run.framework.fitted_on}").with_note(
        sources=(run.framework.source,)
    )


def steps_figure(run: Execution, num_tokens: float, degrees: Degrees | None = None) -> Breakdown:
    """The time of all steps in which so many tokens are trained on, whole ones, with the band of a step."""
    job, degrees = run.job, degrees or Degrees(run.layout)
    once = product(
        "tokens of a step",
        [degrees.batch(job.global_batch), given("tokens of a sequence", job.seq, "count", field="seq")],
        "tokens",
    )
    steps = ceiling(
        "steps",
        quotient("steps, exactly", given("tokens", num_tokens, "tokens", field="tokens"), once, "count"),
    )
    return product("time of the steps", [steps, step_figure(run, degrees)], "s")


class _Parts:
    """The parts of a step, each from what it was computed with."""

    def __init__(self, run: Execution, degrees: Degrees) -> None:
        self.run, self.parts, self.degrees = run, run.parts, degrees
        self.figures: LayerFigures = layer_figures(run.job, run.cluster, run.layout, run.framework, degrees)
        self.exchange = ExchangeFigures(run.job, run.cluster, run.layout, run.framework, degrees)
        stage, plan = run.heaviest, run.plan
        mine = slice(stage * plan.num_chunks, (stage + 1) * plan.num_chunks)
        self.visits, self.position = plan.num_visits[mine], plan.position[mine]

    def all(self) -> list[Breakdown]:
        """Those that take any time."""
        found = [
            self._kernels(), self._exchange(), self._beside(), self._messages(), self._bubble(), self._data(),
            self._optimizer(), self._offload(), self._fixed(),
        ]  # fmt: skip
        others = [one for one in found if one is not None and one.value]
        slowest = self._slowest(sum(one.value for one in others))
        return [*others, slowest] if slowest.value else others

    def _micro(self) -> Breakdown:
        """Micro-batches of a replica."""
        return self.degrees.micro_batches(self.run.job.global_batch)

    def _passes(self) -> Breakdown:
        """Layers that micro-batches pass through on the stage in a step."""
        run = self.run
        layers = run.stages.layers[self.position]
        name = f"layers of stage {run.heaviest}"
        if bool((self.visits == run.plan.num_micro).all()):
            cut = "cut by hand" if run.layout.split else "cut as evenly as can be, the ends short first"
            stages = self.degrees.number("stages")
            every = dimension(run.job.model, "num_layers", "layers")
            held = modelled(name, float(layers.sum()), "count", cut, every, stages)
            return product("layers passed in a step", [self._micro(), held], "count")
        passed = float((self.visits * layers).sum())
        how = f"{run.plan.name} sends micro-batches through it from both ends"
        return simulated("layers passed in a step", passed, "count", how, self._micro())

    def _end(self, part: int) -> float:
        return float((self.visits * (self.position == part)).sum())

    def _kernels(self) -> Breakdown:
        found = [product("in its layers", [self._passes(), self.figures.layer], "s")]
        for name, part, figure in (
            ("before the first layer", 0, self.figures.embedding),
            ("after the last layer", self.run.plan.num_parts - 1, self.figures.head),
        ):
            if times := self._end(part):
                visits = simulated(
                    "micro-batches there", times, "count", "visits in the schedule", self._micro()
                )
                found.append(product(name, [visits, figure], "s"))
        return total("kernels", found)

    def _exchange(self) -> Breakdown | None:
        if self.figures.exchange is None:
            return None
        return product("tensor and expert exchange", [self._passes(), self.figures.exchange], "s")

    def _beside(self) -> Breakdown:
        how = "kernels of the stage take longer while gradients and parameters move beside them, or wait for the host"
        gathered_s = self.run.stages.gathered_s
        parts = (self._micro(), self._gathered()) if gathered_s else ()
        return simulated("what runs beside the kernels", self.parts.beside_s, "s", how, *parts)

    def _gathered(self) -> Breakdown:
        """What fully sharded parameters move for one micro-batch."""
        every = [
            each
            for reduced, gathered in self.exchange.halves()
            for each in (gathered, gathered.named(f"{gathered.name}, again backward"), reduced)
        ]
        return total("sharded parameters and gradients of a micro-batch", every)

    def _messages(self) -> Breakdown | None:
        run = self.run
        if not self.parts.messages_s:
            return None
        exposed = self._fit("share that nothing hides", run.framework.pipeline_exposed)
        count, how = run.num_messages(run.heaviest), "sent in a step of the schedule"
        sent = simulated("messages of the stage", count, "count", how, self._micro())
        return product("messages between stages", [sent, self.exchange.message(), exposed], "s")

    def _fit(self, name: str, value: float, unit: str = "fraction") -> Breakdown:
        framework = self.run.framework
        return fitted(name, value, unit, f"runs of {framework.title}", framework.source)

    def _bubble(self) -> Breakdown:
        run = self.run
        how = (
            f"time that the stage stands idle between its work under {run.plan.name}, simulated slot by slot"
        )
        closed = run.closed_parts.bubble_s
        form = "equal stages; messages where few micro-batches are on their way to the last one and back"
        stages = self.degrees.number("stages")
        chunks = self.degrees.number("chunks of a stage")
        beside = modelled("closed form of the bubble", closed, "s", form, stages, chunks, self._micro())
        return simulated("bubble", self.parts.bubble_s, "s", how, *((beside,) if closed else ()))

    def _data(self) -> Breakdown | None:
        if not self.parts.data_s:
            return None
        how = "what neither the framework nor the simulated backward hides"
        whole = self.exchange.gradients()
        return simulated(
            "gradients and parameters", self.parts.data_s, "s", how, *((whole,) if whole else ())
        )

    def _optimizer(self) -> Breakdown | None:
        run = self.run
        if not self.parts.optimizer_s:
            return None
        rate = part_of_bandwidth(
            run.cluster.chip, STREAM_SHARE, "a streaming update reaches about this share"
        )
        moved = [self.exchange.owned(), updated_figure(run.job.books(run.framework))]
        if run.plan.num_copies > 1:
            how = f"{run.plan.name} sends micro-batches through it from both ends"
            moved.append(derived("parts that a stage holds", run.plan.num_copies, "count", note=how))
        return quotient("optimizer", product("gradients and states moved", moved, "bytes"), rate, "s")

    def _offload(self) -> Breakdown | None:
        run = self.run
        return offload_figure(run.job, run.cluster, self.degrees, run.framework, run.stages.slot_s)

    def _fixed(self) -> Breakdown:
        return self._fit("once a step", self.parts.fixed_s, "s").with_note("loss, norms, data, host work")

    def _slowest(self, others_s: float) -> Breakdown:
        run = self.run
        name = "waiting for the slowest rank"
        if run.stragglers.any:
            return simulated(name, self.parts.slowest_s, "s", "slow hosts and jitter drawn for every replica")
        growth = self._fit("growth of a step per factor of e in chips", run.framework.jitter)
        every = self.degrees.chips()
        chips = modelled("logarithm of the chips", log(every.value), "ratio", "natural", every)
        share = product("growth of the step", [growth, chips], "fraction")
        return product(
            name, [share, derived(OTHERS, others_s, "s", "of the step, as they stand beside")], "s"
        )
