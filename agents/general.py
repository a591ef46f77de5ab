"""The general agent: a model by way of pydantic-ai, given back its own history each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

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
from pydantic_ai.models import Model

from agents.gateway import AgentRequest, Answer, Failure, FailureKind, Place
from agents.models import SETTINGS
from conversation import CHARACTERS_PER_TOKEN, MessageRecord, indented, told
from delivery.split import is_blank

INSTRUCTIONS = Path(__file__).with_name("general.md").read_text(encoding="utf-8")
STALL_SECONDS = 60.0
TOTAL_SECONDS = 180.0
# Six messages of Discord's: what is longer is rambling.
MAX_ANSWER_CHARACTERS = 12_000
# What is told of a channel that went on for long without the bot.
MAX_TRANSCRIPT_MESSAGES = 60
MAX_TRANSCRIPT_CHARACTERS = 16_000

MAX_PROMPT_IMAGES = 4
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


class GeneralAgent:
    """Answers from the conversation alone. instructions: the owner's, added to ours."""

    def __init__(
        self,
        model: Model,
        *,
        instructions: str = "",
        stall_seconds: float = STALL_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._model = model
        self._instructions = instructions
        self._stall = stall_seconds
        self._total = total_seconds

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Answer | Failure:
        outcome = await self._attempt(request, show)
        if isinstance(outcome, Failure) and outcome.kind is FailureKind.REJECTED and _has_images(request):
            # Not every model takes pictures: better an answer without them than none.
            again = await self._attempt(request, show, images=False)
            return replace(again, tokens=outcome.tokens + again.tokens)
        return outcome

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        said = ModelResponse(parts=[TextPart(text)])
        return Answer(text, _history(request, [said]), _estimated_tokens(request, text))

    async def _attempt(
        self, request: AgentRequest, show: Callable[[str], None], *, images: bool = True
    ) -> Answer | Failure:
        so_far = _SoFar(show)
        try:
            return await self._run(request, so_far, images=images)
        except TimeoutError:
            kind, detail = FailureKind.LATE, f"The model {self._model.model_name} did not finish its answer in time."
        except FallbackExceptionGroup as group:
            kind, detail = _kind(group.exceptions[-1]), "; ".join(_describe(error) for error in group.exceptions)
        except AgentRunError as error:
            kind, detail = _kind(error), _describe(error)
        was_billed = bool(so_far.text) or kind in (FailureKind.LATE, FailureKind.EMPTY)
        return Failure(kind, detail, so_far.text, _estimated_tokens(request, so_far.text) if was_billed else 0)

    async def _run(self, request: AgentRequest, so_far: _SoFar, *, images: bool) -> Answer | Failure:
        clock = asyncio.get_running_loop().time
        end = clock() + self._total
        messages = self._messages(request, images=images)
        async with (
            asyncio.timeout(self._stall) as deadline,
            # Without tools there is nothing to loop over: the model itself is asked, which saves an agent's 2 ms.
            model_request_stream(self._model, messages, model_settings=SETTINGS) as stream,
        ):
            async for event in stream:
                deadline.reschedule(min(end, clock() + self._stall))
                so_far.add(_clean(_text_in(event))[: MAX_ANSWER_CHARACTERS + 1 - len(so_far.text)])
                if len(so_far.text) > MAX_ANSWER_CHARACTERS:
                    return replace(self.interrupted(request, so_far.text), was_cut=True)
            tokens = stream.usage.total_tokens or _estimated_tokens(request, so_far.text)
            if is_blank(so_far.text):
                return Failure(
                    FailureKind.EMPTY, f"The model {self._model.model_name} gave an empty answer.", tokens=tokens
                )
            return Answer(so_far.text, _history(request, [stream.get()]), tokens)

    def _messages(self, request: AgentRequest, *, images: bool) -> list[ModelMessage]:
        prompt = UserPromptPart(content=_flat(_prompt(request), images=images))
        rules = self._rules(request.place)
        return [*_folded(request, images=images), ModelRequest(parts=[prompt], instructions=rules)]

    def _rules(self, place: Place) -> str:
        names = (place.bot_name, place.guild, place.channel)
        # In quotes and on one line a name stays a name.
        bot_name, guild, channel = (" ".join(name.replace('"', "'").split())[:MAX_NAME_CHARACTERS] for name in names)
        ours = INSTRUCTIONS.format(bot_name=bot_name, guild=guild, channel=channel)
        return f"{ours}\n{self._instructions}" if self._instructions else ours


class _SoFar:
    """The text as it grows."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.text = ""
        self._show = show

    def add(self, delta: str) -> None:
        if delta:
            self.text += delta
            self._show(self.text)


def _prompt(request: AgentRequest) -> list[UserContent]:
    """What is new since the last turn. The time stands here, where the provider's cache ends anyway."""
    said = _newest(request.transcript, {m.message_id for m in request.questions})
    left_out = len(request.transcript) - len(said)
    gap = f"{left_out} earlier messages are left out. " if left_out else ""
    names = ", ".join(f'"{name}"' for name in dict.fromkeys(question.author for question in request.questions))
    images = [image for message in said for image in message.images][-MAX_PROMPT_IMAGES:]
    said = [replace(message, images=tuple(i for i in message.images if i in images)) for message in said]
    return [
        TextContent(f"It is {request.now:%A, %Y-%m-%d %H:%M %Z}. {gap}New in the channel:\n"),
        *(piece for message in said for piece in told(message)),
        TextContent(f"Now answer {names}."),
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


def _estimated_tokens(request: AgentRequest, text: str) -> int:
    """For a run that ended before the provider said what it used."""
    characters = sum(len(str(part)) for message in request.history for part in message.parts)
    characters += sum(message.size for message in request.transcript) + len(text) + len(INSTRUCTIONS)
    return characters // CHARACTERS_PER_TOKEN


def _history(request: AgentRequest, said: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What the next turn is given back: the prompt message by message, so that each can be edited and deleted."""
    # What was told stays known by its ids, even where the words are deleted later.
    told_ids = {"told": [message.message_id for message in request.transcript]}
    prompt = ModelRequest(parts=[UserPromptPart(content=_prompt(request))], metadata=told_ids)
    return [*request.history, prompt, *said]


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


def _folded(request: AgentRequest, *, images: bool) -> list[ModelMessage]:
    """The history as it is sent: the older turns as one stretch of text before the newer ones.

    The providers' clients take 0.1 to 0.2 ms for each message: a long conversation would make each answer later.
    The text only ever grows at its end, by some turns at a time: what a provider has cached stays good.
    """
    starts = [i for i, m in enumerate(request.history) if any(isinstance(p, UserPromptPart) for p in m.parts)]
    folded_turns = max(0, len(starts) - UNFOLDED_TURNS) // FOLDED_AT_ONCE * FOLDED_AT_ONCE
    border = starts[folded_turns] if folded_turns else 0
    older = "".join(_as_text(message, request.place.bot_name) for message in request.history[:border])
    newer = [_flattened(message, images=images) for message in request.history[border:]]
    if older and isinstance(newer[0], ModelRequest):
        newer[0] = replace(newer[0], parts=[UserPromptPart(content=older), *newer[0].parts])
        newer[0] = _joined(newer[0])
    return newer


def _joined(message: ModelRequest) -> ModelRequest:
    """With its prompts in one: some models' templates insist that the roles take turns."""
    prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    content = [item for part in prompts for item in ([part.content] if isinstance(part.content, str) else part.content)]
    return replace(message, parts=[UserPromptPart(content=_flat(content))])


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


def _has_images(request: AgentRequest) -> bool:
    prompts = (part for message in request.history for part in message.parts if isinstance(part, UserPromptPart))
    told = any(isinstance(item, ImageUrl) for part in prompts for item in part.content)
    return told or any(message.images for message in request.transcript)
