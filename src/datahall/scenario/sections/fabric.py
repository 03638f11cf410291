"""How chips are wired, and what is sent over the wires: the design of a fabric, its transport, jobs, background, stalls."""

from typing import Annotated

from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.kinds import (
    Choice,
    Count,
    Flag,
    Listed,
    Name,
    Numbers,
    Quantity,
    Ratios,
    Share,
    Sides,
    Text,
    Topology,
    Version,
)
from datahall.scenario.sections.deployment import MOST_CHIPS, SLOWEST
from datahall.scenario.sections.wanted.promise import MOST_WAIT_S
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import (
    COLLECTIVES,
    LEVELS,
    NCCL_ALGOS,
    PATTERNS,
    POLICIES,
    SPLITTING,
    TAPERED,
    Collective,
    Policy,
)
from datahall.workload.precision import ACTIVATIONS

USUAL_NCCL = (2, 27)  # the version where nobody says one, and the newest whose choices are known
MOST_TIERS = 4  # of switches: two million chips with 64 ports
FULL_WIDTH = (1.0,)  # down over up, where nobody says it
NCCL = ".".join(map(str, USUAL_NCCL))
# groups of what is said of a fabric: what every answer about many chips takes, its parts, and links that are all alike
WIRING, PARTS, LINKS = "wiring", "parts", "links"


class FabricDesign(Section, frozen=True, kw_only=True):
    """So many chips of a kind on a topology: of parts from the catalogue, or of links that are all alike."""

    topology: Annotated[
        str,
        Topology(
            "Topology, or a fabric that was built (default: as the chip is sold, full bisection).",
            flat="on",
            group=WIRING,
        ),
    ] = ""
    topologies: Annotated[
        tuple[str, ...],
        Listed(
            "Topologies, or fabrics that were built, side by side.",
            of=Topology(""),
            against=("on",),
            metavar="TOPOLOGY",
        ),
    ] = ()
    chips: Annotated[
        int | None,
        Count(
            "How many chips (default: all of a fabric that was built, or those of the replicas).",
            most=MOST_CHIPS,
            example="1024",
        ),
    ] = None
    chip: Annotated[str, Name(f"Chip (default: {USUAL_CHIP}, or the topology's usual one).", of="chip")] = ""
    domain: Annotated[
        int | None,
        Count("Chips that need no network (default: as the chip is sold).", most=MOST_CHIPS, group=WIRING),
    ] = None
    nic_bytes_per_s: Annotated[
        float | None,
        Quantity("Network of a chip, one way (default: its usual one).", least=SLOWEST, group=WIRING),
    ] = None
    oversubscription: Annotated[
        tuple[float, ...],
        Ratios(
            f'Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: {FULL_WIDTH[0]:g}:1).',
            needs=("on", "topologies"),
            group=WIRING,
        ),
    ] = ()
    switch: Annotated[
        str,
        Name(
            "Switch of the catalogue (default: of the port's speed).",
            of="switch",
            rare=True,
            needs=("on", "topologies"),
            group=PARTS,
        ),
    ] = ""
    server: Annotated[
        str,
        Name(
            "Server of the catalogue (default: the one the chip is sold in).",
            of="server",
            rare=True,
            needs=("on", "topologies"),
            group=PARTS,
        ),
    ] = ""
    radix: Annotated[
        int | None,
        Count(
            "Ports of a switch, instead of the catalogue's.",
            least=2,
            most=4096,
            rare=True,
            needs=("on", "topologies"),
            group=PARTS,
        ),
    ] = None
    tiers: Annotated[
        int | None,
        Count(
            "Tiers of switches (default: the fewest).",
            most=MOST_TIERS,
            rare=True,
            needs=("on", "topologies"),
            group=PARTS,
        ),
    ] = None
    sides: Annotated[
        tuple[int, ...],
        Sides(
            "Sides of a torus (default: the most cube-like).",
            most=MOST_CHIPS,
            rare=True,
            needs=("on", "topologies"),
            group=PARTS,
        ),
    ] = ()
    bandwidth_bytes_per_s: Annotated[
        float | None,
        Quantity(
            "Bandwidth of every link, one way, instead of the catalogue's parts.",
            least=SLOWEST,
            rare=True,
            against=("chip", "server", "switch", "nic"),
        ),
    ] = None
    latency_s: Annotated[
        float, Quantity("Latency of every such link.", needs=("bandwidth",), group=LINKS, rare=True)
    ] = 500e-9
    scale_up_bytes_per_s: Annotated[
        float,
        Quantity(
            "A chip's scale-up links beside them, one way.",
            least=SLOWEST,
            needs=("bandwidth",),
            group=LINKS,
            rare=True,
        ),
    ] = 450e9
    scale_up_latency_s: Annotated[
        float, Quantity("Latency of a scale-up link.", needs=("bandwidth",), group=LINKS, rare=True)
    ] = 500e-9

    @property
    def ratios(self) -> tuple[float, ...]:
        """Down over up of each tier, as it was said, or of none that is narrower than that below it."""
        return self.oversubscription or FULL_WIDTH

    @property
    def named(self) -> list[str]:
        """The topologies that were named, of a verb that takes several."""
        return self.topology.split(",")

    def usual(self) -> dict[str, object]:
        tapered = any(name in TAPERED for name in (*self.named, *self.topologies))
        return {"oversubscription": FULL_WIDTH} if tapered else {}


