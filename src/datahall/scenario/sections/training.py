"""A training run: what is trained on what, how it is spread over the chips, and who of them is slow."""

from typing import Annotated

from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import (
    Choice,
    Count,
    File,
    Flag,
    Kind,
    Listed,
    Name,
    Plain,
    Quantity,
    Raw,
    Reading,
    Share,
    listed,
)
from datahall.scenario.kinds.formats import precision_kind
from datahall.scenario.sections.deployment import MOST_CHIPS, MOST_RANK
from datahall.scenario.usual import BATCH_WHERE_UNSAID, USUAL_PRECISION, USUAL_SEQ
from datahall.scenario.words import (
    COMPRESSIONS,
    CONTEXT_EXCHANGES,
    MODULES,
    OFFLOADS,
    SCHEDULES,
    TIERS,
    Schedule,
)
from datahall.workload.adapters.targets import TARGETS, Targets
from datahall.workload.memory.recipe import RECIPES
from datahall.workload.memory.recompute import RECOMPUTES

ADAPTERS = "adapters"  # inputs that verbs take together
USUAL_ZERO, USUAL_MICRO_BATCH = 1, 1
# the order of a pipeline's work, of one chunk on each stage and of several
USUAL_SCHEDULE: Schedule = "1f1b"
USUAL_CHUNKED: Schedule = "interleaved"
USUAL_DEGREE = 1  # of a split that nobody asks for
OFFLOADED = (*OFFLOADS, *(f"{what}:{tier}" for what in OFFLOADS for tier in TIERS))


class RecipeName(Name, frozen=True):
    """Formats of a training state by name."""

    of: str = "recipe"

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(RECIPES)


class TrainingJob(Section, frozen=True, kw_only=True):
    """What is trained, and by when."""

    num_tokens: Annotated[
        float | None,
        Quantity("Tokens to train on.", name="tokens", unit="tokens", least=1.0, example="15T"),
    ] = None
    deadline_s: Annotated[
        float | None,
        Quantity(
            "When it must be done, instead of a number of chips.",
            above=True,
            example="30d",
        ),
    ] = None
    seq: Annotated[
        int | None,
        Count(
            f"Tokens of a sequence (default: the layout file's, else {USUAL_SEQ}).", unit="tokens", most=2**30
        ),
    ] = None
    global_batch: Annotated[
        int | None,
        Count(
            f"Sequences of a step, all replicas together (default: the layout file's, else {BATCH_WHERE_UNSAID}).",
            most=2**30,
        ),
    ] = None
    precision: Annotated[
        str | None,
        precision_kind(
            f"Number format: bf16, fp8, mxfp8, … (default: the layout file's, else {USUAL_PRECISION}).",
            trained=True,
        ),
    ] = None
    framework: Annotated[
        str,
        Name(
            "Whose overlap and overheads: nemo, megatron-2022, megatron-deepspeed, fsdp, …",
            of="framework",
            metavar="NAME",
        ),
    ] = "nemo"
    state: Annotated[
        str,
        RecipeName(
            "Formats of the state: megatron, bf16-gradients, pure-bf16, … (default: fp32 in fp32 and tf32, else the "
            "framework's).",
        ),
    ] = ""
    lora: Annotated[
        int | None,
        Count(
            "Rank of adapters, which are trained in place of the weights (LoRA).",
            most=MOST_RANK, metavar="RANK", group=ADAPTERS,
        ),
    ] = None  # fmt: skip
    lora_targets: Annotated[
        Targets,
        Choice(
            "What adapters stand beside: all linear layers, those of attention, or queries and values.",
            needs=("lora",), options=TARGETS, group=ADAPTERS,
        ),
    ] = "all"  # fmt: skip
    quantised: Annotated[
        bool, Flag("The frozen weights lie in 4-bit NF4 (QLoRA).", needs=("lora",), group=ADAPTERS)
    ] = False
    margin_fraction: Annotated[
        float,
        Share("Share of a chip's memory that a plan leaves free.", name="memory_margin"),
    ] = 0.05
    imbalance_ratio: Annotated[
        float | None,
        Quantity(
            "Load of the busiest rank that holds experts over the mean (default: chance alone).",
            least=1.0,
            most=1e6,
        ),
    ] = None


class Split(Kind, frozen=True):
    """Layers of each stage: "3 4 4 4", "3,4x3" or a list."""

    def read(self, raw: Raw, at: Reading) -> tuple[int, ...]:
        del at
        found: list[int] = []
        for word in listed(raw.replace(" ", ",") if isinstance(raw, str) else raw):
            layers, _, times = str(word).replace("×", "x").partition("x")
            if not layers.isdecimal() or (times and not times.isdecimal()) or isinstance(word, bool):
                raise ScenarioError(f'"{word}" is no number of layers', hint='e.g. "3 4 4 4", or "3,4x3"')
            if int(times or 1) > MOST_CHIPS:
                raise ScenarioError(f"{times} stages are too many", hint=f"at most {MOST_CHIPS:,}")
            found += [int(layers)] * int(times or 1)
        if not found:
            raise self.wrong(raw, 'e.g. "3 4 4 4", or "3,4x3"')
        return tuple(found)

    def write(self, value: object) -> Plain:
        assert isinstance(value, tuple)
        return [int(one) for one in value]

    def annotation(self, *also: str) -> str:
        del also
        return "str | int | Sequence[int]"

    def schema(self) -> dict[str, object]:
        whole: dict[str, object] = {"type": "integer"}
        return {"anyOf": [{"type": "array", "items": whole}, {"type": "string"}, whole]}


