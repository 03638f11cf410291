"""Closed vocabularies: the few words that an input of a kind may be.  The rooms that compute take their types from here."""

from __future__ import annotations

from typing import Literal, get_args

from datahall.basis import Basis

Batching = Literal["continuous", "static", "dynamic"]
Preemption = Literal["recompute", "swap"]
ExpertExchange = Literal["auto", "gather", "all-to-all"]
EngineName = Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
Role = Literal["both", "prefill", "decode"]
Routing = Literal["round-robin", "least-outstanding", "two-choices", "prefix-affinity", "session"]
BATCHING: tuple[Batching, ...] = get_args(Batching)
PREEMPTIONS: tuple[Preemption, ...] = get_args(Preemption)
EXPERT_EXCHANGES: tuple[ExpertExchange, ...] = get_args(ExpertExchange)
ENGINES: tuple[EngineName, ...] = get_args(EngineName)  # what is known of each: inference/data/engines.toml
ROLES: tuple[Role, ...] = get_args(Role)
ROUTINGS: tuple[Routing, ...] = get_args(Routing)

# what drafts tokens beside a model by name: the prompt itself, or a layer of the model
FREE_DRAFT, OWN_LAYER = "ngram", "mtp"

# ring: keys and values pass by; all-to-all: each chip gets whole sequences of some heads (DeepSpeed Ulysses)
ContextExchange = Literal["ring", "all-to-all"]
Compression = Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"]
Schedule = Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"]
CONTEXT_EXCHANGES: tuple[ContextExchange, ...] = get_args(ContextExchange)
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
FEEDING_BACK: tuple[Compression, ...] = (
    "top-k",
    "1-bit",
    "power-sgd",
)  # what is not sent is added to the next step's
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
# what selective recomputation may run again, in Megatron-LM's words
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
# what may leave a chip's memory, and where to
OFFLOADS = ("optimizer", "parameters", "activations")
TIERS = ("host", "nvme")

# networks that are made of parts of the catalogue; what each is: fabric/design/topologies.py
TopologyName = Literal[
    "tree", "fat-tree", "clos", "leaf-spine", "rail-optimised", "rail-only", "dragonfly", "dragonfly-plus", "hyperx",
    "torus", "mesh", "tpu-pod", "full-mesh", "hgx", "nvl72",
]  # fmt: skip
TOPOLOGIES: tuple[TopologyName, ...] = get_args(TopologyName)
TAPERED: tuple[TopologyName, ...] = (  # those with tiers of which one may be narrower than that below it
    "fat-tree", "clos", "leaf-spine", "rail-optimised", "rail-only", "hgx", "nvl72",
)  # fmt: skip
PLAIN_TOPOLOGIES = ("scale-up",)  # those that only links make which are all alike
OTHER_NAMES: dict[str, TopologyName] = {
    "fattree": "fat-tree", "rail": "rail-optimised", "rail-optimized": "rail-optimised",
    "dragonfly+": "dragonfly-plus", "3d-torus": "torus", "fullmesh": "full-mesh",
}  # fmt: skip
Policy = Literal["deterministic", "ecmp", "adaptive", "spray"]
Collective = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-recv", "barrier"
]
Pattern = Literal["permutation", "incast", "random"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
SPLITTING: tuple[Policy, ...] = ("ecmp",)  # queue pairs of one flow go their own ways
COLLECTIVES: tuple[Collective, ...] = get_args(Collective)
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

# how a cluster serves its queue; what each does: scheduling/policies.py
QueuePolicy = Literal[
    "fifo", "gang", "backfill", "conservative", "fair-share", "priority", "topology", "defragment"
]
JobKind = Literal["training", "serving"]
BY_USE: tuple[QueuePolicy, ...] = ("fair-share",)  # first is who used least
QUEUE_POLICIES: tuple[QueuePolicy, ...] = get_args(QueuePolicy)
JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)

Phase = Literal["prefill", "decode"]
FlowDetail = Literal["symmetric", "full"]
PHASES: tuple[Phase, ...] = get_args(Phase)
FLOW_DETAILS: tuple[FlowDetail, ...] = get_args(FlowDetail)
# how near to the chip itself the constants of its kernels are, and what a figure then rests on
LEVELS: dict[str, Basis] = dict(zip(("datasheet", "family", "measured"), get_args(Basis)[1:], strict=True))
LEVEL_OF = {basis: level for level, basis in LEVELS.items()}
Domain = Literal[
    "kernels", "collectives", "training", "inference", "reliability", "scheduling", "storage", "power"
]  # of the ledger: a folder each in validation/
DOMAINS: tuple[Domain, ...] = get_args(Domain)

# how batch and learning rate follow a job that shrinks (reliability/elastic.py), and how corruption is noticed
BatchRule = Literal["kept", "linear", "sqrt"]
Detector = Literal["none", "replay", "checksum", "vote"]
BATCH_RULES: tuple[BatchRule, ...] = get_args(BatchRule)
DETECTORS: tuple[Detector, ...] = get_args(Detector)

# how samples lie in storage, in which order they are read, and what a cache of them keeps: datapath/
Format = Literal["files", "shards", "columnar"]
Shuffle = Literal["none", "buffer", "random"]
Keeping = Literal["lru", "pinned"]
DATA_FORMATS: tuple[Format, ...] = get_args(Format)
SHUFFLES: tuple[Shuffle, ...] = get_args(Shuffle)
KEEPINGS: tuple[Keeping, ...] = get_args(Keeping)

# what NCCL can be limited to, as NCCL_ALGO spells it; what each is: fabric/collectives/algorithms/table.py
NcclAlgo = Literal["ring", "tree", "nvls", "nvls-tree", "pat"]
NCCL_ALGOS: tuple[NcclAlgo, ...] = get_args(NcclAlgo)

# how chips or tokens are bought, and how hardware that is owned loses its value: economics/
Buying = Literal["rent", "reserved", "spot", "own", "api"]
Depreciation = Literal["annuity", "market"]
# what a plan has the least of
Aims = Literal["cost", "chips", "energy", "carbon", "time"]
AIMS: tuple[Aims, ...] = get_args(Aims)
BUYINGS: tuple[Buying, ...] = get_args(Buying)
DEPRECIATIONS: tuple[Depreciation, ...] = get_args(Depreciation)

# what a key of the gateway may spend is counted over
BudgetPeriod = Literal["day", "month", "total"]
BUDGET_PERIODS: tuple[BudgetPeriod, ...] = get_args(BudgetPeriod)
# what a gateway may be asked
Route = Literal["chat", "completions", "embeddings", "messages", "predict", "infer"]
ROUTES: tuple[Route, ...] = get_args(Route)
