"""How the agent asks people: its tools, the prompt that each call opens, and the run that waits for the answer.

The history keeps the question as plain text of the model: any provider accepts that while the question is open, also in
other people's turns. The state of the suspended run is in the metadata of that response, until somebody edits or
deletes words in it: conversation.py then drops the state, and a reply is an ordinary turn.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self
from uuid import uuid4

import structlog
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_ai import (
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    Tool,
    ToolDenied,
    ToolReturn,
)
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents.gateway import Asked, Reply
from agents.shortening import STRING, weight_of
from conversation import MessageRecord
from discord_io.split import is_blank
from llm_history import History, waits_for
from state.message import LINK, Source, sources_of
from state.prompts import Ask, AwaitingType, ResolutionType

log = structlog.get_logger()

MAX_OPTIONS = 25  # what Discord's buttons and menus take
SOURCE = "agent"
CALLED_OFF = "They called this off, and do not want to be asked again."
REFUSED = "They said no."
CHANGED = "Not done: what it may quote was changed or deleted since it was allowed."
NOT_KEPT = "(What people said is not kept here. Look it up anew.)"
TAKEN_BACK = "(What they said here was changed or deleted since.)"
SAID_IN = "said_in"  # in the metadata of what somebody answered: the sources of these words
APPROVAL = "is_approval"  # in the context: people who may manage messages can answer, too
MAX_QUESTIONS = 5  # at once
TOO_MANY = f"Not asked: ask at most {MAX_QUESTIONS} questions at once."
MAX_KEPT = 1_200_000  # by weight_of(), of a run that waits for an answer: while it is read, nothing else runs
MAX_ARGUMENTS = 1_500  # characters of a call: people are only asked to allow what they are shown completely
TOO_LONG = (
    f"Not done: people have to allow this, and its arguments are over {MAX_ARGUMENTS} characters, too long to show."
)

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Choice = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Options = Annotated[list[Choice], Field(min_length=2, max_length=MAX_OPTIONS)]


async def ask_choice(question: Question, options: Options) -> str:
    """Ask the person you answer to choose one of several options, and get the one chosen.

    Args:
        question: What people read; the options are shown below it. Do not say it in your text as well.
        options: 2 to 25 short names, each different from the others.
    """
    if len({option.casefold() for option in options}) < len(options):
        raise ModelRetry("The options must differ from each other.")
    _check(question, *options)
    if any(map(LINK.search, options)):  # a click would count as the user's own words
        raise ModelRetry("The options must be names, not links to messages.")
    shown = "\n".join([question, "", *(f"{number}. {option}" for number, option in enumerate(options, 1))])
    raise CallDeferred({"text": shown, "awaiting": AwaitingType.SELECTION, "options": options})


async def ask_confirmation(question: Question) -> bool:
    """Ask the person you answer for a yes or a no, and get true or false.

    Args:
        question: What people read. Do not say it in your text as well.
    """
    _check(question)
    raise CallDeferred({"text": question, "awaiting": AwaitingType.CONFIRMATION})


async def ask_text(question: Question) -> str:
    """Ask the person you answer for something in their own words, and get their words.

    Args:
        question: What people read. Do not say it in your text as well.
    """
    _check(question)
    raise CallDeferred({"text": question, "awaiting": AwaitingType.INPUT})


def _check(*texts: str) -> None:
    """Raises ModelRetry for texts without visible characters."""
    if any(map(is_blank, texts)):
        raise ModelRetry("The question and each option need visible characters.")


ASKING: Sequence[Tool[Asked]] = (Tool(ask_choice), Tool(ask_confirmation), Tool(ask_text))


class OpenCall(BaseModel):
    """A tool call that waits for somebody. text: the question as people read it."""

    model_config = ConfigDict(frozen=True)

    call_id: str
    text: str
    awaiting: AwaitingType
    options: tuple[str, ...] = ()
    is_approval: bool = False

    def result(self, reply: Reply) -> Any:
        """The result for the model; for an approval, True or why not."""
        match reply.type:
            case ResolutionType.CANCEL:
                return CALLED_OFF
            case ResolutionType.SELECTION:
                return reply.data["selected_option"]
            case ResolutionType.CONFIRMATION if self.is_approval:
                return reply.data["confirmed"] or REFUSED
            case ResolutionType.CONFIRMATION:
                return reply.data["confirmed"]
            case _:
                return reply.data["content"]


class Suspended(BaseModel):
    """A suspended run, which waits for answers.

    said: its messages since the prompt, without people's words; calls: its questions, in this order; results: the
    answers so far, by the call's id; said_in: the sources of those in people's own words. words_of: the sources of the
    words in said, calls and results; conversation.py looks for this key. people: for whom it runs, the newest to ask
    last; newcomers: those of them who may not read the history, which the run was not told either, whoever answers;
    allowed: who allowed a call, by its id.
    model: the name of the model that it continues with; empty: the default.
    """

    # defer_build: at the start it would take 60 ms.
    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", defer_build=True)

    said: History
    calls: list[OpenCall]
    results: dict[str, Any] = {}
    said_in: dict[str, list[Source]] = {}
    words_of: list[Source] = []
    people: list[int] = []
    newcomers: list[int] = []
    allowed: dict[str, int] = {}
    model: str = ""
    ask_id: str = Field(default_factory=lambda: uuid4().hex)

    @model_validator(mode="after")
    def _has_calls(self) -> Self:
        """Checks that its questions are calls in its messages: else it could not be resumed."""
        called = {part.tool_call_id for m in self.said for part in m.parts if isinstance(part, ToolCallPart)}
        if not self.calls or not called.issuperset(call.call_id for call in self.calls):
            raise ValueError("what it asks was not called")
        return self

    @classmethod
    def of(
        cls,
        messages: Sequence[ModelMessage],
        requests: DeferredToolRequests,
        words_of: Sequence[Source],
        runs_for: Asked,
        model: str,
    ) -> Self:
        """Suspends a run of this model that made these messages and calls. runs_for: for whom its tools run. Raises
        UnexpectedModelBehavior if it would keep more than MAX_KEPT, as it may after many questions in turn."""
        calls = [OpenCall(call_id=c.tool_call_id, **requests.metadata[c.tool_call_id]) for c in requests.calls]
        for call in requests.approvals:
            # The text of the tool itself, if it is one of ours; empty: too long.
            given = requests.metadata.get(call.tool_call_id, {})
            text = given.get("text") or _may_i_run(call)
            words_of = [*words_of, *given.get("words_of", ())]
            awaiting = AwaitingType.CONFIRMATION
            calls.append(OpenCall(call_id=call.tool_call_id, text=text, awaiting=awaiting, is_approval=True))
        too_long = {call.call_id: TOO_LONG for call in calls if not call.text}
        too_many = {call.call_id: TOO_MANY for call in [call for call in calls if call.text][MAX_QUESTIONS:]}
        suspended = cls(
            # People's words are in the history, where they can still be edited and deleted. What was read elsewhere is
            # read again: who may read it may have changed by the time of the answer.
            said=[
                ModelRequest(parts=[_without_words(part) for part in m.parts if not isinstance(part, UserPromptPart)])
                if isinstance(m, ModelRequest)
                else m
                for m in messages
            ],
            calls=calls,
            results=too_long | too_many,
            words_of=[*dict.fromkeys([*words_of, *words_in(messages)])],
            people=[*runs_for.people - {runs_for.user_id}, runs_for.user_id],
            newcomers=[*runs_for.newcomers],
            allowed=dict(runs_for.allowed),
            model=model,
        )
        if weight_of(kept := suspended.model_dump_json(), STRING.sub("", kept)) > MAX_KEPT:
            raise UnexpectedModelBehavior("The model made too much to wait with a question.")
        return suspended

    @property
    def open(self) -> Sequence[OpenCall]:
        """The calls without an answer; the first is the one being asked."""
        return [call for call in self.calls if call.call_id not in self.results]

    @property
    def ask(self) -> Ask:
        first = self.open[0]
        context = {"ask_id": self.ask_id, APPROVAL: first.is_approval}
        return Ask(first.awaiting, first.options, context, SOURCE)

    def response(self, text: str) -> ModelResponse:
        """The response that the history keeps. text: all that people read."""
        return ModelResponse(parts=[TextPart(text)], metadata=self.model_dump(mode="json"))

    def after(self, reply: Reply, words: Sequence[MessageRecord]) -> Self:
        """The run after the call being asked was answered, by these messages; after a cancel, with all calls
        answered."""
        done = self.open if reply.type is ResolutionType.CANCEL else self.open[:1]
        results = {call.call_id: call.result(reply) for call in done}
        sources = [source for m in words for source in sources_of(m)]
        said_in = {call.call_id: sources for call in done if reply.type is ResolutionType.INPUT}
        by = words[-1].author_id if words else 0
        allowed = self.allowed | {call.call_id: by for call in done if call.is_approval}
        answers = {"results": self.results | results, "said_in": self.said_in | said_in, "allowed": allowed}
        words_of = [*self.words_of, *sources]
        return self.model_copy(update={**answers, "words_of": words_of, "ask_id": uuid4().hex})

    def asked(self, now: Asked) -> Asked:
        """For whom the resumed run's tools run: those for whom it began, whoever has just answered."""
        people = self.people or [now.user_id]
        return replace(now, user_id=people[-1], people=frozenset(people), allowed=self.allowed)

    def deferred_results(self) -> DeferredToolResults:
        """The results with which pydantic-ai resumes the run."""
        results = DeferredToolResults()
        for call in self.calls:
            result = self.results[call.call_id]
            if not call.is_approval:
                sources = self.said_in.get(call.call_id)
                results.calls[call.call_id] = ToolReturn(result, metadata={SAID_IN: sources}) if sources else result
            else:
                results.approvals[call.call_id] = True if result is True else ToolDenied(result)
        return results


