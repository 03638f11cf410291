"""The mean request of some traffic, as the closed form sees it: cut to the context, as it is simulated.

    prompt = min(P, C − 1)     output = min(O, C − prompt)     P, O: drawn, C: the context

Their means are those before the cut, times what the cut leaves of a grid of percentiles of P and O.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.inference.closed_form.steady_state import Load
from datahall.workload.traffic.lengths import quantile_tokens
from datahall.workload.traffic.shapes import Lengths
from datahall.workload.traffic.traffic import Traffic, describe, expected_tokens

POINTS = 200  # of a distribution of lengths


def load_of(traffic: Traffic) -> Load:
    """The mean request of some traffic as the context cuts it; what a cache may hold of it is not counted."""
    if traffic.conversation.num_turns > 1:
        return _in_turns(traffic)
    talk = traffic.conversation
    mean_prompt, mean_output = expected_tokens(traffic)
    drawn = percentiles(talk.opening or traffic.prompt) + talk.system_tokens + talk.quoted_tokens
    asked = percentiles(traffic.output)
    prompt, output = drawn, asked
    if 0 < traffic.max_context < drawn[-1] + asked[-1]:
        prompt = np.minimum(drawn, traffic.max_context - 1)
        output = np.minimum(asked[None, :], traffic.max_context - prompt[:, None])
    return Load(
        prompt=mean_prompt * float(prompt.mean() / drawn.mean()),
        output=mean_output * float(output.mean() / asked.mean()),
        spread=float(prompt.std() / prompt.mean()),
        output_spread=float(output.std() / output.mean()),
    )


def percentiles(lengths: Lengths) -> NDArray[np.float64]:
    """Lengths at the middles of equal shares of a distribution [tokens]."""
    return np.array([quantile_tokens(lengths, (place + 0.5) / POINTS) for place in range(POINTS)])


def _in_turns(traffic: Traffic) -> Load:
    """Of conversations, whose last turns the context leaves out: what it takes from requests that are drawn."""
    prompt, output = expected_tokens(traffic)
    if traffic.max_context and (cut := describe(traffic)).cut_fraction:
        free = describe(msgspec.structs.replace(traffic, max_context=0))
        prompt = max(1.0, prompt + cut.mean_prompt_tokens - free.mean_prompt_tokens)
        output = max(1.0, output + cut.mean_output_tokens - free.mean_output_tokens)
    new, answers = percentiles(traffic.prompt), percentiles(traffic.output)
    return Load(
        prompt=prompt,
        output=output,
        spread=float(new.std() / new.mean()),
        output_spread=float(answers.std() / answers.mean()),
    )
