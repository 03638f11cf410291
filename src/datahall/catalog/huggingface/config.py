"""The keys of a `config.json`, read with their types checked and every problem collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from datahall.catalog.document import Document, Table, Value
from datahall.catalog.entries.layer_pattern import MAX_LAYERS
from datahall.catalog.entries.model import Layer, MixerKind, MlpKind
from datahall.errors import Problem, nearest

Values: TypeAlias = dict[str, object]  # fields of a `Model`
Names: TypeAlias = Mapping[
    str, tuple[str, ...]
]  # the keys under which a field may stand, the usual one first

STANDARD: Names = {
    "num_layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embed"),
    "num_heads": ("num_attention_heads", "n_head"),
    "num_kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "attention_head_dim"),
    "ffn": ("intermediate_size", "ffn_dim", "ffn_hidden_size"),
    "vocab": ("vocab_size",),
    "max_context": ("max_position_embeddings", "seq_length"),
}
GPT: Names = {
    **STANDARD,
    "num_layers": ("n_layer", "num_hidden_layers"),
    "hidden": ("n_embd", "hidden_size", "n_embed"),
    "num_heads": ("n_head", "num_attention_heads"),
    "ffn": ("n_inner",),
    "max_context": ("n_positions", "seq_length"),
}
MOSAIC: Names = {
    **STANDARD,
    "num_layers": ("n_layers",),
    "hidden": ("d_model",),
    "num_heads": ("n_heads",),
    "ffn": (),
    "max_context": ("max_seq_len",),
}

LAYER_TYPES: dict[str, MixerKind] = {
    "full_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "window",
    "linear_attention": "linear",
}


class Config:
    """One JSON object of a config.

    A key that cannot be used is recorded as a problem and read as the smallest legal value, so that the rest
    is still checked; a recorded problem means that no model is made.
    """

    def __init__(
        self,
        document: Document,
        problems: list[Problem],
        keys: tuple[str, ...] = (),
        outer: Config | None = None,
    ) -> None:
        self.document = document
        self.problems = problems
        self.keys = keys
        self.outer = outer
        table: Value = document.content
        for key in keys:
            table = table[key] if isinstance(table, dict) and key in table else {}
        if not isinstance(table, dict):
            self.problem(f'"{keys[-1]}" must be an object, not {table!r}')
        self.table: Table = table if isinstance(table, dict) else {}

    def problem(self, message: str, key: str = "", *, hint: str = "") -> None:
        """Record a problem at a key."""
        where = self.document.where(*self.keys, *([key] if key else []))
        self.problems.append(Problem(f"{where}:1" if where == self.document.path else where, message, hint))

    def refuse(self, key: str, reason: str) -> None:
        """Record that a value is outside what is modelled."""
        self.problem(
            f'"{key}" is {self.table.get(key)!r}: {reason}', key, hint="not modelled, and not guessed"
        )

    def inner(self, key: str) -> Config:
        """The text model inside a wrapper for images and text, or this object where there is no wrapper."""
        return Config(self.document, self.problems, (*self.keys, key), self) if key in self.table else self

    def part(self, key: str) -> Config:
        """A nested object; an absent one reads as empty."""
        return Config(self.document, self.problems, (*self.keys, key), self)

    def has(self, key: str) -> bool:
        """Whether a key is there with a value that is not null."""
        return self.table.get(key) is not None

    def count(self, *keys: str, default: int | None = None, at_least: int = 1) -> int:
        """A whole number under the first of `keys` that is there."""
        key = next((key for key in keys if self.has(key)), None)
        if key is None:
            if default is None:
                guess = nearest(keys[0], self.table, 1)
                self.problem(f'"{keys[0]}" is missing', hint=f'did you mean "{guess[0]}"?' if guess else "")
                return max(1, at_least)
            return default
        value = self.table[key]
        if type(value) is not int or value < at_least:
            self.problem(f'"{key}" must be a whole number of at least {at_least}, not {value!r}', key)
            return max(1, at_least)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        if not self.has(key):
            return default
        value = self.table[key]
        if not isinstance(value, bool):
            self.problem(f'"{key}" must be true or false, not {value!r}', key)
            return default
        return value

    def tied(self, default: bool) -> bool:
        """Whether the head shares the token table; a wrapper may say it outside its text model."""
        if not self.has("tie_word_embeddings") and self.outer is not None and self.keys == ("text_config",):
            return self.outer.flag("tie_word_embeddings", default)
        return self.flag("tie_word_embeddings", default)

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        value = self.table.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            seen = "is missing" if value is None else f"must be a text, not {value!r}"
            self.problem(f'"{key}" {seen}', key)
            return ""
        return value

    def items(self, key: str, kind: type[int] | type[str]) -> list[Value] | None:
        """A list of whole numbers or of texts, or nothing where the key is absent."""
        if not self.has(key):
            return None
        value = self.table[key]
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            word = "whole numbers" if kind is int else "texts"
            self.problem(f'"{key}" must be a list of {word}', key)
            return None
        return value

    def mixers(self, num_layers: int, default: Callable[[int], MixerKind]) -> list[MixerKind]:
        """What mixes tokens in each layer, from `layer_types` or else by the rule of the family."""
        named = self.items("layer_types", str)
        if named is None:
            return [default(index) for index in range(num_layers)]
        if unknown := sorted({str(name) for name in named} - set(LAYER_TYPES)):
            self.refuse("layer_types", f"{', '.join(unknown)} is not one of {', '.join(LAYER_TYPES)}")
        if len(named) != num_layers:
            self.problem(f'"layer_types" names {len(named)} layers of {num_layers}', "layer_types")
        return [LAYER_TYPES.get(str(name), "full") for name in named]

    def sizes(
        self, names: Names = STANDARD, *, tied: bool = False, ffn_ratio: int = 0, **defaults: int
    ) -> Values:
        """The sizes of a transformer; `defaults` go by field, `ffn_ratio` makes an MLP that × the width."""

        def size(field: str, default: int | None = None) -> int:
            default = defaults.get(field, default)
            return self.count(*names[field], default=default) if names[field] else default or 0

        before = len(self.problems)
        hidden, num_heads = size("hidden"), size("num_heads")
        num_kv_heads = size("num_kv_heads", num_heads)
        if len(self.problems) == before:
            stated = "head_dim" in defaults or any(map(self.has, names["head_dim"]))
            if hidden % num_heads and not stated:
                self.problem(f"{num_heads} heads do not divide width {hidden}", hint="add head_dim")
            if num_heads % num_kv_heads:
                key = names["num_kv_heads"][0]
                self.problem(f"{num_kv_heads} key-value heads do not divide {num_heads} heads", key)
        num_layers = size("num_layers")
        if num_layers > MAX_LAYERS:
            key = names["num_layers"][0]
            self.problem(f'"{key}" is {num_layers}; at most {MAX_LAYERS} can be read', key)
        return {
            "num_layers": min(num_layers, MAX_LAYERS),
            "hidden": hidden,
            "num_heads": num_heads,
            "num_kv_heads": num_kv_heads,
            "head_dim": size("head_dim", max(1, hidden // num_heads)),
            "ffn": size("ffn", ffn_ratio * hidden or None),
            "vocab": size("vocab"),
            "max_context": size("max_context"),
            "tied_embeddings": self.tied(tied),
        }


def number(values: Values, field: str) -> int:
    """A size that was read before."""
    return cast(int, values[field])


def layers(
    mixers: Sequence[MixerKind], mlps: Sequence[MlpKind], *, window: int = 0, max_context: int = 0
) -> tuple[Layer, ...]:
    """One `Layer` per layer; a window that no context outgrows is no window."""
    if not 0 < window < max_context:
        mixers, window = ["full" if mixer == "window" else mixer for mixer in mixers], 0
    made = {
        kind: Layer(mixer=kind[0], mlp=kind[1], window=window if kind[0] == "window" else 0)
        for kind in zip(mixers, mlps, strict=False)
    }
    return tuple(made[kind] for kind in zip(mixers, mlps, strict=False))
