"""`sglang.launch_server` for the replicas of a plan."""

from __future__ import annotations

from datahall.catalog.entries.tool import Tool, tool
from datahall.inference.engine.replica import Replica, Speculation
from datahall.planner.artefacts.options import Shell, Value, words_of
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
    said_blocks,
)
from datahall.planner.artefacts.serving.slots import ADAPTERS, ADDRESS, NODE_RANK, PORT, in_slots, over_nodes
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER

ITS_ENGINES = ("sglang",)
FIXED: dict[str, object] = {"batching": "continuous", "whole_output_blocks": False, "preemption": "recompute"}
GROUPS = Variable("GROUPS_PORT", "20000", "over which the chips of the first replica on this node meet")
UNCUT = -1  # the word for prompts that are not cut


def checkpoint(replica: Replica) -> Checkpoint:
    """The weights to serve: SGLang narrows 16-bit ones to FP8, without a scale per block."""
    return checkpoint_of(replica.model, replica, makes_blocks=False)


def engine_options(service: Service, known: Tool) -> dict[str, Value | None]:
    """What SGLang is told of one replica, wherever it runs.

    Its tensor parallelism counts the chips of all ranks that attend by themselves, and their steps share one budget.
    """
    replica = service.replica
    engine = replica.engine
    check_engine(replica, known, ITS_ENGINES)
    check_scheduler(engine, known, FIXED)
    refuse(known, (f"{replica.kv_blocks:,} blocks of cache",) if replica.kv_blocks else ())
    refuse(
        known,
        (f"an expert exchange by {engine.expert_exchange}",) if engine.expert_exchange != "auto" else (),
    )
    return {
        "--tp-size": replica.tp * replica.dp,
        "--pp-size": replica.pp,
        "--attn-dp-size": replica.dp,
        "--ep-size": replica.ep,
        "--dtype": dtype_of(replica, known),
        "--quantization": "fp8" if checkpoint(replica).narrowed else None,
        "--kv-cache-dtype": cache_dtype(replica, known, "fp8_e4m3"),
        "--context-length": longest(service),
        "--mem-fraction-static": engine.memory_fraction,
        "--page-size": said_blocks(replica),
        "--chunked-prefill-size": engine.token_budget * replica.dp if engine.chunked_prefill else UNCUT,
        "--max-prefill-tokens": None if engine.chunked_prefill else engine.token_budget,
        "--max-running-requests": engine.max_sequences * replica.dp,
        "--enable-mixed-chunk": True if engine.mixed_steps else None,
        "--disable-radix-cache": None if engine.prefix_caching else True,
        "--disable-decode-cuda-graph": None if engine.graphs else True,
        "--disable-prefill-cuda-graph": None if engine.graphs else True,
        **_speculative(replica.speculation, known),
        **_adapters(replica),
    }


def _speculative(said: Speculation | None, known: Tool) -> dict[str, Value | None]:
    """Drafted tokens: one chain of them, as the plan counts them."""
    if said is None:
        return {}
    if said.draft == FREE_DRAFT:
        return {"--speculative-algorithm": "NGRAM", "--speculative-num-draft-tokens": said.num_draft}
    named = said.model.aliases if said.model is not None else ()
    draft = next((name for name in named if "/" in name), "")
    refuse(
        known,
        (f"the draft {said.draft}, of which no id on the hub is known",)
        if said.draft != OWN_LAYER and not draft
        else (),
    )
    return {
        "--speculative-algorithm": "EAGLE" if said.draft == OWN_LAYER else "STANDALONE",
        "--speculative-draft-model-path": draft or None,
        "--speculative-num-steps": said.num_draft,
        "--speculative-eagle-topk": 1,
        "--speculative-num-draft-tokens": said.num_draft + 1,  # with the one that the model adds
    }


def _adapters(replica: Replica) -> dict[str, Value | None]:
    said = replica.adapters
    if said is None:
        return {}
    return {
        "--enable-lora": True,
        "--max-loras-per-batch": said.resident,
        "--max-loaded-loras": said.num,
        "--max-lora-rank": said.rank,
        "--lora-paths": Shell(f"${ADAPTERS.name}"),
    }


def variables(service: Service) -> list[Variable]:
    """What the environment says of one replica."""
    return [checkpoint(service.replica).variable, *([ADAPTERS] if service.replica.adapters else [])]


def sglang_script(service: Service) -> str:
    """The commands of one node: its replicas side by side, or its part of one that takes several nodes."""
    known = tool("sglang")
    options = engine_options(service, known)
    said, comments = variables(service), head(service.origin, (known,), service.notes)
    first = "python -m sglang.launch_server"
    model: dict[str, Value | None] = {"--model-path": Shell('"$MODEL"')}
    here: dict[str, Value | None] = {"--host": "0.0.0.0", "--port": Shell('"$PORT"')}
    if service.is_shared:
        here |= {
            "--port": Shell('"$((PORT + slot))"'),
            "--base-gpu-id": Shell('"$first"'),
            "--nccl-port": Shell('"$((GROUPS_PORT + slot))"'),
        }
        lines = command(first, words_of(known, {**model, **options, **here}), indent=2, tail=" &")
        return script(comments, [*said, NODE_RANK, PORT, GROUPS], in_slots(service, lines))
    if service.num_replica_nodes == 1:
        lines = command(f"exec {first}", words_of(known, {**model, **options, **here}))
        return script(comments, [*said, PORT], over_nodes(service, lines))
    here |= {
        "--nnodes": service.num_replica_nodes,
        "--node-rank": Shell('"$rank"'),
        "--dist-init-addr": Shell('"$MASTER_ADDR:$GROUPS_PORT"'),
    }
    lines = command(f"exec {first}", words_of(known, {**model, **options, **here}))
    return script(comments, [*said, NODE_RANK, ADDRESS, PORT, GROUPS], over_nodes(service, lines))
