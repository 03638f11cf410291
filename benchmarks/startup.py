"""What a person waits for before anything is computed: the interpreter, our imports, the catalogue."""

from __future__ import annotations

from clock import median_s, process_cpu_s
from table import Line

from datahall.catalog import Catalog


def startup_lines() -> list[Line]:
    """CPU time of fresh processes, beside one that does nothing."""
    bare_s = process_cpu_s("-c", "pass")
    imported_s = process_cpu_s("-c", "import datahall")
    help_s = process_cpu_s("-m", "datahall", "--help")
    wrong_s = process_cpu_s("-m", "datahall", "plan", "serve", "llama-9", "--rate", "1")
    return [
        Line("python -c pass, CPU", bare_s, "s"),
        Line("import datahall, CPU", imported_s, "s", budget=0.060),
        Line("  against python -c pass", imported_s / bare_s, "× its time"),
        Line("datahall --help, CPU", help_s, "s", budget=0.100),
        Line("an unknown model, CPU", wrong_s, "s", budget=0.200),
        Line("  against python -c pass", help_s / bare_s, "× its time"),
    ]


def catalogue_lines() -> list[Line]:
    """Reading the shipped files from scratch."""
    return [
        Line("catalogue: chips read and checked", median_s(lambda: Catalog(user=False).chips()), "s"),
        Line("catalogue: models read and checked", median_s(lambda: Catalog(user=False).models(), 3), "s"),
        Line("catalogue: offers read and checked", median_s(lambda: Catalog(user=False).offers(), 3), "s"),
    ]
