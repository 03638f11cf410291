"""Which products of a model low-rank adapters stand beside."""

from typing import Literal, get_args

# all linear layers besides experts, those of attention, or its queries and values as in Hu et al. (2021)
Targets = Literal["all", "attention", "query-value"]
TARGETS: tuple[Targets, ...] = get_args(Targets)
