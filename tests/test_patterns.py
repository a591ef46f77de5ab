"""Every regular expression of the product takes hostile text in linear time, as it is called there.

The texts are made from the pattern itself: what it begins with, and what it repeats, again and again up to the length
of a message, and then something that does not fit.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import product
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from agents.mcp_servers import _names
from agents.mcp_session import MAX_LINE, MAX_LISTED, MAX_PARTS, read_message
from agents.picking import _shapes, called
from agents.run import MAX_ANSWER_CHARACTERS, MAX_OUTPUT_CHARACTERS
from agents.thoughts import without_bare_thoughts
from channel_conversation import ChannelConversation
from discord_io.made_files import with_files
from discord_io.message_records import MAX_NAMED
from discord_io.who_may_read import is_read_by_all_of, is_seen_by_all_of
from miniapps.trip_commands import plain
from miniapps.trips import MAX_STOPS
from miniapps.venues import MAX_NAME, MAX_QUERY, Venue, is_known, matching
from offers.offer_channels import OfferChannel
from offers.offer_limits import OfferLimits
from offers.pasted_errors import LIKELY, pastes_error
from offers.triggers import AskedAgain, PastedError
from persistence.search import _spread
from state.proactive import SessionState
from state.prompts import Ask, AwaitingType
from state.resolution import resolve
from tests.discord_io.test_who_may_read import ALL, VIEW, channels
from tests.support.clock import NOON
from tests.support.people import ANNA, BOT, CHANNEL, GUILD, said
from tests.test_layers import FILES, module
from understanding.cancel import MAX_LENGTH as MAX_REPLY
from understanding.name_calls import _read_name
from understanding.selection import MAX_LENGTH as MAX_CHOICE
from understanding.selection import MAX_NAMED as MAX_OPTIONS_NAMED
from understanding.selection import choose
from understanding.shared_context import shared_context
from understanding.stopping import MAX_LENGTH as MAX_STOP
from understanding.stopping import read_stop

pytestmark = pytest.mark.slow

LENGTH = 4_000  # characters of the longest message
TRIED = 500  # characters at which the worst texts of a pattern are found
MOST_SECONDS = 0.005
MOST_GROWTH = 3.0  # from half the length to all of it: 2 is linear, 4 quadratic
FEW = 8  # times that something is repeated cost little
LEAST_SECONDS = 0.0005  # what is faster need not be compared
ATTEMPTS = 20  # whatever else runs on the machine makes some of them slower
# What takes so long where the bounds above hold, and longer on a processor that is slower, or shared with others.
USUAL, USUAL_TEXT, USUAL_SECONDS = re.compile("(?:(a)|(b))*c"), "ab" * 5_000, 0.0003
METHODS = ("search", "match", "fullmatch", "sub", "subn", "finditer", "findall", "split")
START = "understanding.name_calls, the start"
# Neither is in the bot that is in service.
APART = ("bench", "evals", "playground")
# What every text goes through before these see it, and how they are called where no name of theirs tells.
PREPARED: dict[str, Callable[[str], str]] = {
    "miniapps.trip_commands.PATTERNS": plain,
    "understanding.stopping.ANY_STOP": lambda text: text[:MAX_STOP],
    "understanding.shared_context.SENTENCE_START": lambda text: text[-20:],
}
CALLED: dict[str, str] = {
    "miniapps.trip_commands.PATTERNS": "fullmatch",
    "state.resolution.METADATA_PATTERNS": "match",
    START: "match",
}
# What becomes three and eighteen characters where text is folded.
HALF, LIGATURE = "\N{VULGAR FRACTION ONE HALF}", "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
# One of each class of characters that patterns tell apart.
CHARACTERS = " a1A.,!-_'\n\"/:é<@`あ"
PAIRS = ("a ", "1 ", ". ", "a.", "a,", "a-", " \n", "a1", "aing ", "a\n", "<@", "1.", "a:")


class Use(NamedTuple):
    """A pattern of the product, and one way in which it is called."""

    name: str
    pattern: re.Pattern[Any]
    method: str

    def __call__(self, text: str) -> None:
        given = text if isinstance(self.pattern.pattern, str) else text.encode()
        call = getattr(self.pattern, self.method)
        found = call("", given) if self.method in ("sub", "subn") and isinstance(given, str) else call(given)
        if self.method == "finditer":
            list(found)

    def prepared(self, text: str) -> str:
        return PREPARED.get(self.name.partition("[")[0], str)(text)


def patterns_in(name: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns that a value is or holds."""
    match value:
        case re.Pattern():
            yield name, value
        case dict():
            for key, item in value.items():
                yield from patterns_in(f"{name}[{str(key)[:20]!r}]", item)
        case list() | tuple() | set() | frozenset():
            for number, item in enumerate(value):
                yield from patterns_in(f"{name}[{number}]", item)


