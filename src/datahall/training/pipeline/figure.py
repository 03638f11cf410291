"""A simulated step as a figure that can be opened: kernels, exchange, bubble and the rest on the heaviest stage."""

from __future__ import annotations

from math import log

from datahall.breakdown import (
    Breakdown,
    assumed,
    derived,
    fitted,
    given,
    product,
    quotient,
    simulated,
    total,
)
from datahall.training.layout.layout import Space
from datahall.training.leaf import exchange_time, of_model, part_of_bandwidth
from datahall.training.memory.offload_figure import offload_figure
from datahall.training.pipeline.execution import Execution
from datahall.training.step.figure import LAYOUT, LayerFigures, layer_figures
from datahall.training.step.step import chip_share, step_band


def step_figure(run: Execution) -> Breakdown:
    """The time of a step with the band of its framework."""
    low, high = step_band(run.job, run.cluster, run.framework)
    parts = _Parts(run).all()
    figure = total("step", parts, f"on stage {run.heaviest}, which has the most work")
    return figure.with_band(low, high, f"{run.framework.title}: {run.framework.fitted_on}").with_note(
        sources=(run.framework.source,)
    )


class _Parts:
    """The parts of a step, each from what it was computed with."""

    def __init__(self, run: Execution) -> None:
        self.run, self.parts = run, run.parts
        self.figures: LayerFigures = layer_figures(run.job, run.cluster, run.layout, run.framework)
        stage, plan = run.heaviest, run.plan
        mine = slice(stage * plan.num_chunks, (stage + 1) * plan.num_chunks)
        self.visits, self.position = plan.num_visits[mine], plan.position[mine]

    def all(self) -> list[Breakdown]:
        """Those that take any time."""
        found = [
            self._kernels(), self._exchange(), self._beside(), self._messages(), self._bubble(), self._data(),
            self._optimizer(), self._offload(), self._fixed(), self._slowest(),
        ]  # fmt: skip
        return [one for one in found if one is not None and one.value]

    def _micro(self) -> Breakdown:
        """Micro-batches of a replica."""
        job, layout = self.run.job, self.run.layout
        at_once = product(
            "sequences at once",
            [
                derived("replicas", layout.dp, "count"),
                derived("micro-batch", layout.micro_batch, "count", LAYOUT),
            ],
            "count",
        )
        return quotient("micro-batches", given("global batch", job.global_batch, "count"), at_once, "count")

    def _passes(self) -> Breakdown:
        """Layers that micro-batches pass through on the stage in a step."""
        run = self.run
        layers = run.stages.layers[self.position]
        name = f"layers of stage {run.heaviest}"
        if bool((self.visits == run.plan.num_micro).all()):
            cut = "cut by hand" if run.layout.split else "cut as evenly as can be, the ends short first"
            held = of_model(run.job.model, name, float(layers.sum()), note=cut)
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
        return simulated("slowed by what runs beside", self.parts.beside_s, "s", how)

    def _messages(self) -> Breakdown | None:
        run = self.run
        if not self.parts.messages_s:
            return None
        count = self.parts.messages_s / run.stages.work.blocked_s
        job, layout, model = run.job, run.layout, run.job.model
        parts = [
            given("tokens of a sequence", job.seq, "count"),
            derived("micro-batch", layout.micro_batch, "count", LAYOUT),
            of_model(model, "hidden width", model.hidden),
            assumed("bytes of a value", 2.0, "bytes", "activations travel in 16 bits"),
        ]
        size = quotient(
            "message",
            product("activations of a micro-batch", parts, "bytes"),
            derived("chips that send a part each", layout.tp * layout.cp, "count"),
            "bytes",
        )
        stride = layout.tp * layout.cp * layout.dp
        alone = exchange_time("one message", size, run.stages.message_s, run.cluster, 2, stride)
        exposed = self._fit("share that nothing hides", run.stages.work.blocked_s / run.stages.message_s)
        sent = simulated(
            "messages of the stage", count, "count", "sent in a step of the schedule", self._micro()
        )
        return product("messages between stages", [sent, alone, exposed], "s")

    def _fit(self, name: str, value: float, unit: str = "fraction") -> Breakdown:
        framework = self.run.framework
        return fitted(name, value, unit, f"runs of {framework.title}", framework.source)

    def _bubble(self) -> Breakdown:
        run = self.run
        how = (
            f"time that the stage stands idle between its work under {run.plan.name}, simulated slot by slot"
        )
        closed = run.closed_parts.bubble_s
        beside = assumed("closed form of the bubble", closed, "s", "equal stages, messages that take no time")
        return simulated("bubble", self.parts.bubble_s, "s", how, *((beside,) if closed else ()))

    def _data(self) -> Breakdown | None:
        run = self.run
        if not self.parts.data_s:
            return None
        space = Space.of(run.layout)
        whole_s = float(run.stages.data_whole_s)
        how = "what neither the framework nor the simulated backward hides"
        if not whole_s:
            return simulated("gradients and parameters", self.parts.data_s, "s", how)
        share = float(chip_share(run.job, space).total[0])
        each = assumed(
            "bytes of a gradient and a parameter", run.framework.gradient_bytes + 2.0, "bytes",
            "a gradient in the framework's format, a 16-bit parameter; less where they are compressed",
        )  # fmt: skip
        values = of_model(run.job.model, "parameters of a chip", share, "parameters")
        whole = exchange_time(
            "all of it, hidden or not", product("moved in a step", [values, each], "bytes"), whole_s,
            run.cluster, float(space.sharers[0]), run.layout.tp,
        )  # fmt: skip
        return simulated("gradients and parameters", self.parts.data_s, "s", how, whole)

    def _optimizer(self) -> Breakdown | None:
        run = self.run
        if not self.parts.optimizer_s:
            return None
        rate = part_of_bandwidth(run.cluster.chip, 0.8, "a streaming update reaches about this share")
        each = self._fit("bytes moved per parameter", run.framework.optimizer_bytes, "bytes")
        owned = self.parts.optimizer_s * rate.value / each.value
        values = of_model(run.job.model, "parameters that the chip updates", owned, "parameters")
        return quotient("optimizer", product("moved", [values, each], "bytes"), rate, "s")

    def _offload(self) -> Breakdown | None:
        run = self.run
        return offload_figure(run.job, run.cluster, run.layout, run.framework, float(run.closed.slot_s[0]))

    def _fixed(self) -> Breakdown:
        return self._fit("once a step", self.parts.fixed_s, "s").with_note("loss, norms, data, host work")

    def _slowest(self) -> Breakdown:
        run, value = self.run, self.parts.slowest_s
        name = "waiting for the slowest rank"
        if run.stragglers.any:
            return simulated(name, value, "s", "slow hosts and jitter drawn for every replica")
        growth = self._fit("growth of a step per factor of e in chips", run.framework.jitter)
        chips = derived("logarithm of the chips", log(max(1, run.cluster.num_chips)), "ratio", "natural")
        share = product("growth of the step", [growth, chips], "fraction")
        return simulated(name, value, "s", "the growth, of all other parts together", share)
