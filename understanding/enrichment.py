"""Incomplete queries: detects messages that need the conversation, and completes those that are certain.

A query is incomplete if it is only a follow-up ("And tomorrow?", "why?"), or if a word ("it", "there") refers to
something outside of it. Two kinds are completed, in the words of the conversation: a time or place that replaces the
one in the last question, and a pronoun after a question that only named something. A wrong completion is worse than
none, so everything else stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understanding.wording import CUES, CUES_OF, NOT_WORDS, TOO_COMMON, words_of

MAX_LENGTH = 300  # characters: a longer query is complete; a longer one before it is not used to complete another
MAX_STEPS = 3  # "and tomorrow?" after "and in Osaka?" after a question
MAX_JOINED_WORDS = MAX_DEFINED_WORDS = 5
END = " ?.!"
SENTENCE_END = re.compile(r"(?<=[?.!])\s+")

QUESTION_WORDS = frozenset(CUES["question"].split())
AUXILIARIES = frozenset(f"{CUES['asking']} was were can't won't doesn't didn't wasn't couldn't wouldn't be".split())
COMMANDS = frozenset("tell give find show get play explain describe compare list recommend suggest check make".split())
VERBS = AUXILIARIES | frozenset("it's that's there's he's she's they're i'm i've i'd i'll we're you're let's".split())
REQUESTING = re.compile(r"\b(?:please|(?:i|we) (?:need|want)|(?:i'd|i would) like|looking for)\b")
CLOSING = re.compile(r"\b(?:that(?:'s| is| was| will be) (?:all|it|fine|everything)|that will do|no thank|goodbye)\b")

JOINING = re.compile(r"(?:(?:ok|okay|and|but|so|then|or),? )*(?:(?:what|how) about |and |or )(.+)", re.IGNORECASE)
ABOUT = re.compile(r"(?:(?:ok|okay|and|but|so|yes|then|no),? ){0,3}(?:what|how) about\b(?! (?:i|you|we) \w)")
BARE = re.compile(
    r"(?:(?:and|but|so|ok|okay|no|then|exactly|please|really),? )*(?:"
    r"(?:why|where|when|how|who|what|which)(?: (?:not|so|exactly|then|come|else|next|now|again|first|many|much|long))?"
    r"|(?:anything|anyone|who|where|what) else|(?:what|how) do you mean|go on|continue|elaborate"
    r"|(?:(?:can|could) you )?(?:(?:tell|show|give) me |say )?(?:some |a bit |a few )?more)(?: please)?"
)
TIMES = "week|weekend|month|year|morning|afternoon|evening|night|time|day|summer|winter|spring|fall|season"
HERE = "channel|server|chat|group|room|thread|messages?|sentence|question|bot|emojis?"
NOT_THERE = "".join(rf"(?<!\b{word} )" for word in "is are was were be been will if think".split())
POINTER = re.compile(
    r"\b(?:(?P<person>(?:s?he|they)(?:'\w+)?|him|his|hers?|them|theirs?|himself|herself|themselves)"
    rf"|it(?:s|self|'\w+)?|(?:this|these|those)(?! (?:{TIMES}|{HERE})\b)"
    rf"|(?<!^){NOT_THERE}there(?! (?:{'|'.join(VERBS)})\b)"
    r"|(?:(?:does|did|do|is|was|about|of|for|with|like|to|explain|repeat)) that(?:'s)?"
    r"|(?<=which )ones?(?= is| are|$)|(?<=the other )ones?)(?![\w'])"
)
NO_POINTER = re.compile(  # an "it" that refers to nothing
    r"\bwhat (?:time|day|date|year) is it\b|\bit gets\b|\bdoes it (?:take|cost)\b"
    r"|\b(?:is|was|will|would|isn't|can) it (?:be |ever |really |still |going to )*"
    r"(?:rain\w*|snow\w*|true|possible|cold|hot|warm|sunny|humid)\b|\bit(?:'s| is| was) (?:rain|snow|freez)ing\b"
    r"|\bit(?:'s| is| was| takes?| seems| costs?) (?:\w+ ){1,4}(?:to|that)\b"
    r"|\b(?:is|was|isn't) it (?:\w+ ){1,3}(?:to|that|if)\b|\b(?:like|love|hate|mind) it (?:when|if|that)\b"
)

DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
PART_OF_DAY = "(?:morning|afternoon|evening|night)"
SEASON = (
    "(?:spring|summer|autumn|fall|winter|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|(?:1[5-9]|20)\d\d)"
)
TIME = re.compile(
    rf"\b(?:(?:on |by |for )?(?:{DAY}|today|tomorrow|tonight|yesterday)(?: {PART_OF_DAY})?"
    rf"|(?:(?:on|at|in) )?(?:this|next|last|the) (?:{DAY}|{PART_OF_DAY}|week|weekend|month|year|{SEASON})"
    rf"|in {SEASON}|at (?:night|noon|midnight|lunch)|(?:the )?day (?:after tomorrow|before yesterday)|(?:right )?now)"
    r"(?!\w|')",
    re.IGNORECASE,
)
TRAILING = re.compile(r"(?<![ ,])[ ,]+(?:then|instead|please|too|though)$", re.IGNORECASE)
NO_TIME_FITS = re.compile(
    r"\b(?:when|what (?:time|day|date|year)|(?:today|tomorrow|tonight|yesterday)'s)\b", re.IGNORECASE
)
PAST_TIME = re.compile(r"\byesterday|\blast ", re.IGNORECASE)
FUTURE_TIME = re.compile(r"\btomorrow|\btonight|\bnext |\bnow$", re.IGNORECASE)
PAST = re.compile(r"\b(?:was|were|did|had)(?:n't)?\b", re.IGNORECASE)
PRESENT = re.compile(
    r"(?:[\w-]+ ){0,2}?(?:is|are|am|will|can|could|would|should|do|does)\b|(?:what|how|where|who)'s\b"
    r"|(?:show|tell|give) me the\b",
    re.IGNORECASE,
)
NEGATION = re.compile(r"\b(?:no|not|never|nothing|nobody|without|dont|cannot|\w+n't)\b", re.IGNORECASE)
PLACED = re.compile(r"(in|on|at|from|to|near) (.+)", re.IGNORECASE)
NOT_IN_PLACES = frozenset("in on at from to near of for with and or that".split())
NAME = re.compile(r"[^\W\d_a-z][\w.&’-]*(?: (?:of |the |de |and (?=[A-Z]))?[^\W\d_a-z][\w.&’-]*)*")
PRONOUN = re.compile(
    r"\b(?:(?P<person>s?he|him|(?P<his>his))|(?P<thing>it|(?P<its>its))|(?P<plural>they|them|(?P<their>their)))"
    r"(?!['\w])",
    re.IGNORECASE,
)
DEFINED = re.compile(
    r"(?:(?P<who>who(?: is| was|'s))|what(?: is| was|'s)|(?P<many>what (?:are|were))|tell me (?:more )?about)"
    r" (?P<what>(?:(?:an?|the) )?(?P<name>.+))",
    re.IGNORECASE,
)
NOT_NAMED = TOO_COMMON | frozenset(
    """their his her its difference price address reason meaning name matter wrong happening funny missing possible
    broken""".split()
)


@dataclass(frozen=True, slots=True)
class Enrichment:
    """A query. query: completed, or as it was; incomplete: whether it needs the conversation to be understood."""

    query: str
    incomplete: bool


def enrich(message: str, recent_messages: Sequence[Mapping[str, Any]]) -> Enrichment:
    """Completes the query of a message.

    recent_messages: {"role": "user" | "assistant", "content": str}, oldest first; other roles are ignored. Mentions do
    not count as words.
    """
    if not recent_messages or not is_incomplete(message):
        return Enrichment(message, incomplete=False)
    query = _words(message[: 4 * MAX_LENGTH])
    return Enrichment(_complete(query, recent_messages, MAX_STEPS) or message, incomplete=True)


def is_incomplete(message: str) -> bool:
    """Whether a message cannot be understood without what was said before it."""
    query = _words(message[: 4 * MAX_LENGTH])[: 2 * MAX_LENGTH]
    line = query.casefold().rstrip(END)
    words = words_of(line)
    if not words or CLOSING.search(line):
        return False
    joins = words[0] in ("and", "or", "also") and 1 < len(words) <= MAX_JOINED_WORDS
    if joins and (VERBS | QUESTION_WORDS | {"i", "we", "you"}).isdisjoint(words):
        return True
    last = SENTENCE_END.split(line)[-1]
    if ABOUT.match(last) or BARE.fullmatch(last):
        return True
    is_request = "?" in query or not COMMANDS.isdisjoint(words) or REQUESTING.search(line)
    if not (is_request or words[0] in QUESTION_WORDS | AUXILIARIES) or NO_POINTER.search(line):
        return False
    meant = 0  # uncommon words in the sentence before: from two on, a pronoun may refer to them
    for sentence in SENTENCE_END.split(query):
        pointers = [] if meant > 1 else POINTER.finditer(sentence.casefold())
        if any(not (found["person"] and NAME.search(sentence, 1, found.start())) for found in pointers):
            return True
        meant = len([word for word in words_of(sentence) if word not in TOO_COMMON])
    return False


def _words(text: str) -> str:
    """The text on one line, without mentions, with straight apostrophes."""
    return " ".join(NOT_WORDS.sub(" ", text).split()).replace("’", "'")


def _complete(query: str, recent_messages: Sequence[Mapping[str, Any]], steps: int) -> str:
    """The completed query, or "" if that is not certain. query: as _words() returns it.

    A previous query that is a follow-up itself ("and in Osaka?") is completed first.
    """
    at = next((i for i, said in reversed([*enumerate(recent_messages)]) if said.get("role") == "user"), -1)
    before = str(recent_messages[at].get("content") or "") if at >= 0 else ""
    if len(query) > MAX_LENGTH or not 0 < len(before) <= MAX_LENGTH:
        return ""
    before = _words(before)
    if steps > 1 and JOINING.fullmatch(before):
        before = _complete(before, recent_messages[:at], steps - 1) or before
    latest = recent_messages[-1]
    answer = str(latest.get("content") or "") if latest.get("role") == "assistant" else ""
    return _joined(query, before) or _pointed(query, before, answer)


def _joined(query: str, before: str) -> str:
    """The last query with its time or place replaced by that of an "And ..." or "What about ...".

    A bare name is not used: it is unclear whether "Ben" is a place. A last query with a negation is not used either.
    """
    match = JOINING.fullmatch(query.rstrip(END))
    base = SENTENCE_END.split(before)[-1]
    words = base.casefold().split()
    asks = base.endswith("?") or (words and words[0] in QUESTION_WORDS | AUXILIARIES | COMMANDS)
    if match is None or len(words) < 3 or not asks or NEGATION.search(base):
        return ""
    part = TRAILING.sub("", match[1])
    if len(part.split()) > MAX_JOINED_WORDS or not (VERBS | QUESTION_WORDS).isdisjoint(part.casefold().split()):
        return ""
    if TIME.fullmatch(part):
        return _with_time(part, base)
    placed = PLACED.fullmatch(part)
    return _with_place(placed, base) if placed else ""


def _with_time(time: str, base: str) -> str:
    """Replaces the one time of a query, or appends a time to a query in the present tense."""
    found = list(TIME.finditer(base))
    unfit = FUTURE_TIME if PAST.search(base) else PAST_TIME
    if len(found) > 1 or NO_TIME_FITS.search(base) or unfit.search(time):
        return ""
    if found:
        return base[: found[0].start()] + time + base[found[0].end() :]
    end = len(base.rstrip(END))
    return f"{base[:end]} {time}{base[end:]}" if PRESENT.match(base) else ""


def _with_place(placed: re.Match[str], base: str) -> str:
    """Replaces the one "in ..." of a query, up to a time or its end, by "in Osaka"."""
    found = list(re.finditer(rf"\b{placed[1]} ", base, re.IGNORECASE))
    if len(found) != 1:
        return ""
    rest = base[found[0].end() :]
    time = TIME.search(rest)
    replaced = rest[: time.start() - 1 if time else len(rest.rstrip(END))]
    words = replaced.casefold().split()
    # Two phrases are alike if both are names, or if neither is and they have as many words.
    names = [NAME.fullmatch(phrase) is not None for phrase in (replaced, placed[2])]
    articles = ["article" in CUES_OF.get(phrase.casefold().split(" ")[0], ()) for phrase in (replaced, placed[2])]
    are_as_long = len(replaced.split()) == len(placed[2].split())
    are_alike = names[0] == names[1] and articles[0] == articles[1] and (names[0] or are_as_long)
    if len(words) > MAX_JOINED_WORDS or not NOT_IN_PLACES.isdisjoint(words) or not are_alike:
        return ""
    return f"{base[: found[0].start()]}{placed[1].lower()} {placed[2]}{rest[len(replaced) :]}"


def _pointed(query: str, before: str, answer: str) -> str:
    """Replaces a pronoun after a question that only named somebody or something: "What is jet lag?", "Is it bad?".

    Not if the answer has a second sentence, which may name other things.
    """
    found = list(PRONOUN.finditer(query))
    defined = DEFINED.fullmatch(before.rstrip(END))
    if len(found) != 1 or defined is None or SENTENCE_END.search(answer.strip()):
        return ""
    (pronoun,), named, words = found, defined["what"], defined["name"].casefold().split()
    is_name = len(named.split()) <= MAX_DEFINED_WORDS and NOT_NAMED.isdisjoint(words)
    if not is_name or named.casefold() in query.casefold():
        return ""
    is_plural = defined["many"] or re.search(r"[^sui]s$", words[-1])
    is_person = defined["who"] and (named[0].isupper() or named.casefold().startswith("the "))
    fits = {"person": is_person, "plural": is_plural, "thing": not (defined["who"] or is_plural)}
    if not fits[next(kind for kind in fits if pronoun[kind])]:
        return ""
    owns = pronoun["his"] or pronoun["its"] or pronoun["their"]
    owned = (named + "'" if named.endswith("s") else f"{named}'s") if owns else named
    return query[: pronoun.start()] + owned + query[pronoun.end() :]
