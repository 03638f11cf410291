"""Who asks what, and when: a rate, users or a recorded trace, and the lengths and talk of the requests."""

from __future__ import annotations

from math import isinf
from typing import Annotated, TypeVar

import msgspec

from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
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
from datahall.scenario.lengths import LengthsKind
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.lengths import Fixed, Lengths, Lognormal, check_lengths, mean_tokens
from datahall.workload.traffic.presets import Preset, preset
from datahall.workload.traffic.traffic import TraceReplay
from datahall.workload.traffic.traffic import Traffic as Requests
from datahall.workload.traffic.users import Users

DEFAULT_REQUESTS = 10_000
T = TypeVar("T")
REQUESTS_PER_USER = 5  # so that most of a run of users is past its first rush
USUAL_PROMPT, USUAL_OUTPUT, USUAL_DOCUMENT = 1000, 250, 1000  # tokens, where nothing is said
RECORDED = ("trace",)
SENT = ("rate", "users")


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


class PresetName(Name, frozen=True):
    """A published traffic by name."""

    of: str = "traffic"

    def read(self, raw: Raw, at: Reading) -> str:
        name = super().read(raw, at)
        preset(name)
        return name


class Traffic(Section, frozen=True, kw_only=True):
    """One stream of requests."""

    label: Annotated[str, Text("What to call it.", name="name", flat="traffic_name", rare=True)] = ""
    rate_per_s: Annotated[
        float | None,
        Rate(
            'Requests per second, or "inf": all at once.', against=("users", "trace"), most=1e12, example="80"
        ),
    ] = None
    users: Annotated[
        int | None,
        Count("People who wait for their answers, instead of a rate.", against=("trace",), most=10**9),
    ] = None
    trace: Annotated[str, File("Recorded requests, CSV or JSONL, instead of a rate.")] = ""
    preset: Annotated[
        str,
        PresetName(
            "Lengths by name: sharegpt, lmsys-chat, rag, agent, …", flat="traffic", metavar="NAME", against=("trace",)
        ),
    ] = ""  # fmt: skip
    isl: Annotated[
        Lengths | None,
        LengthsKind(f"Tokens of a prompt (default {USUAL_PROMPT}, or the preset's).", against=("trace",)),
    ] = None
    osl: Annotated[
        Lengths | None,
        LengthsKind(f"Tokens of an answer (default {USUAL_OUTPUT}, or the preset's).", against=("trace",)),
    ] = None
    spread_ratio: Annotated[
        float | None,
        Quantity("Standard deviation of lengths over their mean.", most=20.0, against=("trace",)),
    ] = None
    burstiness_ratio: Annotated[
        float | None,
        Quantity(
            "The same of the gaps between requests; 1: Poisson, 0: equal gaps.", needs=("rate",), most=100.0
        ),
    ] = None
    turns: Annotated[
        float | None,
        Quantity("Mean turns of a conversation.", unit="ratio", least=1.0, most=1e4, against=("trace",)),
    ] = None
    think_s: Annotated[
        float | None, Quantity("Pause of a user between answer and next request.", against=("trace",))
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
    groups: Annotated[int | None, Count("Different system prompts.", against=("trace",), rare=True)] = None
    group_zipf: Annotated[
        float | None,
        Quantity("Zipf exponent of their popularity.", unit="ratio", against=("trace",), rare=True),
    ] = None
    documents: Annotated[
        int | None, Count("Documents that prompts quote.", least=0, against=("trace",), rare=True)
    ] = None
    document: Annotated[
        int | None, Count("Tokens of a document.", unit="tokens", against=("trace",), rare=True)
    ] = None
    retrieved: Annotated[int | None, Count("Documents in a prompt.", against=("trace",), rare=True)] = None
    document_zipf: Annotated[
        float | None,
        Quantity("Zipf exponent of their popularity.", unit="ratio", against=("trace",), rare=True),
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
    peak_s: Annotated[float, Quantity("When it is highest.", needs=("swing",), rare=True)] = 14 * 3600.0
    busy_s: Annotated[float, Quantity("Mean length of a busy time.", needs=("rate",), rare=True)] = 0.0
    lull_s: Annotated[float, Quantity("Mean length of a quiet time.", needs=("rate",), rare=True)] = 0.0
    lull_rate_ratio: Annotated[
        float, Quantity("Rate of a quiet time over that of a busy one.", needs=("lull",), rare=True)
    ] = 0.0
    requests: Annotated[int | None, Count("Requests to simulate (default 10000).", most=10**12)] = None
    duration_s: Annotated[float | None, Quantity("Or for how long.", above=True)] = None
    speed_ratio: Annotated[
        float, Quantity("2 replays a trace twice as fast.", above=True, needs=RECORDED, most=1e9)
    ] = 1.0
    sort: Annotated[bool, Flag("Sort a trace by arrival.", needs=RECORDED)] = False
    first: Annotated[int | None, Count("Only so many rows of a trace.", needs=RECORDED, rare=True)] = None
    hash_block_tokens: Annotated[
        int | None,
        Count("Tokens that one hash of a trace stands for.", unit="tokens", needs=RECORDED, rare=True),
    ] = None
    region: Annotated[
        dict[str, float],
        Regions("Where its requests come from.", metavar="REGION", flat="from_region", rare=True),
    ] = {}
    priority: Annotated[int, Count("Lower goes first.", least=0, most=1000, rare=True)] = 0


def requests_of(traffic: Traffic, max_context: int) -> Requests:
    """The requests that a stream describes; what is not said is the preset's, or usual."""
    if traffic.trace:
        return _recorded(traffic, max_context)
    if traffic.rate_per_s is None and traffic.users is None:
        raise ScenarioError(
            "how often requests come is not said", field="rate",
            hint=f"e.g. {option('rate', 80)}, or {option('users', 10000)} {option('think', '30s')}",
        )  # fmt: skip
    named = preset(traffic.preset) if traffic.preset else None
    talk = _conversation(traffic, named.conversation if named else Conversation())
    people = Users(num=traffic.users, think=talk.think) if traffic.users is not None else None
    coming = None if people else _arrivals(traffic, talk.num_turns)
    return Requests(
        name=_title(traffic),
        source=named.source if named else None,
        prompt=_lengths(traffic, "isl", named),
        output=_lengths(traffic, "osl", named),
        arrivals=coming,
        users=people,
        conversation=talk,
        num_requests=_num_requests(traffic, people, coming),
        duration_s=traffic.duration_s or 0.0,
        max_context=max_context,
    )


def _recorded(traffic: Traffic, max_context: int) -> Requests:
    replayed = TraceReplay(
        path=traffic.trace,
        speed_ratio=traffic.speed_ratio,
        sort=traffic.sort,
        first=traffic.first or 0,
        block_tokens=traffic.hash_block_tokens or 0,
    )
    return Requests(
        name=traffic.label or traffic.trace,
        trace=replayed,
        num_requests=traffic.requests or 0,
        duration_s=traffic.duration_s or 0.0,
        max_context=max_context,
    )


def _title(traffic: Traffic) -> str:
    """What to call it; lengths that stand over those of a preset are said."""
    own = [
        name
        for name in ("isl", "osl", "spread", "turns", "system")
        if getattr(traffic, _attribute(name)) is not None
    ]
    named = f"{traffic.preset} with its own {' and '.join(own)}" if traffic.preset and own else traffic.preset
    return traffic.label or named or "custom"


def _attribute(name: str) -> str:
    return "spread_ratio" if name == "spread" else name


def _num_requests(traffic: Traffic, people: Users | None, coming: Arrivals | None) -> int:
    if traffic.requests:
        return traffic.requests
    if traffic.duration_s is None:
        return max(DEFAULT_REQUESTS, REQUESTS_PER_USER * people.num if people else 0)
    if coming is not None and isinf(coming.rate_per_s):
        raise ScenarioError(
            "all at once, for a duration", field="rate", hint=f"say how many: {option('requests', 1000)}"
        )
    if people is not None:
        people.most_sessions(traffic.duration_s)
    return 0


def _lengths(traffic: Traffic, which: str, named: Preset | None) -> Lengths:
    said: Lengths | None = traffic.isl if which == "isl" else traffic.osl
    usual: Lengths = Fixed(USUAL_PROMPT if which == "isl" else USUAL_OUTPUT)
    if named is not None:
        usual = named.prompt if which == "isl" else named.output
    if traffic.spread_ratio is None:
        return said or usual
    if said is not None and not isinstance(said, Fixed):
        raise ScenarioError(
            f"{option(which)} with a shape beside {option('spread')}", field="spread",
            hint="the shape says how lengths spread; leave one of them out",
        )  # fmt: skip
    mean = mean_tokens(said or usual)
    lengths: Lengths = Lognormal(mean, traffic.spread_ratio) if traffic.spread_ratio else Fixed(round(mean))
    check_lengths(lengths, which)
    return lengths


def _conversation(traffic: Traffic, known: Conversation) -> Conversation:
    think = Think(
        mean_s=_or(traffic.think_s, known.think.mean_s),
        variation_ratio=_or(traffic.think_variation_ratio, known.think.variation_ratio),
    )
    num_documents = _or(traffic.documents, known.num_documents)
    return msgspec.structs.replace(
        known,
        num_turns=_or(traffic.turns, known.num_turns),
        think=think,
        opening=traffic.opening or known.opening,
        system_tokens=_or(traffic.system, known.system_tokens),
        num_groups=_or(traffic.groups, known.num_groups),
        group_zipf_factor=_or(traffic.group_zipf, known.group_zipf_factor),
        num_documents=num_documents,
        document_tokens=_or(
            traffic.document, known.document_tokens or (USUAL_DOCUMENT if num_documents else 0)
        ),
        num_retrieved=_or(traffic.retrieved, known.num_retrieved),
        document_zipf_factor=_or(traffic.document_zipf, known.document_zipf_factor),
    )


def _or(said: T | None, usual: T) -> T:
    return usual if said is None else said


def _arrivals(traffic: Traffic, num_turns: float) -> Arrivals:
    assert traffic.rate_per_s is not None
    if isinf(traffic.rate_per_s):
        return Arrivals(rate_per_s=traffic.rate_per_s, gaps="at-once")
    variation = _or(traffic.burstiness_ratio, 1.0)
    return Arrivals(
        rate_per_s=traffic.rate_per_s / max(1.0, num_turns),  # sessions arrive; each brings so many requests
        gaps="constant" if variation == 0 else "poisson" if variation == 1 else "gamma",
        variation_ratio=variation or 1.0,
        hourly_factor=traffic.hourly,
        swing_fraction=traffic.swing_fraction,
        peak_s=traffic.peak_s,
        on_s=traffic.busy_s,
        off_s=traffic.lull_s,
        quiet_ratio=traffic.lull_rate_ratio,
    )
