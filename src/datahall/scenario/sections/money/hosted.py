"""Tokens that others serve, how many a business needs, and what its customers pay."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Quantity, Share, Text
from datahall.scenario.sections.money.purchase import MOST_USD

MOST_TOKENS = 1e18


class HostedModel(Section, frozen=True, kw_only=True):
    """A model behind an API: which one, and which of its tokens are cheaper."""

    api: Annotated[
        str,
        Text(
            "Hosted model to compare with: gpt-4o, openai/gpt-4o, … (default: the cheapest host of the same model).",
            metavar="MODEL", example="gpt-4o",
        ),
    ] = ""  # fmt: skip
    cached_fraction: Annotated[
        float, Share("Share of input tokens that the API finds in its cache.", name="cached")
    ] = 0.0
    batch_fraction: Annotated[float, Share("Share of tokens that may wait a day.", name="batched")] = 0.0
    answers_s: Annotated[
        float | None,
        Quantity(
            "Time to the first token that the API was measured to have (default: nobody promises one).",
            name="api_latency", above=True, most=3600.0, example="350ms",
        ),
    ] = None  # fmt: skip


class Business(Section, frozen=True, kw_only=True):
    """How many tokens, by whom, and what they pay for them."""

    monthly_tokens: Annotated[
        float | None,
        Quantity(
            "Tokens a month, of prompts and answers.", unit="tokens", name="tokens_per_month", least=1.0,
            most=MOST_TOKENS, example="2B",
        ),
    ] = None  # fmt: skip
    latency_s: Annotated[
        float | None,
        Quantity("Most time to the first token.", above=True, most=3600.0, example="200ms"),
    ] = None
    peak_ratio: Annotated[
        float, Quantity("Busiest hour over the mean.", name="peak_to_mean", least=1.0, most=1e6)
    ] = 3.0
    customers: Annotated[int | None, Count("Customers that pay.", most=10**12, example="1500")] = None
    customer_tokens: Annotated[
        float | None,
        Quantity(
            "Tokens a month of one customer.", unit="tokens", name="tokens_per_customer", least=1.0,
            most=MOST_TOKENS, example="3M",
        ),
    ] = None  # fmt: skip
    revenue_usd: Annotated[
        float | None,
        Quantity("What a customer pays a month.", above=True, most=MOST_USD, name="revenue", example="30USD"),
    ] = None
