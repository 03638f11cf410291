"""Leaves of training's figures: dimensions of a model, facts of a chip, degrees of a layout, and what is counted."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from datahall.breakdown import (
    Breakdown,
    assumed,
    chosen,
    derived,
    fact,
    given,
    maximum,
    minimum,
    modelled,
    product,
    quotient,
    total,
)
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import unit_for
from datahall.scenario.usual import BATCH_WHERE_UNSAID
from datahall.training.layout.asked import usual_batch
from datahall.training.layout.layout import Layout

# what an input is called in a figure of training, where it has another name there
DEGREES = {
    "tp": "tp", "cp": "cp", "stages": "pp", "micro-batch": "micro_batch", "chunks of a stage": "vpp",
    "expert ranks": "ep", "chips that share a sequence": "cp", "chips that share an expert": "etp",
    "replicas": "dp", "replicas that share a state": "shard",
}  # fmt: skip


class Degrees:
    """The numbers of a layout as leaves: given by who asks, following from those, or decided by a plan.

    Numbers that follow name the field that says them, if somebody does.  `fewest`: replicas are as few as hold all
    experts, for neither they nor the chips have a number; `accumulated`: a layout file states how often gradients
    are added up in place of a global batch; `tunes`: adapters alone are trained.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        planned: bool = False,
        fewest: bool = False,
        accumulated: bool = False,
        tunes: bool = False,
    ) -> None:
        self.layout, self.planned = layout, planned
        self.fewest, self.accumulated, self.tunes = fewest, accumulated, tunes

    def number(self, name: str) -> Breakdown:
        """A degree under the name that it has in figures."""
        value = getattr(self.layout, DEGREES[name])
        if self.planned:
            return chosen(name, value, "count", "of the fastest layout that fits")
        return given(name, value, "count", "of the layout", field=DEGREES[name])

    def group(self, name: str, *parts: Breakdown) -> Breakdown:
        """Chips that several degrees make together; those of 1 are left out beside others."""
        return product(name, [one for one in parts if one.value != 1] or parts, "count")

    def chips(self) -> Breakdown:
        """All chips of the layout."""
        if self.planned:
            return self._counted_chips()
        return product("chips", [*self._of_a_replica(), self.replicas()], "count").unless_said("chips")

    def _counted_chips(self) -> Breakdown:
        """All chips as a number that replicas follow from."""
        num = self.layout.num_chips
        if self.planned:
            return chosen("chips", num, "count", "the fewest that are enough").unless_said("chips")
        return given("chips", num, "count", field="chips")

    def replicas(self) -> Breakdown:
        """Replicas of the model: as said, else what the chips leave, else as few as hold all experts."""
        if not self.fewest:
            one = product("chips of a replica", self._of_a_replica(), "count")
            return quotient("replicas", self._counted_chips(), one, "count").unless_said("dp")
        inputs = [self.number(name) for name in ("tp", "cp", "expert ranks")]
        how = "as few as hold all experts once"
        return modelled("replicas", self.layout.dp, "count", how, *inputs).unless_said("dp")

    def _of_a_replica(self) -> list[Breakdown]:
        return [self.number(name) for name in ("tp", "stages", "cp")]

    def table_stages(self) -> Breakdown:
        """Stages among which the token table and the head are spread."""
        ends = assumed("ends of the pipeline", 2, "count", "the first stage and the last")
        return minimum("stages that hold tables", [self.number("stages"), ends])

    def expert_chips(self) -> Breakdown:
        """Chips that share one expert: as said, else what tensor parallelism has beyond the ranks of experts."""
        name = "chips that share an expert"
        if self.layout.etp:
            return self.number(name)
        left = quotient("tp over expert ranks", self.number("tp"), self.number("expert ranks"), "ratio")
        return maximum(name, [_one("an expert is on one chip at least"), left])

    def expert_ways(self) -> Breakdown:
        """Chips that together hold all experts of a stage once."""
        return self.group(
            "chips that hold all experts once", self.number("expert ranks"), self.expert_chips()
        )

    def sharers(self, name: str) -> Breakdown:
        """Ranks that share the state of dense weights from ZeRO-1 on."""
        own = self._shard() if self.layout.shard else self.replicas()
        return self.group(name, own, self.number("cp"))

    def _shard(self) -> Breakdown:
        name = "replicas that share a state"
        if self.planned:
            return self.number(name)
        how = "over the copies that the layout file asks for"
        return modelled(name, self.layout.shard, "count", how, self.replicas()).unless_said("shard")

    def expert_sharers(self, name: str) -> Breakdown:
        """Ranks that share the state of the experts from ZeRO-1 on."""
        every = self.group("chips of a stage", self.replicas(), self.number("cp"), self.number("tp"))
        same = quotient("same experts over all", every, self.expert_ways(), "ratio")
        least = _one("itself")
        copies = maximum("chips that hold the same experts", [least, same])
        if not self.layout.shard:
            return copies.named(name)
        groups = quotient("groups that each hold a state", self.replicas(), self._shard(), "count")
        return maximum(name, [least, quotient("of each group", copies, groups, "ratio")])

    def micro_batches(self, global_batch: int) -> Breakdown:
        """Micro-batches of a replica in a step."""
        at_once = product("sequences at once", [self.replicas(), self.number("micro-batch")], "count")
        return quotient("micro-batches", self.batch(global_batch), at_once, "count")

    def batch(self, global_batch: int) -> Breakdown:
        """Sequences of a step: as said or as is usual, else what the layout makes of either."""
        name = "global batch"
        usual = usual_batch(self.layout.num_chips, tunes=self.tunes)
        if self.planned or (global_batch == usual and not self.accumulated):
            return given(name, global_batch, "count", field="global_batch")
        how = "by the accumulation of the layout file" if self.accumulated else BATCH_WHERE_UNSAID
        inputs = (self.replicas(), self.number("micro-batch"), self.number("stages"))
        return modelled(name, global_batch, "count", how, *inputs).unless_said("global_batch")


