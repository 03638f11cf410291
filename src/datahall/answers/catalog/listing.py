"""What is in the catalogue: chips, models, links and servers as tables, and a search over all of them."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.chip.citation import known
from datahall.answers.follow import follow
from datahall.catalog.entries.chip import Chip
from datahall.catalog.number_formats import PEAK_FORMATS
from datahall.counted import counted
from datahall.errors import ScenarioError, UnknownNameError
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.views import ChipListing, ModelListing, Search

# by the words of `sort`: what orders chips, and which cell of a row orders models; names order what is alike
CHIP_KEYS: dict[str, Callable[[Chip], float]] = {
    "name": lambda _: 0.0,
    "memory": lambda chip: -chip.memory_bytes,
    "bandwidth": lambda chip: -chip.memory_bytes_per_s,
    "bf16": lambda chip: -chip.peak_flop_per_s.get("bf16", nan),
    "fp8": lambda chip: -chip.peak_flop_per_s.get("fp8", nan),
    "power": lambda chip: -chip.power_limit_w,
    "price": lambda chip: chip.price_usd,
    "year": lambda chip: -chip.year or nan,
}
MODEL_PLACES = {"name": 0, "parameters": 2, "active": 3, "context": 4, "kv": 5, "year": 6}


def catalog_chips(scenario: Scenario) -> Answer:
    """Every chip, or those of one vendor or with one precision; largest first, cheapest first."""
    asked, every = scenario.one(ChipListing), scenario.catalog.chips()
    shown = asked.precision or (asked.sort if asked.sort in PEAK_FORMATS else "bf16")
    chips = [chip for chip in every if asked.vendor.lower() in chip.vendor.lower()]
    if not chips:
        vendors = sorted({chip.vendor for chip in every})
        raise UnknownNameError(
            "vendor", asked.vendor, vendors, field="vendor", hint=f"vendors: {', '.join(vendors)}"
        )
    if asked.precision:
        chips = [chip for chip in chips if chip.multiplies(shown)]
    rows = tuple(
        (
            chip.name, known(chip.year), known(chip.memory_bytes), known(chip.memory_bytes_per_s),
            known(chip.peak(shown) if chip.multiplies(shown) else nan), known(chip.power_limit_w),
            known(chip.price_usd),
        )
        for chip in sorted(chips, key=lambda chip: _rank(CHIP_KEYS[asked.sort], chip))
    )  # fmt: skip
    columns = (
        Column("chip"), Column("year", "year"), Column("memory", "bytes"), Column("bandwidth", "bytes_per_s"),
        Column(f"{shown.upper()} dense", "flop_per_s"), Column("power limit", "w"), Column("price", "usd"),
    )  # fmt: skip
    first = (
        follow(scenario, "show chip", {"chip": str(rows[0][0])})
        if rows
        else follow(scenario, "catalog links")
    )
    return _answer(
        "chips",
        _counted(len(rows), "chip", asked.sort),
        Table(title="chips", columns=columns, rows=rows),
        first,
    )


def catalog_models(scenario: Scenario) -> Answer:
    """Every model, or those of one family; largest first."""
    from datahall.workload.memory.kv_cache import kv_bytes_per_token
    from datahall.workload.parameters import count_parameters

    asked, every = scenario.one(ModelListing), scenario.catalog.models()
    models = [model for model in every if asked.family.lower() in model.family.lower()]
    if not models:
        families = sorted({model.family for model in every})
        raise UnknownNameError(
            "family", asked.family, families, field="family", hint=f"families: {', '.join(families)}"
        )
    rows = []
    for model in models:
        counts, cache = count_parameters(model), float(kv_bytes_per_token(model))
        context, year = known(model.max_context), known(model.year)
        rows.append((model.name, model.family, counts.total, counts.active, context, cache, year))
    place = MODEL_PLACES[asked.sort]
    ordered = sorted(rows, key=lambda row: (-_number(row[place]), str(row[0])))
    columns = (
        Column("model"), Column("family"), Column("parameters", "parameters", "num_parameters"),
        Column("active", "parameters", "num_active_parameters"), Column("context", "count", "context_tokens"),
        Column("cache per token", "bytes"), Column("year", "year"),
    )  # fmt: skip
    table = Table(
        title="models", columns=columns, rows=tuple(ordered), note="Cache in bf16, before a window is full."
    )
    first = follow(scenario, "show model", {"model": str(ordered[0][0])})
    return _answer("models", _counted(len(ordered), "model", asked.sort), table, first)


def catalog_links(scenario: Scenario) -> Answer:
    """Every link, one way, fastest first within its kind."""
    links = sorted(scenario.catalog.links(), key=lambda link: (link.kind, -link.bytes_per_s))
    rows = tuple(
        (
            link.name, link.title, link.kind, link.bytes_per_s, link.both_ways_bytes_per_s, known(link.latency_s),
            known(link.year),
        )
        for link in links
    )  # fmt: skip
    columns = (
        Column("link"), Column("called"), Column("joins"), Column("one way", "bytes_per_s"),
        Column("both ways", "bytes_per_s"), Column("latency", "s"), Column("year", "year"),
    )  # fmt: skip
    table = Table(title="links", columns=columns, rows=rows)
    return _answer("links", _counted(len(rows), "link"), table, follow(scenario, "catalog servers"))


def catalog_servers(scenario: Scenario) -> Answer:
    """Every server, rack, pod and cluster."""
    rows = tuple(
        (
            server.name, server.form, server.chip, server.num_chips, known(server.num_scale_up_domain),
            known(server.network_bytes_per_s_per_chip), known(server.power_limit_w),
        )
        for server in sorted(scenario.catalog.servers(), key=lambda server: (server.num_chips, server.name))
    )  # fmt: skip
    columns = (
        Column("server"), Column("form"), Column("chip"), Column("chips", "count", "num_chips"),
        Column("scale-up domain", "count", "num_scale_up_domain"), Column("network per chip", "bytes_per_s"),
        Column("power limit", "w"),
    )  # fmt: skip
    table = Table(title="servers, racks, pods and clusters", columns=columns, rows=rows)
    return _answer("servers", _counted(len(rows), "server"), table, follow(scenario, "catalog chips"))


def catalog_search(scenario: Scenario) -> Answer:
    """Entries of every kind in which all the words occur."""
    text = " ".join(scenario.one(Search).text)
    if not text.strip():
        raise ScenarioError("nothing to search for", field="text", hint="a word, e.g. nvlink")
    hits = scenario.catalog.search(text)
    rows = tuple((hit.name, hit.kind, hit.title) for hit in hits)
    found = (
        f"{len(hits)} entr{'ies' if len(hits) != 1 else 'y'} for “{text}”."
        if hits
        else f"Nothing for “{text}”."
    )
    columns = (Column("name"), Column("kind"), Column("called"))
    shows = [
        follow(scenario, f"show {hit.kind}", {hit.kind: hit.name})
        for hit in hits
        if hit.kind in {"chip", "model"}
    ][:1]
    return Answer(
        kind="search",
        headline=found,
        verdict="yes" if hits else "no",
        results={"num_entries": len(hits)},
        tables=(Table(title="entries", columns=columns, rows=rows),) if rows else (),
        next_commands=tuple(shows) or (follow(scenario, "catalog chips"),),
    )


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _answer(kind: str, headline: str, table: Table, first: str) -> Answer:
    return Answer(
        kind=kind, headline=headline, results={"num_entries": len(table.rows)}, tables=(table,), next_commands=(first,)
    )  # fmt: skip


def _counted(count: int, noun: str, sort: str = "") -> str:
    order = f", by {sort}" if sort and sort != "name" else ""
    return f"{counted(count, noun)}{order}."


def _rank(key: Callable[[Chip], float], chip: Chip) -> tuple[bool, float, str]:
    """Unknown values last, then the order asked for, then the name."""
    value = key(chip)
    return (value != value, value if value == value else 0.0, chip.name)
