"""Facts are asked of a row in a table, or of an object, and not by its name: the next one needs no edit elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest
from tests.house import HOUSE, MODULES, each, each_module, inside, parsed, texts

from datahall.catalog.entries.network.link import LinkWiring
from datahall.catalog.entries.offer import PRICE_KINDS, PriceKind
from datahall.catalog.number_formats import GROUP_SCALED
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.topology.graph import Shape
from datahall.inference.engine.engine import engines
from datahall.inference.step.kernels import FUSED
from datahall.scenario import words
from datahall.training.pipeline.table import ORDERS
from datahall.training.step.framework import frameworks

SHAPES = {
    node.name: {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    for path in inside("fabric/topology/")
    for node in parsed(path).body
    if isinstance(node, ast.ClassDef) and Shape.__name__ in map(ast.unparse, node.bases)
}
# a tree is an algorithm too, and links of catalogue chips make a mesh or a torus
NAMED = set(words.TOPOLOGIES) - set(words.NCCL_ALGOS) - set(get_args(LinkWiring))


@pytest.mark.parametrize(
    "kind", [one for one in PRICE_KINDS.values() if one.reserved], ids=lambda kind: kind.word
)
def test_a_kind_of_price_is_a_row_of_one_table(kind: PriceKind) -> None:
    """Words, titles, keys of results and what leads are drawn from it: two years need no edit elsewhere."""
    said = {kind.word, kind.key, f"{kind.key}_usd_per_hour", kind.called}
    named = [path for path in MODULES if said & {text for _, text in texts(path)}]
    assert named == [HOUSE / "catalog/entries/offer.py"]


def asks_which_shape(tree: ast.AST) -> list[int]:
    """Lines that ask for the class of a shape, for what only some classes have, or for the name of a topology."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                asks = any(isinstance(one, ast.Name) and one.id in SHAPES for one in ast.walk(kinds))
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[ast.Attribute(attr="shape"), *_]):
                asks = True
            case ast.MatchClass(cls=ast.Name(id=name)):
                asks = name in SHAPES
            case ast.MatchValue(value=ast.Constant(value=str() as word)):
                asks = word in NAMED
            case ast.Compare():
                ends = [one for end in (node.left, *node.comparators) for one in ast.walk(end)]
                asks = any(isinstance(one, ast.Constant) and one.value in NAMED for one in ends)
            case _:
                continue
        found += [node.cls.lineno if isinstance(node, ast.MatchClass) else node.lineno] if asks else []  # type: ignore[attr-defined]
    return found


@each_module
def test_nobody_asks_which_shape_a_fabric_has(path: Path) -> None:
    """The shape answers, in `fabric/topology/`, and the row of its topology: the next one needs no edit elsewhere."""
    assert asks_which_shape(parsed(path)) == []


@each([path for path in MODULES if path not in inside("fabric/topology/")])
def test_shapes_are_known_to_those_who_build_them(path: Path) -> None:
    named = {node.id for node in ast.walk(parsed(path)) if isinstance(node, ast.Name)}
    assert named & SHAPES.keys() == set()


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("isinstance(shape, Torus)", True),
        ("isinstance(shape, (int, Dragonfly | HyperX))", True),
        ('getattr(fabric.shape, "sides", ())', True),
        ("match shape:\n    case FoldedClos():\n        pass", True),
        ('match kind:\n    case "hgx" | "nvl72":\n        pass', True),
        ('kind.name == "tpu-pod"', True),
        ('name in {"rail-only", "fat-tree"}', True),
        ('algorithm == "tree"', False),
        ("isinstance(operator.shape, Gemm)", False),
        ("getattr(shape, name)", False),
        ("fabric.traits.grid == ()", False),
    ],
)
def test_asking_for_a_shape_is_known_when_seen(text: str, asks: bool) -> None:
    assert bool(asks_which_shape(ast.parse(text))) is asks


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_answers_what_has_no_usual_answer(shape: str) -> None:
    wanted = {name for name, value in vars(Shape).items() if getattr(value, "__isabstractmethod__", False)}
    assert {"paths", "parts_of"} <= wanted <= SHAPES[shape]


