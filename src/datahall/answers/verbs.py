"""The table of verbs: what each asks, which inputs it takes, which function answers, and lines to copy.

`--help`, completion, `explain`, the functions of `import datahall as dh`, the reference and the golden tests are drawn
from it.  It loads nothing, so that help is quick.
"""

from __future__ import annotations

from datahall.answers.verb import Group, Verb
from datahall.scenario.takes import Takes
from datahall.scenario.words import TOPOLOGIES

GROUPS = (
    Group("plan", "what to build, and why not something else", "decide"),
    Group("explain", "the chain behind any answer, or what a term means", "decide"),
    Group("show", "one question, answered from closed forms", "look"),
    Group("simulate", "watch it happen, event by event", "look"),
    Group("validate", "our error against public measurements", "trust"),
    Group("check", "every problem of a scenario, a catalogue file or a config.json", "trust"),
    Group("catalog", "what is known of chips, models, links, servers, prices; search and add", "trust"),
)

MODEL = Takes("", only=("model",))
UNPLANNED = ("batching", "wait")  # a closed form is of continuous batching
JOINED = ("chips", "How many chips it joins; a fabric that was built has its own.")
ON_FABRIC = ("chip", "Chip that it runs on, unless the fabric is made of another.")
MODEL_DETAILS = "MODEL is a name of the catalogue or a config.json in the Hugging Face format."

# what some verbs take of a deployment or a fabric
FIT = (
    "chip", "tp", "precision", "engine", "adapters", "adapter_rank", "resident_adapters", "memory_fraction",
    "reserved",
)  # fmt: skip
LAID = (
    "topologies", "chips", "chip", "switch", "server", "radix", "tiers", "oversubscription", "sides",
    "domain", "nic",
)  # fmt: skip
SERVED = (
    "chip", "tp", "pp", "dp", "ep", "precision", "engine", "speculation…", "adapters…", "max_context", "engine…",
)  # fmt: skip

