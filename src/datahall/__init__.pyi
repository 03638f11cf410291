"""Datahall plans, simulates, runs and audits AI infrastructure: each verb is a function."""

# Written by docs/generate.py from the table of verbs: change that, and run make docs.

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from datahall.answer import Answer as Answer
from datahall.answers.ask import ask_document
from datahall.answers.schema import schema as schema
from datahall.breakdown import Breakdown as Breakdown
from datahall.catalog import Catalog as Catalog
from datahall.catalog import load
from datahall.errors import DatahallError as DatahallError
from datahall.report.wire import json_schema

Tables: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]

__version__: str
__all__: list[str]
_HOMES: dict[str, str]
answer_schema = json_schema
ask = ask_document
load_catalog = load

def plan_serve(
    model: str,
    *,
    seed: str | int = 0,
    rate: str | float | None = None,
    users: str | int | None = None,
    trace: str = "",
    users_in: str | Sequence[str] | None = None,
    sent: str | float = "0B",
    traffic: str = "",
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    burstiness: str | float | None = None,
    turns: str | float | None = None,
    think: str | float | None = None,
    system: str | int | None = None,
    speed: str | float = "1",
    sort_trace: bool = False,
    first: str | int | None = None,
    busiest: str | float = "5min",
    hash_block: str | int | None = None,
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    percentile: str | float = 95,
    chips: str | Sequence[str] | None = None,
    available: str | Mapping[str, int] | None = None,
    precision: str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]] = ["bf16", "fp8"],
    headroom: str | float = "10%",
    spare: str | int = 0,
    disaggregated: bool = False,
    tp: str | int | None = None,
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    draft: str = "",
    num_draft: str | int = 3,
    acceptance: str | float = "50%",
    adapters: str | int | None = None,
    adapter_rank: str | int = 16,
    resident_adapters: str | int | None = None,
    adapter_zipf: str | float = "1",
    attention_adapters: bool = False,
    max_context: str | int | None = None,
    token_budget: str | int | None = None,
    max_sequences: str | int | None = None,
    block_tokens: str | int | None = None,
    chunked_prefill: bool | None = None,
    mixed_steps: bool | None = None,
    whole_prompt_blocks: bool | None = None,
    whole_output_blocks: bool | None = None,
    prefix_caching: bool | None = None,
    graphs: bool | None = None,
    preemption: Literal["recompute", "swap"] | None = None,
    expert_exchange: Literal["auto", "gather", "all-to-all"] | None = None,
    memory_fraction: str | float | None = None,
    reserved: str | float | None = None,
    host_step: str | float | None = None,
    host_sequence: str | float | None = None,
    first_token: str | float | None = None,
    on: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    failures_like: str = "",
    failure_rate: str | float | None = None,
    spares_enough: str | float = "99%",
    detect: str | float = "3min",
    reschedule: str | float = "2min",
    warm_up: str | float = "5min",
    restart: str | float | None = None,
    preempted_every: str | float | None = None,
    facility: str = "hyperscale",
    pue: str | float | None = None,
    grid: str = "usa",
    objective: Literal["cost", "chips", "energy", "carbon", "time"] = "cost",
    buy: str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]] = ["rent", "own"],
    provider: str | Sequence[str] | None = None,
    regions: str | Sequence[str] | None = None,
    residency: str | Sequence[str] | None = None,
    price: str | float | None = None,
    spot_price: str | float | None = None,
    as_of: str = "",
    country: str = "",
    without: str | Sequence[str] | None = None,
    licensed: bool = False,
    owner: str = "neocloud",
    capex: str | float | None = None,
    interest: str | float | None = None,
    life: str | float | None = None,
    residual: str | float | None = None,
    depreciation: Literal["annuity", "market"] | None = None,
    hardware_age: str | float | None = None,
    colo: str | float | None = None,
    energy_price: str | float | None = None,
    repair_cost: str | float = "0%",
    staff: str | float = "$0/month",
    used: str | float = "100%",
    orchestration: str | float | None = None,
    network_overhead: str | float | None = None,
    storage_overhead: str | float | None = None,
    monitoring: str | float | None = None,
    api: str = "",
    cached: str | float = "0%",
    batched: str | float = "0%",
    peak_to_mean: str | float = "3",
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """The hardware that serves a model within its latency limits at the least cost.

    Replicas and chips of each kind, the knee, what binds. MODEL is a name of the catalogue or a
    config.json in the Hugging Face format.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seed : str | int
        Seed of every random draw. (default 0)
    rate : str | float | None
        Requests per second.
    users : str | int | None
        People who wait for their answers, instead of a rate.
    trace : str
        Recorded requests, CSV or JSONL, instead of a rate.
    users_in : str | Sequence[str] | None
        Regions of clouds that users are near: the way there and back counts in the time to the first token.
    sent : str | float
        What leaves with an answer beside its text: images, audio, logs. (default 0B)
    traffic : str
        Lengths by name: sharegpt, lmsys-chat (default), rag, agent, …
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    burstiness : str | float | None
        Standard deviation of the gaps between requests over their mean; 1: Poisson, 0: equal gaps.
    turns : str | float | None
        Mean turns of a conversation.
    think : str | float | None
        Pause of a user between answer and next request.
    system : str | int | None
        Tokens of the system prompt that all requests share.
    speed : str | float
        2 replays a trace twice as fast. (default 1)
    sort_trace : bool
        Sort a trace by arrival.
    first : str | int | None
        Only so many rows of a trace.
    busiest : str | float
        How long a stretch of a trace a plan is made for: the one with most requests. (default 5min)
    hash_block : str | int | None
        Tokens that one hash of a trace stands for.
    ttft : str | float
        Most time to the first token. (default 1s)
    tpot : str | float
        Most time per output token after the first. (default 50ms)
    percentile : str | float
        Share of requests that must keep both limits. (default 95)
    chips : str | Sequence[str] | None
        Kinds of chip to weigh (default: a few usual ones).
    available : str | Mapping[str, int] | None
        How many chips of a kind can be had, of which none more is planned with: h100-sxm=128,h200=64; kinds
        that are not named are not short.
    precision : str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]]
        Formats to weigh. (default bf16,fp8)
    headroom : str | float
        Share of what a replica holds that is left free. (default 10%)
    spare : str | int
        Replicas beside those that are needed: the limits are kept with so many out (N+1: 1). (default 0)
    disaggregated : bool
        Weigh prompts and answers on replicas of their own beside the others.
    tp : str | int | None
        Chips that share each layer of a replica (default: several are weighed).
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    draft : str
        Speculative decoding: ngram, mtp, or the name of a draft model.
    num_draft : str | int
        Tokens drafted for a step. (default 3)
    acceptance : str | float
        Chance that a drafted token is kept. (default 50%)
    adapters : str | int | None
        LoRA adapters that requests ask for.
    adapter_rank : str | int
        Rank of an adapter. (default 16)
    resident_adapters : str | int | None
        Adapters on the chips at once (default: all).
    adapter_zipf : str | float
        Zipf exponent of the adapters' popularity; 0: all alike. (default 1)
    attention_adapters : bool
        Adapters beside attention alone, not the dense MLPs.
    max_context : str | int | None
        Longest sequence it accepts (default: the model's).
    token_budget : str | int | None
        Most new tokens in one step.
    max_sequences : str | int | None
        Most sequences that run at once.
    block_tokens : str | int | None
        Tokens of one block of cache.
    chunked_prefill : bool | None
        Prompts may be cut to what is left of a step.
    mixed_steps : bool | None
        Prompts and decodes share steps.
    whole_prompt_blocks : bool | None
        A prompt waits until blocks for all of it are free.
    whole_output_blocks : bool | None
        A prompt waits until blocks for all that it may generate are free too.
    prefix_caching : bool | None
        Blocks of shared prefixes are kept.
    graphs : bool | None
        Steps replay captured graphs; otherwise the host launches each kernel.
    preemption : Literal["recompute", "swap"] | None
        What happens to who must leave.
    expert_exchange : Literal["auto", "gather", "all-to-all"] | None
        How attention ranks meet at the experts.
    memory_fraction : str | float | None
        Share of the chip's memory that the engine takes.
    reserved : str | float | None
        Memory for context, graphs and buffers.
    host_step : str | float | None
        Host time of a step that the chip waits for.
    host_sequence : str | float | None
        Host time that each sequence adds to a step.
    first_token : str | float | None
        Front end: tokenising, queues, the first chunk back.
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    failures_like : str
        Whose failure rates and causes (default: of the chip or its family, else llama-3).
    failure_rate : str | float | None
        Failures of a node per day, all causes together (default: as published).
    spares_enough : str | float
        Share of the time that spares must suffice. (default 99%)
    detect : str | float
        Until a failure is noticed. (default 3min)
    reschedule : str | float
        Until the job stands on healthy nodes again. (default 2min)
    warm_up : str | float
        From a loaded checkpoint to the first new step. (default 5min)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    objective : Literal["cost", "chips", "energy", "carbon", "time"]
        What each chip and the best of them has the least of: cost, chips, energy, carbon, time; time is
        that of an answer to one who asks alone. (default cost)
    buy : str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]]
        Ways to buy that are weighed: rent, reserved, spot, own, api. (default rent,own)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    regions : str | Sequence[str] | None
        Regions of clouds that chips stand in, whose prices count (default: anywhere).
    residency : str | Sequence[str] | None
        Countries whose regions alone count: germany,france.
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    spot_price : str | float | None
        Rent of a chip for an hour on spot (default: the median of fresh spot offers).
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    country : str
        Country that chips are brought to: those that need an export licence for it are left out.
    without : str | Sequence[str] | None
        Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is
        known, are left out.
    licensed : bool
        Keep chips that need an export licence, as one who has it.
    owner : str
        Who owns: interest, life and space are theirs where nobody says them. (default neocloud)
    capex : str | float | None
        Price of a chip with its share of server and network (default: of the catalogue's prices).
    interest : str | float | None
        Interest on capital a year (default: the owner's).
    life : str | float | None
        Life over which hardware is written off (default: the owner's).
    residual : str | float | None
        Share of the price that is left at the end (default: the owner's).
    depreciation : Literal["annuity", "market"] | None
        How it loses value: annuity (even payments over its life), or market (as newer chips do more for the
        money; default for runs that were published).
    hardware_age : str | float | None
        Age of the hardware at the start (default: new, or as of a run that was published).
    colo : str | float | None
        Rent of space by the power of IT, in place of the owner's.
    energy_price : str | float | None
        Price of energy (default: the grid's).
    repair_cost : str | float
        Repair a year, of what hardware cost. (default 0%)
    staff : str | float
        Staff that runs it, a month. (default $0/month)
    used : str | float
        Share of the hours that somebody uses or rents it. (default 100%)
    orchestration : str | float | None
        Orchestration, over the bill (default: as published).
    network_overhead : str | float | None
        Network, over a bill of rent (default: as published).
    storage_overhead : str | float | None
        Storage, over the bill (default: as published).
    monitoring : str | float | None
        Monitoring, over the bill (default: as published).
    api : str
        Hosted model to compare with: gpt-4o, openai/gpt-4o, … (default: the cheapest host of the same
        model).
    cached : str | float
        Share of input tokens that the API finds in its cache. (default 0%)
    batched : str | float
        Share of tokens that may wait a day. (default 0%)
    peak_to_mean : str | float
        The load over the mean of a month, by which tokens are counted. (default 3)
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall plan serve llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h100-sxm,h200,b200,mi300x --buy rent,own,spot,api
        datahall plan serve qwen3-32b --rate 20 --isl 2000 --osl 500 --ttft 2s --chips l40s,h100-sxm
        datahall plan serve path/to/config.json --users 500 --traffic azure-conversation --chips h200
        datahall plan serve llama-3.1-8b --trace requests.csv --busiest 10min
        datahall plan serve llama-3.1-8b --rate 5 --chips h100-sxm -o vllm.sh
    """

