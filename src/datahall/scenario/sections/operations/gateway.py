"""Keys of a gateway, where it keeps them, the month of a bill, and an endpoint that is looked at or put under load."""

import re
from typing import Annotated

from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import Choice, Count, Listed, Quantity, Raw, Reading, Text, shown
from datahall.scenario.kinds.budgets import Budget
from datahall.scenario.words import ROUTES, Route

LIMITS = "limits"  # group of inputs


class Label(Text, frozen=True):
    """A name that a line of a log can have."""

    def read(self, raw: Raw, at: Reading) -> str:
        text = super().read(raw, at)
        if not re.fullmatch(r"[A-Za-z0-9][\w.@:-]{0,63}", text):
            raise ScenarioError(
                f"{shown(text)} is no name of a key or a customer",
                hint="1 to 64 letters, digits, and . _ @ : -",
            )
        return text


class Month(Text, frozen=True):
    """A month: 2026-11."""

    def read(self, raw: Raw, at: Reading) -> str:
        text = super().read(raw, at)
        if not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", text):
            raise ScenarioError(f"{shown(text)} is not a month", hint="e.g. 2026-11")
        return text


class KeyTerms(Section, frozen=True, kw_only=True):
    """A key of a gateway, or a customer by all of its keys: what it is called, whose it is, and what it may use."""

    name: Annotated[str, Label("What the key is called.", metavar="NAME", example="acme")] = ""
    customer: Annotated[
        str,
        Label(
            "Who pays, and whose answers a cache may give again (default: the key's name).",
            metavar="NAME",
            example="acme",
        ),
    ] = ""
    models: Annotated[
        tuple[str, ...],
        Listed(
            'Models that it may use, also as "llama-*" (default: all).',
            of=Text(""),
            metavar="NAME,…",
            example="llama-*",
        ),
    ] = ()
    routes: Annotated[
        tuple[Route, ...],
        Listed(
            f"What it may ask: {', '.join(ROUTES)} (default: all).",
            of=Choice("", options=ROUTES),
            metavar="ROUTE,…",
        ),
    ] = ()
    expires_s: Annotated[
        float | None,
        Quantity("From now until when it is good (default: for ever).", above=True, example="90d"),
    ] = None
    requests_per_minute: Annotated[
        int | None,
        Count(
            "Most requests in any minute; 0: as many as may be.",
            name="rpm",
            least=0,
            most=10**9,
            group=LIMITS,
        ),
    ] = None
    minute_tokens: Annotated[
        int | None,
        Count(
            "Most tokens in any minute; 0: as many as may be.",
            name="tpm",
            unit="tokens",
            least=0,
            most=10**12,
            group=LIMITS,
        ),
    ] = None
    parallel: Annotated[
        int | None, Count("Most requests at once; 0: as many as may be.", least=0, most=10**6, group=LIMITS)
    ] = None
    budget: Annotated[
        str,
        Budget(
            "Most dollars a day, a month or in all; 0USD: no end.",
            metavar="MONEY",
            example="50USD/month",
            group=LIMITS,
        ),
    ] = ""


class GatewayState(Section, frozen=True, kw_only=True):
    """Where a gateway keeps its keys and its books."""

    state: Annotated[
        str,
        Text(
            "Folder of the gateway's state (default: datahall in the user's state folder).", metavar="FOLDER"
        ),
    ] = ""


class Billed(Section, frozen=True, kw_only=True):
    """What is billed."""

    month: Annotated[
        str, Month("Month of the bill (default: this one).", metavar="MONTH", example="2026-11")
    ] = ""


class Endpoint(Section, frozen=True, kw_only=True):
    """An endpoint, and how it is asked."""

    url: Annotated[str, Text("Where it answers.", metavar="URL", example="http://127.0.0.1:8080")] = ""
    key_from: Annotated[
        str,
        Text(
            "Variable of the environment that has its key, which no command line needs to show.",
            metavar="NAME",
            example="DATAHALL_KEY",
        ),
    ] = ""
    served: Annotated[
        str, Text("What it calls the model (default: the first that it lists).", metavar="NAME")
    ] = ""
    window_s: Annotated[
        float | None,
        Quantity(
            "The time that rates and latencies are of (default: a second; ten where the view is drawn again).",
            above=True,
            most=3600.0,
            example="1min",
        ),
    ] = None
