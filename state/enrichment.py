"""A query that leaves something to the conversation, and the query that says it all.

Whether a query is incomplete is told by `state/incompleteness.py`. Here are the few shapes that are sure enough to be
completed; in all others the words stay as they were, since a wrong completion is worse than none. Every shape takes
what it adds from what was said, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.incompleteness import (
    AUXILIARIES,
    COMMANDS,
    GRAMMAR,
    QUESTION_WORDS,
    RELATIONS,
    VERBS,
    is_incomplete,
    without_mentions,
)

MAX_LENGTH = 300  # a longer query says enough itself; a longer one before it is none to build on
MAX_STEPS = 3  # "and tomorrow?" after "and in Osaka?" after a question

END = " ?.!"
SENTENCE_END = re.compile(r"(?<=[?.!])\s+")
JOINING = re.compile(r"(?:(?:ok|okay|and|but|so|then|or),? )*(?:(?:what|how) about |and |or )(.+)", re.IGNORECASE)
TRAILING = re.compile(r"[ ,]+(?:then|instead|please|too|though)$", re.IGNORECASE)
MAX_JOINED_WORDS = 5
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
NO_TIME_FITS = re.compile(
    r"\b(?:when|what (?:time|day|date|year)|(?:today|tomorrow|tonight|yesterday)'s)\b", re.IGNORECASE
)
PAST_TIME = re.compile(r"\byesterday|\blast ", re.IGNORECASE)
FUTURE_TIME = re.compile(r"\btomorrow|\btonight|\bnext |\bnow$", re.IGNORECASE)
PAST = frozenset("was were did had wasn't weren't didn't hadn't".split())
PRESENT = re.compile(
    r"(?:[\w-]+ ){0,2}?(?:is|are|am|will|can|could|would|should|do|does)\b|(?:what|how|where|who)'s\b"
    r"|(?:show|tell|give) me the\b",
    re.IGNORECASE,
)
NEGATION = re.compile(r"\b(?:no|not|never|nothing|nobody|without|dont|cannot|\w+n't)\b", re.IGNORECASE)
PLACING = "in on at from to near".split()
NOT_IN_PLACES = frozenset((*PLACING, "of", "for", "with", "and", "or", "that"))
PLACED = re.compile(rf"({'|'.join(PLACING)}) (.+)", re.IGNORECASE)
NAME = re.compile(r"[^\W\d_a-z][\w.&’-]*(?: (?:of |the |de |and (?=[A-Z]))?[^\W\d_a-z][\w.&’-]*)*")
WORD = re.compile(r"[\w'’-]+")
WISHING = re.compile(
    r".*?\b(?:looking for|(?:i|we)(?:'d| would)? (?:want|need|like)(?: to (?:find|try|have|eat|see|get))?"
    r"|(?:is|are) there|(?:can|could) you (?:find|recommend|suggest)(?: me)?|(?:find|show|give|get) me|find) ",
    re.IGNORECASE,
)

CLAUSE_OPENINGS = frozenset("that which who and or".split())

PRONOUNS: Mapping[str, str] = {
    **dict.fromkeys(("he", "she", "him"), "person"),
    **dict.fromkeys(("his",), "persons"),
    **dict.fromkeys(("it",), "thing"),
    **dict.fromkeys(("its",), "things"),
    **dict.fromkeys(("they", "them"), "plural"),
    **dict.fromkeys(("their",), "plurals"),
}
DEFINED = re.compile(
    r"(?:(?P<who>who(?: is| was|'s))|what(?: is| was|'s)|(?P<many>what (?:are|were))|tell me (?:more )?about)"
    r" (?P<what>.+)",
    re.IGNORECASE,
)
SEVERAL = re.compile(r"[^sui]s$")
NOT_NAMED = RELATIONS | frozenset("wrong happening funny needed available missing possible broken".split())
MAX_DEFINED_WORDS = 5

GIVEN: Mapping[str, re.Pattern[str]] = {
    "when": re.compile(rf"{TIME.pattern}|\d|\b(?:before|after|during|while|since|until)\b", re.IGNORECASE),
    "where": re.compile(rf"\b(?:{'|'.join(PLACING)}|here|there|into|by)\b", re.IGNORECASE),
    "why": re.compile(r"\b(?:because|since|due)\b", re.IGNORECASE),
    "how": re.compile(r"^(?!(?:did|does|do|can|will|should)\b)|\b(?:by|with|using)\b", re.IGNORECASE),
}
BARE_QUESTION = re.compile(r"(?:(?:and|but|so|ok|okay) )*(when|where|why|how)(?: exactly)?", re.IGNORECASE)
DOING = frozenset("do does did will can should".split())
CONFIRMED = re.compile(r"(?:yes|yeah|yep|correct|indeed)\b", re.IGNORECASE)

BARE_RELATION = re.compile(
    r".*\bthe ((?:[\w'-]+ )?[\w'-]+(?:(?:,| and|, and) (?!please)(?:[\w'-]+ )?[\w'-]+){0,2})(?=,? please|$)",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"(?:^|(?<=[.!?:,] ))((?:the |The )?[^\W\d_a-z][\w&’'-]*(?: (?:of |the |and )?[^\W\d_a-z][\w&’'-]*)*)"
    r" (?:is|are|was|were|has|serves|offers|costs)\b"
)
ATTRIBUTES = frozenset(
    """address phone number postcode price range cost author writer director founder founders leader capital population
    size height weight length location rating menu hours temperature ingredients member members symptoms""".split()
)
NOT_SUBJECTS = frozenset("it there this that these those they he she we you i here what which who their its".split())

INDIFFERENT = re.compile(
    r"(?:no,? )?(?:i )?(?:do not|don't|dont) (?:really )?care"
    r"|(?P<any>any)(?P<rest>(?: is fine| will do)?)",
    re.IGNORECASE,
)
ASKED_FOR = re.compile(
    r"\b(?:what|which) ((?:[\w-]+ ){1,4}?)(?:you|i|we|would|do|does|did|are|is|were|can|could|should|will|appeals)\b"
    r"|\bpreferences? (?:of|on|for|in|regarding|about|as to)(?: the| an?| what)? ((?:[\w-]+ ?){1,4})[?,.]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Enrichment:
    """query: the complete query, or the words as they were; incomplete: whether it needs what was said before."""

    query: str
    incomplete: bool


@dataclass(frozen=True, slots=True)
class Before:
    """What a query comes after: the last query, completed if it had to be, and our answer if that came last."""

    query: str
    answer: str


def enrich(message: str, recent_messages: Sequence[Mapping[str, Any]]) -> Enrichment:
    """What a message asks in full.

    recent_messages: {"role": "user" | "assistant", "content": str}, oldest first. A "topic" there announces the subject
    of the conversation; other roles are passed over. Mentions are no words of the query.
    """
    if not is_incomplete(message, recent_messages):
        return Enrichment(message, incomplete=False)
    return Enrichment(_complete(message, recent_messages, MAX_STEPS) or message, incomplete=True)


def _complete(message: str, recent_messages: Sequence[Mapping[str, Any]], steps: int) -> str:
    """The complete query, by the first shape that is sure, or ""."""
    query = _words(message[: 4 * MAX_LENGTH])
    if not 0 < len(query) <= MAX_LENGTH:
        return ""
    before = _before(recent_messages, steps)
    return next((full for shape in SHAPES if (full := shape(query, before))), "")


def _before(recent_messages: Sequence[Mapping[str, Any]], steps: int) -> Before:
    """What was said last. A query that only joined another is taken with it: "and in Osaka?"."""
    at = len(recent_messages) - 1
    while at >= 0 and recent_messages[at].get("role") != "user":
        at -= 1
    query = _content(recent_messages[at]) if at >= 0 else ""
    query = _words(query) if len(query) <= MAX_LENGTH else ""
    if steps > 1 and JOINING.fullmatch(query):
        query = _complete(query, recent_messages[:at], steps - 1) or query
    answer = recent_messages[-1] if recent_messages and recent_messages[-1].get("role") == "assistant" else {}
    return Before(query, _content(answer)[:MAX_LENGTH])


def _content(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "")


def _words(text: str) -> str:
    """A text on one line, without mentions, apostrophes as typed."""
    return " ".join(without_mentions(text).split()).replace("’", "'")


def _bare(text: str) -> str:
    """Text without its closing marks."""
    return text.rstrip(END)


def joined(query: str, before: Before) -> str:
    """ "And ...", "what about ..." with a time or a place: put where the last query had the like of it.

    Not a bare name: nothing tells whether "Ben" is a place, or asks for another Apple.
    """
    match = JOINING.fullmatch(_bare(query))
    if match is None:
        return ""
    part = TRAILING.sub("", match[1])
    words = part.casefold().split()
    base = _last_sentence(before)
    if len(words) > MAX_JOINED_WORDS or not VERBS.union(QUESTION_WORDS).isdisjoint(words) or not _asks(base):
        return ""
    if TIME.fullmatch(part):
        return _with_time(part, base)
    placed = PLACED.fullmatch(part)
    return _with_place(placed, base) if placed else ""


def _last_sentence(before: Before) -> str:
    """The last sentence of the last query, or "" if it denies or forbids something: that is not asked anew."""
    base = SENTENCE_END.split(before.query)[-1]
    return "" if NEGATION.search(base) else base


def _asks(text: str) -> bool:
    words = text.casefold().split()
    return len(words) > 2 and (
        text.endswith("?") or words[0] in QUESTION_WORDS or words[0] in AUXILIARIES or words[0] in COMMANDS
    )


def _with_time(time: str, base: str) -> str:
    """A time takes the place of the one time that a query has, or stands at the end of one in the present tense."""
    found = list(TIME.finditer(base))
    if len(found) > 1 or NO_TIME_FITS.search(base) or not _fits_tense(time, base):
        return ""
    if found:
        return base[: found[0].start()] + time + base[found[0].end() :]
    if not PRESENT.match(base):
        return ""
    at = len(_bare(base))
    return f"{base[:at]} {time}{base[at:]}"


def _fits_tense(time: str, base: str) -> bool:
    """Whether a query can ask for a time: "yesterday" if it asks what was, "tomorrow" if it does not."""
    is_past = not PAST.isdisjoint(base.casefold().split())
    return not (FUTURE_TIME if is_past else PAST_TIME).search(time)


def _with_place(placed: re.Match[str], base: str) -> str:
    """ "In Osaka" takes the place of the one "in ..." that a query has, up to a time or its end."""
    found = list(re.finditer(rf"\b{placed[1]} ", base, re.IGNORECASE))
    if len(found) != 1:
        return ""
    start = found[0].start()
    rest = base[found[0].end() :]
    time = TIME.search(rest)
    stop = time.start() - 1 if time else len(_bare(rest))
    replaced = rest[:stop]
    words = replaced.casefold().split()
    if len(words) > MAX_JOINED_WORDS or not NOT_IN_PLACES.isdisjoint(words) or not _are_alike(replaced, placed[2]):
        return ""
    return f"{base[:start]}{placed[1].lower()} {placed[2]}{rest[stop:]}"


def _are_alike(one: str, other: str) -> bool:
    """Whether two phrases may be of one kind: both names, or as many words of which none is one."""
    names = [NAME.fullmatch(phrase) is not None for phrase in (one, other)]
    articles = [phrase.casefold().split()[:1] in (["a"], ["an"], ["the"]) for phrase in (one, other)]
    are_as_long = len(one.split()) == len(other.split())
    return names[0] == names[1] and articles[0] == articles[1] and (names[0] or are_as_long)


def alike(query: str, before: Before) -> str:
    """ "How about Korean food?" after a wish: the same wish with another kind of food."""
    match = JOINING.fullmatch(_bare(query))
    if match is None:
        return ""
    part = TRAILING.sub("", match[1])
    kind, _, head = part.rpartition(" ")
    if not kind or not GRAMMAR.isdisjoint(part.casefold().split()):
        return ""
    base = next((text for text in SENTENCE_END.split(before.query) if re.search(rf"\b{re.escape(head)}\b", text)), "")
    wish = WISHING.match(base)
    if wish is None:
        return ""
    wished = _bare(base[wish.end() :])
    words = wished.split()
    at = [index for index, word in enumerate(words) if word.casefold() == head.casefold()]
    if len(at) != 1:
        return ""
    start = at[0]
    while start and _modifies(words[start - 1], words[start - 2] if start > 1 else ""):
        start -= 1
    wished_now = " ".join((*words[:start], part, *words[at[0] + 1 :]))
    return f"{query[: match.start(1)]}{wished_now}?"


def _modifies(word: str, before: str) -> bool:
    """Whether a word before a noun goes with it: not so the verb in "that serves Thai food", "serving Thai food"."""
    return word.casefold() not in GRAMMAR and not word.endswith("ing") and before.casefold() not in CLAUSE_OPENINGS


def pointed(query: str, before: Before) -> str:
    """A pronoun after a question that did nothing but name somebody or something: "What is jet lag?", "Is it bad?"."""
    words = WORD.findall(query)
    found = [word for word in words if word.casefold() in PRONOUNS]
    if len(found) != 1:
        return ""
    kind = PRONOUNS[found[0].casefold()]
    referent = _referent(kind.removesuffix("s"), before)
    if not referent or referent.casefold() in query.casefold():
        return ""
    owned = referent + ("'" if referent.endswith("s") else "'s") if kind.endswith("s") else referent
    return re.sub(rf"\b{found[0]}\b(?!')", lambda _: owned, query, count=1)


def _referent(kind: str, before: Before) -> str:
    """What the last query named, unless our answer went on to name other things in a second sentence."""
    match = DEFINED.fullmatch(_bare(before.query))
    if match is None or SENTENCE_END.search(before.answer.strip()):
        return ""
    words = match["what"].casefold().split()
    if len(words) > MAX_DEFINED_WORDS or not _is_name(words):
        return ""
    is_plural = match["many"] is not None or SEVERAL.search(words[-1]) is not None
    is_person = match["who"] is not None and (match["what"][0].isupper() or words[0] == "the")
    fits = {"person": is_person, "plural": is_plural, "thing": match["who"] is None and not is_plural}
    return match["what"] if fits[kind] else ""


def _is_name(words: Sequence[str]) -> bool:
    """Whether words are no more than a noun with what goes before it, and not "wrong" as in "what's wrong"."""
    start = 1 if words[0] in ("a", "an", "the") else 0
    return len(words) > start and GRAMMAR.isdisjoint(words[start:]) and NOT_NAMED.isdisjoint(words)


def bare_question(query: str, before: Before) -> str:
    """ "Where?" after "When did it open?", or after "Did it open?" that was answered with yes.

    "Why?" after the former asks for the reason of our answer, and so is left. So is what the query gives already, and
    what comes after "Is there ...".
    """
    match = BARE_QUESTION.fullmatch(_bare(query))
    base = _last_sentence(before)
    if match is None or not base.endswith("?"):
        return ""
    asked = match[1].capitalize()
    first, second, *_ = (base.casefold() + "  ").split(" ")
    if second == "there" or GIVEN[asked.casefold()].search(base):
        return ""
    if {first, asked.casefold()} == {"when", "where"} and second in DOING:
        return asked + base[len(first) :]
    if first in AUXILIARIES and CONFIRMED.match(before.answer):
        return f"{asked} {base[0].lower()}{base[1:]}"
    return ""


def bare_relation(query: str, before: Before) -> str:
    """ "What is the address?" after an answer about one thing by name: "... of La Raza?"."""
    match = BARE_RELATION.match(_bare(query))
    if match is None or not all(
        part.split()[-1].casefold() in ATTRIBUTES for part in re.split(r",? and |, ", match[1])
    ):
        return ""
    subjects = {found[1] for found in SUBJECT.finditer(before.answer)}
    if len(subjects) != 1:
        return ""
    (subject,) = subjects
    if subject.split()[0].casefold() in NOT_SUBJECTS or not ATTRIBUTES.isdisjoint(subject.casefold().split()):
        return ""
    return f"{query[: match.end(1)]} of {subject}{query[match.end(1) :]}"


def indifferent(query: str, before: Before) -> str:
    """ "I don't care" after a question of ours for one thing: "... about the area"."""
    bare = _bare(query)
    match = INDIFFERENT.fullmatch(bare)
    asked = list(ASKED_FOR.finditer(before.answer)) if match else []
    if match is None or len(asked) != 1:
        return ""
    thing, end = (asked[0][1] or asked[0][2]).strip(), query[len(bare) :]
    if not QUESTION_WORDS.isdisjoint(thing.casefold().split()):
        return ""
    return f"{match['any']} {thing}{match['rest']}{end}" if match["any"] else f"{bare} about the {thing}{end}"


SHAPES: Sequence[Callable[[str, Before], str]] = (joined, alike, pointed, bare_question, bare_relation, indifferent)
