"""Families with experts, latent attention or recurrent layers: from a config to the fields of a `Model`."""

from __future__ import annotations

from collections.abc import Callable

from datahall.catalog.entries.layer_pattern import LETTERS
from datahall.catalog.entries.model import Layer, Mla, MlpKind, Moe, Recurrent
from datahall.catalog.huggingface.config import MOSAIC, STANDARD, Config, Values, layers, number
from datahall.catalog.huggingface.dense import biases

_BLOCK_LETTERS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "mlp": "-", "moe": "E",
}  # fmt: skip


def _routed(config: Config, values: Values, moe: Moe, *, first: int = 0, every: int = 1) -> list[MlpKind]:
    """Which layers route to experts; where all do, the dense width means nothing and is dropped."""
    if moe.top_k > moe.num_experts:
        config.problem(f"{moe.top_k} experts per token of {moe.num_experts}")
    only_dense = set(config.items("mlp_only_layers", int) or ())
    kinds: list[MlpKind] = [
        "moe" if index >= first and (index + 1) % every == 0 and index not in only_dense else "dense"
        for index in range(number(values, "num_layers"))
    ]
    if "dense" not in kinds:
        values["ffn"] = 0
    values["moe"] = moe
    return kinds


def _mixtral(config: Config) -> Values:
    values = config.sizes(num_kv_heads=8)
    moe = Moe(
        num_experts=config.count("num_local_experts"),
        top_k=config.count("num_experts_per_tok", default=2),
        expert_ffn=number(values, "ffn"),
    )
    mlps = _routed(config, values, moe)
    window, max_context = config.count("sliding_window", default=0), number(values, "max_context")
    return values | {"layers": layers(["window"] * len(mlps), mlps, window=window, max_context=max_context)}


def _phimoe(config: Config) -> Values:
    own: Values = {"norm": "layernorm", "head_bias": config.flag("lm_head_bias", False)}
    return _mixtral(config) | biases(config.flag("attention_bias", False)) | own


def _minimax_m2(config: Config) -> Values:
    values = _mixtral(config)
    moe = values["moe"]
    assert isinstance(moe, Moe)
    with_bias = Moe(num_experts=moe.num_experts, top_k=moe.top_k, expert_ffn=moe.expert_ffn, router_bias=True)
    return values | {"moe": with_bias, "qk_norm": "width"}


def _dbrx(config: Config) -> Values:
    experts = config.part("ffn_config")
    values = config.sizes(MOSAIC, num_kv_heads=config.part("attn_config").count("kv_n_heads"))
    moe = Moe(
        num_experts=experts.count("moe_num_experts"),
        top_k=experts.count("moe_top_k"),
        expert_ffn=experts.count("ffn_hidden_size"),
    )
    mlps = _routed(config, values, moe)
    return values | {"layers": layers(["full"] * len(mlps), mlps), "norm": "layernorm-nobias"}


def _llama4(config: Config) -> Values:
    if config.flag("attention_bias", False):
        config.refuse("attention_bias", "biases in Llama 4 attention")
    values = config.sizes(num_kv_heads=8, head_dim=128)
    expert_ffn = number(values, "ffn")
    values["ffn"] = config.count("intermediate_size_mlp", default=16384)
    moe = Moe(
        num_experts=config.count("num_local_experts"),
        top_k=config.count("num_experts_per_tok", default=1),
        expert_ffn=expert_ffn,
        num_shared_experts=1,
        shared_ffn=expert_ffn,
    )
    mlps = _routed(config, values, moe, every=config.count("interleave_moe_layer_step", default=1))
    if config.items("moe_layers", int) not in (None, [i for i, kind in enumerate(mlps) if kind == "moe"]):
        config.refuse("moe_layers", "other expert layers than interleave_moe_layer_step gives")
    # layers with rotary positions attend in chunks; every fourth has neither positions nor chunks
    roped = config.items("no_rope_layers", int) or [(index + 1) % 4 for index in range(len(mlps))]
    if len(roped) != len(mlps):
        config.problem(f'"no_rope_layers" names {len(roped)} layers of {len(mlps)}', "no_rope_layers")
    mixers = config.mixers(
        len(mlps), lambda index: "window" if index < len(roped) and roped[index] else "full"
    )
    window, max_context = config.count("attention_chunk_size", default=8192), number(values, "max_context")
    return values | {"layers": layers(mixers, mlps, window=window, max_context=max_context)}


