"""followup/probation.py: unprompted answers that nobody took up yet, and those that were passed over."""

from __future__ import annotations

import pytest

from conversation import MessageRecord
from followup.probation import REACH, passed_over, pending, without
from tests.support.followups import after, talk
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said

ASKED = said(ANNA, f"<@{BOT}> which train?")
ANSWERED = replied(ANNA, "The early one.", after(5), reply_to_id=ASKED.message_id)
GUESSED_AT = said(BEN, "I am tired", after(10))
GUESS = replied(BEN, "Have a coffee.", after(14), reply_to_id=GUESSED_AT.message_id)
START = [ASKED, ANSWERED, GUESSED_AT, GUESS]
NEXT = said(CLEO, "what a day", after(60))


def found(*later: MessageRecord, before: list[MessageRecord] | None = None) -> list[str]:
    return [m.content for m in pending(NEXT, talk(*(START if before is None else before), *later), BOT)]


def test_an_answer_to_which_nobody_said_anything_was_pending() -> None:
    assert found() == ["Have a coffee."]
    assert found(said(ANNA, "Ben, lunch?", after(20)), said(BEN, "in a minute", after(25))) == ["Have a coffee."]


@pytest.mark.parametrize(
    "later",
    [
        [said(BEN, f"<@{BOT}> with milk?", after(20))],
        [said(CLEO, "no", after(20), reply_to_id=GUESS.message_id, reply_to_author_id=BOT)],
        [said(BEN, "thanks", after(20))],
        [said(BEN, "lol", after(20))],
        [said(BEN, "with milk?", after(20), message_id=7), replied(BEN, "Yes.", reply_to_id=7), said(BEN, "so be it")],
    ],
)
def test_who_calls_thanks_laughs_or_is_answered_again_took_it_up(later: list[MessageRecord]) -> None:
    assert "Have a coffee." not in found(*later)


def test_a_laugh_of_somebody_to_whom_it_was_not_said_takes_up_nothing() -> None:
    assert found(said(CLEO, "lol", after(20))) == ["Have a coffee."]


def test_an_answer_that_somebody_had_called_for_is_not_on_probation() -> None:
    assert found(before=[ASKED, ANSWERED]) == []
    by_name = said(BEN, "Parley are you there", after(20), calls_bot="Parley")
    assert found(by_name, replied(BEN, "Yes.", after(22), reply_to_id=by_name.message_id)) == []


def test_several_in_a_row_are_found_the_newest_first_up_to_one_that_was_taken_up() -> None:
    same = said(CLEO, "same", after(12))
    second = replied(CLEO, "You too.", after(15), reply_to_id=same.message_id)
    both = [ASKED, ANSWERED, GUESSED_AT, same, GUESS, second]
    assert found(before=both) == ["You too.", "Have a coffee."]
    assert found(said(CLEO, "thanks", after(20)), before=both) == []
    assert found(said(BEN, "thanks", after(20)), before=both) == ["You too."]


def test_what_an_answer_was_to_that_is_not_known_any_more_is_not_held_against_it() -> None:
    assert found(before=[GUESS]) == []
    assert found(before=[ASKED, replied(ANNA, "Hello.")]) == []


def test_it_looks_twelve_messages_back() -> None:
    assert found(*(said(CLEO, "so we went home", after(20)) for _ in range(REACH - 1))) == ["Have a coffee."]
    assert found(*(said(CLEO, "so we went home", after(20)) for _ in range(REACH))) == []


@pytest.mark.parametrize(
    ("later", "count"),
    [
        ([], 0),
        ([said(CLEO, "same here", after(20))], 0),
        ([said(BEN, "and my feet hurt", after(20))], 1),
        ([said(who, "so we went home", after(20)) for who in (CLEO, ANNA, CLEO)], 1),
    ],
)
def test_it_is_passed_over_once_whom_it_was_to_or_several_others_have_spoken(
    later: list[MessageRecord], count: int
) -> None:
    conversation = talk(*START, *later)
    assert len(passed_over(pending(NEXT, conversation, BOT), NEXT, conversation)) == count


def test_of_an_answer_in_parts_one_counts() -> None:
    more = replied(BEN, "Or a tea.", after(15), reply_to_id=GUESSED_AT.message_id)
    conversation = talk(*START, more, said(BEN, "and my feet hurt", after(20)))
    assert len(passed_over(pending(NEXT, conversation, BOT), NEXT, conversation)) == 1


def test_the_message_itself_is_no_reaction_to_it_whether_it_is_recorded_or_not() -> None:
    thanks = said(BEN, "thanks", after(20))
    for conversation in (talk(*START), talk(*START, thanks)):
        assert [m.content for m in pending(thanks, conversation, BOT)] == ["Have a coffee."]


def test_without_it_the_conversation_is_as_if_neither_it_nor_what_it_answers_had_been_said() -> None:
    conversation = talk(*START, NEXT)
    silent = without([GUESS], conversation)
    assert [m.content for m in silent.messages] == [m.content for m in (ASKED, ANSWERED, NEXT)]
    assert silent.engagement.standing(BEN).spoken_to is None
    assert conversation.engagement.standing(BEN).spoken_to is not None
    assert GUESS in conversation.messages
