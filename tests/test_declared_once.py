"""One declaration, one answer: flags, options, defaults, vocabularies, and what is built, stand in one place each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from tests.house import HOUSE, MODULES, called, each, each_module, inside, parsed, texts

from datahall.answers.ask import form_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS
from datahall.catalog.entries.link import LinkWiring
from datahall.catalog.number_formats import GROUP_SCALED
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.fabric.topology.graph import Shape
from datahall.inference.engine.engine import Engine
from datahall.scenario import words
from datahall.scenario.field import CONCEPTS, fields
from datahall.scenario.sections.deployment import ENGINE

# the table has lines to copy; a launcher's own flags are what `file.py` reads
SPELLS_FLAGS = ("cli/", "answers/verbs.py", "training/layout/file.py")
FLAG = re.compile(r"(?<![\w(-])--[a-z]")


@each([path for path in MODULES if path not in inside(*SPELLS_FLAGS)])
def test_no_flag_is_spelled_but_at_the_command_line(path: Path) -> None:
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if FLAG.search(text)]
    assert not found


def test_those_who_may_spell_flags_do_and_are_on_the_map() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"nothing but (.+?) spells a flag", " ".join(page.split()))
    assert tuple(re.findall(r"`(.+?)`", said)) == SPELLS_FLAGS
    for place in SPELLS_FLAGS:
        assert any(FLAG.search(text) for path in inside(place) for _, text in texts(path)), place


def test_the_folder_of_a_catalogue_has_one_name() -> None:
    """Read by a command and written into the next one, as a flag that is made of it."""
    typed = [path for path in MODULES for _, text in texts(path) if re.search(r"--catalog\b", text)]
    assert typed == []


@pytest.mark.parametrize(
    ("text", "is_flag"),
    [("say --tp 4", True), ("--json", True), ("var(--c1)", False), ("a -- b", False), ("--", False)],
)
def test_a_flag_is_known_when_seen(text: str, is_flag: bool) -> None:
    assert bool(FLAG.search(text)) is is_flag


@each_module
def test_an_option_is_declared_in_one_place(path: Path) -> None:
    """Options of the command line are made from the fields of sections, by one function."""
    if path == HOUSE / "cli" / "command.py":
        return
    options = [name for _, name in called(path) if name in {"click.option", "click.Option", "option.Option"}]
    assert len(options) <= (1 if path == HOUSE / "cli" / "main.py" else 0), "declare it in scenario/"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_no_verb_takes_a_name_twice(verb: Verb) -> None:
    form = form_of(verb.name)  # refuses what stands twice
    names = [
        field.name
        for section in form.sections
        if not CONCEPTS[section].inline
        for field in form.sections[section]
    ]
    assert len(names) == len(set(names))
    assert not set(names) & {concept.name for concept in form.tables}


@pytest.mark.parametrize("section", CONCEPTS)
def test_an_input_is_declared_once_in_its_section(section: str) -> None:
    declared = fields(section)
    assert declared
    for names in ([one.key for one in declared], [one.name for one in declared]):
        assert len(names) == len(set(names))
    for one in declared:
        assert one.kind.help.strip().endswith((".", "…")), f"{one.path}: help is a sentence"
        assert not one.kind.help.startswith(LEANS), f"{one.path}: its help says nothing alone"


def shown_texts(section: str) -> dict[str, set[str]]:
    """The help that some verb shows of each input of a section."""
    found: dict[str, set[str]] = {}
    for verb in VERBS:
        for key, one in form_of(verb.name).of(section).items():
            found.setdefault(key, set()).add(one.kind.help)
    return found


@pytest.mark.parametrize("section", CONCEPTS)
def test_help_that_is_declared_is_shown(section: str) -> None:
    """What every verb replaces by words of its own says nothing to anybody."""
    shown = shown_texts(section)
    assert [one.path for one in fields(section) if one.kind.help not in shown[one.key]] == []


def test_words_that_a_verb_has_of_its_own_are_its_own() -> None:
    for verb in VERBS:
        for section in form_of(verb.name).sections:
            for one in fields(section):
                assert dict(verb.means).get(one.name) != one.kind.help, f"{verb.name}: {one.path}"
    typed = Counter(text for _, text in texts(HOUSE / "answers" / "verbs.py"))
    said = {text for verb in VERBS for _, text in verb.means}
    assert [text for text in said if typed[text] > 1] == [], "type it once"


LEANS = ("…", "The same", "Or ", "And ", "Of ")  # on the help of the input before it
# a default is a constant's value, wherever it is spoken of
TYPED_DEFAULT = re.compile(r"(default:?|else) [\d.]+(?![\w.])|(default:?|else) (bf16|h100-sxm)")


@each(inside("scenario/sections"))
def test_a_default_is_typed_once(path: Path) -> None:
    found = [
        f"{path.relative_to(HOUSE)}:{line} {text!r}"
        for line, text in texts(path)
        if TYPED_DEFAULT.search(text)
    ]
    assert not found, "draw it from the constant"


# what is built from a person's input is built in its own room, by one function; the ledger builds what was measured
MADE_IN = {
    "Replica": ("inference/engine", "validation"),
    "Layout": ("training/layout", "validation"),
    "Cluster": ("cluster", "validation"),
}


@each(MODULES)
def test_replicas_layouts_and_clusters_are_built_in_their_own_room(path: Path) -> None:
    for line, name in called(path):
        place = str(path.relative_to(HOUSE))
        assert place.startswith(MADE_IN.get(name, ("",))), f"{place}:{line} builds a {name}"


DEGREES = {"tp", "pp", "dp", "ep", "cp", "vpp"}
REPLACES = {
    "answers/serving/techniques.py": "the same group one chip wide, which the others are compared with"
}


def replaced(tree: ast.Module) -> list[int]:
    """Lines that make a replica, a layout or a cluster, or the split of one, from another."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func).split(".")[-1] == "replace"
        and (
            ast.unparse(call.args[0]).split(".")[-1] in {name.lower() for name in MADE_IN}
            or {keyword.arg for keyword in call.keywords} & DEGREES
        )
    ]


