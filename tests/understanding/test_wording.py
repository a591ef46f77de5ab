"""understanding/wording.py: what a text alone tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understanding.wording import CUES, MAX_WORDS, TALK_OF, Wording, read, words_of

WORDS = {
    "Is it FAR?": "is it far",
    "what’s up, don't": "what's up don't",
    "<@12> and <@!13>, see <#14> <:wave:15> <a:wave:16>": "and see",
    "look: https://cdn.example/a?b=c and go": "look and go",
    "run ```print('hello')\nexit()``` now": "run now",
    "snake_case 3x 日本 Straße": "snake case 3x 日本 strasse",
    "1 < 2 and 3 > 2": "1 2 and 3 2",
    "... !!": "",
}
# Which of asks and ends_asking.
MARKS = {
    "is it far?  ": "?.",
    "is it? I doubt it!": "?",
    "it is far": "",
    "see https://cdn.example/?page=1": "",
    "see `a?`": "?",
    "```\nwhy?\n```": "",
    "why? <@12>": "?.",
}
CUES_IN = {"Why do you ask": "question asking you", "thanks, I got it": "thanks me report pointing", "zebra": ""}
TALK_IN = {
    "Gracias, genial": "thanks ok",
    "Kannst du helfen": "can_you verb you",
    "what about K2": "about ask",
    "anyone up for lunch": "room",
    "хорошо, спасибо": "thanks",
    "zebra crossing": "",
}
LEADS = {
    "ok so make it shorter": "make",
    "lol can you make it shorter": "can_you verb",
    "what about K2": "about ask",
    "we make it shorter": "we",
    "ok": "ok yes",
    "zebra, make it": "",
    "": "",
}


def test_words_come_in_order_without_mentions_links_and_code() -> None:
    for text, words in WORDS.items():
        assert words_of(text) == list(read(text).tokens) == words.split()
        assert read(text).words == set(words.split())
        assert read(text).count == len(words.split())


def test_question_marks_count_where_people_put_them() -> None:
    for text, marks in MARKS.items():
        wording = read(text)
        assert (wording.asks, wording.ends_asking) == ("?" in marks, "." in marks), text


def test_words_and_pairs_of_words_are_of_classes_and_the_first_leads_behind_what_only_fills() -> None:
    assert {text: read(text).cues for text in CUES_IN} == {text: set(cues.split()) for text, cues in CUES_IN.items()}
    assert {text: read(text).talk for text in TALK_IN} == {text: set(talk.split()) for text, talk in TALK_IN.items()}
    assert {text: read(text).lead for text in LEADS} == {text: set(lead.split()) for text, lead in LEADS.items()}
    for cue, words in CUES.items():
        assert all(cue in read(word.upper()).first for word in words.split())


def test_commands_to_other_bots_are_known_by_their_mark() -> None:
    assert all(read(text).is_command for text in ("!help", "  ?rank me", "&&play song"))
    others = "$5 is enough|...and then|.net is fine|-v shows|++i|- a point of a list|-_-|well !help|!|"
    assert not any(read(text).is_command for text in others.split("|"))


def test_marks_links_and_capitals_are_counted() -> None:
    wording = read("Ben: YES, no, see https://cdn.example/A,B:C")
    assert (wording.commas, wording.capitals, wording.has_link) == (2, 4, True)
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
    assert wording.first <= wording.cues
    assert "<" in text or "http" in text or "`" in text or wording.capitals == sum(map(str.isupper, text))
    assert wording.asks or not wording.ends_asking


def test_every_word_and_pair_of_the_classes_can_be_read() -> None:
    """What is never found would stand there as if it counted."""
    assert [piece for piece, names in TALK_OF.items() if not names <= read(piece).talk] == []
    assert [piece for piece in TALK_OF if len(read(piece).tokens) > 2] == []
