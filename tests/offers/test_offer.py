"""offers/offer.py: what typed words answer to an offer, and what is no answer to it."""

from __future__ import annotations

import pytest

from offers.offer import LABELS, Ending, Offer, Reply, read_reply
from tests.support.clock import NOON
from tests.support.offers import note_at, occasion
from tests.support.people import ANNA, GUILD, said

YES = """
yes
Yes!
YES
yes please
Yes, please
yes pls
yep
yeah
yup
sure
sure, go ahead
ok
okay, do it
alright
y
👍
👍🏽
✅
please
please do
go ahead
go for it
do it
of course
absolutely
definitely
yes, that would be great
that would be great
that would be nice, thanks
yes thank you
yes, help me
sounds good
I'd love that
yes, if you can
"""
NOT_NOW = """
no
No.
nope
nah
No thanks
no, thank you
not now
Not now
not now, thanks
not right now
later
maybe later
no need
n
👎
I'm good
I'm fine, thanks
never mind
nvm
please don't
stop
go away
not interested
cancel
"""
NOT_HERE = """
not in this channel
Not in this channel
not in this channel please
please not in this channel
not here
not here thanks
no, not here please
not in here
never here
never in this channel
never again in this channel
do not offer help in this channel
no more offers here please
"""
NOTHING = """
yes I saw that film
no idea, Chloe?
here is not the place to discuss, is it
yes Ben, that's the one
yes, it's on debian 12
yeah the log says permission denied
oh yes, that happened to me too
yes man it rocks
sure thing Ben, I'll send you the file
sure is quiet in here
ok so it is version 2.1 on debian
ok I rebooted and it is still there
ok lunch then
okay Dan I will
now it works
yesterday it worked
yes but only on Linux
yes or no
well yes and no
no one knows apparently
no luck so far
no sugar for me
no problem Ben
no, it's nginx
no wait, it is nginx
nobody else? not even here?
I'm not from here
certbot is not installed here
it's not working here
it does not work in this channel
I have never seen that error here
it's not that cold here
the file is not here
can't believe it's not here yet
I am not sure it belongs here
no it's not in this channel, look at the other one
is anybody here?
why is nobody here
the first server is down too
right, the second server
2 servers actually
1
the second one
my second try failed too
later today I will try again
try it with sudo first, they said
great, now the server is down as well
cool, the game starts at 8
good question
good morning
not sure
maybe
hm
haha
thanks
thank you!
I tried that already
what do you mean?
please help, anyone
<@12> look
https://example.org/yes
"""


@pytest.mark.parametrize("words", YES.strip().splitlines())
def test_these_words_take_an_offer_up(words: str) -> None:
    assert read_reply(words) is Reply.YES


@pytest.mark.parametrize("words", NOT_NOW.strip().splitlines())
def test_these_words_decline_it(words: str) -> None:
    assert read_reply(words) is Reply.NOT_NOW


@pytest.mark.parametrize("words", NOT_HERE.strip().splitlines())
def test_these_words_want_none_in_this_channel(words: str) -> None:
    assert read_reply(words) is Reply.NOT_HERE


@pytest.mark.parametrize("words", ["", " ", "?", *NOTHING.strip().splitlines()])
def test_what_people_say_to_each_other_answers_no_offer(words: str) -> None:
    assert read_reply(words) is None


def test_each_quick_reply_can_be_typed() -> None:
    assert [read_reply(label) for label in LABELS.values()] == list(LABELS)


@pytest.mark.parametrize("words", ["yes", "no", "not here"])
def test_whoever_says_more_says_something_else_too(words: str) -> None:
    assert read_reply(" ".join([words] * 30)) is None
    assert read_reply(words + " please" * 5_000) is None


def test_the_quick_replies_stand_in_their_order() -> None:
    assert tuple(LABELS) == tuple(Reply) == (Reply.YES, Reply.NOT_NOW, Reply.NOT_HERE)


def test_an_offer_is_about_its_question_or_about_what_its_note_goes_back_to() -> None:
    question = said(ANNA)
    about = Offer("o1", occasion(question), NOON, GUILD, "Shall I try?")
    assert (about.subject_id, about.user_id) == (question.message_id, ANNA)
    note = note_at(NOON, source_id=77)
    assert Offer("o1", occasion(note=note), NOON, GUILD, note.text).subject_id == 77
    assert Offer("o1", occasion(), NOON, GUILD, "?").subject_id == 0


def test_an_offer_that_was_taken_up_still_says_what_it_was() -> None:
    offer = Offer("o1", occasion(said(ANNA)), NOON, GUILD, "Shall I try?")
    assert offer.taken_up == "Shall I try?\n-# ✓ Yes, please"


def test_endings_are_named_as_they_are_logged() -> None:
    assert set(Ending) == {"accepted", "declined", "ignored", "not_here", "overtaken", "withdrawn"}