# the tables of collectives: their words, what each moves, what runs it, and what it sends message by message
COLLECTIVE_TABLES = (
    "scenario/words.py", "fabric/collectives/algorithms/moves.py", "fabric/collectives/algorithms/table.py",
    "fabric/collectives/algorithms/steps.py",
)  # fmt: skip
# a word that is meant as such, where no trait of its row would say it, and why
MEANT = {
    "cluster/collective.py": {"all-reduce": "its two phases are counted for the reader"},
    "fabric/collectives/algorithms/early.py": {"all-to-all": "experts and tokens size no other"},
    "fabric/collectives/textbook.py": dict.fromkeys(
        ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"),
        "what textbooks publish of each",
    ),
    "inference/step/exchange.py": {"all-to-all": "a way to bring tokens to experts, not the collective"},
    "planner/artefacts/serving/vllm.py": {
        "all-to-all": "a way to bring tokens to experts, not the collective"
    },
    "planner/artefacts/training/megatron.py": {"all-to-all": "a way to cut sequences, not the collective"},
    "training/layout/legality.py": {"all-to-all": "a way to cut sequences, not the collective"},
    "validation/collectives/run.py": {"all-reduce": "kernels of NCCL's that were measured of it alone"},
    "validation/inference/names.py": {"all-to-all": "a way to bring tokens to experts, not the collective"},
}


def asks_which_collective(tree: ast.AST) -> set[tuple[int, str]]:
    """Lines that compare with a collective by its word, look something up by it, or list some collectives."""

    def listed(nodes: Iterable[ast.expr | None]) -> list[str]:
        said = [one.value if isinstance(one, ast.Constant) else None for one in nodes]
        return [word for word in said if isinstance(word, str)] if set(said) <= set(words.COLLECTIVES) else []

    found: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        asked: list[str] = []
        match node:
            case ast.Compare():
                for end in (node.left, *node.comparators):
                    several = end.elts if isinstance(end, ast.Tuple | ast.List | ast.Set) else [end]
                    asked += [word for one in several for word in listed([one])]
            case ast.MatchValue(value=one) | ast.Subscript(slice=one):
                asked = listed([one])
            case ast.Call(func=ast.Attribute(attr="get" | "startswith" | "endswith"), args=[one, *_]):
                asked = listed([one])
            case ast.Dict(keys=keys):
                asked = listed(keys)
            case ast.Set(elts=elts):
                asked = listed(elts)
            case ast.Assign(value=some) | ast.AnnAssign(value=some):
                asked = listed(some.elts) if isinstance(some, ast.Tuple | ast.List) else []
            case _:
                continue
        found |= {
            (node.value.lineno if isinstance(node, ast.MatchValue) else node.lineno, word) for word in asked
        }  # type: ignore[attr-defined]
    return found


@each([path for path in MODULES if path not in inside(*COLLECTIVE_TABLES)])
def test_nobody_asks_which_collective_runs_where_its_row_says_why_that_matters(path: Path) -> None:
    """The next collective that is unlike the others in the same way needs a row in `MOVES`, and no edit elsewhere."""
    found = asks_which_collective(parsed(path))
    meant = MEANT.get(str(path.relative_to(HOUSE)), {})
    assert {word for _, word in found} == meant.keys(), sorted(found)


def test_a_collective_that_stands_for_another_is_nowhere_meant_by_its_word() -> None:
    special = {name for name, row in MOVES.items() if not row.is_sized}
    assert special
    assert not [path for path, meant in MEANT.items() if special & meant.keys()]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('kind == "barrier"', {"barrier"}),
        ('"barrier" != choice.collective', {"barrier"}),
        ('kind in {"all-reduce", "reduce-scatter"}', {"all-reduce", "reduce-scatter"}),
        ('kind in ("broadcast", other)', {"broadcast"}),
        ('match kind:\n    case "send-recv" | "reduce":\n        pass', {"send-recv", "reduce"}),
        ('REDUCING = {"all-reduce"}', {"all-reduce"}),
        ('RINGS = ("all-gather", "reduce-scatter")', {"all-gather", "reduce-scatter"}),
        ('RINGS: tuple[Collective, ...] = ("all-gather",)', {"all-gather"}),
        ('STEPS = {"all-reduce": 2.0, "all-gather": 1.0}', {"all-reduce", "all-gather"}),
        ('SPECIAL.get("barrier", 1)', {"barrier"}),
        ('MOVES["barrier"]', {"barrier"}),
        ('time(system, "all-reduce", size)', set()),
        ('share(Sends("all-reduce")) > 0', set()),
        ('costs = {"barrier": 1.0, "message": 2.0}', set()),
        ('for kind in ("all-gather", "reduce-scatter"):\n    pass', set()),
        ('MOVES[kind].on_torus == "bisection"', set()),
    ],
)
def test_asking_for_a_collective_is_known_when_seen(text: str, asked: set[str]) -> None:
    assert {word for _, word in asks_which_collective(ast.parse(text))} == asked


