"""What small questions ask: sequences, one pass, a working set, a claim, lists of the catalogue, files."""

import datetime
from typing import Annotated

from datahall.catalog.entries.offer import OFFER_KINDS
from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import (
    Choice,
    Count,
    Flag,
    Listed,
    Name,
    Quantity,
    Raw,
    Reading,
    Share,
    Text,
    shown,
)
from datahall.scenario.kinds.formats import PeakFormat
from datahall.scenario.words import DOMAINS, FLOW_DETAILS, LEVELS, PHASES, TIERS

CHIP_ORDERS = ("name", "memory", "bandwidth", "bf16", "fp8", "power", "price", "year")
MODEL_ORDERS = ("name", "parameters", "active", "context", "kv", "year")


class Day(Text, frozen=True):
    """A day: 2026-11-15."""

    def read(self, raw: "Raw | datetime.date", at: Reading) -> str:
        if isinstance(raw, datetime.date):  # as TOML has it without quotes
            return f"{raw:%Y-%m-%d}"
        try:
            return datetime.date.fromisoformat(super().read(raw, at)).isoformat()
        except ValueError:
            raise ScenarioError(f"{shown(raw)} is not a day", hint="e.g. 2026-11-15") from None

    def schema(self) -> dict[str, object]:
        return {"type": "string", "format": "date"}


class Sequences(Section, frozen=True, kw_only=True):
    """So many sequences of some length."""

    context: Annotated[int, Count("Tokens of a sequence.", unit="tokens", most=2**30)] = 8192
    batch: Annotated[int, Count("Sequences at once.", most=2**30)] = 1


class Pass(Section, frozen=True, kw_only=True):
    """One forward pass."""

    phase: Annotated[
        str, Choice("What runs: prefill (whole prompts) or decode (one token each).", options=PHASES)
    ] = "decode"
    level: Annotated[
        str | None,
        Choice(
            "Constants of the chip's kernels: datasheet, family or measured (default: the best there are).",
            options=tuple(LEVELS),
        ),
    ] = None
    eager: Annotated[bool, Flag("Launch each kernel from the host instead of replaying a graph.")] = False


class WorkingSet(Section, frozen=True, kw_only=True):
    """What is read over and over, and where what does not fit is kept."""

    working_set_bytes: Annotated[
        float | None, Quantity("What is read over and over.", above=True, example="2GB")
    ] = None
    offload: Annotated[
        str | None, Choice("Where to keep what does not fit: host or nvme.", options=TIERS)
    ] = None
    prefetch: Annotated[
        bool, Flag("Fetch what does not fit while what fits is worked on.", needs=("working_set",))
    ] = False


class Claim(Section, frozen=True, kw_only=True):
    """A number that somebody states of a chip."""

    chip: Annotated[
        str,
        Name("Chip; with a claim also a server or a link.", of="entry", metavar="CHIP", example="h100-sxm"),
    ] = ""
    claim: Annotated[
        str,
        Text("Is this number right? Exit code 1 if not.", metavar="QUANTITY=VALUE", example='"memory=80GB"'),
    ] = ""


class Prefix(Section, frozen=True, kw_only=True):
    """What a cache of prefixes finds."""

    cached_fraction: Annotated[float, Share("Share of a prompt that a prefix cache finds.", below=True)] = 0.3


class Lighter(Section, frozen=True, kw_only=True):
    """What a request may be answered from instead: less of its context, or a smaller model."""

    window: Annotated[
        int, Count("Tokens that a layer sees where attention has a window.", unit="tokens", most=2**30)
    ] = 512
    summary_fraction: Annotated[
        float, Share("Share of a prompt that is left of it in a summary.", above=True, below=True)
    ] = 0.25
    summary_requests: Annotated[int, Count("Requests that read a summary before the next is written.")] = 10
    small: Annotated[
        str,
        Name(
            "Smaller model (default: of the same family and tokens, a quarter of the parameters at most).",
            of="model", example="llama-3.1-8b",
        ),
    ] = ""  # fmt: skip
    easy_fraction: Annotated[
        float,
        Share("Share of the requests that the smaller model answers where they are told apart.", above=True),
    ] = 0.5


class ChipListing(Section, frozen=True, kw_only=True):
    """Which chips of the catalogue, in which order."""

    sort: Annotated[
        str, Choice(f"Column to sort by: {', '.join(CHIP_ORDERS)}.", options=CHIP_ORDERS, metavar="COLUMN")
    ] = "name"
    vendor: Annotated[str, Text("Only this vendor's.", metavar="NAME")] = ""
    precision: Annotated[
        str, PeakFormat("Only chips that multiply in this format; shows its dense peak.", metavar="FORMAT")
    ] = ""


class ModelListing(Section, frozen=True, kw_only=True):
    """Which models of the catalogue, in which order."""

    sort: Annotated[
        str, Choice(f"Column to sort by: {', '.join(MODEL_ORDERS)}.", options=MODEL_ORDERS, metavar="COLUMN")
    ] = "name"
    family: Annotated[str, Text("Only this family.", metavar="NAME")] = ""


class OfferListing(Section, frozen=True, kw_only=True):
    """Which offers of chips."""

    chip: Annotated[str, Text("Only of this chip.", metavar="CHIP")] = ""
    kind: Annotated[
        str | None, Choice(f"How it is sold: {', '.join(OFFER_KINDS)}.", options=OFFER_KINDS, metavar="KIND")
    ] = None
    max_age_s: Annotated[float | None, Quantity("Leave out what is older.", above=True, example="90d")] = None


class Search(Section, frozen=True, kw_only=True):
    """What to look for in the catalogue and among hosted models."""

    text: Annotated[
        tuple[str, ...],
        Listed("Words that an entry must have.", of=Text(""), metavar="TEXT", example="nvlink"),
    ] = ()
    hosted: Annotated[str, Text("Only hosted models whose name has it.", metavar="MODEL")] = ""
    first_party: Annotated[bool, Flag("Only models sold by their maker.")] = False


class Files(Section, frozen=True, kw_only=True):
    """Files to check, add or score, and the domain to score them in."""

    files: Annotated[
        tuple[str, ...], Listed("Files to check.", of=Text(""), metavar="FILE", example="my-chip.toml")
    ] = ()
    file: Annotated[
        str, Text("A TOML file of catalogue entries.", metavar="FILE", example="my-chip.toml")
    ] = ""
    replace: Annotated[bool, Flag("Overwrite a file of the same name.")] = False
    domain: Annotated[
        str,
        Choice(f"What was measured: {', '.join(DOMAINS)}.", options=DOMAINS, example="kernels"),
    ] = ""
    data: Annotated[
        tuple[str, ...],
        Listed("Score this CSV instead of the shipped measurements.", of=Text(""), metavar="FILE"),
    ] = ()
    term: Annotated[str, Text("Word of the nomenclature.", metavar="TERM")] = ""


class Simulation(Section, frozen=True, kw_only=True):
    """How finely a fabric is simulated."""

    detail: Annotated[
        str,
        Choice(
            "How finely: symmetric folds alike flows, full simulates every message.", options=FLOW_DETAILS
        ),
    ] = "symmetric"
    check_with: Annotated[
        str | None,
        Choice(
            "Show the difference from closed-form, symmetric or full.",
            options=("closed-form", *FLOW_DETAILS),
        ),
    ] = None
