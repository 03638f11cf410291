"""Traffic from the few things a person says on a command line."""

from __future__ import annotations

import math

import msgspec

from datahall.errors import ScenarioError, UnitError
from datahall.units import parse
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation, Think
from datahall.workload.traffic.lengths import Fixed, Lengths, Lognormal, check_lengths, mean_tokens
from datahall.workload.traffic.presets import preset
from datahall.workload.traffic.traffic import TraceReplay, Traffic
from datahall.workload.traffic.users import Users

DEFAULT_REQUESTS = 10_000
REQUESTS_PER_USER = 5  # so that most of a run of users is past its first rush
Said = str | float | None


def traffic_from(
    *,
    rate: Said = None,
    users: Said = None,
    trace: str = "",
    preset_name: str = "",
    isl: Said = None,
    osl: Said = None,
    spread: Said = None,
    burstiness: Said = None,
    duration: Said = None,
    num_requests: Said = None,
    turns: Said = None,
    think: Said = None,
    system: Said = None,
    groups: Said = None,
    documents: Said = None,
    document: Said = None,
    speed: Said = None,
    sort: bool = False,
    max_context: int = 0,
) -> Traffic:
    """Traffic as flags say it; what is left out is the preset's, or a plain default.

    `rate` [requests per second, later turns included; "inf": all at once], `isl` and `osl` [tokens], `spread`
    (standard deviation of both lengths over their mean; 0: all the same), `burstiness` (the same of the gaps between
    requests), `duration` and `think` [s], `system` [tokens of the system prompt], `groups` (different ones),
    `documents` (in the library) of `document` tokens, `speed` of a trace.
    """
    end = _end(num_requests, duration)
    if trace:
        own = {
            "rate": rate,
            "users": users,
            "isl": isl,
            "osl": osl,
            "spread": spread,
            "burstiness": burstiness,
        }
        own |= {"turns": turns, "think": think, "system": system, "traffic": preset_name or None}
        _none_of(own, "together with a trace", "a trace brings its own; --speed 2 doubles its rate")
        play = TraceReplay(
            path=trace, speed_ratio=_number("speed", speed, "ratio", 1.0, positive=True), sort=sort
        )
        return Traffic(
            name=trace, trace=play, num_requests=end[0], duration_s=end[1], max_context=max_context
        )
    _none_of({"speed": speed, "sort": sort or None}, "without a trace", "use --rate for other traffic")
    named = preset(preset_name) if preset_name else None
    known = named.conversation if named else Conversation()
    talk = _conversation(known, turns, think, system, groups, documents, document)
    people = _users(rate, users, talk.think)
    if end == (0, 0.0):
        end = (max(DEFAULT_REQUESTS, REQUESTS_PER_USER * people.num if people else 0), 0.0)
    return Traffic(
        name=preset_name or "custom",
        source=named.source if named else None,
        prompt=_lengths("isl", isl, spread, named.prompt if named else Fixed(1000)),
        output=_lengths("osl", osl, spread, named.output if named else Fixed(250)),
        arrivals=None if people else _arrivals(rate, burstiness, talk.num_turns),
        users=people,
        conversation=talk,
        num_requests=end[0],
        duration_s=end[1],
        max_context=max_context,
    )


def _none_of(flags: dict[str, Said], why: str, hint: str) -> None:
    for flag, said in flags.items():
        if said is not None:
            raise ScenarioError(f"--{flag} {why}", where=f"--{flag}", hint=hint)


def _end(num_requests: Said, duration: Said) -> tuple[int, float]:
    most = _whole("requests", num_requests, 0, positive=True)
    return most, _number("duration", duration, "s", 0.0, positive=True)


def _users(rate: Said, users: Said, think: Think) -> Users | None:
    if rate is not None and users is not None:
        raise ScenarioError(
            "both a rate and a number of users",
            where="--rate",
            hint="a rate comes whatever the service does; users wait for their answers. Choose one",
        )
    if users is not None:
        return Users(num=_whole("users", users, 0, positive=True), think=think)
    if rate is None:
        raise ScenarioError(
            "neither a rate nor users", where="--rate", hint="e.g. --rate 80, or --users 10000 --think 30s"
        )
    return None


def _number(flag: str, said: Said, unit: str, default: float, *, positive: bool = False) -> float:
    if said is None:
        return default
    try:
        value = parse(said, unit)
    except UnitError as error:
        raise ScenarioError(error.message, where=f"--{flag}", hint=error.hint) from error
    if value < 0 or (positive and value == 0):
        raise ScenarioError(
            f"--{flag} is {said}",
            where=f"--{flag}",
            hint="give a positive number" if positive else "give 0 or more",
        )
    return value


def _whole(flag: str, said: Said, default: int, *, unit: str = "count", positive: bool = False) -> int:
    value = _number(flag, said, unit, float(default), positive=positive)
    if value != round(value):
        raise ScenarioError(f"--{flag} is {said}", where=f"--{flag}", hint="give a whole number")
    return int(value)


def _lengths(flag: str, said: Said, spread: Said, default: Lengths) -> Lengths:
    variation = _number("spread", spread, "ratio", 0.0)
    if said is None and spread is None:
        return default
    mean = (
        mean_tokens(default) if said is None else float(_whole(flag, said, 0, unit="tokens", positive=True))
    )
    lengths: Lengths = Lognormal(mean, variation) if variation else Fixed(round(mean))
    check_lengths(lengths, f"--{flag}")
    return lengths


def _arrivals(rate: Said, burstiness: Said, num_turns: float) -> Arrivals:
    if (isinstance(rate, str) and rate.strip().lower() == "inf") or rate == math.inf:
        return Arrivals(rate_per_s=math.inf, gaps="at-once")
    # Sessions arrive; each brings `num_turns` requests.
    per_s = _number("rate", rate, "count", 0.0, positive=True) / max(1.0, num_turns)
    variation = _number("burstiness", burstiness, "ratio", 1.0)
    if variation == 0:
        return Arrivals(rate_per_s=per_s, gaps="constant")
    return Arrivals(
        rate_per_s=per_s, gaps="poisson" if variation == 1 else "gamma", variation_ratio=variation
    )


def _conversation(
    known: Conversation, turns: Said, think: Said, system: Said, groups: Said, documents: Said, document: Said
) -> Conversation:
    num_documents = _whole("documents", documents, known.num_documents)
    return msgspec.structs.replace(
        known,
        num_turns=_number("turns", turns, "count", known.num_turns, positive=True),
        think=Think(
            mean_s=_number("think", think, "s", known.think.mean_s),
            variation_ratio=known.think.variation_ratio,
        ),
        system_tokens=_whole("system", system, known.system_tokens, unit="tokens"),
        num_groups=_whole("groups", groups, known.num_groups, positive=True),
        num_documents=num_documents,
        document_tokens=_whole(
            "document", document, known.document_tokens or (1000 if num_documents else 0), unit="tokens"
        ),
    )
