"""What is deleted or edited is so everywhere: in records, in replies that quote it, and in what the model reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from conversation import ChannelConversation, ConversationManager, MessageRecord
from state.engagement import Engagement
from state.message import REPLY_EXCERPT, Source, sources_of, sources_of_reading
from state.optout import FORGOTTEN
from state.revisions import MAX_EDITED, MAX_REVISIONS
from tests.support.clock import NOON, FakeClock
from tests.support.histories import model_reads, turn
from tests.support.people import ANNA, BEN, BOT, CHANNEL, CLEO, DAN, replied, said

IMAGE = "https://cdn.example/cat.png"
Change = Callable[[ConversationManager, MessageRecord], object]


@pytest.fixture
def manager() -> ConversationManager:
    return ConversationManager(60, clock=FakeClock(), max_messages=3)


@pytest.fixture
def secret() -> MessageRecord:
    return said(ANNA, "my secret", images=(IMAGE,))


@pytest.fixture
def conversation(manager: ConversationManager, secret: MessageRecord) -> ChannelConversation:
    """One in which the secret was told to the model."""
    started = manager.start(CHANNEL, [secret])
    manager.record_bot_response(CHANNEL, turn(secret))
    return started


def delete(manager: ConversationManager, message: MessageRecord) -> None:
    manager.forget_messages(CHANNEL, {message.message_id})


def edit(manager: ConversationManager, message: MessageRecord) -> None:
    manager.revise(CHANNEL, replace(message, content="harmless", images=()))


def forget(manager: ConversationManager, message: MessageRecord) -> None:
    manager.forget_author(CHANNEL, message.author_id)


def answers(conversation: ChannelConversation) -> list[str]:
    """What the model is told that it said."""
    said = (part for message in conversation.llm_history for part in message.parts)
    return [part.content for part in said if isinstance(part, TextPart)]


def held(conversation: ChannelConversation) -> list[object]:
    """What the agent keeps for itself."""
    return [m.metadata for m in conversation.llm_history if isinstance(m, ModelResponse)]


@pytest.mark.parametrize(("change", "left"), [(delete, []), (edit, ["harmless"]), (forget, [])])
@pytest.mark.parametrize("when", ["after it", "while the next turn runs", "when it is trimmed", "while it is told"])
def test_a_change_reaches_the_record_and_what_the_model_is_told(
    manager: ConversationManager, secret: MessageRecord, change: Change, left: list[str], when: str
) -> None:
    conversation = manager.start(CHANNEL, [secret])
    being_made = turn(secret)
    if when != "while it is told":
        manager.record_bot_response(CHANNEL, being_made)
    if when == "when it is trimmed":
        for _ in range(3):
            manager.record_message(CHANNEL, said(CLEO))
    if when == "while the next turn runs":
        manager.record_message(CHANNEL, asked := said(BEN, "next"))
        being_made = [*conversation.llm_history, *turn(asked)]
    change(manager, secret)
    if when.startswith("while"):
        manager.record_bot_response(CHANNEL, being_made)
    reads = model_reads(conversation.llm_history)
    assert "secret" not in reads + repr(conversation.messages)
    assert IMAGE not in reads + repr(conversation.messages)
    assert ("harmless" in reads) is ("harmless" in left)
    assert ("next" in reads) is (when == "while the next turn runs")
    if when != "when it is trimmed":
        assert [m.content for m in conversation.messages if m.author_id == ANNA] == left
        assert (ANNA in conversation.participants) is bool(left)
    assert conversation.size == sum(m.size for m in conversation.messages)


def test_an_edit_of_an_unknown_message_changes_nothing(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    assert not manager.revise(CHANNEL, said(ANNA, "something else"))
    assert not manager.revise(CHANNEL + 1, replace(secret, content="else"))
    assert conversation.messages == [secret]


@pytest.mark.parametrize("change", [delete, forget])
def test_replies_no_longer_quote_what_is_gone(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord, change: Change
) -> None:
    reply = said(BEN, "oh", reply_to_id=secret.message_id, reply_to_author_id=ANNA, reply_to_text="my secret")
    reply = replace(reply, reply_to_author="Anna")
    manager.record_message(CHANNEL, reply)
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(reply)])
    change(manager, secret)
    assert "secret" not in model_reads(conversation.llm_history) + repr(conversation.messages)
    assert "oh" in model_reads(conversation.llm_history)


def test_replies_to_a_message_that_becomes_long_do_not_push_others_out_of_the_conversation(
    conversation: ChannelConversation, secret: MessageRecord
) -> None:
    reply = said(BEN, "oh", reply_to_id=secret.message_id, reply_to_author_id=ANNA, reply_to_text="my secret")
    conversation.add(reply)
    before = conversation.size
    conversation.revise(replace(secret, content="x" * 4_000))
    assert conversation.size < before + 4_000 + 2 * REPLY_EXCERPT


@pytest.mark.parametrize(("change", "left"), [(delete, ""), (edit, "harmless"), (forget, "")])
def test_an_edited_reply_that_is_trimmed_quotes_what_it_replies_to_as_that_is_now(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord, change: Change, left: str
) -> None:
    """A turn that runs, or a question that waits, was told it, and is told it anew."""
    reply = said(BEN, "oh", reply_to_id=secret.message_id, reply_to_author_id=ANNA, reply_to_text="my secret")
    manager.record_message(CHANNEL, reply)
    manager.revise(CHANNEL, reply := replace(reply, content="oh!"))
    being_made = turn(reply)
    for _ in range(4):
        manager.record_message(CHANNEL, said(CLEO))
    assert reply not in conversation.messages
    change(manager, secret)
    now, reads = conversation.latest(reply.message_id), model_reads(conversation.current(being_made))
    assert now
    assert (now.content, now.reply_to_text) == ("oh!", left)
    assert "secret" not in reads
    assert "oh!" in reads


def test_what_a_mini_app_said_goes_though_its_card_was_settled_after_it_was_trimmed(
    manager: ConversationManager, conversation: ChannelConversation
) -> None:
    """Discord's event about the card does not tell whose words the message has."""
    manager.record_message(CHANNEL, answer := replied(ANNA, "my secret is on the list"), by_model=False)
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(answer)])
    for _ in range(4):
        manager.record_message(CHANNEL, said(CLEO))
    assert conversation.find(answer.message_id) is None
    manager.revise(CHANNEL, replace(answer, addressees=frozenset()))
    assert "secret is on the list" in model_reads(conversation.llm_history)
    manager.forget_author(CHANNEL, ANNA)
    assert "secret" not in model_reads(conversation.llm_history)


