"""What the general agent is sent in a turn: new messages of the channel, the time, whom to answer, and its history.

The history has prompts, message by message so that each can be edited and deleted, and answers, each with its tool
calls and results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeGuard, TypeVar

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from agents.asking import settled
from agents.declining import STAY_SILENT, TOKEN
from agents.gateway import AgentRequest
from agents.rules import people_in
from agents.tool_use import tool_messages_of
from conversation import MessageRecord
from files.reading import Picture, Reading
from llm_history import Tag, indented, told, told_of_file, uses_tools
from state.message import file_key
from understanding.shared_context import in_words

T = TypeVar("T")

# The most that is sent of a channel's messages since the last turn.
MAX_TRANSCRIPT_MESSAGES = 60
MAX_TRANSCRIPT_CHARACTERS = 16_000
MAX_PROMPT_IMAGES = 4
MAX_NAME = 100
MAX_FAULTS = 10  # of the arguments of a call that are told the model: each may quote 1 KB
ONCE = {"is_kept": False}  # tags what is sent in one turn only: the history does not keep it
PICTURE = "(The picture {name}, which you are shown once and do not see again in later turns.)"
SEEN = "(Here was a picture, which you have seen.)\n"
UNSEEN = (
    "    (You cannot see this picture: the model that you are takes none, or not as many at once. Say so; do not guess "
    "what it shows.)\n"
)
MAY_DECLINE = (
    "You were not mentioned. If this was not said to you, or wants no answer from you, say nothing, by calling "
    f"{STAY_SILENT.name} before you write anything (if you have no tools, by writing only {TOKEN}). Otherwise"
)


def turn_content(request: AgentRequest) -> list[UserContent]:
    """The prompt of a turn: the newest messages since the last turn, within the bounds, and every question.

    The time is given here, after the part of the prompt that the provider can cache.
    """
    asked = {m.message_id for m in request.questions}
    new: list[MessageRecord] = []
    size = 0
    for position, message in enumerate(reversed(request.transcript)):
        size += message.size
        is_within = position < MAX_TRANSCRIPT_MESSAGES and size <= MAX_TRANSCRIPT_CHARACTERS
        if is_within or message.message_id in asked:
            new.insert(0, message)
    left_out = len(request.transcript) - len(new)
    gap = f"{left_out} earlier messages are left out. " if left_out else ""
    if images := [image for message in new for image in message.images]:
        # For pictures in `attached` it was decided before whether they are shown.
        shown = [image for image in images if file_key(image) in request.attached]
        shown += [image for image in images if image not in shown][-MAX_PROMPT_IMAGES:]
        new = [replace(message, images=tuple(i for i in message.images if i in shown)) for message in new]
    pieces = [
        piece
        for message in new
        for piece in (_with_files(message, request.attached) if request.attached else told(message))
    ]
    return [
        TextContent(f"It is {request.now:%A, %Y-%m-%d %H:%M %Z}. {gap}New in the channel:\n"),
        *pieces,
        *_notes(request),
        *_whom(request),
    ]


def _notes(request: AgentRequest) -> list[TextContent]:
    notes = [*([in_words(request.shared)] if request.shared else []), *request.notes]
    return [TextContent(f"(Note: {indented(note)})\n", metadata=ONCE) for note in notes]


def as_noted_now(content: Sequence[UserContent], request: AgentRequest) -> list[UserContent]:
    """The prompt without the notes that would not be told now; those left have no tags, as no message is told there."""
    now, kept = _notes(request.noted_now(request)), list[UserContent]()
    for item in content:
        is_note = isinstance(item, TextContent) and item.metadata == ONCE
        if not is_note:
            kept.append(item)
        elif item in now:
            kept.append(replace(item, metadata=None))
    return kept


def _whom(request: AgentRequest) -> Iterator[TextContent]:
    """Tells the model whom to answer."""
    asking, last = {question.author: question for question in request.questions}, request.questions[-1]
    if len(asking) > 1:  # of several people, the last to ask is asked back
        yield _named(last, f'What you ask by a tool goes to "{last.author}". ')
    if request.may_decline:  # the number of people in a thread helps to tell for whom a message is
        yield _named(last, people_in(request.place, last.author))
    between = f"{MAY_DECLINE if request.may_decline else 'Now'} answer "
    for author, question in asking.items():
        yield TextContent(between)
        yield _named(question, f'"{author}"')
        between = ", "
    yield TextContent(".")


def _named(question: MessageRecord, words: str) -> TextContent:
    """Words with the asking person's name, tagged so that they are deleted from the history with the question."""
    message_id, author_id = question.message_id, question.author_id
    tag = Tag(message_id=message_id, author_id=author_id, reply_to_id=None, reply_to_author_id=None, file="")
    return TextContent(words, metadata=tag)


