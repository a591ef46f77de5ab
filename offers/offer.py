"""Values of an offer: what it is about, how it can be answered, and how it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from state.message import MessageRecord
from understanding.cancel import one_of, plain

LINK = "{link}"
"""Placeholder in an opportunity's line for the link to its subject."""


class Reply(StrEnum):
    """Somebody's answer to an offer."""

    YES = "yes"
    NOT_NOW = "not_now"
    NOT_HERE = "not_here"


LABELS: Mapping[str, str] = {Reply.YES: "Yes, please", Reply.NOT_NOW: "Not now", Reply.NOT_HERE: "Not in this channel"}
# The phrases of a reply, in lower case, without punctuation. Polite words alone answer nothing, except those in ALONE.
CIVIL = one_of(
    "please|pls|plz|(?:thanks|thank you|thx|ty)(?: so much| very much| a lot)?|ok|okay|oh|ah|well|then|great|cool"
    "|perfect"
)
ALONE = frozenset("please|pls|plz|ok|okay|yes please|great|perfect".split("|"))
YES = one_of(r"""
    yes|yeah|yep|yup|ya|y|sure|alright|absolutely|definitely|certainly|of course|by all means
    please do|go ahead|go for it|do it|do that|why not|sounds good|if you can|help me|try(?: it)?
    (?:that|it|this) (?:would|will|d) be (?:very |so |really )?(?:great|nice|good|perfect|lovely|awesome|helpful|cool)
    thatd be (?:great|nice|good|perfect|lovely|awesome|helpful|cool)
    (?:id|i would) (?:love|like) (?:that|it|to)|give it a (?:try|go|shot)|(?:have|take) a (?:look|go)
""")
NO = one_of(r"""
    no need|no more|not (?:right )?now|not yet|not interested|not needed|nope|nah|no|n|(?:maybe )?later
    (?:some other|another) time|never ?mind|nvm|(?:please )?(?:dont|do not)|stop|go away|cancel|for now
    (?:absolutely|definitely|certainly|of course) not
    im (?:good|fine|ok|okay)|all good|(?:its|thats) (?:fine|ok|okay)|forget it|leave it|rather not
""")
HERE = one_of(r"""
    never here again
    (?:no )?(?:no|not|never|dont|do not|stop)(?: more| anymore| again)?(?: in)? (?:here|this channel)
    (?:no|dont|do not|stop)(?: more)? (?:do|offers?|offering|offer help)(?: that| this)?(?: in)? (?:here|this channel)
""")
MEANINGS = ((Reply.NOT_HERE, HERE), (Reply.NOT_NOW, NO), (Reply.YES, YES))
NOT_A_WORD = re.compile(r"[^\w]+")
MAX_CHARACTERS = 80


class Ending(StrEnum):
    """How an offer ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    IGNORED = "ignored"
    NOT_HERE = "not_here"
    OVERTAKEN = "overtaken"
    """Somebody else has answered."""
    WITHDRAWN = "withdrawn"
    """Its subject was deleted or edited, or the offer could not be posted."""


@dataclass(frozen=True, slots=True)
class Note:
    """A mini-app's stored follow-up, offered once when it is due. source_id: id of the message that led to it;
    source_parts: of the earlier messages of its burst."""

    id: str
    miniapp_id: str
    text: str
    query: str
    about: str
    user_id: int
    source_id: int
    due: AwareDatetime
    source_parts: tuple[int, ...] = ()

    def is_from(self, message_id: int) -> bool:
        return message_id == self.source_id or message_id in self.source_parts


@dataclass(frozen=True, slots=True)
class Opportunity:
    """Something that an offer can be made about.

    trigger: id of the trigger; user_id: the addressee; line: text of the offer, one short line; evidence: why it is
    made, in words for the log and /why, without the text of any message. subject: the message that is answered when
    the offer is accepted; None: the opportunity is a note.

    The line may hold LINK. Fill it in with `str.replace`: a note's text may hold any braces.
    """

    trigger: str
    user_id: int
    line: str
    evidence: str
    subject: MessageRecord | None = None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """An open offer. message_id: None until it is posted; text: as posted; parent_id: the channel, if in a thread."""

    id: str
    opportunity: Annotated[Opportunity, Field(alias="occasion")]  # its name in the store
    made_at: AwareDatetime
    guild_id: int
    text: str
    message_id: int | None = None
    parent_id: int | None = None

    @property
    def user_id(self) -> int:
        return self.opportunity.user_id

    @property
    def taken_up(self) -> str:
        """The text of its message once it is accepted."""
        return f"{self.text}\n-# ✓ {LABELS[Reply.YES]}"

    @property
    def subject_id(self) -> int:
        """Id of the message that it is about."""
        about = self.opportunity
        return about.subject.message_id if about.subject else about.note.source_id if about.note else 0


def read_reply(text: str) -> Reply | None:
    """Reads a typed reply to an offer. None: no reply, or the text says something else, too."""
    words = NOT_A_WORD.sub(" ", plain(text[: MAX_CHARACTERS + 1])).strip()
    if len(text) > MAX_CHARACTERS or "?" in text or not words:
        return None
    if words in ALONE:
        return Reply.YES
    for reply, ways in MEANINGS:
        rest, count = ways.subn(" ", words)
        if count and not CIVIL.sub(" ", rest).strip():
            return reply
    return None
