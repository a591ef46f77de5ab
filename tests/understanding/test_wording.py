"""understanding/wording.py: what a text alone tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understanding.wording import CUES, MAX_WORDS, TALK_OF, Wording, read, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Is it FAR?", ["is", "it", "far"]),
        ("what’s up, don't", ["what's", "up", "don't"]),
        ("<@12> and <@!13>, see <#14> <:wave:15> <a:wave:16>", ["and", "see"]),
        ("look: https://cdn.example/a?b=c and go", ["look", "and", "go"]),
        ("run ```print('hello')\nexit()``` now", ["run", "now"]),
        ("snake_case 3x 日本 Straße", ["snake", "case", "3x", "日本", "strasse"]),
        ("1 < 2 and 3 > 2", ["1", "2", "and", "3", "2"]),
        ("", []),
        ("... !!", []),
    ],
)
def test_words_come_without_mentions_links_and_code(text: str, words: list[str]) -> None:
    assert words_of(text) == words
    assert read(text).words == set(words)
    assert read(text).count == len(words)


@pytest.mark.parametrize(
    ("text", "asks", "ends_asking", "exclaims"),
    [
        ("is it far?", True, True, False),
        ("is it far?  ", True, True, False),
        ("is it? I doubt it!", True, False, True),
        ("it is far", False, False, False),
        ("see https://cdn.example/?page=1", False, False, False),
        ("see `a?`", True, False, False),
        ("```\nwhy?\n```", False, False, False),
        ("why? <@12>", True, True, False),
    ],
)
def test_question_marks_count_where_people_put_them(text: str, asks: bool, ends_asking: bool, exclaims: bool) -> None:
    wording = read(text)
    assert (wording.asks, wording.ends_asking, wording.exclaims) == (asks, ends_asking, exclaims)


@pytest.mark.parametrize(
    ("text", "cues", "first"),
    [
        ("Why do you ask", {"question", "asking", "you"}, {"question"}),
        ("thanks, I got it", {"thanks", "me", "report", "pointing"}, {"thanks"}),
        ("zebra crossing", set(), set()),
        ("", set(), set()),
        ("<@12> hello", {"greeting"}, {"greeting"}),
    ],
)
def test_common_words_are_cues(text: str, cues: set[str], first: set[str]) -> None:
    assert (set(read(text).cues), set(read(text).first)) == (cues, first)


@pytest.mark.parametrize(("cue", "word"), [(cue, word) for cue, words in CUES.items() for word in words.split()])
def test_every_word_of_a_cue_is_read_as_that_cue(cue: str, word: str) -> None:
    assert cue in read(word.upper()).first


def test_rare_words_are_long_and_not_common() -> None:
    assert read("The kernel of my old laptop would not boot").rare == {"kernel", "laptop", "boot"}


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("!help", True),
        ("  ?rank me", True),
        ("&&play song", True),
        ("$5 is enough", False),
        ("...and then", False),
        (".net is fine", False),
        ("-v shows the version", False),
        ("++i", False),
        ("- a point of a list", False),
        ("-_-", False),
        ("well !help", False),
        ("!", False),
        ("", False),
    ],
)
def test_commands_to_other_bots_are_known_by_their_mark(text: str, is_command: bool) -> None:
    assert read(text).is_command is is_command


def test_marks_links_and_capitals_are_counted() -> None:
    wording = read("Ben: YES, no, see https://cdn.example/A,B:C")
    assert (wording.commas, wording.colons, wording.capitals, wording.has_link) == (2, 1, 4, True)
    assert wording.length == len("Ben: YES, no, see")


def test_only_the_first_words_are_kept_but_all_are_counted() -> None:
    wording = read(" ".join(f"word{i}" for i in range(500)))
    assert (len(wording.words), wording.count) == (MAX_WORDS, 500)
    assert "word59" in wording.words
    assert "word60" not in wording.words


@pytest.mark.parametrize("piece", ["<", "<@", "```", "http://", "?", "'", "a'", "! ", "<a:", "\n", "é", "\u0301"])
def test_a_text_made_to_be_slow_to_read_is_not(piece: str) -> None:
    """It would not come to an end if a search began anew at every character."""
    assert isinstance(read(piece * 20_000), Wording)
    assert isinstance(read("x" + piece * 20_000 + "x"), Wording)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    wording = read(text)
    assert wording.rare <= wording.words
    assert wording.first <= wording.cues
    assert wording.capitals <= len(text)
    assert wording.asks or not wording.ends_asking


# Closed classes in several languages


@pytest.mark.parametrize(
    ("text", "talk"),
    [
        ("Gracias, genial", {"thanks", "ok"}),
        ("Kannst du helfen", {"can_you", "verb", "you"}),
        ("what about K2", {"about", "ask"}),
        ("anyone up for lunch", {"room"}),
        ("хорошо, спасибо", {"thanks"}),
        ("zebra crossing", set()),
        ("", set()),
    ],
)
def test_words_and_pairs_of_words_are_of_classes(text: str, talk: set[str]) -> None:
    assert read(text).talk == talk


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("make it shorter", {"make"}),
        ("ok so make it shorter", {"make"}),
        ("lol can you make it shorter", {"can_you", "verb"}),
        ("what about K2", {"about", "ask"}),
        ("we make it shorter", {"we"}),
        ("ok", {"ok", "yes"}),
        ("zebra, make it", set()),
        ("", set()),
    ],
)
def test_the_lead_is_what_a_message_begins_with_behind_what_only_fills(text: str, lead: set[str]) -> None:
    assert read(text).lead == lead


def test_tokens_are_the_first_words_in_their_order() -> None:
    assert read("One, TWO <@12> three").tokens == ["one", "two", "three"]
    assert len(read("word " * 500).tokens) == MAX_WORDS


def test_every_word_and_pair_of_the_classes_can_be_read() -> None:
    """What is never found would stand there as if it counted."""
    assert [piece for piece, names in TALK_OF.items() if not names <= read(piece).talk] == []
    assert [piece for piece in TALK_OF if len(read(piece).tokens) > 2] == []
