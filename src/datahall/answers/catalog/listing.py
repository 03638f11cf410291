"""What is in the catalogue: chips, models, links and servers as tables, and a search over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.bounds import opened
from datahall.answers.chip.citation import known
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import PRECISIONS, Chip, canonical_precision
from datahall.errors import ScenarioError, UnknownNameError

CHIP_ORDERS = ("name", "memory", "bandwidth", "bf16", "fp8", "power", "price", "year")
MODEL_ORDERS = ("name", "parameters", "active", "context", "kv", "year")


def catalog_chips(
    *, sort: str = "name", vendor: str = "", precision: str = "", catalog: Catalog | None = None
) -> Answer:
    """Every chip, or those of one vendor or with one precision; largest first, cheapest first."""
    shelf = opened(catalog)
    shown = _precision(precision) or (sort if sort in PRECISIONS else "bf16")
    keys: dict[str, Callable[[Chip], float]] = {
        "memory": lambda chip: -chip.memory_bytes,
        "bandwidth": lambda chip: -chip.memory_bytes_per_s,
        "bf16": lambda chip: -chip.peak_flop_per_s.get("bf16", nan),
        "fp8": lambda chip: -chip.peak_flop_per_s.get("fp8", nan),
        "power": lambda chip: -chip.power_limit_w,
        "price": lambda chip: chip.price_usd,
        "year": lambda chip: -chip.year or nan,
    }
    _check_order(sort, CHIP_ORDERS)
    chips = [
        chip
        for chip in shelf.chips()
        if _is_vendor(chip, vendor) and (not precision or shown in chip.peak_flop_per_s)
    ]
    if vendor and not chips and not any(_is_vendor(chip, vendor) for chip in shelf.chips()):
        raise UnknownNameError(
            "vendor", vendor, {chip.vendor for chip in shelf.chips()}, hint=_vendors(shelf)
        )
    rows = tuple(
        (
            chip.name, known(chip.year), known(chip.memory_bytes), known(chip.memory_bytes_per_s),
            known(chip.peak_flop_per_s.get(shown, nan)), known(chip.power_limit_w), known(chip.price_usd),
        )
        for chip in sorted(chips, key=lambda chip: _rank(keys.get(sort), chip))
    )  # fmt: skip
    columns = (
        Column("chip"), Column("year", "year"), Column("memory", "bytes"), Column("bandwidth", "bytes_per_s"),
        Column(f"{shown.upper()} dense", "flop_per_s"), Column("power limit", "w"), Column("price", "usd"),
    )  # fmt: skip
    asked: dict[str, Cell] = {"sort": sort, "vendor": vendor, "precision": precision}
    first = f"datahall show chip {rows[0][0]}" if rows else "datahall catalog chips"
    return _answer(
        "chips",
        asked,
        _counted(len(rows), "chip", sort),
        Table(title="chips", columns=columns, rows=rows),
        first,
    )


def catalog_models(*, sort: str = "name", family: str = "", catalog: Catalog | None = None) -> Answer:
    """Every model, or those of one family; largest first."""
    from datahall.workload.memory.kv_cache import kv_bytes_per_token
    from datahall.workload.parameters import count_parameters

    shelf = opened(catalog)
    _check_order(sort, MODEL_ORDERS)
    wanted = family.lower()
    models = [model for model in shelf.models() if not wanted or wanted in model.family.lower()]
    if not models and family:
        raise UnknownNameError(
            "family", family, {model.family for model in shelf.models()}, hint=_families(shelf)
        )
    rows = []
    for model in models:
        counts, cache = count_parameters(model), float(kv_bytes_per_token(model))
        rows.append(
            (
                model.name,
                model.family,
                counts.total,
                counts.active,
                known(model.max_context),
                cache,
                known(model.year),
            )
        )
    place = {"parameters": 2, "active": 3, "context": 4, "kv": 5, "year": 6}.get(sort)
    ordered = sorted(rows, key=lambda row: (-_number(row[place]) if place else 0.0, str(row[0])))
    columns = (
        Column("model"), Column("family"), Column("parameters", "parameters", "num_parameters"),
        Column("active", "parameters", "num_active_parameters"), Column("context", "count", "context_tokens"),
        Column("cache per token", "bytes"), Column("year", "year"),
    )  # fmt: skip
    table = Table(
        title="models", columns=columns, rows=tuple(ordered), note="Cache in bf16, before a window is full."
    )
    first = f"datahall show model {ordered[0][0]}" if ordered else "datahall catalog models"
    return _answer(
        "models", {"sort": sort, "family": family}, _counted(len(ordered), "model", sort), table, first
    )


def catalog_links(*, catalog: Catalog | None = None) -> Answer:
    """Every link, one way, fastest first within its kind."""
    shelf = opened(catalog)
    links = sorted(shelf.links(), key=lambda link: (link.kind, -link.bytes_per_s))
    rows = tuple(
        (
            link.name,
            link.title,
            link.kind,
            link.bytes_per_s,
            link.both_ways_bytes_per_s,
            known(link.latency_s),
            known(link.year),
        )
        for link in links
    )
    columns = (
        Column("link"), Column("called"), Column("joins"), Column("one way", "bytes_per_s"),
        Column("both ways", "bytes_per_s"), Column("latency", "s"), Column("year", "year"),
    )  # fmt: skip
    table = Table(title="links", columns=columns, rows=rows)
    return _answer("links", {}, _counted(len(rows), "link"), table, "datahall catalog servers")


def catalog_servers(*, catalog: Catalog | None = None) -> Answer:
    """Every server, rack, pod and cluster."""
    shelf = opened(catalog)
    rows = tuple(
        (
            one.name, one.form, one.chip, one.num_chips, known(one.num_scale_up_domain),
            known(one.network_bytes_per_s_per_chip), known(one.power_limit_w),
        )
        for one in sorted(shelf.servers(), key=lambda one: (one.num_chips, one.name))
    )  # fmt: skip
    columns = (
        Column("server"), Column("form"), Column("chip"), Column("chips", "count", "num_chips"),
        Column("scale-up domain", "count", "num_scale_up_domain"), Column("network per chip", "bytes_per_s"),
        Column("power limit", "w"),
    )  # fmt: skip
    table = Table(title="servers, racks, pods and clusters", columns=columns, rows=rows)
    return _answer("servers", {}, _counted(len(rows), "server"), table, "datahall catalog chips")


def catalog_search(text: str, *, catalog: Catalog | None = None) -> Answer:
    """Entries of every kind in which all words of `text` occur."""
    shelf = opened(catalog)
    if not text.strip():
        raise ScenarioError("nothing to search for", hint="datahall catalog search nvlink")
    hits = shelf.search(text)
    rows = tuple((hit.name, hit.kind, hit.title) for hit in hits)
    found = (
        f"{len(hits)} entr{'ies' if len(hits) != 1 else 'y'} for “{text}”."
        if hits
        else f"Nothing for “{text}”."
    )
    shows = [f"datahall show {hit.kind} {hit.name}" for hit in hits if hit.kind in {"chip", "model"}][:1]
    return Answer(
        kind="search",
        inputs={"text": text},
        headline=found,
        verdict="yes" if hits else "no",
        results={"num_entries": len(hits)},
        tables=(
            Table(title="entries", columns=(Column("name"), Column("kind"), Column("called")), rows=rows),
        )
        if rows
        else (),
        next_commands=tuple(shows) or ("datahall catalog chips",),
    )


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _answer(kind: str, asked: dict[str, Cell], headline: str, table: Table, first: str) -> Answer:
    return Answer(
        kind=kind, inputs=asked, headline=headline, results={"num_entries": len(table.rows)}, tables=(table,),
        next_commands=(first,),
    )  # fmt: skip


def _counted(count: int, noun: str, sort: str = "") -> str:
    order = f", by {sort}" if sort and sort != "name" else ""
    return f"{count} {noun}{'' if count == 1 else 's'}{order}."


def _rank(key: Callable[[Chip], float] | None, chip: Chip) -> tuple[bool, float, str]:
    """Unknown values last, then the order asked for, then the name."""
    value = key(chip) if key else 0.0
    return (value != value, value if value == value else 0.0, chip.name)


def _check_order(sort: str, orders: Iterable[str]) -> None:
    if sort not in orders:
        raise ScenarioError(f'cannot sort by "{sort}"', hint=f"by one of {', '.join(orders)}")


def _precision(name: str) -> str:
    wanted = canonical_precision(name) if name else ""
    if wanted and wanted not in PRECISIONS:
        raise UnknownNameError("precision", name, PRECISIONS, hint=f"they are {', '.join(PRECISIONS)}")
    return wanted


def _is_vendor(chip: Chip, vendor: str) -> bool:
    return vendor.lower() in chip.vendor.lower()


def _vendors(shelf: Catalog) -> str:
    return "vendors: " + ", ".join(sorted({chip.vendor for chip in shelf.chips()}))


def _families(shelf: Catalog) -> str:
    return "families: " + ", ".join(sorted({model.family for model in shelf.models()}))