class TrainingLayout(Section, frozen=True, kw_only=True):
    """How a model is spread over chips; what is not said is as its file says, or as is usual."""

    file: Annotated[
        str,
        File("Megatron-LM arguments, torchtitan TOML or DeepSpeed JSON; flags stand over it.", flat="layout"),
    ] = ""
    tp: Annotated[
        int | None,
        Count(
            f"Chips that share each layer (default: the layout file's, else {USUAL_DEGREE}).", most=MOST_CHIPS
        ),
    ] = None
    pp: Annotated[
        int | None, Count(f"Pipeline stages (default: the layout file's, else {USUAL_DEGREE}).", most=512)
    ] = None
    vpp: Annotated[
        int | None,
        Count(f"Virtual stages on each chip (default: the layout file's, else {USUAL_DEGREE}).", most=64),
    ] = None
    cp: Annotated[
        int | None,
        Count(
            f"Chips that share each sequence (default: the layout file's, else {USUAL_DEGREE}).",
            most=MOST_CHIPS,
        ),
    ] = None
    ep: Annotated[
        int | None,
        Count(
            f"Chips that share the experts (default: the layout file's, else {USUAL_DEGREE}).",
            most=MOST_CHIPS,
        ),
    ] = None
    dp: Annotated[int | None, Count("Replicas (default: the chips left over).", most=MOST_CHIPS)] = None
    zero: Annotated[
        int | None,
        Count(
            f"What replicas share of their state: 0 to 3 (default {USUAL_ZERO}; FSDP is 3).", least=0, most=3
        ),
    ] = None
    micro_batch: Annotated[
        int | None, Count(f"Sequences at once on a replica (default {USUAL_MICRO_BATCH}).", most=MOST_CHIPS)
    ] = None
    recompute: Annotated[
        str | None, Choice("What backward computes again: none, selective or full.", options=RECOMPUTES)
    ] = None
    schedule: Annotated[
        str | None,
        Choice(
            f"Order of the pipeline's work: {', '.join(SCHEDULES)} (default {USUAL_SCHEDULE}; {USUAL_CHUNKED} with vpp).",
            options=SCHEDULES,
        ),
    ] = None
    etp: Annotated[
        int | None,
        Count("Chips that share one expert (default: tp/ep, at least 1).", most=MOST_CHIPS, rare=True),
    ] = None
    shard: Annotated[
        int | None,
        Count(
            "Replicas that share a state, others hold copies (HSDP; default: all).",
            most=MOST_CHIPS,
            rare=True,
        ),
    ] = None
    modules: Annotated[
        tuple[str, ...],
        Listed(
            f"Recompute only these: {', '.join(MODULES)}.",
            of=Choice("", options=MODULES),
            metavar="LIST",
            rare=True,
        ),
    ] = ()
    context_exchange: Annotated[
        str | None,
        Choice(
            "How chips that share a sequence exchange it: ring or all-to-all.",
            needs=("cp", "layout"),
            options=CONTEXT_EXCHANGES,
            metavar="HOW",
            rare=True,
        ),
    ] = None
    split: Annotated[
        tuple[int, ...], Split('Layers of each stage, e.g. "3 4 4 4" or "3,4x3".', metavar="LIST", rare=True)
    ] = ()
    offload: Annotated[
        tuple[str, ...],
        Listed(
            f"Off the chips, to the host: {', '.join(OFFLOADS)}; to drives as optimizer:nvme.", of=Choice("", options=OFFLOADED),
            about=":", metavar="LIST", rare=True,
        ),
    ] = ()  # fmt: skip
    compression: Annotated[
        str | None,
        Choice(
            f"Gradients on the wire: {', '.join(COMPRESSIONS)}.",
            name="compress",
            options=COMPRESSIONS,
            metavar="HOW",
            rare=True,
        ),
    ] = None


class Stragglers(Section, frozen=True, kw_only=True):
    """Who is slow: a share of hosts by so much, always; and every chip by chance, anew in each step."""

    slow_hosts_fraction: Annotated[float, Share("Share of the hosts that are always slow.")] = 0.0
    slow_by_fraction: Annotated[
        float, Share("How much longer a slow host takes.", needs=("slow_hosts",), most=10.0)
    ] = 0.1
    jitter_fraction: Annotated[
        float, Share("Standard deviation of a chip's time for the same work, over the mean.", most=0.5)
    ] = 0.0

    @property
    def any(self) -> bool:
        """Whether somebody is slow."""
        return self.slow_hosts_fraction > 0 or self.jitter_fraction > 0
