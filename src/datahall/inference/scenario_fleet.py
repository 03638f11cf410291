"""What a serving scenario says of its fleet: pools, outages, autoscaling."""

from __future__ import annotations

from typing import cast, get_args

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.fabric.scenario_file import numbers
from datahall.inference.engine.disaggregation import handoff_of
from datahall.inference.engine.engine import Batching, Engine, ExpertExchange, Preemption, engine_on
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Outage, Pool, Role
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.offload import drive_bytes_per_s, lower_tiers
from datahall.inference.scenario_file import (
    Elsewhere,
    Place,
    Raw,
    Read,
    Rule,
    ServingReader,
    TokenRule,
    number,
    whole,
)
from datahall.inference.scenario_regions import Regions
from datahall.inference.step.price import price_steps
from datahall.workload.precision import Precision

MOST_REPLICAS = 100_000

# Options of an engine that a pool may change, by their names in `Engine`; a duration has no unit in its key.
ENGINE: dict[str, tuple[str, Rule]] = {
    "batching": ("batching", Rule("text", None, get_args(Batching))),
    "token_budget": ("token_budget", TokenRule("count", least=1)),
    "max_sequences": ("max_sequences", Rule("count", least=1)),
    "block_tokens": ("block_tokens", TokenRule("count", least=1)),
    "chunked_prefill": ("chunked_prefill", Rule("flag")),
    "mixed_steps": ("mixed_steps", Rule("flag")),
    "whole_prompt_blocks": ("whole_prompt_blocks", Rule("flag")),
    "whole_output_blocks": ("whole_output_blocks", Rule("flag")),
    "prefix_caching": ("prefix_caching", Rule("flag")),
    "preemption": ("preemption", Rule("text", None, get_args(Preemption))),
    "expert_exchange": ("expert_exchange", Rule("text", None, get_args(ExpertExchange))),
    "memory_fraction": ("memory_fraction", Rule("fraction", above=True)),
    "reserved": ("reserved_bytes", Rule("bytes")),
    "host_step": ("host_step_s", Rule("s")),
    "host_sequence": ("host_sequence_s", Rule("s")),
    "wait": ("wait_s", Rule("s")),
    "first_token": ("first_token_s", Rule("s")),
}
POOL: dict[str, Rule] = {
    "chip": Rule("text", "", required=True),
    "count": Rule("count", 1.0, least=1),
    "tp": Rule("count", 1.0, least=1),
    "pp": Rule("count", 1.0, least=1),
    "dp": Rule("count", 1.0, least=1),
    "ep": Rule("count", 1.0, least=1),
    "precision": Rule("text", "bf16"),
    "role": Rule("text", "both", get_args(Role)),
    "region": Rule("text", ""),
    "engine": Rule("text", "vllm"),
    **{key: rule for key, (_, rule) in ENGINE.items()},
    "max_context": TokenRule("count", 0.0),
    "routing_skew": Rule("ratio", 0.0),
    "kv_blocks": Rule("count", 0.0),
    "domain": Rule("count", 0.0),
    "nic": Rule("bytes_per_s", 0.0),
    "host_cache": Rule("bytes", 0.0),
    "host_link": Rule("bytes_per_s", 0.0),
    "drive_cache": Rule("bytes", 0.0),
    "drive_rate": Rule("bytes_per_s", 0.0),
    "handoff": Rule("bytes_per_s", 0.0, above=True),
    "speculation": Elsewhere("text"),
    "adapters": Elsewhere("text"),
}
SPECULATION = {
    "draft": Rule("text", "mtp", required=True),
    "num_draft": Rule("count", 3.0, least=1),
    "acceptance": Rule("fraction", 0.5),
}
ADAPTERS = {
    "num": Rule("count", 1.0, least=1, required=True),
    "rank": Rule("count", 16.0, least=1),
    "resident": Rule("count", 0.0),
    "zipf": Rule("ratio", 1.0),
    "mlp": Rule("flag", True),
}
OUTAGE = {
    "replica": Elsewhere("text"),
    "region": Rule("text", ""),
    "start": Rule("s", 0.0, required=True),
    "duration": Rule("s", 1.0, above=True, required=True),
    "drain": Rule("flag", False),
}
AUTOSCALING = {
    "least": Rule("count", 1.0),
    "most": Rule("count", 16.0, least=1),
    "target": Rule("ratio", 32.0, above=True),
    "interval": Rule("s", 15.0, above=True),
    "cold_start": Rule("s", 120.0),
    "patience": Rule("s", 300.0),
}