def _gpt_oss(config: Config) -> Values:
    values = config.sizes(num_kv_heads=8, head_dim=64)
    moe = Moe(
        num_experts=config.count("num_local_experts"),
        top_k=config.count("num_experts_per_tok", "experts_per_token", default=4),
        expert_ffn=number(values, "ffn"),
        expert_bias=True,
        router_bias=True,
    )
    mlps = _routed(config, values, moe)
    mixers = config.mixers(len(mlps), lambda index: "window" if index % 2 == 0 else "full")
    window, max_context = config.count("sliding_window", default=128), number(values, "max_context")
    own: Values = {
        "layers": layers(mixers, mlps, window=window, max_context=max_context),
        "attention_sinks": True,
    }
    return values | biases(config.flag("attention_bias", True)) | own


def _qwen_experts(config: Config, values: Values) -> list[MlpKind]:
    if config.flag("use_sliding_window", False):
        config.refuse("use_sliding_window", "a window in a Qwen mixture of experts")
    shared = config.count("shared_expert_intermediate_size", default=0)
    moe = Moe(
        num_experts=config.count("num_experts"),
        top_k=config.count("num_experts_per_tok"),
        expert_ffn=config.count("moe_intermediate_size"),
        num_shared_experts=1 if shared else 0,
        shared_ffn=shared,
        shared_gate=bool(shared),
    )
    return _routed(config, values, moe, every=config.count("decoder_sparse_step", default=1))


def _qwen2_moe(config: Config) -> Values:
    values = config.sizes()
    mlps = _qwen_experts(config, values)
    return values | {"layers": layers(["full"] * len(mlps), mlps), "qkv_bias": config.flag("qkv_bias", True)}


def _qwen3_moe(config: Config) -> Values:
    return _qwen2_moe(config) | biases(config.flag("attention_bias", False)) | {"qk_norm": "head"}


def _qwen3_next(config: Config) -> Values:
    values = config.sizes(
        num_kv_heads=2, head_dim=256, ffn=5632
    )  # Qwen3.5 has no dense layer and no such key
    mlps = _qwen_experts(config, values)
    every = config.count("full_attention_interval", default=4)
    mixers = config.mixers(len(mlps), lambda index: "linear" if (index + 1) % every else "full")
    own: Values = {
        "layers": layers(mixers, mlps),
        "qk_norm": "head",
        "attention_gate": config.flag("attn_output_gate", True),
        "recurrent": Recurrent(
            num_heads=config.count("linear_num_value_heads", default=32),
            head_dim=config.count("linear_value_head_dim", default=128),
            num_key_heads=config.count("linear_num_key_heads", default=16),
            key_dim=config.count("linear_key_head_dim", default=128),
            conv_width=config.count("linear_conv_kernel_dim", default=4),
        ),
    }
    return values | biases(config.flag("attention_bias", False)) | own


def _shared_moe(config: Config, *, router_bias: bool) -> Moe:
    """Experts as DeepSeek names them: shared ones are as wide as routed ones."""
    expert_ffn = config.count("moe_intermediate_size")
    shared = config.count("n_shared_experts", default=0, at_least=0)
    groups = config.count("n_group", default=1)
    return Moe(
        num_experts=config.count("n_routed_experts"),
        top_k=config.count("num_experts_per_tok"),
        expert_ffn=expert_ffn,
        num_shared_experts=shared,
        shared_ffn=shared * expert_ffn,
        router_bias=router_bias,
        num_groups=groups,
        num_groups_per_token=config.count("topk_group", default=groups),
    )


def _deepseek(config: Config, *, router_bias: bool) -> Values:
    if config.flag("attention_bias", False):
        config.refuse("attention_bias", "biases in latent attention")
    if config.count("moe_layer_freq", default=1) != 1:
        config.refuse("moe_layer_freq", "experts in some of the later layers only")
    mla = Mla(
        q_rank=config.count("q_lora_rank", default=0),
        kv_rank=config.count("kv_lora_rank"),
        nope_head_dim=config.count("qk_nope_head_dim"),
        rope_head_dim=config.count("qk_rope_head_dim"),
        value_head_dim=config.count("v_head_dim"),
    )
    names = {**STANDARD, "head_dim": ()}  # some configs print one that is not the width of a query
    values = config.sizes(names, head_dim=mla.nope_head_dim + mla.rope_head_dim)
    first = config.count("first_k_dense_replace", default=0, at_least=0)
    mlps = _routed(config, values, _shared_moe(config, router_bias=router_bias), first=first)
    return values | {"layers": layers(["mla"] * len(mlps), mlps), "mla": mla}


