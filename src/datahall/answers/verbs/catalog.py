"""Verbs about the catalogue: lists, prices, search, and entries of your own."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import AGES, Takes

VERBS = (
    Verb(
        name="catalog chips",
        about="accelerators, with dense peaks",
        answer="catalog.listing:catalog_chips",
        takes=(Takes("chips"),),
        examples=("--sort memory --vendor nvidia --precision fp8",),
    ),
    Verb(
        name="catalog models",
        about="language models",
        answer="catalog.listing:catalog_models",
        takes=(Takes("models"),),
        examples=("--sort parameters --family llama",),
    ),
    Verb(
        name="catalog links",
        about="links to chips, host and network; one way",
        answer="catalog.listing:catalog_links",
        takes=(),
        examples=("--format csv",),
    ),
    Verb(
        name="catalog servers",
        about="servers, racks, pods and clusters",
        answer="catalog.listing:catalog_servers",
        takes=(),
        examples=("",),
    ),
    Verb(
        name="catalog prices",
        about="chips to rent or buy, cheapest first, with the age of a price",
        answer="catalog.price:catalog_prices",
        takes=(Takes("offers"), AGES),
        leads=("least lowest_usd_per_hour",),
        examples=("--chip h100 --kind spot", '--chip b200 --max-age "90 days"'),
    ),
    Verb(
        name="catalog api-prices",
        about="what hosted models cost per million tokens",
        answer="catalog.price:catalog_api_prices",
        takes=(Takes("search", only=("hosted", "first_party")), AGES),
        arguments=("hosted",),
        examples=("gpt-4o --first-party",),
    ),
    Verb(
        name="catalog search",
        about="entries of every kind in which all words occur",
        answer="catalog.listing:catalog_search",
        takes=(Takes("search", only=("text",)),),
        arguments=("text",),
        required=("text",),
        several=True,
        examples=("nvlink",),
    ),
    Verb(
        name="catalog add",
        about="check a TOML file and copy it into your own catalogue, or into a folder that is named",
        answer="catalog.add:catalog_add",
        takes=(Takes("files", only=("file", "replace")),),
        arguments=("file",),
        required=("file",),
        by_file=False,
        examples=("my-chip.toml",),
    ),
    Verb(
        name="explain",
        about="what a term means, in which unit, and what it is easily taken for",
        answer="term.term:explain",
        takes=(Takes("files", only=("term",)),),
        arguments=("term",),
        by_file=False,
        several=True,
        examples=("MFU", "show roofline h200 --model llama-3.1-8b --batch 32"),
        details="With a question in place of a term: the chain behind its answer, down to the sources.",
    ),
)