def no_chips(example: int = 1024) -> ScenarioError:
    """How many chips there are is needed, and neither a person nor a fabric says it."""
    return ScenarioError(
        f"{option('chips')} is missing", field="chips", hint=f"e.g. {option('chips', example)}"
    )


class Network(Section, frozen=True, kw_only=True):
    """How flows choose their paths, and how the transport behaves."""

    routing: Annotated[
        Policy, Choice(f"How flows choose among equal paths: {', '.join(POLICIES)}.", options=POLICIES)
    ] = "ecmp"
    paths: Annotated[
        int,
        Count(
            "Queue pairs that a flow is split into.",
            most=1024,
            needs=tuple(f"routing={one}" for one in SPLITTING),
        ),
    ] = 1
    transport: Annotated[
        str,
        Name("How the network meets contention: infiniband, roce, spectrum-x, tcp.", of="transport"),
    ] = "infiniband"
    lanes: Annotated[
        int,
        Count(
            "Virtual lanes; with 1 a blocked flow blocks all behind it.",
            most=16,
            rare=True,
        ),
    ] = 2
    loss_fraction: Annotated[
        float, Share("Share of packets that a transport drops, of one that may.", below=True, rare=True)
    ] = 0.0
    selective_repeat: Annotated[
        bool, Flag("Send only what was lost again, not the whole window.", rare=True, needs=("loss",))
    ] = False
    watchdog_s: Annotated[
        float | None,
        Quantity(
            "Time after which a paused port drops what it holds (default: the transport's).",
            rare=True,
            needs=("stall",),
        ),
    ] = None


class FabricJob(Section, frozen=True, kw_only=True):
    """A collective on some endpoints, over and over."""

    name: Annotated[str, Text("Name of the job in the tables.")] = ""
    collective: Annotated[Collective, Choice("Collective that the ranks run.", options=COLLECTIVES)] = (
        "all-reduce"
    )
    algorithm: Annotated[str, Text("Algorithm of the collective (default: a ring, or direct).")] = ""
    ranks: Annotated[
        tuple[int, ...],
        Numbers("Chips that take part: 64 (the first 64), 0-63, 0-1023:8 (default: all).", ranks=True),
    ] = ()
    size_bytes: Annotated[float, Quantity("The whole array, as in nccl-tests.", above=True)] = 1e6
    repeat: Annotated[int, Count("How often it runs, one after the other.", most=10_000_000)] = 1
    start_s: Annotated[float, Quantity("When the job begins.", most=MOST_WAIT_S)] = 0.0
    pause_s: Annotated[float, Quantity("Time between two runs.", most=MOST_WAIT_S, needs=("repeat",))] = 0.0
    overhead_s: Annotated[float, Quantity("Time that software takes for each message.", most=MOST_WAIT_S)] = (
        0.0
    )