def test_trimming_deletes_nothing_from_the_history_of_a_turn_that_runs(manager: ConversationManager) -> None:
    """Only deletion takes words out of the history; the record's cap is about memory."""
    conversation = manager.start(CHANNEL, [first := said(ANNA, "the first")])
    being_made = turn(first)
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    manager.record_bot_response(CHANNEL, being_made)
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(*conversation.untold())])
    assert first not in conversation.messages
    assert "first" in model_reads(conversation.llm_history)


def test_forgetting_a_person_drops_what_a_turn_that_runs_was_told_of_them_also_if_it_was_trimmed(
    manager: ConversationManager,
) -> None:
    conversation = manager.start(CHANNEL, [first := said(ANNA, "the first")])
    quoting = said(BEN, "oh", reply_to_id=first.message_id, reply_to_author_id=ANNA, reply_to_text="the first")
    manager.record_message(CHANNEL, quoting)
    conversation.begin_turn()
    being_made = turn(first, quoting)
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    manager.forget_author(CHANNEL, ANNA)
    manager.record_message(CHANNEL, since := said(ANNA, "since then"))
    being_made = [*being_made, *turn(since)]
    assert first not in conversation.messages
    assert "the first" not in model_reads(conversation.current(being_made))
    manager.record_bot_response(CHANNEL, being_made)
    assert "the first" not in model_reads(conversation.llm_history)
    assert "since then" in model_reads(conversation.llm_history)


def test_forgetting_a_person_drops_what_was_answered_to_them_or_out_of_their_words_so_far(
    manager: ConversationManager, conversation: ChannelConversation
) -> None:
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    manager.record_message(CHANNEL, replied(ANNA, "You like tea."))
    being_made = [*conversation.llm_history, *turn(asked, answer="to Ben")]
    manager.forget_author(CHANNEL, ANNA)
    manager.record_bot_response(CHANNEL, being_made)
    assert (answers(conversation), conversation.messages) == ([FORGOTTEN, FORGOTTEN], [asked])
    conversation.begin_turn()
    manager.record_message(CHANNEL, later := said(ANNA, "and now?"))
    manager.record_bot_response(CHANNEL, [*conversation.llm_history, *turn(later, answer="later")])
    assert answers(conversation) == [FORGOTTEN, FORGOTTEN, "later"]


