"""Whether a query can be understood without what was said before it.

Three steps, the first that decides counts: what closes a conversation is complete; a word that points back ("it",
"there", "what about ...") with nothing in the query to point at makes it incomplete; else small evidence is weighed:
a noun that is always of something and stands alone ("the address"), words shared with what was said, a comparison.
The weights are learned by `evals/train_incompleteness.py`. Only classes of common English words count: grammar, and
nouns that are mostly of something. In another language little is found, and then a query is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.wording import NOT_WORDS

MAX_LENGTH, MAX_WORDS = 600, 60  # of a query that is read
RECENT, MAX_SAID = 6, 300  # the messages, and the characters of each, in which a query's words are looked for
MAX_CLOSING_QUESTION = 120  # characters at the end of an answer in which a question asks for the query

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.!?,;]")
MARKS = frozenset(".!?,;")
ENDS = frozenset(".!?")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PERSONS = _set("he she him her his hers they them their theirs himself herself themselves") | _set(
    "he's she's they're they've they'd he'd she'd they'll he'll she'll"
)
IT = _set("it its itself it's it'll it'd")
THESE = _set("this these those")
THAT = _set("that that's")
NOT_POINTED_BY_THAT = _set("all so know think say said mean anything something everything nothing thing")
QUESTION_WORDS = _set("what which who whom whose where when why how what's who's where's when's how's whats")
AUXILIARIES = _set(
    """is are was were be been being am do does did have has had can could will would should may might must shall
    isn't aren't don't doesn't didn't won't can't cannot wasn't weren't couldn't wouldn't shouldn't haven't hasn't"""
)
VERBS = AUXILIARIES | _set(
    """there's i'm i'd i'll i've we're you're it's that's they're he's she's what's who's where's how's let's"""
)
PREPOSITIONS = _set(
    """of in on at to for from with by about as into onto over under between during than versus vs like after before
    without within against among besides near"""
)
OWNERS = _set("my your our")
DETERMINERS = _set("a an the some any all both each every no my your our")
COMMANDS = _set(
    """tell give show find send set call play get describe explain compare list pick take add remove put spell define
    navigate search pay turn open make let repeat continue recommend suggest book order remind check direct read roll
    fix change delete move rename translate summarize summarise rewrite shorten convert"""
)
COMPARING = _set("other others another else same similar")
CONTINUING = _set("also too then next afterward afterwards later instead again still")
SITUATION = _set("channel server chat group room thread message messages sentence question bot emoji emojis")
TIMES = _set("week weekend month year morning afternoon evening night time day summer winter spring fall season")
ONE_OF_A_KIND = TIMES | _set("weather date news world sun moon sky earth sea ocean internet web future past country")
LIGHT = _set(
    """i me mine we us you yours yes please thanks thank ok okay just many much very really well like want need know go
    going got come came use used see way sort things lot not and but or so if because while off out up down only even
    now ever never yet anyone someone everyone here don't one ones such able currently hi hello hey great good nice
    sure oh wow bad new best better main important first last there more look looking work works happen happens
    happened"""
)
GRAMMAR = LIGHT.union(
    COMPARING, CONTINUING, QUESTION_WORDS, VERBS, PREPOSITIONS, DETERMINERS, PERSONS, IT, THESE, THAT,
    NOT_POINTED_BY_THAT, _set("tell give find get make made take took let put help"),
)  # fmt: skip
RELATIONS = frozenset(
    form
    for noun in """address phone number postcode price cost name author writer director history role purpose difference
    similarity advantage disadvantage benefit pro con risk danger cause effect result outcome reason symptom sign
    treatment cure impact influence significance importance meaning origin example type kind part member founder leader
    winner plot ending setting character theme finding feature requirement rule process step population capital size
    age height weight length speed location direction route rating review schedule parent sibling sister brother wife
    husband child children family album award single song success reception reaction response critic tour side
    component ingredient model version variety option alternative topic detail information info concern problem issue
    criticism method technique use application factor aspect trait stage phase term style legacy background career
    education birthplace nationality release record contract lyric hour distance traffic forecast temperature
    instruction recipe lifespan habitat""".split()
    for form in (noun, f"{noun}s", f"{noun}es", noun.removesuffix("y") + "ies")
)
AFTER_RELATION = _set("of for in between to from on with about at")
INCIDENTAL = _set("me you us him them it screen please")  # "the address on screen" is still nobody's address
ENDS_OF_NOUN_PHRASE = PREPOSITIONS | VERBS | PERSONS | _set("and or please that you i there")
LONGEST_NOUN_PHRASE = 4

