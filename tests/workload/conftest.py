"""Small catalogue of architectures, one of each kind, written out so that these tests need no data files."""

from __future__ import annotations

import pytest

from datahall.catalog.entries.model import Layer, Mla, Model, Moe, Recurrent

FULL = Layer(mixer="full", mlp="dense")


def _model(name: str, **fields: object) -> Model:
    defaults = {"title": name, "family": "", "year": 2024, "max_context": 131072}
    return Model(name=name, **(defaults | fields))  # type: ignore[arg-type]


def _llama(name: str, layers: int, hidden: int, heads: int, ffn: int, *, vocab: int = 128256) -> Model:
    return _model(
        name,
        num_layers=layers,
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=8,
        head_dim=128,
        ffn=ffn,
        vocab=vocab,
        layers=(FULL,) * layers,
    )


LLAMA = _llama("llama-3.1-8b", 32, 4096, 32, 14336)
LLAMA_70B = _llama("llama-3.1-70b", 80, 8192, 64, 28672)
LLAMA_405B = _llama("llama-3.1-405b", 126, 16384, 128, 53248)
LLAMA_3B = _llama("llama-3b", 28, 3072, 24, 8192, vocab=32000)

GPT = _model(
    "gpt-3-175b",
    num_layers=96,
    hidden=12288,
    num_heads=96,
    num_kv_heads=96,
    head_dim=128,
    ffn=4 * 12288,
    vocab=51200,
    max_context=2048,
    layers=(FULL,) * 96,
    gated_mlp=False,
    norm="layernorm",
    position="learned",
    tied_embeddings=True,
)

MIXTRAL = _model(
    "mixtral-8x7b",
    num_layers=32,
    hidden=4096,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    ffn=0,
    vocab=32000,
    layers=(Layer(mixer="full", mlp="moe"),) * 32,
    moe=Moe(num_experts=8, top_k=2, expert_ffn=14336),
)

DEEPSEEK = _model(
    "deepseek-v3",
    num_layers=61,
    hidden=7168,
    num_heads=128,
    num_kv_heads=128,
    head_dim=192,
    ffn=18432,
    vocab=129280,
    layers=(Layer(mixer="mla", mlp="dense"),) * 3 + (Layer(mixer="mla", mlp="moe"),) * 58,
    moe=Moe(num_experts=256, top_k=8, expert_ffn=2048, num_shared_experts=1, shared_ffn=2048),
    mla=Mla(q_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128),
)

_NEAR = Layer(mixer="window", mlp="dense", window=1024)
GEMMA = _model(
    "gemma-3-27b",
    num_layers=62,
    hidden=5376,
    num_heads=32,
    num_kv_heads=16,
    head_dim=128,
    ffn=21504,
    vocab=262208,
    layers=((_NEAR,) * 5 + (FULL,)) * 10 + (_NEAR,) * 2,
    norms_per_layer=4,
    qk_norm="head",
    tied_embeddings=True,
)

_LINEAR = Layer(mixer="linear", mlp="moe")
QWEN_NEXT = _model(
    "qwen3-next-80b-a3b",
    num_layers=48,
    hidden=2048,
    num_heads=16,
    num_kv_heads=2,
    head_dim=256,
    ffn=0,
    vocab=151936,
    layers=((_LINEAR,) * 3 + (Layer(mixer="full", mlp="moe"),)) * 12,
    qk_norm="head",
    attention_gate=True,
    moe=Moe(
        num_experts=512, top_k=10, expert_ffn=512, num_shared_experts=1, shared_ffn=512, shared_gate=True
    ),
    recurrent=Recurrent(num_heads=32, head_dim=128, num_key_heads=16, key_dim=128),
)

ALL = {
    one.name: one
    for one in (LLAMA, LLAMA_70B, LLAMA_405B, LLAMA_3B, GPT, MIXTRAL, DEEPSEEK, GEMMA, QWEN_NEXT)
}


@pytest.fixture(scope="session")
def models() -> dict[str, Model]:
    return ALL


@pytest.fixture(scope="session", params=sorted(ALL))
def model(request: pytest.FixtureRequest) -> Model:
    return ALL[request.param]


@pytest.fixture(scope="session")
def llama() -> Model:
    return LLAMA


@pytest.fixture(scope="session")
def gpt() -> Model:
    return GPT


@pytest.fixture(scope="session")
def mixtral() -> Model:
    return MIXTRAL


@pytest.fixture(scope="session")
def deepseek() -> Model:
    return DEEPSEEK


@pytest.fixture(scope="session")
def gemma() -> Model:
    return GEMMA


@pytest.fixture(scope="session")
def qwen_next() -> Model:
    return QWEN_NEXT
