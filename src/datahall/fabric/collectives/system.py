"""The machine that a collective runs on: scale-up domains joined by a network, and a library on top."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.basis import Basis
from datahall.catalog import Catalog, load
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.network.link import Link
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.fabric.collectives.algorithms.torus import closes
from datahall.fabric.collectives.constants import Across, Inside, Protocol, library
from datahall.fabric.collectives.tuner import LL_MOST, Setting
from datahall.fabric.design.parts import usual_domain, usual_nic_bytes_per_s, usual_server
from datahall.fabric.topology.cuts import Cut
from datahall.scenario.sections.fabric import USUAL_NCCL
from datahall.silicon.calibration import weakest

# families of chips that NCCL's tuner has no constants of its own of, each with the generation it is like; those that
# are no GPU of NVIDIA's are as the newest that it was fitted on
ALIKE = {"turing": "volta", "ada": "ampere", "blackwell-rtx": "blackwell", "rubin": "blackwell"}
DEFAULT_VERSION = USUAL_NCCL
PART_FILLED = "part-filled domain"


class TorusLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link between two neighbours of a torus, and whether every axis closes into a ring."""

    bytes_per_s: float  # one way
    hop_s: float
    wrapped: bool = True


class System(msgspec.Struct, frozen=True, kw_only=True):
    """Ranks in scale-up domains, bandwidth inside and across, a library and its version; bandwidths are one way."""

    name: str
    chip: str
    family: str  # whose constants NCCL's tuner uses
    silicon: str = (
        ""  # the chip's own family, and of what kind the link of its domain is: whose relative it is
    )
    scale_up_technology: str = ""
    num_domain: int  # ranks that reach each other without the network
    scale_up_bytes_per_s: float  # of one chip
    nic_bytes_per_s: float  # of one rank's share of the NICs; 0: no network
    ports_left_fraction: float = 1.0  # of the NICs after a failure, which their rate above is less by
    inside: Inside
    across: Across | None = None
    fabric: str = ""
    library: str = "nccl"
    version: tuple[int, int] = DEFAULT_VERSION
    nvls: bool = True
    ll128: bool = True
    num_channels: int = 0
    inside_level: Basis = "datasheet only"
    harness_s: float = 0.0  # what the benchmark itself adds to each call
    num_chain: int = 0  # chips of a domain that a tree passes one by one, as a domain is sold; 0: all of it
    torus: tuple[int, ...] = ()  # sides of a domain whose chips are wired to their neighbours only
    torus_link: TorusLink | None = None  # None: the chip's scale-up links, two an axis, closed as TPUs are
    cuts: tuple[Cut, ...] = ()  # where the network is narrower than its ports; none: it is not

    @property
    def is_wrapped(self) -> bool:
        """Whether the axes of its torus close into rings; else it is a mesh."""
        return self.torus_link.wrapped if self.torus_link else closes(self.torus)

    @property
    def part_filled_cuts(self) -> tuple[Cut, ...]:
        """The ways out of domains that have fewer ranks, and ports, than the others."""
        return tuple(cut for cut in self.cuts if cut.name == PART_FILLED)

    def shape(self, num_ranks: int) -> tuple[int, int]:
        """Ranks per domain and domains used; more than one domain needs a network."""
        if num_ranks < 2:
            raise ScenarioError(
                f"a collective of {num_ranks} moves nothing",
                field="chips",
                hint=f"at least {option('chips', 2)}",
            )
        inside = min(num_ranks, self.num_domain)
        domains = -(-num_ranks // inside)
        if domains > 1 and self.nic_bytes_per_s <= 0:
            raise InfeasibleError(
                f"{num_ranks:,} ranks do not fit into one domain of {self.num_domain} × {self.chip}, and no network "
                f"joins the domains",
                field="chips",
                hint=f"a network between them, e.g. {option('nic', '400 Gb/s')}, or at most {self.num_domain} ranks",
            )
        return inside, domains

    def apart(self, stride: int) -> System:
        """The machine as ranks see it that are `stride` apart, while the ranks between them do the same."""
        return msgspec.structs.replace(
            self,
            num_domain=max(1, self.num_domain // max(1, stride)),
            num_chain=max(1, self.num_chain // max(1, stride)) if self.num_chain else 0,
            cuts=tuple(cut.apart(stride) for cut in self.cuts),
        )

    def filled(self, num_ranks: int) -> System:
        """The machine as ranks see it that fill its domains in order: the last may have few of them, and their ports.

        >>> [cut.num_below for cut in system_of("h100-sxm").filled(20).cuts]
        [4]
        """
        if self.torus:
            return self if self.torus_link else self._sliced(num_ranks)
        last = num_ranks % self.num_domain
        if last in {0, num_ranks} or self.nic_bytes_per_s <= 0:
            return self
        if self.part_filled_cuts:  # failures left it ports unlike the others'
            return self
        return msgspec.structs.replace(
            self, cuts=(*self.cuts, part_filled(last, num_ranks, self.nic_bytes_per_s))
        )

    def _sliced(self, num_ranks: int) -> System:
        """The slices of TPUs with what leaves a chip of them, and a slice where there are several."""
        link = self.scale_up_bytes_per_s / (2 * len(self.torus))
        ways = 2 if self.is_wrapped else 1  # of a mesh, the chip in a corner
        found = [
            Cut(
                name="chip",
                num_below=1,
                num_full=1,
                bytes_per_s=link * sum(ways if side > 2 else 1 for side in self.torus if side > 1),
                link_bytes_per_s=link,
            )
        ]
        if num_ranks > self.num_domain:
            size, port = self.num_domain, self.nic_bytes_per_s
            found.append(
                Cut(
                    name="slice",
                    num_below=size,
                    num_full=size,
                    bytes_per_s=size * port,
                    link_bytes_per_s=port,
                )
            )
        return msgspec.structs.replace(self, cuts=tuple(found))

    def with_scale_up(self, factor: float) -> System:
        """The same machine with scale-up links `factor` times as fast."""
        return msgspec.structs.replace(
            self,
            scale_up_bytes_per_s=factor * self.scale_up_bytes_per_s,
            inside=scaled(self.inside, factor),
        )

    def with_network(self, factor: float) -> System:
        """The same machine with a network `factor` times as fast: its ports and every narrow place."""
        return msgspec.structs.replace(
            self,
            nic_bytes_per_s=factor * self.nic_bytes_per_s,
            cuts=tuple(
                msgspec.structs.replace(
                    cut,
                    bytes_per_s=factor * cut.bytes_per_s,
                    widest_bytes_per_s=factor * cut.widest_bytes_per_s,
                    link_bytes_per_s=factor * cut.link_bytes_per_s,
                    pair_bytes_per_s=factor * cut.pair_bytes_per_s,
                )
                for cut in self.cuts
            ),
        )

    def level(self, num_ranks: int) -> Basis:
        """What an answer for so many ranks rests on: the weaker of the domain's and the network's constants."""
        _, domains = self.shape(num_ranks)
        if domains == 1 or self.across is None:
            return self.inside_level
        return weakest((self.inside_level, self.across.level))

    def has_ll128(self, domains: int) -> bool:
        """Whether NCCL may use LL128: the chip, the network and the user must allow it."""
        network = domains == 1 or self.across is None or self.across.ll128
        return self.ll128 and self.inside.ll128 is not None and network

    def setting(self, num_ranks: int) -> Setting:
        """What NCCL's tuner sees: of domains whose ports differ, the least."""
        inside, domains = self.shape(num_ranks)
        ports = [cut.bytes_per_s for cut in self.part_filled_cuts]
        return Setting(
            family=self.family,
            num_ranks=num_ranks,
            num_nodes=domains,
            nvlink=self.scale_up_bytes_per_s > 70e9,
            node_network_bytes_per_s=min([self.nic_bytes_per_s * inside, *ports]),
            network_latency_s=self.across.plugin_latency_s if self.across else 0.0,
            ll128=self.has_ll128(domains),
            nvls=self.nvls and self.inside.nvls_bytes_per_s > 0,
            version=self.version,
            num_channels=self.num_channels,
            num_chain=self.num_chain,
        )


def part_filled(num_last: int, num_ranks: int, port_bytes_per_s: float, left_fraction: float = 1.0) -> Cut:
    """The way out of the last domain, which so few of the ranks are in, through their own ports."""
    ports_bytes_per_s = num_last * port_bytes_per_s * left_fraction
    return Cut(
        name=PART_FILLED, num_below=num_last, num_full=num_ranks, bytes_per_s=ports_bytes_per_s,
        link_bytes_per_s=port_bytes_per_s, left_fraction=left_fraction,
        sizes=((num_ranks - num_last, 1), (num_last, 1)), widest_bytes_per_s=ports_bytes_per_s,
    )  # fmt: skip


def inside_of(chip: Chip, wire: Link | None, level: str | None = None) -> tuple[Inside, Basis]:
    """The constants of a chip's scale-up domain: its own, its family's with its own link rate, or generic ones."""
    sets = library().inside
    if level in {None, "measured"} and chip.name in sets:
        return sets[chip.name], "measured"
    link = chip.scale_up_bytes_per_s
    kin = next(
        (
            one
            for one in sets.values()
            if one.chip and one.family == family_of(chip) and not one.num_mesh_links
        ),
        None,
    )
    if level in {None, "family"} and kin is not None and isfinite(link) and _is_nvlink(wire):
        reference = load().chip(kin.chip).scale_up_bytes_per_s
        return scaled(kin, link / reference), "family-calibrated"
    if level in {None, "datasheet"}:
        if not isfinite(link) or link <= 0:
            raise UnsupportedError(
                f"nobody published a scale-up bandwidth for {chip.name}", hint="pick another chip"
            )
        return generic(chip, wire), "datasheet only"
    raise ScenarioError(
        f'{chip.name} has no collective constants of level "{level}"',
        field="level",
        hint=f"leave {option('level')} out",
    )


def family_of(chip: Chip) -> str:
    """The generation whose constants NCCL's tuner uses for a chip."""
    family = ALIKE.get(chip.family, chip.family)
    return family if family in LL_MOST else "hopper"


def scaled(kin: Inside, factor: float) -> Inside:
    """Constants of a relative whose links are `factor` times as fast; latencies stay."""

    def faster(one: Protocol | None) -> Protocol | None:
        return one and msgspec.structs.replace(one, bytes_per_s=one.bytes_per_s * factor)

    return msgspec.structs.replace(
        kin,
        ll=faster(kin.ll),
        ll128=faster(kin.ll128),
        simple=faster(kin.simple),
        exchange=faster(kin.exchange),
        nvls_bytes_per_s=kin.nvls_bytes_per_s * factor,
    )


GENERIC = "generic"
SWITCHED_SUMS = {"hopper", "blackwell"}


def generic(chip: Chip, wire: Link | None) -> Inside:
    """Generic constants times a chip's own link rate; in the file the generic link carries 1 B/s."""
    found = scaled(library().inside[GENERIC], chip.scale_up_bytes_per_s)
    sums = family_of(chip) in SWITCHED_SUMS and _is_nvlink(wire)
    meshed = wire is not None and wire.wiring == "mesh"
    return msgspec.structs.replace(
        found,
        nvls_bytes_per_s=found.nvls_bytes_per_s if sums else 0.0,
        num_mesh_links=chip.num_scale_up_domain - 1 if meshed else 0,
    )


def _is_nvlink(wire: Link | None) -> bool:
    return wire is not None and wire.technology == "nvlink"


def network_of(fabric: str, level: str | None = None) -> Across:
    """The constants of a network; at datasheet level NCCL's own, with the latency that its plug-in states."""
    nets = library().across
    if level != "datasheet" and fabric in nets:
        return nets[fabric]
    stated = nets[fabric].plugin_latency_s if fabric in nets else 0.0
    plain = nets[GENERIC]
    return msgspec.structs.replace(
        plain,
        hop_s=tuple(one + stated for one in plain.hop_s),
        tree_hop_s=tuple(one + stated for one in plain.tree_hop_s),
        plugin_latency_s=stated,
    )


def system_of(
    chip: str | Chip, *, num_domain: int = 0, nic_bytes_per_s: float | None = None, fabric: str = "infiniband",
    version: tuple[int, int] = DEFAULT_VERSION, level: str | None = None,
    catalog: Catalog | None = None,
) -> System:  # fmt: skip
    """A system from the catalogue: the chip's domain and links, and its usual NIC; 0 B/s is no network."""
    known = catalog or load()
    part = known.chip(chip) if isinstance(chip, str) else chip
    home = usual_server(known, part)
    wire = known.scale_up_of(part)
    inside, basis = inside_of(part, wire, level)
    nic = usual_nic_bytes_per_s(part, home) if nic_bytes_per_s is None else nic_bytes_per_s
    net = network_of(fabric, level)
    return System(
        name=f"{part.name} on {fabric}" if nic else part.name,
        chip=part.name,
        family=family_of(part),
        silicon=part.family,
        scale_up_technology=wire.technology if wire is not None else "",
        num_domain=num_domain or usual_domain(known, part, home),
        scale_up_bytes_per_s=part.scale_up_bytes_per_s,
        nic_bytes_per_s=nic,
        inside=inside,
        across=net if nic else None,
        fabric=fabric,
        version=version,
        inside_level=basis,
        num_chain=usual_domain(known, part, home),
    )
