"""Layer kinds as an entry writes them: short keys that expand to one `Layer` per layer.

window = 4096                         every layer sees 4,096 tokens
window = 1024, global_every = 6       layers 6, 12, 18, … (counted from 1) see all
window = 2048, global_layers = [0]    the layers named (counted from 0) see all
attention_every = 4                   layers 4, 8, … attend, the others are recurrent
moe_every = 2                         layers 2, 4, … route to experts, the others are dense
first_dense_layers = 3                and none of the first three does
pattern = "M-M*-"                     a hybrid: one letter per layer, see `LETTERS`
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Layer, MixerKind, MlpKind
from datahall.catalog.fact import Entry

LETTERS: dict[str, tuple[MixerKind, MlpKind]] = {
    "M": ("mamba", "none"),
    "L": ("linear", "none"),
    "*": ("full", "none"),
    "-": ("none", "dense"),
    "E": ("none", "moe"),
}
MAX_LAYERS = 10_000  # far past any model; a slip of the pen must not fill the memory


class LayerKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry or a configuration says of its layers."""

    num_layers: int
    window: int = 0
    global_every: int = 0
    global_layers: tuple[int, ...] = ()
    attention_every: int = 0
    first_dense_layers: int = 0
    moe_every: int = 1
    pattern: str = ""
    has_moe: bool = False
    has_mla: bool = False


def expand(keys: LayerKeys) -> tuple[Layer, ...]:
    """Return one `Layer` per layer, first to last.

    >>> [layer.window for layer in expand(LayerKeys(num_layers=4, window=128, global_every=2))]
    [128, 0, 128, 0]
    """
    if keys.pattern:
        return tuple(Layer(mixer=LETTERS[letter][0], mlp=LETTERS[letter][1]) for letter in keys.pattern)
    kinds = [(_mixer(keys, index), _mlp(keys, index)) for index in range(keys.num_layers)]
    made = {
        kind: Layer(mixer=kind[0], mlp=kind[1], window=keys.window if kind[0] == "window" else 0)
        for kind in dict.fromkeys(kinds)
    }
    return tuple(made[kind] for kind in kinds)


def _mixer(keys: LayerKeys, index: int) -> MixerKind:
    if keys.attention_every and (index + 1) % keys.attention_every:
        return "linear"
    if keys.has_mla:
        return "mla"
    sees_all = index in keys.global_layers or (keys.global_every > 0 and (index + 1) % keys.global_every == 0)
    return "window" if keys.window and not sees_all else "full"


def _mlp(keys: LayerKeys, index: int) -> MlpKind:
    routed = keys.has_moe and index >= keys.first_dense_layers and (index + 1) % keys.moe_every == 0
    return "moe" if routed else "dense"


def check(entry: Entry, keys: LayerKeys, *, has_recurrent: bool) -> None:
    """Record what contradicts itself in the layer keys of an entry."""
    if keys.num_layers > MAX_LAYERS:
        entry.problem(f'"num_layers" is {keys.num_layers}; at most {MAX_LAYERS} can be read', "num_layers")
    if unknown := sorted(set(keys.pattern) - set(LETTERS)):
        entry.problem(
            f'"pattern" has unknown letters {" ".join(unknown)}',
            "pattern",
            hint="M mamba, L linear, * attention, - dense MLP, E experts",
        )
    if keys.pattern and len(keys.pattern) != keys.num_layers:
        entry.problem(f'"pattern" names {len(keys.pattern)} layers of {keys.num_layers}', "pattern")
    if (keys.global_every or keys.global_layers) and not keys.window:
        key = "global_every" if keys.global_every else "global_layers"
        entry.problem(f'"{key}" needs "window"', key, hint="without a window every layer is global")
    if keys.global_layers and max(keys.global_layers) >= keys.num_layers:
        entry.problem(f'"global_layers" goes past layer {keys.num_layers - 1}, the last', "global_layers")
    if keys.first_dense_layers > keys.num_layers:
        entry.problem(f'"first_dense_layers" is more than the {keys.num_layers} layers', "first_dense_layers")
    if (keys.first_dense_layers or keys.moe_every > 1) and not keys.has_moe:
        key = "first_dense_layers" if keys.first_dense_layers else "moe_every"
        entry.problem(f'"{key}" needs a [moe] table', key)
    if "E" in keys.pattern and not keys.has_moe:
        entry.problem('"pattern" names expert layers but there is no [moe] table', "pattern")
    needs_recurrent = bool(keys.attention_every) or bool(set(keys.pattern) & {"M", "L"})
    if needs_recurrent and not has_recurrent:
        key = "pattern" if keys.pattern else "attention_every"
        entry.problem(f'"{key}" names recurrent layers but there is no [recurrent] table', key)
