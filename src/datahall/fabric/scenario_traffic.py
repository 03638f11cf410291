"""What a scenario says of jobs, background, failures and stalls."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.errors import DatahallError
from datahall.events import stream
from datahall.fabric.collectives.algorithms.steps import DECOMPOSITIONS, algorithms, phases
from datahall.fabric.flows.failures import Outage, links_of
from datahall.fabric.flows.jobs import Burst, Job
from datahall.fabric.flows.simulate import NO_CHANGES, Changes, merged
from datahall.fabric.routing.ecmp import permutation
from datahall.fabric.scenario_file import Read, Reader, Rule, endpoints, number
from datahall.fabric.topology.graph import Fabric, Floats, Ints

COLLECTIVES = tuple(dict.fromkeys(name for name, _ in DECOMPOSITIONS))
PATTERNS = ("permutation", "incast", "random")
PARTS = {"link": "links", "switch": "switches", "nic": "nics", "chip": "chips", "domain": "domains"}
MOST_BACKGROUND = 2_000_000

JOB = {
    "name": Rule("text", ""),
    "collective": Rule("text", "all-reduce", COLLECTIVES, required=True),
    "algorithm": Rule("text", ""),
    "ranks": Rule("ranks", required=True),
    "size": Rule("bytes", 1e6, required=True, above=True),
    "repeat": Rule("count", 1.0, least=1),
    "start": Rule("s", 0.0),
    "pause": Rule("s", 0.0),
    "overhead": Rule("s", 0.0),
}
BACKGROUND = {
    "name": Rule("text", ""),
    "pattern": Rule("text", "permutation", PATTERNS, required=True),
    "hosts": Rule("ranks"),
    "target": Rule("count"),
    "size": Rule("bytes", 1e6, required=True, above=True),
    "load": Rule("fraction", 0.3, above=True),
    "start": Rule("s", 0.0),
    "until": Rule("s", 1e-3, above=True),
}
FAILURE = {
    "at": Rule("s", 0.0, required=True),
    "until": Rule("s"),
    "left": Rule("fraction", 0.0),
    "link": Rule("count"),
    "switch": Rule("count"),
    "nic": Rule("count"),
    "chip": Rule("count"),
    "domain": Rule("count"),
}
STALL = {"chip": Rule("count", required=True), "at": Rule("s", 0.0, required=True), "until": Rule("s")}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is, for the closed form: the collective, the algorithm and its size [B]."""

    collective: str
    algorithm: str
    size_bytes: float
    num_in_domain: int


class Stall(msgspec.Struct, frozen=True):
    """A chip that stops draining its port, from at_s to until_s."""

    link: int
    at_s: float
    until_s: float


def read_job(
    reader: Reader, place: tuple[str, ...], values: dict[str, Read], fabric: Fabric
) -> tuple[Job, Ask] | None:
    collective = str(values["collective"])
    algorithm = str(values["algorithm"]) or algorithms(collective)[0]
    if not isinstance(values["ranks"], list):
        return None
    hosts, wrong = endpoints(values["ranks"], fabric.num_hosts)
    if wrong:
        reader.problem((*place, "ranks"), wrong)
        return None
    inside = int(np.bincount(fabric.domain[hosts]).max()) if hosts.size else 1
    size = number(values["size"])
    try:
        steps = phases(collective, algorithm, hosts.size, size, inside)
    except DatahallError as error:
        reader.problem((*place, "algorithm"), error.message, error.hint)
        return None
    job = Job(
        name=str(values["name"]) or f"{collective} {place[1]}",
        hosts=hosts,
        phases=steps,
        start_s=number(values["start"]),
        repeat=int(number(values["repeat"])),
        pause_s=number(values["pause"]),
        message_s=number(values["overhead"]),
    )
    return job, Ask(collective=collective, algorithm=algorithm, size_bytes=size, num_in_domain=inside)


