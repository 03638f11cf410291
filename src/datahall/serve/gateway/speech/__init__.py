"""Two languages, OpenAI's chat and Anthropic's messages: who asks in one may be answered by who speaks the other."""

from __future__ import annotations

from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.speech.chat_by_messages import ChatByMessages
from datahall.serve.gateway.speech.messages_by_chat import MessagesByChat
from datahall.serve.gateway.speech.translation import Guarded, Translation
from datahall.serve.upstreams.upstream import INFERENCE, Api


def translation_of(kind: Kind, api: Api, wants_usage: bool, longest: int) -> Translation | None:
    """What stands between a question and an upstream; nothing where they speak alike.

    `longest`: tokens of an answer whose length the question leaves open, where the upstream must be told one.
    """
    if kind == "messages" and api == "openai":
        return Guarded(MessagesByChat())
    if kind == "chat" and api == "anthropic":
        return Guarded(ChatByMessages(wants_usage, longest))
    return None


def can_answer(kind: Kind, api: Api) -> bool:
    """Whether an upstream knows what is asked in any language."""
    if api == INFERENCE or kind in ("predict", "infer"):
        return api == INFERENCE and kind in ("predict", "infer")
    return api == "openai" or kind in ("chat", "messages")
