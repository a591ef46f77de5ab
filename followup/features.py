"""What the model is told of a message: numbers that say how it stands to the bot, and to whoever else is talking.

One function, for the running bot and for training alike. Everything comes from the channel's conversation: the last
12 messages, the bot's last 3 and the author's last 2 (300 messages back at most), and the engagement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, islice

from conversation import ChannelConversation
from state.engagement import RECENT, Engagement, Mark, Standing
from state.message import MessageRecord
from state.wording import Wording, words_of

Features = Mapping[str, float]
"""Name to value, always the same names in the same order. What there is not has a value beyond all others."""

EPOCH = datetime.fromtimestamp(0, UTC)
WINDOW = 12
REACH = 300
BOT_MESSAGES = 3
OWN_MESSAGES = 2
NEVER = 999.0
NEVER_SECONDS = 9_999.0
MOST_SECONDS = 1_800.0
MOST_MESSAGES = 60.0
FADING = 0.88  # how much less the message before counts in a pair's score
SAYS = """thanks you me pointing everybody request denial report modal laughter opinion article preposition
    question""".split()
STARTS = "question asking yes_no going_on greeting hedge request me".split()
OTHER, NOBODY, BOT = 0.0, 1.0, 2.0  # with whom somebody was talking


@dataclass(frozen=True, slots=True)
class Scene:
    """A message and what came before it. Window, speakers and targets go backwards: the newest comes first."""

    message: MessageRecord
    bot: int
    engagement: Engagement
    standing: Standing
    window: Sequence[MessageRecord]
    speakers: Sequence[int]
    targets: Sequence[frozenset[int]]
    others: frozenset[int]
    bot_messages: Sequence[MessageRecord]
    own_messages: Sequence[MessageRecord]

    @property
    def author(self) -> int:
        return self.message.author_id

    @property
    def now(self) -> datetime:
        return self.message.timestamp

    def ago(self, mark: Mark | None) -> float:
        return min(self.engagement.number - mark.number, REACH) if mark else NEVER

    def seconds(self, mark: Mark | None) -> float:
        return min((self.now - mark.at).total_seconds(), MOST_SECONDS) if mark else NEVER_SECONDS


def features(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Features:
    """The features of a message, whether it is recorded in the conversation already or not."""
    scene = look(message, conversation, bot_user_id)
    return {
        **_of_turns(scene),
        **_of_talk(scene),
        **_of_channel(scene),
        **_of_names(scene),
        **_of_words(message.wording),
        **_of_overlap(scene),
    }


def feature_names() -> list[str]:
    """The names in their order."""
    nothing = MessageRecord(author="", author_id=0, content="", timestamp=EPOCH, is_bot=False)
    return list(features(nothing, ChannelConversation(0, EPOCH, EPOCH), 1))


def look(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Scene:
    earlier, engagement = conversation.before(message, REACH), conversation.engagement_at(message)
    window = earlier[: -WINDOW - 1 : -1]
    names = {**conversation.names, message.author_id: message.author}
    spoke = engagement.bot_spoke
    is_in_reach = spoke is not None and engagement.number - spoke.number <= REACH
    by_name = {name.casefold(): who for who, name in names.items()}
    return Scene(
        message=message,
        bot=bot_user_id,
        engagement=engagement,
        standing=engagement.standing(message.author_id),
        window=window,
        speakers=[past.author_id for past in window],
        targets=[_targets(past, by_name) for past in window],
        others=_targets(message, by_name) - {bot_user_id},
        bot_messages=_newest_by(bot_user_id, BOT_MESSAGES, earlier) if is_in_reach else [],
        own_messages=_newest_by(message.author_id, OWN_MESSAGES, earlier),
    )


def _newest_by(author_id: int, count: int, earlier: Sequence[MessageRecord]) -> list[MessageRecord]:
    """So many messages of one author, the newest first."""
    return list(islice((past for past in reversed(earlier) if past.author_id == author_id), count))


def _targets(message: MessageRecord, by_name: Mapping[str, int]) -> frozenset[int]:
    """Whom it is addressed to, or calls by name."""
    if not message.calls:
        return message.named
    called = {by_name[name] for name in message.calls if name in by_name}
    return message.named | called - {message.author_id}


def _of_turns(scene: Scene) -> Features:
    """Whom the bot spoke to last, and whether an answer is due."""
    engagement, standing = scene.engagement, scene.standing
    spoken_to, spoke = standing.spoken_to, standing.spoke
    to_author = next((m for m in scene.bot_messages if scene.author in m.addressed), None)
    wording = to_author.wording if to_author else None
    latest = scene.bot_messages[0] if scene.bot_messages else None
    own = [m.named for m in scene.own_messages]
    return {
        "to_author_ago": scene.ago(spoken_to),
        "to_author_seconds": scene.seconds(spoken_to),
        "to_author_asks": wording.asks if wording else -1,
        "to_author_words": wording.count if wording else -1,
        "to_author_names": _names(to_author, scene.author) if to_author else -1,
        "to_author_of_3": sum(scene.author in m.addressed for m in scene.bot_messages),
        "is_due": spoken_to is not None and (spoke is None or spoken_to.number > spoke.number),
        "bot_ago": min(scene.ago(engagement.bot_spoke), MOST_MESSAGES),
        "bot_seconds": scene.seconds(engagement.bot_spoke),
        "bot_words": latest.wording.count if latest else -1,
        "bot_asks": latest.wording.asks if latest else -1,
        "bot_messages_since_own": min(engagement.bot_messages - standing.bot_messages, 20) if spoke else -1,
        "own_seconds": scene.seconds(spoke),
        "own_words": scene.own_messages[0].wording.count if own else -1,
        "own_asks": scene.own_messages[0].wording.asks if own else -1,
        "own_to": _whom(own[0], scene.bot) if own else -1,
        "own_before_to": _whom(own[1], scene.bot) if len(own) > 1 else -1,
    }


def _names(message: MessageRecord, author: int) -> bool:
    """Whether words of the bot's show to whom they go, by name or as a reply."""
    return author in message.ids_in_text or author == message.reply_to_author_id


