"""Verbs about a service: its plan, what fits, what techniques give, and its simulation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL, MODEL_DETAILS
from datahall.scenario.takes import OPERATED, OWNED, PRICED, SUPPLIED, Takes

UNPLANNED = ("batching", "wait")  # a closed form is of continuous batching
ON_FABRIC = ("chip", "Chip that it runs on, unless the fabric is made of another.")
# what some verbs take of a deployment
FIT = (
    "chip", "tp", "precision", "engine", "adapters", "adapter_rank", "resident_adapters", "memory_fraction",
    "reserved",
)  # fmt: skip
SERVED = (
    "chip", "tp", "pp", "dp", "ep", "precision", "engine", "speculation…", "adapters…", "max_context", "engine…",
    "host_cache", "host_link", "drive_cache", "drive_rate",
)  # fmt: skip
RECORDED = ("trace", "speed", "sort_trace", "first", "hash_block", "busiest")
APART = ("users_in", "sent")  # what matters where users are far from chips

# the golden scenario: what `datahall plan` answers where nothing follows it
GOLDEN = "llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h100-sxm,h200,b200,mi300x --buy rent,own,spot,api"

# files that run a plan, by their names: the module and its function, loaded when it is asked for
OF_SERVICE: Mapping[str, str] = MappingProxyType({
    "vllm.sh": "planner.artefacts.serving.vllm:vllm_script",
    "sglang.sh": "planner.artefacts.serving.sglang:sglang_script",
    "trtllm.yaml": "planner.artefacts.serving.trtllm:trtllm_config",
    "kubernetes.yaml": "planner.artefacts.serving.kubernetes:kubernetes_manifest",
    "ray-serve.yaml": "planner.artefacts.serving.ray_serve:ray_serve_config",
    "gateway.toml": "serve.config.planned:planned_gateway",
})  # fmt: skip

VERBS = (
    Verb(
        name="plan serve",
        about="the hardware that serves a model within its latency limits at the least cost",
        answer="serving.plan:plan_serve",
        check="planner.serving.early:check_serving_plan",
        prepare="serving.plan:prepare",
        takes=(
            Takes("", only=("model", "seed")),
            Takes(
                "traffic",
                only=(
                    "rate",
                    "users",
                    "lengths…",
                    "burstiness",
                    "turns",
                    "think",
                    "system",
                    *RECORDED,
                    *APART,
                ),
            ),
            Takes("promise"),
            Takes("candidates"),
            Takes(
                "deployment",
                only=("tp", "engine", "speculation…", "adapters…", "max_context", "engine…"),
                without=UNPLANNED,
            ),
            Takes("fabric", only=("wiring…",)),
            Takes("failure", only=("fabric…",)),
            *OPERATED,
            Takes("goal", only=("objective",)),
            PRICED,
            SUPPLIED,
            OWNED,
            Takes("overheads"),
            Takes("api", without=("api_latency",)),
            Takes("business", only=("peak_to_mean",)),
        ),
        arguments=("model",),
        required=("model",),
        artefacts=tuple(OF_SERVICE),
        means=(
            ("tp", "Chips that share each layer of a replica (default: several are weighed)."),
            ("peak_to_mean", "The load over the mean of a month, by which tokens are counted."),
            (
                "objective",
                "What each chip and the best of them has the least of: {words}; time is that of an answer to one who "
                "asks alone.",
            ),
        ),
        leads=(
            "least month_usd",
            "least num_chips",
            "least ttft_s",
            "least tpot_s",
            "most chip_output_tokens_per_s",
            "least site_w",
            "least token_j",
        ),
        examples=(
            GOLDEN,
            "qwen3-32b --rate 20 --isl 2000 --osl 500 --ttft 2s --chips l40s,h100-sxm",
            "path/to/config.json --users 500 --traffic azure-conversation --chips h200",
            "llama-3.1-8b --trace requests.csv --busiest 10min",
            "llama-3.1-8b --rate 5 --chips h100-sxm -o vllm.sh",
        ),
        details=f"Replicas and chips of each kind, the knee, what binds. {MODEL_DETAILS}",
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
        leads=(
            "least num_chips",
            "most num_sequences",
            "least weight_bytes",
        ),
        examples=(
            "llama-3.1-70b --chip h100-sxm --context 32k",
            "deepseek-v3 --chip h200-sxm --precision fp8 --tp 8 --batch 256",
        ),
        details="Exit code 1 where it does not, with the cheapest changes that would.",
    ),
    Verb(
        name="show techniques",
        about="the ladder of serving: no cache, batching, paging, graphs, formats, caches, drafts, a smaller model",
        answer="serving.techniques:show_techniques",
        check="inference.closed_form.early:check_techniques",
        takes=(
            MODEL,
            Takes("deployment", only=SERVED, without=UNPLANNED, anyway=("draft",)),
            Takes("traffic", only=("rate", "lengths…", "turns", "think")),
            Takes("promise"),
            Takes("prefix"),
            Takes("lighter"),
            Takes("purchase", only=("provider", "price")),
            Takes("fabric", only=("wiring…",)),
            Takes("failure", only=("fabric…",)),
        ),
        arguments=("model",),
        required=("model", "rate"),
        means=(ON_FABRIC,),
        leads=(
            "most together_ratio",
            "most chip_requests_per_s",
        ),
        examples=(
            "llama-3.1-70b --chip h200 --rate 5",
            'llama-3.1-8b --chip l40s --rate 2 --isl 2000 --osl 300 --cached "60 %"',
            "deepseek-v3 --chip b200 --tp 8 --rate 4 --precision fp8 --draft mtp",
            "llama-3.1-70b --chip h200 --rate 5 --max-context 8k --small llama-3.2-3b --easy 80%",
            "llama-3.1-70b --chip h100-sxm --tp 4 --rate 1 --isl 500 --turns 6 --think 5min --ttft 2s",
        ),
        details="The rate is what one replica gets. What an engine has is taken away, each technique stands alone, "
        "then the best together; what changes the answers stands apart.",
        turned=("train", "show training-techniques"),
    ),
    Verb(
        name="simulate serve",
        about="a fleet under traffic: TTFT, TPOT, ITL, E2E, goodput, cache, queue; closed form beside it",
        answer="serving.simulation:simulate_serve",
        check="inference.early:check_service",
        prepare="serving.simulation:prepare",
        takes=(
            Takes(""),
            Takes("deployment", many=True),
            Takes("router"),
            Takes("traffic", without=("busiest", *APART), many=True),
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
        leads=(
            "most good_fraction",
            "least num_chips",
            "most output_tokens_per_s",
            "least ttft_p95_s",
            "least tpot_p95_s",
            "least e2e_p95_s",
        ),
        examples=(
            "llama-3.1-70b --chip h100-sxm --tp 4 --replicas 45 --rate 80 --isl 1000",
            "llama-3.1-8b --chip l40s --users 32 --traffic azure-conversation",
            "llama-3.1-8b --disaggregated prefill=1xh200,decode=2xh200 --rate 20",
            "llama-3.1-8b --chip h100-sxm --trace requests.csv -o run.perfetto-trace",
            "service.toml",
        ),
        details="In place of MODEL, a scenario file says all this, with several pools and streams.",
    ),
)
