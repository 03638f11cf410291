"""What stands around the replicas of a service: the router, autoscaling, regions, a cache of whole answers."""

import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.kinds import (
    Choice,
    Count,
    Kind,
    Mapped,
    Plain,
    Quantity,
    Rate,
    Raw,
    Reading,
    Share,
    Text,
)
from datahall.scenario.sections.deployment import MOST_REPLICAS
from datahall.scenario.words import ROUTINGS
from datahall.units import fmt

REPLICA_REQUESTS = 32.0  # in the system, where nobody says how many an autoscaled replica is for


class Replicas(msgspec.Struct, frozen=True):
    """Between how many replicas there are, and the requests in the system for each."""

    least: int  # 0: scales to zero
    most: int
    target: float = REPLICA_REQUESTS


class ReplicasKind(Kind, frozen=True):
    """Read "1..16" or "0..8:24": the least and the most replicas, and requests in the system for each."""

    def read(self, raw: Raw, at: Reading) -> Replicas:
        text = Text("", example=self.example).read(raw, at)
        found = re.fullmatch(r"(\d+)\.\.(\d+)(?::(\d+(?:\.\d+)?))?", text)
        if found is not None:
            target = float(found[3]) if found[3] else REPLICA_REQUESTS
            asked = Replicas(int(found[1]), int(found[2]), target)
            if asked.least <= asked.most and 1 <= asked.most <= MOST_REPLICAS and target > 0:
                return asked
        hint = f"{option('autoscale', '1..16')}, or 0..8:24"
        raise ScenarioError(f'"{text}" is not a range of replicas', hint=hint)

    def write(self, value: object) -> Plain:
        assert isinstance(value, Replicas)
        each = "" if value.target == REPLICA_REQUESTS else f":{value.target:g}"
        return f"{value.least}..{value.most}{each}"


class Router(Section, frozen=True, kw_only=True):
    """Which replica gets a request, and how many replicas there are."""

    routing: Annotated[
        str, Choice(f"How requests find a replica: {', '.join(ROUTINGS)}.", options=ROUTINGS, metavar="NAME")
    ] = "least-outstanding"
    affinity_load_ratio: Annotated[
        float,
        Quantity(
            "Prefix affinity: load over the mean at which the next replica is asked.",
            needs=("routing=prefix-affinity",),
            above=True,
            rare=True,
        ),
    ] = 1.25
    spill: Annotated[
        int,
        Count(
            "Requests per replica at which a region sends further ones elsewhere.",
            needs=("region",),
            rare=True,
        ),
    ] = 64
    autoscale: Annotated[
        Replicas | None,
        ReplicasKind(
            "Replicas by load: MIN..MAX, and with :N the requests in the system for each.", metavar="MIN..MAX[:N]",
            example="1..16",
        ),
    ] = None  # fmt: skip
    cold_start_s: Annotated[float, Quantity("Until a new replica serves.", needs=("autoscale",))] = 120.0
    interval_s: Annotated[
        float,
        Quantity("Between two decisions of the autoscaler.", least=0.1, needs=("autoscale",), rare=True),
    ] = 15.0
    patience_s: Annotated[
        float, Quantity("How long fewer replicas must have been enough.", needs=("autoscale",), rare=True)
    ] = 300.0


class Region(Section, frozen=True, kw_only=True):
    """A place that requests come from and replicas stand in."""

    name: Annotated[str, Text("Its name.")] = ""
    inside_s: Annotated[float, Quantity("One way, from its users to its replicas.")] = 0.0
    to_s: Annotated[
        dict[str, float],
        Mapped("One way to other regions.", of=Quantity("Distance.", unit="s"), example='{ us = "40 ms" }'),
    ] = {}


class AnswerCache(Section, frozen=True, kw_only=True):
    """A cache of whole answers in front of the fleet: in each process, shared, and by meaning."""

    questions: Annotated[int, Count("Different questions that come again.")] = 10_000
    zipf: Annotated[float, Quantity("Zipf exponent of their popularity.", unit="ratio", most=10.0)] = 0.9
    unique_fraction: Annotated[float, Share("Share of requests that nobody ever asks again.")] = 0.5
    rate_per_s: Annotated[float | None, Rate("Requests per second, where the traffic does not tell.")] = None
    process: Annotated[int, Count("Answers that the cache of a process holds; 0: none.", least=0)] = 0
    process_ttl_s: Annotated[float, Quantity("How long it keeps one.", needs=("process",))] = 300.0
    processes: Annotated[int, Count("Processes with a cache of their own.", needs=("process",))] = 1
    process_lookup_s: Annotated[float, Quantity("Time of a look into it.", needs=("process",))] = 50e-6
    shared: Annotated[int, Count("Answers that a shared cache holds; 0: none.", least=0)] = 0
    shared_ttl_s: Annotated[float, Quantity("How long it keeps one.", needs=("shared",))] = 3600.0
    shared_lookup_s: Annotated[float, Quantity("Time of a look into it.", needs=("shared",))] = 1e-3
    semantic_fraction: Annotated[
        float, Share("Share of requests that get this far and are answered by meaning.", below=True)
    ] = 0.0
    semantic_lookup_s: Annotated[float, Quantity("Time of a look into it.", needs=("semantic",))] = 30e-3

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if not (self.process or self.shared or self.semantic_fraction):
            yield ScenarioError(
                "a cache without tiers",
                field="cache",
                hint=f"process, shared or semantic, e.g. {option('cache', 'process=1000')}",
            )


class Measurement(Section, frozen=True, kw_only=True):
    """Which part of a run is measured."""

    warmup_s: Annotated[
        float | None,
        Quantity(
            "Start of the run that is not measured (default: what it takes to fill the fleet).", rare=True
        ),
    ] = None
    until_s: Annotated[
        float | None, Quantity("When the run ends, whatever is left.", above=True, rare=True)
    ] = None

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.warmup_s is not None and self.until_s is not None and self.warmup_s >= self.until_s:
            yield ScenarioError(
                f"nothing is measured: the warm-up ends after {fmt(self.warmup_s, 's')}, "
                f"the run after {fmt(self.until_s, 's')}",
                field="warmup",
                hint=f"a shorter {option('warmup')}, or a later {option('until')}",
            )
