"""`datahall catalog`: what is known, from whom and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from datahall.cli.names import chip_names
from datahall.cli.question import question
from datahall.cli.verbs import Verbs

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.catalog import Catalog

GROUP_EXAMPLES = """
datahall catalog chips --sort memory
datahall catalog prices --chip h100 --kind spot
datahall catalog add my-chip.toml
"""
CHIP_ORDERS = ["name", "memory", "bandwidth", "bf16", "fp8", "power", "price", "year"]
MODEL_ORDERS = ["name", "parameters", "active", "context", "kv", "year"]


@click.group("catalog", cls=Verbs, examples=GROUP_EXAMPLES)
def command() -> None:
    """Facts with source and date, shipped and your own."""


@question(command, "chips", examples="datahall catalog chips --sort memory --vendor nvidia --precision fp8")
@click.option(
    "--sort", type=click.Choice(CHIP_ORDERS), default="name", show_default=True, help="What comes first."
)
@click.option("--vendor", default="", help="Only this vendor's.")
@click.option("--precision", default="", help="Only chips that have it; shows its dense peak.")
def chips(sort: str, vendor: str, precision: str, catalog: Catalog) -> Answer:
    """Accelerators, with dense peaks."""
    from datahall.show.listing import catalog_chips

    return catalog_chips(sort=sort, vendor=vendor, precision=precision, catalog=catalog)


@question(command, "models", examples="datahall catalog models --sort parameters --family llama")
@click.option(
    "--sort", type=click.Choice(MODEL_ORDERS), default="name", show_default=True, help="What comes first."
)
@click.option("--family", default="", help="Only this family.")
def models(sort: str, family: str, catalog: Catalog) -> Answer:
    """Language models."""
    from datahall.show.listing import catalog_models

    return catalog_models(sort=sort, family=family, catalog=catalog)


@question(command, "links", examples="datahall catalog links --format csv")
def links(catalog: Catalog) -> Answer:
    """Links to chips, host and network; one way."""
    from datahall.show.listing import catalog_links

    return catalog_links(catalog=catalog)


@question(command, "servers", examples="datahall catalog servers")
def servers(catalog: Catalog) -> Answer:
    """Servers, racks, pods and clusters."""
    from datahall.show.listing import catalog_servers

    return catalog_servers(catalog=catalog)


@question(
    command,
    "prices",
    examples="""
    datahall catalog prices --chip h100 --kind spot
    datahall catalog prices --chip b200 --max-age "90 days"
    """,
)
@click.option("--chip", default="", metavar="CHIP", shell_complete=chip_names, help="Only of this chip.")
@click.option(
    "--kind", default="", help="on-demand, spot, reserved-1y, reserved-3y, owned, auction, purchase, …"
)
@click.option("--max-age", default="", metavar="TIME", help='Leave out what is older, e.g. "90 days".')
def prices(chip: str, kind: str, max_age: str, catalog: Catalog) -> Answer:
    """Chips to rent or buy, cheapest first, with the age of a price."""
    from datahall.show.price import catalog_prices

    return catalog_prices(chip=chip, kind=kind, max_age=max_age, catalog=catalog)


@question(command, "api-prices", examples="datahall catalog api-prices gpt-4o --first-party", catalog=False)
@click.argument("model", default="")
@click.option("--first-party", is_flag=True, help="Only models sold by their maker.")
def api_prices(model: str, first_party: bool) -> Answer:
    """What hosted models cost per million tokens."""
    from datahall.show.price import catalog_api_prices

    return catalog_api_prices(model, first_party=first_party)


@question(command, "search", examples="datahall catalog search nvlink")
@click.argument("text", nargs=-1, required=True)
def search(text: tuple[str, ...], catalog: Catalog) -> Answer:
    """Entries of every kind in which all words occur."""
    from datahall.show.listing import catalog_search

    return catalog_search(" ".join(text), catalog=catalog)


@question(command, "add", examples="datahall catalog add my-chip.toml")
@click.argument("file", metavar="FILE")
@click.option("--replace", is_flag=True, help="Overwrite a file of the same name.")
def add(file: str, replace: bool, catalog: Catalog) -> Answer:
    """Check a TOML file and copy it into your own catalogue."""
    from datahall.show.verdict import catalog_add

    return catalog_add(file, replace=replace, catalog=catalog)
