"""Which layouts can run is one rule: every verb that takes a layout refuses the same ones in the same words."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.answers.claims import garbled

from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.answers.verbs import VERBS
from datahall.catalog import Catalog
from datahall.errors import DatahallError, InfeasibleError
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES, SCHEDULES
from datahall.workload.memory.recompute import RECOMPUTES

SHELF = Catalog(user=False)
TAKE_A_LAYOUT = [
    verb.name
    for verb in VERBS
    if any(one.section == "layout" and not (one.only or one.without) for one in verb.takes)
]
# each input of a layout, with values of which some go together and some do not
VALUES: dict[str, tuple[object, ...]] = {
    "chips": (8, 16, 24),
    "global_batch": (32, 64, 60),
    "tp": (1, 2, 3, 4),
    "pp": (1, 2, 4, 6),
    "vpp": (1, 2, 3),
    "cp": (1, 2),
    "ep": (1, 2, 8),
    "dp": (1, 2, 4),
    "zero": (0, 1, 2, 3),
    "micro_batch": (1, 2, 3),
    "recompute": RECOMPUTES,
    "schedule": SCHEDULES,
    "etp": (0, 1, 2),
    "shard": (0, 1, 2, 3),
    "modules": ("mlp", "core_attn", "moe"),
    "context_exchange": CONTEXT_EXCHANGES,
    "split": ("16 16", "8x4", "9,8"),
    "offload": ("optimizer", "activations"),
    "compress": COMPRESSIONS,
}
MODELS = ("llama-3.1-8b", "qwen3-30b-a3b")
BESIDE = {"simulate run": {"days": 1, "runs": 2}}  # what a verb asks for beside a layout


def drawn(seed: int) -> dict[str, Any]:
    """A layout in which some inputs are said and the others left as they are usual."""
    dice = random.Random(seed)
    said = {name: dice.choice(values) for name, values in VALUES.items() if dice.random() < 0.15}
    return {"model": dice.choice(MODELS), "seq": 2048, "chips": 16, "global_batch": 64, **said}


def verdict(verb: str, given: dict[str, Any]) -> str:
    """Nothing where a verb answers, else what it refuses and how."""
    try:
        ask(verb, {**given, **BESIDE.get(verb, {})}, catalog=SHELF)
    except InfeasibleError:  # whether a legal layout fits is another question
        return ""
    except DatahallError as error:
        return f"{error.field}: {error}".replace(verb, "")
    return ""


def test_both_verbs_of_a_layout_are_asked() -> None:
    assert set(TAKE_A_LAYOUT) == {
        "show memory",
        "simulate train",
        "show power",
        "show checkpoint",
        "simulate run",
    }


@pytest.mark.parametrize("seed", range(120))
def test_every_verb_refuses_the_same_layouts_in_the_same_words(seed: int) -> None:
    given = drawn(seed)
    assert len({verdict(verb, given) for verb in TAKE_A_LAYOUT}) == 1, given


def test_the_layouts_drawn_are_legal_and_not() -> None:
    found = Counter(bool(verdict("show memory", drawn(seed))) for seed in range(120))
    assert min(found[True], found[False]) >= 12


@pytest.mark.parametrize("verb", TAKE_A_LAYOUT)
@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"schedule": "interleaved", "pp": 4}, "vpp"),
        ({"schedule": "interleaved"}, "schedule"),
        ({"schedule": "zb"}, "schedule"),
        ({"schedule": "gpipe", "pp": 1}, "schedule"),
        ({"schedule": "dualpipe", "pp": 1}, "schedule"),
        ({"schedule": "zb", "pp": 4, "vpp": 2}, "schedule"),
    ],
    ids=str,
)
def test_an_order_that_a_pipeline_has_no_use_for_is_refused(
    verb: str, said: dict[str, Any], field: str
) -> None:
    given = {"model": "llama-3.1-8b", "chips": 16, "seq": 2048, "global_batch": 64, **said}
    assert verdict(verb, given).startswith(f"{field}: ")


@pytest.mark.parametrize("verb", TAKE_A_LAYOUT)
def test_the_usual_order_may_be_named_without_a_pipeline(verb: str) -> None:
    given = {"model": "llama-3.1-8b", "chips": 16, "seq": 2048, "global_batch": 64, "schedule": "1f1b"}
    assert verdict(verb, given) == ""


@pytest.mark.parametrize("verb", TAKE_A_LAYOUT)
@pytest.mark.parametrize("name", ["ep", "etp"])
def test_a_model_without_experts_has_one_way_to_share_them(verb: str, name: str) -> None:
    """That one may be said, as any value that an input has anyway; another is refused, in words for both degrees."""
    given: dict[str, Any] = {"model": "llama-3.1-8b", "chips": 16, "seq": 2048, "global_batch": 64}
    usual, said = (
        answer_of(ask(verb, {**one, **BESIDE.get(verb, {})}, catalog=SHELF))
        for one in (given, {**given, name: 1})
    )
    assert {**said.results, "layout": ""} == {**usual.results, "layout": ""}
    assert (
        verdict(verb, {**given, name: 2})
        .split("\n")[0]
        .endswith(f"{name} is 2, but Llama 3.1 8B has no experts")
    )


HEAVY = (
    "numpy",
    "numba",
    "datahall.cluster",
    "datahall.training.step.step",
    "datahall.planner.training.plan",
)


def loaded(verb: str, given: dict[str, Any]) -> str:
    """The heavy rooms that a refusal has loaded."""
    code = (
        "import sys\nfrom datahall.answers.ask import ask\nfrom datahall.errors import DatahallError\n"
        f"try:\n    ask({verb!r}, {given!r})\nexcept DatahallError:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


WRONG: tuple[dict[str, Any], ...] = (
    {"imbalance": 2},
    {"framework": "nobody's"},
    {"precision": "nvfp4", "chip": "h100-sxm"},
)


@pytest.mark.parametrize("verb", TAKE_A_LAYOUT)
@pytest.mark.parametrize(
    "said",
    [
        {"shard": 3},
        {"schedule": "zb"},
        {"ep": 2},
        {"global_batch": 17, "tp": 1},
        {"modules": "moe"},
        *WRONG[1:],
    ],
    ids=str,
)
def test_a_layout_is_refused_before_anything_heavy_is_loaded(verb: str, said: dict[str, Any]) -> None:
    assert loaded(verb, {"model": "llama-3.1-8b", "chips": 16, **said}) == "[]"


@pytest.mark.parametrize(
    "text",
    ["--tensor-model-parallel-size x", "--nothing-of-a-layout 3", "--tensor-model-parallel-size 3"],
    ids=["no number", "no layout", "no divisor"],
)
def test_a_layout_file_is_refused_before_anything_heavy_is_loaded(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.sh"
    path.write_text(text)
    for verb in TAKE_A_LAYOUT:
        assert loaded(verb, {"model": "llama-3.1-8b", "chips": 16, "layout": str(path)}) == "[]"


@pytest.mark.parametrize("said", [*WRONG, {"chips": None}, {"deadline": "30d"}], ids=str)
def test_a_plan_is_refused_before_anything_heavy_is_loaded(said: dict[str, Any]) -> None:
    given = {"model": "llama-3.1-8b", "tokens": "1T", "chips": 16, **said}
    assert loaded("plan train", {name: value for name, value in given.items() if value is not None}) == "[]"


@pytest.mark.parametrize("verb", [*TAKE_A_LAYOUT, "plan train"])
@pytest.mark.parametrize(
    "said",
    [{"on": "nvl72", "chip": "h200"}, {"on": "torus", "nic": "400 Gb/s"}],
    ids=str,
)
def test_a_machine_is_refused_before_the_rooms_that_compute_are_loaded(
    verb: str, said: dict[str, Any]
) -> None:
    given = {"model": "llama-3.1-8b", "chips": 144, **({"tokens": "1T"} if verb == "plan train" else {})}
    assert loaded(verb, given | said) in ("['numpy']", "[]")


@pytest.mark.parametrize("verb", TAKE_A_LAYOUT)
def test_a_chip_that_nobody_published_the_links_of_is_blamed(verb: str) -> None:
    given = {"model": "opt-125m", "chip": "maia-100", "chips": 16, "global_batch": 64}
    assert verdict(verb, given).startswith("chip: ")


def test_one_chip_is_one_chip_in_a_refusal() -> None:
    given = {"model": "llama-3.1-8b", "chips": 1, "global_batch": 64, "tp": 8, "cp": 2, "seq": 2048}
    assert not garbled(verdict("show memory", given))