def _with_files(message: MessageRecord, attached: Mapping[str, Reading]) -> Iterator[UserContent]:
    """A message as the model is sent it, with its files as they were read."""
    words, *images = told(message)
    yield words
    for image in images:
        key = file_key(image.url) if isinstance(image, ImageUrl) else ""
        if key not in attached:
            yield image
    for key in dict.fromkeys(
        (*map(file_key, message.images), *(f.key for f in (*message.files, *message.reply_files)))
    ):
        match attached.get(key):
            case Picture() as picture:
                yield told_of_file(message, key, PICTURE.format(name=key.rpartition("/")[2][:MAX_NAME]))
                yield BinaryContent(picture.data, media_type=picture.kind) if picture.data else ImageUrl(picture.url)
            case str() as said if said:
                yield told_of_file(message, key, said)


def flat(content: str | Sequence[UserContent], *, images: bool = True) -> str | list[UserContent]:
    """Joins successive texts: not every server accepts a list, and clients are slow with one. images: False: replaces
    pictures by a note."""
    if isinstance(content, str):
        return content
    pieces: list[UserContent] = []
    for is_image, items in groupby(content, is_picture):
        if not is_image:
            pieces.append("".join([item.content if isinstance(item, TextContent) else str(item) for item in items]))
        else:
            pieces.extend(items if images else [UNSEEN])
    if not images:
        return "".join(map(str, pieces))
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


def next_history(
    request: AgentRequest, response: ModelResponse, content: Sequence[UserContent] = ()
) -> list[ModelMessage]:
    """The history for the next turn. content: the turn's as it was sent, if it was."""
    # The ids of sent messages are kept, even if their text is deleted later.
    told_ids = {"told": [message.message_id for message in request.transcript]}
    if request.noted_of:
        told_ids["noted"] = sorted(request.noted_of)
    # Of messages that not all who ask may read, the history keeps more than was sent.
    items = content if content and request.said is None else turn_content(request)
    kept = [item for item in items if isinstance(item, TextContent) and item.metadata != ONCE]
    prompt = ModelRequest(parts=[UserPromptPart(content=kept)], metadata=told_ids)
    before = settled(request.history, request.reply.ask_id) if request.reply else request.history
    return [*before, prompt, response]


def as_sent(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The history as it is sent: turn by turn, so that its beginning stays equal to what a provider has cached."""
    sent: list[ModelMessage] = []
    for message in history:
        if uses_tools(message):
            sent += tool_messages_of(message)
        sent.append(without_pictures(flattened(message)))
    return sent


def told_since(
    history: Sequence[ModelMessage], bot_name: str, content: Sequence[UserContent], *, images: bool = True
) -> str | list[UserContent]:
    """The prompt of a resumed run: what was told since it asked, as text, and the turn's prompt. images: as flat()."""
    return flat([TextContent("".join(as_text(one, bot_name) for one in history)), *content], images=images)


def as_text(message: ModelMessage, bot_name: str) -> str:
    """A message of the history as a line of text."""
    message = without_pictures(flattened(message))
    if isinstance(message, ModelRequest):
        return (
            "".join(str(flat(p.content, images=False)) for p in message.parts if isinstance(p, UserPromptPart)) + "\n"
        )
    words = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return f"{bot_name} (you): {indented(words)}\n"


def flattened(message: ModelMessage, *, images: bool = True) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=flat(part.content, images=images)) if isinstance(part, UserPromptPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def with_request(messages: Sequence[ModelMessage], request: ModelRequest) -> list[ModelMessage]:
    """The messages with one more request, which is joined with a request before it, such as other tools' results."""
    *before, last = messages
    if isinstance(last, ModelRequest):
        return [*before, replace(last, parts=[*last.parts, *request.parts])]
    return [*messages, request]


def with_few_faults(message: T) -> T:
    """The message with no more than MAX_FAULTS of what is wrong with the arguments of each call."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        replace(part, content=part.content[:MAX_FAULTS])  # type: ignore[arg-type]  # of whatever tool
        if isinstance(part, ToolReturnPart) and part.outcome == "retried" and isinstance(part.content, list)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def without_pictures(message: ModelMessage) -> ModelMessage:
    """The flattened message as it is sent again in the same run: with a note in place of each picture."""
    if not (isinstance(message, ModelRequest) and has_images(message)):
        return message
    parts = [
        replace(part, content=[SEEN if is_picture(item) else item for item in part.content])
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        else part
        for part in message.parts
    ]
    return flattened(replace(message, parts=parts))


def without_thoughts(message: ModelMessage, *, keeps_signed: bool = False) -> ModelMessage:
    """The message as it is sent to another model. keeps_signed: with signed thoughts, which the same provider wants
    back with the tool calls."""
    if not isinstance(message, ModelResponse):
        return message
    parts = [p for p in message.parts if not isinstance(p, ThinkingPart) or (keeps_signed and p.signature)]
    return replace(message, parts=parts)


def has_images(message: ModelMessage) -> bool:
    """Whether a flattened message has pictures: its prompt is one text without them."""
    return any(isinstance(part, UserPromptPart) and not isinstance(part.content, str) for part in message.parts)


def is_picture(item: object) -> TypeGuard[ImageUrl | BinaryContent]:
    # Most are texts, and to ask whether one is of an abstract class, as an address is, takes five times as long.
    return not isinstance(item, TextContent) and isinstance(item, ImageUrl | BinaryContent)
