"""What the model is told of a message: numbers that say how it stands to the bot, and to whoever else is talking.

One function, for the running bot and for training alike. Everything comes from the channel's conversation: the last
12 messages, the bot's last 3 and the author's last 2 (300 messages back at most), and the engagement. What a text alone
tells is read once for each message (understanding/wording.py), and so is whom it names (understanding/names.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from conversation import ChannelConversation
from state.engagement import RECENT, Engagement, Mark, Standing
from state.message import MessageRecord
from understanding.names import called_by_name, named_in
from understanding.wording import TALK, Wording, words_of

Features = Mapping[str, float]
"""Name to value, always the same names in the same order. What there is not has a value beyond all others."""

EPOCH = datetime.fromtimestamp(0, UTC)
WINDOW = 12
REACH = 300
BOT_MESSAGES = 3
OWN_MESSAGES = 2
NONE: frozenset[int] = frozenset()
NEVER = 999.0
NEVER_SECONDS = 9_999.0
MOST_SECONDS = 1_800.0
MOST_MESSAGES = 60.0
BURST_SECONDS = 20.0
FADING = 0.88  # how much less the message before counts in a pair's score


@dataclass(frozen=True, slots=True)
class Flags:
    """A feature for each of some classes of words: its name, and all of them unset."""

    name_of: Mapping[str, str]
    unset: Features

    def of(self, classes: frozenset[str]) -> Features:
        return {**self.unset, **{self.name_of[one]: True for one in classes if one in self.name_of}}


def _flags(prefix: str, classes: str) -> Flags:
    name_of = {one: f"{prefix}_{one}" for one in classes.split()}
    return Flags(name_of, dict.fromkeys(name_of.values(), False))


SAYS = _flags("says", "you me pointing everybody request denial report modal opinion article preposition question")
STARTS = _flags("starts", "question asking yes_no going_on greeting hedge request me")
SAYS_TALK = _flags("talk", " ".join(TALK))
STARTS_TALK = _flags(
    "lead",
    "ask make verb vary thats you yes no thanks can_you i_ask please i you_social about report bot lookat room",
)
OTHER, NOBODY, BOT = 0.0, 1.0, 2.0  # with whom somebody was talking
SPEAKERS = "speaker_1 speaker_2 speaker_3 speaker_4 speaker_5".split()


class Room(NamedTuple):
    """What the bot answered in the window.

    answered: how many of the last 6 messages of people; since: how many it left alone since the newest of those.
    taken_up: whether whom it answered last called it since (2), spoke (1), or was silent (0; -1: there is none). alone:
    how many messages of people stand behind its last words. is_bots: of each message, whether the bot said it or
    answered it, or it was said to the bot by mention.
    """

    answered: int
    since: int
    taken_up: int
    alone: int
    is_bots: Sequence[bool]


class Scene(NamedTuple):
    """A message and what came before it. Window, speakers and targets go backwards: the newest comes first.

    run: how many messages the author said right before; rival: the place in the window of the newest message of
    another person, -1: there is none. shared: the runs of letters that the message has in common with each message of
    the window, by that one's identity; shared_rare: the rare words, in the window's order.
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
    bot_messages: Sequence[MessageRecord]
    own_messages: Sequence[MessageRecord]
    people: Sequence[tuple[int, int]]
    shared: Mapping[int, frozenset[str]]
    shared_rare: Sequence[frozenset[str]]

    def ago(self, mark: Mark | None) -> float:
        return min(self.engagement.number - mark.number, REACH) if mark else NEVER

    def seconds(self, mark: Mark | None) -> float:
        return min((self.now - mark.at).total_seconds(), MOST_SECONDS) if mark else NEVER_SECONDS

    def alike(self, past: MessageRecord | None) -> float:
        """The share of the message's runs of letters that another has too."""
        grams = self.message.grams
        if past is None or not grams:
            return -1
        shared = self.shared.get(id(past))
        return len(grams & past.grams if shared is None else shared) / len(grams)


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
        **_of_answers(scene),
        **_of_pattern(scene),
        **_of_phrases(scene),
        **_of_last_words(scene),
        **_of_people(scene),
    }