def patterns_of(loaded: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in vars(loaded).items():
        if isinstance(value, type) and value.__module__ == loaded.__name__:
            for inner, held in vars(value).items():
                yield from patterns_in(f"{loaded.__name__}.{name}.{inner}", held)
        elif not name.startswith("__"):
            yield from patterns_in(f"{loaded.__name__}.{name}", value)


def uses() -> list[Use]:
    methods: dict[str, set[str]] = {}
    found: dict[tuple[object, int], tuple[str, re.Pattern[Any]]] = {}
    inline: list[Use] = []
    for path in FILES:
        if (here := module(path)).split(".")[0] in APART:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Attribute) and node.attr in METHODS):
                continue
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            methods.setdefault(owner, set()).add(node.attr)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), method), [ast.Constant(str() as text), *_]):
                    if method in METHODS:
                        inline.append(Use(f"{here}, line {node.lineno}", re.compile(text), method))
        for name, pattern in patterns_of(importlib.import_module(here)):
            found.setdefault((pattern.pattern, pattern.flags), (name, pattern))
    bot = _read_name("parley bot")
    assert bot
    made = [(START, bot.start), ("understanding.name_calls, the end", bot.end)]
    made += patterns_in("picking._shapes", _shapes(frozenset({"docs", "sql", "it", "house rules"})))
    named = [*found.values(), *made]
    ways = {name: methods.get(name.partition("[")[0].rpartition(".")[2], {"search"}) for name, _ in named}
    ways |= {name: {CALLED[base]} for name, _ in named if (base := name.partition("[")[0]) in CALLED}
    return inline + [Use(name, pattern, method) for name, pattern in named for method in sorted(ways[name])]


class Sampler:
    """A text that a pattern fits, and what of it is repeated: (what comes before, what is repeated).

    turn: which of the alternatives are taken.
    """

    def __init__(self, pattern: re.Pattern[Any], turn: int) -> None:
        self._turn = turn
        self._groups: dict[int | None, str] = {}
        self.repeated: set[tuple[str, str]] = set()
        source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
        self.text = self._all(_parser.parse(source, pattern.flags & ~re.ASCII), "")

    def _all(self, items: Iterable[tuple[Any, Any]], before: str) -> str:
        text = ""
        for kind, given in items:
            text += self._one(kind, given, before + text)
        return text

    def _one(self, kind: Any, given: Any, before: str) -> str:
        text = ""  # what looks ahead or behind takes nothing
        match kind:
            case op.LITERAL:
                text = chr(given)
            case op.NOT_LITERAL | op.ANY | op.IN:
                fit = fitting([(op.NEGATE, None), (op.LITERAL, given)] if kind is op.NOT_LITERAL else given or [])
                text = fit[self._turn % len(fit)]
            case op.BRANCH:
                ways = [self._all(way, before) for way in given[1]]
                text = ways[self._turn % len(ways)]
            case op.SUBPATTERN:
                text = self._groups[given[0]] = self._all(given[3], before)
            case op.ATOMIC_GROUP:
                text = self._all(given, before)
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                text = self._repeat(given, before)
            case op.GROUPREF:
                text = self._groups.get(given, "")
        return text

    def _repeat(self, given: tuple[int, int, Any], before: str) -> str:
        least, most, item = given
        text = self._all(item, before)
        if text and most > FEW:
            self.repeated.add((before, text))
        return text * max(least, 1 - self._turn % 2)