@each(inside("answers", "cli", "report", "scenario"))
def test_what_a_room_has_built_is_not_changed_where_it_is_worded(path: Path) -> None:
    place = str(path.relative_to(HOUSE))
    assert bool(replaced(parsed(path))) == (place in REPLACES)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("msgspec.structs.replace(replica, tp=2)", [1]),
        ("\nreplace(plan.layout, zero=3)", [2]),
        ("structs.replace(plain, tp=degree)", [1]),
        ("structs.replace(answer, notes=())", []),
        ("text.replace('a', 'b')", []),
    ],
)
def test_a_changed_split_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert replaced(ast.parse(text)) == lines


@each([path for path in MODULES if path != HOUSE / "breakdown.py"])
def test_figures_are_made_by_their_constructors(path: Path) -> None:
    assert not [line for line, name in called(path) if name == "Breakdown"]


# A person's own entries are in the catalogue that was asked with: it is handed down, never loaded again.
MAY_LOAD = ("catalog/", "answers/", "cli/", "validation/")
LOADS = {
    "fabric/collectives/engine_all_reduce.py": "the chip that shipped constants were fitted on",
    "fabric/collectives/system.py": "the same, and callers without a catalogue, e.g. tests",
    "cluster/cluster.py": "callers without a catalogue, e.g. a replica that was given no machine",
}


