"""What plans say of failures, spares, storage, power and energy: by hand, and as the verbs of those rooms say it."""

from __future__ import annotations

import json
import random
import re
import shlex
from math import comb, isfinite
from typing import Any

import msgspec
import pytest
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.cli.main import run as command
from datahall.cluster.host import Host
from datahall.datapath.cold_start import Loader
from datahall.datapath.sections.weights import WeightsNeed, loaded, store_of
from datahall.errors import InfeasibleError
from datahall.planner.serving.question import plan_serving
from datahall.power.sections.service import ServicePower
from datahall.power.site import lone_machines
from datahall.reliability.process import Cause, FailureProcess
from datahall.reliability.sections.upkeep import Upkeep
from datahall.scenario.read import read_names
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.units import DAY_S

CATALOG = Catalog(user=False)
TRAINED: dict[str, Any] = {"model": "llama-3.1-70b", "tokens": "2T", "chips": 1024, "chip": "h200-sxm"}
SERVED: dict[str, Any] = {
    "model": "llama-3.1-70b", "users": 3000, "ttft": "1s", "tpot": "50ms", "chips": ["h100-sxm"],
}  # fmt: skip


@pytest.fixture(scope="module")
def trained() -> Answer:
    return dh.plan_train(**TRAINED)


@pytest.fixture(scope="module")
def served() -> Answer:
    return dh.plan_serve(**SERVED)


