"""What a step waits for traffic to the host or to drives, as figures that can be opened."""

from __future__ import annotations

from math import isfinite

from datahall.breakdown import (
    Breakdown,
    assumed,
    difference,
    fact,
    given,
    maximum,
    product,
    quotient,
    total,
)
from datahall.cluster.cluster import Cluster
from datahall.scenario.words import TIERS
from datahall.training.layout.columns import Space
from datahall.training.leaf import Degrees, block_widths, counted
from datahall.training.memory.figure import updated_figure
from datahall.training.memory.offload import FORWARD, MEMORY_SHARE, UNKNOWN_MEMORY, Traffic, traffic_of
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job

NOTHING = assumed("nothing", 0.0, "s", "what is hidden does not show")


def offload_figure(
    job: Job, cluster: Cluster, degrees: Degrees, framework: Framework, slot_s: float
) -> Breakdown | None:
    """What the kernels do not hide of the traffic; None where nothing is moved out."""
    if not degrees.layout.offload:
        return None
    space = Space.of(degrees.layout)
    num_micro = space.num_micro(job.global_batch)
    traffic = traffic_of(job, space, job.books(framework), num_micro)
    host = _Outside(job, cluster, framework, degrees, traffic, slot_s)
    parts = []
    if host.place("optimizer"):
        parts.append(host.optimizer())
    if host.place("parameters") or host.place("activations"):
        parts.append(host.every_micro_batch())
    return total("traffic to the host", parts) if parts else None


class _Outside:
    def __init__(
        self,
        job: Job,
        cluster: Cluster,
        framework: Framework,
        degrees: Degrees,
        traffic: Traffic,
        slot_s: float,
    ) -> None:
        self.job, self.cluster, self.framework, self.degrees = job, cluster, framework, degrees
        self.space = Space.of(degrees.layout)
        self.traffic = traffic
        slot = assumed(
            "micro-batch on the slowest stage", slot_s, "s", "closed form: kernels and exposed exchange"
        )
        self.forward = product(
            "forward", [slot, assumed("share", FORWARD, "fraction", "a third of the work")], "s"
        )
        self.backward = product(
            "backward", [slot, assumed("share", 1.0 - FORWARD, "fraction", "two thirds of the work")], "s"
        )

    def place(self, what: str) -> int:
        """0 on the chip, 1 in the host, 2 on drives."""
        return int(self.space.offloaded(what)[0])

    def _rate(self, what: str) -> Breakdown:
        tier = TIERS[self.place(what) - 1]
        rate, chip = self.cluster.host.tier_bytes_per_s(tier), self.cluster.chip
        for name in ("measured_host_bytes_per_s", "host_bytes_per_s"):
            known = chip.facts.get(name)
            if known is not None and known.value == rate:
                return fact(known.label, rate, "bytes_per_s", known.source)
        return assumed(f"rate to {tier}", rate, "bytes_per_s", f"a chip's share of {self.cluster.host.title}")

    def _owned(self) -> Breakdown:
        """Parameters whose state the chip keeps."""
        sharers = self.degrees.sharers("ranks that share them")
        owned = float(self.traffic.owned_values[0])
        how = "of its stage, as they are shared"
        return self._counted("parameters whose state the chip keeps", owned, "parameters", how, sharers)

    def _counted(self, name: str, value: float, unit: str, how: str, *inputs: Breakdown) -> Breakdown:
        """What is counted over the weights or tensors of the chip's stage."""
        split = [self.degrees.number(one) for one in ("tp", "stages")]
        return counted(self.job.model, name, value, unit, how, *block_widths(self.job.model), *split, *inputs)

    def _weights(self, what: str, name: str, each: float, why: str) -> Breakdown:
        values = self._owned()
        size = product(f"{name}, bytes", [values, assumed("bytes of each", each, "bytes", why)], "bytes")
        return quotient(name, size, self._rate(what), "s")

    def optimizer(self) -> Breakdown:
        """Gradients down beside the last backward, then the host's update; drives and the way back run beside it."""
        traffic = self.traffic
        sent = self.framework.sent_bytes(traffic.value_bytes)
        down = self._weights("optimizer", "gradients down", sent, "on the wire")
        late = maximum("gradients after backward", [NOTHING, difference("left over", down, self.backward)])
        back = self._weights("optimizer", "weights back", traffic.value_bytes, self.job.value_width)
        longest = [back, self._update()]
        if self.place("optimizer") == 2:
            both = 2.0 * traffic.recipe.optimizer
            longest.append(
                self._weights("optimizer", "states from drives and back", both, "read and written")
            )
        return total("optimizer outside", [late, maximum("update", longest)])

    def _update(self) -> Breakdown:
        """The host reads and writes the state."""
        host, name = self.cluster.host, "update on the host"
        if not isfinite(host.memory_bytes_per_s):
            return assumed(name, 0.0, "s", f"not counted: {UNKNOWN_MEMORY}")
        state = [self._owned(), updated_figure(self.job.books(self.framework))]
        share = assumed("share reached", MEMORY_SHARE, "fraction", "as on the chip")
        why = f"a chip's share of {host.title}"
        memory = assumed("host memory bandwidth", host.memory_bytes_per_s, "bytes_per_s", why)
        reached = product("reached", [memory, share], "bytes_per_s")
        return quotient(name, product("state read and written", state, "bytes"), reached, "s")

    def every_micro_batch(self) -> Breakdown:
        """Weights come up beside forward while activations go down; in backward both come up."""
        zero = assumed("nothing", 0.0, "s", "stays on the chip")
        weights, kept = zero.named("weights"), zero.named("activations")
        if self.place("parameters"):
            weight_bytes = float(self.traffic.weight_bytes[0])
            size = self._counted("weights of the chip", weight_bytes, "bytes", f"{self.job.value_width} each")
            weights = quotient("weights", size, self._rate("parameters"), "s")
        if self.place("activations"):
            kept_bytes = float(self.traffic.kept_bytes[0])
            tokens = given("tokens of a sequence", self.job.seq, "count", field="seq")
            size = self._counted(
                "activations of a micro-batch",
                kept_bytes,
                "bytes",
                "kept of its layers",
                tokens,
                self.degrees.number("micro-batch"),
            )
            kept = quotient("activations", size, self._rate("activations"), "s")
        forward = difference("left over by forward", maximum("longer way", [weights, kept]), self.forward)
        backward = difference("left over by backward", total("up again", [weights, kept]), self.backward)
        once = total(
            "in one micro-batch",
            [maximum("after forward", [NOTHING, forward]), maximum("after backward", [NOTHING, backward])],
        )
        return product("every micro-batch", [self.degrees.micro_batches(self.job.global_batch), once], "s")