DUMMY_IT = re.compile(
    r"\bwhat (?:time|day|date|year) is it\b"
    r"|\b(?:is|was|will|would|isn't|can) it (?:be |ever |really |still |going to )*"
    r"(?:rain\w*|snow\w*|true|possible|cold|hot|warm|sunny|humid)\b"
    r"|\bit(?:'s| is| was| takes?| seems| costs?) (?:\w+ ){1,4}(?:to|that)\b"
    r"|\b(?:is|was|isn't) it (?:\w+ ){1,3}(?:to|that|if)\b|\bdoes it (?:take|cost)\b|\bit gets\b"
    r"|\bit(?:'s| is| was) (?:rain|snow|freez)ing\b|\b(?:like|love|hate|mind) it (?:when|if|that)\b"
)
CLOSINGS = (
    *("that's all", "that is all", "that was all", "that will be all", "that's it", "that was it", "that's everything"),
    *("that's fine", "that is fine", "that will be fine", "that will do", "all i need", "no thank", "goodbye"),
)
REACTIONS = _set("yes yeah yep no nope ok okay sure alright please")
OPENINGS: Mapping[str, frozenset[str]] = {
    "lead": _set("and but also or then so"),
    "reacts": REACTIONS - {"please"},
    "question_word": QUESTION_WORDS,
}
WORDINGS: Mapping[str, re.Pattern[str]] = {
    "about": re.compile(r"^(?:(?:ok|okay|and|but|so|yes|then|no) ){0,3}(?:what|how) about\b(?! (?:i|you|we) \w)"),
    "bare": re.compile(
        r"^(?:(?:and|but|so|ok|okay|no|then|exactly|please|really) )*(?:"
        r"(?:why|where|when|how|who|what|which)"
        r"(?: (?:not|so|exactly|then|come|else|next|now|again|first|many|much|long))?"
        r"|(?:anything|anyone|who|where|what) else|what do you mean|how do you mean|(?:go on|continue|elaborate)"
        r"|(?:can you |could you )?(?:tell me |say |show me |give me )?(?:some |a bit |a few )?more)(?: please)?$"
    ),
    "indifferent": re.compile(
        r"^(?:no )?(?:(?:i )?(?:do not|don't|dont) (?:really )?(?:care|mind|have (?:a|any) preference)"
        r"|(?:it )?(?:doesn't|does not|doesnt) (?:really )?matter|any(?: one)?(?: is fine| will do)?)(?: \w+)?$"
    ),
    "requesting": re.compile(
        r"\b(?:please|(?:i|we) (?:need|want)|i would like|i'd like|looking for|can i have|may i have|can i get)\b"
    ),
    "addressing": re.compile(
        r"\b(?:you|your|yours|someone|somebody|anyone|anybody)\b|\b(?:can|could|may|should|do|am) i\b"
        rf"|\bth(?:is|ese) (?:{'|'.join(sorted(SITUATION))})\b"
    ),
    "own": re.compile(r"\b(?:my|mine|our|i'm|i've)\b"),
    "superlative": re.compile(r"\b\w{3,}est\b|\bmost\b"),
}
DEFINING = tuple(
    f"{opening} "
    for opening in (
        *("what is", "what are", "what was", "what were", "who is", "who was", "who are", "what's", "who's", "whats"),
        *("what does", "what do", "tell me about", "tell me more about", "tell about"),
    )
)
MAX_DEFINED, MAX_JOINED = 5, 5
TITLE_END = re.compile(r" — | \(")  # a topic may be a page's title and section: "Ada Lovelace — Childhood"

