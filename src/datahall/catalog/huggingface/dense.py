"""Families whose layers all have one dense MLP: from the keys of a config to the fields of a `Model`."""

from __future__ import annotations

from collections.abc import Callable

from datahall.catalog.entries.model import MixerKind
from datahall.catalog.huggingface.config import GPT, MOSAIC, Config, Values, layers, number


def alike(values: Values, window: int = 0) -> Values:
    """Add layers that are all of one kind; a window of 0 tokens is none."""
    num_layers = number(values, "num_layers")
    stack = layers(
        ["window"] * num_layers,
        ["dense"] * num_layers,
        window=window,
        max_context=number(values, "max_context"),
    )
    return values | {"layers": stack}


def biases(bias: bool) -> Values:
    """Attention with a bias in all of its projections, or in none."""
    return {"qkv_bias": bias, "output_bias": bias}


_PLAIN: Values = {"gated_mlp": False, "norm": "layernorm"}  # the MLP and the norm of GPT
_ALL_BIASES: Values = {"qkv_bias": True, "output_bias": True, "mlp_bias": True}


def _gpt2(config: Config) -> Values:
    if config.flag("add_cross_attention", False):
        config.refuse("add_cross_attention", "cross-attention layers")
    return alike(config.sizes(GPT, tied=True, ffn_ratio=4)) | _PLAIN | _ALL_BIASES | {"position": "learned"}


def _gptj(config: Config) -> Values:
    own: Values = {"norms_per_layer": 1, "mlp_bias": True, "head_bias": True, "parallel_block": True}
    return alike(config.sizes(GPT, ffn_ratio=4)) | _PLAIN | own


def _gpt_neox(config: Config) -> Values:
    own: Values = {"mlp_bias": True, "parallel_block": config.flag("use_parallel_residual", True)}
    return alike(config.sizes()) | _PLAIN | biases(config.flag("attention_bias", True)) | own


def _opt(config: Config) -> Values:
    values = config.sizes(tied=True)
    if config.count("word_embed_proj_dim", default=number(values, "hidden")) != values["hidden"]:
        config.refuse("word_embed_proj_dim", "a token table narrower than the model")
    if not config.flag("do_layer_norm_before", True):
        config.refuse("do_layer_norm_before", "norms after each block and none at the end")
    if not config.flag("layer_norm_elementwise_affine", True):
        config.refuse("layer_norm_elementwise_affine", "norms without weights")
    bias = config.flag("enable_bias", True)
    own: Values = {
        "mlp_bias": bias,
        "position": "learned",
        "num_positions": number(values, "max_context") + 2,  # the first two rows are reserved
    }
    return alike(values) | _PLAIN | biases(bias) | own


def _bloom(config: Config) -> Values:
    own: Values = {"position": "alibi", "embedding_norm": True}
    return alike(config.sizes(GPT, tied=True, ffn_ratio=4, max_context=2048)) | _PLAIN | _ALL_BIASES | own


def _mpt(config: Config) -> Values:
    attention = config.part("attn_config")
    if attention.flag("qk_ln", False):
        attention.refuse("qk_ln", "layer norms on queries and keys")
    kind = attention.text("attn_type", "multihead_attention")
    if kind not in {"multihead_attention", "multiquery_attention"}:
        attention.refuse("attn_type", "an unknown kind of attention")
    values = config.sizes(MOSAIC, tied=True, ffn_ratio=config.count("expansion_ratio", default=4))
    if kind == "multiquery_attention":
        values["num_kv_heads"] = 1
    learned = "learned" if config.flag("learned_pos_emb", True) else "none"
    bias = not config.flag("no_bias", True)
    own: Values = {
        "gated_mlp": False,
        "norm": "layernorm" if bias else "layernorm-nobias",
        "position": "alibi" if attention.flag("alibi", True) else learned,
        "mlp_bias": bias,
    }
    return alike(values) | biases(bias) | own


def _falcon(config: Config) -> Values:
    newer = config.flag("new_decoder_architecture", False)
    parallel = newer or config.flag("parallel_attn", True)
    values = config.sizes(tied=True, ffn_ratio=4, max_context=2048)
    if not newer:  # the older configs print a count of key-value heads that they do not use
        values["num_kv_heads"] = 1 if config.flag("multi_query", True) else values["num_heads"]
    bias = config.flag("bias", False)
    own: Values = {
        "norms_per_layer": config.count("num_ln_in_parallel_attn", default=2 if newer or not parallel else 1),
        "position": "alibi" if config.flag("alibi", False) else "rope",
        "mlp_bias": bias,
        "parallel_block": parallel,
    }
    return alike(values) | _PLAIN | biases(bias) | own


