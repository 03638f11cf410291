"""What a serving scenario says of its requests."""

from __future__ import annotations

from math import isinf
from pathlib import Path

import msgspec

from datahall.inference.scenario_file import (
    Elsewhere,
    Place,
    RateRule,
    Raw,
    Read,
    Rule,
    ServingReader,
    TokenRule,
    number,
    whole,
)
from datahall.inference.scenario_lengths import read_lengths
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.lengths import Fixed, Lengths
from datahall.workload.traffic.options import DEFAULT_REQUESTS, REQUESTS_PER_USER
from datahall.workload.traffic.presets import Preset, preset
from datahall.workload.traffic.traffic import TraceReplay, Traffic
from datahall.workload.traffic.users import Users

ARRIVALS = {
    "burstiness": Rule("ratio", 1.0),
    "hourly": Elsewhere("text"),
    "swing": Rule("fraction", 0.0),
    "peak": Rule("s", 14 * 3600.0),
    "busy": Rule("s", 0.0),
    "quiet": Rule("s", 0.0),
    "quiet_ratio": Rule("ratio", 0.0),
}
# None: as the preset has it.
TALK = {
    "preset": Rule("text", ""),
    "prompt": Elsewhere("text"),
    "output": Elsewhere("text"),
    "spread": Rule("ratio"),
    "turns": Rule("ratio", least=1),
    "think": Rule("s"),
    "think_variation": Rule("ratio"),
    "opening": Elsewhere("text"),
    "system": TokenRule("count"),
    "groups": Rule("count", least=1),
    "group_zipf": Rule("ratio"),
    "documents": Rule("count"),
    "document": TokenRule("count", least=1),
    "retrieved": Rule("count", least=1),
    "document_zipf": Rule("ratio"),
}
RECORDED = {
    "speed": Rule("ratio", 1.0, above=True),
    "sort": Rule("flag", False),
    "first": Rule("count", 0.0),
    "block_tokens": TokenRule("count", 0.0),
}
TRAFFIC: dict[str, Rule] = {
    "name": Rule("text", ""),
    "rate": RateRule("ratio", above=True),
    "users": Rule("count", least=1),
    "trace": Rule("text", ""),
    **TALK,
    **ARRIVALS,
    **RECORDED,
    "duration": Rule("s", 0.0, above=True),
    "requests": Rule("count", 0.0, least=1),
    "region": Elsewhere("text"),
    "priority": Rule("count", 0.0),
}
SOURCES = ("rate", "users", "trace")


def read_traffic(
    reader: ServingReader, place: Place, raw: Raw, values: dict[str, Read], max_context: int
) -> Traffic | None:
    """One stream of requests, or None and why."""
    said = [key for key in SOURCES if key in raw]
    if len(said) != 1:
        reader.problem(
            place,
            f"traffic with {' and '.join(said) if said else 'neither a rate, nor users, nor a trace'}",
            "say one of rate, users, trace",
        )
        _lengths(reader, place, raw, values, None)
        return None
    if said[0] == "trace":
        _not_with(reader, place, raw, "a trace brings its own", {*TALK, *ARRIVALS})
        return _recorded(reader, place, values)
    _not_with(reader, place, raw, "only a trace has it", set(RECORDED))
    if said[0] == "users":
        _not_with(reader, place, raw, "users come when they have had their answer", set(ARRIVALS))
    if values[said[0]] is None:
        return None  # its value is wrong, and said so
    return _drawn(reader, place, raw, values, max_context)


def _not_with(reader: ServingReader, place: Place, raw: Raw, why: str, keys: set[str]) -> None:
    for key in raw:
        if key in keys:
            reader.problem((*place, key), f"{key} does not go with the rest: {why}", "leave it out")


def _recorded(reader: ServingReader, place: Place, values: dict[str, Read]) -> Traffic | None:
    path = Path(reader.document.path).parent / str(values["trace"])
    if not path.is_file():
        reader.problem(
            (*place, "trace"), f"{path} is not a file", "a path, counted from the folder of this file"
        )
        return None
    played = TraceReplay(
        path=str(path),
        speed_ratio=number(values["speed"]),
        sort=bool(values["sort"]),
        first=whole(values["first"]),
        block_tokens=whole(values["block_tokens"]),
    )
    return reader.attempt(
        place,
        lambda: Traffic(
            name=str(values["name"]) or str(values["trace"]),
            trace=played,
            num_requests=whole(values["requests"]),
            duration_s=number(values["duration"]),
        ),
    )


