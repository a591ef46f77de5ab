"""followup/features.py: what the model is told of a message."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import MessageRecord
from evals.examples import read_lines
from evals.rooms import Room, play
from followup.features import BOT as WITH_BOT
from followup.features import NOBODY, OTHER, before_it, feature_names, features
from followup.scene import NEVER, NEVER_SECONDS, look, talking_with
from tests.support.clock import NOON
from tests.support.followups import after, look_at, talk
from tests.support.people import ANNA, BEN, BOT, CLEO, EVE, replied, said

ANSWERED = [
    said(BEN, "good morning"),
    said(ANNA, f"<@{BOT}> which kernel do I need?", after(5)),
    replied(ANNA, "The newest kernel is fine. Which laptop do you have?", after(10)),
]
PEOPLE = [BOT, ANNA, BEN, CLEO]
WINDOW, REACH = 12, 300  # as documented
TEXTS = ["Anna, ok?", " ", "?", "x" * 4_000, "a, " * 1_000, f"<@{BEN}> see", f"<@{BOT}>", "parley: you?"]


def test_what_other_bots_post_changes_nothing() -> None:
    noise = [said(EVE, f"<@{ANNA}> Ben, why? <@{BOT}>", after(number), is_other_bot=True) for number in range(20)]
    message = said(ANNA, "a Framework, is eve right?", after(30))
    assert look_at(message, *noise[:5], ANSWERED[0], *noise[5:10], *ANSWERED[1:], *noise[10:]) == look_at(
        message, *ANSWERED
    )


def words_of_others(count: int) -> list[MessageRecord]:
    return [said(BEN, "hm", after(20)) for _ in range(count)]


# All of them


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PEOPLE),
            st.text() | st.sampled_from(TEXTS),
            st.integers(-600, 600),
            st.sampled_from([frozenset(), frozenset({ANNA}), frozenset({ANNA, BEN})]),
        ),
        max_size=30,
    ),
    st.sampled_from(PEOPLE[1:]),
    st.text(),
)
def test_any_text_and_any_order_of_speakers_gives_finite_numbers(
    spoken: list[tuple[int, str, int, frozenset[int]]], author: int, content: str
) -> None:
    earlier = [
        said(who, text, after(at), addressees=addressees if who == BOT else frozenset())
        for who, text, at, addressees in spoken
    ]
    found = look_at(said(author, content), *earlier)
    assert list(found) == feature_names()
    assert len({*found}) == len(found) > 50
    assert all(math.isfinite(value) for value in found.values())


# Whom the bot spoke to


def test_an_answer_is_due_until_it_is_given() -> None:
    assert look_at(said(ANNA, "an old one", after(20)), *ANSWERED)["is_due"]
    assert not look_at(said(ANNA, "and big", after(30)), *ANSWERED, said(ANNA, "an old one", after(20)))["is_due"]
    assert not look_at(said(BEN, "an old one", after(20)), *ANSWERED)["is_due"]


def test_how_long_ago_the_bot_spoke_to_the_author_and_at_all() -> None:
    found = look_at(said(ANNA, "an old one", after(40)), *ANSWERED, replied(BEN, "hi", after(25)), *words_of_others(1))
    assert (found["to_author_ago"], found["to_author_seconds"]) == (3, 30)
    assert (found["bot_ago"], found["bot_seconds"]) == (2, 15)
    assert (found["to_author_asks"], found["bot_asks"], found["bot_messages_since_own"]) == (True, False, 2)


def test_a_conversation_without_the_bots_words_says_so() -> None:
    found = look_at(said(ANNA, "so, parley, and me?", after(20)), said(BEN, "hi"), said(ANNA, "hi", after(5)))
    assert {found[name] for name in ("to_author_ago", "bot_to_others_ago", "bot_to_own", "own_to_bot")} == {NEVER}
    assert {found[name] for name in ("to_author_seconds", "bot_seconds")} == {NEVER_SECONDS}
    assert {found[name] for name in ("to_author_asks", "bot_words", "bot_asks", "shared_bot")} == {-1}
    assert not any(found[name] for name in ("is_due", "names_bot", "names_bot_first", "bot_in_window"))
    found = look_at(said(ANNA, "hello"))
    assert (found["partner"], found["before_run"], found["people"], found["own_in_window"]) == (NOBODY, NOBODY, 0, 0)
    assert (found["own_seconds"], found["window_seconds"], found["taken_up"]) == (NEVER_SECONDS, NEVER_SECONDS, -1)


# With whom the author talks


@pytest.mark.parametrize(
    ("later", "partner", "who"),
    [
        ([], WITH_BOT, None),
        ([said(BEN, f"<@{ANNA}> lunch?")], OTHER, BEN),
        ([said(BEN, "Anna, lunch?")], OTHER, BEN),
        ([said(ANNA, f"<@{CLEO}> lunch?"), said(BEN, "yes")], OTHER, CLEO),
        ([said(ANNA, "Ben, lunch?")], OTHER, BEN),
        ([said(BEN, "lunch?")], WITH_BOT, None),
        ([said(BEN, f"<@{ANNA}> lunch?"), replied(ANNA, "At noon.")], WITH_BOT, None),
        ([said(BEN, f"<@{ANNA}> lunch?"), *words_of_others(WINDOW)], NOBODY, None),
    ],
)
def test_the_partner_is_who_exchanged_words_with_the_author_last(
    later: list[MessageRecord], partner: float, who: int | None
) -> None:
    message = said(ANNA, "sure", after(20))
    assert look_at(message, *ANSWERED, *later)["partner"] == partner
    assert talking_with(message, talk(*ANSWERED, *later), BOT) == who


def test_the_bot_is_weighed_against_the_authors_other_partners() -> None:
    with_bot = look_at(said(ANNA, "sure", after(20)), *ANSWERED)
    assert with_bot["margin"] > 0 == with_bot["rank"]
    lunch = [said(BEN, f"<@{ANNA}> lunch?", after(12)), said(ANNA, f"<@{BEN}> when?", after(13))]
    with_ben = look_at(said(ANNA, "sure", after(20)), *ANSWERED, *lunch)
    assert with_ben["margin"] < 0 < with_ben["rank"]
    assert with_ben["rivals_to_own_since"] == 1


# Names


@pytest.mark.parametrize(
    ("content", "calls", "is_first"),
    [
        ("Parley, look", True, True),
        ("hey parley: look", True, True),
        ("Parley is it far", False, False),
        ("Parley is it far?", True, True),
        ("can you, parley", True, True),
        ("could you tell me parley", True, False),
        (f"see <@{BOT}>", True, False),
        (f"<@{BOT}> see", True, True),
        ("Parley is nice", False, False),
        ("the parleys were long", False, False),
        ("look", False, False),
        ("Cleo, look", False, False),
        ("Anna, look", False, False),
    ],
)
def test_the_bot_is_called_by_name_but_not_by_talk_about_it(content: str, calls: bool, is_first: bool) -> None:
    found = look_at(said(ANNA, content, after(20)), *ANSWERED)
    assert (bool(found["names_bot"]), bool(found["names_bot_first"])) == (calls, is_first)
    assert not found["names_others"]


@pytest.mark.parametrize(
    ("content", "others", "is_first", "speaks"),
    [
        (f"<@{BEN}> look", 1, True, True),
        (f"look <@{BEN}> and <@{CLEO}>", 2, False, True),
        (f"look <@{CLEO}>", 1, False, False),
        ("Ben, look", 1, False, True),
    ],
)
def test_others_are_named_by_mention_or_by_call(content: str, others: int, is_first: bool, speaks: bool) -> None:
    found = look_at(said(ANNA, content, after(20)), *ANSWERED)
    assert found["names_others"] == others
    assert (bool(found["names_others_first"]), bool(found["names_speakers"])) == (is_first, speaks)


@pytest.mark.parametrize(
    ("content", "names", "is_last"),
    [("I saw Ben with cleo, and mart", 2, False), ("i saw cleo with ben", 2, True), ("anna saw her", 0, False)],
)
def test_people_are_named_anywhere_without_a_mention(content: str, names: int, is_last: bool) -> None:
    later = [said(BEN, "hm", after(12)), said(CLEO, "hm", after(13))]
    found = look_at(said(ANNA, content, after(20)), *ANSWERED, *later)
    assert (found["names_person"], found["names_person_last"]) == (names, is_last)


@pytest.mark.parametrize("content", [", you?", "you: see", "and you?"])
@pytest.mark.parametrize("name", ["", "🤖"])
def test_a_bot_whose_name_has_no_words_is_not_called_by_every_message(content: str, name: str) -> None:
    earlier = [said(ANNA), said(BOT, "Hello.", author=name)] if name else [said(ANNA)]
    assert not look_at(said(ANNA, content), *earlier)["names_bot"]


# How far it looks


def test_the_window_is_of_twelve_messages() -> None:
    message = said(ANNA, "and water", after(30))
    asked, answer = ANSWERED[1:]
    within = look_at(message, asked, answer, *words_of_others(WINDOW - 1))
    beyond = look_at(message, asked, answer, *words_of_others(WINDOW))
    assert (within["bot_in_window"], within["partner"], within["bot_to_own"]) == (1, WITH_BOT, WINDOW)
    assert (beyond["bot_in_window"], beyond["partner"], beyond["bot_to_own"]) == (0, NOBODY, NEVER)
    assert beyond["is_due"]


def test_the_bots_words_are_found_up_to_three_hundred_messages_back() -> None:
    message = said(ANNA, "an old laptop", after(30))
    within = look_at(message, *ANSWERED, *words_of_others(REACH - 1))
    beyond = look_at(message, *ANSWERED, *words_of_others(REACH))
    assert (within["to_author_ago"], within["bot_words"] > 0) == (REACH, True)
    assert (beyond["bot_words"], beyond["to_author_words"]) == (-1, -1)
    assert beyond["to_author_ago"] == REACH
    assert look_at(message, *ANSWERED, *words_of_others(REACH + 50))["to_author_ago"] == REACH


def test_only_the_last_three_messages_of_the_bot_are_read() -> None:
    message = said(ANNA, "an old laptop", after(30))
    two, three = ([replied(BEN, "Hello.", after(11)) for _ in range(count)] for count in (2, 3))
    assert look_at(message, *ANSWERED, *two)["to_author_words"] > 0
    assert look_at(message, *ANSWERED, *three)["to_author_words"] == -1


# The channel


def test_people_count_who_spoke_within_five_minutes() -> None:
    later = NOON + timedelta(minutes=5, seconds=3)
    assert look_at(said(CLEO, "hi", after(20)), *ANSWERED)["people"] == 2
    assert look_at(said(CLEO, "hi", later), *ANSWERED)["people"] == 1
    assert look_at(said(CLEO, "hi", after(20)), *ANSWERED, *words_of_others(2))["people_since_bot"] == 1


@pytest.mark.parametrize(
    ("later", "ago"),
    [
        ([said(BEN, "who knows zsh?", after(12))], 1),
        ([said(BEN, "who knows zsh?", after(12)), *words_of_others(5)], 6),
        ([said(BEN, "who knows zsh?", after(12)), *words_of_others(6)], 0),
        ([said(BEN, f"<@{CLEO}> do you know zsh?", after(12))], 0),
        ([said(ANNA, "who knows zsh?", after(12))], 0),
        ([replied(None, "who knows zsh?", after(12))], 0),
    ],
)
def test_a_question_to_nobody_in_particular_is_open(later: list[MessageRecord], ago: int) -> None:
    asked, answer = ANSWERED[1:]
    assert look_at(said(ANNA, "zsh is fine", after(30)), asked, answer, *later)["open_question"] == ago


# What became of earlier messages


def test_how_many_of_the_authors_messages_were_answered() -> None:
    found = look_at(said(ANNA, "an old one", after(20)), *ANSWERED)
    assert (found["own_said"], found["own_answered"], found["own_answered_share"]) == (1, 1, 1)
    later = [said(ANNA, "no", after(12)), said(ANNA, "hm", after(13))]
    found = look_at(said(ANNA, "an old one", after(20)), *ANSWERED, *later)
    assert (found["own_said"], found["own_answered_of_3"], found["own_last_answered"]) == (3, 1, 0)
    assert found["own_left_alone"] == 2
    stranger = look_at(said(CLEO, "an old one", after(20)), *ANSWERED)
    assert (stranger["own_said"], stranger["own_answered_share"], stranger["own_last_answered"]) == (0, -1, -1)
    assert stranger["own_left_alone"] == 0


def test_how_much_of_the_room_was_answered() -> None:
    asked, answer = ANSWERED[1:]
    found = look_at(said(CLEO, "hi", after(30)), asked, answer, *words_of_others(2))
    assert (found["room_answered_of_6"], found["room_left_alone"], found["left_alone_since_bot"]) == (1, 2, 2)
    assert found["taken_up"] == 0
    later = [*words_of_others(6), said(ANNA, "an old one", after(12))]
    found = look_at(said(CLEO, "hi", after(30)), asked, answer, *later)
    assert (found["room_answered_of_6"], found["room_left_alone"], found["taken_up"]) == (0, 7, 1)


# Who spoke, and how quickly


def test_the_last_five_speakers_are_told_apart() -> None:
    found = look_at(said(ANNA, "hi", after(20)), *ANSWERED, said(ANNA, "hm", after(15)))
    assert [found[f"speaker_{place}"] for place in range(1, 6)] == [NOBODY, WITH_BOT, NOBODY, OTHER, -1]


def test_a_run_is_unbroken() -> None:
    own = [
        said(ANNA, "one", NOON),
        said(BEN, "hm", after(14)),
        said(ANNA, "two", after(15)),
        said(ANNA, "3", after(16)),
    ]
    found = look_at(said(ANNA, "four", after(30)), *own)
    assert (found["run"], found["own_ago"], found["other_ago"]) == (2, 1, 3)
    assert (found["other_seconds"], found["previous_seconds"]) == (16, 14)
    assert found["window_speakers"] == 2


# Phrases and marks


@pytest.mark.parametrize(
    ("content", "set_"),
    [
        ("ok can you make it shorter", "talk_can_you lead_can_you"),
        ("tell ben that it rains", "lead_make"),
        ("the parley bot is odd", "names_bot_anywhere"),
        ("at 5", "has_number"),
        ("what??", "repeats_marks"),
        ("schön", "non_ascii"),
    ],
)
def test_words_phrases_and_marks_of_a_text(content: str, set_: str) -> None:
    found = look_at(said(ANNA, content, after(20)), *ANSWERED)
    looked_at = """talk_can_you lead_can_you lead_make talk_room talk_thanks names_bot_anywhere has_number repeats_marks
        non_ascii"""
    assert [name for name in looked_at.split() if found[name]] == set_.split()


# The bot's last words


def test_what_the_bots_last_words_asked_for() -> None:
    asked = replied(ANNA, "I am not sure. What do you need it for?\nShall I ask?", after(10))
    found = look_at(said(ANNA, "yes", after(20)), said(ANNA), asked)
    assert found["last_asks_at_end"]
    assert found["last_asks_author"]
    assert found["last_unsure"]
    assert found["last_asks_offer"]
    assert (found["last_fits"], found["last_lines"]) == (True, 1)
    told = look_at(said(ANNA, "yes", after(20)), said(ANNA), replied(ANNA, "It is green.", after(10)))
    assert not any(told[name] for name in ("last_asks_at_end", "last_asks_author", "last_fits", "last_asks_offer"))
    assert {look_at(said(ANNA))[name] for name in ("last_fits", "last_lines", "last_unsure")} == {-1}
    seat = [said(ANNA), replied(ANNA, "Do you want a window seat?", after(10))]
    texts = {"by the aisle": True, "yes but only on the way there": True, "we had soup and then went home": False}
    for text, fits in texts.items():
        assert look_at(said(ANNA, text, after(20)), *seat)["last_fits"] == fits
    assert look_at(said(ANNA, "a window if you have one", after(20)), *seat)["last_shares_question"] == 3


# What others said


def test_the_last_words_of_another_person() -> None:
    found = look_at(said(ANNA, "hi", after(20)), *ANSWERED, said(BEN, f"<@{ANNA}> lol are you there?", after(12)))
    assert found["rival_asks"]
    assert found["rival_asks_ask"]
    assert found["rival_laughs"]
    assert found["rival_after_bot"]
    assert not found["rival_to_bot"]
    before = look_at(said(ANNA, "hi", after(20)), *ANSWERED)
    assert (before["rival_words"], bool(before["rival_after_bot"])) == (2, False)
    assert look_at(said(ANNA, "hi"))["rival_asks"] == -1


def test_rare_words_are_long_and_not_common() -> None:
    message = said(ANNA, "The kernel of my old laptop would not boot", after(20))
    assert look(message, talk(*ANSWERED), BOT).rare == {"kernel", "laptop", "boot"}


def test_letters_in_common_show_whose_words_are_taken_up() -> None:
    rivals = said(BEN, "my garden needs watering", after(12))
    bots = look_at(said(ANNA, "which laptops", after(20)), *ANSWERED, rivals)
    assert bots["alike_bot"] > 0.5 > bots["alike_rival"]
    theirs = look_at(said(ANNA, "water gardens", after(20)), *ANSWERED, rivals)
    assert theirs["alike_margin"] < 0 < theirs["alike_rival"]
    assert look_at(said(ANNA, "hi", after(20)), *ANSWERED)["alike_bot"] == -1  # too short to tell


def test_it_is_known_whether_the_bot_was_part_of_what_was_said_before() -> None:
    lunch = said(CLEO, "noodles again", after(14))
    assert not look_at(said(ANNA, "hi", after(20)), *ANSWERED, lunch)["previous_is_bots"]
    assert look_at(said(ANNA, "hi", after(20)), *ANSWERED)["previous_is_bots"]


def test_what_somebody_else_asked_stays_open_until_the_bot_answers_it() -> None:
    question = said(BEN, "where is the station", after(12))
    assert look_at(said(ANNA, "hm", after(20)), *ANSWERED, question)["open_asks"] == 1
    assert (
        look_at(said(ANNA, "hm", after(20)), *ANSWERED, question, replied(BEN, "There.", after(13)))["open_asks"] == -1
    )


def test_what_messages_keep_of_their_words_changes_no_feature() -> None:
    rooms = islice(read_lines(Path("evals/data/rooms.jsonl"), Room), 12)
    played = [(m.message, m.conversation) for room in rooms for m in play(room) if m.conversation]
    for message, conversation in played:
        kept = features(message, conversation, BOT)
        for said_before in conversation.messages:
            said_before.forget_wording()
        assert features(message, conversation, BOT) == kept
    assert len(played) > 150


# Who spoke right before


@pytest.mark.parametrize(
    ("later", "letter"),
    [
        ([], "a"),
        ([replied(BEN, "hi", after(12))], "b"),
        ([said(BEN, "hm", after(12))], "c"),
        ([said(ANNA, "hm", after(12))], "d"),
        ([said(ANNA, "hm", after(12)), said(BEN, "hm", after(13))], "e"),
    ],
)
def test_who_spoke_right_before_is_a_letter(later: list[MessageRecord], letter: str) -> None:
    assert before_it(look_at(said(ANNA, "hi", after(20)), *ANSWERED, *later)) == letter
