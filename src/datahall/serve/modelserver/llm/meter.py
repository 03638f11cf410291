"""What the embedded model counts: requests by where they are, tokens, and how long the first took."""

from __future__ import annotations

from typing import Any

from datahall.serve.modelserver.meter import WAITS_S, Histogram


class LlmMeter:
    """Written on the event loop alone."""

    def __init__(self) -> None:
        self.num_waiting = 0
        self.num_running = 0
        self.num_failed = 0
        self.num_refused = 0
        self.num_cancelled = 0
        self.num_prompt_tokens = 0
        self.num_completion_tokens = 0
        self.first_token_s = Histogram(WAITS_S)

    def start(self) -> None:
        """A request has a slot."""
        self.num_waiting -= 1
        self.num_running += 1

    def end(self, *, was_cancelled: bool, had_slot: bool) -> None:
        """A request has none any more, or never had one."""
        if had_slot:
            self.num_running -= 1
        else:
            self.num_waiting -= 1
        self.num_cancelled += was_cancelled

    def count(self, usage: dict[str, Any]) -> None:
        """The tokens of an answer."""
        self.num_prompt_tokens += int(usage.get("prompt_tokens", 0))
        self.num_completion_tokens += int(usage.get("completion_tokens", 0))

    def exposition(self, model: str) -> str:
        """The counters in the text format of Prometheus."""
        values = {
            ("requests_running", "gauge"): self.num_running,
            ("requests_waiting", "gauge"): self.num_waiting,
            ("failed_total", "counter"): self.num_failed,
            ("refused_total", "counter"): self.num_refused,
            ("cancelled_total", "counter"): self.num_cancelled,
            ("prompt_tokens_total", "counter"): self.num_prompt_tokens,
            ("generation_tokens_total", "counter"): self.num_completion_tokens,
        }
        labels, text = f'model="{model}"', []
        for (family, kind), value in values.items():
            name = f"datahall_llm_{family}"
            text += [f"# TYPE {name} {kind}", f"{name}{{{labels}}} {value}"]
        name = "datahall_llm_time_to_first_token_seconds"
        text += [f"# TYPE {name} histogram", *self.first_token_s.lines(name, labels)]
        return "\n".join(text) + "\n"
