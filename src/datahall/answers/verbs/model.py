"""Verbs about one model: what it takes, and one pass of it on a chip."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes

MODEL = Takes("", only=("model",))
MODEL_DETAILS = "MODEL is a name of the catalogue or a config.json in the Hugging Face format."

VERBS = (
    Verb(
        name="show model",
        about="parameters, FLOPs and bytes, cache, and what it fits on",
        answer="model.model:show_model",
        takes=(
            MODEL,
            Takes("sequences"),
            Takes("deployment", only=("precision",)),
            Takes("candidates", only=("chips",)),
        ),
        arguments=("model",),
        required=("model",),
        means=(("chips", "Kinds of chip to see whether it fits on (default: a few usual ones)."),),
        leads=(
            "least weight_bytes",
            "least kv_bytes_per_token",
            "least decode_bytes_per_token",
            "least forward_flop_per_token",
        ),
        examples=(
            "llama-3.1-70b --context 8192",
            "path/to/config.json --precision fp8 --batch 64",
            "qwen3-32b --chips l40s,rtx-4090",
        ),
        details=MODEL_DETAILS,
    ),
    Verb(
        name="show roofline",
        about="a pass on one chip: time, bound and efficiency by operator",
        answer="model.roofline:show_roofline",
        check="inference.early:check_pass",
        takes=(
            MODEL,
            Takes("deployment", only=("chip", "tp", "precision")),
            Takes("sequences"),
            Takes("pass"),
        ),
        arguments=("chip",),
        required=("chip", "model"),
        means=(
            ("tp", "Chips that share each layer, of which one is shown (default: one alone)."),
            (
                "context",
                "Tokens of a prompt that prefill runs, or that a sequence holds before decode adds one.",
            ),
        ),
        leads=(
            "least pass_s",
            "most tokens_per_s",
        ),
        examples=(
            "h200 --model llama-3.1-8b --phase decode --batch 32 --context 4096",
            "h100-sxm --model llama-3.1-70b --phase prefill --tp 4 -o roofline.html",
        ),
        details=(
            "Prefill runs prompts of the context; decode adds a token to sequences that hold it. On one chip, unless "
            "several share each layer. Exit code 1 where it does not fit."
        ),
    ),
)
