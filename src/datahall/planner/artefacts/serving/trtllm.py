"""The file that `trtllm-serve` reads by its `--config`: one replica of a plan, with the PyTorch backend."""

from __future__ import annotations

from datahall.catalog.entries.tool import Tool, tool
from datahall.counted import counted
from datahall.errors import option
from datahall.inference.engine.replica import Replica, Speculation
from datahall.planner.artefacts.options import Value, checked, tables_of, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import head
from datahall.planner.artefacts.serving.service import (
    Checkpoint,
    Service,
    cache_dtype,
    check_engine,
    check_scheduler,
    checkpoint_of,
    dtype_of,
    longest,
    most_tokens,
    said_blocks,
)
from datahall.planner.artefacts.yaml import yaml
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER

FILE = "trtllm.yaml"
ITS_ENGINES = ("trtllm",)
# what its scheduler always does: prompts and decodes share steps, and who must leave is computed again
FIXED: dict[str, object] = {"batching": "continuous", "mixed_steps": True, "preemption": "recompute"}
POLICY = {True: "GUARANTEED_NO_EVICT", False: "MAX_UTILIZATION"}  # of blocks for all that may be generated
MATCHED = 2  # tokens before a drafted one that are looked up in the prompt: no input of a plan
GRAPHS = "cuda_graph_config"


def checkpoint(replica: Replica) -> Checkpoint:
    """The weights to serve: it narrows none by itself, so that FP8 ones must be there as such."""
    found = checkpoint_of(replica.model, replica, makes_blocks=True)
    return Checkpoint("", narrowed=False) if found.narrowed else found


def engine_options(service: Service, known: Tool) -> dict[str, Value | None]:
    """What TensorRT-LLM is told of one replica.

    Its tensor parallelism counts all chips of a stage; where ranks attend by themselves, each of them is one chip.
    """
    replica, ranks = service.replica, service.replica.tp * service.replica.dp
    engine = replica.engine
    check_engine(replica, known, ITS_ENGINES)
    check_scheduler(engine, known, FIXED)
    refuse(known, (f"chips of {replica.chip.vendor}",) if replica.chip.vendor != "NVIDIA" else ())
    apart = replica.dp > 1 and replica.tp > 1
    refuse(known, (f"ranks of {replica.tp:,} chips that attend by themselves",) if apart else ())
    refuse(
        known,
        ("adapters, which are named with each request by their folders",) if replica.adapters else (),
        option("engine", "vllm"),
    )
    gathers = engine.expert_exchange == "gather" and replica.ep > 1
    refuse(known, (f"an expert exchange by {engine.expert_exchange}",) if gathers else ())
    experts = replica.model.moe is not None
    return {
        "backend": "pytorch",
        "tensor_parallel_size": ranks,
        "pipeline_parallel_size": replica.pp,
        "moe_expert_parallel_size": replica.ep if experts else None,
        "moe_tensor_parallel_size": ranks // replica.ep if experts else None,
        "enable_attention_dp": True if replica.dp > 1 else None,
        "gpus_per_node": service.num_node_chips if service.num_replica_nodes > 1 else None,
        "dtype": dtype_of(replica, known),
        "max_batch_size": engine.max_sequences,
        "max_num_tokens": engine.token_budget,
        "max_seq_len": longest(service),
        "enable_chunked_prefill": engine.chunked_prefill,
        "kv_cache_config.free_gpu_memory_fraction": engine.memory_fraction,
        "kv_cache_config.max_tokens": replica.kv_blocks * engine.block_tokens or None,
        "kv_cache_config.enable_block_reuse": engine.prefix_caching,
        "kv_cache_config.tokens_per_block": said_blocks(replica),
        "kv_cache_config.dtype": cache_dtype(replica, known, "fp8"),
        "scheduler_config.capacity_scheduler_policy": POLICY[engine.whole_output_blocks],
        f"{GRAPHS}.max_batch_size": engine.max_sequences if engine.graphs else None,
        f"{GRAPHS}.enable_padding": True if engine.graphs else None,
        **_speculative(replica.speculation, known),
    }


def _speculative(said: Speculation | None, known: Tool) -> dict[str, Value | None]:
    """Drafted tokens: looked up in the prompt, by layers of the model, or by another model."""
    if said is None:
        return {}
    if said.draft == OWN_LAYER:
        return _drafting(decoding_type="MTP", num_nextn_predict_layers=said.num_draft)
    if said.draft == FREE_DRAFT:
        return _drafting(decoding_type="NGram", max_draft_len=said.num_draft, max_matching_ngram_size=MATCHED)
    named = said.model.aliases if said.model is not None else ()
    draft = next((name for name in named if "/" in name), "")
    refuse(known, (f"the draft {said.draft}, of which no id on the hub is known",) if not draft else ())
    return _drafting(decoding_type="DraftTarget", max_draft_len=said.num_draft, speculative_model=draft)


def _drafting(**options: Value) -> dict[str, Value | None]:
    return {f"speculative_config.{name}": value for name, value in options.items()}


def trtllm_config(service: Service) -> str:
    """The file of one replica, and above it the command that reads it."""
    known, replica = tool("trtllm"), service.replica
    whole: dict[str, Value | None] = {**tables_of(known, engine_options(service, known))}
    if not replica.engine.graphs:
        checked(known, f"{GRAPHS}.max_batch_size", 0)  # the table is there, and null is none
        whole[GRAPHS] = None
    return "\n".join([*head(service.origin, (known,), _notes(service, known)), yaml(whole)])


def _notes(service: Service, known: Tool) -> list[str]:
    """What the file cannot hold: the weights, how it is started, and how often."""
    replica, weights = service.replica, checkpoint(service.replica).variable
    model = weights.usual or f"${weights.name}"
    start = f"trtllm-serve {model} {' '.join(words_of(known, {'--config': FILE, '--host': '0.0.0.0', '--port': 8000}))}"
    nodes = service.num_replica_nodes
    if nodes > 1:
        start = f"mpirun -n {replica.num_chips} trtllm-llmapi-launch {start}"
    budget = replica.engine.token_budget
    refuses = not replica.engine.chunked_prefill and budget < (longest(service) or most_tokens(replica))
    looked_up = replica.speculation is not None and replica.speculation.draft == FREE_DRAFT
    return [
        *service.notes,
        f"a replica, each on chips and with a port of its own: {start}",
        *([f"a replica takes {counted(nodes, 'node')}, one process a chip"] if nodes > 1 else []),
        *([] if weights.usual else [f"{weights.name}: {weights.about}"]),
        *([f"prompts of more than {budget:,} tokens are refused, for none is cut"] if refuses else []),
        *([f"drafts follow the last {MATCHED} tokens, which the plan does not weigh"] if looked_up else []),
    ]
