"""The state of one run of the general agent: what the model was sent, what it answered and what it used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from pydantic_ai import DeferredToolResults, ToolDenied
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextContent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings

from agents.asking import CHANGED, find_suspended, without_results
from agents.bounded_client import MAX_PARTS
from agents.declining import SILENT, may_become_silent
from agents.gateway import NOBODY, AgentRequest, Asked
from agents.lighter_requests import without_joiners
from agents.models import CACHED, SETTINGS, NamedModel
from agents.server_state import ServerState
from agents.shortening import weight_of
from agents.thoughts import BareThoughts, without_bare_thoughts
from agents.tool_use import is_tool_use
from agents.turn_input import (
    as_noted_now,
    as_sent,
    flattened,
    has_images,
    is_picture,
    told_since,
    without_pictures,
)
from state.message import MessageRecord, Source
from state.spending import CHARACTERS_PER_TOKEN, LONG_ANSWER, RARE, Lost, Spent, rare_in

# Six Discord messages: a longer answer is rambling.
MAX_ANSWER_CHARACTERS = 12_000
MAX_OUTPUT_CHARACTERS = 64_000  # of one answer, with its thoughts and the arguments of tool calls
# Of what is for the provider itself: encrypted thoughts, which are sent again, results of tools that it runs unasked.
MAX_SIGNED_CHARACTERS = 1_000_000
FEW_DETAILS = 1_000  # characters of what else a provider adds to a piece of a part, which need not count
MAX_NAME_CHARACTERS = 64  # of a tool; no provider accepts more
MAX_ID = 256  # characters of a response's
SOUND_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")  # a form that every provider accepts
# The errors of servers for a model without tools: Ollama, OpenRouter, vLLM, Groq.
NO_TOOLS = re.compile(
    r"not support tools|support tool use|enable-auto-tool-choice|tool calling\W{0,3} is not supported",
    re.IGNORECASE,
)
BYTES_PER_TOKEN = 3  # at least, of other scripts that models know, and of instructions
MOST_OF_A_PICTURE = 5_000  # tokens: Claude bills 4,784 for a large one, gpt-5-nano 3,779, gpt-5 1,190
MOST_BY_MODEL = {"gpt-4o-mini": 48_169}  # 2,833, and 5,667 for each of up to 8 parts: a phone's screenshot
# What is left of a text without these are signs, digits, capitals and the ends of lines: many models read them singly.
LETTERS = bytes((*b" ", *range(ord("a"), ord("z") + 1)))  # two are a token, also where they are no words
OF_SCRIPTS = LETTERS + bytes(range(0x80, 0x100))


@dataclass(slots=True)
class Run:
    """One answer as it is made. text: all of it so far; before: its text up to the newest response; began_at: its
    output up to there; thoughts: separates the newest response's words from its thoughts; gap: the blank line to add
    before further words.

    by: the model. rules: its instructions; kept_rules: without a thread's title, which is somebody's words. asked: for
    whom tools run. history: what it was told before, as it is kept; told: the channel's messages that it is sent anew;
    content: the prompt with them. since: where it is_resumed, what was told since it asked; content then follows that
    in one prompt, behind the tools' results. memory: the messages as its provider stores them; None: it stores none.
    messages: those sent to the model; from `began` on, those of this run. prompt, results: with which a suspended run
    is resumed; words_of: the sources of the words in them. settings: of each request. goes_on: the provider has the
    earlier messages stored. is_simple: pictures and earlier tool use are left out. ends_at: by the loop's clock, 0
    before it begins. requests: how many were made; was_seen: a response to one has begun; tokens: used by those that
    have ended; is_asking: one has not ended; sent: the most tokens that it is sent; lost: how often it was sent before
    without a response; models: the one that answers it, or those that may. called: the number of tool calls; parts: of
    all parts. written: characters that the model wrote; output: the same, of which CHARACTERS_PER_TOKEN are a token,
    but those that take more count more often; is_dense: its text may have such; signed: characters of signatures,
    encrypted thoughts and what else the provider adds by itself; said: tokens of its text, as the provider counted.
    may_decline: it may stay silent; is_silent: it does; held: the beginning of the text, until that is known. unseen:
    tokens reserved for hidden thoughts. finish: how the last response ended, in pydantic-ai's words.
    """

    show: Callable[[str], None]
    by: NamedModel
    rules: str = ""
    kept_rules: str = ""
    asked: Asked = NOBODY
    history: Sequence[ModelMessage] = ()
    told: Sequence[MessageRecord] = ()
    content: Sequence[UserContent] = ()
    since: Sequence[ModelMessage] = ()
    memory: ServerState | None = None
    messages: list[ModelMessage] = field(default_factory=list)
    began: int = 0
    prompt: str | Sequence[UserContent] | None = None
    results: DeferredToolResults | None = None
    words_of: Sequence[Source] = ()
    settings: ModelSettings = field(default_factory=lambda: SETTINGS)
    goes_on: bool = False
    is_resumed: bool = False
    is_simple: bool = False
    may_use_tools: bool = True
    text: str = ""
    tokens: int = 0
    is_asking: bool = False
    lost: int = 0
    models: tuple[str, ...] = ()
    sent: int = 0
    requests: int = 0
    was_seen: bool = False
    ends_at: float = 0.0
    called: int = 0
    parts: int = 0
    written: int = 0
    output: int = 0
    is_dense: bool = False
    signed: int = 0
    said: int = 0
    gap: str = ""
    before: str = ""
    began_at: int = 0
    thoughts: BareThoughts = field(init=False)
    may_decline: bool = False
    is_silent: bool = False
    held: str = ""
    unseen: int = 0
    finish: str | None = None

    @property
    def made(self) -> Sequence[ModelMessage]:
        return self.messages[self.began :]

    @property
    def shows_pictures(self) -> bool:
        return any(map(has_images, self.messages))

    @property
    def uses_memory(self) -> bool:
        """Whether it relies on messages that the provider has stored."""
        return self.settings not in (SETTINGS, CACHED) and (self.goes_on or bool(self.made))

    @property
    def is_endless(self) -> bool:
        most = max(MAX_OUTPUT_CHARACTERS, self.began_at) + self.unseen * CHARACTERS_PER_TOKEN  # that is reserved
        is_long = self.written > MAX_OUTPUT_CHARACTERS or self.output > most
        return is_long or self.signed > MAX_SIGNED_CHARACTERS or self.parts > MAX_PARTS

    @property
    def was_cut(self) -> bool:
        is_long = len(self.text) > MAX_ANSWER_CHARACTERS or (self.is_dense and self.is_endless)
        return is_long or self.finish == "length"

    def about_to_run(self) -> Sequence[ToolCallPart]:
        """The tool calls of the newest response; of a resumed run only those that were allowed, as the others ran
        before."""
        newest = next((m for m in reversed(self.messages) if isinstance(m, ModelResponse)), None)
        calls = newest.tool_calls if newest else []
        if self.results is None:
            return calls
        return [call for call in calls if self.results.approvals.get(call.tool_call_id) is True]

    @property
    def used(self) -> int:
        """The tokens used so far, with an estimate for a request that has not ended."""
        return self.tokens + self.spent().tokens

    def spent(self, told: Spent | None = None, *, is_whole: bool = True) -> Spent:
        """The use of the newest request: as its provider told it, else the most that it used if it has not ended.
        Hidden thoughts count as reserved, so that stopping an answer at once does not count less than is billed.
        is_whole: the response said how it ended; else what was told may be of its beginning."""
        if not told and not self.is_asking:
            return Spent(self.by.names[0])
        if not told or not is_whole:
            text = self.text.removeprefix(self.before)
            said = max(most_of(text), (self.output - self.began_at) // CHARACTERS_PER_TOKEN) + self.unseen
            if told is None:
                told = Lost(self.models, self.sent, said).alone()
            elif told.tokens_out < said:
                told = replace(told, tokens_out=said, micros=None)
        return told.and_lost(self.lost, Lost(self.by.names, self.sent, min(self.unseen, LONG_ANSWER)))

    def note_lost(self) -> None:
        self.lost += 1

    def begin_paragraph(self, *, may_think_first: bool = False) -> None:
        """Starts a paragraph, to separate the next response from the text before a tool call.

        may_think_first: it may begin with thoughts that no tag opens.
        """
        self.gap = "\n\n" if self.text.strip() else ""
        self.before, self.thoughts = self.text, BareThoughts(may_begin=may_think_first)
        self.began_at = self.output

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Counts the characters of an event: text, thoughts, tool calls and the rest. Adds text."""
        if is_new := isinstance(event, PartStartEvent):
            self.parts += 1
            self.signed += _length(getattr(event.part, "id", None))
        if (details := _details(event)) and ((size := weight_of(repr(details))) > FEW_DETAILS or is_new):
            self.signed += size
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._count(text)
                self.say(text[:MAX_OUTPUT_CHARACTERS])  # beyond that the run is ended
            case (
                PartStartEvent(part=ThinkingPart(content=thought, signature=signed))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought, signature_delta=signed))
            ):
                self._count((thought or "") + "".join(_details(event).get("raw_content", ())))
                self.signed += _length(signed)
            case PartStartEvent(part=ToolCallPart() as call):
                self._count(str(call.args or ""), f"{call.tool_name}{call.tool_call_id}")
            case PartDeltaEvent(delta=ToolCallPartDelta() as call):
                self._count(str(call.args_delta or ""), call.tool_name_delta or "")  # its id is in each piece
            case PartStartEvent(part=part):
                self.signed += len(repr(part))

    def _count(self, text: str, names: str = "") -> None:
        self.written += len(text) + len(names)
        self.output += _weight(text) + len(names)

    def say(self, text: str | None) -> None:
        """Adds a text without its thoughts, once it is clear whether it begins with the token for silence. None: the
        response has ended."""
        known, were_unopened = self.thoughts.words, self.thoughts.were_unopened
        self.thoughts.end() if text is None else self.thoughts.hear(text)
        if self.thoughts.were_unopened and not were_unopened:
            known, self.held = "", ""
            self.gap = "\n\n" if self.before.strip() else ""
            if self.text != self.before:  # thoughts that were shown are removed
                self.text = self.before
                self.show(self.text)
        delta = self.thoughts.words[len(known) :][: MAX_ANSWER_CHARACTERS + 1 - len(self.text)]
        if self.text.strip():
            self.add(delta)
            return
        self.held += delta
        if self.held and (text is None or not may_become_silent(self.held)):
            held, self.held = self.held, ""
            token = SILENT.match(held)
            self.is_silent = bool(token) and self.may_decline
            if not self.is_silent:
                self.add(held[token.end() :] if token else held)

    def add(self, delta: str) -> None:
        if delta:
            self.text += self.gap + without_joiners(delta, "" if self.gap else self.text)
            self.is_dense = self.is_dense or not delta.isascii()
            self.gap = ""
            self.show(self.text)

    def send_all(self, history: Sequence[ModelMessage]) -> None:
        """Sends all messages from now on, without relying on the provider's stored ones."""
        before = history if self.goes_on else ()
        self.messages = [*before, *self.messages]
        self.began += len(before)
        self.goes_on = False

    def leave_out_gone(self, request: AgentRequest) -> None:
        """Leaves out of what is sent next what was edited, deleted or forgotten meanwhile, also of tool results.

        What the model has said in this run stays, as it is one answer.
        """
        if request.place.titled_by and not request.noted_now(request).place.titled_by:
            self.rules = self.kept_rules
        if not request.gone:
            return
        made = [without_results(message, request.gone) for message in self.made]
        told = {"told": [message.message_id for message in self.told]}
        prompt = ModelRequest(parts=[UserPromptPart(content=as_noted_now(self.content, request))], metadata=told)
        *before, now = request.current([*self.history, *self.since, prompt])
        if self.is_resumed:
            earlier = len(request.current([*self.history]))
            content = told_since(before[earlier:], request.place.bot_name, _content_of(now), images=not self.is_simple)
            made = [_with_prompt(message, content) for message in made]
            made = [*map(without_pictures, made)] if self.was_seen else made
            before = before[:earlier]
        sent = [*as_sent(before), *([] if self.is_resumed else [flattened(now)])]
        if self.is_simple or not self.may_use_tools:
            sent = [message for message in sent if not is_tool_use(message)]
        if self.is_simple:
            sent = [flattened(message, images=False) for message in sent]
        if self.was_seen:
            sent = [*map(without_pictures, sent)]
        if self.goes_on or self.memory:  # which has what is gone
            self.goes_on, self.memory, self.settings = False, None, SETTINGS
        self.messages, self.began = [*sent, *made], len(sent)

    def refuse_gone(self, request: AgentRequest) -> None:
        """Refuses the calls that were allowed if anything that they may quote was edited, deleted or forgotten since,
        as while they waited for their budget."""
        if not (self.results and request.reply):
            return
        if not find_suspended(request.current([*request.history]), request.reply.ask_id):
            self.results.approvals = dict.fromkeys(self.results.approvals, ToolDenied(CHANGED))

    def is_outdated(self, request: AgentRequest) -> bool:
        """Whether anything of what it is sent now was edited, deleted or forgotten since; leaves that out."""
        before = self.rules, _words_of(self.messages)
        self.leave_out_gone(request)
        return (self.rules, _words_of(self.messages)) != before

    def simplify(self, complaint: str) -> bool:
        """Leaves out what not every model accepts: first pictures and earlier tool use, then the tools.

        Returns whether there is less to send.
        """
        before = [m for m in self.messages[: self.began] if not is_tool_use(m)]
        if self.may_use_tools and NO_TOOLS.search(complaint):
            self.messages, self.began, self.may_use_tools = [*before, *self.made], len(before), False
            return True
        if len(before) < self.began or self.shows_pictures:
            self.messages = [flattened(message, images=False) for message in (*before, *self.made)]
            self.began, self.is_simple = len(before), True
            return True
        refuses_tools = self.may_use_tools and "tool" in complaint.lower()
        self.may_use_tools = self.may_use_tools and not refuses_tools
        return refuses_tools