JOINING = _set("and or also plus")
NOT_JOINED = VERBS | QUESTION_WORDS | _set("i we you he she they it")
NOT_COMPLEMENTS = INCIDENTAL | MARKS | {""} | _set("my her his their its the")
AFTER_ONE = GRAMMAR - {"of"} | {"", ","}
POINTER_KINDS: Mapping[str, str] = {
    **dict.fromkeys(PERSONS, "person"),
    **dict.fromkeys(IT, "it"),
    **dict.fromkeys(THESE, "these"),
    **dict.fromkeys(THAT, "that"),
    **dict.fromkeys(("one", "ones"), "one"),
    **dict.fromkeys(COMPARING, "other"),
    **dict.fromkeys(CONTINUING, "continuing"),
    "there": "there",
}
POINTING_AT_NAMED = _set("person it these that")
BEFORE_POINTING_THAT = GRAMMAR - NOT_POINTED_BY_THAT | {"", ","}
BEFORE_EXISTING_THERE = _set("is are was were be been will if think ,") | {""}
NOT_DEFINED = RELATIONS | VERBS | PREPOSITIONS | _set("best most there my your")
MAX_LOOKS = 8  # at places where a word may stand: a stem within longer words is soon given up
ENDINGS = (("ies", 5), ("ing", 7), ("ed", 6), ("es", 6), ("s", 5))  # each with the shortest word that it is cut from

