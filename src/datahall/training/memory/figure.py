"""Memory of one chip of a stage as a figure that can be opened: state, activations, the moment at work, the rest.

memory = (state + activations + at work + buffers) · (1 + slack) + communicators + context
"""

from __future__ import annotations

import numpy as np

from datahall.breakdown import Breakdown, assumed, given, maximum, minimum, modelled, product, quotient, total
from datahall.catalog.entries.model import Layer
from datahall.training.adapters.figure import TunedFigures
from datahall.training.layout.columns import Space
from datahall.training.leaf import Degrees, block_widths, counted, dimension, expert_widths, tables
from datahall.training.memory.bookkeeping import LOGGED, USUAL, Bookkeeping
from datahall.training.memory.peak import StageMemory, num_groups, table_values, unit_parameters
from datahall.training.memory.tensors import kept_tensors
from datahall.training.pipeline.table import order_of
from datahall.training.step.compression import kept_column
from datahall.training.step.shard import ShardBytes, placeholder_values, shard_bytes
from datahall.training.step.stage import num_tables
from datahall.training.step.step import Job
from datahall.workload.parameters import layer_parameters

ZERO_FROM = {"weights": 3, "gradients": 2, "optimizer states": 1}  # ZeRO stage that spreads each


def memory_figure(
    job: Job, degrees: Degrees, stage: StageMemory, books: Bookkeeping, schedule: str, name: str
) -> Breakdown:
    """What takes the memory of a chip of a stage, down to the model's dimensions and the recipe of the state."""
    made = _Stage(job, degrees, stage, books, schedule)
    allocated = total("allocated at the peak", made.parts())
    slack = assumed(
        "with what the allocator holds back",
        1.0 + books.slack_fraction,
        "ratio",
        "reserved over allocated",
        LOGGED,
    )
    reserved = product("reserved by the allocator", [allocated, slack], "bytes")
    return total(name, [reserved, made.outside()])


def updated_figure(books: Bookkeeping) -> Breakdown:
    """What the update of one parameter reads and writes."""
    recipe, why = books.recipe, f"state recipe {books.state or 'of the framework'}"
    both = assumed("ways", 2, "count", "read and written")
    parts = [assumed("gradient", recipe.gradient, "bytes", f"{why}, read")]
    if recipe.optimizer:
        states = assumed("states of a parameter", recipe.optimizer, "bytes", why)
        parts.append(product("optimizer states", [both, states], "bytes"))
    weight = assumed("weight", recipe.weight, "bytes", f"{why}, written")
    if not recipe.master:
        weight = product("weight", [both, weight.named("bytes of it").with_note(why)], "bytes")
    return total("moved for a parameter", [*parts, weight])


