"""What nobody uses is not kept: functions that only tests call, defaults that every caller overrides."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.house import HOUSE, MODULES, parsed

from datahall.catalog.kinds import KINDS

ROOT = Path(__file__).parents[1]
FOUND_BY_KIND = {f"read_{kind}" for kind in KINDS}
# what nothing spells, and why it is there all the same
UNSPELLED = {
    "__dir__": "Python asks for it",
    "ring_broadcast_time": "the chain of a textbook, beside its tree",
    **dict.fromkeys(FOUND_BY_KIND, "found by its kind"),
}


def spelled() -> Counter[str]:
    """How often the house, its benchmarks and its documents spell each word; docstrings do not count."""
    words: Counter[str] = Counter()
    for page in (ROOT / "docs").rglob("*.md"):
        words.update(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    for path in (
        *MODULES,
        *(file for room in ("docs", "benchmarks", "calibration") for file in (ROOT / room).rglob("*.py")),
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


# what no code of the house loads, and why it is there all the same
KEPT = {
    "answers.schema.schema": "`dh.schema`, which the package finds by name",
    "breakdown.false_nodes": "whoever makes figures asks it what does not hold",
    "events.draws.normal": "docs/events.md builds a simulator on this room",
    "events.trace.digest": "as above",
    "events.trace.num_dropped": "as above",
    "events.phold.hold": "the benchmark by which event queues are compared",
    "fabric.collectives.algorithms.rooted.ring_broadcast_time": "the chain of a textbook, beside its tree",
    "fabric.flows.congestion.headroom_bytes": "the buffer that makes a class lossless, beside its other laws",
    "fabric.routing.paths.hops": "a fabric is asked for hops as for routes and for the number of paths",
    "inference.fleet.response_cache.savings": "docs/serving.md counts what caches save together",
    "inference.step.figure.step_breakdown": "docs/serving.md opens one step",
    **{
        f"power.serving.{law}": "docs/power.md asks what phases draw"
        for law in ("decode_activity", "prefill_activity")
    },
    "power.swing.battery.periodic_need": "docs/site-power.md sizes a store by hand",
    "report.wire.decode": "who keeps an answer as JSON reads it back",
    "serve.telemetry.shipped.shipped": "docs/gateway.md copies the dashboard and the alerts",
    "silicon.roofline.ridge_intensity": "docs/silicon.md says where the roofline bends",
    "training.pipeline.bubble.bubble_fraction": "the textbook's bubble, beside the schedules that leave less",
    "training.pipeline.schedule.problems": "whoever adds a schedule asks it what cannot run",
    **{
        f"training.pipeline.straggler.{law}": "docs/training.md compares laws of stragglers"
        for law in ("gaussian_excess", "slow_share")
    },
    "workload.memory.activation.activation_bytes": "what all layers keep, on one chip, as papers state it",
    "workload.operator.total_weight_bytes": "docs/workload.md compares weights with all that moves",
}


def home_of(path: Path) -> str:
    """A module by its dotted name below `datahall`; a tool beside the house by its own."""
    below = path.relative_to(HOUSE) if path.is_relative_to(HOUSE) else Path(path.name)
    return ".".join(below.with_suffix("").parts).removesuffix("__init__").removesuffix(".")


def loaded(home: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a module uses, each with where it has it from; what it imports and does not use is not among them."""
    bound = {
        one.asname or one.name: ((node.module or "").removeprefix("datahall").lstrip("."), one.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield bound.get(node.id, (home, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            yield ".".join(filter(None, bound[node.value.id])), node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            place = re.fullmatch(r"([a-z_.]+):([a-z_]+)", node.value)  # as the table of verbs names functions
            if place:
                yield from ((place[1], place[2]), (f"answers.{place[1]}", place[2]))


def unloaded(trees: dict[str, ast.Module], of: Iterable[str]) -> set[str]:
    """Public functions of some modules that no module loads, be it from where they are made or from the room's door."""
    seen = {one for home, tree in trees.items() for one in loaded(home, tree)}
    return {
        f"{home}.{node.name}"
        for home in of
        for node in trees[home].body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        and not any((door, node.name) in seen for door in doors(home))
    }  # fmt: skip


# constants that no code loads, and why they are there all the same
KEPT_CONSTANTS = {
    "inference.simulation.state.BOTH": "the first of the roles that a pool has",
    "inference.simulation.state.STATIC": "the second of the ways to batch",
    "serve.telemetry.shipped.ALERTS": "docs/gateway.md copies it",
    "serve.telemetry.shipped.DASHBOARD": "as above",
    **{
        f"validation.{home}": "the ledger finds it by name"
        for home in (
            *(f"{domain}.FORMATS" for domain in ("inference", "kernels", "power", "scheduling", "training")),
            *(f"{domain}.rows.FORMATS" for domain in ("collectives", "reliability", "storage")),
            "inference.NOISE",
            "scheduling.NOTES",
            "storage.rows.NOTES",
        )
    },
}


def targets(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value to."""
    placed = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    yield from (one.id for target in placed for one in ast.walk(target) if isinstance(one, ast.Name))


def unloaded_constants(trees: dict[str, ast.Module], of: Iterable[str]) -> set[str]:
    """Public constants of some modules that no module loads."""
    seen = {one for home, tree in trees.items() for one in loaded(home, tree)}
    return {
        f"{home}.{name}"
        for home in of
        for node in trees[home].body
        for name in targets(node)
        if name.isupper()
        and not name.startswith("_")
        and not any((door, name) in seen for door in doors(home))
    }


def test_a_constant_that_no_code_loads_is_kept_for_a_reason() -> None:
    house, tools = code()
    found = unloaded_constants(house | tools, house)
    assert found == KEPT_CONSTANTS.keys(), "use it, delete it with its tests, or say for whom it is kept"


# fields of structs whose names no code loads, and why they are there all the same; rows that are named tuples are
# read by their place
KEPT_FIELDS = {
    "datapath.cold_start.Load.parts_s": "every part of the way, of which the slowest binds",
    "fabric.flows.simulate.Run.num_solved_flows": "tests count by it what a solve of a part saves",
    "inference.fleet.response_cache.Savings.prefix_fraction": "docs/serving.md counts what caches save together",
    "inference.fleet.response_cache.Savings.response_fraction": "as above",
    "inference.simulation.run.ReplicaUse.free_blocks": "tests see by it that every block comes back",
    "power.account.Energy.step_j": "what a step draws, beside what a token does",
    **{
        f"serve.modelserver.llm.{field}": "given to the engine with the rest of the request"
        for field in (
            *(f"request.ChatRequest.{name}_penalty" for name in ("frequency", "presence")),
            *(f"completion.CompletionRequest.{name}_penalty" for name in ("frequency", "presence")),
            "request.ChatRequest.top_logprobs",
        )
    },
    **{
        f"serve.modelserver.llm.completion.CompletionRequest.{name}_penalty": "as above"
        for name in ("frequency", "presence")
    },
    "serve.modelserver.open_inference.InferenceResponse.model_version": "the protocol has it in every answer",
    "serve.modelserver.predict.HealthResponse.avg_latency_ms": "the lab has it in every answer",
    "validation.training.completion.Document.read_in": "where it is read what a source does not say in its table",
    "workload.memory.activation.SavedTensor.transient": "what a pass frees before backward begins",
    "workload.traffic.shapes.Lognormal.mean_tokens": "read by its place in a match",
    "workload.traffic.shapes.Quantiles.quantile_tokens": "as above",
    "workload.traffic.traffic.TrafficFigures.num_sampled": "how much of a trace its figures are of",
    "workload.traffic.traffic.TrafficFigures.reusable_fraction": "what no cache of prefixes can exceed",
}


def unread(trees: dict[str, ast.Module], of: Iterable[str], text: str = "") -> set[str]:
    """Public fields of classes of some modules whose name no module loads of anything, and no text spells."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    seen = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    seen |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    seen |= set(re.findall(r"\.([a-z]\w*)", text))
    return {
        f"{home}.{made.name}.{name}"
        for home in of
        for made in ast.walk(trees[home])
        if isinstance(made, ast.ClassDef) and "NamedTuple" not in {last_name(base) for base in made.bases}
        for node in made.body
        if isinstance(node, ast.AnnAssign)
        for name in targets(node)
        if not name.startswith("_") and name not in seen
    }


def scripts() -> str:
    """The Python of all pages, and the sources of the studio's, which reads what it is sent."""
    drawn = [path for path in (ROOT / "studio-ui" / "src").rglob("*.ts*") if path.name != "shapes.ts"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return "\n".join(
        [
            script
            for page in pages
            for script in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        ]
        + [path.read_text(encoding="utf-8") for path in drawn]
    )


def test_a_field_that_no_code_reads_is_kept_for_a_reason() -> None:
    house, tools = code()
    found = unread(house | tools, house, scripts())
    assert found == KEPT_FIELDS.keys(), "use it, delete it with its tests, or say for whom it is kept"


@pytest.mark.parametrize(
    ("other", "dead"), [("a.F", False), ("F = 1", True), ("x.f", False), ("'f'", False), ("A(f=1)", True)]
)
def test_a_field_and_a_constant_that_no_code_loads_are_known_when_seen(other: str, dead: bool) -> None:
    trees = {"room.file": ast.parse("class A:\n    f: int"), "other": ast.parse(other)}
    assert (unread(trees, ["room.file"]) == {"room.file.A.f"}) is (dead or "F" in other)
    named = {
        "room.file": ast.parse("F = 1"),
        "other": ast.parse("from datahall.room import file as a\n" + other),
    }
    assert (unloaded_constants(named, ["room.file"]) == {"room.file.F"}) is (other != "a.F")


def doors(home: str) -> Iterator[str]:
    """Where what a module makes can be imported from: the module, and the rooms that it stands in."""
    while home:
        yield home
        home = home.rpartition(".")[0]
    yield ""


def code() -> tuple[dict[str, ast.Module], dict[str, ast.Module]]:
    """The modules of the house, and the tools beside it, by name."""
    tools = {
        f"{room}/{path.stem}": parsed(path)
        for room in ("docs", "benchmarks", "calibration", "release")
        for path in (ROOT / room).rglob("*.py")
    }
    return {home_of(path): parsed(path) for path in MODULES}, tools


def test_what_no_code_loads_is_kept_for_a_reason() -> None:
    """A document that mentions a function, a test that calls it, a room that gives it on are no use of it."""
    house, tools = code()
    found = {one for one in unloaded(house | tools, house) if one.rpartition(".")[2] not in FOUND_BY_KIND}
    assert found == KEPT.keys(), "use it, delete it with its tests, or say for whom it is kept"


@pytest.mark.parametrize(
    ("other", "dead"),
    [
        ("from datahall.room.file import f\nf()", False),
        ("from datahall.room import f\nmap(f, [])", False),
        ("from datahall.room import file\nfile.f()", False),
        ("answer = 'room.file:f'", False),
        ("from datahall.room.file import f\n__all__ = ['f']", True),
        ("from datahall.else_where import f\nf()", True),
        ("'f'", True),
        ("x.f", True),
    ],
)
def test_what_no_code_loads_is_known_when_seen(other: str, dead: bool) -> None:
    trees = {"room.file": ast.parse("def f(): ..."), "other": ast.parse(other)}
    assert unloaded(trees, ["room.file"]) == ({"room.file.f"} if dead else set())


# methods and properties whose names no code loads, and why they are there all the same
KEPT_METHODS = {
    "answer.Answer.save": "who asks in Python keeps the answer",
    "answer.Answer.to_json": "as above",
    "answer.Answer.to_pandas": "as above",
    "cli.command.Question.format_options": "click asks for it",
    "studio.work._Telling.emit": "logging asks for it",
    "cli.command.Question.format_usage": "as above",
    "cli.groups.Root.format_commands": "as above",
    "cli.groups.Verbs.format_commands": "as above",
    **{
        f"serve.http.{side}.{name}": "asyncio calls it"
        for side in ("connection.Connection", "client.outgoing.Outgoing")
        for name in ("connection_made", "connection_lost", "data_received", "eof_received")
    },
    "serve.http.connection.Connection.pause_writing": "as above",
    **{
        f"serve.http.{side}.{name}": "the parser calls it"
        for side in ("reader.Reader", "client.outgoing.Outgoing")
        for name in ("on_message_begin", "on_header", "on_headers_complete", "on_body", "on_message_complete")
    },
    "serve.http.reader.Reader.on_url": "as above",
    "serve.http.exchange.Exchange.gone": "who answers may wait for it",
}


def uncalled(trees: dict[str, ast.Module], of: Iterable[str], text: str = "") -> set[str]:
    """Public methods and properties of classes of some modules whose name no module loads of anything, and no text."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    seen = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    seen |= set(re.findall(r"\.([a-z]\w*)", text))
    return {
        f"{home}.{made.name}.{node.name}"
        for home in of
        for made in ast.walk(trees[home])
        if isinstance(made, ast.ClassDef)
        for node in made.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in seen
    }


def test_a_method_that_no_code_loads_is_kept_for_a_reason() -> None:
    house, tools = code()
    found = uncalled(house | tools, house, scripts())
    assert found == KEPT_METHODS.keys(), "use it, delete it with its tests, or say for whom it is kept"


@pytest.mark.parametrize(
    ("other", "dead"),
    [
        ("x.f()", False),
        ("map(x.f, [])", False),
        ("x.f = 1", True),
        ("f()", True),
        ("'f'", True),
        ("def f(): ...", True),
    ],
)
def test_a_method_that_no_code_loads_is_known_when_seen(other: str, dead: bool) -> None:
    trees = {"room.file": ast.parse("class A:\n    def f(self): ..."), "other": ast.parse(other)}
    assert uncalled(trees, ["room.file"]) == ({"room.file.A.f"} if dead else set())
    assert uncalled(trees, ["room.file"], "print(a.f)") == set()


# numbers that every caller gives and that are kept all the same
KEPT_DEFAULTS = {
    "push": "a queue of events is used by tests of many kinds, most of which have one kind of event",
    "exponential": "all draws take their lane last, and one lane is the usual case",
    "lognormal": "as above",
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
