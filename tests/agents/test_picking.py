"""agents/picking.py: whom a message calls, and what is no call."""

from __future__ import annotations

import time

import pytest

from agents.picking import called, spoken
from state.agent_state import GENERAL

NAMES = ["docs", "user-management", "sql", "weather", "it", "go", GENERAL]

DOCS = r"""ask the docs agent how to install it
Ask docs how to install it
ask docs: how do I install it?
ask docs
ask **docs** what a foo is
where it says “never”, ask the docs agent
@docs-agent how do I install it?
<@1> ask docs where the logs are
<@1> can you ask docs whether it runs on ARM?
<@1>: ask docs where the logs are
hey <@1>: ask docs where the logs are
I am lost <@1>, ask docs
<@!1>, could you please ask the docs agent about nonces
Please ask the Docs Agent for the install steps.
please, ask your docs agent
hey, ask docs if that is so
ok then ask docs again
let's ask docs
I don't know. Ask docs!
I don't know, ask docs
that is not enough; ask docs too
it fails on Windows - ask docs why
I'd like to ask docs about the API
I want you to ask the docs agent about limits
would you ask docs instead of sql?
ask docs, not sql
ask the docs bot what a shard is
ask docs "what is a shard"
tell the docs agent that it was wrong
tell docs to look again
consult docs about it
check with docs first
> the docs are wrong\nask docs why
docs: how do I install it?
Docs: how do I install it?
<@1>: docs: how do I install it?
<@1> docs: `pip` fails, why?
hey docs: how do I install it?
docs agent: how do I install it?
docs-agent: how do I install it?
docs agent, how do I install it?
hey docs agent, how do I install it?
docs agent how do I install it
docs agent please explain shards
hey docs, how do I install it?
@docs how do I install it?
how do I install it @docs?
how do I install it? (@docs)
thanks @docs
@docs: how do I install it?
use docs for this
use the docs agent for this
please use docs for this question
use docs for this: how do I install it?
how do I install it? use docs for that.
use the docs agent
let docs answer
let docs answer this
let the docs agent have a look
let docs handle it
have the docs agent check this
get docs to answer
switch to the docs agent
I want to talk to the docs agent
pass this on to the docs agent
question for docs: how do I install it?
I have a question for the docs agent: how do I install it?
quick question for docs, how do I install it?
that's a question for docs"""

OTHERS = {
    "user-management": """ask user-management to reset my password
ask user management to reset my password
ask user_management to reset my password
Ask the User Management agent to reset my password
ask User-Management
user management: reset my password
user-management agent, reset my password
@user-management reset my password
@user_management reset my password
use user management for this
let user management handle this""",
    "sql": """ask SQL how many users there are
sql: how many users are there?
@SQL how many users are there?
use sql for this, please
let the sql agent do the counting
ask the sql agent nicely""",
    "weather": """ask weather about tomorrow
ask the weather agent about tomorrow
weather: tomorrow in Bern?
let weather answer""",
    "it": """ask the it agent about my laptop
ask the IT agent about my laptop
IT: my laptop is dead
it agent, my laptop is dead
@it my laptop is dead
use the it agent for this
let the IT agent answer""",
    "go": """ask the go agent about channels
go: what is a channel?
go agent, what is a channel?
@go what is a channel?""",
    GENERAL: """ask the general agent
ask the general agent what it thinks
ask general about it
general agent, what do you think?
@general what do you think?
general: what do you think?
ask yourself
answer this yourself
no, answer that one yourself
use the general agent for this
let the general agent answer""",
}

NOBODY = r"""the docs are wrong
The docs say otherwise
docs
docs?
docs are down
I read the docs
read the docs
check the docs
see the docs for this
where are the docs?
can I use the docs for reference?
use docs for reference
I asked the docs agent yesterday
I will ask docs tomorrow
did you ask docs?
did <@12> ask docs?
don't ask docs
please don't ask the docs agent
do not use docs for this
let's not ask docs
can you not ask docs
no need to ask docs
why ask docs when it is always wrong?
he told me to ask docs
Ben asked docs
can somebody ask docs?
not @docs
please don't ask @docs
the docs agent is down
the docs agent, which is down, was useful
docs agent is down
is the docs agent up?
I like the docs agent
ask the docs team
ask docs people
ask the docs agent's author
ask docsify how it works
ask docs.example.com about it
ask docs-old about it
ask docs/install about it
ask the doc about it
he said "ask docs"
it says "No. Ask docs!"
see `@docs`
> hm, ask docs\nwhat does that mean?
he said “ask the docs agent”
`ask docs`
```\nask docs\n```
```\ndocs: ask\n
> ask the docs agent\nwhat does that mean?
docs: https://docs.example/ask
docs:
docs:latest is broken
docs::install fails
fix(docs): a typo
the docs: where are they?
npm install @docs/core
mail foo@docs.example
mail foo@docs
the path a/@docs
@docs.py fails
@docsify
@docs-team
@docs:latest
https://example.com/@docs
weather, food and hotels are paid
let the weather decide
how is the weather?
tell weather jokes
nice weather, ask Ben
let sql handle the sorting
use sql
use sql for the query
use sql for this query
write it in sql
make docs look nicer
ask it
ask it again
ask it about my laptop
use it for this
let it answer
let it go
it, too
it is broken
tell it to stop
go
go on
go, ask Ben
let's go
have a go
use go for this
ask go
hey, it works
user management is broken
manage the user: ask Ben
ask user what they want
ask the user about it
ask general questions
ask a general question
in general: what do you think?
General, what is that?
do it yourself-like
you yourself said so
ask Ben
ask me anything
- ask docs\n- call Ben"""