def plan_train(
    model: str,
    *,
    tokens: str | float | None = None,
    deadline: str | float | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    memory_margin: str | float = "5%",
    imbalance: str | float | None = None,
    on: str | Sequence[str] = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    failures_like: str = "",
    failure_rate: str | float | None = None,
    spares_enough: str | float = "99%",
    detect: str | float = "3min",
    reschedule: str | float = "2min",
    warm_up: str | float = "5min",
    restart: str | float | None = None,
    preempted_every: str | float | None = None,
    facility: str = "hyperscale",
    pue: str | float | None = None,
    grid: str = "usa",
    storage: str | float | None = None,
    tier: str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None = None,
    available: str | Mapping[str, int] | None = None,
    objective: Literal["cost", "chips", "energy", "carbon", "time"] = "cost",
    budget: str | float | None = None,
    buy: str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]] = ["rent", "own"],
    provider: str | Sequence[str] | None = None,
    regions: str | Sequence[str] | None = None,
    residency: str | Sequence[str] | None = None,
    price: str | float | None = None,
    spot_price: str | float | None = None,
    as_of: str = "",
    country: str = "",
    without: str | Sequence[str] | None = None,
    licensed: bool = False,
    owner: str = "neocloud",
    capex: str | float | None = None,
    interest: str | float | None = None,
    life: str | float | None = None,
    residual: str | float | None = None,
    depreciation: Literal["annuity", "market"] | None = None,
    hardware_age: str | float | None = None,
    colo: str | float | None = None,
    energy_price: str | float | None = None,
    repair_cost: str | float = "0%",
    staff: str | float = "$0/month",
    used: str | float = "100%",
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """The fastest layout on so many chips, or the chips that keep a deadline at the least cost.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    tokens : str | float | None
        Tokens to train on.
    deadline : str | float | None
        When it must be done, instead of a number of chips.
    seq : str | int | None
        Tokens of a sequence (default 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    memory_margin : str | float
        Share of a chip's memory that a plan leaves free. (default 5%)
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str | Sequence[str]
        Topology, or a fabric that was built; several side by side: tree,fat-tree,torus.
    chips : str | int | None
        How many chips to lay it out on (default: all of a fabric that was built, as a deadline takes, or of
        adapters the fewest that hold them).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        The layout you have, to be set beside the best: Megatron-LM arguments, torchtitan TOML or DeepSpeed
        JSON; what it says of sequence, batch and format holds.
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        What may leave the chips where it does not fit else, e.g. optimizer, or optimizer:nvme.
    failures_like : str
        Whose failure rates and causes (default: of the chip or its family, else llama-3).
    failure_rate : str | float | None
        Failures of a node per day, all causes together (default: as published).
    spares_enough : str | float
        Share of the time that spares must suffice. (default 99%)
    detect : str | float
        Until a failure is noticed. (default 3min)
    reschedule : str | float
        Until the job stands on healthy nodes again. (default 2min)
    warm_up : str | float
        From a loaded checkpoint to the first new step. (default 5min)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    storage : str | float | None
        Remote storage, written by all chips together (default: 125 MB/s for each chip, as Llama 3 had).
    tier : str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None
        Where copies are kept: device, host, peer, local, remote (default: remote).
    available : str | Mapping[str, int] | None
        Chips of another kind that are there beside these: what they add to the run, the batch split evenly
        or by speed, e.g. a100-80gb=512.
    objective : Literal["cost", "chips", "energy", "carbon", "time"]
        What the plan has the least of: cost, chips, energy, carbon, time. (default cost)
    budget : str | float | None
        Most that it may cost, the cheapest way that is allowed.
    buy : str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]]
        Ways to buy that are weighed: rent, reserved, spot, own, api. (default rent,own)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    regions : str | Sequence[str] | None
        Regions of clouds that chips stand in, whose prices count (default: anywhere).
    residency : str | Sequence[str] | None
        Countries whose regions alone count: germany,france.
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    spot_price : str | float | None
        Rent of a chip for an hour on spot (default: the median of fresh spot offers).
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    country : str
        Country that chips are brought to: those that need an export licence for it are left out.
    without : str | Sequence[str] | None
        Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is
        known, are left out.
    licensed : bool
        Keep chips that need an export licence, as one who has it.
    owner : str
        Who owns: interest, life and space are theirs where nobody says them. (default neocloud)
    capex : str | float | None
        Price of a chip with its share of server and network (default: of the catalogue's prices).
    interest : str | float | None
        Interest on capital a year (default: the owner's).
    life : str | float | None
        Life over which hardware is written off (default: the owner's).
    residual : str | float | None
        Share of the price that is left at the end (default: the owner's).
    depreciation : Literal["annuity", "market"] | None
        How it loses value: annuity (even payments over its life), or market (as newer chips do more for the
        money; default for runs that were published).
    hardware_age : str | float | None
        Age of the hardware at the start (default: new, or as of a run that was published).
    colo : str | float | None
        Rent of space by the power of IT, in place of the owner's.
    energy_price : str | float | None
        Price of energy (default: the grid's).
    repair_cost : str | float
        Repair a year, of what hardware cost. (default 0%)
    staff : str | float
        Staff that runs it, a month. (default $0/month)
    used : str | float
        Share of the hours that somebody uses or rents it. (default 100%)
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall plan train llama-3.1-70b --tokens 15T --chips 2048 --chip h200
        datahall plan train llama-3.1-405b --tokens 15T --chips 16384 --chip h100-sxm --global-batch 2048
        datahall plan train path/to/config.json --tokens 2T --deadline 30d
        datahall plan train llama-3.1-70b --tokens 2T --chips 512 --layout run.sh
        datahall plan train llama-3.1-70b --tokens 1T --chips 512 --chip h100-sxm --on tree,fat-tree,rail
        datahall plan train llama-3.1-70b --tokens 1T --chips 512 --chip h100-sxm --available a100-80gb=512 --global-batch 1024
        datahall plan train llama-3.1-8b --tokens 1T --chips 64 -o megatron.sh
        datahall plan train llama-3.1-70b --lora 16 --quantised --tokens 50M --chips 8
    """

