"""Finds the agents that a message asks for by name.

A name counts only in a phrase that calls an agent: "ask docs how ...", "docs: ...", "@docs", "use docs for this", "let
docs answer", "docs agent, ...", "a question for docs: ...". A request must begin a sentence or clause: "I asked docs"
calls nobody. A mere mention ("the docs are wrong") is no call, nor is anything in quotations or code, or in the middle
of a long message. A call that is missed may still be understood by the model; a wrong one is never corrected.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from state.agent_state import GENERAL
from understanding.wording import NOT_WORDS, TOO_COMMON

YOURSELF = "yourself"  # the general agent, to those who talk to the bot

NOT_SAID = re.compile(r'```.*?(?:```|\Z)|`[^`\n]+`|"[^"\n]+"|“[^“”\n]+”|^>[^\n]*', re.DOTALL | re.MULTILINE)
LEFT_OUT = "…"
MAX_LENGTH = 1_200  # characters: of a longer message, half as many at its beginning and at its end
CUT = "/"  # in place of its middle: neither begins a clause nor ends a word
CALLED_ON = re.compile(r"<@!?\d{1,20}> ?[,:]")  # "<@1>: ask docs"
SEPARATORS = re.compile(r"[\s_-]+")
AGENT_BEHIND = re.compile("(?<! agent)(?: agent)++$")
NEVER = "(?!)"
CLAUSE = r"(?:^|[.!?;,…]| [-–—]) *"
# None is made of others, as "go and" is: else there are many ways to read a row of them, and all are tried.
LEADS = r"""and|then|so|but|also|now|well|ok|okay|alright|right|cool|nice|great|good|thanks|thank you|thx|no|yes|yeah
sure|sorry|actually|hmm|wait|instead|maybe|perhaps|first|next|hey|hi|hello|yo|please|pls|plz|just|kindly|quickly
(?:can|could|will|would) (?:you|u|we)|let's|lets|let us|i(?:'d| would) like (?:you )?to|i (?:want|need) (?:you )?to
you (?:should|could)|go""".replace("\n", "|")
REQUEST = rf"{CLAUSE}(?:(?:{LEADS})\b[ ,]*){{0,8}}"
ASKED = r"ask|tell|consult|check with"
SENT = r"use|try|let|have|switch to|go to|talk to|(?:hand|give|pass|send|forward) (?:this|that|it)(?: on| over)? to"
# "Let docs handle it" is a call, "let sql handle the sorting" is not.
DONE = r"""answer|reply|respond|explain|take over|have a (?:go|look)|look (?:at|into|up|it|this|that)
(?:do|take|handle|try|check|find|search|help|tell|see) (?:this|that|it|these|them|me|us)""".replace("\n", "|")
THIS = r"for (?:this|that|it|these|those|them)(?: (?:one|time|question|please|too|instead|now))*(?= ?(?:$|[^\w ]))"
# What may follow an agent's name: "ask docs how ..."; but "ask docs people ..." asks somebody else.
GOES_ON = r"""what|what's|whats|why|how|how's|when|where|where's|which|who|who's|whose|whether|if|is|are|was|does|do|did
can|could|should|about|for|to|and|or|then|again|please|pls|too|also|instead|first|next|now|that|this|these|the|a|an|my
our|me|not|but|because|it""".replace("\n", "|")
AFTER = rf"(?= ?(?:$|[^\w '/-]|[-–—] )| (?:{GOES_ON})\b)"
DENIED = r"(?:\b(?P<denied>not|no|never|don't|dont|without|than|instead of)(?: \w+)? )?"


def called(text: str, names: Collection[str]) -> set[str]:
    """Those of the names (letters, digits, - and _) that a message calls. text: as posted.

    In the message, hyphens, underscores and spaces are equal. A name that is a very common word ("it", "go") is only
    called by "the it agent", "@it" or "it: ...". "yourself" is the general agent, if that is among the names.
    """
    # Casefolded, with single spaces, without quotations, code, links and mentions.
    plain = NOT_WORDS.sub(" ", CALLED_ON.sub(", ", NOT_SAID.sub(LEFT_OUT, text)))
    searched = re.sub(r"[^\S\n]+", " ", plain.replace("*", "").replace("’", "'")).strip(" ,\n").casefold()
    if len(searched) > MAX_LENGTH:
        searched = f"{searched[: MAX_LENGTH // 2]}{CUT}{searched[-MAX_LENGTH // 2 :]}"
    agents: dict[str, set[str]] = {}
    for name in names:
        agents.setdefault(spoken(name), set()).add(name)
    if GENERAL in names:
        agents.setdefault(YOURSELF, {GENERAL})
    agents.pop("", None)
    any_name, shapes = _shapes(frozenset(agents))
    calls = (call for shape in shapes for call in shape.finditer(searched) if not call.groupdict().get("denied"))
    return {agent for call in calls for one in any_name.findall(call["called"]) for agent in agents[spoken(one)]}


def spoken(name: str) -> str:
    """A name as it is spoken: casefolded, with spaces between its words, without "agent" at its end. Names that are
    spoken alike cannot be told apart, and one that is empty when spoken cannot be called."""
    return AGENT_BEHIND.sub("", SEPARATORS.sub(" ", name.casefold()).strip())


@lru_cache(maxsize=8)
def _shapes(names: frozenset[str]) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    """A pattern for any of the names, and the patterns of phrases that call some of them, in the group "called"."""
    name, clear, common = map(_any_of, (names, names - TOO_COMMON, names & TOO_COMMON))
    agent = r"[ -](?:agents?|bots?)\b(?!['-])"
    one = rf"(?:(?:the|your|our) )?(?:{clear}(?:{agent})?|{common}{agent})"
    some = rf"(?P<called>{one}(?:(?: ?[,&] ?| )(?:(?:and|or|then) )?{one})*)"
    some_agents = rf"{some}(?:(?<=agent)|(?<=agents)|(?<=bot)|(?<=bots))"
    start = r"\A[\s…]*(?:(?:hey|hi|hello|yo|ok|okay|so|and|but|please|thanks|now)[ ,]+)*"
    shapes = (
        rf"{REQUEST}(?:{ASKED}) {some_agents}",
        rf"{REQUEST}(?:{ASKED}) {some}{AFTER}",
        rf"{REQUEST}(?:{SENT}) {some_agents}",
        rf"{REQUEST}use {some} {THIS}",
        rf"{REQUEST}(?:let|have|get) {some} (?:to )?(?:{DONE})\b",
        rf"{REQUEST}(?:answer|do)(?: this| that| it)?(?: one)? (?P<called>{YOURSELF})\b(?!-)",
        rf"{CLAUSE}(?:(?:i have|i've got|this is|that's|a|one|quick|another|my|next) )*question for {some}{AFTER}",
        rf"{start}(?P<called>{name})(?:{agent})?: +\S",
        rf"{start}(?P<called>{name}){agent}(?: ?[,!]| [-–—] | (?:please|pls|how|what|why|where|who|can|could)\b)",
        rf"\A(?:hey|hi|hello|yo) (?P<called>{clear}) ?,",
        rf"(?<![\w@./-]){DENIED}@(?P<called>{name})(?![:@]\S)",
    )
    return re.compile(name), tuple(re.compile(shape, re.MULTILINE) for shape in shapes)


def _any_of(names: Collection[str]) -> str:
    """A pattern for any of the names as whole words, the longest first."""
    ways = (re.escape(one).replace(r"\ ", "[ _-]+") for one in sorted(names, key=len, reverse=True))
    return rf"(?<![\w-])(?:{'|'.join(ways) or NEVER})(?![\w/]|-(?!agent|bot)\w|[.']\w)"