def _whom(targets: frozenset[int], bot: int) -> float:
    return BOT if bot in targets else OTHER if targets else NOBODY


def _of_talk(scene: Scene) -> Features:
    """With whom the author has been talking: each pair's score, and how far back each of them spoke to the other."""
    author, bot = scene.author, scene.bot
    last = {"bot_to_own": NEVER, "own_to_bot": NEVER, "rival_to_own": NEVER, "own_to_rival": NEVER}
    scores: defaultdict[int, float] = defaultdict(float)
    weight = 1.0
    for place, (speaker, targets) in enumerate(zip(scene.speakers, scene.targets, strict=True)):
        previous = scene.speakers[place + 1] if place + 1 < len(scene.speakers) else None
        if speaker == author:
            for target in targets:
                scores[target] += 3 * weight
                _note(last, "own_to_bot" if target == bot else "own_to_rival", place)
            if not targets and previous is not None:
                scores[previous] += weight
        elif author in targets:
            scores[speaker] += 3 * weight
            _note(last, "bot_to_own" if speaker == bot else "rival_to_own", place)
        elif targets:
            scores[speaker] -= 0.3 * weight
        else:
            scores[speaker] += weight if previous == author else 0.2 * weight
        weight *= FADING
    return {**last, **_compared(scores, scene), "partner": _partner(last), **_since(scene, last["bot_to_own"])}


def _note(last: dict[str, float], what: str, place: int) -> None:
    if last[what] == NEVER:
        last[what] = place + 1


def _partner(last: Mapping[str, float]) -> float:
    with_bot, with_rival = min(last["bot_to_own"], last["own_to_bot"]), min(last["rival_to_own"], last["own_to_rival"])
    if with_bot == with_rival == NEVER:
        return NOBODY
    return BOT if with_bot < with_rival else OTHER


def _compared(scores: Mapping[int, float], scene: Scene) -> Features:
    """The bot's pair with the author against the author's pairs with everybody else."""
    with_bot = scores.get(scene.bot, 0.0)
    with_rivals = [score for who, score in scores.items() if who not in (scene.bot, scene.author)]
    best = max(with_rivals, default=0.0)
    return {
        "bot_score": with_bot,
        "rival_score": best,
        "margin": with_bot - best,
        "rank": sum(score > with_bot for score in with_rivals),
    }


def _since(scene: Scene, ago: float) -> Features:
    """What was said after the bot's last words to the author."""
    own = own_to_rivals = rivals_to_own = free = 0
    for speaker, targets in islice(zip(scene.speakers, scene.targets, strict=True), int(ago) - 1):
        if speaker == scene.author:
            own += 1
            own_to_rivals += bool(targets - {scene.bot})
        elif speaker != scene.bot:
            rivals_to_own += scene.author in targets
            free += not targets
    return {
        "own_since": own,
        "own_to_rivals_since": own_to_rivals,
        "rivals_to_own_since": rivals_to_own,
        "free_since": free,
    }


