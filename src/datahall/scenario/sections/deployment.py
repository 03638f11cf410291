"""How a model is served: the chip, the group of chips of one replica, the engine and its options, how many replicas."""

import re
from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, UnknownNameError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import Choice, Count, Flag, Name, Quantity, Raw, Reading, Share, Text
from datahall.scenario.kinds.formats import precision_kind
from datahall.scenario.sections.wanted.promise import MOST_WAIT_S
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import (
    BATCHING,
    ENGINES,
    EXPERT_EXCHANGES,
    FREE_DRAFT,
    OWN_LAYER,
    PHASES,
    PREEMPTIONS,
    ROLES,
    Role,
)

ENGINE, SPECULATION, ADAPTERS = (
    "engine",
    "speculation",
    "adapters",
)  # groups of inputs that verbs take together
EVERYTHING: Role = "both"  # what a pool does where nobody says it
POOLS = "prefill=4xh200,decode=8xh200"
MOST_REPLICAS = 100_000
MOST_CHIPS = 2**20
MOST_ADAPTERS, MOST_RANK = 100_000, 4096
SLOWEST = 1e3  # bytes/s of a link: a modem
MOST_DRAFTED = 64  # tokens a step: beyond it hardly one is ever kept


class EngineKind(Name, frozen=True):
    """A serving engine by name."""

    of: str = "engine"

    @property
    def words(self) -> tuple[str, ...]:
        return ENGINES

    def read(self, raw: Raw, at: Reading) -> str:
        name = super().read(raw, at)
        if name not in ENGINES:
            raise UnknownNameError("engine", name, ENGINES, hint=f"engines: {', '.join(ENGINES)}")
        return name


class Draft(Text, frozen=True):
    """What drafts tokens: the prompt, a layer of the model, or another model of the catalogue."""

    def read(self, raw: Raw, at: Reading) -> str:
        name = super().read(raw, at)
        if name in (FREE_DRAFT, OWN_LAYER):
            return name
        try:
            return at.catalog.name_of("model", name)
        except UnknownNameError as error:
            raise UnknownNameError(
                "draft", name, (FREE_DRAFT, OWN_LAYER, *(model.name for model in at.catalog.models())),
                hint=f"{FREE_DRAFT} (looked up in the prompt), {OWN_LAYER} (a layer of the model), or a model of the "
                "catalogue",
            ) from error  # fmt: skip


class Pools(Text, frozen=True):
    """Replicas for prompts and for answers, on chips of their own or on the deployment's."""

    def read(self, raw: Raw, at: Reading) -> str:
        text = super().read(raw, at)
        for _, _, chip in split_roles(text):
            if chip:
                at.catalog.name_of("chip", chip)
        return text

    def excludes(self, value: object) -> tuple[str, ...]:
        named = isinstance(value, str) and all(chip for _, _, chip in split_roles(value))
        return (*self.against, *(("chip",) if named else ()))


def split_roles(text: str) -> list[tuple[Role, int, str]]:
    """Read "prefill=4xh200,decode=8xh200": replicas of each role, and the chip they stand on.

    >>> split_roles("prefill=4xh200,decode=8")
    [('prefill', 4, 'h200'), ('decode', 8, '')]
    """
    pools: list[tuple[Role, int, str]] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(prefill|decode)\s*=\s*(\d+)(?:\s*[x×]\s*([\w.-]+))?\s*", part)
        if found is None or not 1 <= int(found[2]) <= MOST_REPLICAS:
            raise ScenarioError(
                f'"{part.strip()}" is not a pool', field="disaggregated", hint=option("disaggregated", POOLS)
            )
        role: Role = "prefill" if found[1] == "prefill" else "decode"
        pools.append((role, int(found[2]), found[3] or ""))
    roles = [role for role, _, _ in pools]
    if len(set(roles)) < len(roles):
        twice = next(role for role in roles if roles.count(role) > 1)
        raise ScenarioError(
            f"{twice} is said twice", field="disaggregated", hint=option("disaggregated", POOLS)
        )
    if set(roles) != set(PHASES):
        raise ScenarioError(
            "prefill and decode pools come together",
            field="disaggregated",
            hint=option("disaggregated", POOLS),
        )
    return sorted(pools, key=lambda pool: pool[0] != "prefill")


