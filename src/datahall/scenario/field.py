"""One input: where it stands, what it is called at each border, what it may hold and what it is if nobody says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.scenario.kinds import Kind, Quantity, Rate, key_of
from datahall.units import unit_of


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One concept of a scenario: a table in a file, a group of options of a command."""

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        """What is wrong with its inputs beside each other, and with the model where that is known."""
        del model
        return iter(())

    def usual(self) -> dict[str, object]:
        """By attribute, what stands for inputs without a default of their own where they act and nobody says them."""
        return {}

    def check(self, model: Model | None = None) -> None:
        """Raise the first problem."""
        for problem in self.problems(model):
            raise problem


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """An input as it was declared."""

    section: str
    attribute: str  # of the section's struct, with its unit
    key: str  # in a file, under its section
    name: str  # flag and keyword
    kind: Kind
    default: object

    @property
    def path(self) -> str:
        """Where a file has it, e.g. "deployment.tp"."""
        return f"{self.section}.{self.key}" if self.section else self.key

    def with_help(self, text: str) -> Field:
        """The same input with what it means to one verb; "{words}" stands for those that it may be."""
        said = text.replace("{words}", ", ".join(self.kind.words))
        return msgspec.structs.replace(self, kind=msgspec.structs.replace(self.kind, help=said))

    def needing(self, names: tuple[str, ...]) -> Field:
        """The same input with what one verb needs beside it."""
        return msgspec.structs.replace(self, kind=msgspec.structs.replace(self.kind, needs=names))

    def of_several(self) -> Field:
        """The same input of one verb that takes several of what it names."""
        return msgspec.structs.replace(self, kind=msgspec.structs.replace(self.kind, several=True))

    def beside(self, keys: Collection[str], anyway: Collection[str] = ()) -> Field:
        """The same input of a verb that takes some keys of its section: a rate that nobody counts is finite, and what
        needs an input that stands `anyway` needs nothing.
        """
        kind = self.kind
        if isinstance(kind, Rate) and kind.endless not in keys:
            kind = msgspec.structs.replace(kind, endless="")
        if not set(kind.needs).isdisjoint(anyway):
            kind = msgspec.structs.replace(kind, needs=())
        return self if kind is self.kind else msgspec.structs.replace(self, kind=kind)

    @property
    def placeholder(self) -> str:
        return self.kind.placeholder(self.attribute)

    @property
    def shown_default(self) -> str:
        """The default as a person would write it; nothing where there is none."""
        if self.default is None or self.default is False or self.default in ("", (), {}):
            return ""
        written = self.kind.write(self.default)
        return ",".join(map(str, written)) if isinstance(written, list) else str(written)


class Concept(msgspec.Struct, frozen=True, kw_only=True):
    """A section by name: the struct that declares it, and whether a scenario may have several.

    An `inline` one is a single flag or keyword that takes a whole table: --failure "switches=3,start=2ms".
    """

    name: str
    home: str  # module:struct, loaded when a verb takes it
    many: bool = False
    inline: bool = False

    def struct(self) -> type[Section]:
        module, _, name = self.home.partition(":")
        found: type[Section] = getattr(import_module(f"datahall.scenario.sections.{module}"), name)
        return found


CONCEPTS = {
    one.name: one
    for one in (
        Concept(name="", home="root:Root"),
        Concept(name="deployment", home="deployment:Deployment"),
        Concept(name="router", home="fleet:Router"),
        Concept(name="measurement", home="fleet:Measurement"),
        Concept(name="region", inline=True, home="fleet:Region", many=True),
        Concept(name="cache", inline=True, home="fleet:AnswerCache"),
        Concept(name="traffic", home="traffic:Traffic"),
        Concept(name="promise", home="wanted.promise:Promise"),
        Concept(name="goal", home="wanted.goal:Goal"),
        Concept(name="candidates", home="wanted.candidates:Candidates"),
        Concept(name="training", home="training:TrainingJob"),
        Concept(name="layout", home="training:TrainingLayout"),
        Concept(name="stragglers", home="training:Stragglers"),
        Concept(name="sites", home="sites:Sites"),
        Concept(name="site", home="operations.site:Site"),
        Concept(name="fabric", home="fabric:FabricDesign"),
        Concept(name="network", home="fabric:Network"),
        Concept(name="job", inline=True, home="fabric:FabricJob", many=True),
        Concept(name="background", inline=True, home="fabric:Background", many=True),
        Concept(name="stall", inline=True, home="fabric:Stall", many=True),
        Concept(name="failure", inline=True, home="failure:Failure", many=True),
        Concept(name="failures", home="operations.failures:FailureRates"),
        Concept(name="collective", home="fabric:CollectiveCall"),
        Concept(name="transports", home="transports:Transports"),
        Concept(name="sequences", home="views:Sequences"),
        Concept(name="pass", home="views:Pass"),
        Concept(name="working_set", home="views:WorkingSet"),
        Concept(name="claim", home="views:Claim"),
        Concept(name="prefix", home="views:Prefix"),
        Concept(name="lighter", home="views:Lighter"),
        Concept(name="chips", home="views:ChipListing"),
        Concept(name="models", home="views:ModelListing"),
        Concept(name="offers", home="views:OfferListing"),
        Concept(name="search", home="views:Search"),
        Concept(name="files", home="views:Files"),
        Concept(name="simulation", home="views:Simulation"),
        Concept(name="recovery", home="operations.run:Recovering"),
        Concept(name="run", home="operations.run:RunLength"),
        Concept(name="checkpoint", home="operations.checkpoint:Checkpointing"),
        Concept(name="datapath", home="operations.datapath:DataPath"),
        Concept(name="cluster_job", inline=True, home="operations.scheduling:ClusterJob", many=True),
        Concept(name="scheduler", home="operations.scheduling:Scheduler"),
        Concept(name="key", home="operations.gateway:KeyTerms"),
        Concept(name="gateway", home="operations.gateway:GatewayState"),
        Concept(name="billing", home="operations.gateway:Billed"),
        Concept(name="endpoint", home="operations.gateway:Endpoint"),
        Concept(name="comparison", home="comparing:Comparison"),
        Concept(name="sweep", home="comparing:Sweep"),
        Concept(name="purchase", home="money.purchase:Purchase"),
        Concept(name="supply", home="money.supply:Supply"),
        Concept(name="ownership", home="money.ownership:Ownership"),
        Concept(name="overheads", home="money.ownership:Overheads"),
        Concept(name="api", home="money.hosted:HostedModel"),
        Concept(name="business", home="money.hosted:Business"),
    )
}


@cache
def fields(section: str) -> tuple[Field, ...]:
    """The inputs of a section in the order they are declared."""
    struct = CONCEPTS[section].struct()
    hints = get_type_hints(struct, include_extras=True)
    usual = struct()  # every input has a default
    return tuple(
        _field(section, name, hints[name], getattr(usual, name)) for name in struct.__struct_fields__
    )


def grouped(section: str, *groups: str) -> tuple[Field, ...]:
    """The inputs of a section that are declared as of some groups."""
    return tuple(field for field in fields(section) if field.kind.group in groups)


def _field(section: str, attribute: str, hint: object, default: object) -> Field:
    assert get_origin(hint) is Annotated, f"{section}.{attribute} is not declared"
    kind = next(one for one in get_args(hint) if isinstance(one, Kind))
    if isinstance(kind, Quantity) and not kind.unit:
        kind = msgspec.structs.replace(kind, unit=unit_of(attribute))
    key = kind.name or key_of(attribute)
    return Field(
        section=section, attribute=attribute, key=key, name=kind.flat or key, kind=kind, default=default
    )