@pytest.mark.parametrize(("by_model", "left"), [(True, [FORGOTTEN]), (False, ["yes"])])
def test_with_the_bots_own_message_goes_what_the_model_is_told_that_it_said(
    manager: ConversationManager,
    conversation: ChannelConversation,
    secret: MessageRecord,
    by_model: bool,
    left: list[str],
) -> None:
    answer = replace(replied(ANNA), reply_to_id=secret.message_id)
    manager.record_message(CHANNEL, answer, by_model=by_model)
    delete(manager, answer)
    assert answers(conversation) == left


def test_whoever_told_the_bot_off_long_ago_is_left_alone_whatever_is_edited_since() -> None:
    manager = ConversationManager(60, clock=FakeClock(), max_messages=8)
    conversation = manager.start(CHANNEL, [said(ANNA, f"<@{BOT}> hi"), replied(ANNA)])
    for author in (BEN, CLEO):
        manager.record_message(CHANNEL, said(author, "shut up", tells_off=True))
    manager.record_message(CHANNEL, said(CLEO, f"<@{BOT}> sorry"))
    for number in range(20):
        newest = said(ANNA, f"number {number}")
        manager.record_message(CHANNEL, newest)
    manager.revise(CHANNEL, replace(newest, content="edited"))
    assert [who for who in (ANNA, BEN, CLEO) if conversation.engagement.standing(who).told_off] == [BEN]
    manager.record_message(CHANNEL, said(BEN, f"<@{BOT}> sorry"))
    manager.revise(CHANNEL, newest)
    assert not conversation.engagement.standing(BEN).told_off
    manager.record_message(CHANNEL, said(BEN, "shut up", tells_off=True))
    conversation.trim(1, 10_000)
    manager.forget_author(CHANNEL, BEN)
    assert not conversation.engagement.standing(BEN).told_off


@pytest.mark.parametrize("is_told_off", [False, True])
def test_whoever_is_forgotten_is_gone_at_once_and_what_is_left_is_read_when_it_is_next_used(
    monkeypatch: pytest.MonkeyPatch, is_told_off: bool
) -> None:
    """Since somebody may have spoken in many conversations: to read them all would hold up everybody's messages."""
    read: list[MessageRecord] = []
    after = Engagement.after

    def reading(engagement: Engagement, message: MessageRecord, called: Collection[int] = ()) -> Engagement:
        read.append(message)
        return after(engagement, message, called)

    words = [said(ANNA, "ben are you coming"), said(BEN, "no"), said(CLEO, "ben?"), said(ANNA, f"<@{CLEO}> and you?")]
    told_off = frozenset({DAN} if is_told_off else ())
    conversation = ChannelConversation(CHANNEL, NOON, NOON, messages=words, told_off=told_off)
    assert conversation.engagement.people.keys() == {ANNA, BEN, CLEO, *told_off}
    monkeypatch.setattr(Engagement, "after", reading)
    conversation.forget(BEN)
    conversation.forget(DAN)
    assert read == []
    assert conversation.participants == {ANNA, CLEO}
    kept = conversation._heard  # not what is read anew
    assert not {BEN, DAN} & {*kept.engagement.people, *kept.before.people, *kept.named, *conversation.told_off}
    conversation.add(newest := said(CLEO, f"<@{ANNA}> yes"))
    assert read == [words[0], words[2], words[3], newest]
    assert conversation.engagement.people.keys() == {ANNA, CLEO}
    assert [*conversation.heard.named.values()] == [{CLEO}, {ANNA}]


# What the agent keeps for itself


def keep_words_of(manager: ConversationManager, message: MessageRecord) -> dict[str, object]:
    """The agent answers Ben, and keeps words of the message for itself."""
    metadata: dict[str, object] = {"ask_id": "a", "words_of": sources_of(message), "so": message.content}
    manager.record_message(CHANNEL, asked := said(BEN, "next"))
    prompt, response = turn(asked)
    manager.record_bot_response(CHANNEL, [prompt, replace(response, metadata=metadata)])  # the older turn is trimmed
    return metadata


