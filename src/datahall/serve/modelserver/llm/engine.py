"""llama.cpp in this process: slots that decode side by side, and one blocking call for each request.

Its own HTTP server cannot be switched off: it is bound to a socket in a folder of our own, with a key that nobody has.
"""

from __future__ import annotations

import importlib
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from datahall.errors import ScenarioError

SILENT = -1
# The template inside the file adds a system prompt, under which this model answers worse: asked for the capital of
# France it names L'Étoile, without it Paris.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WARM_UP = b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":1,"stream":true}'

Hear = Callable[[bytes], bool]


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests decode side by side, and what each may hold."""

    num_slots: int = 4
    num_context: int = 2048  # tokens of prompt and answer, of one slot
    num_batch: int = 64  # tokens of a prompt between two looks at whether its client is still there
    num_threads: int = (
        0  # all cores but one, which reads requests; threads that share a core wait for each other
    )


class Engine(Protocol):
    """What decodes. Both of its calls block until their request has ended, so they are made on a thread."""

    num_slots: int

    def chat(self, body: bytes, hear: Hear) -> None:
        """Answer a chat request by events, as bytes of JSON, until `hear` says that it has heard enough."""

    def complete(self, body: bytes, hear: Hear) -> None:
        """Go on with a text, in the same way."""

    def close(self) -> None:
        """Let the model go; nothing may be running."""


class Llama:
    """A GGUF file, loaded."""

    def __init__(self, file: Path, name: str, slots: Slots) -> None:
        try:
            llama = importlib.import_module("xllamacpp")
        except ImportError:
            raise ScenarioError(
                "the embedded model needs llama.cpp", hint='pip install "datahall[llm]"'
            ) from None
        self.num_slots = slots.num_slots
        self.folder = tempfile.TemporaryDirectory(prefix="datahall-llm-")  # of this user alone
        params = llama.CommonParams()
        params.model.path = str(file)
        params.model_alias = {name}
        params.hostnames = [str(Path(self.folder.name) / "llama.sock")]
        params.api_keys = [secrets.token_hex(32)]
        params.chat_template = TEMPLATE
        params.n_parallel = slots.num_slots
        params.n_ctx = slots.num_slots * slots.num_context
        params.n_batch = params.n_ubatch = slots.num_batch
        threads = slots.num_threads or max(1, (os.cpu_count() or 2) - 1)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_ram_mib = 0  # prompts of others are kept nowhere but in their slot
        params.fit_params = False
        params.warmup = False  # a request is a better one
        params.verbosity = SILENT
        try:
            self._server: Any = llama.Server(params)
        except RuntimeError:
            self.folder.cleanup()
            raise ScenarioError(f"{file} is not a model that llama.cpp can run", where=str(file)) from None
        # and before its loop has taken a first request, it cannot be ended: it would never hear that it should
        self.chat(WARM_UP, lambda _: False)

    def chat(self, body: bytes, hear: Hear) -> None:
        self._server.handle_chat_completions(body, hear)

    def complete(self, body: bytes, hear: Hear) -> None:
        self._server.handle_completions(body, hear)

    def close(self) -> None:
        self._server = None
        self.folder.cleanup()
