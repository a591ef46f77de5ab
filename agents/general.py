"""The general agent: a model by way of pydantic-ai, given back its own history each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from weakref import WeakKeyDictionary

import structlog
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolDefinition
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextContent,
    TextPart,
    TextPartDelta,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.toolsets import AbstractToolset

from agents.asking import ASKING, Suspended, find, settled
from agents.gateway import NOBODY, AgentRequest, Answer, Asked, Failure, FailureKind, Place
from agents.models import SETTINGS
from conversation import CHARACTERS_PER_TOKEN, MessageRecord, indented, told
from delivery.split import is_blank

log = structlog.get_logger()

INSTRUCTIONS = Path(__file__).with_name("general.md").read_text(encoding="utf-8")
STALL_SECONDS = 60.0
TOTAL_SECONDS = 180.0
# Six messages of Discord's: what is longer is rambling.
MAX_ANSWER_CHARACTERS = 12_000
# What is told of a channel that went on for long without the bot.
MAX_TRANSCRIPT_MESSAGES = 60
MAX_TRANSCRIPT_CHARACTERS = 16_000

MAX_PROMPT_IMAGES = 4
MAX_CALLS = 20  # of tools, in one answer
MAX_REQUESTS = 8  # of one answer: each call of a tool takes one more
# The last two or three turns are sent as the model knows turns, what was before as text.
UNFOLDED_TURNS = 2
FOLDED_AT_ONCE = 2
MAX_NAME_CHARACTERS = 100

KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (ModelRateLimitError, FailureKind.BUSY),
    (ModelQuotaExceededError, FailureKind.BUSY),
    (ModelContextWindowExceededError, FailureKind.TOO_LONG),
    (ModelAuthenticationError, FailureKind.MISCONFIGURED),
    (ModelNotFoundError, FailureKind.MISCONFIGURED),
    (ModelRequestRejectedError, FailureKind.REJECTED),
    (ModelAPIError, FailureKind.UNAVAILABLE),
    (UnexpectedModelBehavior, FailureKind.EMPTY),
)


QUIET = frozenset(tool.name for tool in ASKING)
STAGES = {
    "search_history": "searching the history",
    "read_message": "reading a message",
    "current_time": "looking at the clock",
    "react": "reacting",
    "pin": "pinning",
    "create_poll": "making a poll",
}


class GeneralAgent:
    """Answers from the conversation, and may ask those it answers. instructions: the owner's, added to ours.

    tools: with fixed definitions; one that requires approval asks the person who is answered before it runs. toolsets:
    those of others, which come and go; definitions: what there is of them now. What a tool raises ends the run, and is
    logged.
    """

    def __init__(
        self,
        model: Model,
        *,
        instructions: str = "",
        tools: Sequence[Tool[Asked]] = (),
        toolsets: Sequence[AbstractToolset[Asked]] = (),
        definitions: Callable[[], Sequence[ToolDefinition]] = tuple,
        stall_seconds: float = STALL_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._model = model
        self._instructions = instructions
        own = [*ASKING, *tools]
        self._own = [tool.tool_def for tool in own]
        self._definitions = definitions
        self._toolbox = Agent(
            model, deps_type=Asked, tools=own, toolsets=toolsets, output_type=[str, DeferredToolRequests]
        )
        self._stall = stall_seconds
        self._total = total_seconds
        self._used: WeakKeyDictionary[AgentRequest, int] = WeakKeyDictionary()

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Answer | Failure:
        waited = find(request.history, request.reply.ask_id) if request.reply else None
        if not (request.reply and waited):
            return await self._respond(request, self._begin(request, show))
        position, suspended = waited[0], waited[1].after(request.reply, request.questions)
        if suspended.open:
            return _asking(request, suspended, _Run(show))
        return await self._respond(request, self._resume(request, show, position, suspended))

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        return Answer(text, _history(request, ModelResponse(parts=[TextPart(text)])), self._used.get(request, 0))

    async def _respond(self, request: AgentRequest, run: _Run) -> Answer | Failure:
        try:
            outcome = await self._attempt(request, run)
            if isinstance(outcome, Failure) and outcome.kind is FailureKind.REJECTED and run.simplify(outcome.detail):
                # Not every model takes pictures, or tools: better an answer without them than none.
                return await self._attempt(request, run)
            return outcome
        except asyncio.CancelledError:
            self._used[request] = run.used
            raise

    async def _attempt(self, request: AgentRequest, run: _Run) -> Answer | Failure:
        try:
            return await self._run(request, run)
        except TimeoutError:
            kind, detail = FailureKind.LATE, f"The model {self._model.model_name} did not finish its answer in time."
        except FallbackExceptionGroup as group:
            kind, detail = _kind(group.exceptions[-1]), "; ".join(_describe(error) for error in group.exceptions)
        except AgentRunError as error:
            kind, detail = _kind(error), _describe(error)
        except Exception as error:
            # A tool may raise anything, and what the model used is to be paid all the same.
            log.exception("run_failed", messages=[question.message_id for question in request.questions])
            kind, detail = FailureKind.INTERNAL, _describe(error)
        was_billed = bool(run.text) or kind in (FailureKind.LATE, FailureKind.EMPTY)
        return Failure(kind, detail, run.text, run.used if was_billed else run.tokens)

    async def _run(self, request: AgentRequest, run: _Run) -> Answer | Failure:
        clock = asyncio.get_running_loop().time
        end = clock() + self._total
        async with asyncio.timeout(self._stall) as deadline:

            def go_on() -> None:
                deadline.reschedule(min(end, clock() + self._stall))

            for _ in range(MAX_REQUESTS):
                if run.results is None and not await self._say(request, run, go_on):
                    return self._answer(request, run)
                if run.called > MAX_CALLS:
                    break
                self._tell_stage(request, run)
                if deferred := await self._use_tools(run):
                    suspended = Suspended.of(run.messages[run.began :], deferred, run.words_of, run.asked)
                    return _asking(request, suspended, run)
        raise UnexpectedModelBehavior(f"The model {self._model.model_name} called tools without end.")

    def _tell_stage(self, request: AgentRequest, run: _Run) -> None:
        """What is being done meanwhile, by the first tool that is called; to ask is nothing that takes time."""
        calls = run.messages[-1].tool_calls if isinstance(run.messages[-1], ModelResponse) else []
        called = [call.tool_name for call in calls if call.tool_name not in QUIET]
        if called:
            request.tell_stage(STAGES.get(called[0], f"using {called[0]}"))

    async def _say(self, request: AgentRequest, run: _Run, go_on: Callable[[], None]) -> bool:
        """One response of the model, shown as it comes. Returns whether it calls tools.

        The model itself is asked, which saves an agent's 2 ms where no tool is called.
        """
        parameters = ModelRequestParameters(
            function_tools=[*self._own, *self._definitions()] if run.may_use_tools else [],
            instruction_parts=[InstructionPart(self._rules(request.place))],
        )
        run.begin_paragraph()
        run.is_asking = True
        async with model_request_stream(
            self._model, run.messages, model_settings=SETTINGS, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                go_on()
                run.add(_text_in(event)[: MAX_ANSWER_CHARACTERS + 1 - len(run.text)])
                if run.was_cut:
                    break
            used = 0 if run.was_cut else stream.usage.total_tokens
            run.tokens = run.tokens + used if used else run.used
            run.is_asking = False
            response = stream.get()
        run.messages.append(response)
        run.called += len(response.tool_calls)
        return bool(response.tool_calls) and not run.was_cut

    async def _use_tools(self, run: _Run) -> DeferredToolRequests | None:
        """Has pydantic-ai execute the calls of the last response. Returns those that wait for somebody."""
        async with self._toolbox.iter(
            run.prompt, message_history=run.messages, deferred_tool_results=run.results, deps=run.asked
        ) as steps:
            async for step in steps:
                if Agent.is_model_request_node(step):
                    run.messages = _followed(steps.all_messages(), step.request)
                    run.prompt = run.results = None
                    return None
            # The results of what else was called stand behind the response by now.
            run.messages = steps.all_messages()
            output = steps.result and steps.result.output
            return output if isinstance(output, DeferredToolRequests) else None

    def _answer(self, request: AgentRequest, run: _Run) -> Answer | Failure:
        if is_blank(run.text):
            detail = f"The model {self._model.model_name} gave an empty answer."
            return Failure(FailureKind.EMPTY, detail, tokens=run.tokens)
        said = ModelResponse(parts=[TextPart(run.text)])
        return Answer(run.text, _history(request, said), run.tokens, run.was_cut)

    def _begin(self, request: AgentRequest, show: Callable[[str], None]) -> _Run:
        prompt = ModelRequest(parts=[UserPromptPart(content=_flat(_prompt(request)))])
        messages = [*_folded(request.history, request.place), prompt]
        words_of = [(question.message_id, question.author_id) for question in request.questions]
        return _Run(show, messages, began=len(messages), words_of=words_of, asked=request.asked)

    def _resume(self, request: AgentRequest, show: Callable[[str], None], position: int, suspended: Suspended) -> _Run:
        """The run goes on behind its own prompt; what was said since comes with the results."""
        before = _folded(request.history[:position], request.place)
        since = "".join(_as_text(message, request.place.bot_name) for message in request.history[position + 1 :])
        return _Run(
            show,
            [*before, *suspended.said],
            began=len(before),
            prompt=_flat([TextContent(since), *_prompt(request)]),
            results=suspended.deferred_results(),
            words_of=suspended.words_of,
            asked=suspended.asked(request.asked),
        )

    def _rules(self, place: Place) -> str:
        names = (place.bot_name, place.guild, place.channel)
        # In quotes and on one line a name stays a name.
        bot_name, guild, channel = (" ".join(name.replace('"', "'").split())[:MAX_NAME_CHARACTERS] for name in names)
        ours = INSTRUCTIONS.format(bot_name=bot_name, guild=guild, channel=channel)
        return f"{ours}\n{self._instructions}" if self._instructions else ours


@dataclass(slots=True)
class _Run:
    """One answer in the making. messages: what the model is sent, of which it made those from `began` on; prompt and
    results: what a run that waited goes on with, by words_of. asked: for whom tools run. tokens: what the requests took
    that have ended; is_asking: whether one has not. called: how many tools were."""

    show: Callable[[str], None]
    messages: list[ModelMessage] = field(default_factory=list)
    began: int = 0
    prompt: str | Sequence[UserContent] | None = None
    results: DeferredToolResults | None = None
    words_of: list[tuple[int, int]] = field(default_factory=list)
    asked: Asked = NOBODY
    may_use_tools: bool = True
    text: str = ""
    tokens: int = 0
    is_asking: bool = False
    called: int = 0
    gap: str = ""

    @property
    def was_cut(self) -> bool:
        return len(self.text) > MAX_ANSWER_CHARACTERS

    @property
    def used(self) -> int:
        """The tokens so far, estimated for a request of which the provider has not said what it took."""
        if not self.is_asking:
            return self.tokens
        characters = sum(len(str(part)) for message in self.messages for part in message.parts)
        return self.tokens + (characters + len(self.text) + len(INSTRUCTIONS)) // CHARACTERS_PER_TOKEN

    def begin_paragraph(self) -> None:
        """What comes next does not run into what was said before a tool was called."""
        self.gap = "\n\n" if self.text.strip() else ""

    def add(self, delta: str) -> None:
        if delta:
            self.text += self.gap + _clean(delta)
            self.gap = ""
            self.show(self.text)

    def simplify(self, complaint: str) -> bool:
        """Leaves out pictures, and tools if the provider complains of them. Returns whether there is less to send."""
        refuses_tools = self.may_use_tools and "tool" in complaint.lower()
        if refuses_tools or any(map(_has_images, self.messages)):
            self.may_use_tools = self.may_use_tools and not refuses_tools
            self.messages = [_flattened(message, images=False) for message in self.messages]
            return True
        return False


def _asking(request: AgentRequest, suspended: Suspended, run: _Run) -> Answer:
    """The answer that ends in a question, of which the history keeps how to go on."""
    run.begin_paragraph()
    run.add(suspended.open[0].text)
    return Answer(run.text, _history(request, suspended.response(run.text)), run.tokens, ask=suspended.ask)


def _prompt(request: AgentRequest) -> list[UserContent]:
    """What is new since the last turn. The time stands here, where the provider's cache ends anyway."""
    said = _newest(request.transcript, {m.message_id for m in request.questions})
    left_out = len(request.transcript) - len(said)
    gap = f"{left_out} earlier messages are left out. " if left_out else ""
    names = list(dict.fromkeys(f'"{question.author}"' for question in request.questions))
    # Of several, who asked last is the one whose answer is awaited.
    whose = f'What you ask by a tool goes to "{request.questions[-1].author}". ' if len(names) > 1 else ""
    images = [image for message in said for image in message.images][-MAX_PROMPT_IMAGES:]
    said = [replace(message, images=tuple(i for i in message.images if i in images)) for message in said]
    return [
        TextContent(f"It is {request.now:%A, %Y-%m-%d %H:%M %Z}. {gap}New in the channel:\n"),
        *(piece for message in said for piece in told(message)),
        *(TextContent(f"(Note: {indented(note)})\n") for note in request.notes),
        TextContent(f"{whose}Now answer {', '.join(names)}."),
    ]