def feature_names() -> list[str]:
    """The names in their order."""
    nothing = MessageRecord(author="", author_id=0, content="", timestamp=EPOCH, is_bot=False)
    return list(features(nothing, ChannelConversation(0, EPOCH, EPOCH), 1))


def look(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Scene:
    author, wording, grams = message.author_id, message.wording, message.grams
    earlier, engagement = conversation.before(message, REACH), conversation.engagement_at(message)
    window = earlier[: -WINDOW - 1 : -1]
    speakers = [past.author_id for past in window]
    named, called = conversation.named, conversation.called
    targets = [named.get(past.message_id, NONE) for past in window]
    spoke = engagement.bot_spoke
    is_in_reach = spoke is not None and engagement.number - spoke.number <= REACH
    bot_messages = _newest_by(bot_user_id, BOT_MESSAGES, earlier) if is_in_reach else []
    others = message.named | called_by_name(message, conversation.names, called)
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
        others=others - {bot_user_id},
        latest=bot_messages[0] if bot_messages else None,
        to_author=[m for m in bot_messages if author in m.addressed],
        bot_messages=bot_messages,
        own_messages=_newest_by(author, OWN_MESSAGES, earlier),
        people=[(place, who) for place, who in named_in(wording.tokens, called) if who != author],
        shared={id(past): grams & past.grams for past in window},
        shared_rare=[wording.rare & past.wording.rare for past in window] if wording.rare else [],
    )


def _newest_by(author_id: int, count: int, earlier: Sequence[MessageRecord]) -> list[MessageRecord]:
    """So many messages of one author, the newest first."""
    return list(islice((past for past in reversed(earlier) if past.author_id == author_id), count))


def _of_turns(scene: Scene) -> Features:
    """Whom the bot spoke to last, and whether an answer is due."""
    engagement, standing = scene.engagement, scene.standing
    spoken_to, spoke = standing.spoken_to, standing.spoke
    to_author = scene.to_author[0] if scene.to_author else None
    wording = to_author.wording if to_author else None
    latest, own = scene.latest, scene.own_messages
    return {
        "to_author_ago": scene.ago(spoken_to),
        "to_author_seconds": scene.seconds(spoken_to),
        "to_author_asks": wording.asks if wording else -1,
        "to_author_words": wording.count if wording else -1,
        "to_author_names": _names(to_author, scene.author) if to_author else -1,
        "to_author_of_3": len(scene.to_author),
        "is_due": spoken_to is not None and (spoke is None or spoken_to.number > spoke.number),
        "bot_ago": min(scene.ago(engagement.bot_spoke), MOST_MESSAGES),
        "bot_seconds": scene.seconds(engagement.bot_spoke),
        "bot_words": latest.wording.count if latest else -1,
        "bot_asks": latest.wording.asks if latest else -1,
        "bot_messages_since_own": min(engagement.bot_messages - standing.bot_messages, 20) if spoke else -1,
        "own_seconds": scene.seconds(spoke),
        "own_words": own[0].wording.count if own else -1,
        "own_asks": own[0].wording.asks if own else -1,
        "own_to": _whom(own[0].named, scene.bot) if own else -1,
        "own_before_to": _whom(own[1].named, scene.bot) if len(own) > 1 else -1,
    }


def _names(message: MessageRecord, author: int) -> bool:
    """Whether words of the bot's show to whom they go, by name or as a reply."""
    return author in message.ids_in_text or author == message.reply_to_author_id


def _whom(targets: frozenset[int], bot: int) -> float:
    return BOT if bot in targets else OTHER if targets else NOBODY


