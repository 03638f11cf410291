"""Chips, models and those who rent chips out, as sides of a comparison: each by the verbs that speak of one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from datahall.answer import Cell
from datahall.answers.ask import ask, form_of
from datahall.answers.compare.idle import refuse_idle
from datahall.answers.compare.prices import prices
from datahall.answers.compare.side import Side, side_of
from datahall.answers.follow import follow
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.catalog.entries.offer import PRICE_KINDS
from datahall.errors import ScenarioError, UnsupportedError, nearest, option
from datahall.planner.compare.lead import leads_of
from datahall.planner.compare.per_watt import per_watt
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.sections.money.purchase import Purchase
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import PHASES

Given = Mapping[str, Raw]


class Kind(NamedTuple):
    """What can be put side by side: the verb that speaks of one, and the input that has it run, or run something."""

    name: str
    verb: str
    argument: str
    beside: str


KINDS = (Kind("chip", "show chip", "chip", "model"), Kind("model", "show model", "model", "chip"))
CLOUDS = "clouds"
# by what is asked of them, beside what their verbs lead with
LEADS = leads_of(
    (
        "most decode_tokens_per_s", "most prefill_tokens_per_s", "least decode_pass_s", "least prefill_pass_s",
        "most peak_bf16_flop_per_j", "most peak_fp8_flop_per_j", "least decode_j_per_token",
        *(f"least {kind.key}_usd_per_hour" for kind in PRICE_KINDS.values()),
    )
)  # fmt: skip


def providers(catalog: Catalog) -> tuple[str, ...]:
    """Everybody who rents chips out, of whom the catalogue knows a price."""
    return tuple(sorted({offer.provider for offer in catalog.offers() if offer.instance or offer.region}))


def kind_of(name: str, catalog: Catalog) -> str:
    """What a name stands for; nothing where the catalogue has none like it."""
    found = next((kind.name for kind in KINDS if catalog.knows(kind.name, name)), "")
    return found or (CLOUDS if name.lower() in providers(catalog) else "")


def unknown(name: str, catalog: Catalog) -> ScenarioError:
    """A name that is nothing that can be compared."""
    known = [one for kind in KINDS for one in catalog.names(kind.name)]
    close = nearest(name, [*known, *providers(catalog)])
    guess = f"did you mean: {', '.join(close)}?   " if close else ""
    return ScenarioError(
        f'"{name}" is no file, no chip, no model and nobody who rents chips out', field="things",
        hint=f"{guess}all of them: datahall catalog chips, models or prices",
    )  # fmt: skip


def sides_of_names(
    names: Sequence[str], kind: str, given: Given, bought: Purchase, catalog: Catalog
) -> tuple[list[Side], tuple[str, ...]]:
    """Each name as a side, and what is to be said of those that have none."""
    if kind == CLOUDS:
        return _clouds(names, given, bought, catalog)
    row = next(one for one in KINDS if one.name == kind)
    asked = [row.verb, *(["show roofline"] if row.beside in given else [])]
    taken = {name for verb in asked for name in form_of(verb).fields if name != row.argument}
    why = (
        f"{row.verb} has no such input"
        if row.beside in given
        else f"it says something beside {option(row.beside)}"
    )
    refuse_idle(set(given).difference(taken), why)
    return [_named(row, name, given, bought, catalog) for name in names], ()


def _named(row: Kind, name: str, given: Given, bought: Purchase, catalog: Catalog) -> Side:
    """A chip or a model: what its own verb says of it, and how fast the one runs the other."""
    own = {
        row.argument: name,
        **{key: value for key, value in given.items() if key in form_of(row.verb).fields},
    }
    scenario = read_names(form_of(row.verb), own, catalog, bare=True)
    side = side_of(catalog.name_of(row.name, name), answer_of(ask(row.verb, own, catalog=catalog, bare=True)))
    results, sources, notes = dict(side.results), side.sources, list(side.notes)
    if row.beside in given:
        for phase in PHASES:
            found, note = _timed({**given, row.argument: name, "phase": phase}, catalog)
            results |= {f"{phase}_{key}": value for key, value in found.items()}
            notes += [f"{side.name}: {note}"] if note else []
    if row.name == "chip":
        chip = catalog.chip(name)
        results |= per_watt(results, chip.power_limit_w)
        asked, of = prices(chip.name, bought, catalog)
        results, sources = results | asked, (*sources, *of)
        listed = chip.facts.get("price_usd")
        if listed is not None:
            results["price_of"] = f"{listed.source.date}, {listed.source.kind}"
    return msgspec.structs.replace(
        side, results=results, sources=sources, notes=tuple(dict.fromkeys(notes)), command=follow(scenario)
    )


def _timed(given: Given, catalog: Catalog) -> tuple[dict[str, Cell], str]:
    """How fast a model runs on a chip; why it does not, where it does not."""
    taken = {name: value for name, value in given.items() if name in form_of("show roofline").fields}
    try:
        answer = answer_of(ask("show roofline", taken, catalog=catalog, bare=True))
    except UnsupportedError as error:
        return {}, error.message
    if answer.verdict == "no":
        return {}, answer.headline
    return {
        key: value for key, value in answer.results.items() if key.endswith(("pass_s", "tokens_per_s"))
    }, ""


def _clouds(
    names: Sequence[str], given: Given, bought: Purchase, catalog: Catalog
) -> tuple[list[Side], tuple[str, ...]]:
    """What one chip costs at each of some clouds; who has no price of it is named."""
    refuse_idle(set(given).difference({"chip"}), "a price is of a chip alone")
    chip = catalog.chip(str(given.get("chip", USUAL_CHIP)))
    sides: list[Side] = []
    without: list[str] = []
    known = providers(catalog)
    for name in names:
        own = name.lower()
        if own not in known and nearest(own, known, 1):
            raise unknown(name, catalog)
        found, sources = prices(chip.name, msgspec.structs.replace(bought, providers=(own,)), catalog)
        if found:
            inputs: dict[str, Cell] = {"chip": chip.name}
            sides.append(Side(name=own, asks="catalog prices", inputs=inputs, results=found, sources=sources))
        else:
            without.append(name)
    if not sides:
        raise ScenarioError(
            f"the catalogue has no price of {chip.name} from any of them", hint=f"it knows {', '.join(known)}"
        )
    lacking = f"the catalogue has no price of {chip.name} from them that counts"
    note = f"not priced: {', '.join(without)}: {lacking}: fresh, of a whole machine, no auction"
    return sides, (note,) if without else ()