def _newest(transcript: Sequence[MessageRecord], questions: set[int]) -> list[MessageRecord]:
    """The newest messages within the bounds, and every question."""
    kept: list[MessageRecord] = []
    size = 0
    for position, message in enumerate(reversed(transcript)):
        size += message.size
        within = position < MAX_TRANSCRIPT_MESSAGES and size <= MAX_TRANSCRIPT_CHARACTERS
        if within or message.message_id in questions:
            kept.append(message)
    return kept[::-1]


def _text_in(event: ModelResponseStreamEvent) -> str:
    """The text that an event of the model's stream adds to the answer."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _clean(delta: str) -> str:
    """Without half characters, which cannot be sent to anybody."""
    return delta.encode(errors="replace").decode()


def _kind(error: Exception) -> FailureKind:
    return next((kind for types, kind in KINDS if isinstance(error, types)), FailureKind.UNAVAILABLE)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _history(request: AgentRequest, said: ModelResponse) -> list[ModelMessage]:
    """What the next turn is given back: the prompt message by message, so that each can be edited and deleted."""
    # What was told stays known by its ids, even where the words are deleted later.
    told_ids = {"told": [message.message_id for message in request.transcript]}
    prompt = ModelRequest(parts=[UserPromptPart(content=_prompt(replace(request, notes=())))], metadata=told_ids)
    before = settled(request.history, request.reply.ask_id) if request.reply else request.history
    return [*before, prompt, said]


def _flat(content: str | Sequence[UserContent], *, images: bool = True) -> str | list[UserContent]:
    """The same, each stretch of text in one piece: not every server takes a list, and clients are slow on it."""
    if isinstance(content, str):
        return content
    pieces: list[UserContent] = []
    for is_image, items in groupby(content, lambda item: isinstance(item, ImageUrl)):
        if not is_image:
            pieces.append("".join(item.content if isinstance(item, TextContent) else str(item) for item in items))
        elif images:
            pieces.extend(items)
    if not images:
        return "".join(map(str, pieces))
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


def _folded(history: Sequence[ModelMessage], place: Place) -> list[ModelMessage]:
    """The history as it is sent: the older turns as one stretch of text before the newer ones.

    The providers' clients take 0.1 to 0.2 ms for each message: a long conversation would make each answer later.
    The text only ever grows at its end, by some turns at a time: what a provider has cached stays good.
    """
    starts = [i for i, m in enumerate(history) if any(isinstance(p, UserPromptPart) for p in m.parts)]
    folded_turns = max(0, len(starts) - UNFOLDED_TURNS) // FOLDED_AT_ONCE * FOLDED_AT_ONCE
    border = starts[folded_turns] if folded_turns else 0
    older = "".join(_as_text(message, place.bot_name) for message in history[:border])
    newer = [_flattened(message) for message in history[border:]]
    if older and isinstance(newer[0], ModelRequest):
        newer[0] = replace(newer[0], parts=[UserPromptPart(content=older), *newer[0].parts])
        newer[0] = _joined(newer[0])
    return newer


def _joined(message: ModelRequest) -> ModelRequest:
    """With its prompts in one: some models' templates insist that the roles take turns."""
    prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    content = [item for part in prompts for item in ([part.content] if isinstance(part.content, str) else part.content)]
    return replace(message, parts=[UserPromptPart(content=_flat(content))])


def _followed(messages: Sequence[ModelMessage], request: ModelRequest) -> list[ModelMessage]:
    """The messages with one more, in one with the results of other tools before it."""
    *before, last = messages
    if isinstance(last, ModelRequest):
        return [*before, replace(last, parts=[*last.parts, *request.parts])]
    return [*messages, request]


def _as_text(message: ModelMessage, bot_name: str) -> str:
    if isinstance(message, ModelRequest):
        return (
            "".join(str(_flat(p.content, images=False)) for p in message.parts if isinstance(p, UserPromptPart)) + "\n"
        )
    said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return f"{bot_name} (you): {indented(said)}\n"


def _flattened(message: ModelMessage, *, images: bool = True) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=_flat(part.content, images=images)) if isinstance(part, UserPromptPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _has_images(message: ModelMessage) -> bool:
    prompts = (part for part in message.parts if isinstance(part, UserPromptPart))
    return any(isinstance(item, ImageUrl) for part in prompts for item in part.content)
