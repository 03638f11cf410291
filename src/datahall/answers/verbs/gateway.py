"""Verbs about a gateway: its keys, and what they used."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes

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
        name="gateway bill",
        about="requests, tokens and money of a month, by customer, key and model",
        answer="gateway.bill:gateway_bill",
        takes=(Takes("billing"), STATE),
        by_file=False,
        examples=("", "--month 2026-11 --format csv"),
    ),
)