def _words_of(messages: Sequence[ModelMessage]) -> list[object]:
    parts = (part for message in messages for part in message.parts)
    return [(getattr(part, "content", None), getattr(part, "args", None)) for part in parts]


def _content_of(message: ModelMessage) -> Sequence[UserContent]:
    return [item for part in message.parts if isinstance(part, UserPromptPart) for item in part.content]


def _with_prompt(message: ModelMessage, content: str | Sequence[UserContent]) -> ModelMessage:
    """The message with this content in place of its prompt, if it has one."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [replace(p, content=content) if isinstance(p, UserPromptPart) else p for p in message.parts]
    return replace(message, parts=parts)


def most_tokens(messages: Sequence[ModelMessage], told: int, models: Sequence[str]) -> int:
    """The most tokens that these messages can be for one of the models, with `told` bytes of instructions and tools."""
    images = tokens = 0
    for part in (part for message in messages for part in message.parts):
        # Of encrypted thoughts, which are billed anew.
        tokens += len(getattr(part, "signature", None) or "") // CHARACTERS_PER_TOKEN
        content = getattr(part, "content", None) or getattr(part, "args", "")
        for item in content if isinstance(content, list) else [content]:
            if is_picture(item):
                images += 1
                continue
            tokens += most_of(str(item.content if isinstance(item, TextContent) else item))
    picture = max([MOST_OF_A_PICTURE, *(most for name, most in MOST_BY_MODEL.items() if name in "".join(models))])
    return tokens + told // BYTES_PER_TOKEN + images * picture


def most_of(text: str) -> int:
    """The most tokens that a text can be, as far as models are known."""
    rare = rare_in(text)
    usual = (RARE.sub("", text) if rare else text).encode()
    others, singly = len(usual.translate(None, LETTERS)), len(usual.translate(None, OF_SCRIPTS))
    return _bytes(rare) + singly + (others - singly) // BYTES_PER_TOKEN + (len(usual) - others) // 2


def _weight(text: str) -> int:
    """A text's length in characters, of which CHARACTERS_PER_TOKEN are a token; those that take more count more often,
    as Chinese ones, each of which may be one."""
    rare = rare_in(text)
    usual = (RARE.sub("", text) if rare else text).encode()
    letters, singly = len(usual) - len(usual.translate(None, LETTERS)), len(usual.translate(None, OF_SCRIPTS))
    of_scripts = CHARACTERS_PER_TOKEN * (len(usual) - letters - singly) // BYTES_PER_TOKEN
    return letters + of_scripts + CHARACTERS_PER_TOKEN * (singly + _bytes(rare))


def _length(value: object) -> int:
    """The length of what a provider sent as a text; its client does not validate it."""
    return len(value if isinstance(value, str) else repr(value)) if value else 0


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def sanitized(response: ModelResponse) -> ModelResponse:
    """The response without lone surrogates and bare thoughts, with valid, unique ids of tool calls, and no more text
    and details than are taken: of those of the response, and of blank text, no event tells. And without what a provider
    ran by itself: it was not asked to."""
    ids, room = Counter(call.tool_call_id for call in response.tool_calls), MAX_OUTPUT_CHARACTERS
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        match part:
            case ToolCallPart():
                call: ToolCallPart = part
                is_plain = ids[call.tool_call_id] == 1 and SOUND_ID.fullmatch(call.tool_call_id)
                call_id = call.tool_call_id if is_plain else f"call_{uuid4().hex}"
                args = without_joiners(_clean(call.args)) if isinstance(call.args, str) else call.args
                name = _clean(call.tool_name[:MAX_NAME_CHARACTERS])
                parts.append(replace(call, tool_name=name, args=args, tool_call_id=call_id))
            case TextPart():
                content = part.content[:room]
                room -= len(content)
                words = without_bare_thoughts(content) if "<" in content else content
                if words or not content:
                    parts.append(replace(part, content=_clean(words)))
            case ThinkingPart():
                parts.append(replace(part, content=_clean(part.content)))
    details = {k: v for k, v in (response.provider_details or {}).items() if len(repr(v)) <= FEW_DETAILS} or None
    known = response_id[:MAX_ID] if isinstance(response_id := response.provider_response_id, str) else None
    failed = response.failed_attempts and [replace(each, error=None) for each in response.failed_attempts]
    told = {"provider_details": details, "provider_response_id": known, "failed_attempts": failed}
    return replace(response, parts=parts, **told)  # type: ignore[arg-type]


def _details(event: ModelResponseStreamEvent) -> dict[str, Any]:
    """What an event has that only its provider knows, as the thoughts of gpt-oss and signatures of Gemini's calls."""
    holding = event.part if isinstance(event, PartStartEvent) else getattr(event, "delta", None)
    details = getattr(holding, "provider_details", None)
    if callable(details):  # changes what is known so far
        details = details(None)
    return details or {}


def _clean(delta: str) -> str:
    """The text with halves of emojis joined, or replaced: alone they cannot be sent to anybody."""
    return delta.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
