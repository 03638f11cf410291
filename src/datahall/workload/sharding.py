"""How the operators of a model are divided among the chips of one group, seen from one chip."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.workload.operator import Number


class Sharding(msgspec.Struct, frozen=True, kw_only=True):
    """One chip's share of every operator.

    The batch of a pass is that of the `tp` chips that hold one copy of the dense weights.  Experts are
    spread over `ep` chips: inside the group when ep ≤ tp (tp/ep chips then split each expert), across
    ep/tp groups when ep > tp, each of which brings a batch of the same size.  `num_groups` gives their number
    where it is not ep/tp: engines whose attention ranks meet at the experts may also split each expert over
    tp·num_groups/ep of the chips.  `sequence_parallel` splits norms and residuals over the tp chips;
    `dp_attention` gives each of them whole attention layers and batch/tp of the sequences; `cp` splits the
    new tokens of each sequence.
    """

    tp: Number = 1.0
    ep: Number = 1.0
    cp: Number = 1.0
    num_groups: Number = 0.0  # 0: as many as ep and tp imply
    sequence_parallel: bool = False
    dp_attention: bool = False

    @property
    def attention_tp(self) -> Number:
        """Chips that share the heads of one sequence."""
        return 1.0 if self.dp_attention else self.tp

    @property
    def attention_dp(self) -> Number:
        """Chips of the group that each attend to their own sequences."""
        return self.tp if self.dp_attention else 1.0

    @property
    def stream_split(self) -> Number:
        """Chips over which norms and residual additions are split."""
        return self.tp if self.sequence_parallel or self.dp_attention else 1.0

    @property
    def expert_tp(self) -> Number:
        """Chips that share one expert."""
        return np.maximum(self.tp * self.expert_groups / self.ep, 1.0)

    @property
    def expert_groups(self) -> Number:
        """Batches that meet at one set of experts."""
        implied: Number = np.maximum(self.ep / self.tp, 1.0)
        return np.maximum(self.num_groups, implied)

    def local_kv_heads(self, model: Model) -> Number:
        """KV heads on one chip; fewer heads than chips are replicated."""
        return np.maximum(model.num_kv_heads / self.attention_tp, 1.0)

    def check(self, model: Model) -> None:
        """Raise ScenarioError at the first rule of `model` that this sharding breaks."""
        broken = self._broken(model)
        if broken is None:
            return
        limit = 2 * max(model.num_heads, broken.whole if broken.field == "ep" else 1)
        legal = [
            value
            for value in range(1, limit + 1)
            if msgspec.structs.replace(self, **{broken.field: float(value)})._broken(model) is None
        ]
        near = sorted(sorted(legal, key=lambda value: abs(value - broken.value))[:2])
        hint = f"nearest legal {broken.field}: {', '.join(map(str, near))}" if near else "no value is legal"
        raise ScenarioError(
            f"{model.name}: {broken.field} = {broken.value:g} breaks the rule: {broken.rule}",
            field=broken.field,
            hint=hint,
        )

    def _broken(self, model: Model) -> _Broken | None:
        for tp, ep in zip(*_columns(self.tp, self.ep), strict=True):
            for rule in self._rules(model, tp, ep):
                if not rule.holds:
                    return rule
        return None

    def _rules(self, model: Model, tp: float, ep: float) -> list[_Broken]:
        kinds = {layer.mixer for layer in model.layers}
        heads_tp = 1.0 if self.dp_attention else tp
        rules = [_Broken("tp", "tp is a whole number", tp, 1, tp >= 1 and tp == int(tp))]
        if kinds & {"full", "window", "mla"}:
            rules.append(_divides("tp", "the {} attention heads divide by tp", heads_tp, model.num_heads))
        if kinds & {"full", "window"}:
            rules.append(
                _divides(
                    "tp", "the {} KV heads divide by tp, or tp by them", heads_tp, model.num_kv_heads, True
                )
            )
        if kinds & {"linear", "mamba"} and model.recurrent is not None:
            rules.append(
                _divides("tp", "the {} recurrent heads divide by tp", heads_tp, model.recurrent.num_heads)
            )
        if any(layer.mlp == "dense" for layer in model.layers):
            rules.append(_divides("tp", "the MLP width {} divides by tp", tp, model.ffn))
        if model.moe is not None:
            rules.append(_divides("ep", "the {} experts divide by ep", ep, model.moe.num_experts))
            shared = max(tp * max(float(np.max(self.num_groups)), 1.0) / ep, 1.0)
            rules.append(_divides("tp", "the expert width {} divides by tp/ep", shared, model.moe.expert_ffn))
            nested = max(tp, ep) % min(tp, ep) == 0
            rules.append(_Broken("ep", f"ep divides tp = {tp:g} or is a multiple of it", ep, 1, nested))
        return rules


ONE_CHIP = Sharding()


class _Broken(msgspec.Struct, frozen=True):
    """A rule, the value it was put to and whether that keeps it."""

    field: str
    rule: str
    value: float
    whole: int
    holds: bool


def _divides(field: str, rule: str, parts: float, whole: int, repeats: bool = False) -> _Broken:
    exact = parts >= 1 and parts == int(parts)
    holds = exact and (whole % int(parts) == 0 or (repeats and int(parts) % whole == 0))
    return _Broken(field, rule.format(whole), parts, whole, holds)


def _columns(*numbers: Number) -> list[list[float]]:
    return [np.ravel(column).tolist() for column in np.broadcast_arrays(*numbers)]