def read_pools(
    reader: ServingReader, model: Model | None, regions: Regions, catalog: Catalog
) -> list[tuple[Pool, str]]:
    """Pools of replicas that can be built and hold the model, each with the name of its precision."""
    rows = reader.rows("pool", POOL)
    if not rows:
        reader.problem((), "[[pool]] is missing", 'e.g. chip = "h100-sxm", count = 2')
    pools = []
    for place, raw, values in rows:
        region = regions.place(reader, (*place, "region"), str(values["region"]))
        speculation = _speculation(reader, place, raw)
        if whole(values["count"]) > MOST_REPLICAS:
            reader.problem(
                (*place, "count"), f"{whole(values['count']):,} replicas", f"at most {MOST_REPLICAS:,}"
            )
            continue
        replica = _replica(reader, place, raw, values, speculation, model, catalog)
        if replica is None or not _stands(reader, place, replica):
            continue
        rate = number(values["handoff"])
        handoff = reader.attempt(place, lambda: handoff_of(replica, rate)) if rate else None  # noqa: B023
        if rate and values["role"] != "prefill":
            reader.problem((*place, "handoff"), "only a prefill pool hands its cache over", "leave it out")
        pool = Pool(
            replica=replica,
            count=whole(values["count"]),
            role=cast(Role, values["role"]),
            region=region,
            handoff=handoff,
        )
        pools.append((pool, str(values["precision"])))
    return pools


def _speculation(reader: ServingReader, place: Place, raw: Raw) -> Speculation | None:
    if "speculation" not in raw:
        return None
    path = (*place, "speculation")
    values = reader.table(path, raw["speculation"], SPECULATION)
    return Speculation(
        draft=str(values["draft"]),
        num_draft=whole(values["num_draft"]),
        acceptance=number(values["acceptance"]),
    )


def _adapters(reader: ServingReader, place: Place, raw: Raw) -> Adapters | None:
    if "adapters" not in raw:
        return None
    values = reader.table((*place, "adapters"), raw["adapters"], ADAPTERS)
    return Adapters(
        num=max(1, whole(values["num"])),
        rank=max(1, whole(values["rank"])),
        num_resident=whole(values["resident"]),
        zipf_factor=number(values["zipf"]),
        mlp=bool(values["mlp"]),
    )


def _replica(
    reader: ServingReader,
    place: Place,
    raw: Raw,
    values: dict[str, Read],
    speculation: Speculation | None,
    model: Model | None,
    catalog: Catalog,
) -> Replica | None:
    name = str(values["chip"])
    written = isinstance(raw.get("chip"), str)
    chip = reader.attempt((*place, "chip"), lambda: catalog.chip(name)) if written else None
    precision = reader.attempt((*place, "precision"), lambda: Precision.named(str(values["precision"])))
    if chip is None:
        return None
    known = reader.attempt((*place, "engine"), lambda: engine_on(str(values["engine"]), chip))
    if known is None or precision is None or model is None:
        return None
    return Replica(
        model=model,
        chip=chip,
        engine=_changed(known, values),
        precision=precision,
        tp=whole(values["tp"]),
        pp=whole(values["pp"]),
        dp=whole(values["dp"]),
        ep=whole(values["ep"]),
        speculation=speculation,
        adapters=_adapters(reader, place, raw),
        max_context=whole(values["max_context"]),
        routing_skew=number(values["routing_skew"]),
        kv_blocks=whole(values["kv_blocks"]),
        num_domain=whole(values["domain"]),
        nic_bytes_per_s=number(values["nic"]),
        host_cache_bytes=number(values["host_cache"]),
        host_bytes_per_s=number(values["host_link"]),
        drive_cache_bytes=number(values["drive_cache"]),
        drive_bytes_per_s=number(values["drive_rate"]) or drive_bytes_per_s(chip, catalog.servers()),
    )