def find_suspended(history: Sequence[ModelMessage], ask_id: str) -> tuple[int, Suspended] | None:
    """The suspended run that asked this, and its position in the history; None: it was trimmed or dropped."""
    for position, message in enumerate(history):
        if waits_for(message) == ask_id:
            try:
                return position, Suspended.model_validate(message.metadata)
            except ValidationError as error:
                log.warning("suspended_run_refused", detail=error.errors()[0]["msg"])
                return None
    return None


def settled(history: Sequence[ModelMessage], ask_id: str) -> list[ModelMessage]:
    """The history once this question is resolved: only its text remains."""
    return [replace(m, metadata=None) if waits_for(m) == ask_id else m for m in history]


def _may_i_run(call: ToolCallPart) -> str:
    arguments = json.dumps(call.args_as_dict(), ensure_ascii=False).replace("`", "'")
    if len(arguments) > MAX_ARGUMENTS:
        return ""
    given = "" if arguments == "{}" else f" with `{arguments}`"
    return f"May I run `{call.tool_name}`{given}?"


def _without_words(part: ModelRequestPart) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart) and (part.metadata or {}).get("words_of"):
        return ToolReturnPart(part.tool_name, NOT_KEPT, part.tool_call_id, metadata=part.metadata)
    return part


def without_results(message: ModelMessage, gone: Collection[Source]) -> ModelMessage:
    """The message without tool results, and without answers to the agent, that have words of one of these sources."""
    if not isinstance(message, ModelRequest):
        return message
    parts = message.parts
    if any(source in gone for source in words_in([message])):
        parts = [*map(_without_words, parts)]
    return replace(message, parts=[_without_answer(part, gone) for part in parts])


def _without_answer(part: ModelRequestPart, gone: Collection[Source]) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart) and any(source in gone for source in _sources(part, SAID_IN)):
        return ToolReturnPart(part.tool_name, TAKEN_BACK, part.tool_call_id, metadata=part.metadata)
    return part


def words_in(messages: Sequence[ModelMessage]) -> list[Source]:
    """The sources of the words in tool results."""
    return [source for message in messages for part in message.parts for source in _sources(part, "words_of")]


def _sources(part: ModelRequestPart | ModelResponsePart, key: str) -> list[Source]:
    found = (part.metadata or {}).get(key, ()) if isinstance(part, ToolReturnPart) else ()
    return [(kind, one) for kind, one in found]
