"""What a plan may choose from."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Flag, Listed, Name, Share, Stock
from datahall.scenario.kinds.formats import precision_kind
from datahall.scenario.sections.deployment import MOST_CHIPS, MOST_REPLICAS


class Candidates(Section, frozen=True, kw_only=True):
    """The chips and formats that a plan weighs, and what it leaves free."""

    chips: Annotated[
        tuple[str, ...], Listed("Kinds of chip to weigh (default: a few usual ones).", of=Name("", of="chip"))
    ] = ()
    available: Annotated[
        tuple[tuple[str, int], ...],
        Stock(
            "How many chips of a kind can be had, of which none more is planned with: h100-sxm=128,h200=64; kinds that "
            "are not named are not short.",
            most=MOST_CHIPS,
            example="h100-sxm=128",
        ),
    ] = ()
    precision: Annotated[tuple[str, ...], Listed("Formats to weigh.", of=precision_kind("A format."))] = (
        "bf16",
        "fp8",
    )
    headroom_fraction: Annotated[
        float, Share("Share of what a replica holds that is left free.", below=True)
    ] = 0.1
    spare: Annotated[
        int,
        Count(
            "Replicas beside those that are needed: the limits are kept with so many out (N+1: 1).",
            least=0,
            most=MOST_REPLICAS,
        ),
    ] = 0
    disaggregated: Annotated[
        bool, Flag("Weigh prompts and answers on replicas of their own beside the others.")
    ] = False