def _of_talk(scene: Scene) -> Features:
    """With whom the author has been talking: each pair's score, how far back each of them spoke to the other, and what
    was said after the bot's last words to the author."""
    author, bot, speakers = scene.author, scene.bot, scene.speakers
    last = {"bot_to_own": NEVER, "own_to_bot": NEVER, "rival_to_own": NEVER, "own_to_rival": NEVER}
    scores: defaultdict[int, float] = defaultdict(float)
    own = own_to_rivals = rivals_to_own = free = 0
    weight = 1.0
    in_turn = zip(speakers, [*speakers[1:], None], scene.targets, strict=False)
    for ago, (speaker, previous, targets) in enumerate(in_turn, 1):
        is_since = last["bot_to_own"] == NEVER
        if speaker == author:
            for target in targets:
                scores[target] += 3 * weight
                whom = "own_to_bot" if target == bot else "own_to_rival"
                last[whom] = min(last[whom], ago)
            if not targets and previous is not None:
                scores[previous] += weight
            own += is_since
            own_to_rivals += is_since and not targets <= {bot}
        else:
            if author in targets:
                scores[speaker] += 3 * weight
                who = "bot_to_own" if speaker == bot else "rival_to_own"
                last[who] = min(last[who], ago)
            elif targets:
                scores[speaker] -= 0.3 * weight
            else:
                scores[speaker] += weight if previous == author else 0.2 * weight
            if is_since and speaker != bot:
                rivals_to_own += author in targets
                free += not targets
        weight *= FADING
    return {
        **last,
        **_compared(scores, scene),
        "partner": _partner(last),
        "own_since": own,
        "own_to_rivals_since": own_to_rivals,
        "rivals_to_own_since": rivals_to_own,
        "free_since": free,
    }


def _partner(last: Mapping[str, float]) -> float:
    with_bot, with_rival = min(last["bot_to_own"], last["own_to_bot"]), min(last["rival_to_own"], last["own_to_rival"])
    if with_bot == with_rival == NEVER:
        return NOBODY
    return BOT if with_bot < with_rival else OTHER


