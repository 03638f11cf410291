"""Every section that a room can add to a plan has words, and no words are of a section that no room has."""

from __future__ import annotations

import ast

from tests.house import HOUSE, MODULES, inside, parsed

from datahall.answers.section import Words
from datahall.answers.sections import WORDS

ROOMS = [
    path for path in MODULES if path.parent.name == "sections" and path not in inside("scenario", "answers")
]


def sections() -> set[str]:
    """Structs of the rooms that have figures, as `Section` of a plan asks."""
    return {
        node.name
        for path in ROOMS
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(one, ast.FunctionDef) and one.name == "figures" for one in node.body)
    }


def test_every_section_is_worded() -> None:
    assert sections() == WORDS.keys(), "a row of WORDS in answers/sections.py"
    assert all(isinstance(words, Words) for words in WORDS.values())


def test_structs_of_sections_are_sections() -> None:
    """One that has no figures cannot be added to a plan: mypy refuses it, by the protocol `Section`."""
    structs = {
        node.name
        for path in ROOMS
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and any("Struct" in ast.unparse(base) for base in node.bases)
    }
    assert structs == sections()


def test_plans_get_sections_from_the_rooms() -> None:
    """What is given to `with_section` comes from a module below some `sections/`."""
    for path in inside("planner"):
        tree = parsed(path)
        if not any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "with_section"
            for node in ast.walk(tree)
        ):
            continue
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert any(".sections." in module for module in modules), path.relative_to(HOUSE)
