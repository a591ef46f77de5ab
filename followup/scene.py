"""The scene of a message: the messages before it, who spoke to whom, and which of them the bot took part in.

Everything comes from the channel's conversation: the last 12 messages, the bot's last 3 and the author's last 2 (300
messages back at most), and the engagement. Each message's wording (understanding/wording.py) and the people it names
(understanding/names.py) are read only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from conversation import ChannelConversation
from state.engagement import Engagement, Mark, Standing
from state.message import MessageRecord
from understanding.wording import TOO_COMMON

WINDOW = 12
REACH = 300
BOT_MESSAGES = 3
OWN_MESSAGES = 2
RARE_LENGTH = 4  # shorter words are mostly grammar, whatever the language
NONE: frozenset[int] = frozenset()
NEVER = 999.0
NEVER_SECONDS = 9_999.0
MOST_SECONDS = 1_800.0


class Room(NamedTuple):
    """The bot's part in the window.

    answered: how many of people's last 6 messages it answered; since: how many people's messages came after the newest
    answered one. taken_up: what the addressee of its last message did since: 2: called it, 1: spoke, 0: nothing; -1:
    it said nothing. alone: people's messages after its last one. is_bots: for each message, whether the bot said or
    answered it, or it names the bot.
    """

    answered: int
    since: int
    taken_up: int
    alone: int
    is_bots: Sequence[bool]


class Scene(NamedTuple):
    """A message and the messages before it. Window, speakers and targets are newest first.

    targets: whom each message of the window names. run: how many messages the author posted right before; rival: index
    in the window of the newest message of another person, -1: none. others: people the message names, without the bot.
    latest: the bot's last message. to_author: the bot's last messages to the author. people: (index among the words,
    user id) of people it names without a mention, in the order of the words. words, grams: the message's words
    and runs of letters; rare: the words that are neither common nor short, and so carry meaning. shared_rare: the rare
    words in common with each message of the window.
    """

    message: MessageRecord
    author: int
    now: datetime
    bot: int
    engagement: Engagement
    standing: Standing
    window: Sequence[MessageRecord]
    speakers: Sequence[int]
    targets: Sequence[frozenset[int]]
    run: int
    rival: int
    room: Room
    others: frozenset[int]
    latest: MessageRecord | None
    to_author: Sequence[MessageRecord]
    own_messages: Sequence[MessageRecord]
    people: Sequence[tuple[int, int]]
    words: frozenset[str]
    rare: frozenset[str]
    grams: frozenset[str]
    shared_rare: Sequence[frozenset[str]]

    def ago(self, mark: Mark | None) -> float:
        return min(self.engagement.number - mark.number, REACH) if mark else NEVER

    def seconds(self, mark: Mark | None) -> float:
        return min((self.now - mark.at).total_seconds(), MOST_SECONDS) if mark else NEVER_SECONDS

    def alike(self, past: MessageRecord | None) -> float:
        """The share of the message's runs of letters that an earlier message has too; -1: there is none."""
        grams = self.grams
        if past is None or not grams:
            return -1
        if any(one is past for one in self.window):
            return len(grams.intersection(past.wording.grams)) / len(grams)
        # Behind the window nobody keeps them: to look for each takes half as long as to cut them all out.
        return sum(map(past.wording.run_together.__contains__, grams)) / len(grams)


def look(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Scene:
    author, wording = message.author_id, message.wording
    words = wording.words
    rare = frozenset([word for word in words - TOO_COMMON if len(word) >= RARE_LENGTH])
    earlier, engagement = conversation.before(message, REACH), conversation.engagement_at(message)
    window = earlier[: -WINDOW - 1 : -1]
    speakers = [past.author_id for past in window]
    named = conversation.heard.named
    targets = [named.get(past.message_id, NONE) for past in window]
    spoke = engagement.bot_spoke
    is_in_reach = spoke is not None and engagement.number - spoke.number <= REACH
    bot_messages = _newest_by(bot_user_id, BOT_MESSAGES, earlier) if is_in_reach else []
    return Scene(
        message=message,
        author=author,
        now=message.timestamp,
        bot=bot_user_id,
        engagement=engagement,
        standing=engagement.standing(author),
        window=window,
        speakers=speakers,
        targets=targets,
        run=next((place for place, speaker in enumerate(speakers) if speaker != author), len(speakers)),
        rival=next((place for place, speaker in enumerate(speakers) if speaker not in (author, bot_user_id)), -1),
        room=_room(window, speakers, targets, bot_user_id),
        others=conversation.named_by(message) - {bot_user_id},
        latest=bot_messages[0] if bot_messages else None,
        to_author=[m for m in bot_messages if author in m.addressed],
        own_messages=_newest_by(author, OWN_MESSAGES, earlier),
        people=[
            (place, who)
            for place, token in enumerate(wording.tokens)
            if (who := conversation.called.get(token, 0)) and who != author
        ],
        words=words,
        rare=rare,
        grams=frozenset(wording.grams),
        shared_rare=[rare.intersection(past.wording.tokens) for past in window] if rare else [],
    )


def _newest_by(author_id: int, count: int, earlier: Sequence[MessageRecord]) -> list[MessageRecord]:
    """The newest `count` messages of one author, newest first."""
    return list(islice((past for past in reversed(earlier) if past.author_id == author_id), count))


def _room(
    window: Sequence[MessageRecord], speakers: Sequence[int], targets: Sequence[frozenset[int]], bot: int
) -> Room:
    pending: set[int] = set()
    spoken: set[int] = set()
    calling: set[int] = set()
    is_bots = []
    answered = seen = 0
    since = alone = taken_up = -1
    for message, speaker, named in zip(window, speakers, targets, strict=True):
        if speaker == bot:
            pending |= message.addressed
            if taken_up < 0:
                alone = seen
                taken_up = 2 if calling & message.addressed else int(bool(spoken & message.addressed))
            is_bots.append(True)
            continue
        spoken.add(speaker)
        is_calling, is_answered = bot in named, speaker in pending
        if is_calling:
            calling.add(speaker)
        if is_answered:
            pending.discard(speaker)
            answered += seen < 6
            since = seen if since < 0 else since
        is_bots.append(is_answered or is_calling)
        seen += 1
    return Room(answered, since if since >= 0 else WINDOW, taken_up, alone if alone >= 0 else WINDOW, is_bots)


def talking_with(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> int | None:
    """The other person of the author's last exchange, as in the feature `partner`; None: nobody, or the bot."""
    for past in reversed(conversation.before(message, WINDOW)):
        targets = conversation.heard.named.get(past.message_id, NONE)
        if past.author_id == message.author_id and targets:
            return min(targets - {bot_user_id}, default=None)
        if message.author_id in targets:
            return past.author_id if past.author_id != bot_user_id else None
    return None
