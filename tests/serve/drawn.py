"""Values drawn from the schemas of an OpenAPI description, and the same with something wrong in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import msgspec

HOSTILE = (
    None, True, -1, 0, 2**63, 2**200, -1e308, 1.5, "", "\x00", "a" * 300, "é\ud7ff🦄", [], [[]], {}, {"": None},
    [None] * 40, {"$ref": "#"}, "../../etc/passwd", "%00", "NaN",
)  # fmt: skip
TEXTS = ("Hello", "", "é🦄", "\x00\x1f", "a b\nc", "0", "{}", "x" * 60)


class Described:
    """An OpenAPI description, read again."""

    def __init__(self, document: bytes) -> None:
        self.document: dict[str, Any] = msgspec.json.decode(document)
        self._schemas: dict[str, Any] = self.document["components"]["schemas"]

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Path, method and what is said of it."""
        for path, methods in self.document["paths"].items():
            for method, said in methods.items():
                yield path, method.upper(), said

    def body(self, said: Mapping[str, Any], random: Random) -> Any:
        """A body that fits; nothing where none is taken."""
        if "requestBody" not in said:
            return None
        return self._drawn(said["requestBody"]["content"]["application/json"]["schema"], random)

    def _drawn(self, schema: Mapping[str, Any], random: Random) -> Any:
        if "$ref" in schema:
            return self._drawn(self._schemas[schema["$ref"].rpartition("/")[2]], random)
        if "anyOf" in schema:
            return self._drawn(random.choice(schema["anyOf"]), random)
        if "enum" in schema:
            return random.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                return {
                    name: self._drawn(one, random)
                    for name, one in schema.get("properties", {}).items()
                    if name in required or random.random() < 0.4
                }
            case "array":
                least = schema.get("minItems", 0)
                items = schema.get("items", {})
                return [self._drawn(items, random) for _ in range(random.randint(least, least + 2))]
            case "string":
                text = random.choice(TEXTS) or "m" * schema.get("minLength", 0)
                return text[: schema.get("maxLength")]
            case "integer":
                low, high = schema.get("minimum", -4), schema.get("maximum", 2**40)
                return random.choice((low, min(low + 1, high), min(low + 3, high), high))
            case "number":
                return random.choice((0, -1.5, 1e-300, 3))
            case "boolean":
                return random.random() < 0.5
            case "null":
                return None
        return random.choice(HOSTILE)


def spoiled(value: Any, random: Random) -> Any:
    """The value with one thing in it that may be wrong."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice([*value])
        if random.random() < 0.2:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: spoiled(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        return [*value[:place], spoiled(value[place], random), *value[place + 1 :]]
    return random.choice(HOSTILE)
