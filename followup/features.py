"""The model's features: numbers on how a message relates to the bot, and to other people who are talking.

The running bot and the training use the same function. The messages that it looks at are collected in
followup/scene.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress, islice

from conversation import ChannelConversation
from followup.scene import MOST_SECONDS, NEVER, NEVER_SECONDS, Scene, look
from state.engagement import RECENT
from state.message import MessageRecord
from understanding.wording import words_of_name

Features = Mapping[str, float]
"""Name to value, always the same names in the same order. A missing value is a number outside the normal range."""

EPOCH = datetime.fromtimestamp(0, UTC)
MOST_MESSAGES = 60.0
FADING = 0.88  # the factor by which each older message counts less in a pair's score
OTHER, NOBODY, BOT = 0.0, 1.0, 2.0  # whom somebody was talking with
NONE: frozenset[str] = frozenset()
SPEAKERS = "speaker_1 speaker_2 speaker_3 speaker_4 speaker_5".split()
LAST_WORDS = """last_asks_at_end last_asks_offer last_asks_what last_asks_author last_unsure last_fits
    last_shares_question last_lines""".split()
DIGIT = re.compile("[0-9]")
ASKING = frozenset({"ask", "verb", "you_social", "can_you", "i_ask"})


def _named(prefix: str, classes: str) -> Mapping[str, str]:
    """The feature's name for each of these classes of words."""
    return {one: f"{prefix}_{one}" for one in classes.split()}


SAYS = _named("talk", "about ask can_you i laugh room thanks verb we when you you_social")
STARTS = _named("lead", "ask make verb vary can_you")


