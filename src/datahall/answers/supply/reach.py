"""Words of how far users are from the chips of a plan, and of what another region would save and add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.counted import counted
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.economics.sections.reach import Elsewhere, Reach


def at_users(reach: Reach | None) -> str:
    """When the first token is where the users are; nothing where nobody says where that is."""
    if reach is None:
        return ""
    return f" To users near {' and '.join(reach.users)} the TTFT is {fmt(reach.users_first_token_s, 's', 3)}."


def _reach(reach: Reach) -> tuple[Row, ...]:
    left = fmt(reach.left_s, "s", 3)
    return (
        (
            reach.way.name,
            Quantity(reach.way.value, "s"),
            f"to users and back; of {fmt(reach.limit_s, 's', 3)} to the first token it leaves {left}",
        ),
        (
            "first token at the users",
            Quantity(reach.users_first_token_s, "s"),
            f"{fmt(reach.first_token_s, 's', 3)} of the service, and the way",
        ),
        *(_elsewhere(reach, one) for one in reach.others),
    )


def _elsewhere(reach: Reach, one: Elsewhere) -> Row:
    saved, added = reach.saved_usd(one), reach.added_s(one)
    said = [
        f"{fmt(one.way.value, 's', 3)} to users, {fmt(abs(added), 's', 3)} {'more' if added >= 0 else 'less'}"
    ]
    if saved is not None:
        said.insert(0, _beside(saved))
    said.append("egress not priced" if one.egress is None else f"egress {fmt(one.egress.value, 'usd')}")
    return one.chips.name, Quantity(one.chips.value, "usd"), ", ".join(said)


def _beside(saved_usd: float) -> str:
    """What chips of a month cost there beside what they cost here, to the dollar."""
    if abs(saved_usd) < 1.0:
        return "as much as here"
    return f"{fmt(abs(saved_usd), 'usd')} {'less' if saved_usd > 0 else 'more'} than here"


def _reach_results(reach: Reach) -> dict[str, Cell]:
    found: dict[str, Cell] = {
        "users_round_trip_s": reach.way.value,
        "users_ttft_s": reach.users_first_token_s,
        "num_regions_too_far": reach.num_too_far,
    }
    if reach.others:
        cheapest = reach.others[0]
        found |= {
            "cheapest_region": cheapest.region.name,
            "cheapest_region_saves_usd": reach.saved_usd(cheapest),
            "cheapest_region_adds_s": reach.added_s(cheapest),
        }
    return found


def _reach_note(reach: Reach) -> str:
    far = f"; {counted(reach.num_too_far, 'region')} too far for the first token" if reach.num_too_far else ""
    return f"the way to users is one round trip on a connection that is open{far}"


REACH = Words(_reach, _reach_results, _reach_note)
