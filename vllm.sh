#!/usr/bin/env bash
# made by datahall 0.1.0: datahall plan serve llama-3.1-8b --seed 3 --users 300 --traffic rag --spread 0.5 --think 30s --ttft 3s --chips l40s --tp 2
# options as in vLLM 0.33.0
# 3 replicas of llama-3.1-8b on 6 × l40s, each of 2 chips (tp 2), fp8: 1 node of 8 chips
# its times are those of vLLM V1 (0.19), online serving
set -euo pipefail

MODEL=${MODEL:-meta-llama/Llama-3.1-8B}
NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-0}}  # of this node, from 0
PORT=${PORT:-8000}  # of the first replica on this node

REPLICAS=3
NODES=1
BESIDE=4  # replicas on a node
CHIPS=2  # of one replica

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
for ((slot = 0; slot < BESIDE; slot++)); do
  if ((NODE_RANK * BESIDE + slot >= REPLICAS)); then break; fi
  first=$((slot * CHIPS))
  vllm serve "$MODEL" \
    --tensor-parallel-size 2 \
    --pipeline-parallel-size 1 \
    --data-parallel-size 1 \
    --dtype bfloat16 \
    --quantization fp8 \
    --kv-cache-dtype auto \
    --gpu-memory-utilization 0.9 \
    --max-num-batched-tokens 2048 \
    --max-num-seqs 256 \
    --enable-chunked-prefill \
    --enable-prefix-caching \
    --host 0.0.0.0 \
    --port "$((PORT + slot))" \
    --device-ids "$(seq -s, "$first" "$((first + CHIPS - 1))")" &
done
wait -n