class _Stage:
    """What the parts of a stage's memory are made from."""

    def __init__(
        self, job: Job, degrees: Degrees, stage: StageMemory, books: Bookkeeping, schedule: str
    ) -> None:
        self.job, self.degrees, self.stage, self.books, self.schedule = job, degrees, stage, books, schedule
        self.layout = degrees.layout
        self.space = Space.of(self.layout)
        self.shards: ShardBytes = shard_bytes(job, self.space, books)
        self.recipe = books.state or "of the framework"

    def parts(self) -> list[Breakdown]:
        """Everything that the allocator sees."""
        memory = self.stage.memory
        found = [*self._states(), self._activations(), self._working()]
        names = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes", "working_bytes")
        values = [float(getattr(memory, name)[0]) for name in names]
        if self.books.frees_gradients:  # the fuller of two moments of a step with one micro-batch
            found = [
                one if np.isclose(one.value, value, rtol=1e-9) else self._moment(one.name, value)
                for one, value in zip(found, values, strict=True)
            ]
        return [one for one in (*found, self._buffers()) if one.value]

    def _moment(self, name: str, value: float) -> Breakdown:
        why = "at the fuller of two moments: the loss, when no gradient exists, or the end of backward, when all do"
        return assumed(name, value, "bytes", why, LOGGED)

    def _states(self) -> list[Breakdown]:
        """Weights, gradients and optimizer states."""
        if self.job.adapters is None:
            return [self._weights(), self._gradients(), self._optimizer()]
        rows = float(table_values(self.job.model, self.space, self.books)[0])
        tuned = TunedFigures(self.job, self.degrees, self.stage.run, self.books, rows, self.schedule)
        return [tuned.weights(), tuned.gradients(), tuned.optimizer()]

    # -- state -----------------------------------------------------------------------------------------------------

    def _dense(self) -> Breakdown:
        """Parameters on the chip besides routed experts."""
        model, run = self.job.model, self.stage.run
        parts = []
        if run.layers:
            sharded = [self._per_layer(kind, count, "sharded") for kind, count in run.layers]
            split = total("of its layers, split", sharded)
            parts.append(
                quotient("split over tensor parallelism", split, self.degrees.number("tp"), "parameters")
            )
        parts += [self._per_layer(kind, count, "replicated") for kind, count in run.layers]
        if count := float(num_tables(model, self.space, run)[0]):
            rows = float(table_values(model, self.space, self.books)[0])
            each = self._table("values of a table on the chip", rows)
            parts.append(product("tables", [assumed("token table and head", count, "count", "at the ends"), each],
                                 "parameters"))  # fmt: skip
        return self._twice(total("dense parameters", [one for one in parts if one.value]))

    def _per_layer(self, kind: Layer, count: int, way: str) -> Breakdown:
        model = self.job.model
        each = counted(
            model, f"{way} parameters of a layer", float(getattr(layer_parameters(model, kind), way)), "parameters",
            f"{kind.mixer} attention, {kind.mlp} MLP" if kind.mixer != "none" else kind.mlp,
            *(expert_widths(model) if way == "expert" else block_widths(model)),
        )  # fmt: skip
        return product(f"{way}, {kind.mlp} layers", [self._layers(count), each], "parameters")

    def _layers(self, count: int) -> Breakdown:
        """Layers of a kind on the stage."""
        layers = dimension(self.job.model, "num_layers", "layers")
        stages = self.degrees.number("stages")
        how = "cut by hand" if self.layout.split else "as the pipeline is cut"
        return modelled("layers of the stage", count, "count", how, layers, stages)

    def _counted(self, name: str, value: float, how: str) -> Breakdown:
        """Bytes that are counted over tensors of the model."""
        return counted(
            self.job.model, name, value, "bytes", how, *self._sizes(), *block_widths(self.job.model)
        )

    def _weighed(self, name: str, value: float) -> Breakdown:
        """Parameters that are counted over weights of the stage."""
        model, tp = self.job.model, self.degrees.number("tp")
        widths = [dimension(model, "vocab", "vocabulary"), *block_widths(model)]
        if model.moe is not None:
            widths += [*expert_widths(model), self.degrees.expert_ways()]
        return counted(model, name, value, "parameters", "of the stage", *widths, tp)

    def _table(self, name: str, value: float) -> Breakdown:
        how, tp = "vocabulary, padded, × hidden", self.degrees.number("tp")
        return tables(self.job.model, name, value, "parameters", how, tp)

    def _sizes(self) -> list[Breakdown]:
        return [
            given("tokens of a sequence", self.job.seq, "count", field="seq"),
            self.degrees.number("micro-batch"),
            self.degrees.number("tp"),
        ]

    def _expert(self) -> Breakdown | None:
        """Parameters of routed experts on the chip."""
        run = self.stage.run
        kinds = [self._per_layer(kind, count, "expert") for kind, count in run.layers if kind.mlp == "moe"]
        if not kinds:
            return None
        ways = self.degrees.expert_ways()
        whole = total("of its layers, routed", kinds)
        return self._twice(quotient("expert parameters", whole, ways, "parameters"))

    def _twice(self, held: Breakdown) -> Breakdown:
        order = order_of(self.schedule)
        if order.num_copies == 1:
            return held
        why = f"{order.title} runs both directions, so a chip holds two stages"
        copies = assumed("stages of a chip", order.num_copies, "count", why)
        return product(held.name, [copies, held], "parameters")

    def _whole(self) -> Breakdown:
        expert = self._expert()
        return self._dense() if expert is None else total("parameters of the chip", [self._dense(), expert])

    def _state(self, name: str, each: float) -> Breakdown:
        """One part of the state under ZeRO."""
        spread = self.layout.zero >= ZERO_FROM[name]
        bytes_each = assumed("bytes of a parameter", each, "bytes", f"state recipe {self.recipe}")
        parts = []
        for held, sharers in (
            (self._dense(), self.degrees.sharers),
            (self._expert(), self.degrees.expert_sharers),
        ):
            if held is not None and held.value:
                share = held
                if spread:
                    ranks = sharers("ranks that share it")
                    share = quotient(f"share of {held.name}", held, ranks, "parameters")
                parts.append(product(f"{name}, {held.name.partition(' ')[0]}", [share, bytes_each], "bytes"))
        return parts[0].named(name) if len(parts) == 1 else total(name, parts)

    def _gathered(self) -> Breakdown:
        """Whole weights, as they are multiplied, of the layers at hand: two units of what is gathered at once."""
        copy = assumed("bytes of a copy", self.job.value_bytes, "bytes", self.job.value_width)
        unit = float(unit_parameters(self.job.model, self.space, self.stage.run, self.books)[0])
        largest = self._weighed("parameters of the largest layer or table", unit)
        ahead = assumed("units at hand", 2.0, "count", "the one at work and the one fetched ahead")
        least = [
            product("all weights", [self._whole(), copy], "bytes"),
            product("two units", [largest, ahead, copy], "bytes"),
        ]
        return minimum("gathered", least)

    def _weights(self) -> Breakdown:
        recipe, layout = self.books.recipe, self.layout
        found = self._state("weights", recipe.weight)
        if layout.zero >= 3 and self.space.sharers[0] > 1:
            found = total("weights", [found.named("own share"), self._gathered()])
        if self.space.offloaded("parameters")[0]:
            found = minimum("weights", [found.named("all of them"), self._gathered()])
        return self._capped("weights", found, recipe.with_copies(self.job.value_bytes))

    def _capped(self, name: str, found: Breakdown, most: float) -> Breakdown:
        """No more than the whole state of the chip."""
        if self.layout.zero < 2 and not self.space.offloaded("parameters")[0]:
            return found
        cap = assumed("most bytes of a parameter", most, "bytes", "never more than all of it")
        return minimum(name, [found.named("spread, with what is gathered"),
                              product("unspread", [self._whole(), cap], "bytes")])  # fmt: skip

    def _gradients(self) -> Breakdown:
        recipe, books = self.books.recipe, self.books
        found = self._state("gradients", recipe.gradient)
        if self.layout.zero >= 2 and self.space.sharers[0] > 1:
            unit = float(unit_parameters(self.job.model, self.space, self.stage.run, books)[0])
            each = assumed("bytes of a gradient", recipe.gradient, "bytes", f"state recipe {self.recipe}")
            bucket = minimum(
                "gradients in hand",
                [
                    self._whole(), self._weighed("largest layer or table", unit),
                    assumed("bucket", books.bucket_values, "parameters", "DeepSpeed's reduce_bucket_size"),
                ],
            )  # fmt: skip
            found = total(
                "gradients", [found.named("own share"), product("not yet spread", [bucket, each], "bytes")]
            )
        found = self._capped("gradients", found, recipe.gradient)
        if error := float(kept_column(self.space.compression)[0]):
            fed_back = assumed(
                "bytes of an error", error, "bytes", "what compression feeds back in the next step"
            )
            kept = product("error of compression", [self._whole(), fed_back], "bytes")
            found = total("gradients", [found.named("gradients themselves"), kept])
        return found

    def _optimizer(self) -> Breakdown:
        if self.space.offloaded("optimizer")[0]:
            return assumed("optimizer states", 0.0, "bytes", "they lie outside the chip")
        return self._state("optimizer states", self.books.recipe.optimizer)

    # -- activations -----------------------------------------------------------------------------------------------

    def _tokens(self) -> Breakdown:
        job, layout = self.job, self.layout
        whole = product(
            "tokens of a micro-batch",
            [
                given("tokens of a sequence", job.seq, "count", field="seq"),
                self.degrees.number("micro-batch"),
            ],
            "count",
        )
        if layout.cp == 1:
            return whole
        return quotient(
            "tokens on a chip", whole, self.degrees.number("chips that share a sequence"), "count"
        )

    def _layer(self, kind: Layer) -> Breakdown:
        """What one layer keeps of one micro-batch."""
        model, why = self.job.model, "format in which the framework keeps it"
        per_token = self.job.seq * self.layout.micro_batch / self.layout.cp
        tensors = [
            product(
                one.name.replace("_", " "),
                [
                    counted(
                        model,
                        "values of a token on the chip",
                        one.size_bytes / per_token / one.value_bytes,
                        "count",
                        "of this tensor, as it is split",
                        self.degrees.number("tp"),
                    ),
                    assumed("bytes of a value", one.value_bytes, "bytes", why),
                ],
                "bytes",
            )
            for one in kept_tensors(self.job, self.layout, kind, self.books)
        ]
        kept = total("kept of a token", tensors)
        return product(f"kept by a {kind.mlp} layer", [self._tokens(), kept], "bytes")

    def _activations(self) -> Breakdown:
        run, stage = self.stage.run, self.stage
        kinds = [
            product(f"{kind.mlp} layers", [self._layers(count), self._layer(kind)],
                    "bytes")
            for kind, count in run.layers
        ]  # fmt: skip
        if not kinds:
            return assumed("activations", 0.0, "bytes", "the stage has no layers")
        flight = modelled(
            "micro-batches in flight",
            stage.num_in_flight,
            "count",
            f"closed form of {self.schedule} at stage {run.first}",
            self.degrees.number("stages"),
            self.degrees.number("chunks of a stage"),
        )
        held = product("activations", [flight, total("kept of one micro-batch", kinds)], "bytes")
        if not self.space.offloaded("activations")[0]:
            return held
        near = product(
            "two layers",
            [
                assumed("layers at hand", 2.0, "count", "one on its way and the one at work"),
                maximum("the largest layer", [self._layer(kind) for kind, _ in run.layers]),
            ],
            "bytes",
        )
        return minimum("activations", [held.named("all in flight"), near])

    # -- at work, buffers and what the allocator does not see ----------------------------------------------------------

    def _working(self) -> Breakdown:
        moments = []
        for kind, _ in self.stage.run.layers:
            redone = float(self.shards.redone[kind][0])
            hand = float(self.shards.in_hand[kind][0])
            parts = [self._counted("gradients and gathered inputs in hand", hand, "at its widest moment")]
            if redone:
                parts.append(self._counted("brought back by recomputation", redone, "when backward comes"))
            if wide := float(self.shards.widened[kind][0]):
                parts.append(
                    self._counted("copy of a weight", wide, "the largest, brought from NF4 to be multiplied")
                )
            moments.append(total(f"backward of a {kind.mlp} layer", parts))
        if self.stage.holds_head:
            moments += self._head()
        if not moments:
            return assumed("loss and layer at work", 0.0, "bytes", "the stage has no layers")
        return maximum("loss and layer at work", moments)

    def _head(self) -> list[Breakdown]:
        model, kind = self.job.model, f"{self.books.loss} cross-entropy"
        sizes, at_loss, at_head = self._sizes(), float(self.shards.at_loss[0]), float(self.shards.at_head[0])
        loss = tables(model, "loss, forward", at_loss, "bytes", kind, *sizes)
        backward = tables(model, "head, backward", at_head, "bytes", "logits and stream", *sizes)
        if not self.books.placeholders or self.job.adapters is not None:
            return [loss, backward]
        values = float(table_values(model, self.space, self.books)[0])
        copy = product(
            "gradient of the head",
            [
                self._table("values of the head", values),
                self._copy(),
            ],
            "bytes",
        )
        return [loss, total("head at work", [backward, copy])]

    def _copy(self) -> Breakdown:
        return assumed("bytes of a copy", self.job.value_bytes, "bytes", "as it leaves a kernel", LOGGED)

    def _buffers(self) -> Breakdown:
        books = self.books
        held = books.buffers(self.job.value_bytes)
        workspace = assumed("library workspaces", held, "bytes", "cuBLAS, buckets", LOGGED)
        if not books.placeholders or self.job.adapters is not None:
            return total("buffers", [workspace])
        values = placeholder_values(self.job.model, tuple(kind for kind, _ in self.stage.run.layers))
        shapes = counted(
            self.job.model,
            "values of one weight of each shape",
            values,
            "parameters",
            "of the layers of the stage",
            *block_widths(self.job.model),
        )
        share = quotient("on the chip", shapes, self.degrees.number("tp"), "parameters")
        return total("buffers", [product("gradient placeholders", [share, self._copy()], "bytes"), workspace])

    def outside(self) -> Breakdown:
        """What the allocator does not see."""
        books = self.books
        context = assumed("context of the driver", books.context_bytes, "bytes", "with loaded kernels", USUAL)
        groups = float(num_groups(self.space)[0])
        each = assumed("buffers of a communicator", books.group_bytes, "bytes", "NCCL", USUAL)
        ways = [self.degrees.number(name) for name in ("tp", "stages", "cp", "expert ranks")]
        kinds = [one for one in (*ways, self.degrees.replicas()) if one.value > 1]
        how = "kinds of parallelism with more than one rank, and what they share"
        used = modelled(
            "groups with more than one rank", groups, "count", how, *(kinds or [self.degrees.replicas()])
        )
        return total("communicators and context", [product("communicators", [used, each], "bytes"), context])
