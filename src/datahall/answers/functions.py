"""The verbs as Python functions, made from the table: real signatures, documented keywords, one answer."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datahall.answer import Answer
from datahall.answers.ask import ask, form_of, scenario_file
from datahall.answers.reply import answer_of
from datahall.answers.verb import Verb
from datahall.answers.verbs import VERBS, words
from datahall.catalog import Catalog
from datahall.counted import counted
from datahall.errors import ScenarioError
from datahall.scenario.field import Field
from datahall.scenario.kinds import Raw

WIDTH = 100  # of a line of documentation
KEYWORD = inspect.Parameter.KEYWORD_ONLY
POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def function_of(verb: Verb) -> Callable[..., Answer]:
    """The function of a verb."""
    form = form_of(verb.name)
    names = [*form.arguments, *(name for name in form.fields if name not in form.arguments)]
    names += [concept.name for concept in form.tables]

    def asked(*args: Any, catalog: Catalog | None = None, **given: Any) -> Answer:
        bound = _bound(verb, names, args, given)
        first = bound.get(form.arguments[0]) if form.arguments else bound.pop("scenario", None)
        file = scenario_file(str(first)) if verb.by_file and first is not None else None
        if file is not None and form.arguments:
            del bound[form.arguments[0]]
        return answer_of(ask(verb.name, bound, document=file, catalog=_catalog(catalog), bare=True))

    asked.__name__ = asked.__qualname__ = verb.function
    asked.__module__ = "datahall"
    asked.__doc__ = documentation(verb)
    asked.__signature__ = signature(verb)  # type: ignore[attr-defined]
    asked.__annotations__ = {}
    return asked


def _plain(value: Any) -> Any:
    """A path as text; a value of an array library, such as `np.int64(4)` or a column, as Python has it."""
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _bound(verb: Verb, names: list[str], args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Raw]:
    form = form_of(verb.name)
    first = list(form.arguments) or (["scenario"] if verb.by_file else [])
    if len(args) > len(first):
        if verb.several:
            call = ", ".join(_literal(one) for one in (*args[: len(first) - 1], list(args[len(first) - 1 :])))
            raise ScenarioError(
                f"{verb.function} takes several {first[-1]} as one list", hint=f"{verb.function}({call})"
            )
        raise ScenarioError(
            f"{verb.function} takes {counted(len(first), 'positional argument')}, not {len(args)}",
            hint=f"keywords: {', '.join(names)}",
        )
    bound = dict(zip(first, args, strict=False))
    twice = set(bound) & set(given)
    if twice:
        raise ScenarioError(f"{verb.function} got {', '.join(twice)} twice", hint="by place or by name")
    said = {name: _plain(value) for name, value in {**bound, **given}.items()}
    usual = {name: field.default for name, field in form.fields.items()}
    return {name: value for name, value in said.items() if not (value == "" and usual.get(name) == "")}


def _catalog(catalog: object) -> Catalog | None:
    if catalog is None or isinstance(catalog, Catalog):
        return catalog
    raise ScenarioError(
        f"catalog is {type(catalog).__name__}, not a Catalog", hint='dh.Catalog(extra=["my-folder"])'
    )


def signature(verb: Verb) -> inspect.Signature:
    """What the function takes, with its defaults."""
    form = form_of(verb.name)
    parameters = []
    for name in form.arguments:
        needed = name in form.required
        default = inspect.Parameter.empty if needed else _default(form.fields[name])
        parameters.append(
            inspect.Parameter(name, POSITIONAL, default=default, annotation=_argument_hint(verb, name))
        )
    if _takes_file_alone(verb):
        parameters.append(inspect.Parameter("scenario", POSITIONAL, default="", annotation="str"))
    for name, field in form.fields.items():
        if name not in form.arguments:
            parameters.append(
                inspect.Parameter(name, KEYWORD, default=_default(field), annotation=hint(field))
            )
    parameters += [
        inspect.Parameter(concept.name, KEYWORD, default=None, annotation="Tables | None")
        for concept in form.tables
    ]
    parameters.append(inspect.Parameter("catalog", KEYWORD, default=None, annotation="Catalog | None"))
    return inspect.Signature(parameters, return_annotation="Answer")


def _takes_file_alone(verb: Verb) -> bool:
    """Whether a file stands in the first place, which no input of its own has."""
    form = form_of(verb.name)
    return bool(not form.arguments and verb.by_file and form.fields)


def _default(field: Field) -> object:
    """The default as it stands in a signature: what a person would write."""
    if field.default is None or isinstance(field.default, bool | int | str):
        return field.default
    if field.default in ((), {}):
        return None
    return field.kind.write(field.default)


def hint(field: Field) -> str:
    """The type of a keyword; the empty word is one of its words where it says nothing."""
    text = field.kind.annotation(*([""] if field.default == "" else []))
    return text if field.default is not None and field.default not in ((), {}) else f"{text} | None"


def _argument_hint(verb: Verb, name: str) -> str:
    """The type of an input without a keyword; in the place of the first a file may stand."""
    form = form_of(verb.name)
    text = hint(form.fields[name])
    is_word = verb.by_file and name == form.arguments[0] and bool(form.fields[name].kind.words)
    return f"{text} | str" if is_word else text


def documentation(verb: Verb) -> str:
    """What it answers, and each keyword with its unit."""
    form = form_of(verb.name)
    lines = [f"{verb.about[:1].upper()}{verb.about[1:]}.", ""]
    lines += [*textwrap.wrap(verb.details, WIDTH), ""] if verb.details else []
    lines += ["Parameters", "----------"]
    if _takes_file_alone(verb):
        lines += ["scenario : str", "    A file, TOML or JSON, that says what is not said here."]
    for name, field in form.fields.items():
        default = f" (default {field.shown_default})" if field.shown_default else ""
        lines.append(f"{name} : {_argument_hint(verb, name) if name in form.arguments else hint(field)}")
        lines += [f"    {line}" for line in textwrap.wrap(f"{field.kind.help}{default}", WIDTH)]
    for concept in form.tables:
        lines.append(f"{concept.name} : table, or several")
        lines.append(f"    {(concept.struct().__doc__ or '').strip()}")
    lines += [
        "catalog : Catalog",
        "    Entries of your own over the shipped ones.",
        "",
        "Examples of the command",
        "",
    ]
    return "\n".join([*lines, *(f"    {line}" for line in words(verb))])


STUB = '''"""Datahall plans, simulates, runs and audits AI infrastructure: each verb is a function."""

# Written by docs/generate.py from the table of verbs: change that, and run make docs.

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from datahall.answer import Answer as Answer
from datahall.answers.ask import ask_document
from datahall.answers.schema import schema as schema
from datahall.breakdown import Breakdown as Breakdown
from datahall.catalog import Catalog as Catalog
from datahall.catalog import load
from datahall.errors import DatahallError as DatahallError
from datahall.report.wire import json_schema

Tables: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]

__version__: str
__all__: list[str]
_HOMES: dict[str, str]
answer_schema = json_schema
ask = ask_document
load_catalog = load
'''


def stub() -> str:
    """What `import datahall` offers, for type checkers and editors: the text of `__init__.pyi`."""
    return "\n\n".join([STUB.rstrip(), *(_stub_of(verb) for verb in VERBS)]) + "\n"


def _literal(value: object) -> str:
    """A value as source; text in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"[{', '.join(map(_literal, value))}]" if isinstance(value, list) else repr(value)


def _stub_of(verb: Verb) -> str:
    made = signature(verb)
    lines = [f"def {verb.function}("]
    starred = False
    for parameter in made.parameters.values():
        if parameter.kind is KEYWORD and not starred:
            starred = True
            lines.append("    *,")
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_literal(parameter.default)}"
        lines.append(f"    {parameter.name}: {parameter.annotation}{default},")
    about = [f"    {line}".rstrip() for line in documentation(verb).replace("\\", "\\\\").split("\n")]
    about[0] = f'    """{about[0].strip()}'
    return "\n".join([*lines, ") -> Answer:", *about, '    """'])
