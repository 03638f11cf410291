"""The requests that a stream describes: what is said of traffic, with what is usual in place of what is not."""

from __future__ import annotations

from math import isinf
from typing import TypeVar

import msgspec

from datahall.scenario.sections.traffic import (
    DEFAULT_REQUESTS,
    REQUESTS_PER_USER,
    USUAL_DOCUMENT,
    Traffic,
)
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.lengths import mean_tokens
from datahall.workload.traffic.presets import Preset, preset
from datahall.workload.traffic.shapes import Fixed, Lengths, Lognormal, check_lengths
from datahall.workload.traffic.traffic import TraceReplay
from datahall.workload.traffic.traffic import Traffic as Requests
from datahall.workload.traffic.users import Users

T = TypeVar("T")


def requests_of(traffic: Traffic, max_context: int) -> Requests:
    """The requests that a stream describes; what is not said is the preset's, or usual."""
    if traffic.trace:
        return _recorded(traffic, max_context)
    traffic.check()
    traffic = msgspec.structs.replace(
        traffic, **{name: usual for name, usual in traffic.usual().items() if not getattr(traffic, name)}
    )
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
        num_requests=_num_requests(traffic, people),
        duration_s=traffic.duration_s or 0.0,
        max_context=max_context,
    )


def _recorded(traffic: Traffic, max_context: int) -> Requests:
    replayed = TraceReplay(
        path=traffic.trace,
        speed_ratio=traffic.speed_ratio,
        sort=traffic.sort_trace,
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


def _num_requests(traffic: Traffic, people: Users | None) -> int:
    if traffic.requests:
        return traffic.requests
    if traffic.duration_s is None:
        return max(DEFAULT_REQUESTS, REQUESTS_PER_USER * people.num if people else 0)
    if people is not None:
        people.most_sessions(traffic.duration_s)
    return 0


def _lengths(traffic: Traffic, which: str, named: Preset | None) -> Lengths:
    own: Lengths | None = traffic.isl if which == "isl" else traffic.osl
    if own is None:
        assert named is not None, "what is usual stands in place of lengths that nobody says"
        own = named.prompt if which == "isl" else named.output
    if traffic.spread_ratio is None:
        return own
    mean = mean_tokens(own)
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