@pytest.mark.parametrize("text", DOCS.splitlines())
def test_docs_is_called(text: str) -> None:
    assert called(text.replace(r"\n", "\n"), NAMES) == {"docs"}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in OTHERS.items() for text in texts.splitlines()]
)
def test_others_are_called(name: str, text: str) -> None:
    assert called(text, NAMES) == {name}


@pytest.mark.parametrize("text", NOBODY.splitlines())
def test_a_mere_mention_is_no_call(text: str) -> None:
    assert called(text.replace(r"\n", "\n"), NAMES) == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ask docs and sql", {"docs", "sql"}),
        ("ask the docs agent and the sql agent what they think", {"docs", "sql"}),
        ("ask the docs and weather agents", {"docs", "weather"}),
        ("ask docs, sql and user management about it", {"docs", "sql", "user-management"}),
        ("ask docs or weather?", {"docs", "weather"}),
        ("@docs @sql what now?", {"docs", "sql"}),
        ("@sql what now? not @docs", {"sql"}),
        ("ask docs. Then ask yourself if that is so", {"docs", GENERAL}),
        ("docs: what does the it agent do? ask sql", {"docs", "sql"}),
    ],
)
def test_several_can_be_called_at_once(text: str, names: set[str]) -> None:
    assert called(text, NAMES) == names


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("ask yourself", ["docs"], set()),
        ("ask docs", [], set()),
        ("", NAMES, set()),
        ("@- hello", ["-", "___", "docs"], set()),
        ("ask the docs agent", ["docs", "he"], {"docs"}),
        ("@user management look", ["user", "user-management"], {"user-management"}),
        ("ask user-management to look", ["user", "user-management"], {"user-management"}),
        ("ask user to look", ["user", "user-management"], {"user"}),
        ("ask user management to look", ["user-management", "user_management"], {"user-management", "user_management"}),
        ("ask the docs agent", ["docs-agent"], {"docs-agent"}),
        ("docs agent, look", ["docs-agent"], {"docs-agent"}),
        ("ask the docs agent agent", ["docs-agent-agent"], {"docs-agent-agent"}),
        ("ask the STRASSE agent", ["Straße"], {"Straße"}),
        ("ask r2d2 how", ["R2D2"], {"R2D2"}),
        ("ask 天気 about it", ["天気"], {"天気"}),
        ("ask yourself", [GENERAL, "yourself"], {"yourself"}),
    ],
)
def test_names_of_all_kinds(text: str, names: list[str], expected: set[str]) -> None:
    assert called(text, names) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Docs", "docs"),
        ("user-management", "user management"),
        ("_user__Management-", "user management"),
        ("docs-agent", "docs"),
        ("docs_Agent-agent", "docs"),
        ("agent", "agent"),
        ("agent-agent", "agent"),
        ("Straße", "strasse"),
        ("-_-", ""),
    ],
)
def test_a_name_is_said_in_one_way(name: str, said: str) -> None:
    assert spoken(name) == spoken(said) == said


@pytest.mark.parametrize(
    "unit",
    [
        "please ",
        "please, can you ",
        "ask docs, ",
        "docs ",
        "ask the ",
        "@",
        "not ",
        "not @",
        "> ",
        '"',
        "the ",
        ", ",
        "`\n",
        "…",
        "<@1>",
        "\n",
        "a",
    ],
)
def test_a_long_message_takes_no_time(unit: str) -> None:
    called("ask docs", NAMES)
    text = unit * (4000 // len(unit))
    began = time.process_time()
    called(text, NAMES)
    assert time.process_time() - began < 0.1
