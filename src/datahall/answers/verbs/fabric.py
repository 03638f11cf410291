"""Verbs about a fabric: what it is made of, one collective on it, and flows through it."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes
from datahall.scenario.usual import USUAL_NETWORK
from datahall.scenario.words import TOPOLOGIES

ON = ("on", "Topology, or a fabric that was built.")
JOINED = ("chips", "How many chips it joins; a fabric that was built has its own.")
# what is said of a fabric that is laid and not run
LAID = (
    "topologies", "chips", "chip", "switch", "server", "radix", "tiers", "oversubscription", "sides",
    "domain", "nic",
)  # fmt: skip

VERBS = (
    Verb(
        name="show fabric",
        about="switches, cables, bisection, diameter, paths, power and price; several side by side",
        answer="fabric.fabric:show_fabric",
        check="fabric.design.early:check_fabrics",
        takes=(Takes("fabric", only=LAID),),
        arguments=("topologies",),
        required=("topologies",),
        several=True,
        means=(JOINED,),
        leads=(
            "least price_usd",
            "least power_w",
            "most all_to_all_bytes_per_s",
        ),
        examples=(
            "fat-tree --chips 16384 --chip h100-sxm --oversubscription 1:1",
            "nvl72 fat-tree torus tree --chips 9216",
            "meta-24k-roce",
        ),
        details=(
            f"TOPOLOGY is {', '.join(TOPOLOGIES)}, or a fabric that was built: meta-24k-roce, meta-24k-infiniband, "
            "xai-colossus, dgx-superpod-h100, tpu-v4-pod, tpu-v5p-pod, gb200-nvl72-superpod, gb200-nvl72-cluster."
        ),
    ),
    Verb(
        name="show collective",
        about="time, algbw, busbw, the algorithm chosen and why, crossover sizes",
        answer="fabric.collective:show_collective",
        check="fabric.design.early:check_collective",
        takes=(
            Takes("collective"),
            Takes("fabric", only=("on", "chips", "chip", "domain", "nic", "oversubscription", "sides")),
            Takes("failure", only=("fabric…",)),
        ),
        arguments=("collective",),
        required=("collective",),
        means=(("chips", "How many chips take part; one an expert where experts are given."),),
        leads=(
            "least time_s",
            "most busbw_bytes_per_s",
        ),
        examples=(
            "all-reduce --on fat-tree --chips 1024 --chip h100-sxm --size 1GB",
            "all-reduce --on nvl72 --chips 144 --size 64MB --all",
            "all-to-all --experts 64 --tokens 2^20 --topk 2 --hidden 4096",
        ),
    ),
    Verb(
        name="show transport",
        about="latency, bandwidth kept under load, loss, incast and pause storms of transports on one network",
        answer="fabric.transport:show_transport",
        check="fabric.transport.early:check_transports",
        takes=(
            Takes("", only=("seed",)),
            Takes("transports"),
            Takes(
                "fabric",
                only=(
                    "on",
                    "chips",
                    "chip",
                    "domain",
                    "nic",
                    "oversubscription",
                    "switch",
                    "server",
                    "radix",
                    "tiers",
                ),
            ),
        ),
        arguments=("transports",),
        required=("transports",),
        several=True,
        means=(JOINED, ("on", f"Topology, or a fabric that was built (default: {USUAL_NETWORK}).")),
        examples=(
            "infiniband roce spectrum-x tcp --chips 1024",
            "roce --on rail-optimised --chips 2048 --paths 16",
            "tcp roce --chips 512 --loss 1e-4 --senders 64",
        ),
    ),
    Verb(
        name="simulate fabric",
        about="jobs, background traffic and failures on a fabric, flow by flow",
        answer="fabric.simulation:simulate_fabric",
        check="fabric.flows.early:check_flows",
        prepare="fabric.simulation:prepare",
        takes=(
            Takes("", only=("name", "seed")),
            Takes("fabric", without=("topologies",)),
            Takes("network"),
            Takes("simulation"),
            Takes("job"),
            Takes("background"),
            Takes("failure", only=("fabric…", "start", "duration", "reroute")),
            Takes("stall"),
        ),
        required=("on",),
        traced=True,
        means=(
            ON,
            JOINED,
        ),
        leads=(
            "least makespan_s",
            "most mean_bytes_per_s",
            "most slowest_bytes_per_s",
        ),
        examples=(
            "scenario.toml",
            "scenario.toml --detail full --check-with symmetric",
            "scenario.toml -o run.perfetto-trace",
            '--on fat-tree --chips 64 --job "collective=all-reduce,ranks=64,size=64MB"',
        ),
    ),
)