def _of_channel(scene: Scene) -> Features:
    """How busy the channel is, and the bot in it."""
    engagement, author, bot = scene.engagement, scene.author, scene.bot
    recent = scene.now - RECENT
    spoke = engagement.bot_spoke.number if engagement.bot_spoke else -1
    people = people_since_bot = 0
    for person in engagement.people.values():
        if person.spoke:
            people += person.spoke.at >= recent
            people_since_bot += person.spoke.number > spoke
    run = next((i for i, speaker in enumerate(scene.speakers) if speaker != author), len(scene.speakers))
    before_run = scene.speakers[run] if run < len(scene.speakers) else None
    bot_to_others = [
        ago
        for ago, (s, t) in enumerate(zip(scene.speakers, scene.targets, strict=True), 1)
        if s == bot and t - {author}
    ]
    return {
        "people": people,
        "people_since_bot": people_since_bot,
        "window_seconds": scene.seconds(Mark(0, scene.window[-1].timestamp)) if scene.window else NEVER_SECONDS,
        "own_in_window": scene.speakers.count(author),
        "bot_in_window": scene.speakers.count(bot),
        "bot_to_others_ago": bot_to_others[0] if bot_to_others else NEVER,
        "before_run": NOBODY if before_run is None else BOT if before_run == bot else OTHER,
        "open_question": _open_question(scene),
    }


def _open_question(scene: Scene) -> float:
    """How far back, within 6 messages, somebody else asked nobody in particular; 0: nobody did."""
    for ago in range(min(6, len(scene.window))):
        is_open = not scene.targets[ago] and scene.window[ago].wording.asks
        if is_open and scene.speakers[ago] not in (scene.author, scene.bot):
            return ago + 1
    return 0


def _of_names(scene: Scene) -> Features:
    """Whom the message names; the bot's name counts where it is called by it. A mention is never left to the model."""
    message, bot = scene.message, scene.bot
    content, wording = message.content.lstrip(), message.wording
    name = scene.engagement.bot_name.casefold()
    is_addressed = is_called = bool(name) and name in message.calls
    if not is_called and frozenset() < _words_of_name(name) <= wording.words:  # a name can be all emoji
        # "Parley is nice" talks about it, "Parley is it far" and "can you, parley" talk to it.
        is_called = wording.asks or not wording.cues.isdisjoint(("you", "request"))
    is_mentioned = bot in message.named
    is_first = content.startswith((f"<@{bot}>", f"<@!{bot}>")) if is_mentioned else content.casefold().startswith(name)
    return {
        "names_others": len(scene.others),
        "names_others_first": bool(scene.others) and content.startswith("<@"),
        "names_speakers": not scene.others.isdisjoint(scene.speakers),
        "names_bot": is_called or is_mentioned,
        "names_bot_first": is_addressed or ((is_called or is_mentioned) and is_first),
    }


@lru_cache(maxsize=8)
def _words_of_name(name: str) -> frozenset[str]:
    return frozenset(words_of(name))


def _of_words(wording: Wording) -> Features:
    cues, first, length = wording.cues, wording.first, 1 + wording.length
    return {
        "words": wording.count,
        "length": wording.length,
        "word_length": length / (1 + wording.count),
        "capitals": wording.capitals / length,
        "asks": wording.asks,
        "ends_asking": wording.ends_asking,
        "exclaims": wording.exclaims,
        "has_link": wording.has_link,
        "commas": wording.commas,
        "colons": wording.colons,
        "is_command": wording.is_command,
        **{"says_" + cue: cue in cues for cue in SAYS},
        **{"starts_" + cue: cue in first for cue in STARTS},
    }


def _of_overlap(scene: Scene) -> Features:
    """Words that the message shares with others; a rare one counts the less the more of the window have it."""
    words, rare = scene.message.wording.words, scene.message.wording.rare
    spread = Counter(chain.from_iterable(rare & past.wording.rare for past in scene.window))

    def weight(past: MessageRecord) -> float:
        if rare.isdisjoint(past.wording.rare):
            return 0.0
        return sum(1 / (1 + spread[word]) for word in rare & past.wording.rare)

    def shared(past: MessageRecord) -> int:
        return len(words & past.wording.words)

    people = [m for m, s in zip(scene.window, scene.speakers, strict=True) if s not in (scene.author, scene.bot)]
    to_author = [m for m in scene.bot_messages if scene.author in m.addressed]
    with_bot, with_rival = max(map(weight, scene.bot_messages), default=0), max(map(weight, people), default=0)
    return {
        "overlap_bot": with_bot,
        "overlap_rival": with_rival,
        "overlap_margin": with_bot - with_rival,
        "overlap_own": max(map(weight, scene.own_messages), default=0),
        "shared_to_author": max(map(shared, to_author), default=-1),
        "shared_bot": shared(scene.bot_messages[0]) if scene.bot_messages else -1,
        "shared_people": max(map(shared, people), default=-1),
        "rare_words": len(rare),
        "new_words": len(rare - spread.keys()),
    }
