"""The conversation as a message's author may be told it, for decisions on somebody who may not read the history."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from conversation import ChannelConversation
from state.message import MAX_JOINED, MessageRecord


def as_told(message: MessageRecord, conversation: ChannelConversation) -> ChannelConversation:
    """The latest messages without the words of others and the answers to them, but with who spoke to whom, and when.

    Whether the bot answers, and what /why says of it, would else tell the author whether these words were said.
    """
    _ = conversation.heard  # as long as it has the words that name people
    author_id, found = message.author_id, copy(conversation)
    found.messages = [
        m if author_id in (m.addressees if m.is_bot else (m.author_id,)) else _wordless(m)
        for m in conversation.messages[-MAX_JOINED:]
    ]
    return found


def _wordless(message: MessageRecord) -> MessageRecord:
    # Whom its words name is known already: to look for that in a hundred long messages takes milliseconds.
    return replace(message, content="", readable="", reply_to_text="", mentioned=message.named, images=(), files=())
