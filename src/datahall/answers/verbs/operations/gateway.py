"""Verbs about a gateway: its keys, what they used, what it does now, and how it answers under load."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes

SIMULATED = ("chip", "tp", "precision", "engine", "max_sequences", "replicas")
STATE = Takes("gateway")
NAMED = Takes("key", only=("name",))

VERBS = (
    Verb(
        name="gateway keys create",
        about="a new key, with its limits; the secret is said once",
        answer="gateway.keys:gateway_keys_create",
        takes=(Takes("key"), STATE),
        required=("name",),
        by_file=False,
        examples=(
            "--name acme --rpm 600 --tpm 200000 --budget 50USD/month",
            '--name tests --customer acme --models "llama-*" --routes chat --expires 90d',
        ),
    ),
    Verb(
        name="gateway keys list",
        about="keys with their limits, and what each has spent",
        answer="gateway.keys:gateway_keys_list",
        takes=(STATE,),
        by_file=False,
        examples=("",),
    ),
    Verb(
        name="gateway keys limit",
        about="other limits for a key; those that are not named stay",
        answer="gateway.keys:gateway_keys_limit",
        takes=(Takes("key", only=("name", "limits…")), STATE),
        arguments=("name",),
        required=("name",),
        by_file=False,
        examples=("acme --rpm 1200 --budget 80USD/month",),
    ),
    Verb(
        name="gateway keys rotate",
        about="another secret for a key, said once; the one before lets nobody in any more",
        answer="gateway.keys:gateway_keys_rotate",
        takes=(NAMED, STATE),
        arguments=("name",),
        required=("name",),
        by_file=False,
        examples=("acme",),
    ),
    Verb(
        name="gateway keys revoke",
        about="end a key, at once and for good",
        answer="gateway.keys:gateway_keys_revoke",
        takes=(NAMED, STATE),
        arguments=("name",),
        required=("name",),
        by_file=False,
        examples=("acme",),
    ),
    Verb(
        name="gateway customers list",
        about="customers with the limits that their keys share, and what each has spent",
        answer="gateway.customers:gateway_customers_list",
        takes=(STATE,),
        by_file=False,
        examples=("",),
    ),
    Verb(
        name="gateway customers limit",
        about="other limits for all keys of a customer together; those that are not named stay",
        answer="gateway.customers:gateway_customers_limit",
        takes=(Takes("key", only=("customer", "limits…")), STATE),
        arguments=("customer",),
        required=("customer",),
        by_file=False,
        means=(("customer", "Whose keys share the limits."),),
        examples=("acme --rpm 3000 --budget 200USD/month",),
    ),
    Verb(
        name="gateway bill",
        about="requests, tokens and money of a month, by customer, key and model",
        answer="gateway.bill:gateway_bill",
        takes=(Takes("billing"), STATE),
        by_file=False,
        examples=("", "--month 2026-11 --format csv"),
    ),
    Verb(
        name="gateway top",
        about="what a gateway does now: rates, latencies, queue, errors and money, by model and key",
        answer="gateway.top:gateway_top",
        views="gateway.top:gateway_tops",
        takes=(Takes("endpoint", only=("url", "key_from", "window")),),
        arguments=("url",),
        by_file=False,
        means=(
            ("url", "Where it shows its metrics (default: http://127.0.0.1:8080)."),
            ("key_from", "Variable of the environment that has a key, where a proxy before it asks for one."),
        ),
        examples=("", "--once --json", "http://10.0.0.5:9464 --window 1min"),
        details="On a terminal it is drawn again every second until Ctrl-C. Metrics are shown at the gateway's own "
        "address on loopback, elsewhere at that of metrics in [telemetry] of its file.",
    ),
    Verb(
        name="gateway load",
        about="requests sent to an endpoint: TTFT, TPOT, ITL, E2E and throughput, beside what is simulated",
        answer="gateway.load:gateway_load",
        takes=(
            Takes("endpoint", only=("url", "key_from", "served")),
            Takes(
                "traffic",
                only=("rate", "users", "isl", "osl", "spread", "burstiness", "think", "requests", "duration"),
            ),
            Takes("", only=("model", "seed")),
            Takes("deployment", only=SIMULATED, needs=tuple((name, ("model",)) for name in SIMULATED)),
        ),
        arguments=("url",),
        required=("url",),
        by_file=False,
        means=(
            ("requests", "Requests to send (default: five of each user, or 30 s at the rate)."),
            ("model", "A model of the catalogue, whose simulated service stands beside what was measured."),
        ),
        leads=("most output_throughput", "least median_ttft_ms", "least median_tpot_ms"),
        examples=(
            "http://127.0.0.1:8080 --users 200 --isl 500 --osl 100",
            "http://127.0.0.1:8080 --rate 20 --duration 1min",
            "http://127.0.0.1:8080 --users 64 --model llama-3.1-70b --chip h100-sxm --tp 4 --replicas 3",
        ),
        details="It speaks OpenAI's chat, streamed. A rate is an open loop: what is sent late counts from when it was "
        "due. The names and milliseconds are those of vLLM's benchmark.",
    ),
)