def _llama(config: Config) -> Values:
    own: Values = {"mlp_bias": config.flag("mlp_bias", False)}
    return alike(config.sizes()) | biases(config.flag("attention_bias", False)) | own


def _olmo2(config: Config) -> Values:
    return _llama(config) | {"qk_norm": "width"}


def _nemotron(config: Config) -> Values:
    return _llama(config) | _PLAIN


def _mistral(config: Config) -> Values:
    # a config without the key means 4,096 tokens, one with null means no window
    window = config.count("sliding_window", default=0 if "sliding_window" in config.table else 4096)
    return alike(config.sizes(num_kv_heads=8), window)


def _qwen2(config: Config) -> Values:
    return _qwen(config, config.sizes()) | {"qkv_bias": True}


def _qwen3(config: Config) -> Values:
    values = _qwen(config, config.sizes(head_dim=128))
    return values | biases(config.flag("attention_bias", False)) | {"qk_norm": "head"}


def _qwen(config: Config, values: Values) -> Values:
    """Qwen's layers past `max_window_layers` see a window, where a window is switched on at all."""
    window = config.count("sliding_window", default=0) if config.flag("use_sliding_window", False) else 0
    first = config.count("max_window_layers", default=28, at_least=0)
    return _some_windows(config, values, window, lambda index: "window" if index >= first else "full")


def _some_windows(config: Config, values: Values, window: int, rule: Callable[[int], MixerKind]) -> Values:
    num_layers, max_context = number(values, "num_layers"), number(values, "max_context")
    mixers = config.mixers(num_layers, rule)
    return values | {"layers": layers(mixers, ["dense"] * num_layers, window=window, max_context=max_context)}


def _gemma(config: Config) -> Values:
    return alike(config.sizes(tied=True, head_dim=256)) | biases(config.flag("attention_bias", False))


def _gemma2(config: Config) -> Values:
    values = config.sizes(tied=True, head_dim=256, num_kv_heads=4)
    return _gemma_windows(config, values, every=2)


def _gemma3(config: Config) -> Values:
    # the multimodal configs leave to the library what their size shares with its defaults
    values = config.sizes(
        tied=True, head_dim=256, num_heads=8, num_kv_heads=4, vocab=262208, max_context=131072
    )
    every = config.count("sliding_window_pattern", default=6)
    return _gemma_windows(config, values, every) | {"qk_norm": "head"}


def _gemma_windows(config: Config, values: Values, every: int) -> Values:
    window = config.count("sliding_window", default=4096)
    values = _some_windows(config, values, window, lambda index: "window" if (index + 1) % every else "full")
    return values | biases(config.flag("attention_bias", False)) | {"norms_per_layer": 4}


def _phi(config: Config) -> Values:
    if config.flag("qk_layernorm", False):
        config.refuse("qk_layernorm", "layer norms on queries and keys")
    own: Values = {"norms_per_layer": 1, "head_bias": True, "parallel_block": True}
    return alike(config.sizes()) | _PLAIN | _ALL_BIASES | own


def _phi3(config: Config) -> Values:
    return alike(config.sizes(), config.count("sliding_window", default=0))


def _cohere(config: Config) -> Values:
    values = config.sizes(tied=True)
    own: Values = {
        "max_context": config.count("model_max_length", default=number(values, "max_context")),
        "norm": "layernorm-nobias",
        "norms_per_layer": 1,
        "qk_norm": "width" if config.flag("use_qk_norm", False) else "none",
        "parallel_block": True,
    }
    return alike(values) | biases(config.flag("attention_bias", False)) | own


def _starcoder2(config: Config) -> Values:
    bias = config.flag("use_bias", True)
    values = alike(config.sizes(tied=True, num_kv_heads=2), config.count("sliding_window", default=0))
    return values | _PLAIN | biases(bias) | {"mlp_bias": bias}


DENSE: dict[str, Callable[[Config], Values]] = {
    "bloom": _bloom,
    "cohere": _cohere,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "gptj": _gptj,
    "granite": _llama,
    "llama": _llama,
    "mistral": _mistral,
    "mpt": _mpt,
    "nemotron": _nemotron,
    "olmo2": _olmo2,
    "opt": _opt,
    "phi": _phi,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "starcoder2": _starcoder2,
}