def followed(plan: Answer, verb: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    line = next(line for line in plan.next_commands if f" {verb} " in line)
    assert command([*shlex.split(line)[1:], "--json"]) == 0, line
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_a_run_over_weeks_is_what_simulate_run_says_of_it(
    trained: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    run = followed(trained, "simulate run", capsys)
    assert number(trained, "ettr_fraction") == pytest.approx(run["closed_form_fraction"], abs=2e-3)
    assert number(trained, "ettr_fraction") == pytest.approx(run["ettr_fraction"], abs=0.01)
    assert number(trained, "elapsed_s") == pytest.approx(run["elapsed_s"], rel=0.02)
    assert number(trained, "num_interruptions") == pytest.approx(run["num_interruptions"], rel=0.05)
    for name in ("mttf_s", "restart_s", "checkpoint_bytes", "num_spares"):
        assert number(trained, name) == pytest.approx(run[name]), name
    assert number(trained, "checkpoint_interval_s") == pytest.approx(run["remote_interval_s"])


def test_its_power_is_what_show_power_says_of_it(trained: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    site = followed(trained, "show power", capsys)
    for name in ("provisioned_w", "site_w", "peak_w", "swing_w", "token_j", "run_j", "run_kg"):
        assert number(trained, name) == pytest.approx(site[name], rel=1e-9), name


def test_the_figures_of_a_run_hang_together(trained: Answer) -> None:
    ettr, elapsed_s = number(trained, "ettr_fraction"), number(trained, "elapsed_s")
    assert ettr < 1.0
    assert elapsed_s * ettr == pytest.approx(number(trained, "duration_s"))
    assert number(trained, "num_interruptions") == pytest.approx(elapsed_s / number(trained, "mttf_s"))
    written_s = number(trained, "checkpoint_bytes") / number(trained, "checkpoint_bytes_per_s")
    assert written_s == pytest.approx(number(trained, "checkpoint_interval_s"), rel=0.02)
    assert number(trained, "dataset_bytes") == 2e12 * 4
    assert number(trained, "read_bytes_per_s") == pytest.approx(4 * number(trained, "tokens_per_s"))
    assert (
        number(trained, "peak_w")
        > number(trained, "site_w")
        > number(trained, "peak_w") - number(trained, "swing_w")
    )
    assert number(trained, "provisioned_w") > number(trained, "peak_w")
    assert number(trained, "run_j") == pytest.approx(
        number(trained, "site_w") * number(trained, "duration_s"),
        rel=1e-9,
    )


def test_a_deadline_is_kept_with_interruptions() -> None:
    asked = {name: value for name, value in TRAINED.items() if name != "chips"}
    on_chips = dh.plan_train(**TRAINED)
    steps_s, elapsed_s = number(on_chips, "duration_s"), number(on_chips, "elapsed_s")
    for late_s in (
        (steps_s + elapsed_s) / 2,
        elapsed_s,
    ):  # half of the runs are done when one is expected to be
        between = dh.plan_train(**asked, deadline=f"{late_s}s")
        assert number(between, "done_s") <= late_s
        assert number(between, "num_chips") > 1024
    limit_s = elapsed_s * 1.02
    after = dh.plan_train(**asked, deadline=f"{limit_s}s")
    assert number(after, "num_chips") <= 1024
    sizes = next(table for table in after.tables if table.title == "chips for the deadline")
    for row in sizes.records():
        late = row["done_s"] is None or float(row["done_s"]) > limit_s  # type: ignore[arg-type]
        assert row["verdict"] == ("too late" if late else "in time")


def test_no_chip_makes_a_figure_that_is_none() -> None:
    finite: list[str] = []
    for chip in CATALOG.chips():
        try:
            plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, chip=chip.name)
        except dh.DatahallError:
            continue
        bad = [
            name for name, value in plan.results.items() if isinstance(value, float) and not isfinite(value)
        ]
        assert not bad, f"{chip.name}: {bad}"
        assert 0.9 < number(plan, "ettr_fraction") < 1.0, chip.name
        finite.append(chip.name)
    assert {"trainium2", "tpu-v7x", "ascend-950dt"} <= set(finite)


def test_power_that_nobody_knows_is_left_out() -> None:
    plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, chip="ascend-950dt")
    assert "site_w" not in plan.results
    assert "elapsed_s" in plan.results
    assert not any(" show power " in line for line in plan.next_commands)
    table = next(one for one in plan.tables if one.title == "over the whole run")
    assert "is not published" in table.note


@pytest.mark.parametrize("chip", ["trainium2", "tpu-v7x"])
def test_a_host_link_that_nobody_published_is_assumed_and_said(chip: str) -> None:
    run = dh.simulate_run(model="llama-3.1-8b", chips=64, chip=chip, days=10, runs=50)
    assert 0.9 < number(run, "ettr_fraction") < 1.0
    copies = dh.show_checkpoint(model="llama-3.1-8b", chips=64, chip=chip)
    assert number(copies, "checkpoint_ettr_fraction") > 0.9
    for answer in (run, copies):
        assert any("12 GB/s are taken" in note for note in answer.notes)


def test_the_figures_of_a_service_hang_together(served: Answer) -> None:
    rest_w, drawn_w, peak_w = (number(served, name) for name in ("rest_w", "site_w", "peak_w"))
    assert 0.0 < rest_w < drawn_w <= peak_w < number(served, "provisioned_w")
    assert number(served, "swing_w") == pytest.approx(peak_w - rest_w)
    assert number(served, "day_j") == pytest.approx(drawn_w * DAY_S)
    tokens_per_s = number(served, "requests_per_s") * number(served, "output_tokens")
    assert number(served, "token_j") == pytest.approx(drawn_w / tokens_per_s)
    replica_chips = number(served, "num_chips") / number(served, "num_replicas")
    per_node = 8 / replica_chips
    own_s = number(served, "mttf_s") * number(served, "num_replicas") / per_node
    assert number(served, "lost_fraction") == pytest.approx(
        number(served, "back_s") / (own_s + number(served, "back_s"))
    )
    assert number(served, "back_s") == pytest.approx(180 + 120 + 300 + number(served, "load_s"))


@pytest.mark.parametrize(
    "how",
    [
        {"users": 1000, "turns": 5, "think": "10s", "chips": ["h100-sxm"]},
        {"users": 500, "turns": 6, "think": "5s", "chips": ["l40s"], "model": "llama-3.1-8b"},
        {"rate": 20, "turns": 8, "isl": 2000, "osl": 200, "chips": ["h100-sxm"]},
        {"rate": 20, "draft": "ngram", "acceptance": "80%", "chips": ["h100-sxm"]},
    ],
)
def test_a_token_takes_the_power_of_the_site_over_the_tokens_that_the_plan_yields(
    how: dict[str, Any],
) -> None:
    plan = dh.plan_serve(**{"model": "llama-3.1-70b", **how})
    tokens_per_s = number(plan, "requests_per_s") * number(plan, "output_tokens")
    assert number(plan, "token_j") == pytest.approx(number(plan, "site_w") / tokens_per_s, rel=1e-6)


def test_what_a_prefix_cache_has_is_not_computed_again_and_draws_nothing() -> None:
    """Eight turns: most of each prompt is there already, and the same chips with a cache that holds none draw more."""
    asked = {"model": "llama-3.1-70b", "rate": 20, "turns": 8, "isl": 2000, "osl": 200, "chips": ["h100-sxm"]}
    scenario = read_names(form_of("plan serve"), asked, CATALOG, bare=True)
    plan = plan_serving(scenario)
    power = plan.part(ServicePower)
    held = plan.chosen.held
    assert held.load.cached > 0.5 * held.load.prompt
    cold = msgspec.structs.replace(held, load=msgspec.structs.replace(held.load, cached=0.0))
    assert power.drawn.value < 0.95 * msgspec.structs.replace(power, held=cold).drawn.value


def test_the_peak_of_a_service_is_never_below_what_it_draws() -> None:
    """Whatever it draws at more load: here with less of it than is asked."""
    plan = plan_serving(read_names(form_of("plan serve"), dict(SERVED), CATALOG, bare=True))
    power = plan.part(ServicePower)
    assert power.chip_w * plan.chosen.num_chips == pytest.approx(power.drawn.value)
    less = msgspec.structs.replace(power, full_rate_per_s=0.1 * power.rate_per_s)
    assert less.peak.value == power.drawn.value > 0.0


def test_replicas_that_stretch_over_a_network_draw_what_it_draws() -> None:
    """A replica of DeepSeek-V3 is two servers of H100; one of an 8B model leaves none, on whatever network."""
    wide = plan_serving(read_names(form_of("plan serve"), {
        "model": "deepseek-v3", "chips": ["h100-sxm"], "on": "fat-tree", "users": 500,
    }, CATALOG, bare=True))  # fmt: skip
    assert wide.chosen.replica.num_chips > 8
    power = wide.part(ServicePower)
    assert power.machines.network.value > 0.0
    alone = msgspec.structs.replace(
        power, machines=lone_machines(wide.chosen.replica.chip, CATALOG, wide.chosen.num_chips)
    )
    assert power.drawn.value > 1.02 * alone.drawn.value
    assert power.provisioned.value > 1.02 * alone.provisioned.value
    narrow = plan_serving(read_names(form_of("plan serve"), {
        "model": "llama-3.1-8b", "chips": ["h100-sxm"], "rate": 50,
    }, CATALOG, bare=True))  # fmt: skip
    assert narrow.part(ServicePower).machines.network.value == 0.0


def test_idle_chips_draw_what_idle_chips_do_and_are_said() -> None:
    """Of 130 chips 128 work: two more are a server more, whose chips all rest: less than one at work."""
    asked = {"model": "llama-3.1-8b", "tokens": "1T", "chip": "h100-sxm"}
    some, all_work = dh.plan_train(**asked, chips=130), dh.plan_train(**asked, chips=128)
    assert number(some, "num_idle_chips") == 2
    assert number(some, "site_w") == pytest.approx(number(all_work, "site_w") + number(some, "idle_w"))
    assert 8 * 110.0 < number(some, "idle_w") < 0.7 * 8 * number(all_work, "site_w") / 128
    assert number(some, "idle_w") < number(some, "idle_provisioned_w")
    assert any("2 idle chips" in str(row) for one in some.tables for row in one.rows)
    assert "idle_w" not in all_work.results


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-8b", "chips": 100},
        {"model": "llama-3.1-8b", "chips": 127, "grid": "sweden"},
        {"model": "llama-3.1-8b", "chips": 130, "on": "fat-tree", "oversubscription": "2:1"},
    ],
)
def test_power_of_a_plan_with_idle_chips_is_what_follows(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dh.plan_train(tokens="1T", **asked)
    assert number(plan, "num_chips") < asked["chips"]
    site = followed(plan, "show power", capsys)
    for name in ("provisioned_w", "site_w", "peak_w", "swing_w", "token_j", "run_j", "run_kg"):
        assert number(plan, name) == pytest.approx(site[name], rel=1e-9), name


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "llama-3.1-405b", "tokens": "2T", "deadline": "15.74d"},
        *(
            {
                "model": draw.choice(("llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b")),
                "tokens": "1T",
                "deadline": f"{draw.uniform(4.0, 60.0):.2f}d",
                "failure_rate": f"{10 ** draw.uniform(-2.5, -0.5):.4f}/node-day",
            }
            for draw in map(random.Random, range(3))
        ),
    ],
)
def test_a_plan_for_a_deadline_is_confirmed_by_what_follows(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """The follow-up keeps the deadline, and as many of its runs are done by it as must be."""
    plan = dh.plan_train(**asked)
    assert "nine of ten runs are done after" in plan.headline
    assert any(" simulate run " in line and "--deadline" in line for line in plan.next_commands)
    run = followed(plan, "simulate run", capsys)  # which exits 0
    assert run["in_time_fraction"] >= 0.9


def test_a_checkpoint_of_a_plan_is_what_follows(trained: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    copies = followed(trained, "show checkpoint", capsys)
    assert number(trained, "checkpoint_bytes") == pytest.approx(copies["checkpoint_bytes"])
    assert number(trained, "checkpoint_interval_s") == pytest.approx(copies["remote_interval_s"])


@pytest.mark.parametrize(
    ("more", "name"), [({"restart": "300d"}, "restart"), ({"storage": "1kB/s"}, "storage")]
)
def test_a_run_that_never_ends_is_a_no_with_a_way_out(
    more: dict[str, Any], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dh.plan_train("llama-3.1-8b", tokens="1T", chips=64, **more)
    assert plan.verdict == "no"
    assert plan.headline.endswith("free.")
    assert f"end with {name}=" in plan.binding
    assert plan.next_commands[0].startswith(
        f"datahall plan train llama-3.1-8b --tokens 1T --chips 64 --{name}"
    )
    for line in plan.next_commands:
        assert command([*shlex.split(line)[1:], "--json"]) == 0, line
    assert "interrupted too often" not in capsys.readouterr().out


def test_a_service_on_a_fabric_is_followed_by_what_failures_take_of_it() -> None:
    plan = dh.plan_serve(**SERVED, on="fat-tree", failures_like="rsc-1")
    (line,) = (line for line in plan.next_commands if " show blast-radius " in line)
    assert "--failures-like rsc-1" in line
    assert f"--chips {plan.results['num_chips']} " in line
    assert command(shlex.split(line)[1:]) == 0


def test_failures_that_bind_a_deadline_are_named_and_what_is_offered_is_enough() -> None:
    asked = {"model": "llama-3.1-8b", "tokens": "100B", "failure_rate": "20/node-day"}
    with pytest.raises(InfeasibleError, match="failures bind: an interruption every") as refused:
        dh.plan_train(**asked, deadline="3d")
    said = str(refused.value)
    assert "global_batch" not in said
    restart, days = (re.search(rf'{name}="([^"]+)"', said)[1] for name in ("restart", "deadline"))  # type: ignore[index]
    assert dh.plan_train(**asked, deadline="3d", restart=restart).verdict == "yes"
    assert dh.plan_train(**asked, deadline=days).verdict == "yes"


def test_a_tier_that_was_named_and_is_left_out_is_said() -> None:
    plan = dh.plan_train("llama-3.1-8b", tokens="1T", chips=64, tier=["local", "remote"])
    assert any("a copy to local NVMe is left out" in note for note in plan.notes)
    assert not any("left out" in note for note in dh.plan_train("llama-3.1-8b", tokens="1T", chips=64).notes)


def test_the_headline_of_a_plan_opens_down_to_its_interruptions(trained: Answer) -> None:
    figure = trained.figure
    assert figure is not None
    assert figure.value == pytest.approx(number(trained, "elapsed_s"), rel=1e-12)
    steps = figure.at("time of the steps").value
    assert steps == pytest.approx(number(trained, "duration_s"), rel=1e-12)
    assert figure.at("closed form").value == pytest.approx(number(trained, "ettr_fraction"), rel=1e-12)


def test_less_load_draws_less(served: Answer) -> None:
    less = dh.plan_serve(**{**SERVED, "users": 1000})
    for name in ("site_w", "provisioned_w", "peak_w", "day_j"):
        assert number(less, name) < 0.5 * number(served, name)


def test_replicas_that_are_down_by_hand() -> None:
    """100 nodes of two replicas, one failure in 50 node-days, back after half a day: a node is down 0.5 of 50.5 d."""
    cause = Cause(
        name="all", component="gpu", rate_per_node_day=0.02, repair_fraction=0.0, repair_median_s=0.0,
        repair_sigma=0.0, survives="remote",
    )  # fmt: skip
    process = FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(cause,), num_nodes=100, num_node_chips=8
    )
    upkeep = Upkeep(
        process=process, num_replicas=200, num_lost=2,
        back_s=0.5 * DAY_S, rates=FailureRates(enough_fraction=0.95),
    )  # fmt: skip
    assert upkeep.mttf_s == pytest.approx(0.5 * DAY_S)
    assert upkeep.lost_fraction == pytest.approx(0.5 / 50.5)
    # of 102 nodes P(Bin ≤ 2) = 0.919, of 103 P(Bin ≤ 3) = 0.980; each takes two replicas
    chance = sum(comb(103, n) * (0.5 / 50.5) ** n * (50 / 50.5) ** (103 - n) for n in range(4))
    assert upkeep.more_replicas is not None
    assert upkeep.more_replicas.num == 6
    assert upkeep.more_replicas.enough_fraction == pytest.approx(chance)
    assert upkeep.spares.num == 0
    longer = msgspec.structs.replace(upkeep, back_s=150 * DAY_S)
    assert longer.lost_fraction == pytest.approx(0.75)
    assert longer.more_replicas is not None
    assert 2 * 300 < longer.more_replicas.num < 2 * 400
    for_ever = msgspec.structs.replace(upkeep, back_s=50_000_000 * DAY_S)
    assert for_ever.lost_fraction < 1.0
    assert for_ever.more_replicas is None


def test_what_takes_a_rack_takes_each_of_its_nodes() -> None:
    """Nodes that fail once in 100 days, and racks of 10 of them once in 100: a replica of one node in 50."""
    one = Cause(
        name="one", component="gpu", rate_per_node_day=0.01, repair_fraction=0.0, repair_median_s=0.0,
        repair_sigma=0.0, survives="remote",
    )  # fmt: skip
    rack = msgspec.structs.replace(one, rate_per_node_day=0.001, num_nodes_lost=10)
    process = FailureProcess(
        preset=CATALOG.failure_preset("llama-3"), causes=(one, rack), num_nodes=100, num_node_chips=8
    )
    service = Upkeep(process=process, num_replicas=100, num_lost=1, back_s=DAY_S, rates=FailureRates())
    assert service.own_mttf_s == pytest.approx(50 * DAY_S)
    wide = msgspec.structs.replace(service, num_replicas=10)
    assert wide.own_mttf_s == pytest.approx(DAY_S / 0.11)


def test_a_service_that_restarts_for_ever_is_a_no() -> None:
    asked = {"model": "llama-3.1-8b", "rate": 50, "chips": ["h100-sxm"]}
    long = dh.plan_serve(**asked, restart="300d")
    assert 0.2 < number(long, "lost_fraction") < 0.4, "2 chips fail less often than a whole node"
    assert long.verdict == "yes"
    never = dh.plan_serve(**asked, restart="36500d", failure_rate=100)
    assert (never.verdict, never.results["num_more_replicas"]) == ("no", None)
    assert "no number of replicas" in never.binding


def test_weights_are_read_through_what_there_is() -> None:
    drives = Host(link_bytes_per_s=50e9, nvme_bytes=1e12, nvme_bytes_per_s=5e9)
    shelf = Catalog(user=False)
    wide = Loader(num_chips=8, num_readers=2, nic_bytes_per_s=50e9, copy_bytes_per_s=50e9)

    def need(host: Host) -> WeightsNeed:
        return loaded(wide, store_of(host, 8, 40e9, shelf), 40e9, 4)

    found = need(drives)
    assert (found.load_s, found.replica_bytes, found.on_drives) == (pytest.approx(8.0), 160e9, True)
    full = need(Host(link_bytes_per_s=50e9, nvme_bytes=10e9, nvme_bytes_per_s=5e9))
    assert (full.load_s, full.on_drives) == (320.0, False)
    assert need(Host()).load_s == 320.0


def test_a_network_that_nobody_sells_leaves_power_out_and_not_the_plan() -> None:
    plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, nic="1600Gb/s")
    assert "site_w" not in plan.results
    assert "elapsed_s" in plan.results


PLANS = {
    "train": (dh.plan_train, {"model": "llama-3.1-8b", "tokens": "1T", "chips": 256}),
    "serve": (dh.plan_serve, {"model": "llama-3.1-8b", "rate": 50, "chips": ["h100-sxm"]}),
}


@pytest.mark.parametrize("kind", PLANS)
def test_plans_take_other_failures_restarts_and_sites(kind: str) -> None:
    """Half the rate is twice the time between failures; carbon follows the grid, and power the PUE."""
    plan, asked = PLANS[kind]
    usual = plan(**asked)
    often, half = (plan(**asked, failure_rate=rate) for rate in ("0.02/node-day", "0.01/node-day"))
    assert number(half, "mttf_s") == pytest.approx(2 * number(often, "mttf_s"))
    carbon = "run_kg" if kind == "train" else "day_kg"
    north = plan(**asked, grid="sweden")
    assert number(north, "site_w") == number(usual, "site_w")
    assert 0.0 < number(north, carbon) < 0.3 * number(usual, carbon)
    one, two = (plan(**asked, pue=pue) for pue in (1.1, 1.65))
    assert number(two, "site_w") == pytest.approx(1.5 * number(one, "site_w"), rel=1e-3)
    slow = plan(**asked, restart="2h")
    restart = "restart_s" if kind == "train" else "back_s"
    assert number(slow, restart) == 7200.0
    assert {"detect_s", "facility", "grid"} <= set(usual.inputs) | set(usual.defaults)


def test_notes_say_whose_failures_and_how_often() -> None:
    def note(**more: Any) -> str:
        plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, **more)
        return next(one.note for one in plan.tables if one.title == "over the whole run")

    assert "failures as often as in Llama 3" in note()
    assert "failures as often as in Meta RSC-1" in note(failures_like="rsc-1")
    assert "failures of the kinds in Llama 3 405B pre-training, 0.02/node-day" in note(
        failure_rate="0.02/node-day"
    )


def test_the_site_of_a_plan_with_idle_chips_on_a_failed_machine_is_said_by_the_plan_alone() -> None:
    """`show power` knows no failures, and of the chips at work it would say less than the plan."""
    plan = dh.plan_train(model="llama-3.1-8b", tokens="1T", chips=64, on="fat-tree", failure=[{"chips": [3]}])
    assert number(plan, "num_idle_chips") > 0
    assert number(plan, "site_w") > 0
    assert not any("show power" in one for one in plan.next_commands)
