"""Less to read for each answer: layers that see a window alone, and prompts that a summary stands for.

Both change what a model answers; here is what they cost and save.
"""

from __future__ import annotations

from math import sqrt

import msgspec

from datahall.catalog.entries.model import Layer
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.ladder.techniques import Setting, with_replica

SEES_ALL = "full"  # the mixer of a layer that reads every token before its own


def windowed(setting: Setting, tokens: int) -> Setting | str:
    """Layers that see all see so many tokens; a sentence where that changes nothing."""
    model, load = setting.replica.model, setting.load
    if not any(layer.mixer == SEES_ALL for layer in model.layers):
        return "no layer sees more than a window, or reads keys and values of its own"
    if tokens >= load.prompt + load.longest:
        return "no request is longer than the window"
    layers = tuple(_through(layer, tokens) for layer in model.layers)
    return with_replica(setting, model=msgspec.structs.replace(model, layers=layers))


def _through(layer: Layer, tokens: int) -> Layer:
    if layer.mixer != SEES_ALL:
        return layer
    return msgspec.structs.replace(layer, mixer="window", window=tokens)


def summarised(setting: Setting, kept: float, num_requests: int) -> Setting:
    """A summary in place of the prompt, written by the model itself once for so many requests.

    calls  = 1 + 1/N                             the answer, and its share of the call that writes the summary
    prompt = (f · P + P / N) / calls             output = (O + f · P / N) / calls
    """
    load, written = setting.load, 1.0 / num_requests
    calls, short = 1.0 + written, kept * load.prompt
    prompt, spread = _mixed(((1.0, short, load.spread), (written, load.prompt, load.spread)))
    output, output_spread = _mixed(((1.0, load.output, load.output_spread), (written, short, load.spread)))
    mean = Load(prompt=prompt, output=output, spread=spread, output_spread=output_spread)
    return msgspec.structs.replace(setting, load=mean, num_calls=calls)


def _mixed(parts: tuple[tuple[float, float, float], ...]) -> tuple[float, float]:
    """Mean and coefficient of variation of lengths that come so often, of such a mean and spread.

    >>> _mixed(((1.0, 100.0, 0.0), (1.0, 300.0, 0.0)))
    (200.0, 0.5)
    """
    often = sum(weight for weight, _, _ in parts)
    mean = sum(weight * size for weight, size, _ in parts) / often
    square = sum(weight * size**2 * (1.0 + spread**2) for weight, size, spread in parts) / often
    return mean, sqrt(max(0.0, square / mean**2 - 1.0))
