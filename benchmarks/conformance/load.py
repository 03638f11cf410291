"""aiperf, which loads an endpoint and counts for itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from servers import MODEL, World

NUM_REQUESTS = 40
LONGEST_S = 600


def streamed(world: World) -> str:
    """So many streamed requests, as many answers as the client counts, and no error."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _tokenizer(place / "tokenizer")
        program = Path(sys.executable).with_name("aiperf")
        done = subprocess.run(
            [
                str(program), "profile", "--model", MODEL, "--url", world.url, "--endpoint-type", "chat", "--streaming",
                "--api-key", world.key, "--tokenizer", str(place / "tokenizer"), "--concurrency", "4",
                "--request-count", str(NUM_REQUESTS), "--isl", "64", "--osl", "32", "--ui", "none",
                "--artifact-dir", str(place / "out"),
            ],
            capture_output=True, text=True, timeout=LONGEST_S, check=False,
            env={name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        (file,) = (place / "out").rglob("profile_export_aiperf.json")
        found = json.loads(file.read_text())
    count, errors = found["request_count"]["avg"], (found.get("error_request_count") or {}).get("avg", 0)
    assert (count, errors) == (NUM_REQUESTS, 0), (count, errors)
    return f"{count:.0f} requests, TTFT {found['time_to_first_token']['avg']:.1f} ms by its own clock"


def _tokenizer(folder: Path) -> None:
    """One that knows bytes, as none can be downloaded everywhere."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: place for place, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


CHECKS = {"40 streamed requests, 4 at once": streamed}