def loads(tree: ast.Module) -> list[int]:
    """Lines that load the catalogue, under whatever name it was imported."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datahall.catalog")
        for alias in node.names
        if alias.name == "load"
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


@each([path for path in MODULES if path not in inside(*MAY_LOAD)])
def test_a_room_computes_with_the_catalogue_that_was_asked_with(path: Path) -> None:
    place = str(path.relative_to(HOUSE))
    lines = loads(parsed(path))
    assert bool(lines) == (place in LOADS), f"{place} loads the catalogue in lines {lines}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from datahall.catalog import load\nload().chip('x')", [2]),
        ("from datahall.catalog.catalog import load as shelf\n\nshelf()", [3]),
        ("from datahall.fabric.flows.run import load\nload()", []),
    ],
)
def test_loading_is_known_when_seen(text: str, lines: list[int]) -> None:
    assert loads(ast.parse(text)) == lines


# what nothing spells, and why it is there all the same
UNSPELLED = {
    "__dir__": "Python asks for it",
    "ring_broadcast_time": "the chain of a textbook, beside its tree",
    **{
        f"read_{kind}": "found by its kind"
        for kind in ("cable", "chip", "known_fabric", "link", "model", "offer", "reroute", "server", "switch")
    },
}


def spelled() -> Counter[str]:
    """How often the house, its benchmarks and its documents spell each word; docstrings do not count."""
    root = Path(__file__).parents[1]
    words: Counter[str] = Counter()
    for page in (root / "docs").rglob("*.md"):
        words.update(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    for path in (
        *MODULES,
        *(file for room in ("docs", "benchmarks", "calibration") for file in (root / room).rglob("*.py")),
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                node.body[0] = ast.Pass()
        words.update(re.findall(r"\w+", ast.unparse(tree)))
    return words


def test_what_only_tests_call_is_not_kept() -> None:
    """Functions and classes of modules are spelled once where they are made, and again where they are used."""
    words = spelled()
    alone = {
        node.name: str(path.relative_to(HOUSE))
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and words[node.name] < 2
    }
    assert alone.keys() == UNSPELLED.keys(), "delete it with its tests"


def vocabularies() -> dict[tuple[str, ...], str]:
    """The closed vocabularies of `scenario/words.py`, by their words."""
    levels = {"LEVELS": tuple(words.LEVELS), "values of LEVELS": tuple(words.LEVELS.values())}
    return {
        value: name
        for name, value in {**vars(words), **levels}.items()
        if isinstance(value, tuple) and len(value) > 1 and all(isinstance(word, str) for word in value)
    }


# the workload has a word for what it recomputes, and stands above the scenario
SPELLS_WORDS = ("scenario/words.py", "workload/memory/recompute.py")


@each([path for path in MODULES if path not in inside(*SPELLS_WORDS)])
def test_a_closed_vocabulary_is_written_once(path: Path) -> None:
    known = vocabularies()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Tuple | ast.List):
            texts = tuple(one.value for one in node.elts if isinstance(one, ast.Constant))
            whole = len(texts) == len(node.elts)
            assert not (whole and texts in known), (
                f"{path.relative_to(HOUSE)}:{node.lineno} repeats {known[texts]}"
            )


# which inputs say something of a fabric is declared with them, in groups; what a topology has is in its own table
LISTS_WIRING = ("scenario/sections", "answers/verbs.py", "fabric/design/topologies.py")
WIRED = ({"domain", "oversubscription"}, {"radix", "tiers"}, {"sides", "switch"})


@each([path for path in MODULES if path not in inside(*LISTS_WIRING)])
def test_what_is_said_of_a_fabric_is_listed_once(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            words = {one.value for one in node.elts if isinstance(one, ast.Constant)}
            assert not any(some <= words for some in WIRED), f"{path.relative_to(HOUSE)}:{node.lineno}"


SHAPES = {
    node.name: {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    for path in inside("fabric/topology/")
    for node in parsed(path).body
    if isinstance(node, ast.ClassDef) and Shape.__name__ in map(ast.unparse, node.bases)
}
# a tree is an algorithm too, and links of catalogue chips make a mesh or a torus
NAMED = set(words.TOPOLOGIES) - set(words.NCCL_ALGOS) - set(get_args(LinkWiring))


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
    "fabric/collectives/algorithms/dispatch.py": {"all-to-all": "experts and tokens size no other"},
    "fabric/collectives/textbook.py": dict.fromkeys(
        ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"),
        "what textbooks publish of each",
    ),
    "inference/step/exchange.py": {"all-to-all": "a way to bring tokens to experts, not the collective"},
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


# numbers that every caller gives and that are kept all the same
KEPT_DEFAULTS = {
    "push": "a queue of events is used by tests of many kinds, most of which have one kind of event",
    "exponential": "all draws take their lane last, and one lane is the usual case",
    "new_dice": "as above",
    "nvlink_sharp_all_reduce_time": "published forms of one collective stand side by side with the same arguments",
    "system_of": "0 is the chip's own domain, as None is its own NIC",
    "simulate_service": "0 s: no trace is kept",
    "read_trace": "0: all of it, and the format's own blocks",
    "simulate_folded": "0: no grain",
}


def defaults(node: ast.FunctionDef) -> Iterator[tuple[str, int | None]]:
    """Arguments that have a number by default, and their place; none for those that are given by name alone."""
    place = [*node.args.posonlyargs, *node.args.args]
    first, own = len(place) - len(node.args.defaults), int(bool(place) and place[0].arg in {"self", "cls"})
    for index, value in enumerate(node.args.defaults, first):
        if isinstance(value, ast.Constant) and type(value.value) in {int, float}:
            yield place[index].arg, index - own
    for one, named in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if isinstance(named, ast.Constant) and type(named.value) in {int, float}:
            yield one.arg, None


def gives(call: ast.Call, name: str, place: int | None) -> bool:
    """Whether a call says an argument; one that unpacks something may leave it out."""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return False
    return any(one.arg == name for one in call.keywords) or (place is not None and len(call.args) > place)


def last_name(node: ast.AST) -> str:
    """Of a name or of something by a dotted one; "" of all else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def given_by_all(trees: Iterable[ast.AST]) -> set[tuple[str, str]]:
    """Functions and arguments with a default that no call of theirs leaves to it; those that are passed on may."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = Counter(last_name(node) for node in nodes)
    calls: dict[str, list[ast.Call]] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            calls.setdefault(last_name(node.func), []).append(node)
    return {
        (node.name, name)
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("__")  # which are called by other names
        if len(calls.get(node.name, ())) == named[node.name] > 0
        for name, place in defaults(node)
        if all(gives(call, name, place) for call in calls[node.name])
    }


def test_a_default_is_left_to_by_somebody() -> None:
    """What only tests leave out is said twice: by the default, and by every caller."""
    assert {name for name, _ in given_by_all(map(parsed, MODULES))} == KEPT_DEFAULTS.keys(), "let it be said"


@pytest.mark.parametrize(
    ("calls", "dead"),
    [
        ("f(1, b=2)", True),
        ("f(1, 2)", True),
        ("f(1)", False),
        ("f(1, b=2); f(3)", False),
        ("f(1, b=2); map(f, [])", False),
        ("f(*some)", False),
        ("f(1, **some)", False),
        ("", False),
    ],
)
def test_a_dead_default_is_known_when_seen(calls: str, dead: bool) -> None:
    assert bool(given_by_all([ast.parse(f"def f(a, b=2): ...\n{calls}")])) is dead


def test_the_options_of_an_engine_are_declared_once() -> None:
    """A person's options replace the engine's own; verbs take them as a group."""
    options = {field.attribute for field in fields("deployment") if field.kind.group == ENGINE}
    assert options
    assert options <= set(Engine.__struct_fields__)
    taken = {
        verb.name: {field.attribute for field in form_of(verb.name).sections.get("deployment", ())}
        for verb in VERBS
    }
    continuous = {"batching", "wait_s"}  # a closed form is of continuous batching
    for verb, without in (
        ("plan serve", continuous),
        ("show techniques", continuous),
        ("simulate serve", set()),
    ):
        assert options - taken[verb] == without


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.check], ids=lambda verb: verb.name)
def test_what_a_room_refuses_before_it_is_loaded_stands_in_a_file_of_that_name(verb: Verb) -> None:
    """`asked` makes something of what was asked; `early` refuses it."""
    module, _, name = verb.check.partition(":")
    assert module.rpartition(".")[2] == "early"
    assert name.startswith("check_")


# Who may know a scaled format by name: the tables of formats, of precisions and of kernels, what reads the files of
# others, and one engine's habit with the checkpoints of one maker.
KNOW_FORMATS = (
    "catalog/number_formats.py", "workload/precision.py", "silicon/kernel_formats.py", "catalog/huggingface/",
    "training/layout/file.py", "validation/", "inference/step/kernels.py",
)  # fmt: skip


@each([path for path in MODULES if path not in inside(*KNOW_FORMATS)])
def test_a_number_format_is_a_row_of_a_table(path: Path) -> None:
    """What is special of one is asked of its row, so that the next needs no line elsewhere."""
    known = {*GROUP_SCALED, "fp6", "int4"}
    found = [f"{path.relative_to(HOUSE)}:{line} {text!r}" for line, text in texts(path) if text in known]
    assert not found


@each(inside("answers/"))
def test_nothing_is_rounded_before_it_is_drawn(path: Path) -> None:
    """A table goes to files as it is; how many digits a person sees is the report's."""
    assert not [line for line, name in called(path) if name == "round"]