def _changed(engine: Engine, values: dict[str, Read]) -> Engine:
    """The engine with the options that the pool sets."""
    changes: dict[str, object] = {}
    for key, (field, rule) in ENGINE.items():
        if values[key] is not None:
            changes[field] = whole(values[key]) if rule.sort == "count" else values[key]
    return msgspec.structs.replace(engine, **changes)


def _stands(reader: ServingReader, place: Place, replica: Replica) -> bool:
    """Whether the model divides as asked, its steps have a price, and the cache has room."""
    if reader.attempt(place, lambda: price_steps(replica)) is None:
        return False
    if reader.attempt(place, lambda: lower_tiers(replica)) is None:
        return False
    return reader.attempt(place, lambda: kv_capacity(replica)) is not None


def read_autoscaling(reader: ServingReader, pools: list[Pool]) -> Autoscaling | None:
    """The rule for the first pool."""
    if "autoscaling" not in reader.document.content:
        return None
    values = reader.table(("autoscaling",), reader.document.content["autoscaling"], AUTOSCALING)
    least, most = whole(values["least"]), whole(values["most"])
    if least > most:
        reader.problem(
            ("autoscaling", "least"),
            f"at least {least} and at most {most} replicas",
            "least is not above most",
        )
    if pools and pools[0].count > most:
        reader.problem(
            ("autoscaling", "most"),
            f"the first pool starts with {pools[0].count} replicas, more than the {most} allowed",
            f"most = {pools[0].count}, or a smaller count",
        )
    return Autoscaling(
        target=number(values["target"]),
        interval_s=number(values["interval"]),
        cold_start_s=number(values["cold_start"]),
        patience_s=number(values["patience"]),
        least=least,
        most=most,
    )


def read_outages(
    reader: ServingReader, pools: list[Pool], regions: Regions, scales: bool
) -> tuple[Outage, ...]:
    """Replicas that are gone for a while, by number or by region."""
    outages: list[Outage] = []
    for place, raw, values in reader.rows("outage", OUTAGE):
        start_s, duration_s = number(values["start"]), number(values["duration"])
        for replica in _lost(reader, place, raw, values, pools, regions, scales):
            again = [
                one
                for one in outages
                if one.replica == replica
                and one.start_s < start_s + duration_s
                and start_s < one.start_s + one.duration_s
            ]
            if again:
                reader.problem(
                    (*place, "start"),
                    f"replica {replica} is out from {again[0].start_s:g} s for {again[0].duration_s:g} s already",
                    "outages of one replica follow each other",
                )
            outages.append(
                Outage(replica=replica, start_s=start_s, duration_s=duration_s, drain=bool(values["drain"]))
            )
    return tuple(outages)


def _lost(
    reader: ServingReader,
    place: Place,
    raw: Raw,
    values: dict[str, Read],
    pools: list[Pool],
    regions: Regions,
    scales: bool,
) -> list[int]:
    """The replicas of an outage, counted over all pools."""
    if ("replica" in raw) == ("region" in raw):
        reader.problem(place, "an outage names replicas or a region", 'replica = 0, "0-3", or region = "eu"')
        return []
    stands = [pool.region for pool in pools for _ in range(pool.count)]
    if "region" in raw:
        where = regions.place(reader, (*place, "region"), str(values["region"]))
        lost = [replica for replica, region in enumerate(stands) if region == where]
    else:
        said = raw["replica"]
        try:
            lost = [said] if isinstance(said, int) and not isinstance(said, bool) else numbers(said)
        except ValueError as error:
            reader.problem((*place, "replica"), f"replica: {error}", 'e.g. 3, "0-3" or [0, 5]')
            return []
    beyond = [replica for replica in lost if not 0 <= replica < len(stands)]
    if beyond and stands:
        reader.problem(
            (*place, "replica"),
            f"replica {beyond[0]} is not there",
            f"0 to {len(stands) - 1}, counted over all pools",
        )
    if scales and any(replica >= pools[0].count for replica in lost if pools and not beyond):
        reader.problem(
            place,
            "an outage outside the first pool, which autoscaling renumbers",
            "give outages to the first pool, or leave [autoscaling] out",
        )
    return [] if beyond else lost