def fitting(members: list[tuple[Any, Any]]) -> list[str]:
    """Characters that fit a set: of the usual ones all, else its own."""
    classes = {op.CATEGORY_WORD: r"\w", op.CATEGORY_SPACE: r"\s", op.CATEGORY_DIGIT: r"\d"}
    classes |= {op.CATEGORY_NOT_WORD: r"\W", op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_NOT_DIGIT: r"\D"}
    is_negated = not members or members[0][0] is op.NEGATE  # without members: any character

    def has(character: str) -> bool:
        return any(
            (kind is op.LITERAL and given == ord(character))
            or (kind is op.RANGE and given[0] <= ord(character) <= given[1])
            or (kind is op.CATEGORY and re.match(classes[given], character) is not None)
            for kind, given in members
        )

    own = [chr(given if kind is op.LITERAL else given[0]) for kind, given in members if kind in (op.LITERAL, op.RANGE)]
    return [c for c in CHARACTERS if has(c) is not is_negated] + ([] if is_negated else own) or ["a"]


def hostile(pattern: re.Pattern[Any]) -> set[tuple[str, str]]:
    """Texts in two parts: a beginning, and what is repeated behind it."""
    texts = {(before, part) for before in ("", " ", "a") for part in (*CHARACTERS, *PAIRS)}
    for turn in range(4):
        sampler = Sampler(pattern, turn)
        for before, part in sampler.repeated:
            texts |= {(before, part), ("", part), ("", before + part), ("", before + part * 3), (before, part + " ")}
        whole = sampler.text
        for end in {*range(1, min(len(whole), 12) + 1), len(whole) // 2, len(whole) - 1, len(whole)} - {0, -1}:
            texts |= {("", whole[:end]), ("", whole[:end] + " ")}
    return texts


def written(text: tuple[str, str], length: int) -> str:
    beginning, part = text
    return (beginning + part * (length // len(part) + 1))[:length] + "\0!"


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Ends what takes more of the processor's time than that with TimeoutError."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def cost(use: Use, text: str, runs: int = 1) -> float:
    """The processor's seconds for a text, the least of some runs; those of 100 ms where it takes more."""
    text, least = use.prepared(text), 0.1
    for _ in range(runs):
        start = time.thread_time()
        try:
            with bounded(0.1):
                use(text)
        except TimeoutError:
            return 0.1
        least = min(least, time.thread_time() - start)
    return least


def fault(use: Use) -> str:
    """What is wrong with a pattern, in words; empty: nothing."""
    tried = {text: cost(use, written(text, TRIED)) for text in hostile(use.pattern)}
    for text in sorted(tried, key=tried.__getitem__, reverse=True)[:3]:
        whole = half = float("inf")
        for _ in range(ATTEMPTS):
            whole = min(whole, cost(use, written(text, LENGTH), runs=5))
            half = min(half, cost(use, written(text, LENGTH // 2), runs=5))
            if (whole <= MOST_SECONDS or whole <= most_seconds()) and (
                whole <= LEAST_SECONDS or whole <= MOST_GROWTH * half
            ):
                break
        else:
            return f"{use.name}.{use.method}: {1000 * whole:.2f} ms, {whole / half:.1f} times the half, of {text!r}"
    return ""


def least(work: Callable[[], object]) -> float:
    """The processor's seconds, the least of some runs."""

    def seconds() -> float:
        start = time.thread_time()
        work()
        return time.thread_time() - start

    return min(seconds() for _ in range(20))


def most_seconds() -> float:
    """As many as MOST_SECONDS where the processor is as fast as usual now."""
    return MOST_SECONDS * max(1.0, least(lambda: USUAL.match(USUAL_TEXT)) / USUAL_SECONDS)


def test_no_pattern_takes_hostile_text_ill() -> None:
    every = uses()
    assert len(every) > 200
    assert [words for use in every if (words := fault(use))] == []


@pytest.mark.parametrize("part", ["1-2 (", "1 2 ", "a: ", HALF, LIGATURE])
@pytest.mark.parametrize("option", ["1-2 (1-2 (", "1-2 (" * 20, HALF * 100, f"{HALF};" * 50, LIGATURE * 100])
def test_no_reply_is_long_compared_with_options(option: str, part: str) -> None:
    """Whose names are alike in all their parts, and as long as Discord lets a label be."""
    options, reply = [option] * 25, (part * MAX_CHOICE)[:MAX_CHOICE]
    assert least(lambda: choose(reply, options)) < most_seconds()


@pytest.mark.parametrize("part", ["\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "u ", "no ", "i, "])
def test_no_reply_is_long_looked_through_for_what_it_says_to_a_yes_or_no_question(part: str) -> None:
    """By its polite words, of which the first are one letter each: twice as many when its case is folded."""
    reply, ask = (part * MAX_REPLY)[:MAX_REPLY], Ask(AwaitingType.CONFIRMATION)
    assert least(lambda: resolve(reply, ask, "Shall I add it?")) < most_seconds() / 2


@pytest.mark.parametrize("part", ["a\n\n", "it's\n", "try it, ", "it's great for it. ", "you should, a "])
def test_no_reply_is_long_looked_through_for_a_note(part: str) -> None:
    """At the start of each of its clauses, by words that may come before a note, several of them."""
    reply, ask = (part * LENGTH)[:LENGTH], Ask(AwaitingType.METADATA)
    assert least(lambda: resolve(reply, ask)) < most_seconds() / 2  # with each message, once or twice


def test_no_burst_is_long_looked_through_for_whether_it_only_asks_to_wait() -> None:
    """Which a person says in five messages, joined to one answer."""
    burst, ask = ("ok, " * LENGTH)[: 5 * LENGTH], Ask(AwaitingType.INPUT)
    assert least(lambda: resolve(burst, ask)) < most_seconds() / 3


def test_no_reply_is_long_compared_with_options_for_words_that_are_misspelled() -> None:
    """All of which begin alike, in the options and in the reply."""
    words = ["s" + "".join(letters) for letters in product("abcdefgh", repeat=4)]
    options = [" ".join(words[at : at + 16]) for at in range(0, 25 * 16, 16)]
    reply = " ".join(f"{word}x" for word in words[1_000:1_085])
    assert len(reply) <= MAX_CHOICE
    assert least(lambda: choose(reply, options)) < most_seconds() / 2  # with each message
    assert choose(words[20], options) == 1
    assert choose("sabcdefghijx", ["sabcdefghij", *options]) == 0


@pytest.mark.parametrize("part", ["1-2 (", "1 2 ", f"{HALF};"])
@pytest.mark.parametrize("length", [MAX_OPTIONS_NAMED // MAX_STOPS, MAX_NAME])
def test_no_reply_is_long_compared_with_the_places_on_a_list(length: int, part: str) -> None:
    """As long as their names may be, or as the longest of which one can be chosen."""
    places = [{"name": (part * MAX_NAME)[:length], "district": "", "city": "", "id": str(n)} for n in range(MAX_STOPS)]
    assert least(lambda: choose(("3 " * MAX_QUERY)[:MAX_QUERY], places)) < 2.5 * most_seconds()  # only to remove one


@pytest.mark.parametrize("part", ["hi,,,", "yo, ", "ask docs, docs, ", "… ", "go and,,,"])
def test_no_message_is_long_searched_for_calls_of_agents(part: str) -> None:
    """By all the phrases that call one."""
    assert least(lambda: called((part * LENGTH)[:LENGTH], ["docs", "sql", "it", "house-rules"])) < most_seconds()


@pytest.mark.parametrize("space", [" ", "\N{GREEK YPOGEGRAMMENI}"])
@pytest.mark.parametrize("count", [7, 14])
def test_no_message_is_long_compared_with_what_stops_the_bot(count: int, space: str) -> None:
    """Of words that say so in two languages. The second space is a letter until the text is folded."""
    assert least(lambda: read_stop(space.join(["тихо"] * count + ["agora"]))) < most_seconds()


@pytest.mark.parametrize("part", ["\n", ".", "/", "1:11:11 ", "_."])
def test_no_message_is_long_looked_through_for_the_errors_of_programs(part: str) -> None:
    """With all the key words that have their pattern tried."""
    text = (" ".join(LIKELY) + part * LENGTH)[:LENGTH]
    assert not pastes_error(text)
    assert least(lambda: pastes_error(text)) < most_seconds() / 2  # with each message


@pytest.mark.parametrize("part", ["```\n", "````\n```a\n", "|\n", "|-\n\n", "\n"])
def test_no_answer_is_long_looked_through_for_files(part: str) -> None:
    answer = part * (MAX_ANSWER_CHARACTERS // len(part))
    assert least(lambda: with_files(answer)) < most_seconds()


def test_no_pattern_is_made_of_how_far_code_in_an_answer_is_indented() -> None:
    """Which differs with each piece of the answer, so that it would be made anew each time."""
    answer = "- ```\n" + " " * (MAX_ANSWER_CHARACTERS - 100) + "x\n```\n"

    def show() -> None:
        re.purge()
        with_files(answer)

    assert least(show) < most_seconds() / 2


@pytest.mark.parametrize("before", ["", "`" * 30_000])
@pytest.mark.parametrize("part", ["<think>a</think>`", "<think></think>", "``<think>`", "</think>"])
def test_no_thoughts_of_a_model_are_long_told_from_its_words_however_many_tags_there_are(
    part: str, before: str
) -> None:
    """In the most that is read of one answer, which may come as one piece; also behind what may be quoted code."""
    count = (MAX_OUTPUT_CHARACTERS - len(before)) // len(part)
    whole, half = before + part * count, before[::2] + part * (count // 2)
    seconds = least(lambda: without_bare_thoughts(whole))
    assert seconds < 2.5 * most_seconds()
    assert seconds < MOST_GROWTH * least(lambda: without_bare_thoughts(half))


def test_no_tools_are_long_named_however_alike_their_names_are() -> None:
    tools = [("server", "!" * 64)] * MAX_LISTED
    assert least(lambda: _names(tools, ())) < 10 * most_seconds()  # once a listing
    assert len(set(_names(tools, ()))) == MAX_LISTED


def test_no_message_of_a_server_is_long_looked_through_for_its_parts() -> None:
    message = "[" * (MAX_PARTS + 1) + '""' * ((MAX_LINE - MAX_PARTS) // 2)

    def read() -> None:
        with suppress(ValueError):  # it is refused
            read_message(message)

    assert least(read) < 10 * most_seconds()  # the longest line that a process may write


@pytest.mark.parametrize("text", ["a" + "\N{COMBINING ACUTE ACCENT}\N{COMBINING CEDILLA}" * 6_000, LIGATURE * 12_000])
def test_no_text_is_long_made_ready_to_be_searched(text: str) -> None:
    assert least(lambda: _spread(text)) < 4 * most_seconds()  # in a thread of its own, which lets nothing else run


@pytest.mark.parametrize(("name", "part"), [("1-1", "\n1-1"), ("1-1", ". 1-1"), ("xyz", "in A’"), ("xyz", "to A ")])
def test_no_conversation_is_long_looked_through_for_what_was_mentioned_last(name: str, part: str) -> None:
    """By a name that begins each sentence, where it may be another word, or by places of which none is known."""
    talk = [said(ANNA, (part * 2_000)[:2_000], author=name, message_id=number) for number in range(1, 51)]
    assert least(lambda: shared_context(talk, bot_id=BOT, bot_name="Parley")) < 5 * most_seconds()  # with each question


@pytest.mark.parametrize("people", [1, 50])
@pytest.mark.parametrize("part", ["\N{GREEK SMALL LETTER IOTA WITH DIALYTIKA AND TONOS} ", "a, "])
def test_no_edit_is_long_applied_to_a_conversation(part: str, people: int) -> None:
    """Whose messages are read again for whom they call, of which Discord takes five edits at once from each person."""
    talk = [said(100 + n % people, (part * 400)[:400], author=f"n{n % people}", message_id=n) for n in range(1, 400)]
    conversation = ChannelConversation(CHANNEL, NOON, NOON, messages=talk)
    edited = iter([replace(talk[200], content=f"{number}") for number in range(20)])

    def edit() -> None:
        conversation.revise(next(edited))
        assert conversation.engagement.number == len(talk)

    assert least(edit) < 2 * most_seconds()


def test_no_conversation_is_long_looked_through_when_somebody_is_forgotten_who_is_not_in_it() -> None:
    """As all conversations of all channels are, at once."""
    talk = [said(100 + n % 20, "a, b", author=f"n{n % 20}", message_id=n) for n in range(1, 500)]
    conversation = ChannelConversation(CHANNEL, NOON, NOON, messages=talk)
    assert least(lambda: conversation.forget(ANNA)) < most_seconds() / 5


def test_of_many_long_questions_it_is_not_long_found_out_which_was_asked_twice() -> None:
    """By one person who never gets an answer, each in other words."""
    channel = OfferChannel(CHANNEL, GUILD, SessionState(), OfferLimits())
    for number in range(1, 50):
        text = " ".join(f"{chr(97 + place * number % 26)}{number * place}" for place in range(330))
        at = NOON + timedelta(seconds=15 * number)
        channel.recent.heard(said(ANNA, f"{text}?"[-2_000:], at, message_id=number), at)
    now = NOON + timedelta(minutes=14)
    assert least(lambda: AskedAgain().due(channel, now)) < 10 * most_seconds()  # half a minute after each question


def test_messages_that_paste_no_error_are_not_looked_through_when_one_has_waited_long_enough() -> None:
    """Each of one person, which nobody has answered, and nearly looks like an error."""
    channel = OfferChannel(CHANNEL, GUILD, SessionState(), OfferLimits())
    for number in range(1, 50):
        at = NOON + timedelta(seconds=15 * number)
        message = said(ANNA, ("0:00:00\t" * 400)[:1_980] + "error ERROR fatal", at, message_id=number)
        channel.recent.heard(message, at)
        channel.look_for(PastedError.id, number, PastedError().looks(message))
    now = NOON + timedelta(minutes=14)
    assert least(lambda: PastedError().due(channel, now)) < most_seconds()


def test_no_query_is_long_compared_with_the_places_that_are_known() -> None:
    assert least(lambda: is_known(LIGATURE * MAX_QUERY)) < most_seconds()


@pytest.mark.parametrize("part", ["abcd ", LIGATURE, HALF])
def test_no_query_is_long_compared_with_the_places_on_a_list(part: str) -> None:
    """Which a server named."""
    name = (part * MAX_NAME)[:MAX_NAME]
    venues = [Venue(str(number), name, name, name) for number in range(MAX_STOPS)]
    assert least(lambda: matching((LIGATURE * MAX_QUERY)[:MAX_QUERY], venues)) < 5 * most_seconds()
    assert least(lambda: matching(name, venues)) < 5 * most_seconds()


def test_it_is_not_long_found_out_who_reads_a_channel_however_many_roles_and_overwrites_there_are() -> None:
    """As many as Discord takes: 250 roles, and 1,000 overwrites in each channel."""
    roles, people = [number << 22 for number in range(1, 250)], [number << 22 for number in range(1_000, 1_750)]
    granted = {role: (0, VIEW, ALL, ALL & ~VIEW)[number % 4] for number, role in enumerate(roles)}
    here = {one: ((VIEW, 0), (0, VIEW), (0, 0))[number % 3] for number, one in enumerate((*roles, *people))}
    there = dict.fromkeys((GUILD, *roles, *people), (ALL, 0))
    seen, read = channels(here, there, roles=granted, kind=2)
    assert is_read_by_all_of(read, seen)
    assert MAX_NAMED * least(lambda: is_seen_by_all_of(read, seen)) < most_seconds()
    assert least(lambda: is_read_by_all_of(read, seen)) < 2 * most_seconds()  # for three permissions