class Deployment(Section, frozen=True, kw_only=True):
    """One pool of equal replicas; several pools make a fleet."""

    chip: Annotated[str, Name("Chip that it runs on.", of="chip")] = USUAL_CHIP
    tp: Annotated[
        int | None,
        Count(
            "Chips that share each layer of a replica (default: the fewest that hold it).",
            most=MOST_CHIPS,
        ),
    ] = None
    pp: Annotated[int, Count("Pipeline stages of a replica.", most=1024)] = 1
    dp: Annotated[int, Count("Ranks of a replica that attend to sequences of their own.", most=4096)] = 1
    ep: Annotated[int, Count("Chips that share the experts.", most=MOST_CHIPS)] = 1
    replicas: Annotated[int, Count("Replicas behind the router.", most=MOST_REPLICAS)] = 1
    disaggregated: Annotated[
        str,
        Pools(
            "Prompts on replicas of their own: prefill=4xh200,decode=8xh200.", against=("replicas",), metavar="POOLS",
            example=POOLS,
        ),
    ] = ""  # fmt: skip
    precision: Annotated[str, precision_kind("Number format: bf16, fp8, fp8-kv8, w4a16, nvfp4, …")] = "bf16"
    engine: Annotated[str, EngineKind("Serving engine: vllm, sglang, trtllm, …", metavar="NAME")] = "vllm"
    draft: Annotated[
        str,
        Draft(
            "Speculative decoding: ngram, mtp, or the name of a draft model.",
            metavar="HOW",
            example="ngram",
            group=SPECULATION,
        ),
    ] = ""
    num_draft: Annotated[
        int, Count("Tokens drafted for a step.", most=MOST_DRAFTED, needs=("draft",), group=SPECULATION)
    ] = 3
    acceptance_fraction: Annotated[
        float, Share("Chance that a drafted token is kept.", above=True, needs=("draft",), group=SPECULATION)
    ] = 0.5
    adapters: Annotated[
        int | None, Count("LoRA adapters that requests ask for.", most=MOST_ADAPTERS, group=ADAPTERS)
    ] = None
    adapter_rank: Annotated[
        int, Count("Rank of an adapter.", most=MOST_RANK, needs=("adapters",), group=ADAPTERS)
    ] = 16
    resident_adapters: Annotated[
        int | None,
        Count(
            "Adapters on the chips at once (default: all).",
            most=MOST_ADAPTERS,
            needs=("adapters",),
            group=ADAPTERS,
        ),
    ] = None
    adapter_zipf: Annotated[
        float,
        Quantity(
            "Zipf exponent of the adapters' popularity; 0: all alike.",
            unit="ratio",
            most=10.0,
            needs=("adapters",),
            group=ADAPTERS,
            rare=True,
        ),
    ] = 1.0
    attention_adapters: Annotated[
        bool,
        Flag(
            "Adapters beside attention alone, not the dense MLPs.",
            needs=("adapters",),
            group=ADAPTERS,
            rare=True,
        ),
    ] = False
    host_cache_bytes: Annotated[
        float,
        Quantity("Memory of a replica's hosts for blocks of cache that leave the chips."),
    ] = 0.0
    host_link_bytes_per_s: Annotated[
        float | None,
        Quantity(
            "Rate between a chip and its host, one way (default: the chip's link).",
            least=SLOWEST,
            needs=("host_cache",),
            rare=True,
        ),
    ] = None
    drive_cache_bytes: Annotated[float, Quantity("Drives for blocks that leave the hosts' memory.")] = 0.0
    drive_rate_bytes_per_s: Annotated[
        float | None,
        Quantity(
            "Rate of a chip's share of the drives (default: as servers are sold).",
            least=SLOWEST,
            needs=("drive_cache",),
        ),
    ] = None
    max_context: Annotated[
        int | None, Count("Longest sequence it accepts (default: the model's).", unit="tokens", rare=True)
    ] = None
    routing_skew: Annotated[
        float,
        Quantity(
            "Power-law exponent of the experts' popularity; 0: balanced.", unit="ratio", most=10.0, rare=True
        ),
    ] = 0.0
    kv_blocks: Annotated[
        int | None,
        Count(
            "Blocks of cache that the engine reported.", against=("memory_fraction", "reserved"), rare=True
        ),
    ] = None
    role: Annotated[
        Role | None,
        Choice(
            f"What a pool does (default: {EVERYTHING}).",
            options=ROLES,
            against=("disaggregated",),
            rare=True,
        ),
    ] = None
    region: Annotated[
        str, Text("Region that a pool stands in.", flat="in_region", metavar="REGION", rare=True)
    ] = ""
    weight_ratio: Annotated[
        float,
        Quantity(
            "Weight of a pool at a router that counts requests: it gets one where the fewest are for the weight.",
            name="weight",
            above=True,
            most=1e3,
            rare=True,
        ),
    ] = 1.0
    handoff_bytes_per_s: Annotated[
        float | None,
        Quantity(
            "Rate at which a prefill pool hands its cache over (default: its network's).",
            least=SLOWEST,
            rare=True,
        ),
    ] = None
    # options of the engine, as `Engine` names them; none: the engine's own default
    batching: Annotated[
        str | None, Choice("How requests share steps.", options=BATCHING, rare=True, group=ENGINE)
    ] = None
    token_budget: Annotated[
        int | None, Count("Most new tokens in one step.", unit="tokens", most=2**24, rare=True, group=ENGINE)
    ] = None
    max_sequences: Annotated[
        int | None, Count("Most sequences that run at once.", most=2**20, rare=True, group=ENGINE)
    ] = None
    block_tokens: Annotated[
        int | None,
        Count(
            "Tokens of one block of cache.",
            unit="tokens",
            most=2**16,
            name="block_tokens",
            rare=True,
            group=ENGINE,
        ),
    ] = None
    chunked_prefill: Annotated[
        bool | None, Flag("Prompts may be cut to what is left of a step.", rare=True, group=ENGINE)
    ] = None
    mixed_steps: Annotated[bool | None, Flag("Prompts and decodes share steps.", rare=True, group=ENGINE)] = (
        None
    )
    whole_prompt_blocks: Annotated[
        bool | None, Flag("A prompt waits until blocks for all of it are free.", rare=True, group=ENGINE)
    ] = None
    whole_output_blocks: Annotated[
        bool | None,
        Flag(
            "A prompt waits until blocks for all that it may generate are free too.", rare=True, group=ENGINE
        ),
    ] = None
    prefix_caching: Annotated[
        bool | None, Flag("Blocks of shared prefixes are kept.", rare=True, group=ENGINE)
    ] = None
    graphs: Annotated[
        bool | None,
        Flag(
            "Steps replay captured graphs; otherwise the host launches each kernel.", rare=True, group=ENGINE
        ),
    ] = None
    preemption: Annotated[
        str | None, Choice("What happens to who must leave.", options=PREEMPTIONS, rare=True, group=ENGINE)
    ] = None
    expert_exchange: Annotated[
        str | None,
        Choice("How attention ranks meet at the experts.", options=EXPERT_EXCHANGES, rare=True, group=ENGINE),
    ] = None
    memory_fraction: Annotated[
        float | None,
        Share(
            "Share of the chip's memory that the engine takes.",
            name="memory_fraction",
            above=True,
            rare=True,
            group=ENGINE,
        ),
    ] = None
    reserved_bytes: Annotated[
        float | None, Quantity("Memory for context, graphs and buffers.", rare=True, group=ENGINE)
    ] = None
    host_step_s: Annotated[
        float | None,
        Quantity("Host time of a step that the chip waits for.", most=MOST_WAIT_S, rare=True, group=ENGINE),
    ] = None
    host_sequence_s: Annotated[
        float | None,
        Quantity("Host time that each sequence adds to a step.", most=MOST_WAIT_S, rare=True, group=ENGINE),
    ] = None
    wait_s: Annotated[
        float | None,
        Quantity(
            "Dynamic batching: how long a first request waits for company.",
            most=MOST_WAIT_S,
            needs=("batching=dynamic", "engine=dynamic"),
            rare=True,
            group=ENGINE,
        ),
    ] = None
    first_token_s: Annotated[
        float | None,
        Quantity(
            "Front end: tokenising, queues, the first chunk back.", most=MOST_WAIT_S, rare=True, group=ENGINE
        ),
    ] = None

    @property
    def phases(self) -> Role:
        """What its replicas do: all there is, where nobody says."""
        return self.role or EVERYTHING

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        if (self.resident_adapters or 0) > (self.adapters or 0):
            yield ScenarioError(
                f"{self.resident_adapters:,} of {self.adapters or 0:,} adapters cannot be resident",
                field="resident_adapters",
                hint=f"at most {option('resident_adapters', self.adapters)}",
            )
        if self.handoff_bytes_per_s is not None and self.phases != "prefill" and not self.disaggregated:
            yield ScenarioError(
                "only a prefill pool hands its cache over",
                field="handoff",
                hint=f"leave it out, or {option('disaggregated', 'prefill=1,decode=1')}",
            )
        if model is not None:
            yield from self._problems_of_model(model)

    def _problems_of_model(self, model: Model) -> Iterator[ScenarioError]:
        if self.pp > model.num_layers:
            yield ScenarioError(
                f"{self.pp:,} stages for the {model.num_layers} layers of {model.name}",
                field="pp",
                hint=f"at most {option('pp', model.num_layers)}",
            )
        if self.draft == OWN_LAYER and not model.num_mtp_layers:
            yield ScenarioError(
                f"{model.name} has no layer that drafts (multi-token prediction)",
                field="draft",
                hint=f"{option('draft', FREE_DRAFT)}, or the name of a smaller model",
            )
        if model.moe is not None:
            return
        said = {"routing_skew": self.routing_skew, "expert_exchange": self.expert_exchange}
        for field in (name for name, value in said.items() if value):
            yield ScenarioError(
                does_nothing(field, f"{model.name} has no experts"),
                field=field,
                hint=f"leave {option(field)} out",
            )
        if self.ep > 1:
            yield ScenarioError(
                f"{model.name} has no experts to spread over {self.ep:,} chips",
                field="ep",
                hint=f"leave {option('ep')} out; {option('tp')} splits its layers",
            )
