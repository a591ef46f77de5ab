"""The demo model: no key, no network, deterministic. It repeats messages, and says in every answer what it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents.asking import CALLED_OFF, MAX_OPTIONS

SECONDS_PER_LINE = 0.3  # slow enough to see it stream and to stop it
MAX_QUOTE = 80
LABEL = "-# I am only the demo model: set `MODEL` and its key for real answers."
CODE = "```python\ndef greet(name: str) -> str:\n    return f'Hello, {name}!'\n```"
# The form of a message in prompts: "Ada (replying to Ben: 'why?'): because".
SAID = re.compile(r"(?!\(Note: )(?P<author>[^:]{1,60}?)(?P<bot> \(you\))?(?: \(replying to .*?\))?: (?P<text>.*)")
CHOOSE = re.compile(r"\b(?:choose (?:between|from|among)|which(?: one)?:)\s+(?P<options>.+)", re.IGNORECASE)
ASK = re.compile(r"\bask me (?P<to_confirm>to confirm\s*)?(?P<what>.*)", re.IGNORECASE)
SEPARATOR = re.compile(" ?, ?(?:(?:or|and) )?| (?:or|and) ")  # of a text whose spaces are single
LONG = re.compile(r"\ba (?:very )?long\b", re.IGNORECASE)
IN_FULL = re.compile(r"^\(Note: Read in full, (?>.*? is: )(?P<full>.*)\)", re.MULTILINE)
# The forms of files in prompts (files/reading.py): one that was read, one that cannot be read.
FILE, NO_ORDERS, UNREAD = '(The file "', "gives you no orders.", '(You cannot read the file "'
CONTINUED = re.compile(r"\n {4}")
# A question mark in the bot's text would count as a question that awaits an answer.
QUESTION_MARKS = re.compile(r"(?<!\s)\s*+[?？؟⁇⁈⁉‽¿]")
LONG_PARAGRAPH = "This is what a long answer looks like: it grows as you watch, and goes on in a new message. " * 4


def demo_model() -> FunctionModel:
    """A model for pydantic-ai that answers from its prompt."""
    return FunctionModel(_respond, stream_function=_stream, model_name="demo")


async def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if not info.output_tools:
        return ModelResponse(parts=[TextPart(_answer(messages))])
    # The judge's request: the demo model rules that every question is meant for the bot.
    lines = _lines(messages)
    asks = bool(lines) and "?" in lines[-1][1]
    ruling = {"evidence": "it is a question" if asks else "it is no question", "meant_for_bot": asks}
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, ruling)])


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    results = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    lines = _lines(messages)
    if results:
        yield f"{_resolved(results[0])}\n\n{LABEL}"
    elif info.function_tools and (call := _question(lines[-1][1] if lines else "")):
        yield LABEL
        yield {0: call}
    else:
        for number, line in enumerate(re.findall(r"[^\n]+\n*", _answer(messages))):
            await asyncio.sleep(SECONDS_PER_LINE if number else 0)
            yield line


def _question(text: str) -> DeltaToolCall | None:
    """The call of a tool that asks people, if the message tells it to ask; else None."""
    if choose := CHOOSE.search(text):
        options = list(dict.fromkeys(filter(None, SEPARATOR.split(choose["options"].strip(" ?.!")))))
        return _call("ask_choice", question="Which one?", options=options) if 2 <= len(options) <= MAX_OPTIONS else None
    if not (ask := ASK.search(text)):
        return None
    what = ask["what"].strip(" ?.!")
    if ask["to_confirm"]:
        return _call("ask_confirmation", question=f"Do you confirm this: {what or 'all of it'}?")
    return _call("ask_text", question=f"You wanted me to ask you this: {what or 'anything'}. What do you say?")


def _call(name: str, **arguments: object) -> DeltaToolCall:
    return DeltaToolCall(name, json.dumps(arguments), tool_call_id="demo-1")


def _resolved(result: ToolReturnPart) -> str:
    """The text of an answer after its question was answered."""
    if result.content == CALLED_OFF:
        return "You called that off."
    if isinstance(result.content, bool):
        return f"You said {'yes' if result.content else 'no'}."
    return f"You {'chose' if result.tool_name == 'ask_choice' else 'said'} “{_quote(str(result.content))}”."


def _answer(messages: list[ModelMessage]) -> str:
    told = _told(messages)
    if not told:
        return LABEL
    lines = _lines(messages)
    (author, text), earlier = lines[-1], lines[:-1]
    heard = f"{author}, you said “{_quote(text)}”"
    if full := IN_FULL.search("\n".join(_prompts(messages[-1:]))):
        heard += f", which I read as “{_quote(full['full'])}”"
    if earlier:
        who, what = earlier[-1]
        heard += f"; before that {'you' if who == author else who} said “{_quote(what)}”"
    extras = [" ".join(files)] if (files := list(_files(told[-1][1]))) else []
    extras += [CODE] if "code" in text.lower() else []
    extras += [LONG_PARAGRAPH.strip()] * 12 if LONG.search(text) else []
    return "\n\n".join([f"{heard}.", *extras, LABEL])


def _files(text: str) -> Iterator[str]:
    """Sentences about the files attached to a message."""
    for piece in text.split(FILE)[1:]:
        name, _, rest = piece.partition('"')
        inside = rest.partition(NO_ORDERS)[2].partition(") ")[2].partition(" (End of the file.)")[0]
        yield f"In {_quote(name)} stands “{_quote(inside)}”."
    for piece in text.split(UNREAD)[1:]:
        name, _, why = piece.partition('": ')
        yield f"Of {_quote(name)} I am told “{_quote(why.partition('. Say so;')[0])}”."


def _lines(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    """People's messages without their files, oldest first: author and text."""
    return [(author, text.partition("[attachment: ")[0].strip()) for author, text in _told(messages)]


def _told(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    """The same with their files, up to the last message of the person to answer."""
    prompts = list(_prompts(messages))
    lines = (SAID.match(line) for text in prompts for line in CONTINUED.sub(" ", text).splitlines())
    peoples = [(line["author"], line["text"].strip()) for line in lines if line and not line["bot"]]
    # Each on one line, without the mention it begins with.
    told = [(author, " ".join(re.sub(r"^@\S+\s+", "", text).split())) for author, text in peoples]
    # In the form of agents/turn_input.py; of several people, the last.
    _, _, asked = prompts[-1].rpartition('answer "') if prompts else ("", "", "")
    who = asked.rpartition(', "')[2].removesuffix('".')
    while who in {author for author, _ in told} and told[-1][0] != who:
        told.pop()
    return told


def _prompts(messages: list[ModelMessage]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                items = [part.content] if isinstance(part.content, str) else part.content
                yield from (item for item in items if isinstance(item, str))


def _quote(text: str) -> str:
    """The text to be repeated: short, and without question marks."""
    plain = QUESTION_MARKS.sub("", text)
    return f"{plain[:MAX_QUOTE]}…" if len(plain) > MAX_QUOTE else plain or "…"
