"""An OpenAPI description of a server, drawn from the operations that it declares and the structs that they read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

PATH = "/openapi.json"
JSON, TEXT, EVENTS = "application/json", "text/plain", "text/event-stream"
VERSION = "3.1.0"
Shape: TypeAlias = Any  # a struct, or a type that a struct may have as a field
SECRET = "key"


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What one path answers to one method."""

    path: str  # parts in braces are named by the client
    method: str = "GET"
    about: str
    body: Shape = None
    inputs: Mapping[str, object] | None = None  # the schema of a body that no struct declares
    query: Mapping[str, Mapping[str, object]] = {}  # by name, what may stand after the "?"
    answer: Shape = None  # None: a text
    is_streamed: bool = False  # where the body asks for it
    refusal: Shape = None
    statuses: tuple[int, ...] = ()  # of refusals
    has_key: bool = False


def described(title: str, version: str, operations: Sequence[Operation]) -> bytes:
    """The description as JSON."""
    shapes = dict.fromkeys(
        shape for one in operations for shape in (one.body, one.answer, one.refusal) if shape is not None
    )
    schemas, components = msgspec.json.schema_components(
        [*shapes], ref_template="#/components/schemas/{name}"
    )
    by_shape = dict(zip(shapes, schemas, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, by_shape)
    document: dict[str, object] = {
        "openapi": VERSION,
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {SECRET: {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(document)


def _operation(one: Operation, schemas: Mapping[Shape, object]) -> dict[str, object]:
    said: dict[str, Any] = {"summary": one.about}
    named = re.findall(r"\{(\w+)\}", one.path)
    if named:
        said["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in named
        ]
    if one.query:
        said.setdefault("parameters", []).extend(
            {"name": name, "in": "query", "schema": schema} for name, schema in one.query.items()
        )
    if one.inputs is not None:
        said["requestBody"] = {"required": True, "content": {JSON: {"schema": one.inputs}}}
    if one.body is not None:
        said["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[one.body]}}}
    content: dict[str, object] = {TEXT: {"schema": {"type": "string"}}}
    if one.answer is not None:
        content = {JSON: {"schema": schemas[one.answer]}}
    if one.is_streamed:
        content[EVENTS] = {"schema": {"type": "string"}}
    answers: dict[str, object] = {"200": {"description": "answered", "content": content}}
    for status in one.statuses:
        answers[str(status)] = {
            "description": "refused",
            "content": {JSON: {"schema": schemas[one.refusal]}},
        }
    said["responses"] = answers
    if one.has_key:
        said["security"] = [{SECRET: []}]
    return said
