"""state/confirmation.py: what is a yes, what is a no, and what is neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.confirmation import confirm

DELETE = "Delete all venues?"
READ_BACK = "Please confirm: a table for two at the Lantern on Friday at 7 pm."
OFFER = "Would you like me to reserve a seat?"
MORE = "Is there anything else I can do for you?"


@pytest.mark.parametrize("question", ["", DELETE, READ_BACK, OFFER])
@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "YES!!",
        "Yesss",
        "yep",
        "yeap, that's it",
        "y",
        "aye",
        "mhm",
        "uh-huh",
        "ok",
        "okie dokie",
        "sure, why not",
        "Sure thing",
        "of course",
        "absolutely",
        "by all means",
        "hell yes",
        "go ahead",
        "yeah, go for it",
        "do it",
        "please do",
        "please",
        "let's do it",
        "could you do that please?",
        "sounds good",
        "sounds good to me",
        "that works for me",
        "that would be lovely, thanks",
        "I'd like that very much",
        "I would love to",
        "I agree",
        "I think so",
        "we do, yes",
        "you may",
        "all good",
        "that's right",
        "thats totally correct",
        "I believe it is true",
        "it's a yes from me",
        "the answer is yes",
        "yes that is my answer",
        "exactly what I wanted, yes",
        "no problem, go ahead",
        "no worries, do it",
        "not a problem",
        "I couldn't agree more, yes",
        "no, but actually, yes",
        "Actually, yes.",
        "yes, if possible",
        "yes <@123456789>",
        "👍",
        "👍🏽",
        "👍🏿👍🏿",
        ":+1:",
        "+1",
        "✅",
        "ok 👌",
    ],
)
def test_a_yes_is_a_yes_whatever_was_asked(reply: str, question: str) -> None:
    assert confirm(reply, question) is True


@pytest.mark.parametrize(
    "reply",
    [
        "Yes. What time does it open?",
        "Yep, and how far is it?",
        "Yes, two seats by the window.",
        "Yes please, I am bringing my sister and no dogs.",
        "Correct. Could you give me their number?",
        "Go ahead. I need it on Monday.",
        "yes, but what does it cost?",
    ],
)
def test_a_yes_may_carry_more(reply: str) -> None:
    assert confirm(reply) is True


@pytest.mark.parametrize("question", ["", DELETE, READ_BACK, OFFER])
@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "Nooo",
        "nope",
        "nah",
        "n",
        "no thanks",
        "thanks but no thanks",
        "no way",
        "no, keep them",
        "No, I want three of them",
        "don't",
        "please don't",
        "don't do that",
        "never",
        "not really",
        "of course not",
        "absolutely not",
        "I'd rather not",
        "I would prefer not",
        "I don't think so",
        "that'd be a no",
        "it's a no from me",
        "that's wrong",
        "that isn't right",
        "you got it wrong",
        "I disagree",
        "there is no chance of that",
        "I have to decline",
        "yes, but actually, no",
        "agreed, though it is not ok",
        "👎🏻",
        "❌",
        ":thumbsdown:",
    ],
)
def test_a_no_is_a_no_whatever_was_asked(reply: str, question: str) -> None:
    assert confirm(reply, question) is False


@pytest.mark.parametrize(
    "reply",
    [
        "not now",
        "not yet",
        "Not just yet. How is the weather?",
        "later",
        "maybe later",
        "some other time perhaps",
        "in a bit",
        "yes, but not right now",
        "I will be fine",
        "perhaps in the future",
        "let's hold off",
        "not at the moment",
        "yes, but not now",
        "Yeah, but maybe later",
        "I do, but not yet",
        "sure, another day",
        "I'd like to see the room first",
    ],
)
def test_putting_off_is_a_no(reply: str) -> None:
    assert confirm(reply, OFFER) is False


@pytest.mark.parametrize(
    "reply",
    [
        "actually, make it five",
        "make it 5 instead",
        "I changed my mind, a bigger table please",
        "on second thought, the other cafe",
        "I said Thursday, not Friday",
        "I want a table for four people",
        "Actually, could I have the terrace?",
        "I'd like it at eight",
    ],
)
def test_a_wish_for_something_else_than_what_was_read_back_is_a_no(reply: str) -> None:
    assert confirm(reply, READ_BACK) is False


@pytest.mark.parametrize(
    "reply",
    [
        "that's all",
        "That is all I need, thanks.",
        "I'm good",
        "nothing else, thank you",
        "I am all set for now",
        "no more",
    ],
)
def test_who_has_all_declines_more(reply: str) -> None:
    assert confirm(reply, MORE) is False


def test_praise_accepts_nothing_more() -> None:
    assert confirm("That's great, thanks!", MORE) is None


@pytest.mark.parametrize("question", ["", DELETE, READ_BACK, OFFER])
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "?!",
        "yes and no",
        "yes or no?",
        "yeah right",
        "yeah right 🙄",
        "not sure",
        "I'm not quite sure",
        "yes, I'm not sure",
        "definitely maybe",
        "maybe",
        "probably",
        "it could be either",
        "I don't care",
        "I don't mind, whatever is fine",
        "anything is good with me",
        "both are fine with me",
        "doesn't matter to me",
        "you choose",
        "no idea",
        "no preference, sure",
        "I can't say",
        "ask me later",
        "it depends",
        "let me think",
        "hold on",
        "wait",
        "yes, wait",
        "🤷🏽",
        "yes?",
        "ok?",
        "is that a yes?",
        "should I say yes?",
        "are you sure?",
        "is it open on Sundays?",
        "how much is it",
        "exactly how much is it",
        "tell me more",
        "I want to know the price",
        "what would that delete",
        "okay so what does that mean",
        "ok, whatever",
        "yes if it's cheap",
        "yes, unless it rains",
        "yes but change the time",
        "yes, but make it five",
        "yes, but can you change the time?",
        "yes, but tomorrow",
        "yes, only the first one",
        "yes, keep them",
        "yes, but I want another one",
        "yes, never mind",
        "yes is what he said",
        "my boss says yes",
        "right now I'm busy",
        "absolutely hate it",
        "totally forgot",
        "great weather today",
        "great, another bot",
        "good morning",
        "good question",
        "I will be right here",
        "right now",
        "ok my mother is calling",
        "it works on my machine",
        "that is exactly the problem",
        "I am a pelican",
        "beans",
        "lol",
        "thanks",
        "cancel",
        "never mind",
        "stop",
        "10",
    ],
)
def test_what_is_neither_is_neither_whatever_was_asked(reply: str, question: str) -> None:
    assert confirm(reply, question) is None


def test_an_ok_before_a_question_says_nothing_and_praise_does_so_only_for_what_is_checked() -> None:
    assert confirm("Perfect, what is their address?", READ_BACK) is True
    assert confirm("Perfect, what is their address?", "There is a nice cafe, the Lantern.") is None
    assert confirm("Ok, what is their address?", READ_BACK) is None


def test_to_repeat_the_verb_of_the_question_is_a_yes() -> None:
    assert confirm("delete them all", DELETE) is True
    assert confirm("Please delete it", "Shall I delete the trip?") is True
    assert confirm("delete it", OFFER) is None


def test_a_yes_may_repeat_a_verb_that_would_call_off() -> None:
    assert confirm("yes, cancel it", "Cancel the booking?") is True
    assert confirm("cancel it", "Cancel the booking?") is None
    assert confirm("yes, cancel it", OFFER) is None


@pytest.mark.parametrize(("reply", "answer"), [("1", True), (" 2 ", False), ("3", None)])
def test_a_number_answers_where_the_question_numbers_yes_and_no(reply: str, answer: bool | None) -> None:
    assert confirm(reply, "Delete it? (1) Yes or (2) No") is answer


def test_a_number_answers_nothing_else() -> None:
    assert confirm("1", DELETE) is None


def test_no_long_text_is_an_answer() -> None:
    assert confirm("yes " * 1_000) is None


def test_only_the_end_of_a_long_question_is_read() -> None:
    assert confirm("2", "(1) Yes or (2) No" + " ..." * 1_000) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_one_of_three_answers_and_always_the_same(reply: str, question: str) -> None:
    assert confirm(reply, question) in (True, False, None)
    assert confirm(reply, question) is confirm(reply, question)


@given(st.sampled_from(["but not now", "but I'm not sure", "unless it rains", "and no", "no", "maybe", "never mind"]))
def test_whatever_takes_back_a_yes_leaves_none(reservation: str) -> None:
    assert confirm(f"yes {reservation}") is not True
    assert confirm(f"sounds good, {reservation}") is not True


@pytest.mark.parametrize("question", ["", DELETE, READ_BACK, OFFER])
@pytest.mark.parametrize(
    "reply",
    [
        "yes, but",
        "sure, but...",
        "ok however",
        "yes, after the meeting",
        "yes before lunch",
        "yes when it snows in July",
        "sure, once Ann agrees",
        "ok, as soon as the rain stops",
        "yes, tomorrow",
        "yes on Monday",
        "yep, in two hours",
        "yes in principle",
        "in theory, yes",
        "ok, still thinking about it",
        "yes, we hate that",
        "yes man",
        "a yes-man",
    ],
)
def test_a_yes_that_is_left_open_or_put_off_is_none(reply: str, question: str) -> None:
    assert confirm(reply, question) is None


@pytest.mark.parametrize(
    "reply", ["yes, Friday", "yes, on Friday", "yeah man", "yes, man", "good though", "yes, when is that?", "yes now"]
)
def test_a_yes_with_the_time_that_was_asked_or_none_stays_one(reply: str) -> None:
    assert confirm(reply, READ_BACK) is True
