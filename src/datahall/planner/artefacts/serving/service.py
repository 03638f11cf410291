"""What the files of a service say alike: the weights, their formats, and where replicas stand."""

from __future__ import annotations

from typing import NamedTuple

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.tool import Tool
from datahall.counted import counted
from datahall.economics.sections.service import ServiceCost
from datahall.errors import ScenarioError, option
from datahall.fabric.design.parts import usual_server
from datahall.inference.engine.engine import Engine, engine_on
from datahall.inference.engine.replica import Replica
from datahall.planner.artefacts.refused import DRIVEN, refuse
from datahall.planner.artefacts.script import Origin, Variable
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.plan import ServingPlan

# what of an engine is how it behaves, and no option of it
OWN = ("host_step_s", "host_sequence_s", "first_token_s", "reserved_bytes")


class Checkpoint(NamedTuple):
    """The weights to be served: those on the hub, or others that somebody must name."""

    hub: str  # "" where the catalogue knows none that are as the plan has them
    narrowed: bool  # by the engine as it loads them

    @property
    def variable(self) -> Variable:
        return Variable(
            "MODEL", self.hub, "" if self.hub else "hub id or folder of the weights that the plan is for"
        )


class Service(NamedTuple):
    """A plan of a service, and where its files are from."""

    best: Proposal
    num_node_chips: int  # that one operating system drives
    origin: Origin
    cost: ServiceCost

    @property
    def replica(self) -> Replica:
        return self.best.replica

    @property
    def num_replica_nodes(self) -> int:
        """Nodes that one replica stretches over."""
        return -(-self.replica.num_chips // self.num_node_chips)

    @property
    def num_beside(self) -> int:
        """Replicas on one node; 0 where one takes several."""
        return self.num_node_chips // self.replica.num_chips

    @property
    def is_shared(self) -> bool:
        """Whether replicas stand beside each other on a node."""
        return self.num_beside > 1 and self.best.num_deployed > 1

    @property
    def num_nodes(self) -> int:
        if self.num_beside:
            return -(-self.best.num_deployed // self.num_beside)
        return self.best.num_deployed * self.num_replica_nodes

    @property
    def notes(self) -> tuple[str, ...]:
        """What it is, on how many nodes, and what of the plan is no option of any engine."""
        best, replica = self.best, self.replica
        degrees = ", ".join(
            f"{name} {getattr(replica, name)}"
            for name in ("tp", "pp", "dp", "ep")
            if getattr(replica, name) > 1
        )
        of = f"{counted(replica.num_chips, 'chip')}{f' ({degrees})' if degrees else ''}, {best.precision}"
        nodes = f"{counted(self.num_nodes, 'node')} of {counted(self.num_node_chips, 'chip')}"
        return (
            f"{counted(best.num_deployed, 'replica')} of {replica.model.name} on {best.num_chips:,} × "
            f"{replica.chip.name}, each of {of}: {nodes}",
            f"its times are those of {replica.engine.title}",
            *_driven(replica.chip.vendor),
            *_short(self),
            *(
                f"{name} is how the host behaves and no option: the plan has {getattr(replica.engine, name):g}"
                for name in self._said
            ),
        )

    @property
    def _said(self) -> tuple[str, ...]:
        usual = engine_on(self.replica.engine.name, self.replica.chip)
        return tuple(name for name in OWN if getattr(usual, name) != getattr(self.replica.engine, name))


def _driven(vendor: str) -> tuple[str, ...]:
    """That the engine alone does not drive the chips of a maker."""
    if vendor in DRIVEN:
        return ()
    return (f"chips of {vendor} are driven by a package beside the engine's own: it has to be there",)


def service_of(plan: ServingPlan, catalog: Catalog, origin: Origin) -> Service:
    """The chosen deployment on the nodes that its chips are sold in."""
    best = plan.chosen
    return Service(
        best, usual_server(catalog, best.replica.chip).num_host_chips, origin, plan.part(ServiceCost)
    )


def checkpoint_of(model: Model, replica: Replica, *, makes_blocks: bool) -> Checkpoint:
    """The weights that are as the plan has them: published so, or 16-bit ones that the engine narrows to FP8.

    `makes_blocks`: the engine can give them a scale per block as it does.
    """
    hub = next((name for name in model.aliases if "/" in name), "")
    precision, published = replica.precision, model.quantisation
    if published is not None:
        return Checkpoint(hub if precision.weights == published.format else "", narrowed=False)
    if precision.weights in ("bf16", "fp16", "fp32"):
        return Checkpoint(hub, narrowed=False)
    if precision.weights == precision.activations == "fp8" and (makes_blocks or not replica.block_scaled):
        return Checkpoint(hub, narrowed=True)
    return Checkpoint("", narrowed=False)


DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def dtype_of(replica: Replica, tool: Tool) -> str:
    """The wide format, as engines call it."""
    precision = replica.precision
    wide = precision.wide
    refuse(tool, ("TF32",) if precision.compute == "tf32" else (), option("precision", "bf16"))
    return DTYPES[wide]


def cache_dtype(replica: Replica, tool: Tool, narrow: str) -> str:
    """The format of keys and values: the engine's name for FP8, or that of the model."""
    kv = replica.precision.kv
    refuse(tool, (f"a cache in {kv}",) if kv not in (*DTYPES, "fp8") else ())
    return narrow if kv == "fp8" else "auto"


def check_engine(replica: Replica, tool: Tool, names: tuple[str, ...]) -> None:
    """Refuse a plan that was made for another engine."""
    engine = replica.engine
    if engine.name not in names:
        raise ScenarioError(
            f"the plan is of {engine.title}, which {tool.title} {tool.release} is not",
            field="engine", hint=option("engine", names[0]),
        )  # fmt: skip


def check_scheduler(engine: Engine, tool: Tool, fixed: dict[str, object]) -> None:
    """Refuse what a scheduler always does otherwise."""
    others = [name for name, value in fixed.items() if getattr(engine, name) != value]
    refuse(tool, (option(name, getattr(engine, name)) for name in others), "leave it out")


def longest(service: Service) -> int | None:
    """The longest sequence to accept, where it is not the model's own: as asked, or all that a rank's cache holds."""
    cache = service.best.held.capacity
    if cache.num_sequences(most_tokens(service.replica)) < 1:
        return cache.num_blocks * cache.block_tokens
    return service.replica.max_context or None


def most_tokens(replica: Replica) -> int:
    """Tokens of the longest sequence, as asked or as the model takes."""
    return replica.max_context or replica.model.max_context


def _short(service: Service) -> tuple[str, ...]:
    """That the longest sequences are refused, for want of room."""
    room, asked = longest(service), most_tokens(service.replica)
    if room is None or room >= asked:
        return ()
    return (
        f"the cache of a rank holds {room:,} tokens, so that no sequence may have the {asked:,} that the model takes",
    )


def said_blocks(replica: Replica) -> int | None:
    """Tokens of a block where somebody said them: engines pick what their kernels for a model want."""
    engine = replica.engine
    return (
        engine.block_tokens
        if engine.block_tokens != engine_on(engine.name, replica.chip).block_tokens
        else None
    )
