"""Who asks what, and when: a rate, users or a recorded trace, and the lengths and talk of the requests."""

from collections.abc import Iterator
from math import ceil, inf
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import (
    Count,
    File,
    Flag,
    Kind,
    Listed,
    Mapped,
    Name,
    Plain,
    Quantity,
    Rate,
    Raw,
    Reading,
    Share,
    Text,
)
from datahall.scenario.sections.lengths import LengthsKind
from datahall.units import short
from datahall.workload.traffic.shapes import MOST_TURNS, PEAK_S, Fixed, Lengths, check_day

DEFAULT_REQUESTS = 10_000
REQUESTS_PER_USER = 5  # so that most of a run of users is past its first rush
USUAL_PRESET = "lmsys-chat"  # where nothing is said of lengths
USUAL_PROMPT, USUAL_OUTPUT, USUAL_DOCUMENT = 1000, 250, 1000  # tokens, where the other length is said
RECORDED = ("trace",)
BUSIEST_S = 300.0  # long beside what a request takes, short beside how the load of a day moves


class Regions(Kind, frozen=True):
    """The region that all requests come from, or shares of several: { eu = "60 %", us = "40 %" }."""

    def read(self, raw: Raw, at: Reading) -> dict[str, float]:
        if isinstance(raw, dict) or (isinstance(raw, str) and "=" in raw):
            found = Mapped("", of=Share("")).read(raw, at)
            shares = {name: float(share) for name, share in found.items() if isinstance(share, float)}
            if abs(sum(shares.values()) - 1.0) > 1e-6:
                raise ScenarioError(
                    f"shares of regions add up to {sum(shares.values()):g}", hint="they add up to 1"
                )
            return shares
        return {Text("").read(raw, at): 1.0}

    def write(self, value: object) -> Plain:
        assert isinstance(value, dict)
        return {name: Share("").write(share) for name, share in value.items()}

    def annotation(self, *also: str) -> str:
        del also
        return "str | Mapping[str, Any]"

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": Share("").schema()}]}


class TraceFile(File, frozen=True):
    """Recorded requests: a file whose first lines are those of a known trace."""

    def read(self, raw: Raw, at: Reading) -> str:
        from datahall.workload.traffic.recorded.trace_format import check_head

        path = super().read(raw, at)
        check_head(path)
        return path


class PresetName(Name, frozen=True):
    """A published traffic by name."""

    of: str = "traffic"

    def read(self, raw: Raw, at: Reading) -> str:
        from datahall.workload.traffic.presets import preset

        name = super().read(raw, at)
        preset(name)
        return name