class Background(Section, frozen=True, kw_only=True):
    """Flows that nobody waits for."""

    name: Annotated[str, Text("Name of the background in the tables.")] = ""
    pattern: Annotated[str, Choice("Who sends to whom.", options=PATTERNS)] = "permutation"
    hosts: Annotated[tuple[int, ...], Numbers("Chips that send and receive (default: all).", ranks=True)] = ()
    target: Annotated[
        int | None,
        Count("Incast: the chip that receives (default: the first).", needs=("pattern=incast",), least=0),
    ] = None
    size_bytes: Annotated[float, Quantity("Bytes of one flow.", above=True)] = 1e6
    load_fraction: Annotated[
        float, Share("Random: share of the line rate that is offered.", needs=("pattern=random",), above=True)
    ] = 0.3
    start_s: Annotated[float, Quantity("When the background begins.", most=MOST_WAIT_S)] = 0.0
    until_s: Annotated[
        float,
        Quantity(
            "Random: how long flows keep arriving.", needs=("pattern=random",), above=True, most=MOST_WAIT_S
        ),
    ] = 1e-3


class Stall(Section, frozen=True, kw_only=True):
    """A chip that stops draining its port."""

    chip: Annotated[int, Count("Number of the chip.", least=0)] = 0
    start_s: Annotated[float, Quantity("When it stops draining.", most=MOST_WAIT_S)] = 0.0
    duration_s: Annotated[float | None, Quantity("How long it stalls (default: for good).", above=True)] = (
        None
    )


class CollectiveCall(Section, frozen=True, kw_only=True):
    """One collective, by its size or as an MoE layer sizes it."""

    collective: Annotated[Collective, Choice(f"{', '.join(COLLECTIVES)}.", options=COLLECTIVES)] = (
        "all-reduce"
    )
    size_bytes: Annotated[
        float | None,
        Quantity(
            "The whole array, as in nccl-tests.",
            above=True,
            against=("experts",),
            example="1GB",
        ),
    ] = None
    experts: Annotated[int | None, Count("MoE: experts, one a chip.", least=2)] = None
    tokens: Annotated[
        int | None, Count("MoE: tokens of all chips together.", unit="tokens", needs=("experts",))
    ] = None
    topk: Annotated[int | None, Count("MoE: experts of each token.", needs=("experts",))] = None
    hidden: Annotated[int | None, Count("MoE: hidden size.", needs=("experts",))] = None
    precision: Annotated[
        str,
        Choice(
            f"MoE: what the tokens are sent in: {', '.join(ACTIVATIONS)}.",
            options=ACTIVATIONS,
            metavar="FORMAT",
            needs=("experts",),
        ),
    ] = "bf16"
    algorithm: Annotated[
        str | None,
        Choice(f"Only this one of NCCL's: {', '.join(NCCL_ALGOS)}.", options=NCCL_ALGOS, metavar="NAME"),
    ] = None
    version: Annotated[
        tuple[int, int] | None,
        Version(
            f"Version of NCCL (default {NCCL}).",
            library="NCCL",
            first=(2, 0),
            last_major=USUAL_NCCL[0],
            example=NCCL,
        ),
    ] = None
    level: Annotated[
        str | None,
        Choice(
            "Constants of links and network: datasheet, family or measured (default: the best there are).",
            options=tuple(LEVELS),
        ),
    ] = None
    all: Annotated[bool, Flag("Every protocol, and what textbooks add.")] = False
