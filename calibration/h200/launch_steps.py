"""Decode steps launched from the host and replayed as a CUDA graph, plain PyTorch modules without autograd.

    python calibration/h200/launch_steps.py > calibration/h200/launch_steps.csv       (on the chip)

A step is what `forward_pass` describes: the same ten operators a layer, each called from its module.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MODELS = {
    "llama-3.2-1b": (16, 2048, 32, 8, 64, 8192),
    "llama-3.2-3b": (28, 3072, 24, 8, 128, 8192),
    "llama-3.1-8b": (32, 4096, 32, 8, 128, 14336),
}
VOCAB, REPEATS = 128256, 20


class Layer(nn.Module):
    def __init__(
        self, hidden: int, heads: int, kv_heads: int, width: int, ffn: int, batch: int, context: int
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, width
        self.mixer_norm, self.mlp_norm = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * width, bias=False)
        self.output = nn.Linear(heads * width, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)
        self.register_buffer("keys", torch.randn(batch, kv_heads, context, width))
        self.register_buffer("values", torch.randn(batch, kv_heads, context, width))

    def forward(self, x: Tensor, place: Tensor, turn: Tensor) -> Tensor:
        batch = x.shape[0]
        q, k, v = (
            self.qkv(self.mixer_norm(x))
            .view(batch, 1, -1, self.width)
            .transpose(1, 2)
            .split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        )
        q, k = _turned(q, turn), _turned(k, turn)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = F.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True)
        x = x + self.output(seen.transpose(1, 2).reshape(batch, -1))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    low, high = x[..., :half], x[..., half:]
    cos, sin = turn[0], turn[1]
    return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)


class Decoder(nn.Module):
    def __init__(self, num_layers: int, hidden: int, *shape: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden)
        self.layers = nn.ModuleList(Layer(hidden, *shape) for _ in range(num_layers))
        self.final_norm, self.head = nn.RMSNorm(hidden), nn.Linear(hidden, VOCAB, bias=False)

    def forward(self, tokens: Tensor, place: Tensor, turn: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, place, turn)
        return self.head(self.final_norm(x))


def timed(step, num: int = REPEATS) -> float:
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    taken = []
    for _ in range(num):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[num // 2]


def measured(name: str, batch: int, context: int) -> str:
    num_layers, hidden, heads, kv_heads, width, ffn = MODELS[name]
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Decoder(num_layers, hidden, heads, kv_heads, width, ffn, batch, context)
        tokens = torch.randint(0, VOCAB, (batch,))
        place, turn = torch.tensor([context - 1]), torch.randn(2, width // 2)
    with torch.inference_mode():
        eager_s = timed(lambda: model(tokens, place, turn))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(tokens, place, turn)
        graph_s = timed(graph.replay)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            graph.replay()
            torch.cuda.synchronize()
    num = sum(one.count for one in seen.key_averages() if one.device_type == torch.autograd.DeviceType.CUDA)
    return f"{name},{num_layers},{batch},{context},{eager_s:.6g},{graph_s:.6g},{num}"


if __name__ == "__main__":
    print("model,num_layers,batch,context,host_step_s,graph_step_s,num_kernels")
    for name in MODELS:
        for batch in (1, 2, 8, 32, 64, 128, 256):
            print(measured(name, batch, 1024), flush=True)
            torch.cuda.empty_cache()
