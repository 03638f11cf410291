"""In what formats training keeps a parameter: its weight, its gradient and what the optimizer adds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from datahall.errors import UnknownNameError


class StateRecipe(msgspec.Struct, frozen=True):
    """Bytes that one parameter takes in training."""

    weight: float
    gradient: float
    master: float  # fp32 copy of the weight that the optimizer updates
    moments: float  # both of Adam's

    @property
    def optimizer(self) -> float:
        return self.master + self.moments

    @property
    def total(self) -> float:
        return self.weight + self.gradient + self.optimizer

    @property
    def updated(self) -> float:
        """What an update moves: the gradient is read, states are read and written, the weight is written.

        A weight without a wider copy is read too.

        >>> {name: StateRecipe.named(name).updated for name in ("megatron", "fp32", "pure-bf16")}
        {'megatron': 30.0, 'fp32': 28.0, 'pure-bf16': 14.0}
        """
        return self.gradient + 2.0 * self.optimizer + (1.0 if self.master else 2.0) * self.weight

    def with_copies(self, value_bytes: float) -> float:
        """Bytes of a weight and, where it is wider than it is multiplied, of the copy it is multiplied as."""
        return self.weight + (value_bytes if self.weight > value_bytes else 0.0)

    @classmethod
    def named(cls, name: str) -> StateRecipe:
        """Return a recipe; an unknown name is an error that lists the nearest ones.

        >>> {name: StateRecipe.named(name).total for name in ("megatron", "pure-bf16", "precision-aware")}
        {'megatron': 18.0, 'pure-bf16': 8.0, 'precision-aware': 14.0}
        """
        if name not in RECIPES:
            raise UnknownNameError("state recipe", name, RECIPES, hint=f"recipes: {', '.join(RECIPES)}")
        return RECIPES[name]


RECIPES: Mapping[str, StateRecipe] = MappingProxyType(
    {
        "megatron": StateRecipe(2.0, 4.0, 4.0, 8.0),  # Megatron-LM default: bf16 weights, fp32 the rest
        "bf16-gradients": StateRecipe(2.0, 2.0, 4.0, 8.0),  # Rajbhandari et al. (2020), ZeRO: 16 B
        "precision-aware": StateRecipe(2.0, 4.0, 4.0, 4.0),  # Megatron's optimizer with bf16 moments
        "fp8-parameters": StateRecipe(1.0, 4.0, 4.0, 8.0),
        "fp32": StateRecipe(4.0, 4.0, 0.0, 8.0),  # also FSDP and AMP, whose 16-bit copies are transient
        "pure-bf16": StateRecipe(2.0, 2.0, 0.0, 4.0),
    }
)