# the words, the two that are usual, and the table whose rows say all of one
KNOW_SCHEDULES = ("scenario/words.py", "scenario/sections/training.py", "training/pipeline/table.py")


@each([path for path in MODULES if path not in inside(*KNOW_SCHEDULES)])
def test_a_schedule_is_a_row_of_a_table(path: Path) -> None:
    """Who asks how many copies of its parameters a stage holds, or what idles, asks the row and not the name."""
    found = [
        f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if text in words.SCHEDULES
    ]
    assert not found


def test_every_schedule_has_a_row() -> None:
    assert tuple(ORDERS) == words.SCHEDULES


# inputs and their samples, launchers' files, read and written, the rows of memory that entries name, and who ran what
# was published
KNOW_FRAMEWORKS = (
    "scenario/", "training/layout/file.py", "planner/artefacts/", "training/memory/bookkeeping.py",
    "validation/training/sources.py",
)  # fmt: skip


@each([path for path in MODULES if path not in inside(*KNOW_FRAMEWORKS)])
def test_a_framework_is_an_entry_of_its_data(path: Path) -> None:
    """What is its own is a field of the entry, so that one that is like another says so and is treated alike."""
    known = frameworks().keys() - {"eager", "compiled"}  # which are styles of kernels too
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if text in known]
    assert not found


def asks_for_its_name(tree: ast.AST, of: str) -> list[int]:
    """Lines that compare the name of such an object, or look something up by it."""
    named = f"{of}.name"
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Compare) and named in map(ast.unparse, (node.left, *node.comparators)))
        or (isinstance(node, ast.Subscript) and ast.unparse(node.slice) == named)
    ]


@each_module
def test_nothing_is_looked_up_by_the_name_of_a_framework(path: Path) -> None:
    found = asks_for_its_name(parsed(path), "framework") + asks_for_its_name(parsed(path), "kit")
    assert found == []


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("BOOKS[framework.name]", True),
        ("framework.name in BOOKS", True),
        ('"nemo" == framework.name', True),
        ("BOOKS[framework.books]", False),
        ("title(framework.name)", False),
    ],
)
def test_a_look_by_name_is_known_when_seen(text: str, asks: bool) -> None:
    assert bool(asks_for_its_name(ast.parse(text), "framework")) is asks


# inputs and their samples, whose kernels stand in for others', what each stack fuses, the ledger, a format of traces,
# and what each engine is started with
KNOW_ENGINES = (
    "scenario/", "silicon/calibration.py", "inference/step/kernels.py", "validation/",
    "workload/traffic/recorded/trace_format.py", "planner/artefacts/",
    "serve/config/planned.py",  # as those files
)  # fmt: skip


@each([path for path in MODULES if path not in inside(*KNOW_ENGINES)])
def test_an_engine_is_an_entry_of_its_data(path: Path) -> None:
    """What is its own is a field of the entry, or a set of measured constants."""
    known = set(words.ENGINES) - set(words.BATCHING)  # those two are ways to batch as well
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if text in known]
    assert not found


def test_what_is_fused_is_said_of_stacks_that_engines_run() -> None:
    assert FUSED.keys() <= {one.stack for one in engines().values()}


# Who may know a scaled format by name: the tables of formats, of precisions and of kernels, what reads and writes the
# files of others, and one engine's habit with the checkpoints of one maker.
KNOW_FORMATS = (
    "catalog/number_formats.py", "workload/precision.py", "silicon/kernel_formats.py", "catalog/huggingface/",
    "training/layout/file.py", "planner/artefacts/", "validation/", "inference/step/kernels.py",
)  # fmt: skip


@each([path for path in MODULES if path not in inside(*KNOW_FORMATS)])
def test_a_number_format_is_a_row_of_a_table(path: Path) -> None:
    """What is special of one is asked of its row, so that the next needs no line elsewhere."""
    known = {*GROUP_SCALED, "fp6", "int4"}
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if text in known]
    assert not found


QUEUES = inside("scheduling/") + inside("answers/scheduling/") + inside("scenario/sections/operations/")


@each(QUEUES)
def test_nobody_asks_which_policy_a_queue_has(path: Path) -> None:
    """Its row in `RULES` answers, or a list beside its word: the next one needs no edit elsewhere."""
    asks = [
        node.lineno
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Compare)
        for end in (node.left, *node.comparators)
        for one in (end, *getattr(end, "elts", ()))
        if isinstance(one, ast.Constant) and one.value in words.QUEUE_POLICIES
    ]
    assert asks == []
