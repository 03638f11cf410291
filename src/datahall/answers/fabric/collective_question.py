"""What a person asks of a collective, read from words: its kind, size, ranks, algorithm, version, MoE layer."""

from __future__ import annotations

import msgspec

from datahall.answers.bounds import whole
from datahall.errors import ScenarioError, UnitError, nearest
from datahall.fabric.collectives.algorithms.all_to_all import dispatch_bytes
from datahall.fabric.collectives.algorithms.bus import COLLECTIVES, Collective
from datahall.fabric.collectives.system import DEFAULT_VERSION
from datahall.units import parse
from datahall.workload.precision import bytes_per_value

MOST_CHIPS = 1_000_000
FORCED = {"ring": "ring", "tree": "tree", "nvls": "NVLS", "nvls-tree": "NVLS tree", "pat": "PAT"}


class Moe(msgspec.Struct, frozen=True):
    """What an MoE layer hands over: tokens to top_k experts each."""

    num_experts: int
    num_tokens: int
    top_k: int
    hidden: int
    precision: str

    @property
    def array_bytes(self) -> float:
        """What one device holds for all others and itself, the size that nccl-tests means."""
        return self.sent_bytes * self.num_experts / (self.num_experts - 1)

    @property
    def sent_bytes(self) -> float:
        width = bytes_per_value(self.precision)
        return float(dispatch_bytes(self.num_tokens, self.top_k, self.hidden, self.num_experts, width))


def read_kind(text: str) -> Collective:
    """The collective in any spelling, or an error with the nearest."""
    folded = text.strip().lower().replace("_", "-").replace(" ", "-")
    for known in COLLECTIVES:
        if folded in {known, known.replace("-", "")}:
            return known
    close = nearest(folded, COLLECTIVES)
    guess = f"did you mean: {', '.join(close)}?   " if close else ""
    raise ScenarioError(f'"{text}" is not a collective', hint=f"{guess}one of {', '.join(COLLECTIVES)}")


def read_moe(
    kind: Collective, experts: str | int | None, tokens: str | int | None, topk: str | int | None,
    hidden: str | int | None, precision: str,
) -> Moe | None:  # fmt: skip
    """The MoE layer that sizes an all-to-all, or None where none of its numbers is given."""
    given = {"experts": experts, "tokens": tokens, "topk": topk, "hidden": hidden}
    if all(value is None for value in given.values()):
        return None
    if kind != "all-to-all":
        raise ScenarioError(
            f"--experts sizes an all-to-all, not {kind}", hint="datahall show collective all-to-all …"
        )
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if missing:
        raise ScenarioError(
            f"{', '.join(missing)} is missing", hint="--experts 64 --tokens 2^20 --topk 2 --hidden 4096"
        )
    count = {
        name: whole(name, value, at_least=2 if name == "experts" else 1)
        for name, value in given.items()
        if value
    }
    if count["topk"] > count["experts"]:
        raise ScenarioError(
            f"--topk {count['topk']} of {count['experts']} experts", hint="at most all of them"
        )
    return Moe(count["experts"], count["tokens"], count["topk"], count["hidden"], precision)


def read_chips(chips: str | int | None, moe: Moe | None) -> int:
    """Ranks: as asked, or one an expert."""
    if chips is None and moe is None:
        raise ScenarioError("how many chips take part?", hint="e.g. --chips 1024")
    count = (
        moe.num_experts
        if chips is None and moe
        else whole("chips", chips or 0, at_least=2, at_most=MOST_CHIPS)
    )
    if moe and count != moe.num_experts:
        raise ScenarioError(
            f"{moe.num_experts} experts on {count} chips",
            hint=f"one expert a chip: --chips {moe.num_experts}",
        )
    return count


def read_size(kind: Collective, size: str | float) -> float:
    """Bytes of the whole array."""
    if kind == "barrier":
        return 4.0
    if size == "":
        raise ScenarioError("how large is the array?", hint="e.g. --size 1GB")
    try:
        value = parse(size, "bytes")
    except UnitError as error:
        raise ScenarioError(f"--size: {error.message}", hint=error.hint) from error
    if value <= 0:
        raise ScenarioError(f"--size is {size}; it must be above 0", hint="e.g. --size 1GB")
    return value


def read_only(algorithm: str) -> tuple[str, ...]:
    """The algorithm that NCCL is limited to, if any."""
    if not algorithm:
        return ()
    folded = algorithm.strip().lower().replace(" ", "-").replace("_", "-")
    if folded not in FORCED:
        raise ScenarioError(f'"{algorithm}" is not an algorithm of NCCL', hint=f"one of {', '.join(FORCED)}")
    return (FORCED[folded],)


def read_version(text: str) -> tuple[int, int]:
    """NCCL's version as two numbers."""
    if not text:
        return DEFAULT_VERSION
    parts = text.lower().removeprefix("nccl").strip().split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        raise ScenarioError(f'"{text}" is not a version of NCCL', hint="e.g. --version 2.27")
    return int(parts[0]), int(parts[1])