def _one(why: str) -> Breakdown:
    return assumed("one", 1, "count", why)


def dimension(model: Model, field: str, name: str) -> Breakdown:
    """A dimension of a model: a fact of the catalogue or of a config.json, or what follows from those."""
    known = model.facts.get(field)
    if known is not None:
        return fact(name, attrgetter(field)(model), "count", known.source, note=known.note)
    if model.facts and field in LEFT_OUT:
        return LEFT_OUT[field](model, name)
    return derived(name, attrgetter(field)(model), "count", f"of {model.name}, stated by hand")


def _as_many_as_query_heads(model: Model, name: str) -> Breakdown:
    return modelled(
        name,
        model.num_kv_heads,
        "count",
        "one for each query head",
        dimension(model, "num_heads", "query heads"),
    )


def _width_of_a_head(model: Model, name: str) -> Breakdown:
    if model.mla is not None:
        parts = {
            "mla.nope_head_dim": "its part without position",
            "mla.rope_head_dim": "its part with position",
        }
        return total(name, [dimension(model, field, part) for field, part in parts.items()])
    hidden, heads = dimension(model, "hidden", "hidden width"), dimension(model, "num_heads", "query heads")
    return quotient(name, hidden, heads, "count")


# what an entry may leave out, and how it follows from the others: as `model_entry` fills it
LEFT_OUT: dict[str, Callable[[Model, str], Breakdown]] = {
    "num_kv_heads": _as_many_as_query_heads,
    "head_dim": _width_of_a_head,
}


def counted(model: Model, name: str, value: float, unit: str, how: str, *inputs: Breakdown) -> Breakdown:
    """What is counted over the operators, tensors or weights of a model, from its dimensions and what else decides."""
    own = (dimension(model, "num_layers", "layers"), dimension(model, "hidden", "hidden width"))
    return modelled(name, value, unit, how, *own, *inputs)


def tables(model: Model, name: str, value: float, unit: str, how: str, *inputs: Breakdown) -> Breakdown:
    """What is counted over the token table and the head."""
    own = (dimension(model, "vocab", "vocabulary"), dimension(model, "hidden", "hidden width"))
    return modelled(name, value, unit, how, *own, *inputs)


def block_widths(model: Model) -> list[Breakdown]:
    """Dimensions of a layer besides its hidden width and its routed experts."""
    names = {"num_heads": "query heads", "head_dim": "width of a head", "ffn": "MLP width"}
    return [dimension(model, field, name) for field, name in names.items() if getattr(model, field)]


def expert_widths(model: Model) -> list[Breakdown]:
    """Dimensions of routed experts."""
    return [
        dimension(model, "moe.num_experts", "experts"),
        dimension(model, "moe.expert_ffn", "width of an expert"),
    ]


def of_chip(chip: Chip, name: str, value: float, unit: str, shown: str = "") -> Breakdown:
    """A fact of a chip; a value that its entry derives says so."""
    known = chip.facts.get(name)
    if known is None or known.value != value:
        return assumed(shown or name.replace("_", " "), value, unit, f"of {chip.title}, derived in its entry")
    return fact(shown or known.label, value, unit, known.source, note=known.note)


def bandwidth(chip: Chip) -> Breakdown:
    """The memory bandwidth of a chip."""
    return of_chip(chip, "memory_bytes_per_s", chip.memory_bytes_per_s, "bytes_per_s")


def dense_peak(chip: Chip, precision: str) -> Breakdown:
    """The dense peak of a chip in a format."""
    return of_chip(
        chip,
        f"peak.{unit_for(precision)}",
        chip.peak(precision),
        "flop_per_s",
        f"dense {precision} peak",
    )


def part_of_bandwidth(chip: Chip, share: float, why: str) -> Breakdown:
    """The bandwidth that streaming work reaches."""
    reached = assumed("share of it that streams reach", share, "fraction", why)
    return product("bandwidth reached", [bandwidth(chip), reached], "bytes_per_s")