def _drawn(
    reader: ServingReader, place: Place, raw: Raw, values: dict[str, Read], max_context: int
) -> Traffic | None:
    known = str(values["preset"])
    named = reader.attempt((*place, "preset"), lambda: preset(known)) if known else None
    if known and named is None:
        return None
    talk = _conversation(reader, place, raw, values, named.conversation if named else Conversation())
    prompt, output = _lengths(reader, place, raw, values, named)
    people = None
    if values["users"] is not None:
        people = Users(num=whole(values["users"]), think=talk.think)
    coming = _arrivals(reader, place, raw, values, talk.num_turns) if people is None else None
    if prompt is None or output is None or (people is None and coming is None):
        return None
    num, duration_s = whole(values["requests"]), number(values["duration"])
    if duration_s and not num and not _ends(reader, place, people, coming, duration_s):
        return None
    if not num and not duration_s:
        num = max(DEFAULT_REQUESTS, REQUESTS_PER_USER * people.num if people else 0)
    return reader.attempt(
        place,
        lambda: Traffic(
            name=str(values["name"]) or known or "custom",
            source=named.source if named else None,
            prompt=prompt,
            output=output,
            arrivals=coming,
            users=people,
            conversation=talk,
            num_requests=num,
            duration_s=duration_s,
            max_context=max_context,
        ),
    )


def _ends(
    reader: ServingReader, place: Place, people: Users | None, coming: Arrivals | None, duration_s: float
) -> bool:
    """Whether a duration alone says how many requests come."""
    if coming is not None and isinf(coming.rate_per_s):
        reader.problem((*place, "rate"), "all at once, for a duration", "say how many: requests = 1000")
        return False
    return people is None or reader.attempt(place, lambda: people.most_sessions(duration_s)) is not None


def _lengths(
    reader: ServingReader, place: Place, raw: Raw, values: dict[str, Read], named: Preset | None
) -> tuple[Lengths | None, Lengths | None]:
    known = (named.prompt, named.output) if named else (Fixed(1000), Fixed(250))
    prompt = read_lengths(reader, (*place, "prompt"), raw.get("prompt"), known[0], values["spread"])
    output = read_lengths(reader, (*place, "output"), raw.get("output"), known[1], values["spread"])
    return prompt, output


def _conversation(
    reader: ServingReader, place: Place, raw: Raw, values: dict[str, Read], known: Conversation
) -> Conversation:
    opening: Lengths | None = known.opening
    if "opening" in raw:
        opening = read_lengths(reader, (*place, "opening"), raw["opening"], Fixed(1000), None) or opening

    def count(key: str, default: int) -> int:
        return default if values[key] is None else whole(values[key])

    def ratio(key: str, default: float) -> float:
        return default if values[key] is None else number(values[key])

    num_documents = count("documents", known.num_documents)
    return msgspec.structs.replace(
        known,
        num_turns=ratio("turns", known.num_turns),
        think=Think(
            mean_s=ratio("think", known.think.mean_s),
            variation_ratio=ratio("think_variation", known.think.variation_ratio),
        ),
        opening=opening,
        system_tokens=count("system", known.system_tokens),
        num_groups=count("groups", known.num_groups),
        group_zipf_factor=ratio("group_zipf", known.group_zipf_factor),
        num_documents=num_documents,
        document_tokens=count("document", known.document_tokens or (1000 if num_documents else 0)),
        num_retrieved=count("retrieved", known.num_retrieved),
        document_zipf_factor=ratio("document_zipf", known.document_zipf_factor),
    )


def _arrivals(
    reader: ServingReader, place: Place, raw: Raw, values: dict[str, Read], num_turns: float
) -> Arrivals | None:
    rate = number(values["rate"])
    hourly = _hourly(reader, (*place, "hourly"), raw)
    variation = number(values["burstiness"])
    varies = variation not in (0.0, 1.0)
    return reader.attempt(
        (*place, "rate"),
        lambda: Arrivals(
            # Sessions arrive; each brings `num_turns` requests.
            rate_per_s=rate / num_turns,
            gaps="at-once" if isinf(rate) else "gamma" if varies else "poisson" if variation else "constant",
            variation_ratio=variation or 1.0,
            hourly_factor=hourly,
            swing_fraction=number(values["swing"]),
            peak_s=number(values["peak"]),
            on_s=number(values["busy"]),
            off_s=number(values["quiet"]),
            quiet_ratio=number(values["quiet_ratio"]),
        ),
    )


def _hourly(reader: ServingReader, place: Place, raw: Raw) -> tuple[float, ...]:
    said = raw.get("hourly", [])
    if not isinstance(said, list):
        reader.problem(place, f"hourly is {said!r}", "a list of 24 factors")
        return ()
    found = [reader.quantity(place, one, Rule("ratio")) for one in said]
    return tuple(one for one in found if one is not None)
