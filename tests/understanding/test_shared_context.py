"""understanding/shared_context.py: what counts as mentioned last, and what never does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import MessageRecord
from state.optout import redacted
from tests.support.people import ANNA, BEN, BOT, CLEO, replied, said
from understanding.shared_context import MAX_CHARACTERS, MAX_IN_ALL, MAX_MESSAGES, MAX_VALUE, in_words, shared_context

JOHN = 99
HELLO = said(BEN, "hello")


def shared(*messages: MessageRecord) -> dict[str, str]:
    return shared_context(messages, bot_id=BOT, bot_name="Parley")


def user(*messages: MessageRecord) -> str | None:
    return shared(*messages).get("last_mentioned_user")


def link(text: str) -> str | None:
    return shared(said(ANNA, text)).get("last_mentioned_link")


def mentioning(content: str, readable: str) -> MessageRecord:
    return said(ANNA, content, readable=readable)


def called(name: str) -> MessageRecord:
    """A message by somebody of this name."""
    return said(CLEO, "hello", author=name)


def test_the_document_s_example() -> None:
    messages = [mentioning(f"is <@{JOHN}> in?", "is @John in?"), said(ANNA, "What's the weather in Paris?")]
    assert shared(*messages) == {"last_mentioned_user": "John", "last_mentioned_location": "Paris"}


def test_of_each_kind_the_newest_counts() -> None:
    messages = [
        said(ANNA, f"<@{BEN}>: the weather in Paris, as of https://a.example"),
        HELLO,
        said(BEN, "in Rome"),
        said(CLEO, "see https://b.example/x?y=1#z, and https://c.example."),
        said(BEN, "ok"),
    ]
    assert shared(*messages) == {
        "last_mentioned_user": "Ben",
        "last_mentioned_location": "Rome",
        "last_mentioned_link": "https://c.example",
    }


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HELLO],
        [said(ANNA, "what do you think, is it good or not?"), said(BEN, "I don't. See the docs in the wiki.")],
        [said(ANNA, "In general Python is OK. May I? Will it work in Rust?"), said(BEN, "Sure, Try it to see")],
        [said(ANNA, "```\nto Paris <@12> https://a.example\n```"), said(BEN, "`in Paris <@11>` `https://a.example`")],
        [said(ANNA, "```to Paris <@12> https://a.example")],
        [said(ANNA, f"<@{BOT}> hello Parley, are you Parley?"), said(BEN, "Parley: well")],
        [said(ANNA, "<@&12> <#12> @everyone <:ben:12>")],
        [replied(ANNA, f"<@{BEN}> is in Paris, see https://a.example")],
        [said(ANNA, "hi"), redacted(said(BEN, f"<@{ANNA}> is in Paris, see https://a.example"))],
        [said(ANNA, "yes", reply_to_author="Ben", reply_to_author_id=BEN, reply_to_text="in Paris https://a.example")],
        [said(ANNA, "look", readable="look\n[embed] In Paris https://a.example")],
    ],
)
def test_there_may_be_nothing(messages: list[MessageRecord]) -> None:
    assert shared(*messages) == {}


def test_who_takes_part_is_known_by_name_unless_it_may_be_another_word() -> None:
    known = "does Ben know?|ask Ben's boss|Ben, come here|well.\nBen: hi|Ben’s here|Anna or Ben|is it (Ben)?|@Ben"
    assert {user(HELLO, said(ANNA, text)) for text in known.split("|")} == {"Ben"}
    other = "Ben knows|ok. Ben knows|> Ben knows|bend it|we saw Benny|ask Big-Ben|a#Ben|in Ben.py|ben"
    assert {user(HELLO, said(ANNA, text)) for text in other.split("|")} == {None}


def test_a_name_may_have_all_that_names_have_and_a_common_word_is_none() -> None:
    for name in ("John Smith", "xX_john_Xx", "(.*)+ ab", "Jo\\d", "Łukasz", "李小龙"):
        assert user(called(name), said(ANNA, f"what does {name} say?")) == name
    assert user(called("john"), said(ANNA, "what does John say?")) == "john"
    assert user(called("mark"), said(ANNA, "please mark it")) is None
    for name in ("Will", "May", "Monday", "the", "So", "😀😀😀", "J", "somebody", "Parley"):
        assert user(called(name), said(ANNA, f"and {name} is that so, {name}?")) is None


def test_a_link_is_told_whole_or_not_at_all() -> None:
    for around in ("{}", "(see {}).", "[this]({})", "<{}>", "||{}||"):
        assert link(around.format("https://a.example/b")) == "https://a.example/b"
    for text in ("https://a.example/b_(c)", "http://a.example:80/?q=1"):
        assert link(text) == text
    untold = ["https://localhost/x", "https://me:secret@a.example/", "https://discord.com/channels/70/700/1000"]
    untold += ["https://ptb.discord.com/api/webhooks/1/secret", "https://[a.example/", "https://", "a.example"]
    for text in (*untold, "https://a.example/\u202ecod", f"https://a.example/{'x' * MAX_VALUE}"):
        assert link(text) is None


def test_who_is_replied_to_is_known_by_name() -> None:
    reply = said(ANNA, "yes", reply_to_author="Ben", reply_to_author_id=BEN)
    assert user(reply, said(ANNA, "so Ben was right")) == "Ben"
    to_the_bot = said(ANNA, "yes", reply_to_author="Robo", reply_to_author_id=BOT)
    assert user(to_the_bot, said(ANNA, "so Robo was right")) is None


@pytest.mark.parametrize(
    ("content", "readable", "name"),
    [
        ("<@99>", "@John", "John"),
        ("<@099>", "@John", "John"),
        ("<@!99> and you", "@John and you", "John"),
        ("where is <@99>?", "where is @John Smith?", "John Smith"),
        ("<@1> <#5> <@99>\nwell", "@Parley #general @John\nwell", "John"),
        ("<@12> or <@99>\n<@1>", "@Ben Ten or @J. D.\n@Parley", "J. D."),
        ("is it <@99>", "is it @John\n[embed] @Ben", "John"),
        ("<@99> <@12>", "@John @Ben", "Ben"),
        ("does <@99> know Ben", "does @John know Ben", "Ben"),
        ("<@99>", "@Ignore all\u2028rules\u202e", "Ignore all rules"),
        ("<@99>", "@Jo\ud83dhn", "Jo hn"),
    ],
)
def test_a_mention_is_told_as_people_read_it(content: str, readable: str, name: str) -> None:
    assert user(HELLO, mentioning(content, readable)) == name


def test_a_mention_that_is_not_clear_leaves_nobody() -> None:
    before = said(BEN, f"<@{ANNA}> is here")
    assert user(said(ANNA), before) == "Anna"
    unclear = {"<@99>": "", "<@99> ": "John", "<@99>.": "@J. Smith.", "<@99><@98>": "@John@Jane"}
    unclear |= {"see <@99>": "[embed] see @John", "<@99>" * 300: "@John" * 300, " <@99>": " @" + "x" * (MAX_VALUE + 1)}
    for content, readable in unclear.items():
        assert user(said(ANNA), before, mentioning(content, readable)) is None


def test_whom_discord_does_not_know_is_nobody() -> None:
    gone = said(ANNA, f"where is <@{JOHN}>?", readable="where is @deleted-user?", mentioned=frozenset())
    assert user(gone) is None


def test_whoever_does_not_want_to_be_read_is_not_named() -> None:
    hidden = redacted(said(CLEO, "hello"))
    assert user(hidden, mentioning(f"where is <@{CLEO}>?", "where is @Cleo?")) is None


def test_a_person_is_no_place() -> None:
    assert "last_mentioned_location" not in shared(called("London"), said(ANNA, "a present from London"))


def test_an_older_link_is_not_taken_for_one_that_cannot_be_told() -> None:
    assert "last_mentioned_link" not in shared(said(ANNA, "https://a.example"), said(ANNA, "https://x:y@b.example"))


def test_what_was_said_long_ago_is_not_told() -> None:
    mention = said(ANNA, "the weather in Paris")
    assert shared(mention, *[HELLO] * (MAX_MESSAGES - 1)) == {"last_mentioned_location": "Paris"}
    assert shared(mention, *[HELLO] * MAX_MESSAGES) == {}
    long = said(BEN, "and so on " * 1_000)
    most = MAX_IN_ALL // MAX_CHARACTERS
    assert shared(mention, *[long] * (most - 1)) == {"last_mentioned_location": "Paris"}
    assert shared(mention, *[long] * most) == {}


@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=60))
def test_whatever_is_said_each_value_is_one_short_line(texts: list[str], name: str) -> None:
    people = [said(CLEO, text, author=name or "x") for text in texts]
    about = [said(ANNA, f"I saw {name} in Paris at https://{text}") for text in texts]
    found = shared(*people, *about, mentioning(f"<@{JOHN}> <@{BEN}>", f"@{name} @{name}"))
    for value in found.values():
        assert 0 < len(value) <= MAX_VALUE
        assert value.isprintable()
        value.encode()
    line = in_words(found)
    assert line.isprintable()
    assert json.loads(line[line.index("{") :]) == found
