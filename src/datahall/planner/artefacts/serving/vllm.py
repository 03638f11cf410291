"""`vllm serve` for the replicas of a plan, and the same options as other tools hand them to vLLM."""

from __future__ import annotations

from datahall.catalog.entries.tool import Tool, tool
from datahall.errors import option
from datahall.inference.engine.replica import Replica, Speculation
from datahall.planner.artefacts.options import Options, Shell, Value, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import Variable, command, head, script
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
from datahall.planner.artefacts.serving.slots import ADAPTERS, ADDRESS, NODE_RANK, PORT, in_slots, over_nodes
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER

ITS_ENGINES = ("vllm",)
# what its scheduler always does, whatever it is told
FIXED: dict[str, object] = {
    "batching": "continuous", "mixed_steps": True, "whole_output_blocks": False, "preemption": "recompute",
}  # fmt: skip
ALL_TO_ALL = Variable("ALL2ALL", about="library of the exchange between experts, e.g. deepep_high_throughput")


def checkpoint(replica: Replica) -> Checkpoint:
    """The weights to serve: vLLM narrows 16-bit ones to FP8 with a scale per tensor or per block."""
    return checkpoint_of(replica.model, replica, makes_blocks=True)


def engine_options(service: Service, known: Tool) -> dict[str, Value | None]:
    """What vLLM is told of one replica, wherever it runs."""
    replica = service.replica
    engine, ranks = replica.engine, replica.tp * replica.dp
    check_engine(replica, known, ITS_ENGINES)
    check_scheduler(engine, known, FIXED)
    refuse(
        known,
        (f"experts on {replica.ep:,} of {ranks:,} chips: all of them or none",)
        if 1 < replica.ep != ranks
        else (),
    )
    whole = not engine.chunked_prefill and engine.token_budget < (longest(service) or most_tokens(replica))
    refuse(
        known,
        ("whole prompts in steps that the longest does not fit",) if whole else (),
        option("token_budget", most_tokens(replica)),
    )
    weights = checkpoint(replica)
    narrow = "fp8_per_block" if replica.block_scaled else "fp8"
    exchange = {
        "auto": None,
        "gather": "allgather_reducescatter",
        "all-to-all": Shell(f'"${ALL_TO_ALL.name}"'),
    }
    return {
        "--tensor-parallel-size": replica.tp,
        "--pipeline-parallel-size": replica.pp,
        "--data-parallel-size": replica.dp,
        "--enable-expert-parallel": True if replica.ep > 1 else None,
        "--all2all-backend": exchange[engine.expert_exchange] if replica.ep > 1 else None,
        "--dtype": dtype_of(replica, known),
        "--quantization": narrow if weights.narrowed else None,
        "--kv-cache-dtype": cache_dtype(replica, known, "fp8"),
        "--max-model-len": longest(service),
        "--gpu-memory-utilization": engine.memory_fraction,
        "--num-gpu-blocks-override": replica.kv_blocks or None,
        "--block-size": said_blocks(replica),
        "--max-num-batched-tokens": engine.token_budget,
        "--max-num-seqs": min(engine.max_sequences, engine.token_budget),
        "--enable-chunked-prefill": engine.chunked_prefill,
        "--enable-prefix-caching": engine.prefix_caching,
        "--enforce-eager": None if engine.graphs else True,
        "--speculative-config": _speculative(replica.speculation, known) if replica.speculation else None,
        **_adapters(replica, known),
    }


def _speculative(said: Speculation, known: Tool) -> Value:
    """Drafted tokens as the configuration of speculation has them, each key looked up."""
    named = said.model.aliases if said.model is not None else ()
    draft = next((name for name in named if "/" in name), "")
    is_model = said.draft not in (FREE_DRAFT, OWN_LAYER)
    refuse(
        known,
        (f"the draft {said.draft}, of which no id on the hub is known",) if is_model and not draft else (),
    )
    found: dict[str, Value] = {
        "method": "draft_model" if is_model else said.draft,
        "num_speculative_tokens": said.num_draft,
        **({"model": draft} if is_model else {}),
    }
    words_of(known, {f"--speculative-config.{key}": value for key, value in found.items()})
    return found


def _adapters(replica: Replica, known: Tool) -> dict[str, Value | None]:
    """Room for adapters: of the ranks that it can be told, the least that is enough."""
    said = replica.adapters
    if said is None:
        return {}
    ranks = [
        rank
        for rank in known.options["--max-lora-rank"].choices
        if isinstance(rank, int) and rank >= said.rank
    ]
    refuse(
        known,
        (f"adapters of rank {said.rank:,}",) if not ranks else (),
        f"a smaller {option('adapter_rank')}",
    )
    return {
        "--enable-lora": True,
        "--max-loras": said.resident,
        "--max-cpu-loras": said.num,
        "--max-lora-rank": min(ranks),
        "--lora-modules": Shell(f"${ADAPTERS.name}"),
    }


def variables(service: Service) -> list[Variable]:
    """What the environment says of one replica."""
    replica = service.replica
    found = [checkpoint(replica).variable]
    found += [ADAPTERS] if replica.adapters else []
    found += [ALL_TO_ALL] if replica.ep > 1 and replica.engine.expert_exchange == "all-to-all" else []
    return found


def vllm_script(service: Service) -> str:
    """The commands of one node: its replicas side by side, or its part of one that takes several nodes."""
    known = tool("vllm")
    options = engine_options(service, known)
    said = variables(service)
    first = 'vllm serve "$MODEL"'
    here: dict[str, Value | None] = {"--host": "0.0.0.0", "--port": Shell('"$((PORT + slot))"')}
    if service.is_shared:
        here["--device-ids"] = Shell('"$(seq -s, "$first" "$((first + CHIPS - 1))")"')
        body = in_slots(service, command(first, words_of(known, {**options, **here}), indent=2, tail=" &"))
        return script(head(service.origin, (known,), service.notes), [*said, NODE_RANK, PORT], body)
    here["--port"] = Shell('"$PORT"')
    if service.num_replica_nodes == 1:
        body = over_nodes(service, command(f"exec {first}", words_of(known, {**options, **here})))
        return script(head(service.origin, (known,), service.notes), [*said, PORT], body)
    across = _across(service, known)
    words = [*words_of(known, {**options, **across, **here}), '"${headless[@]}"']
    words_of(known, {"--headless": True})
    lead = ["headless=()", "if ((rank > 0)); then headless=(--headless); fi"]
    body = over_nodes(service, [*lead, *command(f"exec {first}", words)])
    return script(head(service.origin, (known,), service.notes), [*said, NODE_RANK, ADDRESS, PORT], body)


def _across(service: Service, known: Tool) -> Options:
    """How the nodes of one replica find each other: as parts of its groups, or with ranks of data parallelism each."""
    replica = service.replica
    group = replica.tp * replica.pp
    if replica.dp == 1:
        return {
            "--nnodes": service.num_replica_nodes,
            "--node-rank": Shell('"$rank"'),
            "--master-addr": Shell('"$MASTER_ADDR"'),
        }
    fits = service.num_node_chips % group == 0
    refuse(known, () if fits else (f"ranks of {group:,} chips on nodes of {service.num_node_chips:,}",))
    each = service.num_node_chips // group
    return {
        "--data-parallel-size-local": each,
        "--data-parallel-start-rank": Shell(f'"$((rank * {each}))"'),
        "--data-parallel-address": Shell('"$MASTER_ADDR"'),
    }
