"""Into how many equal parts a model can be cut: what its heads, its MLPs and its experts divide by."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.counted import counted
from datahall.errors import ScenarioError, option


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """So many chips for each layer, and for the experts; `num_groups` batches meet at one set of experts."""

    tp: float = 1.0
    ep: float = 1.0
    num_groups: float = 1.0
    dp_attention: bool = False  # each chip has whole attention layers

    def check(self, model: Model) -> None:
        """Raise ScenarioError at the first rule of `model` that this split breaks."""
        broken = self.broken(model)
        if broken is None:
            return
        limit = 2 * max(model.num_heads, broken.whole if broken.field == "ep" else 1)
        legal = [
            value
            for value in range(1, limit + 1)
            if msgspec.structs.replace(self, **{broken.field: float(value)}).broken(model) is None
        ]
        near = sorted(sorted(legal, key=lambda value: abs(value - broken.value))[:2])
        values = " or ".join(option(broken.field, value) for value in near)
        raise ScenarioError(
            f"{model.name}: {option(broken.field, f'{broken.value:.12g}')} breaks the rule: {broken.rule}",
            field=broken.field,
            hint=f"nearest legal: {values}" if near else "no value is legal",
        )

    def broken(self, model: Model) -> Rule | None:
        """The first rule of `model` that it breaks."""
        return next((rule for rule in self._rules(model) if not rule.holds), None)

    def _rules(self, model: Model) -> list[Rule]:
        tp, ep = self.tp, self.ep
        kinds = {layer.mixer for layer in model.layers}
        heads_tp = 1.0 if self.dp_attention else tp
        rules = [Rule("tp", "tp is a whole number", tp, 1, tp >= 1 and tp == int(tp))]
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
            shared = max(tp * max(self.num_groups, 1.0) / ep, 1.0)
            rules.append(_divides("tp", "the expert width {} divides by tp/ep", shared, model.moe.expert_ffn))
            nested = max(tp, ep) % min(tp, ep) == 0
            rules.append(Rule("ep", f"ep divides tp = {tp:g} or is a multiple of it", ep, 1, nested))
        return rules


class Rule(msgspec.Struct, frozen=True):
    """A rule, the value it was put to and whether that keeps it."""

    field: str
    rule: str
    value: float
    whole: int
    holds: bool


def _divides(field: str, rule: str, parts: float, whole: int, repeats: bool = False) -> Rule:
    exact = parts >= 1 and parts == int(parts)
    holds = exact and (whole % int(parts) == 0 or (repeats and int(parts) % whole == 0))
    return Rule(field, rule.format(whole), parts, whole, holds)


def check_stage(model: Model, tp: int = 1, dp: int = 1, ep: int = 1) -> Split:
    """The split of a stage of a replica: dp attention ranks of tp chips each, whose batches meet at experts over ep."""
    experts = model.moe is not None
    chips = tp * dp
    if experts and chips % ep:
        fewer = " or ".join(option("ep", one) for one in sorted({1, chips}))
        wider = f"; {option('tp', ep // dp)} has as many" if ep > chips and ep % dp == 0 else ""
        raise ScenarioError(
            f"{option('ep', ep)} does not divide the {counted(chips, 'chip')} of a stage: "
            f"{option('tp', tp)} times {option('dp', dp)}",
            field="ep",
            hint=f"{fewer}{wider}",
        )
    split = Split(tp=float(tp), ep=float(ep if experts else 1), num_groups=float(dp if experts else 1))
    split.check(model)
    return split
