"""Inputs of a run that changed nothing of it are said to, each for its reason; those that acted are not."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.fabric.flows.idle import idle_inputs
from datahall.fabric.flows.outcome import flow_scenario, simulate_flows
from datahall.scenario.read import read_document
from datahall.scenario.sections.fabric import FabricDesign

CATALOG = Catalog(user=False)
EVERYTHING = (
    "domain", "nic", "oversubscription", "switch", "server", "radix", "tiers", "sides", "latency", "scale_up",
    "scale_up_latency", "failure", "stall", "watchdog", "lanes", "seed", "routing", "paths",
)  # fmt: skip
PLAIN = """
version = 1
[fabric]
topology = "fat-tree"
chips = 16
bandwidth = "400 Gb/s"
"""


def idle(more: str = "", *, ranks: str = "0-3", fabric: str = PLAIN, network: str = "") -> set[str]:
    """What a job on some ranks was given for nothing."""
    job = f'[[job]]\nname = "j"\ncollective = "all-gather"\nranks = "{ranks}"\nsize = "64 MB"\n'
    document = parse(f"{fabric}\n[network]\n{network}\n{job}{more}", "test.toml")
    scenario = read_document(form_of("simulate fabric"), document, CATALOG)
    outcome = simulate_flows(flow_scenario(scenario))
    return set(idle_inputs(outcome, scenario.one(FabricDesign), CATALOG, EVERYTHING))


def failure(link: int, when: str = "") -> str:
    return f"[[failure]]\nlinks = [{link}]\n{when}"


def test_a_link_that_fails_acts_where_flows_pass() -> None:
    """The first links are those of the first chips, and the last of the last: ranks 0 … 3 pass the first."""
    assert "failure" in idle()
    assert "failure" in idle("[[failure]]\nchips = [15]\n")
    assert "failure" not in idle("[[failure]]\nswitches = [16]\n", ranks="0-15")


def test_a_failure_after_the_end_or_where_nobody_passes_does_nothing() -> None:
    early, late = 'start = "1 us"\nduration = "1 s"\n', 'start = "1 s"\nduration = "1 s"\n'
    assert "failure" not in idle(failure(0, early))
    assert "failure" in idle(failure(0, late))
    assert "failure" in idle("[[failure]]\nchips = [15]\n" + early)


def stall(chip: int, start: str, duration: str) -> str:
    return f'[[stall]]\nchip = {chip}\nstart = "{start}"\nduration = "{duration}"\n'


def test_a_stall_acts_where_and_while_flows_pass() -> None:
    assert "stall" not in idle(stall(1, "10 us", "1 ms"))
    assert "stall" in idle(stall(9, "10 us", "1 ms"))
    assert "stall" in idle(stall(1, "1 s", "1 ms"))
    assert "stall" not in idle(stall(9, "10 us", "1 ms") + stall(1, "10 us", "1 ms"))


def test_a_watchdog_acts_in_stalls_that_outlast_it() -> None:
    assert "watchdog" in idle(stall(1, "10 us", "1 ms"), network='watchdog = "2 ms"')
    assert "watchdog" in idle(stall(1, "10 us", "1 ms"), network='watchdog = "1 ms"')
    assert "watchdog" not in idle(stall(1, "10 us", "1 ms"), network='watchdog = "0.1 ms"')
    assert "watchdog" in idle(stall(1, "1 s", "1 ms"), network='watchdog = "0.1 ms"')


def test_paths_matter_where_there_are_several() -> None:
    """Chips 0 and 1 hang on one switch; 0 and 8 are joined by four paths."""
    alone = idle(ranks="0-1")
    assert {"routing", "paths", "seed"} <= alone
    apart = idle(ranks="0,8")
    assert not {"routing", "paths", "seed"} & apart
    still = idle(ranks="0,8", network='routing = "deterministic"')
    assert "seed" in still
    assert "routing" not in still
    assert "routing" not in idle(ranks="0-1", network='routing = "spray"')


def test_background_is_drawn_by_the_seed() -> None:
    noise = '[[background]]\npattern = "permutation"\nsize = "1 MB"\n'
    assert "seed" not in idle(noise, ranks="0-1")
    assert "seed" not in idle(noise, ranks="0,8", network='routing = "deterministic"')


def test_one_lane_acts_and_more_do_not() -> None:
    assert "lanes" in idle(network="lanes = 2")
    assert "lanes" not in idle(network="lanes = 1")


@pytest.mark.parametrize(
    ("line", "name", "acts_on"),
    [('oversubscription = "3:1"', "oversubscription", "0-40"), ("domain = 4", "domain", "0-3")],
)
def test_wires_act_on_those_who_pass_them(line: str, name: str, acts_on: str) -> None:
    """A taper is above the leaves; a domain is met by its own chips."""
    fabric = (
        f'version = 1\n[fabric]\ntopology = "clos"\nchips = 64\nradix = 16\nbandwidth = "400 Gb/s"\n{line}\n'
    )
    assert name not in idle(ranks=acts_on, fabric=fabric)


def test_nothing_is_said_of_what_nobody_said() -> None:
    document = parse(
        PLAIN + '[[job]]\ncollective = "all-gather"\nranks = "0-3"\nsize = "1 MB"\n', "test.toml"
    )
    scenario = read_document(form_of("simulate fabric"), document, CATALOG)
    outcome = simulate_flows(flow_scenario(scenario))
    assert idle_inputs(outcome, scenario.one(FabricDesign), CATALOG, ()) == {}
    assert set(idle_inputs(outcome, scenario.one(FabricDesign), CATALOG, ("lanes",))) == {"lanes"}