def compare(
    things: str | Sequence[str] | None,
    *,
    set: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None = None,
    model: str = "",
    chip: str = "h100-sxm",
    tp: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    context: str | int = 8192,
    batch: str | int = 1,
    as_of: str = "",
    country: str = "",
    without: str | Sequence[str] | None = None,
    licensed: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """Questions, saved answers, chips, models or clouds side by side: what differs, and what that does.

    THING is a scenario file, an answer saved as JSON, a chip, a model, or who rents chips out. Of an
    input, a flag stands over --set, and --set over the file.

    Parameters
    ----------
    things : str | Sequence[str] | None
        Scenario files, answers saved as JSON, chips, models, or who rents chips out: several of one kind.
    set : str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
        One more variant of a scenario file: inputs in place of what it says.
    model : str
        Model that chips run, or of every file.
    chip : str
        Chip that clouds rent out, that models run on, or of every file. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    context : str | int
        Tokens of a sequence. (default 8192)
    batch : str | int
        Sequences at once. (default 1)
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    country : str
        Country that chips are brought to: those that need an export licence for it are left out.
    without : str | Sequence[str] | None
        Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is
        known, are left out.
    licensed : bool
        Keep chips that need an export licence, as one who has it.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall compare h100-sxm h200 b200 mi300x
        datahall compare h100-sxm h200 --model llama-3.1-8b --batch 32
        datahall compare aws gcp azure lambda coreweave --chip h100-sxm
        datahall compare a.toml b.toml
        datahall compare a.toml --set chips=2048 --set chips=2048,tp=8
        datahall compare before.json after.json
    """

def sweep(
    question: str,
    *,
    over: str | Mapping[str, Any] | Sequence[str] | None = None,
    show: str | Sequence[str] | None = None,
    best: str = "",
    workers: str = "",
    journal: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """One question at many points, on all cores or a Ray cluster; it goes on where it was stopped.

    Values are a list, a range with a step (1..9:2) or one that grows by a factor (1..64:x2). With -o
    FILE, points are kept in FILE.points until all are there.

    Parameters
    ----------
    question : str
        A scenario file: what is asked for each point.
    over : str | Mapping[str, Any] | Sequence[str] | None
        Inputs and their values: chips=512,1024 or users=1000..10000:1000 (steps) or batch=1..64:x2
        (doubled).
    show : str | Sequence[str] | None
        Results that the table has (default: the main ones).
    best : str
        Result that the best point has the least or the most of (default: the first of the main ones).
    workers : str
        How many processes answer at once, or the Ray cluster that does, ray or ray://HOST:PORT (default:
        one a core).
    journal : str
        Where points are kept as they end, from which a stopped sweep goes on (default: beside the file of
        -o).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall sweep question.toml --over chips=512,1024,2048 users=1000..10000:1000
        datahall sweep question.toml --over batch=1..256:x2 --best "most tokens_per_s" --show pass_s
        datahall sweep question.toml --over tp=1,2,4,8 --workers 4 -o sweep.csv
        datahall sweep question.toml --over tp=1,2,4,8 --workers ray
    """

def explain(
    term: str = "",
    *,
    catalog: Catalog | None = None,
) -> Answer:
    """What a term means, in which unit, and what it is easily taken for.

    With a question in place of a term: the chain behind its answer, down to the sources.

    Parameters
    ----------
    term : str
        Word of the nomenclature.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall explain MFU
        datahall explain show roofline h200 --model llama-3.1-8b --batch 32
    """

def show_chip(
    chip: str,
    *,
    claim: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Every value of a chip with unit, source, date and kind.

    Parameters
    ----------
    chip : str
        Chip; with a claim also a server or a link.
    claim : str
        Is this number right? Exit code 1 if not.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show chip h100-sxm
        datahall show chip h100-sxm --claim "peak.fp8=3958 TFLOP/s"
    """

def show_hierarchy(
    chip: str,
    *,
    working_set: str | float | None = None,
    offload: Literal["host", "nvme"] | None = None,
    prefetch: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """Memory levels, and what outgrowing each of them costs.

    Parameters
    ----------
    chip : str
        Chip that it runs on. (default h100-sxm)
    working_set : str | float | None
        What is read over and over.
    offload : Literal["host", "nvme"] | None
        Where to keep what does not fit: host or nvme.
    prefetch : bool
        Fetch what does not fit while what fits is worked on.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show hierarchy h100-sxm
        datahall show hierarchy h100-sxm --working-set "140 GB" --offload host --prefetch
    """

def show_model(
    model: str,
    *,
    context: str | int = 8192,
    batch: str | int = 1,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    chips: str | Sequence[str] | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Parameters, FLOPs and bytes, cache, and what it fits on.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    context : str | int
        Tokens of a sequence. (default 8192)
    batch : str | int
        Sequences at once. (default 1)
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    chips : str | Sequence[str] | None
        Kinds of chip to see whether it fits on (default: a few usual ones).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show model llama-3.1-70b --context 8192
        datahall show model path/to/config.json --precision fp8 --batch 64
        datahall show model qwen3-32b --chips l40s,rtx-4090
    """

def show_roofline(
    chip: str,
    *,
    model: str = "",
    tp: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    context: str | int = 8192,
    batch: str | int = 1,
    phase: Literal["prefill", "decode"] = "decode",
    level: Literal["datasheet", "family", "measured"] | None = None,
    eager: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """A pass on one chip: time, bound and efficiency by operator.

    Prefill runs prompts of the context; decode adds a token to sequences that hold it. On one chip,
    unless several share each layer. Exit code 1 where it does not fit.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    chip : str
        Chip that it runs on. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer, of which one is shown (default: one alone).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    context : str | int
        Tokens of a prompt that prefill runs, or that a sequence holds before decode adds one. (default
        8192)
    batch : str | int
        Sequences at once. (default 1)
    phase : Literal["prefill", "decode"]
        What runs: prefill (whole prompts) or decode (one token each). (default decode)
    level : Literal["datasheet", "family", "measured"] | None
        Constants of the chip's kernels: datasheet, family or measured (default: the best there are).
    eager : bool
        Launch each kernel from the host instead of replaying a graph.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show roofline h200 --model llama-3.1-8b --phase decode --batch 32 --context 4096
        datahall show roofline h100-sxm --model llama-3.1-70b --phase prefill --tp 4 -o roofline.html
    """

def show_fit(
    model: str,
    *,
    chip: str = "h100-sxm",
    tp: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    adapters: str | int | None = None,
    adapter_rank: str | int = 16,
    resident_adapters: str | int | None = None,
    memory_fraction: str | float | None = None,
    reserved: str | float | None = None,
    context: str | int = 8192,
    batch: str | int = 1,
    catalog: Catalog | None = None,
) -> Answer:
    """Does it fit, how many sequences, and which precision makes it fit.

    Exit code 1 where it does not, with the cheapest changes that would.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    chip : str
        Chip that it runs on. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer (default: the fewest that hold it).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    adapters : str | int | None
        LoRA adapters that requests ask for.
    adapter_rank : str | int
        Rank of an adapter. (default 16)
    resident_adapters : str | int | None
        Adapters on the chips at once (default: all).
    memory_fraction : str | float | None
        Share of the chip's memory that the engine takes.
    reserved : str | float | None
        Memory for context, graphs and buffers.
    context : str | int
        Tokens of a sequence. (default 8192)
    batch : str | int
        Sequences at once. (default 1)
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show fit llama-3.1-70b --chip h100-sxm --context 32k
        datahall show fit deepseek-v3 --chip h200-sxm --precision fp8 --tp 8 --batch 256
    """

def show_techniques(
    model: str,
    *,
    chip: str = "h100-sxm",
    tp: str | int | None = None,
    pp: str | int = 1,
    dp: str | int = 1,
    ep: str | int = 1,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    draft: str = "",
    num_draft: str | int = 3,
    acceptance: str | float = "50%",
    adapters: str | int | None = None,
    adapter_rank: str | int = 16,
    resident_adapters: str | int | None = None,
    adapter_zipf: str | float = "1",
    attention_adapters: bool = False,
    host_cache: str | float = "0B",
    host_link: str | float | None = None,
    drive_cache: str | float = "0B",
    drive_rate: str | float | None = None,
    max_context: str | int | None = None,
    token_budget: str | int | None = None,
    max_sequences: str | int | None = None,
    block_tokens: str | int | None = None,
    chunked_prefill: bool | None = None,
    mixed_steps: bool | None = None,
    whole_prompt_blocks: bool | None = None,
    whole_output_blocks: bool | None = None,
    prefix_caching: bool | None = None,
    graphs: bool | None = None,
    preemption: Literal["recompute", "swap"] | None = None,
    expert_exchange: Literal["auto", "gather", "all-to-all"] | None = None,
    memory_fraction: str | float | None = None,
    reserved: str | float | None = None,
    host_step: str | float | None = None,
    host_sequence: str | float | None = None,
    first_token: str | float | None = None,
    rate: str | float | None = None,
    traffic: str = "",
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    turns: str | float | None = None,
    think: str | float | None = None,
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    percentile: str | float = 95,
    cached: str | float = "30%",
    window: str | int = 512,
    summary: str | float = "25%",
    summary_requests: str | int = 10,
    small: str = "",
    easy: str | float = "50%",
    provider: str | Sequence[str] | None = None,
    price: str | float | None = None,
    on: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """The ladder of serving: no cache, batching, paging, graphs, formats, caches, drafts, a smaller model.

    The rate is what one replica gets. What an engine has is taken away, each technique stands alone,
    then the best together; what changes the answers stands apart.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    chip : str
        Chip that it runs on, unless the fabric is made of another. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    pp : str | int
        Pipeline stages of a replica. (default 1)
    dp : str | int
        Ranks of a replica that attend to sequences of their own. (default 1)
    ep : str | int
        Chips that share the experts. (default 1)
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    draft : str
        Speculative decoding: ngram, mtp, or the name of a draft model.
    num_draft : str | int
        Tokens drafted for a step. (default 3)
    acceptance : str | float
        Chance that a drafted token is kept. (default 50%)
    adapters : str | int | None
        LoRA adapters that requests ask for.
    adapter_rank : str | int
        Rank of an adapter. (default 16)
    resident_adapters : str | int | None
        Adapters on the chips at once (default: all).
    adapter_zipf : str | float
        Zipf exponent of the adapters' popularity; 0: all alike. (default 1)
    attention_adapters : bool
        Adapters beside attention alone, not the dense MLPs.
    host_cache : str | float
        Memory of a replica's hosts for blocks of cache that leave the chips. (default 0B)
    host_link : str | float | None
        Rate between a chip and its host, one way (default: the chip's link).
    drive_cache : str | float
        Drives for blocks that leave the hosts' memory. (default 0B)
    drive_rate : str | float | None
        Rate of a chip's share of the drives (default: as servers are sold).
    max_context : str | int | None
        Longest sequence it accepts (default: the model's).
    token_budget : str | int | None
        Most new tokens in one step.
    max_sequences : str | int | None
        Most sequences that run at once.
    block_tokens : str | int | None
        Tokens of one block of cache.
    chunked_prefill : bool | None
        Prompts may be cut to what is left of a step.
    mixed_steps : bool | None
        Prompts and decodes share steps.
    whole_prompt_blocks : bool | None
        A prompt waits until blocks for all of it are free.
    whole_output_blocks : bool | None
        A prompt waits until blocks for all that it may generate are free too.
    prefix_caching : bool | None
        Blocks of shared prefixes are kept.
    graphs : bool | None
        Steps replay captured graphs; otherwise the host launches each kernel.
    preemption : Literal["recompute", "swap"] | None
        What happens to who must leave.
    expert_exchange : Literal["auto", "gather", "all-to-all"] | None
        How attention ranks meet at the experts.
    memory_fraction : str | float | None
        Share of the chip's memory that the engine takes.
    reserved : str | float | None
        Memory for context, graphs and buffers.
    host_step : str | float | None
        Host time of a step that the chip waits for.
    host_sequence : str | float | None
        Host time that each sequence adds to a step.
    first_token : str | float | None
        Front end: tokenising, queues, the first chunk back.
    rate : str | float | None
        Requests per second.
    traffic : str
        Lengths by name: sharegpt, lmsys-chat (default), rag, agent, …
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    turns : str | float | None
        Mean turns of a conversation.
    think : str | float | None
        Pause of a user between answer and next request.
    ttft : str | float
        Most time to the first token. (default 1s)
    tpot : str | float
        Most time per output token after the first. (default 50ms)
    percentile : str | float
        Share of requests that must keep both limits. (default 95)
    cached : str | float
        Share of a prompt that a prefix cache finds. (default 30%)
    window : str | int
        Tokens that a layer sees where attention has a window. (default 512)
    summary : str | float
        Share of a prompt that is left of it in a summary. (default 25%)
    summary_requests : str | int
        Requests that read a summary before the next is written. (default 10)
    small : str
        Smaller model (default: of the same family and tokens, a quarter of the parameters at most).
    easy : str | float
        Share of the requests that the smaller model answers where they are told apart. (default 50%)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show techniques llama-3.1-70b --chip h200 --rate 5
        datahall show techniques llama-3.1-8b --chip l40s --rate 2 --isl 2000 --osl 300 --cached "60 %"
        datahall show techniques deepseek-v3 --chip b200 --tp 8 --rate 4 --precision fp8 --draft mtp
        datahall show techniques llama-3.1-70b --chip h200 --rate 5 --max-context 8k --small llama-3.2-3b --easy 80%
        datahall show techniques llama-3.1-70b --chip h100-sxm --tp 4 --rate 1 --isl 500 --turns 6 --think 5min --ttft 2s
    """

def show_memory(
    model: str,
    *,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    micro_batch: str | int | None = None,
    recompute: Literal["none", "selective", "full"] | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    shard: str | int | None = None,
    modules: str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    compress: Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """What takes the memory of a chip in training: state, activations by tensor, buffers.

    Exit code 1 where it does not fit, with the cheapest change. For serving: datahall show fit.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default: the layout file's, else bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips (default: all of a fabric that was built, or as few as the layout needs).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    zero : str | int | None
        What replicas share of their state: 0 to 3 (default 1; FSDP is 3).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    recompute : Literal["none", "selective", "full"] | None
        What backward computes again: none, selective or full.
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    shard : str | int | None
        Replicas that share a state, others hold copies (HSDP; default: all).
    modules : str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None
        Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        Off the chips, to the host: optimizer, parameters, activations; to drives as optimizer:nvme.
    compress : Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None
        Gradients on the wire: none, bf16, fp8, top-k, 1-bit, power-sgd.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show memory deepseek-v3 --chip h800 --pp 16 --ep 64 --recompute full
        datahall show memory llama-3.1-70b --layout run.sh --chips 512
    """

def show_training_techniques(
    model: str,
    *,
    tokens: str | float | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    framework: str = "nemo",
    imbalance: str | float | None = None,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    micro_batch: str | int | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    sites: str | int = 2,
    wan: str | float = "12.5GB/s",
    round_trip: str | float = "50ms",
    local_steps: str | int = 500,
    provider: str | Sequence[str] | None = None,
    price: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """The ladder of training: compiled, flash attention, formats, overlap, ZeRO, compression, several sites.

    Each one on top of the other, and each alone. MODEL is a name of the catalogue or a config.json in
    the Hugging Face format.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    tokens : str | float | None
        Tokens that are priced (default: 1B).
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips (default: those of a fabric that was built, of a layout, or 1024).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    sites : str | int
        Sites that the replicas are spread over. (default 2)
    wan : str | float
        What a site sends to the others, one way. (default 12.5GB/s)
    round_trip : str | float
        There and back between two sites. (default 50ms)
    local_steps : str | int
        Steps of a site between two exchanges with the others. (default 500)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show training-techniques llama-3.1-70b
        datahall show training-techniques llama-3.1-8b --chips 8 --chip h200 --global-batch 64
        datahall show training-techniques llama-3.1-405b --chips 16384 --tp 8 --pp 16 --vpp 4 --global-batch 2048
        datahall show training-techniques llama-3.1-8b --chips 64 --dp 64 --global-batch 256 --sites 4 --wan 10Gb/s
    """

def show_checkpoint(
    model: str,
    *,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    memory_margin: str | float = "5%",
    imbalance: str | float | None = None,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    micro_batch: str | int | None = None,
    recompute: Literal["none", "selective", "full"] | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    shard: str | int | None = None,
    modules: str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    compress: Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None = None,
    failures_like: str = "",
    failure_rate: str | float | None = None,
    job_failures: str | float = "0/day",
    shock_rate: str | float = "0/day",
    shock_nodes: str | int = 32,
    storage: str | float | None = None,
    tier: str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None = None,
    interval: str | float | None = None,
    blocking: str | float | None = None,
    synchronous: bool = False,
    save: str | float = "5s",
    copy: str | float = "40ms",
    detect: str | float = "3min",
    reschedule: str | float = "2min",
    warm_up: str | float = "5min",
    restart: str | float | None = None,
    spares: str | int | None = None,
    hot_spares: bool = False,
    elastic: Literal["kept", "linear", "sqrt"] | None = None,
    preempted_every: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """What a checkpoint holds, what each tier takes to write and read it, and how often to write.

    Exit code 1 where the storage is slower than the checkpoints need, with what would be enough.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default: the layout file's, else bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    memory_margin : str | float
        Share of a chip's memory that the layout leaves free, where it is looked for. (default 5%)
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips the job runs on (default: all of a fabric that was built).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    zero : str | int | None
        What replicas share of their state: 0 to 3 (default 1; FSDP is 3).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    recompute : Literal["none", "selective", "full"] | None
        What backward computes again: none, selective or full.
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    shard : str | int | None
        Replicas that share a state, others hold copies (HSDP; default: all).
    modules : str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None
        Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        Off the chips, to the host: optimizer, parameters, activations; to drives as optimizer:nvme.
    compress : Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None
        Gradients on the wire: none, bf16, fp8, top-k, 1-bit, power-sgd.
    failures_like : str
        Whose failure rates and causes (default: of the chip or its family, else llama-3).
    failure_rate : str | float | None
        Failures of a node per day, all causes together (default: as published).
    job_failures : str | float
        Failures of a job per day whatever its size, on top (2.2 at Meta's RSC-1). (default 0/day)
    shock_rate : str | float
        Failures per day of one thing that nodes share, on top: a row's power, its coolant. (default 0/day)
    shock_nodes : str | int
        Nodes that share it. (default 32)
    storage : str | float | None
        Remote storage, written by all chips together (default: 125 MB/s for each chip, as Llama 3 had).
    tier : str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None
        Where copies are kept: device, host, peer, local, remote (default: the best of them).
    interval : str | float | None
        Work between two checkpoints (default: the best of each tier).
    blocking : str | float | None
        Time that a checkpoint stops the run (default: as its tier takes).
    synchronous : bool
        Stop until a copy is written out, not only until it has left the chips.
    save : str | float
        Time that ranks take to agree on files before they write them. (default 5s)
    copy : str | float
        Time that ranks take to agree on a copy in memory. (default 40ms)
    detect : str | float
        Until a failure is noticed. (default 3min)
    reschedule : str | float
        Until the job stands on healthy nodes again. (default 2min)
    warm_up : str | float
        From a loaded checkpoint to the first new step. (default 5min)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    spares : str | int | None
        Spare nodes (default: as many as are needed).
    hot_spares : bool
        Spares run already: nothing is rescheduled while one is free.
    elastic : Literal["kept", "linear", "sqrt"] | None
        Replicas go on without one that fails; their batch and learning rate: kept, linear, sqrt.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show checkpoint llama-3.1-405b --chips 16384 --storage 2TB/s
        datahall show checkpoint llama-3.1-405b --chips 16384 --storage 1GB/s --tier remote
    """

def show_blast_radius(
    scenario: str = "",
    *,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    switch: str = "",
    server: str = "",
    radix: str | int | None = None,
    tiers: str | int | None = None,
    sides: str | Sequence[int] | None = None,
    failures_like: str = "",
    failure_rate: str | float | None = None,
    job_failures: str | float = "0/day",
    shock_rate: str | float = "0/day",
    shock_nodes: str | int = 32,
    spares_enough: str | float = "99%",
    catalog: Catalog | None = None,
) -> Answer:
    """What one failed GPU, NIC, cable, switch, rack, cube or pump takes down, how often, for how long; spares.

    TOPOLOGY is tree, fat-tree, clos, leaf-spine, rail-optimised, rail-only, dragonfly, dragonfly-plus,
    hyperx, torus, mesh, tpu-pod, full-mesh, hgx, nvl72, or a fabric that was built: meta-24k-roce,
    tpu-v4-pod, ….

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    on : str
        Topology, or a fabric that was built.
    chips : str | int | None
        How many chips it joins, rounded up to whole racks; a fabric that was built has its own.
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    switch : str
        Switch of the catalogue (default: of the port's speed).
    server : str
        Server of the catalogue (default: the one the chip is sold in).
    radix : str | int | None
        Ports of a switch, instead of the catalogue's.
    tiers : str | int | None
        Tiers of switches (default: the fewest).
    sides : str | Sequence[int] | None
        Sides of a torus (default: the most cube-like).
    failures_like : str
        Whose failure rates and causes (default: of the chip or its family, else llama-3).
    failure_rate : str | float | None
        Failures of a node per day, all causes together (default: as published).
    job_failures : str | float
        Failures of a job per day whatever its size, on top (2.2 at Meta's RSC-1). (default 0/day)
    shock_rate : str | float
        Failures per day of one thing that nodes share, on top: a row's power, its coolant. (default 0/day)
    shock_nodes : str | int
        Nodes that share it. (default 32)
    spares_enough : str | float
        Share of the time that spares must suffice. (default 99%)
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show blast-radius --on nvl72 --chips 10000
        datahall show blast-radius --on rail-optimised --chips 16384 --failures-like rsc-1
        datahall show blast-radius --on tpu-v4-pod
    """

def show_power(
    model: str,
    *,
    tokens: str | float | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    imbalance: str | float | None = None,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    micro_batch: str | int | None = None,
    recompute: Literal["none", "selective", "full"] | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    shard: str | int | None = None,
    modules: str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    compress: Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None = None,
    facility: str = "hyperscale",
    pue: str | float | None = None,
    storage_share: str | float = "2%",
    cooling: str = "",
    rack_power: str | float | None = None,
    grid: str = "usa",
    coherence: str | float = "100%",
    time_constant: str | float = "10ms",
    site_limit: str | float | None = None,
    swing_limit: str | float | None = None,
    ramp_limit: str | float | None = None,
    power_floor: str | float = "0%",
    ramp_cap: str | float | None = None,
    capacitors: str | float = "0J",
    supercapacitors: str | int = 0,
    battery: str | int = 0,
    battery_type: str = "megapack-2xl",
    catalog: Catalog | None = None,
) -> Answer:
    """What a site draws in training, how that swings, what evens it out, energy and carbon.

    MODEL is a name of the catalogue or a config.json in the Hugging Face format. Exit code 1 where a
    limit that was said is broken, with what would keep it.

    Parameters
    ----------
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    tokens : str | float | None
        Tokens to train on, for the energy of the whole run.
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default: the layout file's, else bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        Chips of the site (default: all of a fabric that was built).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    zero : str | int | None
        What replicas share of their state: 0 to 3 (default 1; FSDP is 3).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    recompute : Literal["none", "selective", "full"] | None
        What backward computes again: none, selective or full.
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    shard : str | int | None
        Replicas that share a state, others hold copies (HSDP; default: all).
    modules : str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None
        Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        Off the chips, to the host: optimizer, parameters, activations; to drives as optimizer:nvme.
    compress : Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None
        Gradients on the wire: none, bf16, fp8, top-k, 1-bit, power-sgd.
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    storage_share : str | float
        Power of storage over that of the servers. (default 2%)
    cooling : str
        How racks are cooled: air or liquid (default: air while it can).
    rack_power : str | float | None
        Power of a rack (default: what air cools, or one server).
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    coherence : str | float
        How far servers rise and fall together: 1 one job in step, 0 each by itself. (default 100%)
    time_constant : str | float
        Time constant of what smooths a chip's power on its way to the wall. (default 10ms)
    site_limit : str | float | None
        Most that the site may draw.
    swing_limit : str | float | None
        Most that its power may swing within a step.
    ramp_limit : str | float | None
        Fastest that the grid allows a job to stop (default: no limit; sized for 10MW/min).
    power_floor : str | float
        Share of the peak below which chips burn power to stay there. (default 0%)
    ramp_cap : str | float | None
        Ramp that chips keep by burning power before and after.
    capacitors : str | float
        Energy in a chip's power supply (GB300: 65 J). (default 0J)
    supercapacitors : str | int
        Modules of supercapacitors. (default 0)
    battery : str | int
        Containers of batteries. (default 0)
    battery_type : str
        Battery that they are, or another store of energy. (default megapack-2xl)
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show power llama-3.1-405b --chips 100000
        datahall show power llama-3.1-405b --chips 16384 --tp 8 --pp 16 --swing-limit 5MW -o power.html
        datahall show power llama-3.1-70b --chips 20000 --chip gb200 --grid texas --battery 10
    """

def show_fabric(
    topologies: str | Sequence[str] | None,
    *,
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    switch: str = "",
    server: str = "",
    radix: str | int | None = None,
    tiers: str | int | None = None,
    sides: str | Sequence[int] | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Switches, cables, bisection, diameter, paths, power and price; several side by side.

    TOPOLOGY is tree, fat-tree, clos, leaf-spine, rail-optimised, rail-only, dragonfly, dragonfly-plus,
    hyperx, torus, mesh, tpu-pod, full-mesh, hgx, nvl72, or a fabric that was built: meta-24k-roce,
    meta-24k-infiniband, xai-colossus, dgx-superpod-h100, tpu-v4-pod, tpu-v5p-pod, gb200-nvl72-superpod,
    gb200-nvl72-cluster.

    Parameters
    ----------
    topologies : str | Sequence[str] | None
        Topologies, or fabrics that were built, side by side.
    chips : str | int | None
        How many chips it joins; a fabric that was built has its own.
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    switch : str
        Switch of the catalogue (default: of the port's speed).
    server : str
        Server of the catalogue (default: the one the chip is sold in).
    radix : str | int | None
        Ports of a switch, instead of the catalogue's.
    tiers : str | int | None
        Tiers of switches (default: the fewest).
    sides : str | Sequence[int] | None
        Sides of a torus (default: the most cube-like).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show fabric fat-tree --chips 16384 --chip h100-sxm --oversubscription 1:1
        datahall show fabric nvl72 fat-tree torus tree --chips 9216
        datahall show fabric meta-24k-roce
    """

def show_collective(
    collective: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-recv", "barrier"] | str,
    *,
    size: str | float | None = None,
    experts: str | int | None = None,
    tokens: str | int | None = None,
    topk: str | int | None = None,
    hidden: str | int | None = None,
    precision: Literal["fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "nvfp4"] = "bf16",
    algorithm: Literal["ring", "tree", "nvls", "nvls-tree", "pat"] | None = None,
    version: str | None = None,
    level: Literal["datasheet", "family", "measured"] | None = None,
    all: bool = False,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    sides: str | Sequence[int] | None = None,
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Time, algbw, busbw, the algorithm chosen and why, crossover sizes.

    Parameters
    ----------
    collective : Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-recv", "barrier"] | str
        all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, send-recv, barrier. (default
        all-reduce)
    size : str | float | None
        The whole array, as in nccl-tests.
    experts : str | int | None
        MoE: experts, one a chip.
    tokens : str | int | None
        MoE: tokens of all chips together.
    topk : str | int | None
        MoE: experts of each token.
    hidden : str | int | None
        MoE: hidden size.
    precision : Literal["fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "nvfp4"]
        MoE: what the tokens are sent in: fp32, bf16, fp16, fp8, mxfp8, int8, nvfp4. (default bf16)
    algorithm : Literal["ring", "tree", "nvls", "nvls-tree", "pat"] | None
        Only this one of NCCL's: ring, tree, nvls, nvls-tree, pat.
    version : str | None
        Version of NCCL (default 2.27).
    level : Literal["datasheet", "family", "measured"] | None
        Constants of links and network: datasheet, family or measured (default: the best there are).
    all : bool
        Every protocol, and what textbooks add.
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips take part; one an expert where experts are given.
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    sides : str | Sequence[int] | None
        Sides of a torus (default: the most cube-like).
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show collective all-reduce --on fat-tree --chips 1024 --chip h100-sxm --size 1GB
        datahall show collective all-reduce --on nvl72 --chips 144 --size 64MB --all
        datahall show collective all-to-all --experts 64 --tokens 2^20 --topk 2 --hidden 4096
    """

def show_transport(
    transports: str | Sequence[str] | None,
    *,
    seed: str | int = 0,
    size: str | float = "1MB",
    loss: str | float = "0.001%",
    senders: str | int = 32,
    paths: str | int = 1,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    switch: str = "",
    server: str = "",
    radix: str | int | None = None,
    tiers: str | int | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Latency, bandwidth kept under load, loss, incast and pause storms of transports on one network.

    Parameters
    ----------
    seed : str | int
        Seed of every random draw. (default 0)
    transports : str | Sequence[str] | None
        Transports side by side: infiniband, roce, spectrum-x, tcp.
    size : str | float
        Bytes of one message. (default 1MB)
    loss : str | float
        Share of packets that are lost. (default 0.001%)
    senders : str | int
        Incast: chips that send to one at once. (default 32)
    paths : str | int
        Queue pairs that a message is split over where each has a path of its own. (default 1)
    on : str
        Topology, or a fabric that was built (default: fat-tree).
    chips : str | int | None
        How many chips it joins; a fabric that was built has its own.
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    switch : str
        Switch of the catalogue (default: of the port's speed).
    server : str
        Server of the catalogue (default: the one the chip is sold in).
    radix : str | int | None
        Ports of a switch, instead of the catalogue's.
    tiers : str | int | None
        Tiers of switches (default: the fewest).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show transport infiniband roce spectrum-x tcp --chips 1024
        datahall show transport roce --on rail-optimised --chips 2048 --paths 16
        datahall show transport tcp roce --chips 512 --loss 1e-4 --senders 64
    """

def show_datapath(
    workload: str,
    *,
    storage: str | Sequence[str] = ["nvme", "parallel", "object"],
    units: str | int = 1,
    utilisation: str | float = "90%",
    chips_per_host: str | int | None = None,
    batch: str | int | None = None,
    step: str | float | None = None,
    mfu: str | float | None = None,
    sample: str | float | None = None,
    dataset: str | float | None = None,
    stored_as: Literal["files", "shards", "columnar"] | None = None,
    columns: str | float = "100%",
    shuffle: Literal["none", "buffer", "random"] | None = None,
    readers: str | int | None = None,
    prefetch_depth: str | int = 2,
    prepare: str | float | None = None,
    cores: str | int = 112,
    cache: str | float = "0B",
    keeping: Literal["lru", "pinned"] = "lru",
    host_memory: str | float | None = None,
    host_nic: str | float = "50GB/s",
    away: str | float = "0s",
    checkpoint: str | float | None = None,
    checkpoint_every: str | float = "30min",
    replicas: str | int = 1,
    chips: str | int | None = None,
    chip: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Does storage starve the chips: utilisation, what binds, and what mends it.

    Exit code 1 where no storage keeps chips at work as much as is asked for, with the cheapest change.

    Parameters
    ----------
    workload : str
        Data set: resnet50, unet3d, cosmoflow, …; or a model that is trained on text.
    storage : str | Sequence[str]
        Where the data lies, several side by side. (default nvme,parallel,object)
    units : str | int
        Drives of each host, or nodes or prefixes of what hosts share. (default 1)
    utilisation : str | float
        Share of their time that chips must work. (default 90%)
    chips_per_host : str | int | None
        Chips that load over one host (default: as the chip is sold).
    batch : str | int | None
        Samples of a chip and step (default: the workload's).
    step : str | float | None
        How long a chip works on a batch (default: as measured for the workload, or of a model's fastest
        layout).
    mfu : str | float | None
        Share of a chip's peak at which a model trains on text (default: that of its fastest layout).
    sample : str | float | None
        Size of a sample, or of a token (default: the workload's).
    dataset : str | float | None
        Size of the data set (default: the workload's).
    stored_as : Literal["files", "shards", "columnar"] | None
        How samples lie: files, shards, columnar (default: the workload's).
    columns : str | float
        Share of a sample's bytes that columns are read of. (default 100%)
    shuffle : Literal["none", "buffer", "random"] | None
        Order of reading: none, buffer, random (default: random of files, a buffer of shards).
    readers : str | int | None
        Readers that load for a chip (default: the workload's).
    prefetch_depth : str | int
        Batches that may lie ready before a chip. (default 2)
    prepare : str | float | None
        What a core takes to decode or tokenise a sample (default: nothing).
    cores : str | int
        Cores of a host that readers prepare samples on. (default 112)
    cache : str | float
        Memory of a host that caches the data set. (default 0B)
    keeping : Literal["lru", "pinned"]
        What the cache keeps: lru, or pinned (a part, for good). (default lru)
    host_memory : str | float | None
        Memory of a host (default: as the chip is sold).
    host_nic : str | float
        Network of a host towards shared storage, one way. (default 50GB/s)
    away : str | float
        Round trip to the region where shared storage is; none: the same. (default 0s)
    checkpoint : str | float | None
        Size of a checkpoint (default: of a model, its weights and the optimizer's state).
    checkpoint_every : str | float
        Time between checkpoints. (default 30min)
    replicas : str | int
        Replicas of a model that load their weights at once. (default 1)
    chips : str | int | None
        How many chips read.
    chip : str
        Chip (default: h100-sxm).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show datapath resnet50 --chips 64 --storage nvme,object
        datahall show datapath unet3d --chips 36 --storage lustre --readers 16
        datahall show datapath llama-3.1-405b --chips 16384 --storage parallel,tectonic --units 4
    """

def show_cost(
    priced: str,
    *,
    own: bool = False,
    provider: str | Sequence[str] | None = None,
    regions: str | Sequence[str] | None = None,
    residency: str | Sequence[str] | None = None,
    price: str | float | None = None,
    spot_price: str | float | None = None,
    as_of: str = "",
    predict: bool = False,
    chip_hours: str | float | None = None,
    owner: str = "neocloud",
    capex: str | float | None = None,
    interest: str | float | None = None,
    life: str | float | None = None,
    residual: str | float | None = None,
    depreciation: Literal["annuity", "market"] | None = None,
    hardware_age: str | float | None = None,
    colo: str | float | None = None,
    energy_price: str | float | None = None,
    repair_cost: str | float = "0%",
    staff: str | float = "$0/month",
    used: str | float = "100%",
    facility: str = "hyperscale",
    pue: str | float | None = None,
    storage_share: str | float = "2%",
    grid: str = "usa",
    tokens: str | float | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    chips: str | int | None = None,
    chip: str = "",
    restart: str | float | None = None,
    preempted_every: str | float | None = None,
    blocking: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """What a chip-hour costs by every way to have it, or a training run by three accountings, in four scopes.

    Exit code 1 where nobody prices it, and where owning is asked for and nobody sells it.

    Parameters
    ----------
    priced : str
        A model that is trained, or a chip.
    own : bool
        Lead with owning, by its parts.
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    regions : str | Sequence[str] | None
        Regions of clouds that chips stand in, whose prices count (default: anywhere).
    residency : str | Sequence[str] | None
        Countries whose regions alone count: germany,france.
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    spot_price : str | float | None
        Rent of a chip for an hour on spot (default: the median of fresh spot offers).
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    predict : bool
        Lay a run out whose chip-hours were published, and count those it would take.
    chip_hours : str | float | None
        Chip-hours of the run (default: as published, else of its fastest layout, with failures).
    owner : str
        Who owns: interest, life and space are theirs where nobody says them. (default neocloud)
    capex : str | float | None
        Price of a chip with its share of server and network (default: of the catalogue's prices).
    interest : str | float | None
        Interest on capital a year (default: the owner's).
    life : str | float | None
        Life over which hardware is written off (default: the owner's).
    residual : str | float | None
        Share of the price that is left at the end (default: the owner's).
    depreciation : Literal["annuity", "market"] | None
        How it loses value: annuity (even payments over its life), or market (as newer chips do more for the
        money; default for runs that were published).
    hardware_age : str | float | None
        Age of the hardware at the start (default: new, or as of a run that was published).
    colo : str | float | None
        Rent of space by the power of IT, in place of the owner's.
    energy_price : str | float | None
        Price of energy (default: the grid's).
    repair_cost : str | float
        Repair a year, of what hardware cost. (default 0%)
    staff : str | float
        Staff that runs it, a month. (default $0/month)
    used : str | float
        Share of the hours that somebody uses or rents it. (default 100%)
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    storage_share : str | float
        Power of storage over that of the servers. (default 2%)
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    tokens : str | float | None
        Tokens to train on (default: as published).
    seq : str | int | None
        Tokens of a sequence (default: as published, else the usual).
    global_batch : str | int | None
        Sequences of a step (default: as published, else 1024, of adapters 8, or one for every 16 chips
        where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format of the run (default: as published, else the usual).
    chips : str | int | None
        Chips of the run, or of a cluster that is owned (default: as published, or 1024).
    chip : str
        Chip that the run is on (default: as published).
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    blocking : str | float | None
        Time that a checkpoint stops the run (default: as its tier takes).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show cost llama-3.1-405b
        datahall show cost h100-sxm
        datahall show cost h100-sxm --own --owner hyperscaler --life 5y
        datahall show cost llama-3.1-8b --tokens 1T --chips 256
        datahall show cost deepseek-v3 --own
        datahall show cost gpt-4 --predict
    """

def show_build_or_buy(
    scenario: str = "",
    *,
    model: str = "",
    seed: str | int = 0,
    buy: str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]] = ["rent", "own"],
    provider: str | Sequence[str] | None = None,
    regions: str | Sequence[str] | None = None,
    residency: str | Sequence[str] | None = None,
    price: str | float | None = None,
    spot_price: str | float | None = None,
    as_of: str = "",
    country: str = "",
    without: str | Sequence[str] | None = None,
    licensed: bool = False,
    owner: str = "neocloud",
    capex: str | float | None = None,
    interest: str | float | None = None,
    life: str | float | None = None,
    residual: str | float | None = None,
    depreciation: Literal["annuity", "market"] | None = None,
    hardware_age: str | float | None = None,
    colo: str | float | None = None,
    energy_price: str | float | None = None,
    repair_cost: str | float = "0%",
    staff: str | float = "$0/month",
    used: str | float = "100%",
    facility: str = "hyperscale",
    pue: str | float | None = None,
    storage_share: str | float = "2%",
    grid: str = "usa",
    orchestration: str | float | None = None,
    network_overhead: str | float | None = None,
    storage_overhead: str | float | None = None,
    monitoring: str | float | None = None,
    api: str = "",
    cached: str | float = "0%",
    batched: str | float = "0%",
    api_latency: str | float | None = None,
    traffic: str = "",
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    tpot: str | float = "50ms",
    percentile: str | float = 95,
    chips: str | Sequence[str] | None = None,
    precision: str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]] = ["bf16", "fp8"],
    headroom: str | float = "10%",
    tp: str | int | None = None,
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    restart: str | float | None = None,
    preempted_every: str | float | None = None,
    tokens_per_month: str | float | None = None,
    latency: str | float | None = None,
    peak_to_mean: str | float = "3",
    catalog: Catalog | None = None,
) -> Answer:
    """Tokens by an API or chips of one's own: the decision, its margin, and from which volume on it flips.

    Exit code 1 where neither can be had within the latency. MODEL is a name of the catalogue or a
    config.json in the Hugging Face format.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seed : str | int
        Seed of every random draw. (default 0)
    buy : str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]]
        Ways to buy that are weighed: rent, reserved, spot, own, api. (default rent,own)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    regions : str | Sequence[str] | None
        Regions of clouds that chips stand in, whose prices count (default: anywhere).
    residency : str | Sequence[str] | None
        Countries whose regions alone count: germany,france.
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    spot_price : str | float | None
        Rent of a chip for an hour on spot (default: the median of fresh spot offers).
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    country : str
        Country that chips are brought to: those that need an export licence for it are left out.
    without : str | Sequence[str] | None
        Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is
        known, are left out.
    licensed : bool
        Keep chips that need an export licence, as one who has it.
    owner : str
        Who owns: interest, life and space are theirs where nobody says them. (default neocloud)
    capex : str | float | None
        Price of a chip with its share of server and network (default: of the catalogue's prices).
    interest : str | float | None
        Interest on capital a year (default: the owner's).
    life : str | float | None
        Life over which hardware is written off (default: the owner's).
    residual : str | float | None
        Share of the price that is left at the end (default: the owner's).
    depreciation : Literal["annuity", "market"] | None
        How it loses value: annuity (even payments over its life), or market (as newer chips do more for the
        money; default for runs that were published).
    hardware_age : str | float | None
        Age of the hardware at the start (default: new, or as of a run that was published).
    colo : str | float | None
        Rent of space by the power of IT, in place of the owner's.
    energy_price : str | float | None
        Price of energy (default: the grid's).
    repair_cost : str | float
        Repair a year, of what hardware cost. (default 0%)
    staff : str | float
        Staff that runs it, a month. (default $0/month)
    used : str | float
        Share of the hours that somebody uses or rents it. (default 100%)
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    storage_share : str | float
        Power of storage over that of the servers. (default 2%)
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    orchestration : str | float | None
        Orchestration, over the bill (default: as published).
    network_overhead : str | float | None
        Network, over a bill of rent (default: as published).
    storage_overhead : str | float | None
        Storage, over the bill (default: as published).
    monitoring : str | float | None
        Monitoring, over the bill (default: as published).
    api : str
        Hosted model to compare with: gpt-4o, openai/gpt-4o, … (default: the cheapest host of the same
        model).
    cached : str | float
        Share of input tokens that the API finds in its cache. (default 0%)
    batched : str | float
        Share of tokens that may wait a day. (default 0%)
    api_latency : str | float | None
        Time to the first token that the API was measured to have (default: nobody promises one).
    traffic : str
        Lengths by name: sharegpt, lmsys-chat (default), rag, agent, …
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    tpot : str | float
        Most time per output token after the first. (default 50ms)
    percentile : str | float
        Share of requests that must keep both limits. (default 95)
    chips : str | Sequence[str] | None
        Kinds of chip to weigh (default: a few usual ones).
    precision : str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]]
        Formats to weigh. (default bf16,fp8)
    headroom : str | float
        Share of what a replica holds that is left free. (default 10%)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    tokens_per_month : str | float | None
        Tokens a month, of prompts and answers.
    latency : str | float | None
        Most time to the first token.
    peak_to_mean : str | float
        Busiest hour over the mean. (default 3)
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show build-or-buy --tokens-per-month 2B --model llama-3.1-70b --latency 200ms
        datahall show build-or-buy --tokens-per-month 20B --model llama-3.1-8b --api gpt-4o --buy rent
    """

def show_stage(
    scenario: str = "",
    *,
    model: str = "",
    seed: str | int = 0,
    buy: str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]] = ["rent", "own"],
    provider: str | Sequence[str] | None = None,
    regions: str | Sequence[str] | None = None,
    residency: str | Sequence[str] | None = None,
    price: str | float | None = None,
    spot_price: str | float | None = None,
    as_of: str = "",
    country: str = "",
    without: str | Sequence[str] | None = None,
    licensed: bool = False,
    owner: str = "neocloud",
    capex: str | float | None = None,
    interest: str | float | None = None,
    life: str | float | None = None,
    residual: str | float | None = None,
    depreciation: Literal["annuity", "market"] | None = None,
    hardware_age: str | float | None = None,
    colo: str | float | None = None,
    energy_price: str | float | None = None,
    repair_cost: str | float = "0%",
    staff: str | float = "$0/month",
    used: str | float = "100%",
    facility: str = "hyperscale",
    pue: str | float | None = None,
    storage_share: str | float = "2%",
    grid: str = "usa",
    orchestration: str | float | None = None,
    network_overhead: str | float | None = None,
    storage_overhead: str | float | None = None,
    monitoring: str | float | None = None,
    api: str = "",
    cached: str | float = "0%",
    batched: str | float = "0%",
    api_latency: str | float | None = None,
    traffic: str = "",
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    tpot: str | float = "50ms",
    percentile: str | float = 95,
    chips: str | Sequence[str] | None = None,
    precision: str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]] = ["bf16", "fp8"],
    headroom: str | float = "10%",
    tp: str | int | None = None,
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    restart: str | float | None = None,
    preempted_every: str | float | None = None,
    latency: str | float | None = None,
    peak_to_mean: str | float = "3",
    customers: str | int | None = None,
    tokens_per_customer: str | float | None = None,
    revenue: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """A firm that grows: what a customer costs, what is left, on what to run, and what flips next.

    Exit code 1 where customers pay less than they cost. MODEL is a name of the catalogue or a
    config.json in the Hugging Face format.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    model : str
        Model that customers use (default: llama-3.1-70b).
    seed : str | int
        Seed of every random draw. (default 0)
    buy : str | Sequence[Literal["rent", "reserved", "spot", "own", "api"]]
        Ways to buy that are weighed: rent, reserved, spot, own, api. (default rent,own)
    provider : str | Sequence[str] | None
        Whose prices count (default: all).
    regions : str | Sequence[str] | None
        Regions of clouds that chips stand in, whose prices count (default: anywhere).
    residency : str | Sequence[str] | None
        Countries whose regions alone count: germany,france.
    price : str | float | None
        Rent of a chip for an hour (default: the median of fresh offers on demand).
    spot_price : str | float | None
        Rent of a chip for an hour on spot (default: the median of fresh spot offers).
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    country : str
        Country that chips are brought to: those that need an export licence for it are left out.
    without : str | Sequence[str] | None
        Makers of wafers or packages to do without: chips that they make, or of whose maker nothing is
        known, are left out.
    licensed : bool
        Keep chips that need an export licence, as one who has it.
    owner : str
        Who owns: interest, life and space are theirs where nobody says them. (default neocloud)
    capex : str | float | None
        Price of a chip with its share of server and network (default: of the catalogue's prices).
    interest : str | float | None
        Interest on capital a year (default: the owner's).
    life : str | float | None
        Life over which hardware is written off (default: the owner's).
    residual : str | float | None
        Share of the price that is left at the end (default: the owner's).
    depreciation : Literal["annuity", "market"] | None
        How it loses value: annuity (even payments over its life), or market (as newer chips do more for the
        money; default for runs that were published).
    hardware_age : str | float | None
        Age of the hardware at the start (default: new, or as of a run that was published).
    colo : str | float | None
        Rent of space by the power of IT, in place of the owner's.
    energy_price : str | float | None
        Price of energy (default: the grid's).
    repair_cost : str | float
        Repair a year, of what hardware cost. (default 0%)
    staff : str | float
        Staff that runs it, a month. (default $0/month)
    used : str | float
        Share of the hours that somebody uses or rents it. (default 100%)
    facility : str
        Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses
        are. (default hyperscale)
    pue : str | float | None
        Power of the site over that of its IT (default: the building's).
    storage_share : str | float
        Power of storage over that of the servers. (default 2%)
    grid : str
        Electricity grid: texas, virginia, sweden, … . (default usa)
    orchestration : str | float | None
        Orchestration, over the bill (default: as published).
    network_overhead : str | float | None
        Network, over a bill of rent (default: as published).
    storage_overhead : str | float | None
        Storage, over the bill (default: as published).
    monitoring : str | float | None
        Monitoring, over the bill (default: as published).
    api : str
        Hosted model to compare with: gpt-4o, openai/gpt-4o, … (default: the cheapest host of the same
        model).
    cached : str | float
        Share of input tokens that the API finds in its cache. (default 0%)
    batched : str | float
        Share of tokens that may wait a day. (default 0%)
    api_latency : str | float | None
        Time to the first token that the API was measured to have (default: nobody promises one).
    traffic : str
        Lengths by name: sharegpt, lmsys-chat (default), rag, agent, …
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    tpot : str | float
        Most time per output token after the first. (default 50ms)
    percentile : str | float
        Share of requests that must keep both limits. (default 95)
    chips : str | Sequence[str] | None
        Kinds of chip to weigh (default: a few usual ones).
    precision : str | Sequence[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]]
        Formats to weigh. (default bf16,fp8)
    headroom : str | float
        Share of what a replica holds that is left free. (default 10%)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    latency : str | float | None
        Most time to the first token.
    peak_to_mean : str | float
        Busiest hour over the mean. (default 3)
    customers : str | int | None
        Customers that pay.
    tokens_per_customer : str | float | None
        Tokens a month of one customer.
    revenue : str | float | None
        What a customer pays a month.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall show stage --customers 1500 --tokens-per-customer 3M
        datahall show stage --customers 20000 --tokens-per-customer 3M --revenue 30USD
    """

def simulate_serve(
    model: str,
    *,
    name: str = "",
    seed: str | int = 0,
    chip: str = "h100-sxm",
    tp: str | int | None = None,
    pp: str | int = 1,
    dp: str | int = 1,
    ep: str | int = 1,
    replicas: str | int = 1,
    disaggregated: str = "",
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    draft: str = "",
    num_draft: str | int = 3,
    acceptance: str | float = "50%",
    adapters: str | int | None = None,
    adapter_rank: str | int = 16,
    resident_adapters: str | int | None = None,
    adapter_zipf: str | float = "1",
    attention_adapters: bool = False,
    host_cache: str | float = "0B",
    host_link: str | float | None = None,
    drive_cache: str | float = "0B",
    drive_rate: str | float | None = None,
    max_context: str | int | None = None,
    routing_skew: str | float = "0",
    kv_blocks: str | int | None = None,
    role: Literal["both", "prefill", "decode"] | None = None,
    in_region: str = "",
    weight: str | float = "1",
    handoff: str | float | None = None,
    batching: Literal["continuous", "static", "dynamic"] | None = None,
    token_budget: str | int | None = None,
    max_sequences: str | int | None = None,
    block_tokens: str | int | None = None,
    chunked_prefill: bool | None = None,
    mixed_steps: bool | None = None,
    whole_prompt_blocks: bool | None = None,
    whole_output_blocks: bool | None = None,
    prefix_caching: bool | None = None,
    graphs: bool | None = None,
    preemption: Literal["recompute", "swap"] | None = None,
    expert_exchange: Literal["auto", "gather", "all-to-all"] | None = None,
    memory_fraction: str | float | None = None,
    reserved: str | float | None = None,
    host_step: str | float | None = None,
    host_sequence: str | float | None = None,
    wait: str | float | None = None,
    first_token: str | float | None = None,
    routing: Literal["round-robin", "least-outstanding", "two-choices", "prefix-affinity", "session"] = "least-outstanding",
    affinity_load: str | float = "1.25",
    spill: str | int = 64,
    autoscale: str | None = None,
    cold_start: str | float = "2min",
    interval: str | float = "15s",
    patience: str | float = "5min",
    traffic_name: str = "",
    rate: str | float | None = None,
    users: str | int | None = None,
    trace: str = "",
    traffic: str = "",
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    burstiness: str | float | None = None,
    turns: str | float | None = None,
    think: str | float | None = None,
    think_variation: str | float | None = None,
    opening: str | int | Mapping[str, Any] | None = None,
    system: str | int | None = None,
    groups: str | int | None = None,
    group_zipf: str | float | None = None,
    documents: str | int | None = None,
    document: str | int | None = None,
    retrieved: str | int | None = None,
    document_zipf: str | float | None = None,
    hourly: str | Sequence[str | float] | None = None,
    swing: str | float = "0%",
    peak: str | float = "14h",
    busy: str | float = "0s",
    lull: str | float = "0s",
    lull_rate: str | float = "0",
    requests: str | int | None = None,
    duration: str | float | None = None,
    speed: str | float = "1",
    sort_trace: bool = False,
    first: str | int | None = None,
    hash_block: str | int | None = None,
    from_region: str | Mapping[str, Any] | None = None,
    priority: str | int = 0,
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    percentile: str | float = 95,
    on: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    warmup: str | float | None = None,
    until: str | float | None = None,
    region: Tables | None = None,
    cache: Tables | None = None,
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """A fleet under traffic: TTFT, TPOT, ITL, E2E, goodput, cache, queue; closed form beside it.

    In place of MODEL, a scenario file says all this, with several pools and streams.

    Parameters
    ----------
    name : str
        What to call the scenario.
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seed : str | int
        Seed of every random draw. (default 0)
    chip : str
        Chip that it runs on, unless the fabric is made of another. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    pp : str | int
        Pipeline stages of a replica. (default 1)
    dp : str | int
        Ranks of a replica that attend to sequences of their own. (default 1)
    ep : str | int
        Chips that share the experts. (default 1)
    replicas : str | int
        Replicas behind the router. (default 1)
    disaggregated : str
        Prompts on replicas of their own: prefill=4xh200,decode=8xh200.
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    draft : str
        Speculative decoding: ngram, mtp, or the name of a draft model.
    num_draft : str | int
        Tokens drafted for a step. (default 3)
    acceptance : str | float
        Chance that a drafted token is kept. (default 50%)
    adapters : str | int | None
        LoRA adapters that requests ask for.
    adapter_rank : str | int
        Rank of an adapter. (default 16)
    resident_adapters : str | int | None
        Adapters on the chips at once (default: all).
    adapter_zipf : str | float
        Zipf exponent of the adapters' popularity; 0: all alike. (default 1)
    attention_adapters : bool
        Adapters beside attention alone, not the dense MLPs.
    host_cache : str | float
        Memory of a replica's hosts for blocks of cache that leave the chips. (default 0B)
    host_link : str | float | None
        Rate between a chip and its host, one way (default: the chip's link).
    drive_cache : str | float
        Drives for blocks that leave the hosts' memory. (default 0B)
    drive_rate : str | float | None
        Rate of a chip's share of the drives (default: as servers are sold).
    max_context : str | int | None
        Longest sequence it accepts (default: the model's).
    routing_skew : str | float
        Power-law exponent of the experts' popularity; 0: balanced. (default 0)
    kv_blocks : str | int | None
        Blocks of cache that the engine reported.
    role : Literal["both", "prefill", "decode"] | None
        What a pool does (default: both).
    in_region : str
        Region that a pool stands in.
    weight : str | float
        Weight of a pool at a router that counts requests: it gets one where the fewest are for the weight.
        (default 1)
    handoff : str | float | None
        Rate at which a prefill pool hands its cache over (default: its network's).
    batching : Literal["continuous", "static", "dynamic"] | None
        How requests share steps.
    token_budget : str | int | None
        Most new tokens in one step.
    max_sequences : str | int | None
        Most sequences that run at once.
    block_tokens : str | int | None
        Tokens of one block of cache.
    chunked_prefill : bool | None
        Prompts may be cut to what is left of a step.
    mixed_steps : bool | None
        Prompts and decodes share steps.
    whole_prompt_blocks : bool | None
        A prompt waits until blocks for all of it are free.
    whole_output_blocks : bool | None
        A prompt waits until blocks for all that it may generate are free too.
    prefix_caching : bool | None
        Blocks of shared prefixes are kept.
    graphs : bool | None
        Steps replay captured graphs; otherwise the host launches each kernel.
    preemption : Literal["recompute", "swap"] | None
        What happens to who must leave.
    expert_exchange : Literal["auto", "gather", "all-to-all"] | None
        How attention ranks meet at the experts.
    memory_fraction : str | float | None
        Share of the chip's memory that the engine takes.
    reserved : str | float | None
        Memory for context, graphs and buffers.
    host_step : str | float | None
        Host time of a step that the chip waits for.
    host_sequence : str | float | None
        Host time that each sequence adds to a step.
    wait : str | float | None
        Dynamic batching: how long a first request waits for company.
    first_token : str | float | None
        Front end: tokenising, queues, the first chunk back.
    routing : Literal["round-robin", "least-outstanding", "two-choices", "prefix-affinity", "session"]
        How requests find a replica: round-robin, least-outstanding, two-choices, prefix-affinity, session.
        (default least-outstanding)
    affinity_load : str | float
        Prefix affinity: load over the mean at which the next replica is asked. (default 1.25)
    spill : str | int
        Requests per replica at which a region sends further ones elsewhere. (default 64)
    autoscale : str | None
        Replicas by load: MIN..MAX, and with :N the requests in the system for each.
    cold_start : str | float
        Until a new replica serves. (default 2min)
    interval : str | float
        Between two decisions of the autoscaler. (default 15s)
    patience : str | float
        How long fewer replicas must have been enough. (default 5min)
    traffic_name : str
        What to call it.
    rate : str | float | None
        Requests per second, or "inf": all at once.
    users : str | int | None
        People who wait for their answers, instead of a rate.
    trace : str
        Recorded requests, CSV or JSONL, instead of a rate.
    traffic : str
        Lengths by name: sharegpt, lmsys-chat (default), rag, agent, …
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    burstiness : str | float | None
        Standard deviation of the gaps between requests over their mean; 1: Poisson, 0: equal gaps.
    turns : str | float | None
        Mean turns of a conversation.
    think : str | float | None
        Pause of a user between answer and next request.
    think_variation : str | float | None
        Standard deviation of the pause over its mean.
    opening : str | int | Mapping[str, Any] | None
        New tokens of the first turn, where they differ.
    system : str | int | None
        Tokens of the system prompt that all requests share.
    groups : str | int | None
        Different system prompts.
    group_zipf : str | float | None
        Zipf exponent of their popularity.
    documents : str | int | None
        Documents that prompts quote.
    document : str | int | None
        Tokens of a document.
    retrieved : str | int | None
        Documents in a prompt.
    document_zipf : str | float | None
        Zipf exponent of their popularity.
    hourly : str | Sequence[str | float] | None
        24 factors of the rate by hour of day.
    swing : str | float
        Sinusoid of the rate over a day. (default 0%)
    peak : str | float
        When of the day the rate is highest, where it swings. (default 14h)
    busy : str | float
        Mean length of a busy time. (default 0s)
    lull : str | float
        Mean length of a quiet time. (default 0s)
    lull_rate : str | float
        Rate of a quiet time over that of a busy one. (default 0)
    requests : str | int | None
        Requests to simulate (default: 10,000, or more where a run would be short beside a request).
    duration : str | float | None
        For how long requests come; beside their number, what ends first.
    speed : str | float
        2 replays a trace twice as fast. (default 1)
    sort_trace : bool
        Sort a trace by arrival.
    first : str | int | None
        Only so many rows of a trace.
    hash_block : str | int | None
        Tokens that one hash of a trace stands for.
    from_region : str | Mapping[str, Any] | None
        Where its requests come from.
    priority : str | int
        Lower goes first. (default 0)
    ttft : str | float
        Most time to the first token. (default 1s)
    tpot : str | float
        Most time per output token after the first. (default 50ms)
    percentile : str | float
        Share of requests that must keep both limits. (default 95)
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    warmup : str | float | None
        Start of the run that is not measured (default: what it takes to fill the fleet).
    until : str | float | None
        When the run ends, whatever is left.
    region : table, or several
        A place that requests come from and replicas stand in.
    cache : table, or several
        A cache of whole answers in front of the fleet: in each process, shared, and by meaning.
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall simulate serve llama-3.1-70b --chip h100-sxm --tp 4 --replicas 45 --rate 80 --isl 1000
        datahall simulate serve llama-3.1-8b --chip l40s --users 32 --traffic azure-conversation
        datahall simulate serve llama-3.1-8b --disaggregated prefill=1xh200,decode=2xh200 --rate 20
        datahall simulate serve llama-3.1-8b --chip h100-sxm --trace requests.csv -o run.perfetto-trace
        datahall simulate serve service.toml
    """

def simulate_train(
    model: str,
    *,
    name: str = "",
    seed: str | int = 0,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    imbalance: str | float | None = None,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    micro_batch: str | int | None = None,
    recompute: Literal["none", "selective", "full"] | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    shard: str | int | None = None,
    modules: str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    compress: Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None = None,
    slow_hosts: str | float = "0%",
    slow_by: str | float = "10%",
    jitter: str | float = "0%",
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """One training step, stage by stage: time, MFU, bubble, exchange, memory; closed form beside it.

    Parameters
    ----------
    name : str
        What to call the scenario.
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seed : str | int
        Seed of which hosts are slow, and of how much chips jitter. (default 0)
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default: the layout file's, else bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips (default: all of a fabric that was built, or those of the replicas).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    zero : str | int | None
        What replicas share of their state: 0 to 3 (default 1; FSDP is 3).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    recompute : Literal["none", "selective", "full"] | None
        What backward computes again: none, selective or full.
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    shard : str | int | None
        Replicas that share a state, others hold copies (HSDP; default: all).
    modules : str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None
        Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        Off the chips, to the host: optimizer, parameters, activations; to drives as optimizer:nvme.
    compress : Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None
        Gradients on the wire: none, bf16, fp8, top-k, 1-bit, power-sgd.
    slow_hosts : str | float
        Share of the hosts that are always slow. (default 0%)
    slow_by : str | float
        How much longer a slow host takes. (default 10%)
    jitter : str | float
        Standard deviation of a chip's time for the same work, over the mean. (default 0%)
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall simulate train llama-3.1-405b --chips 16384 --tp 8 --pp 16 --zero 2 --global-batch 2048
        datahall simulate train llama-3.1-70b --chips 512 --chip h200 --tp 4 --pp 8 --vpp 5
        datahall simulate train llama-3.1-8b --chips 64 --chip h200 --global-batch 128 --jitter "2 %"
        datahall simulate train llama-3.1-8b --chips 64 --global-batch 128 -o step.perfetto-trace
    """

def simulate_run(
    model: str,
    *,
    name: str = "",
    seed: str | int = 0,
    tokens: str | float | None = None,
    deadline: str | float | None = None,
    seq: str | int | None = None,
    global_batch: str | int | None = None,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None = None,
    framework: str = "nemo",
    state: Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""] = "",
    lora: str | int | None = None,
    lora_targets: Literal["all", "attention", "query-value"] = "all",
    quantised: bool = False,
    memory_margin: str | float = "5%",
    imbalance: str | float | None = None,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    layout: str = "",
    tp: str | int | None = None,
    pp: str | int | None = None,
    vpp: str | int | None = None,
    cp: str | int | None = None,
    ep: str | int | None = None,
    dp: str | int | None = None,
    zero: str | int | None = None,
    micro_batch: str | int | None = None,
    recompute: Literal["none", "selective", "full"] | None = None,
    schedule: Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None = None,
    etp: str | int | None = None,
    shard: str | int | None = None,
    modules: str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None = None,
    context_exchange: Literal["ring", "all-to-all"] | None = None,
    split: str | int | Sequence[int] | None = None,
    offload: str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None = None,
    compress: Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None = None,
    failures_like: str = "",
    failure_rate: str | float | None = None,
    job_failures: str | float = "0/day",
    shock_rate: str | float = "0/day",
    shock_nodes: str | int = 32,
    node_age: str | float | None = None,
    spares_enough: str | float = "99%",
    storage: str | float | None = None,
    tier: str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None = None,
    interval: str | float | None = None,
    blocking: str | float | None = None,
    synchronous: bool = False,
    save: str | float = "5s",
    copy: str | float = "40ms",
    detect: str | float = "3min",
    reschedule: str | float = "2min",
    warm_up: str | float = "5min",
    restart: str | float | None = None,
    spares: str | int | None = None,
    hot_spares: bool = False,
    planned_every: str | float | None = None,
    planned: str | float | None = None,
    elastic: Literal["kept", "linear", "sqrt"] | None = None,
    stall: str | float = "5s",
    sdc: Literal["none", "replay", "checksum", "vote"] | None = None,
    sdc_every: str | int = 100,
    preempted_every: str | float | None = None,
    capacity_back: str | float = "30min",
    notice: str | float = "0s",
    days: str | float | None = None,
    ettr: str | float | None = None,
    runs: str | int = 1000,
    slow_hosts: str | float = "0%",
    slow_by: str | float = "10%",
    jitter: str | float = "0%",
    catalog: Catalog | None = None,
) -> Answer:
    """A training run over weeks, failure by failure: interruptions, effective time, lost hours, spares.

    Exit code 1 where a promised end or effective time is not kept, with what would keep it.

    Parameters
    ----------
    name : str
        What to call the scenario.
    model : str
        Name of the catalogue, or a config.json in the Hugging Face format.
    seed : str | int
        Seed of every random draw. (default 0)
    tokens : str | float | None
        Tokens to train on.
    deadline : str | float | None
        When the tokens must have been trained on, in nine of ten runs.
    seq : str | int | None
        Tokens of a sequence (default: the layout file's, else 8192).
    global_batch : str | int | None
        Sequences of a step, all replicas together (default: the layout file's, else 1024, of adapters 8, or
        one for every 16 chips where those are more, rounded up to what a layout that is said divides).
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"] | None
        Number format: bf16, fp8, mxfp8, … (default: the layout file's, else bf16).
    framework : str
        Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, … (default nemo)
    state : Literal["megatron", "bf16-gradients", "precision-aware", "fp8-parameters", "fp32", "pure-bf16", ""]
        Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else
        the framework's).
    lora : str | int | None
        Rank of adapters, which are trained in place of the weights (LoRA).
    lora_targets : Literal["all", "attention", "query-value"]
        What adapters stand beside: all linear layers, those of attention, or queries and values. (default
        all)
    quantised : bool
        The frozen weights lie in 4-bit NF4 (QLoRA).
    memory_margin : str | float
        Share of a chip's memory that the layout leaves free, where it is looked for. (default 5%)
    imbalance : str | float | None
        Load of the busiest rank that holds experts over the mean (default: chance alone).
    on : str
        Topology, or a fabric that was built (default: as the chip is sold, full bisection).
    chips : str | int | None
        How many chips the job runs on (default: all of a fabric that was built).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    layout : str
        Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.
    tp : str | int | None
        Chips that share each layer (default: the layout file's, else 1).
    pp : str | int | None
        Pipeline stages (default: the layout file's, else 1).
    vpp : str | int | None
        Virtual stages on each chip (default: the layout file's, else 1).
    cp : str | int | None
        Chips that share each sequence (default: the layout file's, else 1).
    ep : str | int | None
        Chips that share the experts (default: the layout file's, else 1).
    dp : str | int | None
        Replicas (default: the chips left over).
    zero : str | int | None
        What replicas share of their state: 0 to 3 (default 1; FSDP is 3).
    micro_batch : str | int | None
        Sequences at once on a replica (default 1).
    recompute : Literal["none", "selective", "full"] | None
        What backward computes again: none, selective or full.
    schedule : Literal["gpipe", "1f1b", "interleaved", "zb", "dualpipe"] | None
        Order of the pipeline's work: gpipe, 1f1b, interleaved, zb, dualpipe (default 1f1b; interleaved with
        vpp).
    etp : str | int | None
        Chips that share one expert (default: tp/ep, at least 1).
    shard : str | int | None
        Replicas that share a state, others hold copies (HSDP; default: all).
    modules : str | Sequence[Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]] | None
        Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.
    context_exchange : Literal["ring", "all-to-all"] | None
        How chips that share a sequence exchange it: ring or all-to-all.
    split : str | int | Sequence[int] | None
        Layers of each stage, e.g. "3 4 4 4" or "3,4x3".
    offload : str | Sequence[Literal["optimizer", "parameters", "activations", "optimizer:host", "optimizer:nvme", "parameters:host", "parameters:nvme", "activations:host", "activations:nvme"]] | None
        Off the chips, to the host: optimizer, parameters, activations; to drives as optimizer:nvme.
    compress : Literal["none", "bf16", "fp8", "top-k", "1-bit", "power-sgd"] | None
        Gradients on the wire: none, bf16, fp8, top-k, 1-bit, power-sgd.
    failures_like : str
        Whose failure rates and causes (default: of the chip or its family, else llama-3).
    failure_rate : str | float | None
        Failures of a node per day, all causes together (default: as published).
    job_failures : str | float
        Failures of a job per day whatever its size, on top (2.2 at Meta's RSC-1). (default 0/day)
    shock_rate : str | float
        Failures per day of one thing that nodes share, on top: a row's power, its coolant. (default 0/day)
    shock_nodes : str | int
        Nodes that share it. (default 32)
    node_age : str | float | None
        Age of the nodes at the start; new ones fail more often (default: past that).
    spares_enough : str | float
        Share of the time that spares must suffice. (default 99%)
    storage : str | float | None
        Remote storage, written by all chips together (default: 125 MB/s for each chip, as Llama 3 had).
    tier : str | Sequence[Literal["device", "host", "peer", "local", "remote"]] | None
        Where copies are kept: device, host, peer, local, remote (default: remote).
    interval : str | float | None
        Work between two checkpoints (default: the best of each tier).
    blocking : str | float | None
        Time that a checkpoint stops the run (default: as its tier takes).
    synchronous : bool
        Stop until a copy is written out, not only until it has left the chips.
    save : str | float
        Time that ranks take to agree on files before they write them. (default 5s)
    copy : str | float
        Time that ranks take to agree on a copy in memory. (default 40ms)
    detect : str | float
        Until a failure is noticed. (default 3min)
    reschedule : str | float
        Until the job stands on healthy nodes again. (default 2min)
    warm_up : str | float
        From a loaded checkpoint to the first new step. (default 5min)
    restart : str | float | None
        A whole restart, loading included, instead of its parts.
    spares : str | int | None
        Spare nodes (default: as many as are needed).
    hot_spares : bool
        Spares run already: nothing is rescheduled while one is free.
    planned_every : str | float | None
        Between planned stops (default: as those whose rates are used; 0: none).
    planned : str | float | None
        How long each planned stop takes (default: a restart without noticing it).
    elastic : Literal["kept", "linear", "sqrt"] | None
        Replicas go on without one that fails; their batch and learning rate: kept, linear, sqrt.
    stall : str | float
        Until the other replicas go on. (default 5s)
    sdc : Literal["none", "replay", "checksum", "vote"] | None
        How silent corruption is noticed: none, replay, checksum, vote (default: at once, as other
        failures).
    sdc_every : str | int
        Steps between two that are replayed. (default 100)
    preempted_every : str | float | None
        Mean time until a node of spot capacity is taken away.
    capacity_back : str | float
        Mean wait for capacity that was taken away. (default 30min)
    notice : str | float
        Warning before it is. (default 0s)
    days : str | float | None
        Length of the run in days.
    ettr : str | float | None
        Share of the time that must move the run forward (ETTR), in nine of ten runs.
    runs : str | int
        Runs to simulate. (default 1000)
    slow_hosts : str | float
        Share of the hosts that are always slow. (default 0%)
    slow_by : str | float
        How much longer a slow host takes. (default 10%)
    jitter : str | float
        Standard deviation of a chip's time for the same work, over the mean. (default 0%)
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall simulate run llama-3.1-405b --chips 16384 --days 54
        datahall simulate run llama-3.1-405b --chips 16384 --tokens 15T --tier peer,remote --spares 20
        datahall simulate run llama-3.1-405b --chips 16384 --days 54 --blocking 60s --ettr 90%
    """

def simulate_cluster(
    queue: str = "",
    *,
    name: str = "",
    seed: str | int = 0,
    policy: str | Sequence[Literal["fifo", "gang", "backfill", "conservative", "fair-share", "priority", "topology", "defragment"]] = ["backfill"],
    first_jobs: str | int | None = None,
    depth: str | int | None = None,
    half_life: str | float | None = None,
    checkpoint_every: str | float | None = None,
    restart: str | float | None = None,
    mttf: str | float | None = None,
    repair: str | float = "4h",
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    oversubscription: str | None = None,
    cluster_job: Tables | None = None,
    failure: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """A queue of jobs on one cluster under one policy or several side by side.

    POLICY is one or several of fifo, gang, backfill, conservative, fair-share, priority, topology,
    defragment. FILE is a scenario with [[cluster_job]] tables, a sacct --parsable2 dump, or a trace of
    Acme, Helios, Alibaba (2020, 2023, 2026).

    Parameters
    ----------
    name : str
        What to call the scenario.
    seed : str | int
        Seed of every random draw. (default 0)
    queue : str
        Jobs of a sacct dump (--parsable2) or of a public cluster's CSV trace.
    policy : str | Sequence[Literal["fifo", "gang", "backfill", "conservative", "fair-share", "priority", "topology", "defragment"]]
        One or several side by side: fifo, gang, backfill, conservative, fair-share, priority, topology,
        defragment. (default backfill)
    first_jobs : str | int | None
        Only so many jobs of a dump or a trace, from its beginning.
    depth : str | int | None
        Waiting jobs that are looked at (default: 1000; 50 where all are promised a time).
    half_life : str | float | None
        Time in which use counts half, for fair share (default: 7 days).
    checkpoint_every : str | float | None
        Work between two checkpoints of a job (default: none, all is lost).
    restart : str | float | None
        Time until a job that begins again does work (default: 5 min).
    mttf : str | float | None
        Mean time to failure of one node (default: none fails).
    repair : str | float
        Time until a node that failed is back. (default 4h)
    on : str
        Topology, or a fabric that was built (default: full bisection).
    chips : str | int | None
        How many chips (default: the most that a trace with starts held at once).
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips of a node, or of a scale-up domain of several (default: as the chip is sold).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    cluster_job : table, or several
        A job of the queue: chips for some time.
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall simulate cluster jobs.toml --policy gang,backfill,topology
        datahall simulate cluster sacct.txt --policy fifo,backfill --chips 2048
        datahall simulate cluster --chips 64 --cluster-job "chips=48,run=2h,count=3" --policy fifo
        datahall simulate cluster sacct.txt --chips 2048 --mttf 300d --checkpoint-every 1h
    """

def simulate_fabric(
    scenario: str = "",
    *,
    name: str = "",
    seed: str | int = 0,
    on: str = "",
    chips: str | int | None = None,
    chip: str = "",
    domain: str | int | None = None,
    nic: str | float | None = None,
    oversubscription: str | None = None,
    switch: str = "",
    server: str = "",
    radix: str | int | None = None,
    tiers: str | int | None = None,
    sides: str | Sequence[int] | None = None,
    bandwidth: str | float | None = None,
    latency: str | float = "500ns",
    scale_up: str | float = "450GB/s",
    scale_up_latency: str | float = "500ns",
    routing: Literal["deterministic", "ecmp", "adaptive", "spray"] = "ecmp",
    paths: str | int = 1,
    transport: str = "infiniband",
    lanes: str | int = 2,
    loss: str | float = "0%",
    selective_repeat: bool = False,
    watchdog: str | float | None = None,
    detail: Literal["symmetric", "full"] = "symmetric",
    check_with: Literal["closed-form", "symmetric", "full"] | None = None,
    job: Tables | None = None,
    background: Tables | None = None,
    failure: Tables | None = None,
    stall: Tables | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Jobs, background traffic and failures on a fabric, flow by flow.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    name : str
        What to call the scenario.
    seed : str | int
        Seed of every random draw. (default 0)
    on : str
        Topology, or a fabric that was built.
    chips : str | int | None
        How many chips it joins; a fabric that was built has its own.
    chip : str
        Chip (default: h100-sxm, or the topology's usual one).
    domain : str | int | None
        Chips that need no network (default: as the chip is sold).
    nic : str | float | None
        Network of a chip, one way (default: its usual one).
    oversubscription : str | None
        Down:up of each tier from the leaves, e.g. "1:1,7:1" (default: 1:1).
    switch : str
        Switch of the catalogue (default: of the port's speed).
    server : str
        Server of the catalogue (default: the one the chip is sold in).
    radix : str | int | None
        Ports of a switch, instead of the catalogue's.
    tiers : str | int | None
        Tiers of switches (default: the fewest).
    sides : str | Sequence[int] | None
        Sides of a torus (default: the most cube-like).
    bandwidth : str | float | None
        Bandwidth of every link, one way, instead of the catalogue's parts.
    latency : str | float
        Latency of every such link. (default 500ns)
    scale_up : str | float
        A chip's scale-up links beside them, one way. (default 450GB/s)
    scale_up_latency : str | float
        Latency of a scale-up link. (default 500ns)
    routing : Literal["deterministic", "ecmp", "adaptive", "spray"]
        How flows choose among equal paths: deterministic, ecmp, adaptive, spray. (default ecmp)
    paths : str | int
        Queue pairs that a flow is split into. (default 1)
    transport : str
        How the network meets contention: infiniband, roce, spectrum-x, tcp. (default infiniband)
    lanes : str | int
        Virtual lanes; with 1 a blocked flow blocks all behind it. (default 2)
    loss : str | float
        Share of packets that a transport drops, of one that may. (default 0%)
    selective_repeat : bool
        Send only what was lost again, not the whole window.
    watchdog : str | float | None
        Time after which a paused port drops what it holds (default: the transport's).
    detail : Literal["symmetric", "full"]
        How finely: symmetric folds alike flows, full simulates every message. (default symmetric)
    check_with : Literal["closed-form", "symmetric", "full"] | None
        Show the difference from closed-form, symmetric or full.
    job : table, or several
        A collective on some endpoints, over and over.
    background : table, or several
        Flows that nobody waits for.
    failure : table, or several
        Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning.
    stall : table, or several
        A chip that stops draining its port.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall simulate fabric scenario.toml
        datahall simulate fabric scenario.toml --detail full --check-with symmetric
        datahall simulate fabric scenario.toml -o run.perfetto-trace
        datahall simulate fabric --on fat-tree --chips 64 --job "collective=all-reduce,ranks=64,size=64MB"
    """

def validate(
    domain: Literal["kernels", "collectives", "training", "inference", "reliability", "scheduling", "storage", "power", ""],
    *,
    data: str | Sequence[str] | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Our error against public measurements.

    DOMAIN is kernels, collectives, training, inference, reliability, scheduling, storage, power.
    Measured rows are predicted again.

    Parameters
    ----------
    domain : Literal["kernels", "collectives", "training", "inference", "reliability", "scheduling", "storage", "power", ""]
        What was measured: kernels, collectives, training, inference, reliability, scheduling, storage,
        power.
    data : str | Sequence[str] | None
        Score this CSV instead of the shipped measurements.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall validate kernels
        datahall validate inference
        datahall validate kernels --data my-gemm.csv --format md
    """

def check(
    files: str | Sequence[str] | None,
    *,
    catalog: Catalog | None = None,
) -> Answer:
    """Every problem of a scenario, a catalogue file or a config.json, each with file:line.

    Exit code 1 where there are any.

    Parameters
    ----------
    files : str | Sequence[str] | None
        Files to check.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall check my-chip.toml scenario.toml path/to/config.json
    """

def catalog_chips(
    scenario: str = "",
    *,
    sort: Literal["name", "memory", "bandwidth", "bf16", "fp8", "power", "price", "year"] = "name",
    vendor: str = "",
    precision: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4", "mxfp8", "mxfp6", "mxfp4", "nvfp4", ""] = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Accelerators, with dense peaks.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    sort : Literal["name", "memory", "bandwidth", "bf16", "fp8", "power", "price", "year"]
        Column to sort by: name, memory, bandwidth, bf16, fp8, power, price, year. (default name)
    vendor : str
        Only this vendor's.
    precision : Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4", "mxfp8", "mxfp6", "mxfp4", "nvfp4", ""]
        Only chips that multiply in this format; shows its dense peak.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog chips --sort memory --vendor nvidia --precision fp8
    """

def catalog_models(
    scenario: str = "",
    *,
    sort: Literal["name", "parameters", "active", "context", "kv", "year"] = "name",
    family: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Language models.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    sort : Literal["name", "parameters", "active", "context", "kv", "year"]
        Column to sort by: name, parameters, active, context, kv, year. (default name)
    family : str
        Only this family.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog models --sort parameters --family llama
    """

def catalog_links(
    *,
    catalog: Catalog | None = None,
) -> Answer:
    """Links to chips, host and network; one way.

    Parameters
    ----------
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog links --format csv
    """

def catalog_servers(
    *,
    catalog: Catalog | None = None,
) -> Answer:
    """Servers, racks, pods and clusters.

    Parameters
    ----------
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog servers
    """

def catalog_prices(
    scenario: str = "",
    *,
    chip: str = "",
    kind: Literal["on-demand", "spot", "reserved-1y", "reserved-3y", "owned", "owned-hyperscaler", "owned-neocloud", "auction", "reported", "purchase"] | None = None,
    max_age: str | float | None = None,
    as_of: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Chips to rent or buy, cheapest first, with the age of a price.

    Parameters
    ----------
    scenario : str
        A file, TOML or JSON, that says what is not said here.
    chip : str
        Only of this chip.
    kind : Literal["on-demand", "spot", "reserved-1y", "reserved-3y", "owned", "owned-hyperscaler", "owned-neocloud", "auction", "reported", "purchase"] | None
        How it is sold: on-demand, spot, reserved-1y, reserved-3y, owned, owned-hyperscaler, owned-neocloud,
        auction, reported, purchase.
    max_age : str | float | None
        Leave out what is older.
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog prices --chip h100 --kind spot
        datahall catalog prices --chip b200 --max-age "90 days"
    """

def catalog_api_prices(
    hosted: str = "",
    *,
    first_party: bool = False,
    as_of: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """What hosted models cost per million tokens.

    Parameters
    ----------
    hosted : str
        Only hosted models whose name has it.
    first_party : bool
        Only models sold by their maker.
    as_of : str
        Day that ages of prices are counted from (default: that of the newest price).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog api-prices gpt-4o --first-party
    """

def catalog_search(
    text: str | Sequence[str] | None,
    *,
    catalog: Catalog | None = None,
) -> Answer:
    """Entries of every kind in which all words occur.

    Parameters
    ----------
    text : str | Sequence[str] | None
        Words that an entry must have.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog search nvlink
    """

def catalog_add(
    file: str,
    *,
    replace: bool = False,
    catalog: Catalog | None = None,
) -> Answer:
    """Check a TOML file and copy it into your own catalogue, or into a folder that is named.

    Parameters
    ----------
    file : str
        A TOML file of catalogue entries.
    replace : bool
        Overwrite a file of the same name.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall catalog add my-chip.toml
    """

def gateway_keys_create(
    *,
    name: str = "",
    customer: str = "",
    models: str | Sequence[str] | None = None,
    routes: str | Sequence[Literal["chat", "completions", "embeddings", "messages", "predict", "infer"]] | None = None,
    expires: str | float | None = None,
    rpm: str | int | None = None,
    tpm: str | int | None = None,
    parallel: str | int | None = None,
    budget: str = "",
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """A new key, with its limits; the secret is said once.

    Parameters
    ----------
    name : str
        What the key is called.
    customer : str
        Who pays, and whose answers a cache may give again (default: the key's name).
    models : str | Sequence[str] | None
        Models that it may use, also as "llama-*" (default: all).
    routes : str | Sequence[Literal["chat", "completions", "embeddings", "messages", "predict", "infer"]] | None
        What it may ask: chat, completions, embeddings, messages, predict, infer (default: all).
    expires : str | float | None
        From now until when it is good (default: for ever).
    rpm : str | int | None
        Most requests in any minute; 0: as many as may be.
    tpm : str | int | None
        Most tokens in any minute; 0: as many as may be.
    parallel : str | int | None
        Most requests at once; 0: as many as may be.
    budget : str
        Most dollars a day, a month or in all; 0USD: no end.
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway keys create --name acme --rpm 600 --tpm 200000 --budget 50USD/month
        datahall gateway keys create --name tests --customer acme --models "llama-*" --routes chat --expires 90d
    """

def gateway_keys_list(
    *,
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Keys with their limits, and what each has spent.

    Parameters
    ----------
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway keys list
    """

def gateway_keys_limit(
    name: str,
    *,
    rpm: str | int | None = None,
    tpm: str | int | None = None,
    parallel: str | int | None = None,
    budget: str = "",
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Other limits for a key; those that are not named stay.

    Parameters
    ----------
    name : str
        What the key is called.
    rpm : str | int | None
        Most requests in any minute; 0: as many as may be.
    tpm : str | int | None
        Most tokens in any minute; 0: as many as may be.
    parallel : str | int | None
        Most requests at once; 0: as many as may be.
    budget : str
        Most dollars a day, a month or in all; 0USD: no end.
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway keys limit acme --rpm 1200 --budget 80USD/month
    """

def gateway_keys_rotate(
    name: str,
    *,
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Another secret for a key, said once; the one before lets nobody in any more.

    Parameters
    ----------
    name : str
        What the key is called.
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway keys rotate acme
    """

def gateway_keys_revoke(
    name: str,
    *,
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """End a key, at once and for good.

    Parameters
    ----------
    name : str
        What the key is called.
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway keys revoke acme
    """

def gateway_customers_list(
    *,
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Customers with the limits that their keys share, and what each has spent.

    Parameters
    ----------
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway customers list
    """

def gateway_customers_limit(
    customer: str,
    *,
    rpm: str | int | None = None,
    tpm: str | int | None = None,
    parallel: str | int | None = None,
    budget: str = "",
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Other limits for all keys of a customer together; those that are not named stay.

    Parameters
    ----------
    customer : str
        Whose keys share the limits.
    rpm : str | int | None
        Most requests in any minute; 0: as many as may be.
    tpm : str | int | None
        Most tokens in any minute; 0: as many as may be.
    parallel : str | int | None
        Most requests at once; 0: as many as may be.
    budget : str
        Most dollars a day, a month or in all; 0USD: no end.
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway customers limit acme --rpm 3000 --budget 200USD/month
    """

def gateway_bill(
    *,
    month: str = "",
    state: str = "",
    catalog: Catalog | None = None,
) -> Answer:
    """Requests, tokens and money of a month, by customer, key and model.

    Parameters
    ----------
    month : str
        Month of the bill (default: this one).
    state : str
        Folder of the gateway's state (default: datahall in the user's state folder).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway bill
        datahall gateway bill --month 2026-11 --format csv
    """

def gateway_top(
    url: str = "",
    *,
    key_from: str = "",
    window: str | float | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """What a gateway does now: rates, latencies, queue, errors and money, by model and key.

    On a terminal it is drawn again every second until Ctrl-C. Metrics are shown at the gateway's own
    address on loopback, elsewhere at that of metrics in [telemetry] of its file.

    Parameters
    ----------
    url : str
        Where it shows its metrics (default: http://127.0.0.1:8080).
    key_from : str
        Variable of the environment that has a key, where a proxy before it asks for one.
    window : str | float | None
        The time that rates and latencies are of (default: a second; ten where the view is drawn again).
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway top
        datahall gateway top --once --json
        datahall gateway top http://10.0.0.5:9464 --window 1min
    """

def gateway_load(
    url: str,
    *,
    key_from: str = "",
    served: str = "",
    rate: str | float | None = None,
    users: str | int | None = None,
    isl: str | int | Mapping[str, Any] | None = None,
    osl: str | int | Mapping[str, Any] | None = None,
    spread: str | float | None = None,
    burstiness: str | float | None = None,
    think: str | float | None = None,
    requests: str | int | None = None,
    duration: str | float | None = None,
    model: str = "",
    seed: str | int = 0,
    chip: str = "h100-sxm",
    tp: str | int | None = None,
    replicas: str | int = 1,
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"] = "bf16",
    engine: Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"] = "vllm",
    max_sequences: str | int | None = None,
    catalog: Catalog | None = None,
) -> Answer:
    """Requests sent to an endpoint: TTFT, TPOT, ITL, E2E and throughput, beside what is simulated.

    It speaks OpenAI's chat, streamed. A rate is an open loop: what is sent late counts from when it was
    due. The names and milliseconds are those of vLLM's benchmark.

    Parameters
    ----------
    url : str
        Where it answers.
    key_from : str
        Variable of the environment that has its key, which no command line needs to show.
    served : str
        What it calls the model (default: the first that it lists).
    rate : str | float | None
        Requests per second.
    users : str | int | None
        People who wait for their answers, instead of a rate.
    isl : str | int | Mapping[str, Any] | None
        Tokens of a prompt (default: the preset's; 1000 beside an output alone).
    osl : str | int | Mapping[str, Any] | None
        Tokens of an answer (default: the preset's; 250 beside a prompt alone).
    spread : str | float | None
        Standard deviation of lengths over their mean.
    burstiness : str | float | None
        Standard deviation of the gaps between requests over their mean; 1: Poisson, 0: equal gaps.
    think : str | float | None
        Pause of a user between answer and next request.
    requests : str | int | None
        Requests to send (default: five of each user, or 30 s at the rate).
    duration : str | float | None
        For how long requests come; beside their number, what ends first.
    model : str
        A model of the catalogue, whose simulated service stands beside what was measured.
    seed : str | int
        Seed of every random draw. (default 0)
    chip : str
        Chip that it runs on. (default h100-sxm)
    tp : str | int | None
        Chips that share each layer of a replica (default: the fewest that hold it).
    replicas : str | int
        Replicas behind the router. (default 1)
    precision : Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp8-kv8", "mxfp8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4", "nvfp4"]
        Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, … (default bf16)
    engine : Literal["vllm", "vllm-v0", "sglang", "trtllm", "static", "dynamic", "vllm-0-11"]
        Serving engine: vllm, sglang, trtllm, … (default vllm)
    max_sequences : str | int | None
        Most sequences that run at once.
    catalog : Catalog
        Entries of your own over the shipped ones.

    Examples of the command

        datahall gateway load http://127.0.0.1:8080 --users 200 --isl 500 --osl 100
        datahall gateway load http://127.0.0.1:8080 --rate 20 --duration 1min
        datahall gateway load http://127.0.0.1:8080 --users 64 --model llama-3.1-70b --chip h100-sxm --tp 4 --replicas 3
    """