def _deepseek_v2(config: Config) -> Values:
    return _deepseek(config, router_bias=False)


def _deepseek_v3(config: Config) -> Values:
    return _deepseek(config, router_bias=True)


def _glm4_moe(config: Config) -> Values:
    values = config.sizes(num_kv_heads=8)
    first = config.count("first_k_dense_replace", default=1, at_least=0)
    mlps = _routed(config, values, _shared_moe(config, router_bias=True), first=first)
    return values | {
        "layers": layers(["full"] * len(mlps), mlps),
        "qkv_bias": config.flag("attention_bias", False),
        "qk_norm": "head" if config.flag("use_qk_norm", False) else "none",
    }


def _nemotron_h(config: Config) -> Values:
    for key, reason in (
        ("moe_latent_size", "experts that work in a narrower space"),
        ("use_bias", "biases in the projections"),
        ("mamba_proj_bias", "biases in the Mamba projections"),
    ):
        if config.table.get(key):
            config.refuse(key, reason)
    if not config.flag("use_conv_bias", True):
        config.refuse("use_conv_bias", "a Mamba convolution without bias")
    pattern = _pattern(config)
    values = config.sizes(num_kv_heads=8, head_dim=128, num_layers=len(pattern))
    if len(pattern) != values["num_layers"]:
        config.problem(
            f"the pattern names {len(pattern)} layers of {values['num_layers']}", "num_hidden_layers"
        )
    if "-" not in pattern:
        values["ffn"] = 0
    if "E" in pattern:
        values["moe"] = _nemotron_experts(config)
    own: Values = {
        "layers": tuple(Layer(mixer=LETTERS[letter][0], mlp=LETTERS[letter][1]) for letter in pattern),
        "gated_mlp": False,
        "norms_per_layer": 1,
        "position": "none",
        "mlp_bias": config.flag("mlp_bias", False),
        "recurrent": Recurrent(
            num_heads=config.count("mamba_num_heads"),
            head_dim=config.count("mamba_head_dim"),
            num_key_heads=config.count("n_groups", "mamba_n_groups", default=8),
            key_dim=config.count("ssm_state_size", default=128),
            conv_width=config.count("conv_kernel", "mamba_d_conv", default=4),
        ),
    }
    return values | biases(config.flag("attention_bias", False)) | own


def _nemotron_experts(config: Config) -> Moe:
    shared = config.count("n_shared_experts", default=1, at_least=0)
    return Moe(
        num_experts=config.count("n_routed_experts"),
        top_k=config.count("num_experts_per_tok"),
        expert_ffn=config.count("moe_intermediate_size"),
        num_shared_experts=shared,
        shared_ffn=config.count("moe_shared_expert_intermediate_size") if shared else 0,
        router_bias=True,
    )


def _pattern(config: Config) -> str:
    """The hybrid's layers as letters, from either spelling of the config."""
    names = config.items("layers_block_type", str)
    if names is None:
        pattern = config.text("hybrid_override_pattern")
        if unknown := sorted(set(pattern) - {"M", "*", "-", "E"}):
            config.refuse("hybrid_override_pattern", f"unknown letters {' '.join(unknown)}")
        return "".join(letter for letter in pattern if letter in LETTERS)
    if unknown := sorted({str(name) for name in names} - set(_BLOCK_LETTERS)):
        config.refuse("layers_block_type", f"unknown blocks {', '.join(unknown)}")
    return "".join(_BLOCK_LETTERS.get(str(name), "-") for name in names)


SPARSE: dict[str, Callable[[Config], Values]] = {
    "dbrx": _dbrx,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "glm4_moe": _glm4_moe,
    "gpt_oss": _gpt_oss,
    "kimi_k2": _deepseek_v3,
    "llama4": _llama4,
    "llama4_text": _llama4,
    "minimax_m2": _minimax_m2,
    "mixtral": _mixtral,
    "nemotron_h": _nemotron_h,
    "phimoe": _phimoe,
    "qwen2_moe": _qwen2_moe,
    "qwen3_5_moe": _qwen3_next,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
}
