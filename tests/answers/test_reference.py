"""What is drawn from the declarations: the stub, the reference page, the JSON Schema of a question."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import datahall
from datahall.answers.ask import form_of
from datahall.answers.functions import documentation, signature, stub
from datahall.answers.reference import allowed, reference
from datahall.answers.verb import Verb
from datahall.answers.verbs import BY_NAME, VERBS
from datahall.catalog import load
from datahall.cli.command import completer
from datahall.scenario.field import CONCEPTS, fields
from datahall.scenario.kinds import Kind, Listed, Reading
from datahall.workload.precision import PRESETS, TRAINED

HOUSE = Path(datahall.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
each_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


def test_the_stub_is_fresh() -> None:
    assert (HOUSE / "__init__.pyi").read_text(encoding="utf-8") == stub(), "stale: run make docs"


def test_the_reference_is_fresh() -> None:
    assert (DOCS / "reference.md").read_text(encoding="utf-8").endswith(reference()), "stale: run make docs"


def test_the_stub_has_every_function_with_its_parameters_and_words() -> None:
    functions = {node.name: node for node in ast.parse(stub()).body if isinstance(node, ast.FunctionDef)}
    assert set(functions) == {verb.function for verb in VERBS}
    for verb in VERBS:
        node = functions[verb.function]
        names = [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
        assert names == list(signature(verb).parameters)
        assert all(one.annotation is not None for one in (*node.args.args, *node.args.kwonlyargs))
        assert ast.get_docstring(node) == documentation(verb).strip()


def words_of(annotation: ast.expr | None) -> list[str]:
    """The words of every Literal in a type."""
    assert annotation is not None
    found = [
        node.slice
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
    ]
    return [one.value for part in found for one in ast.walk(part) if isinstance(one, ast.Constant)]


@each_verb
def test_an_input_of_a_few_words_has_them_in_the_stub(verb: Verb) -> None:
    """For editors, and for type checkers that find one misspelt; a list may be text with commas."""
    (node,) = [one for one in ast.parse(stub()).body if getattr(one, "name", "") == verb.function]
    assert isinstance(node, ast.FunctionDef)
    types = {one.arg: one.annotation for one in (*node.args.args, *node.args.kwonlyargs)}
    for name, field in form_of(verb.name).fields.items():
        unsaid = [""] if field.kind.words and field.default == "" else []
        assert words_of(types[name]) == [*field.kind.words, *unsaid], name
        if isinstance(field.kind, Listed):
            assert ast.unparse(types[name]).startswith("str | "), name  # type: ignore[arg-type]


WORDED = {field.path: field.kind for section in CONCEPTS for field in fields(section) if field.kind.words}


def test_the_few_words_of_an_input_are_those_that_are_read() -> None:
    assert {"deployment.engine", "training.state", "candidates.precision", "chips.sort"} <= WORDED.keys()
    for path, kind in WORDED.items():
        for word in kind.words:
            read = kind.read(word, Reading(catalog=load()))
            assert read == ((word,) if isinstance(kind, Listed) else word), path


def test_a_file_may_stand_in_the_place_of_a_first_word() -> None:
    assert str(signature(BY_NAME["show collective"]).parameters["collective"].annotation).endswith("] | str")
    assert str(signature(BY_NAME["validate"]).parameters["domain"].annotation).endswith("]")


@each_verb
def test_the_function_says_what_its_stub_says(verb: Verb) -> None:
    function = getattr(datahall, verb.function)
    assert function.__signature__ == signature(verb)
    for name, field in form_of(verb.name).fields.items():
        assert f"{name} : " in function.__doc__
        assert field.kind.help.split()[0] in function.__doc__


@each_verb
def test_the_reference_names_every_input(verb: Verb) -> None:
    page = reference()
    form = form_of(verb.name)
    section = page.split(f"### {verb.name}\n", 1)[1].split("\n### ", 1)[0]
    for name in form.fields:
        assert f"| `{form.flag(name)}` | `{name}=`" in section


@pytest.mark.parametrize(
    "section",
    [
        name
        for name in CONCEPTS
        if name not in ("files", "comparison", "sweep", "key", "gateway", "billing", "endpoint")
    ],
)
def test_the_reference_names_every_key_of_a_section(section: str) -> None:
    page = reference()
    title = f"`[{section}]`" if section else "the head of a file"
    part = page.split(f"### {title}", 1)[1].split("\n### ", 1)[0]
    assert all(f"| `{field.key}` |" in part for field in fields(section))


KINDS = {type(field.kind): field.kind for section in CONCEPTS for field in fields(section)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=[kind.__name__ for kind in KINDS])
def test_every_kind_says_what_it_may_hold(kind: Kind) -> None:
    assert allowed(kind)
    assert "\n" not in allowed(kind)
    found = kind.schema()
    assert found.keys() & {"type", "anyOf", "enum"}
    json.dumps(found)


def matches(value: object, rule: dict[str, object]) -> bool:
    """The part of JSON Schema that ours use."""
    if "anyOf" in rule:
        return any(matches(value, one) for one in rule["anyOf"])  # type: ignore[attr-defined]
    if "const" in rule:
        return bool(value == rule["const"])
    if "enum" in rule:
        return value in rule["enum"]  # type: ignore[operator]
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
        "object": (dict,),
    }  # fmt: skip
    if isinstance(value, bool) != (rule["type"] == "boolean") or not isinstance(
        value, kinds[str(rule["type"])]
    ):
        return False
    if isinstance(value, list):
        return all(matches(one, rule["items"]) for one in value)  # type: ignore[arg-type]
    if isinstance(value, dict):
        known: dict[str, dict[str, object]] = rule.get("properties", {})  # type: ignore[assignment]
        rest = rule.get("additionalProperties")
        needed: list[str] = rule.get("required", [])  # type: ignore[assignment]
        return set(needed) <= set(value) and all(
            matches(one, known[key]) if key in known else isinstance(rest, dict) and matches(one, rest)
            for key, one in value.items()
        )
    return True


@each_verb
def test_every_verb_has_a_schema_of_its_sections(verb: Verb) -> None:
    made = datahall.schema(verb.name)
    json.dumps(made)
    properties = made["properties"]
    assert isinstance(properties, dict)
    form = form_of(verb.name)
    assert set(properties) == {"version", "ask", *form.of(""), *(name for name in form.sections if name)}
    for name in form.sections:
        table = properties[name] if name else made
        table = table["anyOf"][0] if "anyOf" in table else table
        assert set(form.of(name)) <= set(table["properties"])


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("show chip", {"chip": "h100-sxm"}),
        (
            "show model",
            {"model": "llama-3.1-8b", "context": "8k", "batch": 4, "precision": "fp8", "chips": ["l40s"]},
        ),
        ("show hierarchy", {"chip": "h100-sxm", "working_set": "2 GB", "offload": "host", "prefetch": True}),
        ("catalog prices", {"kind": "spot", "max_age": "90 days", "as_of": "2026-11-15"}),
    ],
)
def test_what_was_asked_fits_the_schema(verb: str, asked: dict[str, object]) -> None:
    function = getattr(datahall, verb.replace(" ", "_"))
    question = function(**asked).question
    assert matches(json.loads(json.dumps(question)), datahall.schema(verb))
    assert not matches({**question, "version": 2}, datahall.schema(verb))
    assert not matches({**question, "nonsense": 1}, datahall.schema(verb))


@each_verb
def test_a_schema_requires_what_the_verb_requires_and_nothing_else(verb: Verb) -> None:
    made, form = datahall.schema(verb.name), form_of(verb.name)
    homes = {name: (form.fields[name].section, form.fields[name].key) for name in verb.required}
    head = {key for section, key in homes.values() if not section}
    assert made["required"] == ["version", *made["required"][1:]]  # type: ignore[index]
    assert set(made["required"]) == {"version"} | head | {section for section, _ in homes.values() if section}  # type: ignore[arg-type]
    for section in filter(None, form.sections):
        table = made["properties"][section]  # type: ignore[index]
        for way in (table["anyOf"][0], table["anyOf"][1]["items"]) if "anyOf" in table else (table,):
            assert set(way.get("required", ())) == {key for home, key in homes.values() if home == section}


def test_a_question_without_what_is_required_fits_no_schema() -> None:
    question = datahall.show_roofline("h200", model="llama-3.1-8b").question
    rule = datahall.schema("show roofline")
    assert matches(question, rule)
    assert not matches({key: value for key, value in question.items() if key != "model"}, rule)
    assert not matches({**question, "deployment": {}}, rule)
    assert not matches({**question, "deployment": [{}]}, rule)
    assert not matches({key: value for key, value in question.items() if key != "deployment"}, rule)


@pytest.mark.parametrize(
    ("verb", "section", "known"),
    [("plan serve", "candidates", tuple(PRESETS)), ("plan train", "training", TRAINED), ("show fit", "", ())],
)
def test_a_number_format_is_one_of_those_that_may_be_said(
    verb: str, section: str, known: tuple[str, ...]
) -> None:
    """In the schema, at completion and in the reference: those to train in where something is trained."""
    field = form_of(verb).fields["precision"]
    kind = field.kind.of if isinstance(field.kind, Listed) else field.kind
    options = known or tuple(PRESETS)
    assert kind.schema() == {"enum": list(options)}
    complete = completer(field)
    assert complete is not None
    assert set(complete(None, None, "")) == set(options)  # type: ignore[arg-type]
    assert ", ".join(options) in allowed(field.kind)
    assert section in ("", field.section)