class Traffic(Section, frozen=True, kw_only=True):
    """One stream of requests."""

    label: Annotated[str, Text("What to call it.", name="name", flat="traffic_name", rare=True)] = ""
    rate_per_s: Annotated[
        float | None,
        Rate(
            "Requests per second.",
            against=("users", "trace"),
            least=1e-6,
            example="80",
            endless="requests",
        ),
    ] = None
    users: Annotated[
        int | None,
        Count(
            "People who wait for their answers, instead of a rate.",
            against=("trace",),
            most=10**9,
            example="1000",
        ),
    ] = None
    trace: Annotated[str, TraceFile("Recorded requests, CSV or JSONL, instead of a rate.")] = ""
    users_in: Annotated[
        tuple[str, ...],
        Listed(
            "Regions of clouds that users are near: the way there and back counts in the time to the first token.",
            of=Name("", of="region", example="aws-eu-west-2"), needs=("regions", "residency"), metavar="REGION,…",
        ),
    ] = ()  # fmt: skip
    sent_bytes: Annotated[
        float,
        Quantity(
            "What leaves with an answer beside its text: images, audio, logs.",
            needs=("regions", "residency"), most=1e12, example="200 kB",
        ),
    ] = 0.0  # fmt: skip
    preset: Annotated[
        str,
        PresetName(
            f"Lengths by name: sharegpt, {USUAL_PRESET} (default), rag, agent, …", flat="traffic", metavar="NAME", against=("trace",), group="lengths"
        ),
    ] = ""  # fmt: skip
    isl: Annotated[
        Lengths | None,
        LengthsKind(
            f"Tokens of a prompt (default: the preset's; {USUAL_PROMPT} beside an output alone).",
            against=("trace",),
            group="lengths",
        ),
    ] = None
    osl: Annotated[
        Lengths | None,
        LengthsKind(
            f"Tokens of an answer (default: the preset's; {USUAL_OUTPUT} beside a prompt alone).",
            against=("trace",),
            group="lengths",
        ),
    ] = None
    spread_ratio: Annotated[
        float | None,
        Quantity(
            "Standard deviation of lengths over their mean.", most=20.0, against=("trace",), group="lengths"
        ),
    ] = None
    burstiness_ratio: Annotated[
        float | None,
        Quantity(
            "Standard deviation of the gaps between requests over their mean; 1: Poisson, 0: equal gaps.",
            needs=("rate",),
            most=100.0,
        ),
    ] = None
    turns: Annotated[
        float | None,
        Quantity(
            "Mean turns of a conversation.", unit="ratio", least=1.0, most=MOST_TURNS, against=("trace",)
        ),
    ] = None
    think_s: Annotated[
        float | None,
        Quantity(
            "Pause of a user between answer and next request.",
            needs=("users", "turns", "traffic"),
            against=("trace",),
            most=8.64e8,
        ),
    ] = None
    think_variation_ratio: Annotated[
        float | None, Quantity("Standard deviation of the pause over its mean.", needs=("think",), rare=True)
    ] = None
    opening: Annotated[
        Lengths | None,
        LengthsKind("New tokens of the first turn, where they differ.", against=("trace",), rare=True),
    ] = None
    system: Annotated[
        int | None,
        Count(
            "Tokens of the system prompt that all requests share.", unit="tokens", least=0, against=("trace",)
        ),
    ] = None
    groups: Annotated[
        int | None,
        Count("Different system prompts.", needs=("system", "traffic"), against=("trace",), rare=True),
    ] = None
    group_zipf: Annotated[
        float | None,
        Quantity(
            "Zipf exponent of their popularity.",
            needs=("groups", "traffic"),
            unit="ratio",
            against=("trace",),
            rare=True,
        ),
    ] = None
    documents: Annotated[
        int | None, Count("Documents that prompts quote.", least=0, against=("trace",), rare=True)
    ] = None
    document: Annotated[
        int | None,
        Count(
            "Tokens of a document.",
            needs=("documents", "traffic"),
            unit="tokens",
            against=("trace",),
            rare=True,
        ),
    ] = None
    retrieved: Annotated[
        int | None,
        Count("Documents in a prompt.", needs=("documents", "traffic"), against=("trace",), rare=True),
    ] = None
    document_zipf: Annotated[
        float | None,
        Quantity(
            "Zipf exponent of their popularity.",
            needs=("documents", "traffic"),
            unit="ratio",
            against=("trace",),
            rare=True,
        ),
    ] = None
    hourly: Annotated[
        tuple[float, ...],
        Listed(
            "24 factors of the rate by hour of day.",
            of=Quantity("", unit="ratio"),
            repeats=True,
            needs=("rate",),
            rare=True,
        ),
    ] = ()
    swing_fraction: Annotated[
        float, Share("Sinusoid of the rate over a day.", needs=("rate",), rare=True)
    ] = 0.0
    peak_s: Annotated[
        float, Quantity("When of the day the rate is highest, where it swings.", needs=("swing",), rare=True)
    ] = PEAK_S
    busy_s: Annotated[float, Quantity("Mean length of a busy time.", needs=("rate",), rare=True)] = 0.0
    lull_s: Annotated[float, Quantity("Mean length of a quiet time.", needs=("rate",), rare=True)] = 0.0
    lull_rate_ratio: Annotated[
        float, Quantity("Rate of a quiet time over that of a busy one.", needs=("lull",), rare=True)
    ] = 0.0
    requests: Annotated[
        int | None,
        Count(
            f"Requests to simulate (default: {DEFAULT_REQUESTS:,}, or more where a run would be short beside a request).",
            most=10**12,
        ),
    ] = None
    duration_s: Annotated[
        float | None,
        Quantity("For how long requests come; beside their number, what ends first.", above=True),
    ] = None
    speed_ratio: Annotated[
        float, Quantity("2 replays a trace twice as fast.", above=True, needs=RECORDED, most=1e9)
    ] = 1.0
    sort_trace: Annotated[bool, Flag("Sort a trace by arrival.", needs=RECORDED)] = False
    first: Annotated[int | None, Count("Only so many rows of a trace.", needs=RECORDED, rare=True)] = None
    busiest_s: Annotated[
        float,
        Quantity(
            "How long a stretch of a trace a plan is made for: the one with most requests.",
            least=1.0,
            needs=RECORDED,
            example="1min",
        ),
    ] = BUSIEST_S
    hash_block_tokens: Annotated[
        int | None,
        Count("Tokens that one hash of a trace stands for.", unit="tokens", needs=RECORDED, rare=True),
    ] = None
    region: Annotated[
        dict[str, float],
        Regions("Where its requests come from.", metavar="REGION", flat="from_region", rare=True),
    ] = {}
    priority: Annotated[int, Count("Lower goes first.", least=0, most=1000, rare=True)] = 0

    def usual(self) -> dict[str, object]:
        if self.trace or self.preset:
            return {}
        if self.isl is None and self.osl is None:
            return {"preset": USUAL_PRESET}
        return {"isl": Fixed(USUAL_PROMPT), "osl": Fixed(USUAL_OUTPUT)}

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.trace:
            return
        if self.rate_per_s is None and self.users is None:
            yield ScenarioError(
                "how often requests come is not said",
                field="rate",
                hint=f"e.g. {option('rate', 80)}, or {option('users', 10000)} {option('think', '30s')}",
            )
        try:
            check_day(self.hourly)
        except ScenarioError as error:
            yield error
        if self.rate_per_s and self.duration_s and self.rate_per_s * self.duration_s < 1.0:
            yield ScenarioError(
                f"not one request comes in that time on average: {short(self.rate_per_s * self.duration_s)} do",
                field="duration",
                hint=f"e.g. {option('duration', f'{ceil(10.0 / self.rate_per_s)}s')}",
            )
        if self.rate_per_s == inf:
            shaping = {
                "burstiness": self.burstiness_ratio is not None,
                "hourly": self.hourly,
                "swing": self.swing_fraction,
                "busy": self.busy_s,
                "lull": self.lull_s,
                "duration": self.duration_s is not None,
            }
            for name in (name for name, said in shaping.items() if said):
                yield ScenarioError(
                    does_nothing(name, "all requests come at once"),
                    field=name,
                    hint=f"leave it out, or {option('rate', 80)}",
                )
        for name, lengths in (("isl", self.isl), ("osl", self.osl)):
            if self.spread_ratio is not None and lengths is not None and not isinstance(lengths, Fixed):
                yield ScenarioError(
                    f"{option(name)} with a shape beside {option('spread')}",
                    field="spread",
                    hint="the shape says how lengths spread; leave one of them out",
                )