UNRELATED = _set("unrelated unrelated_1")
COMPLETE = _set("closing statement")
CERTAIN = _set("person it these there about indifferent bare joins")
REQUESTS = _set("asks commands requesting about indifferent bare joins relation_bare relation_complete one other")
POINTERS = CERTAIN | _set("that one other pointer_own definite_known definite_new relation_bare lead superlative")
# In hundredths of log-odds: whole numbers add up to the same in any order.
BIAS = -32
WEIGHTS: Mapping[str, int] = {
    "addressing": -220,
    "asked": -68,
    "asks": 97,
    "commands": 36,
    "content_1": 80,
    "content_2": 115,
    "content_3": 19,
    "continuing": 107,
    "definite_complete": -45,
    "definite_known": -72,
    "definite_new": -35,
    "definite_unique": -40,
    "definition": -119,
    "indefinite": -93,
    "known_2": -94,
    "lead": 51,
    "name_new": -71,
    "new_1": 5,
    "no_pointer": -20,
    "no_topic": -54,
    "one": 102,
    "other": 134,
    "own": -59,
    "pointer_own": 56,
    "question_word": -47,
    "reacts": 170,
    "relation_bare": 112,
    "relation_complete": -83,
    "requesting": 47,
    "superlative": 19,
    "that": 129,
    "topic_all": -157,
    "topic_none": 71,
    "unrelated_1": 33,
    "unrelated_1_in_chat": -17,
    "unrelated_in_chat": -144,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What was said before, as far as a query's words are looked for in it: casefolded.

    topic: the announced subject of the conversation, mostly none; asks: whether the latest message is ours and asks.
    """

    text: str
    topic: str
    asks: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query's sentences, each a sequence of casefolded words and commas.

    line: all words, by single spaces; content: those that carry meaning; names: those of content that are names,
    going by capitals; asks: whether it has a question mark or opens like a question.
    """

    sentences: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    content: tuple[str, ...]
    names: tuple[str, ...]
    line: str
    asks: bool


def is_incomplete(message: str, recent_messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a message cannot be understood without the recent messages, oldest first. Never without any."""
    query = read_query(message)
    if not query.words or not recent_messages:
        return False
    found = evidence(query, read_said(recent_messages))
    if not COMPLETE.isdisjoint(found):
        return False
    return not CERTAIN.isdisjoint(found) or BIAS + sum(WEIGHTS.get(name, 0) for name in found) > 0


def read_said(recent_messages: Sequence[Mapping[str, Any]]) -> Said:
    """What the first message and the last six said, each cut to 300 characters. A "topic" is no message."""
    spoken = [message for message in recent_messages if message.get("role") != "topic"]
    topic = next((_content(message) for message in recent_messages if message.get("role") == "topic"), "")
    recent = (*spoken[:1], *spoken[1:][-RECENT:])
    by_assistant = bool(spoken) and spoken[-1].get("role") == "assistant"
    return Said(
        text=" ".join((topic[:MAX_SAID], *(_content(message)[:MAX_SAID] for message in recent))).casefold(),
        topic=TITLE_END.split(topic[:MAX_SAID], maxsplit=1)[0].casefold(),
        asks=by_assistant and "?" in _content(spoken[-1])[-MAX_CLOSING_QUESTION:],
    )


def _content(message: Mapping[str, Any]) -> str:
    return str(message.get("content") or "")


def read_query(message: str) -> Query:
    """The first 600 characters and 60 words of a message, without mentions, links and code."""
    plain = without_mentions(message[: 2 * MAX_LENGTH])[:MAX_LENGTH]
    content, names = [], []
    sentences: list[list[str]] = [[]]
    for token in TOKEN.findall(plain.replace("’", "'"))[:MAX_WORDS]:
        word = token.casefold()
        if word in ENDS:
            sentences.append([])
            continue
        if len(word) > 1 and word not in GRAMMAR:
            content.append(word)
            if sentences[-1] and token[0].isupper():
                names.append(word)
        sentences[-1].append(word)
    words = tuple(word for sentence in sentences for word in sentence if word not in MARKS)
    asks = "?" in plain or (bool(words) and (words[0] in QUESTION_WORDS or words[0] in AUXILIARIES))
    said = tuple(tuple(sentence) for sentence in sentences if sentence)
    return Query(said, words, tuple(content), tuple(names), " ".join(words), asks)


def without_mentions(text: str) -> str:
    """A text without its mentions, custom emoji, links and code."""
    has_others = "<" in text or "http" in text or "```" in text
    return NOT_WORDS.sub(" ", text) if has_others else text


def evidence(query: Query, said: Said) -> frozenset[str]:
    """The names of all that speaks for or against a query being incomplete; CERTAIN and WEIGHTS say which way."""
    found = {*wording(query), *links(query, said), *situation(query, said)}
    earlier = 0
    for sentence in query.sentences:
        found.update(pointing(sentence, query.names, introduced=earlier > 1))
        found.update(noun_phrases(sentence, said))
        earlier = sum(map(query.content.__contains__, sentence))
    if "it" in found and DUMMY_IT.search(query.line):
        found.discard("it")
    if "no_topic" in found:
        found.update(f"{name}_in_chat" for name in UNRELATED & found)
    if found.isdisjoint(REQUESTS):
        found.add("statement")
    if found.isdisjoint(POINTERS):
        found.add("no_pointer")
        if is_definition(query):
            found.add("definition")
    else:
        found.discard("addressing")  # "can you explain that?"
    return frozenset(found)


def pointing(sentence: Sequence[str], names: Sequence[str], *, introduced: bool) -> Iterator[str]:
    """Words of a sentence that point at something.

    introduced: whether an earlier sentence of the query had two words of meaning, and so may hold what is pointed at.
    So may a name before the pronoun: "Did Ada sell her house?".
    """
    before, named = "", False
    for word, after in zip(sentence, (*sentence[1:], ""), strict=True):
        if (kind := POINTER_KINDS.get(word)) and _points(kind, before, after):
            is_own = kind in POINTING_AT_NAMED and (introduced or (named and kind == "person"))
            yield "pointer_own" if is_own else kind
        named = named or word in names
        before = word


def _points(kind: str, before: str, after: str) -> bool:
    """Whether a word of this kind points between its neighbours.

    "These" does not before a time ("this week") or a part of the conversation itself ("this channel"),
    "that" not between a noun and more ("a place that sells tea"), "there" not in
    "is there", "one" not before a noun ("one ticket").
    """
    match kind:
        case "these":
            return after not in TIMES | SITUATION
        case "that":
            return before in BEFORE_POINTING_THAT or (not after and before not in NOT_POINTED_BY_THAT)
        case "there":
            return before not in BEFORE_EXISTING_THERE and after not in VERBS
        case "one":
            return before not in ("", "of") and after in AFTER_ONE
        case _:
            return True


def noun_phrases(sentence: Sequence[str], said: Said) -> Iterator[str]:
    """Nouns of a sentence that lack what they are of, and such as have it.

    "The address", "the band" are definite and bare unless "of ...", "in ..." or a clause follows; "price", "author" are
    always of something, given by what follows ("of tea") or by an owner before ("Ada's", "your").
    """
    tokens = (*sentence, "", "")
    for index, word in enumerate(sentence):
        if word == "the":
            yield _definite(sentence[index + 1 : index + 2 + LONGEST_NOUN_PHRASE], said)
        elif word in ("a", "an"):
            yield "indefinite"
        elif word in RELATIONS:
            if _has_complement(tokens[index + 1], tokens[index + 2]):
                yield "relation_complete"
            elif not any(
                before in OWNERS or (before.endswith("'s") and before not in VERBS)
                for before in sentence[max(0, index - 3) : index]
            ):
                yield "relation_bare"


def _definite(following: Sequence[str], said: Said) -> str:
    """What a "the" before these words makes: the sun is one of a kind, and needs nothing."""
    end = next((i for i, word in enumerate(following) if word in ENDS_OF_NOUN_PHRASE), len(following))
    phrase, rest = following[:end], (*following[end:], "", "")
    if rest[0] in ("that", "you", "i") or (rest[0] in PREPOSITIONS and rest[1] and rest[1] not in INCIDENTAL):
        return "definite_complete"
    if not phrase or not ONE_OF_A_KIND.isdisjoint(phrase):
        return "definite_unique"
    return "definite_known" if is_said(phrase[-1], said.text) else "definite_new"


def _has_complement(after: str, next_after: str) -> bool:
    return after in AFTER_RELATION and next_after not in NOT_COMPLEMENTS


def wording(query: Query) -> Iterator[str]:
    """How a query is put: its first word, what it asks for, whether it only closes a conversation."""
    yield from (name for name, firsts in OPENINGS.items() if query.words[0] in firsts)
    yield from (name for name, pattern in WORDINGS.items() if pattern.search(query.line))
    if REACTIONS.issuperset(query.words) or any(closing in query.line for closing in CLOSINGS):
        yield "closing"
    if query.asks:
        yield "asks"
    if not COMMANDS.isdisjoint(query.words):
        yield "commands"
    if _joins(query.words):
        yield "joins"


def _joins(words: Sequence[str]) -> bool:
    """Whether words only add to what was said: "and tomorrow", "or in Osaka"."""
    return 1 < len(words) <= MAX_JOINED and words[0] in JOINING and NOT_JOINED.isdisjoint(words)


def is_definition(query: Query) -> bool:
    """Whether a query asks what something is that it names: "what is a quokka", "what does sonder mean"."""
    line = query.line.removesuffix(" mean")
    defining = next((opening for opening in DEFINING if line.startswith(opening)), None)
    if defining is None:
        return False
    defined = line[len(defining) :].split()
    return 0 < len(defined) <= MAX_DEFINED and NOT_DEFINED.isdisjoint(defined)


def links(query: Query, said: Said) -> Iterator[str]:
    """What a query shares with what was said, and what it brings along."""
    count = len(query.content)
    known = sum(is_said(word, said.text) for word in query.content)
    if 1 <= count <= 3:
        yield f"content_{count}"
    if count - known == 1:
        yield "new_1"
    if known > 1:
        yield "known_2"
    if count and not known:
        yield "unrelated" if count > 1 else "unrelated_1"
    if not all(is_said(name, said.text) for name in query.names):
        yield "name_new"


def situation(query: Query, said: Said) -> Iterator[str]:
    """What a query comes after: an answer, a question of ours, an announced topic that it names or does not."""
    if said.asks:
        yield "asked"
    if not said.topic:
        yield "no_topic"
    if topic := [word for word in TOKEN.findall(said.topic) if word not in GRAMMAR]:
        named = sum(is_said(word, query.line) for word in topic)
        if named in (0, len(topic)):
            yield "topic_all" if named else "topic_none"


def is_said(word: str, text: str) -> bool:
    """Whether a word, or another form of it, stands in a casefolded text."""
    stem = _stem(word)
    at = -1
    for _ in range(MAX_LOOKS):
        at = text.find(stem, at + 1)
        if at <= 0 or not text[at - 1].isalnum():
            return at >= 0
    return False


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for ending, shortest in ENDINGS:
        if word.endswith(ending) and len(word) >= shortest:
            return word[: -len(ending)]
    return word
