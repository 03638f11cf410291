"""The ladder of serving techniques: each alone, then the best beside the best."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from math import isnan, nan, prod

import msgspec
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import DatahallError, InfeasibleError
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.ladder.climb import BATCHES, WORTH, Ladder, gain_figure, ladder
from datahall.inference.ladder.techniques import GROUPS, Effect, Setting, Technique
from datahall.scenario.sections.wanted.promise import Promise

SLO = Promise(ttft_s=1.0, tpot_s=0.05)
LOAD = Load(prompt=1000.0, output=250.0)
DRAFT = Speculation(num_draft=3, acceptance=0.7, draft="ngram")


def climbed(
    shelf: Catalog,
    model: str = "llama-3.1-8b",
    chip: str = "h100-sxm",
    *,
    engine: str = "vllm",
    rate: float = 2.0,
    cached: float = 0.5,
    slo: Promise = SLO,
    tp: int | None = None,
) -> Ladder:
    entry = shelf.chip(chip)
    replica = Replica(model=shelf.model(model), chip=entry, engine=engine_on(engine, entry))
    return ladder(replica, LOAD, slo, rate, cached=cached, speculation=DRAFT, tp=tp)


@pytest.fixture(scope="module")
def found(shelf: Catalog) -> Ladder:
    return climbed(shelf)


def test_a_further_technique_is_taken_while_a_chip_holds_more_by_it(found: Ladder) -> None:
    held = [found.reference.held_per_s, *(step.held_per_s for step in found.together)]
    assert len(held) > 2
    assert all(after > WORTH * before for before, after in pairwise(held))
    assert found.final is found.together[-1]


def test_the_first_step_is_the_best_technique_alone(found: Ladder) -> None:
    best = max((one for one in found.alone if not isnan(one.held_per_s)), key=lambda one: one.held_per_s)
    assert found.together[0].name == best.name
    assert found.together[0].held_per_s == best.held_per_s


def test_no_technique_is_taken_twice_and_weights_have_one_format(found: Ladder) -> None:
    names = [step.name for step in found.together]
    assert len(names) == len(set(names))
    assert sum("weights" in name for name in names) == 1


def test_no_input_changes_the_name_of_a_technique_and_no_two_share_one(shelf: Catalog) -> None:
    for chip in ("h100-sxm", "b200", "mi355x", "a100-sxm-80gb"):
        some, others = (
            climbed(shelf, chip=chip, rate=rate, cached=share) for rate, share in ((0.2, 0.5), (0.1, 0.8))
        )
        names = [one.name for one in some.alone]
        assert names == [one.name for one in others.alone]
        assert len(set(names)) == len(names)
    assert {one.title for one in some.alone} > {
        "prefix cache (50 % found)",
        "speculation (ngram, 3 drafted, 70 % kept)",
    }


def test_batching_is_measured_against_one_request_at_a_time(found: Ladder) -> None:
    assert found.without[0].name == "one request at a time"
    assert found.batching_ratio == found.reference.most_per_s / found.without[0].most_per_s > 5.0


def test_without_batching_a_chip_serves_one_answer_after_the_other(shelf: Catalog) -> None:
    alone = climbed(shelf, rate=0.01).without[0]
    stay_s = alone.ttft_s + LOAD.output * alone.tpot_s
    # Little: no more than one is ever there, but that the TPOT has prompts in it that would come in between
    assert 0.85 < alone.most_per_s * stay_s <= 1.04


def test_what_an_engine_has_is_taken_away_and_what_it_lacks_is_offered(found: Ladder) -> None:
    assert [one.name for one in found.without] == [
        "one request at a time",
        "without chunked prefill",
        "without a KV cache",
        "contiguous cache",
        "without graphs",
    ]
    assert "chunked prefill" not in {one.name for one in found.alone}


def test_graphs_are_shown_to_fade(found: Ladder) -> None:
    assert [batch for batch, _ in found.graphs_ratio] == list(BATCHES)
    ratios = [ratio for _, ratio in found.graphs_ratio]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > ratios[-1] >= 1.0


def test_no_cache_is_the_worst_of_all(found: Ladder) -> None:
    least = min(found.without, key=lambda one: one.most_per_s)
    assert least.name == "without a KV cache"


def test_speculation_is_shown_to_fade(found: Ladder) -> None:
    assert [batch for batch, _ in found.speculation_ratio] == list(BATCHES)
    ratios = [ratio for _, ratio in found.speculation_ratio]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 1.5


def test_formats_are_those_the_chip_computes_in(shelf: Catalog, found: Ladder) -> None:
    def formats(climb: Ladder) -> set[str]:
        return {one.name.split()[0] for one in climb.alone if "activations" in one.name}

    assert formats(found) == {"fp8"}
    assert formats(climbed(shelf, chip="a100-sxm-80gb")) == set()
    assert formats(climbed(shelf, chip="b200")) == {"fp8", "nvfp4"}


def test_nothing_found_in_the_cache_is_nothing_gained(shelf: Catalog) -> None:
    none = climbed(shelf, cached=0.0)
    prefix = next(one for one in none.alone if one.name.startswith("prefix cache"))
    assert isnan(prefix.held_per_s)
    assert prefix.note == "already so"
    assert all(not step.name.startswith("prefix cache") for step in none.together)


def test_the_group_is_the_smallest_that_holds_the_rate(shelf: Catalog) -> None:
    held = climbed(shelf, tp=1).reference.held_per_s
    assert [climbed(shelf, rate=rate).setting.replica.tp for rate in (0.1, 0.99 * held)] == [1, 1]
    above = climbed(shelf, rate=1.01 * held)
    assert above.setting.replica.tp == 2
    assert above.reference.held_per_s * 2 >= 1.01 * held


def test_a_group_that_was_asked_for_is_kept_though_it_holds_less(shelf: Catalog) -> None:
    asked = climbed(shelf, rate=1000.0, tp=2)
    assert asked.setting.replica.tp == 2
    assert asked.reference.note.startswith("unstable")


def test_a_rate_that_no_group_holds_is_refused_with_what_would_help(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError, match="no group of up to 16 × h100-sxm serves") as refused:
        climbed(shelf, rate=1e5)
    assert "rate" in refused.value.hint
    with pytest.raises(InfeasibleError, match="tp 1 on h100-sxm"):
        climbed(shelf, "llama-3.1-70b", tp=1)


def test_a_group_that_does_not_divide_the_heads_is_refused(shelf: Catalog) -> None:
    with pytest.raises(DatahallError, match="3"):
        climbed(shelf, tp=3)


def test_the_refusal_offers_the_rate_that_the_best_group_holds(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError) as refused:
        climbed(shelf, rate=1e5)
    offered = re.search(r"⟦rate=([\d.]+)⟧", refused.value.hint)
    assert offered is not None
    assert climbed(shelf, rate=float(offered[1])).setting.replica.tp in GROUPS
    with pytest.raises(InfeasibleError):
        climbed(shelf, rate=1.02 * float(offered[1]))


def test_groups_double(shelf: Catalog) -> None:
    assert all(after == 2 * before for before, after in pairwise(GROUPS))
    assert GROUPS[0] == 1
    assert climbed(shelf, "llama-3.1-70b").setting.replica.tp == 4


@pytest.mark.parametrize(
    ("gains", "taken"),
    [
        ({"fp8 weights": 2.0, "int4 weights": 1.9, "prefix cache": 1.2}, ["fp8 weights", "prefix cache"]),
        ({"prefix cache": 1.2, "8-bit cache": 1.3, "disaggregation": 0.9}, ["8-bit cache", "prefix cache"]),
        ({"prefix cache": 1.009, "8-bit cache": 1.02}, ["8-bit cache"]),
        ({"prefix cache": 1.0}, []),
        ({"prefix cache": 1.5, "speculation": None}, ["prefix cache"]),
    ],
)
def test_the_best_beside_the_best(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch, gains: dict[str, float | None], taken: list[str]
) -> None:
    """Gains that multiply: the largest comes first, one format of the weights, none below one in a hundred."""

    def technique(gain: float | None) -> Callable[[Setting], Setting | None]:
        def apply(setting: Setting) -> Setting | None:
            if gain is None:
                return None
            load = msgspec.structs.replace(setting.load, prompt=setting.load.prompt * gain)
            return msgspec.structs.replace(setting, load=load)

        return apply

    def held(name: str, setting: Setting | None, *_: object) -> Effect:
        return Effect(name=name, held_per_s=setting.load.prompt if setting else nan, ttft_s=0.1, tpot_s=0.01)

    techniques = tuple(
        Technique(name=name, change=technique(gain), weighs="weights" in name) for name, gain in gains.items()
    )
    for module in ("climb", "techniques"):
        monkeypatch.setattr(f"datahall.inference.ladder.{module}.effect", held)
    monkeypatch.setattr("datahall.inference.ladder.climb._techniques", lambda *_: techniques)
    found = climbed(shelf, tp=1)
    assert [step.name for step in found.together] == taken
    assert found.final.held_per_s == pytest.approx(LOAD.prompt * prod(gains[name] or 1.0 for name in taken))


def test_limits_that_nothing_keeps_are_refused(shelf: Catalog) -> None:
    with pytest.raises(InfeasibleError):
        climbed(shelf, slo=Promise(ttft_s=1.0, tpot_s=1e-5))


@pytest.mark.parametrize(
    ("model", "chip", "rate"), [("llama-3.1-8b", "h100-sxm", 2.0), ("llama-3.1-70b", "h200-sxm", 5.0)]
)
def test_the_gain_opens_down_to_the_step_that_ends_it(
    shelf: Catalog, model: str, chip: str, rate: float
) -> None:
    """Both sides are what a chip holds, found as a plan finds it; pools of prompts and answers add up."""
    found = climbed(shelf, model, chip, rate=rate)
    figure = gain_figure(found)
    assert not false_nodes(figure)
    assert figure.value == pytest.approx(found.gain_of(found.final))
    reached, before = figure.parts
    assert {reached.unit, before.unit} == {"requests/s"}
    assert before.value == pytest.approx(found.reference.held_per_s)
    for side in (reached, before):
        nodes = [node for _, node in side.walk()]
        assert any(node.operation == "solved" for node in nodes)
        assert any(node.name.startswith("step of") for node in nodes)
        assert any(node.name == "memory bandwidth" and node.origin == "fact" for node in nodes)