VERBS = (
    Verb(
        name="plan serve",
        about="the least hardware that serves a model within its latency limits",
        answer="serving.plan:plan_serve",
        check="inference.closed_form.early:check_closed_form",
        prepare="serving.plan:prepare",
        takes=(
            Takes("", only=("model", "seed")),
            Takes("traffic", only=("rate", "users", "lengths…", "burstiness", "turns", "think", "system")),
            Takes("promise"),
            Takes("candidates"),
            Takes(
                "deployment",
                only=("tp", "engine", "speculation…", "adapters…", "max_context", "engine…"),
                without=UNPLANNED,
            ),
            Takes("fabric", only=("wiring…",)),
            Takes("failure", only=("fabric…",)),
        ),
        arguments=("model",),
        required=("model",),
        means=(("tp", "Chips that share each layer of a replica (default: several are weighed)."),),
        examples=(
            "llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h200,b200",
            "qwen3-32b --rate 20 --isl 2000 --osl 500 --ttft 2s --chips l40s,h100-sxm",
            "path/to/config.json --users 500 --traffic azure-conversation --chips h200",
        ),
        details=f"Replicas and chips of each kind, the knee, what binds. {MODEL_DETAILS}",
    ),
    Verb(
        name="plan train",
        about="the fastest layout on so many chips, or the fewest chips for a deadline",
        answer="training.plan:plan_train",
        check="planner.training.early:check_plan",
        prepare="training.plan:prepare",
        takes=(
            MODEL,
            Takes("training"),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("failure", only=("fabric…",)),
            Takes("layout", only=("offload",)),
        ),
        arguments=("model",),
        required=("model", "tokens"),
        means=(
            (
                "chips",
                "How many chips to lay it out on (default: all of a fabric that was built, or as a deadline takes).",
            ),
            (
                "global_batch",
                "Sequences of a step, all replicas together (default 1024); chips they do not divide over stay idle.",
            ),
            (
                "offload",
                "What may leave the chips where it does not fit else, e.g. optimizer, or optimizer:nvme.",
            ),
        ),
        examples=(
            "llama-3.1-70b --tokens 15T --chips 2048 --chip h200",
            "llama-3.1-405b --tokens 15T --chips 16384 --chip h100-sxm --global-batch 2048",
            "path/to/config.json --tokens 2T --deadline 30d",
        ),
        details=MODEL_DETAILS,
    ),
    Verb(
        name="show chip",
        about="every value of a chip with unit, source, date and kind",
        answer="chip.chip:show_chip",
        takes=(Takes("claim"),),
        arguments=("chip",),
        required=("chip",),
        examples=("h100-sxm", 'h100-sxm --claim "peak.fp8=3958 TFLOP/s"'),
    ),
    Verb(
        name="show model",
        about="parameters, FLOPs and bytes, cache, and what it fits on",
        answer="model.model:show_model",
        takes=(
            MODEL,
            Takes("sequences"),
            Takes("deployment", only=("precision",)),
            Takes("candidates", only=("chips",)),
        ),
        arguments=("model",),
        required=("model",),
        means=(("chips", "Kinds of chip to see whether it fits on (default: a few usual ones)."),),
        examples=(
            "llama-3.1-70b --context 8192",
            "path/to/config.json --precision fp8 --batch 64",
            "qwen3-32b --chips l40s,rtx-4090",
        ),
        details=MODEL_DETAILS,
    ),
    Verb(
        name="show fit",
        about="does it fit, how many sequences, and which precision makes it fit",
        answer="serving.fit:show_fit",
        takes=(
            MODEL,
            Takes("deployment", only=FIT),
            Takes("sequences"),
        ),
        arguments=("model",),
        required=("model",),
        means=(("tp", "Chips that share each layer (default: the fewest that hold it)."),),
        examples=(
            "llama-3.1-70b --chip h100-sxm --context 32k",
            "deepseek-v3 --chip h200-sxm --precision fp8 --tp 8 --batch 256",
        ),
        details="Exit code 1 where it does not, with the cheapest changes that would.",
    ),
    Verb(
        name="show roofline",
        about="a pass on one chip: time, bound and efficiency by operator",
        answer="model.roofline:show_roofline",
        takes=(
            MODEL,
            Takes("deployment", only=("chip", "tp", "precision")),
            Takes("sequences"),
            Takes("pass"),
        ),
        arguments=("chip",),
        required=("chip", "model"),
        means=(
            ("tp", "Chips that share each layer, of which one is shown (default: one alone)."),
            (
                "context",
                "Tokens of a prompt that prefill runs, or that a sequence holds before decode adds one.",
            ),
        ),
        examples=(
            "h200 --model llama-3.1-8b --phase decode --batch 32 --context 4096",
            "h100-sxm --model llama-3.1-70b --phase prefill --tp 4 -o roofline.html",
        ),
        details=(
            "Prefill runs prompts of the context; decode adds a token to sequences that hold it. On one chip, unless "
            "several share each layer. Exit code 1 where it does not fit."
        ),
    ),
    Verb(
        name="show hierarchy",
        about="memory levels, and what outgrowing each of them costs",
        answer="chip.hierarchy:show_hierarchy",
        takes=(Takes("deployment", only=("chip",)), Takes("working_set")),
        arguments=("chip",),
        required=("chip",),
        examples=("h100-sxm", 'h100-sxm --working-set "140 GB" --offload host --prefetch'),
    ),
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
        name="show memory",
        about="what takes the memory of a chip in training: state, activations by tensor, buffers",
        answer="training.memory:show_memory",
        check="training.early:check_run",
        takes=(
            MODEL,
            Takes("training", only=("seq", "global_batch", "precision", "framework", "state")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout"),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            (
                "chips",
                "How many chips (default: all of a fabric that was built, or as few as the layout needs).",
            ),
        ),
        examples=(
            "deepseek-v3 --chip h800 --pp 16 --ep 64 --recompute full",
            "llama-3.1-70b --layout run.sh --chips 512",
        ),
        details="Exit code 1 where it does not fit, with the cheapest change. For serving: datahall show fit.",
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
        examples=(
            "all-reduce --on fat-tree --chips 1024 --chip h100-sxm --size 1GB",
            "all-reduce --on nvl72 --chips 144 --size 64MB --all",
            "all-to-all --experts 64 --tokens 2^20 --topk 2 --hidden 4096",
        ),
    ),
    Verb(
        name="show techniques",
        about="batching, chunked prefill, prefix cache, speculation, quantisation, disaggregation: alone and together",
        answer="serving.techniques:show_techniques",
        check="inference.closed_form.early:check_closed_form",
        takes=(
            MODEL,
            Takes("deployment", only=SERVED, without=UNPLANNED),
            Takes("traffic", only=("rate", "lengths…")),
            Takes("promise"),
            Takes("prefix"),
            Takes("fabric", only=("wiring…",)),
            Takes("failure", only=("fabric…",)),
        ),
        arguments=("model",),
        required=("model", "rate"),
        means=(ON_FABRIC,),
        examples=(
            "llama-3.1-70b --chip h200 --rate 5",
            'llama-3.1-8b --chip l40s --rate 2 --isl 2000 --osl 300 --cached "60 %"',
            "deepseek-v3 --chip b200 --tp 8 --rate 4 --precision fp8 --draft mtp",
        ),
        details="The rate is what one replica gets.",
    ),
    Verb(
        name="simulate serve",
        about="a fleet under traffic: TTFT, TPOT, ITL, E2E, goodput, cache, queue; closed form beside it",
        answer="serving.simulation:simulate_serve",
        prepare="serving.simulation:prepare",
        takes=(
            Takes(""),
            Takes("deployment", many=True),
            Takes("router"),
            Takes("traffic", many=True),
            Takes("promise"),
            Takes("fabric", only=("wiring…",)),
            Takes("measurement"),
            Takes("region"),
            Takes("cache"),
            Takes("failure", without=("reroute",)),
        ),
        arguments=("model",),
        required=("model",),
        traced=True,
        means=(ON_FABRIC, ("rate", 'Requests per second, or "inf": all at once.')),
        examples=(
            "llama-3.1-70b --chip h100-sxm --tp 4 --replicas 45 --rate 80 --isl 1000",
            "llama-3.1-8b --chip l40s --users 32 --traffic azure-conversation",
            "llama-3.1-8b --disaggregated prefill=1xh200,decode=2xh200 --rate 20",
            "llama-3.1-8b --chip h100-sxm --trace requests.csv -o run.perfetto-trace",
            "service.toml",
        ),
        details="In place of MODEL, a scenario file says all this, with several pools and streams.",
    ),
    Verb(
        name="simulate train",
        about="one training step, stage by stage: time, MFU, bubble, exchange, memory; closed form beside it",
        answer="training.simulation:simulate_train",
        check="training.early:check_step",
        prepare="training.simulation:prepare",
        takes=(
            Takes(""),
            Takes("training", without=("tokens", "deadline", "memory_margin")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("failure", only=("fabric…",)),
            Takes("layout"),
            Takes("stragglers"),
        ),
        arguments=("model",),
        required=("model",),
        traced=True,
        examples=(
            "llama-3.1-405b --chips 16384 --tp 8 --pp 16 --zero 2 --global-batch 2048",
            "llama-3.1-70b --chips 512 --chip h200 --tp 4 --pp 8 --vpp 5",
            'llama-3.1-8b --chips 64 --chip h200 --global-batch 128 --jitter "2 %"',
            "llama-3.1-8b --chips 64 --global-batch 128 -o step.perfetto-trace",
        ),
    ),
    Verb(
        name="simulate fabric",
        about="jobs, background traffic and failures on a fabric, flow by flow",
        answer="fabric.simulation:simulate_fabric",
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
            ("on", "Topology, or a fabric that was built."),
            JOINED,
        ),
        examples=(
            "scenario.toml",
            "scenario.toml --level full --check-with symmetric",
            "scenario.toml -o run.perfetto-trace",
            '--on fat-tree --chips 64 --job "collective=all-reduce,ranks=64,size=64MB"',
        ),
    ),
    Verb(
        name="validate",
        about="our error against public measurements",
        answer="validation.scorecard:validate",
        takes=(Takes("files", only=("domain", "data")),),
        arguments=("domain",),
        required=("domain",),
        by_file=False,
        examples=("kernels", "inference", "kernels --data my-gemm.csv --format md"),
        details="DOMAIN is kernels, collectives, training or inference. Measured rows are predicted again.",
    ),
    Verb(
        name="check",
        about="every problem of a scenario, a catalogue file or a config.json, each with file:line",
        answer="validation.check:check",
        takes=(Takes("files", only=("files",)),),
        arguments=("files",),
        required=("files",),
        by_file=False,
        several=True,
        examples=("my-chip.toml scenario.toml path/to/config.json",),
        details="Exit code 1 where there are any.",
    ),
    Verb(
        name="catalog chips",
        about="accelerators, with dense peaks",
        answer="catalog.listing:catalog_chips",
        takes=(Takes("chips"),),
        examples=("--sort memory --vendor nvidia --precision fp8",),
    ),
    Verb(
        name="catalog models",
        about="language models",
        answer="catalog.listing:catalog_models",
        takes=(Takes("models"),),
        examples=("--sort parameters --family llama",),
    ),
    Verb(
        name="catalog links",
        about="links to chips, host and network; one way",
        answer="catalog.listing:catalog_links",
        takes=(),
        examples=("--format csv",),
    ),
    Verb(
        name="catalog servers",
        about="servers, racks, pods and clusters",
        answer="catalog.listing:catalog_servers",
        takes=(),
        examples=("",),
    ),
    Verb(
        name="catalog prices",
        about="chips to rent or buy, cheapest first, with the age of a price",
        answer="catalog.price:catalog_prices",
        takes=(Takes("offers"),),
        examples=("--chip h100 --kind spot", '--chip b200 --max-age "90 days"'),
    ),
    Verb(
        name="catalog api-prices",
        about="what hosted models cost per million tokens",
        answer="catalog.price:catalog_api_prices",
        takes=(Takes("search", only=("hosted", "first_party", "as_of")),),
        arguments=("hosted",),
        examples=("gpt-4o --first-party",),
    ),
    Verb(
        name="catalog search",
        about="entries of every kind in which all words occur",
        answer="catalog.listing:catalog_search",
        takes=(Takes("search", only=("text",)),),
        arguments=("text",),
        required=("text",),
        several=True,
        examples=("nvlink",),
    ),
    Verb(
        name="catalog add",
        about="check a TOML file and copy it into your own catalogue",
        answer="catalog.add:catalog_add",
        takes=(Takes("files", only=("file", "replace")),),
        arguments=("file",),
        required=("file",),
        by_file=False,
        examples=("my-chip.toml",),
    ),
    Verb(
        name="explain",
        about="what a term means, in which unit, and what it is easily taken for",
        answer="term.term:explain",
        takes=(Takes("files", only=("term",)),),
        arguments=("term",),
        by_file=False,
        several=True,
        examples=("MFU", "show roofline h200 --model llama-3.1-8b --batch 32"),
        details="With a question in place of a term: the chain behind its answer, down to the sources.",
    ),
)

BY_NAME = {verb.name: verb for verb in VERBS}
BY_FUNCTION = {verb.function: verb for verb in VERBS}


def words(verb: Verb) -> list[str]:
    """The lines to copy, whole."""
    return [f"datahall {verb.name} {line}".rstrip() for line in verb.examples]