def features(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Features:
    """The features of a message, whether or not it is already recorded in the conversation."""
    scene = look(message, conversation, bot_user_id)
    return {
        **_of_turns(scene),
        **_of_talk(scene),
        **_of_channel(scene),
        **_of_names(scene),
        **_of_words(scene),
        **_of_answers(scene),
        **_of_pattern(scene),
        **_of_phrases(scene),
        **_of_last_words(scene),
        **_of_people(scene),
    }


def feature_names() -> list[str]:
    """The names of the features, in order."""
    nothing = MessageRecord(author="", author_id=0, content="", timestamp=EPOCH, is_bot=False)
    return list(features(nothing, ChannelConversation(0, EPOCH, EPOCH), 1))


def _of_turns(scene: Scene) -> Features:
    """Whom the bot spoke to last, and whether an answer is due."""
    engagement, standing = scene.engagement, scene.standing
    spoken_to, spoke, author = standing.spoken_to, standing.spoke, scene.author
    to_author = scene.to_author[0] if scene.to_author else None
    wording = to_author.wording if to_author else None
    latest, own = scene.latest, scene.own_messages
    return {
        "to_author_ago": scene.ago(spoken_to),
        "to_author_seconds": scene.seconds(spoken_to),
        "to_author_asks": wording.asks if wording else -1,
        "to_author_words": wording.count if wording else -1,
        # Whether the bot named the author in the text, or replied to them.
        "to_author_names": author in to_author.ids_in_text or author == to_author.reply_to_author_id
        if to_author
        else -1,
        "to_author_of_3": len(scene.to_author),
        "is_due": spoken_to is not None and (spoke is None or spoken_to.number > spoke.number),
        "bot_ago": min(scene.ago(engagement.bot_spoke), MOST_MESSAGES),
        "bot_seconds": scene.seconds(engagement.bot_spoke),
        "bot_words": latest.wording.count if latest else -1,
        "bot_asks": latest.wording.asks if latest else -1,
        "bot_messages_since_own": min(engagement.bot_messages - standing.bot_messages, 20) if spoke else -1,
        "own_seconds": scene.seconds(spoke),
        "own_words": own[0].wording.count if own else -1,
        "own_to": _whom(own[0].named, scene.bot) if own else -1,
        "own_before_to": _whom(own[1].named, scene.bot) if len(own) > 1 else -1,
    }


def _whom(targets: frozenset[int], bot: int) -> float:
    return BOT if bot in targets else OTHER if targets else NOBODY


def _of_talk(scene: Scene) -> Features:
    """Whom the author has been talking with: a score for each pair, how far back one spoke to the other, and counts of
    messages since the bot's last one to the author."""
    author, bot, speakers = scene.author, scene.bot, scene.speakers
    last = dict.fromkeys(("bot_to_own", "own_to_bot", "rival_to_own", "own_to_rival"), NEVER)
    scores: defaultdict[int, float] = defaultdict(float)
    rivals_to_own = free = 0
    weight = 1.0
    in_turn = zip(speakers, [*speakers[1:], None], scene.targets, strict=False)
    for ago, (speaker, previous, targets) in enumerate(in_turn, 1):
        is_since = last["bot_to_own"] == NEVER
        if speaker == author:
            if not targets and previous is not None:
                scores[previous] += weight
            for target in targets:
                scores[target] += 3 * weight
                whom = "own_to_bot" if target == bot else "own_to_rival"
                last[whom] = min(last[whom], ago)
        elif not targets:
            scores[speaker] += weight if previous == author else 0.2 * weight
            free += is_since and speaker != bot
        elif author in targets:
            scores[speaker] += 3 * weight
            who = "bot_to_own" if speaker == bot else "rival_to_own"
            last[who] = min(last[who], ago)
            rivals_to_own += is_since and speaker != bot
        else:
            scores[speaker] -= 0.3 * weight
        weight *= FADING
    with_bot, with_rival = min(last["bot_to_own"], last["own_to_bot"]), min(last["rival_to_own"], last["own_to_rival"])
    score = scores.get(bot, 0.0)
    of_rivals = [of_rival for who, of_rival in scores.items() if who not in (bot, author)]
    return {
        **last,
        "bot_score": score,
        "rival_score": max(of_rivals, default=0.0),
        "margin": score - max(of_rivals, default=0.0),
        "rank": sum([of_rival > score for of_rival in of_rivals]),
        "partner": NOBODY if with_bot == with_rival == NEVER else BOT if with_bot < with_rival else OTHER,
        "rivals_to_own_since": rivals_to_own,
        "free_since": free,
    }


def _of_channel(scene: Scene) -> Features:
    """How busy the channel is, and the bot in it."""
    engagement, author, bot, window = scene.engagement, scene.author, scene.bot, scene.window
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
    # Of others' questions within 6 messages, those to nobody in particular.
    open_questions = (
        ago
        for ago, (s, t, message) in enumerate(islice(zip(scene.speakers, scene.targets, window, strict=True), 6), 1)
        if not t and message.wording.asks and s not in (author, bot)
    )
    return {
        "people": people,
        "people_since_bot": people_since_bot,
        "window_seconds": min((scene.now - window[-1].timestamp).total_seconds(), MOST_SECONDS)
        if window
        else NEVER_SECONDS,
        "own_in_window": scene.speakers.count(author),
        "bot_in_window": scene.speakers.count(bot),
        "bot_to_others_ago": next(to_others, NEVER),
        "before_run": NOBODY if before_run is None else BOT if before_run == bot else OTHER,
        "open_question": next(open_questions, 0),
    }


def _of_names(scene: Scene) -> Features:
    """Whom the message names; the bot's name counts only where it calls the bot. A mention never gets to the model."""
    message, bot = scene.message, scene.bot
    content, wording = message.content.lstrip(), message.wording
    name = scene.engagement.bot_name.casefold()
    is_addressed = is_called = bool(name) and name in message.calls
    if not is_called and (words := words_of_name(name)) and scene.words.issuperset(words):  # a name can be all emoji
        # "Parley is nice" talks about the bot, "Parley is it far" and "can you, parley" talk to it.
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


def _flags(names: Mapping[str, str]) -> Callable[[frozenset[str]], Features]:
    """Returns a function: classes of words -> a flag for each feature. Cached, as most messages have the same few."""
    return lru_cache(maxsize=256)(lambda classes: {name: one in classes for one, name in names.items()})


_says, _starts = map(_flags, (SAYS, STARTS))


def _of_words(scene: Scene) -> Features:
    """The message's words, those that it shares with the bot's, and how many of its rare words are new."""
    words, wording = scene.words, scene.message.wording
    length = 1 + wording.length
    return {
        "words": wording.count,
        "length": wording.length,
        "word_length": length / (1 + wording.count),
        "capitals": wording.capitals / length,
        "asks": wording.asks,
        "ends_asking": wording.ends_asking,
        "has_link": wording.has_link,
        "commas": wording.commas,
        "starts_greeting": "greeting" in wording.first,
        "shared_to_author": max((len(words.intersection(m.wording.tokens)) for m in scene.to_author), default=-1),
        "shared_bot": len(words.intersection(scene.latest.wording.tokens)) if scene.latest else -1,
        "rare_words": len(scene.rare),
        "new_words": len(scene.rare.difference(*scene.shared_rare)),
    }


def _of_answers(scene: Scene) -> Features:
    """Which of the author's and the room's earlier messages the bot answered."""
    standing, room = scene.standing, scene.room
    trail = standing.trail & (1 << min(standing.said, 8)) - 1
    return {
        "own_said": min(standing.said, 30),
        "own_answered": min(standing.answered, 20),
        "own_answered_share": standing.answered / standing.said if standing.said else -1,
        "own_answered_of_3": (trail & 7).bit_count(),
        "own_last_answered": trail & 1 if standing.said else -1,
        "own_left_alone": min(standing.said, (trail & -trail).bit_length() - 1 if trail else 8),
        "room_answered_of_6": room.answered,
        "room_left_alone": room.since,
        "taken_up": room.taken_up,
        "left_alone_since_bot": room.alone,
    }


def _of_pattern(scene: Scene) -> Features:
    """The latest speakers in order, and how quickly they spoke."""
    speakers, window, author, bot = scene.speakers, scene.window, scene.author, scene.bot
    now = scene.now.timestamp()
    last = [BOT if speaker == bot else NOBODY if speaker == author else OTHER for speaker in speakers[:5]]
    rival = window[scene.rival] if scene.rival >= 0 else None
    return {
        **dict(zip(SPEAKERS, (*last, -1, -1, -1, -1, -1), strict=False)),
        "run": scene.run,
        "own_ago": speakers.index(author) + 1 if author in speakers else 0,
        "other_ago": scene.rival + 1,
        "other_seconds": min(now - rival.timestamp.timestamp(), MOST_SECONDS) if rival else NEVER_SECONDS,
        "previous_seconds": min(now - window[0].timestamp.timestamp(), MOST_SECONDS) if window else NEVER_SECONDS,
        "window_named": sum(map(bool, scene.targets)) / len(window) if window else -1,
        "window_speakers": len(set(speakers)),
    }


def _of_phrases(scene: Scene) -> Features:
    """Classes of words and phrases in several languages, names among them."""
    wording, content = scene.message.wording, scene.message.content
    tokens, is_foreign = wording.tokens, not content.isascii()
    return {
        **_says(wording.talk),
        **_starts(wording.lead),
        "names_person": len(scene.people),
        "names_person_last": bool(scene.people) and scene.people[-1][0] == len(tokens) - 1,
        "names_bot_anywhere": scene.engagement.bot_name.casefold() in scene.words,
        "has_number": DIGIT.search(content) is not None or (is_foreign and any(map(str.isdigit, content))),
        "repeats_marks": "??" in content or "!!" in content,
        "non_ascii": is_foreign,
    }


def _of_last_words(scene: Scene) -> Features:
    """What the bot's last message asked for, and whether this message fits as the answer."""
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
        "last_shares_question": len(asked & scene.words),
        "last_lines": latest.content.count("\n"),
    }