def talking_with(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> int | None:
    """Whom the author spoke to last, or who last spoke to them, as `partner` has it; None: nobody, or the bot."""
    for past in reversed(conversation.before(message, WINDOW)):
        targets = conversation.named.get(past.message_id, NONE)
        if past.author_id == message.author_id and targets:
            return min(targets - {bot_user_id}, default=None)
        if message.author_id in targets:
            return past.author_id if past.author_id != bot_user_id else None
    return None


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


def _of_channel(scene: Scene) -> Features:
    """How busy the channel is, and the bot in it."""
    engagement, author, bot = scene.engagement, scene.author, scene.bot
    recent = scene.now - RECENT
    spoke = engagement.bot_spoke.number if engagement.bot_spoke else -1
    people = people_since_bot = 0
    for person in engagement.people.values():
        if mark := person.spoke:
            people += mark.at >= recent
            people_since_bot += mark.number > spoke
    before_run = scene.speakers[scene.run] if scene.run < len(scene.speakers) else None
    to_others = (
        ago
        for ago, (s, t) in enumerate(zip(scene.speakers, scene.targets, strict=True), 1)
        if s == bot and t - {author}
    )
    return {
        "people": people,
        "people_since_bot": people_since_bot,
        "window_seconds": scene.seconds(Mark(0, scene.window[-1].timestamp)) if scene.window else NEVER_SECONDS,
        "own_in_window": scene.speakers.count(author),
        "bot_in_window": scene.speakers.count(bot),
        "bot_to_others_ago": next(to_others, NEVER),
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
        "has_link": wording.has_link,
        "commas": wording.commas,
        "is_command": wording.is_command,
        **SAYS.of(cues),
        **STARTS.of(first),
    }


def _of_overlap(scene: Scene) -> Features:
    """Words that the message shares with the bot's, and how many of its rare ones are new."""
    words, rare = scene.message.wording.words, scene.message.wording.rare
    return {
        "shared_to_author": max((len(words & m.wording.words) for m in scene.to_author), default=-1),
        "shared_bot": len(words & scene.latest.wording.words) if scene.latest else -1,
        "rare_words": len(rare),
        "new_words": len(rare.difference(*scene.shared_rare)),
    }


def _of_answers(scene: Scene) -> Features:
    """What became of the author's and the room's earlier messages."""
    standing, room = scene.standing, scene.room
    trail = standing.trail & (1 << min(standing.said, 8)) - 1
    return {
        "own_said": min(standing.said, 30),
        "own_answered": min(standing.answered, 20),
        "own_answered_share": standing.answered / standing.said if standing.said else -1,
        "own_answered_of_3": (trail & 7).bit_count(),
        "own_last_answered": trail & 1 if standing.said else -1,
        "own_left_alone": min(standing.said, (trail & -trail).bit_length() - 1 if trail else 8),
        "own_calls": min(standing.calls, 5),
        "room_answered_of_6": room.answered,
        "room_left_alone": room.since,
        "taken_up": room.taken_up,
        "left_alone_since_bot": room.alone,
    }


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


def _of_pattern(scene: Scene) -> Features:
    """Who spoke, one by one, and how quickly."""
    speakers, window, author, bot = scene.speakers, scene.window, scene.author, scene.bot
    now = scene.now.timestamp()
    last = [BOT if speaker == bot else NOBODY if speaker == author else OTHER for speaker in speakers[:5]]
    own = [
        now - past.timestamp.timestamp() for past, speaker in zip(window, speakers, strict=True) if speaker == author
    ]
    rival = window[scene.rival] if scene.rival >= 0 else None
    return {
        **dict(zip(SPEAKERS, (*last, -1, -1, -1, -1, -1), strict=False)),
        "run": scene.run,
        "burst": sum(ago <= BURST_SECONDS for ago in own),
        "own_ago": speakers.index(author) + 1 if own else 0,
        "other_ago": scene.rival + 1,
        "other_seconds": min(now - rival.timestamp.timestamp(), MOST_SECONDS) if rival else NEVER_SECONDS,
        "previous_seconds": min(now - window[0].timestamp.timestamp(), MOST_SECONDS) if window else NEVER_SECONDS,
        "window_named": sum(map(bool, scene.targets)) / len(window) if window else -1,
        "window_speakers": len(set(speakers)),
    }


def _of_phrases(scene: Scene) -> Features:
    """Classes of words and phrases in several languages, names among them."""
    wording, content = scene.message.wording, scene.message.content
    talk, lead, tokens = wording.talk, wording.lead, wording.tokens
    return {
        **SAYS_TALK.of(talk),
        **STARTS_TALK.of(lead),
        "names_person": len(scene.people),
        "names_person_last": any(place == len(tokens) - 1 for place, _ in scene.people),
        "names_bot_anywhere": scene.engagement.bot_name.casefold() in wording.words,
        "has_number": any(map(str.isdigit, content)),
        "has_quote": content.startswith(">") or '"' in content or "“" in content,
        "repeats_marks": "??" in content or "!!" in content,
        "non_ascii": not content.isascii(),
    }


def _of_last_words(scene: Scene) -> Features:
    """What the bot's last words asked for, and whether this fits as the answer."""
    latest = scene.latest
    if latest is None:
        return dict.fromkeys(LAST_WORDS, -1)
    wording, mine = latest.wording, scene.message.wording
    question = latest.content.rpartition("?")[0].rpartition(".")[2] if wording.asks else ""
    asked = set(question.casefold().split()) if question else set()
    lead = mine.lead | mine.first
    return {
        "last_asks_at_end": wording.ends_asking,
        "last_asks_offer": not asked.isdisjoint(
            ("want", "shall", "should", "soll", "willst", "möchtest", "quieres", "veux", "vuoi")
        ),
        "last_asks_what": not asked.isdisjoint(
            ("what", "which", "how", "where", "when", "who", "was", "welche", "wie", "wo")
        ),
        "last_asks_author": wording.asks and scene.author in latest.addressed,
        "last_unsure": "not sure" in latest.content or "don't know" in latest.content or "can't" in latest.content,
        "last_fits": bool(question) and (mine.count <= 4 or "yes" in lead or "no" in lead),
        "last_shares_question": len(asked & mine.words),
        "last_lines": latest.content.count("\n"),
    }


LAST_WORDS = """last_asks_at_end last_asks_offer last_asks_what last_asks_author last_unsure last_fits
    last_shares_question last_lines""".split()


def _of_people(scene: Scene) -> Features:
    """What the last other person said, and how this goes with it, beside what the bot said."""
    latest, place = scene.latest, scene.rival
    rival = scene.window[place] if place >= 0 else None
    asked = next((m for m in scene.window if m.message_id == latest.reply_to_id), None) if latest else None
    with_bot, with_rival = scene.alike(latest), scene.alike(rival)
    return {
        "rival_asks": rival.wording.asks if rival else -1,
        "rival_asks_ask": bool(rival.wording.lead & {"ask", "verb", "you_social"}) if rival else -1,
        "rival_words": rival.wording.count if rival else -1,
        "rival_to_author": scene.author in scene.targets[place] if rival else -1,
        "rival_to_bot": scene.bot in scene.targets[place] if rival else -1,
        "rival_after_bot": latest is not None and rival is not None and rival.timestamp >= latest.timestamp,
        "rival_laughs": "laugh" in rival.wording.talk if rival else -1,
        "alike_bot": with_bot,
        "alike_rival": with_rival,
        "alike_margin": with_bot - with_rival,
        "alike_to_author": scene.alike(scene.to_author[0] if scene.to_author else None),
        "alike_own": scene.alike(scene.own_messages[0] if scene.own_messages else None),
        "alike_asked": scene.alike(asked),
        **_of_threads(scene),
    }


def _of_threads(scene: Scene) -> Features:
    """How the message goes with what the bot is part of, and with the talk that is not the bot's."""
    is_bots = scene.room.is_bots
    with_bot: set[str] = set()
    without: set[str] = set()
    rare_with: set[str] = set()
    rare_without: set[str] = set()
    for past, own in zip(scene.window, is_bots, strict=True):
        (with_bot if own else without).update(scene.shared[id(past)])
    for shared, own in zip(scene.shared_rare, is_bots, strict=False):
        (rare_with if own else rare_without).update(shared)
    count = max(len(scene.message.grams), 1)
    bot, people = len(with_bot) / count, len(without) / count
    return {
        "thread_bot": bot,
        "thread_people": people,
        "thread_margin": bot - people,
        "thread_new": 1 - len(with_bot | without) / count,
        "rare_bot": len(rare_with),
        "rare_people": len(rare_without),
        "rare_only_bot": len(rare_with - rare_without),
        "open_asks": _open_ask(scene, is_bots),
        "previous_is_bots": is_bots[0] if is_bots else -1,
    }


def _open_ask(scene: Scene, is_bots: Sequence[bool]) -> int:
    """How far back somebody else asked what the bot did not answer; -1: nobody did."""
    for place, (message, speaker) in enumerate(zip(scene.window, scene.speakers, strict=True)):
        wording = message.wording
        if not is_bots[place] and speaker != scene.author and (wording.asks or not wording.lead.isdisjoint(ASKING)):
            return place + 1
    return -1


ASKING = frozenset({"ask", "verb", "you_social", "can_you", "i_ask"})


def before_it(found: Features) -> str:
    """Who spoke right before, as a letter: the bot to the author, to another, or the bot earlier to the author, the
    author, or another person."""
    if found["to_author_ago"] == 1:
        return "a"
    if found["speaker_1"] == BOT:
        return "b"
    if found["is_due"]:
        return "c"
    return "d" if found["speaker_1"] == NOBODY else "e"