def read_burst(
    reader: Reader, place: tuple[str, ...], values: dict[str, Read], fabric: Fabric, seed: int
) -> Burst:
    chosen = values["hosts"] if isinstance(values["hosts"], list) else list(range(fabric.num_hosts))
    hosts, wrong = endpoints(chosen, fabric.num_hosts)
    if wrong or hosts.size < 2:
        reader.problem((*place, "hosts"), wrong or "background needs two endpoints or more")
        hosts = np.arange(2, dtype=np.int32)
    rng = stream(seed, "background", int(place[1]))
    start, size = number(values["start"]), number(values["size"])
    source, target, start_s = _pattern(reader, place, values, hosts, rng, fabric)
    return Burst(
        name=str(values["name"]) or f"{values['pattern']} {place[1]}",
        source=source,
        target=target,
        num_bytes=np.full(source.size, size),
        start_s=start + start_s,
    )


def _pattern(
    reader: Reader, place: tuple[str, ...], values: dict[str, Read], hosts: Ints, rng: np.random.Generator,
    fabric: Fabric,
) -> tuple[Ints, Ints, Floats]:  # fmt: skip
    if values["pattern"] == "permutation":
        source, target = permutation(hosts.size, rng)
        return hosts[source], hosts[target], np.zeros(source.size)
    if values["pattern"] == "incast":
        victim = int(number(values["target"])) if values["target"] is not None else int(hosts[0])
        if victim >= fabric.num_hosts:
            reader.problem(
                (*place, "target"), f"endpoint {victim} is not there", f"0 to {fabric.num_hosts - 1:,}"
            )
            victim = 0
        source = hosts[hosts != victim]
        return source, np.full(source.size, victim, np.int32), np.zeros(source.size)
    # Poisson arrivals that offer `load` of every endpoint's line rate
    duration = number(values["until"])
    line = float(fabric.link_bytes_per_s[: fabric.num_hosts].max())
    expected = number(values["load"]) * line * hosts.size * duration / number(values["size"])
    if expected > MOST_BACKGROUND:
        reader.problem(
            place, f"about {expected:,.0f} background flows", f"at most {MOST_BACKGROUND:,}: larger size"
        )
        expected = 0.0
    count = int(rng.poisson(expected))
    first = rng.integers(0, hosts.size, count)
    second = (first + rng.integers(1, hosts.size, count)) % hosts.size
    return hosts[first], hosts[second], np.sort(rng.random(count)) * duration


def read_failure(reader: Reader, place: tuple[str, ...], values: dict[str, Read], fabric: Fabric) -> Changes:
    named = [part for part in PARTS if values[part] is not None]
    if len(named) != 1:
        reader.problem(place, "a failure names one part", f"one of {', '.join(PARTS)}")
        return NO_CHANGES
    which = (int(number(values[named[0]])),)
    try:
        outage = msgspec.convert({PARTS[named[0]]: which}, Outage)
        hit = np.flatnonzero(links_of(fabric, outage)).astype(np.int32)
    except DatahallError as error:
        reader.problem((*place, named[0]), error.message, error.hint)
        return NO_CHANGES
    at, before = number(values["at"]), fabric.link_bytes_per_s[hit]
    out = Changes(np.full(hit.size, at), hit, before * number(values["left"]))
    if values["until"] is None:
        return out
    until = number(values["until"])
    if until <= at:
        reader.problem(
            (*place, "until"), "the repair is not after the failure", "until must be later than at"
        )
    return merged(out, Changes(np.full(hit.size, until), hit, before))


def read_stall(reader: Reader, place: tuple[str, ...], values: dict[str, Read], fabric: Fabric) -> Stall:
    chip = int(number(values["chip"])) if values["chip"] is not None else 0
    if chip >= fabric.num_hosts:
        reader.problem((*place, "chip"), f"chip {chip} is not there", f"0 to {fabric.num_hosts - 1:,}")
        chip = 0
    into = np.flatnonzero(fabric.link_target == chip)
    until = np.inf if values["until"] is None else number(values["until"])
    return Stall(int(into[0]), number(values["at"]), until)
