"""What a person waits for before anything is computed: the interpreter, our imports, the catalogue."""

from __future__ import annotations

from clock import best_s, process_cpu_s
from table import Line

from datahall.catalog import Catalog

# questions that cannot be asked, by what is wrong with them
WRONG = {
    "a model": "plan serve llama-9 --rate 1",
    "a bound": "plan serve llama-3.1-70b --rate -1",
    "an option": "plan serve llama-3.1-70b --rte 1",
    "a chip": "plan train llama-3.1-70b --tokens 15T --chips 2048 --chip h2000",
    "a count": "plan train llama-3.1-70b --tokens 15T --chips -3 --chip h200",
    "a model, explained": "explain show fit llama-3.1-70bb",
    "a split": "simulate serve llama-3.1-70b --tp 3",
    "a file": "plan nosuch.toml",
    "no rate": "simulate serve llama-3.1-8b",
    "chips that nothing divides": "simulate train llama-3.1-8b --chips 63 --tp 8",
    "a shard": "show memory llama-3.1-8b --chips 8 --shard 3",
    "an engine": "show fit llama-3.1-8b --engine foo",
    "tiers": "show fabric fat-tree --chips 1024 --tiers 9",
}


def startup_lines() -> list[Line]:
    """CPU time of fresh processes, beside one that does nothing."""
    bare_s = process_cpu_s("-c", "pass")
    imported_s = process_cpu_s("-c", "import datahall")
    help_s = process_cpu_s("-m", "datahall", "--help")
    wrong_s = {what: process_cpu_s("-m", "datahall", *line.split()) for what, line in WRONG.items()}
    return [
        Line("python -c pass, CPU", bare_s, "s"),
        Line("import datahall, CPU", imported_s, "s", budget=0.060),
        Line("  against python -c pass", imported_s / bare_s, "× its time"),
        Line("datahall --help, CPU", help_s, "s", budget=0.100),
        Line("  against python -c pass", help_s / bare_s, "× its time"),
        Line(
            "datahall plan serve --help, CPU", process_cpu_s("-m", "datahall", "plan", "serve", "--help"), "s"
        ),
        *(Line(f"an error: {what}, CPU", spent_s, "s", budget=0.200) for what, spent_s in wrong_s.items()),
    ]


def catalogue_lines() -> list[Line]:
    """Reading the shipped files from scratch."""
    return [
        Line("catalogue: chips read and checked", best_s(lambda: Catalog(user=False).chips()), "s"),
        Line("catalogue: models read and checked", best_s(lambda: Catalog(user=False).models()), "s"),
        Line("catalogue: offers read and checked", best_s(lambda: Catalog(user=False).offers()), "s"),
    ]