def _of_people(scene: Scene) -> Features:
    """The last message of another person, and how similar this message is to it and to the bot's."""
    latest, place = scene.latest, scene.rival
    rival = scene.window[place] if place >= 0 else None
    asked = next((m for m in scene.window if m.message_id == latest.reply_to_id), None) if latest else None
    to_author = scene.to_author[0] if scene.to_author else None
    with_bot, with_rival = scene.alike(latest), scene.alike(rival)
    is_bots = scene.room.is_bots
    is_others = [not own for own in is_bots]
    rare_with = NONE.union(*compress(scene.shared_rare, is_bots))
    rare_without = NONE.union(*compress(scene.shared_rare, is_others))
    # What others asked, and the bot did not answer.
    open_asks = (
        ago
        for ago, (m, speaker, own) in enumerate(zip(scene.window, scene.speakers, is_bots, strict=True), 1)
        if not own and speaker != scene.author and (m.wording.asks or not m.wording.lead.isdisjoint(ASKING))
    )
    return {
        "rival_asks": rival.wording.asks if rival else -1,
        "rival_asks_ask": bool(rival.wording.lead & {"ask", "verb", "you_social"}) if rival else -1,
        "rival_words": rival.wording.count if rival else -1,
        "rival_to_bot": scene.bot in scene.targets[place] if rival else -1,
        "rival_after_bot": latest is not None and rival is not None and rival.timestamp >= latest.timestamp,
        "rival_laughs": "laugh" in rival.wording.talk if rival else -1,
        "alike_bot": with_bot,
        "alike_rival": with_rival,
        "alike_margin": with_bot - with_rival,
        "alike_to_author": with_bot if to_author is latest else scene.alike(to_author),
        "alike_own": scene.alike(scene.own_messages[0] if scene.own_messages else None),
        "alike_asked": scene.alike(asked),
        "rare_bot": len(rare_with),
        "rare_people": len(rare_without),
        "rare_only_bot": len(rare_with - rare_without),
        "open_asks": next(open_asks, -1),
        "previous_is_bots": is_bots[0] if is_bots else -1,
    }


def before_it(found: Features) -> str:
    """Who spoke right before, as a letter: a: the bot, to the author; b: the bot, to somebody else. Otherwise c: an
    answer to the bot is due from the author; d: the author spoke; e: another person."""
    if found["to_author_ago"] == 1:
        return "a"
    if found["speaker_1"] == BOT:
        return "b"
    if found["is_due"]:
        return "c"
    return "d" if found["speaker_1"] == NOBODY else "e"