def test_what_the_agent_keeps_goes_with_whose_words_it_holds_though_they_are_trimmed(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    keep_words_of(manager, secret)
    for _ in range(4):
        manager.record_message(CHANNEL, said(BEN))
    manager.forget_author(CHANNEL, ANNA)
    assert held(conversation) == [None]


def test_what_the_agent_keeps_stays_where_others_words_change(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    other = said(BEN, "hm", reply_to_id=secret.message_id, reply_to_author_id=ANNA, reply_to_author="Anna")
    manager.record_message(CHANNEL, other)
    metadata = keep_words_of(manager, other)
    edit(manager, secret)
    assert held(conversation) == [metadata]
    edit(manager, other)
    assert held(conversation) == [None]


@pytest.mark.parametrize("is_before", [True, False], ids=["before it", "meanwhile"])
def test_what_was_edited_before_the_turn_began_it_read_as_it_is(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord, *, is_before: bool
) -> None:
    edit(manager, secret)
    if is_before:
        conversation.begin_turn()
    metadata = keep_words_of(manager, secret)
    assert held(conversation) == [metadata if is_before else None]


@pytest.mark.parametrize("gone", [("message", 7), ("person", CLEO), ("channel", CHANNEL + 1)])
@pytest.mark.parametrize("is_meanwhile", [True, False])
def test_what_it_keeps_of_other_channels_goes_too(
    manager: ConversationManager, conversation: ChannelConversation, gone: Source, *, is_meanwhile: bool
) -> None:
    read = sources_of_reading(said(CLEO, "elsewhere", message_id=7), CHANNEL + 1)
    prompt, response = turn(said(BEN, "next"))
    history = [prompt, replace(response, metadata={"ask_id": "a", "words_of": read})]
    if is_meanwhile:
        with manager.hold(CHANNEL):
            assert manager.take_back(gone) == []
            manager.record_bot_response(CHANNEL, history)
    else:
        manager.record_bot_response(CHANNEL, history)
        assert manager.take_back(("message", 8), ("person", BEN), ("channel", CHANNEL)) == []
        assert manager.take_back(gone) == [CHANNEL]
    assert held(conversation) == [None]
    assert not conversation.waits


def test_what_is_taken_back_while_a_turn_is_made_is_bounded(conversation: ChannelConversation) -> None:
    conversation.take_back(("message", number) for number in range(MAX_REVISIONS + 5))
    assert len(conversation.taken_back) == MAX_REVISIONS
    conversation.begin_turn()
    assert not conversation.taken_back


def test_of_an_edit_whose_new_words_are_held_no_more_the_old_ones_are_told_no_more_either(
    manager: ConversationManager, conversation: ChannelConversation, secret: MessageRecord
) -> None:
    conversation.begin_turn()
    history = [*conversation.llm_history]
    conversation.revise(replace(secret, content="other words"))
    assert "other words" in model_reads(conversation.current(history))
    for number in range(MAX_EDITED):
        conversation.revise(said(BEN, f"edit {number}"))
    assert sum(map(bool, conversation.revisions.values())) == MAX_EDITED
    manager.record_bot_response(CHANNEL, history)
    assert "secret" not in model_reads(conversation.llm_history)
    conversation.trim(0, 0)
    conversation.remove([secret.message_id + number for number in range(1, MAX_REVISIONS + 5)])
    assert len(conversation.revisions) == MAX_REVISIONS
    assert len(conversation.revisions._edited) == 0


def test_a_reply_to_an_answer_that_was_trimmed_keeps_nothing_of_who_is_forgotten() -> None:
    conversation = ChannelConversation(CHANNEL, NOON, NOON)
    conversation.add(said(ANNA, "my secret"))
    conversation.add(answer := replied(BEN, "Anna has my secret"))
    conversation.add(said(BEN, "oh", reply_to_id=answer.message_id, reply_to_author_id=BOT, reply_to_text=answer.text))
    conversation.trim(2, 1_000)
    assert "my secret" in str(conversation.messages)
    conversation.forget(ANNA)
    assert [m.content for m in conversation.messages] == ["oh"]
    assert "my secret" not in str(conversation.messages)
