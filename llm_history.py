"""The model's history: prompts and answers, and how edits and deletions in Discord change them.

A history is a value. In a prompt each Discord message carries a tag with its ids; in an answer's metadata the agent
keeps its own data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

import orjson
from pydantic import BaseModel, ConfigDict, GetPydanticSchema, StrictInt
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextContent,
    TextPart,
    UserContent,
    UserPromptPart,
)
from pydantic_core import core_schema

from state.message import REPLY_EXCERPT, MessageRecord, Source
from state.optout import FORGOTTEN, UNREAD

TO_OTHERS = "(Here you answered somebody else.)"

Changes = dict[int, MessageRecord | None]  # changed messages by id: as edited, or None where deleted


def _read_messages(value: Any) -> list[ModelMessage]:
    """Accepts messages, or reads them from their JSON values. Raises ValueError."""
    if isinstance(value, list) and all(isinstance(message, ModelRequest | ModelResponse) for message in value):
        return value
    try:
        return ModelMessagesTypeAdapter.validate_json(orjson.dumps(value))
    except TypeError as error:
        raise ValueError("no JSON") from error


AS_JSON = partial(ModelMessagesTypeAdapter.dump_python, mode="json")
WRITTEN = core_schema.plain_serializer_function_ser_schema(AS_JSON, when_used="json")
READ = core_schema.no_info_plain_validator_function(_read_messages, serialization=WRITTEN)
History = Annotated[list[ModelMessage], GetPydanticSchema(lambda _type, _handler: READ)]
"""What the model was told and said, for its next request.

Read and written by pydantic-ai's own adapter: building another one, as even PlainValidator does, takes 25 ms at start.
"""


class Tag(TypedDict):
    """The ids that a piece of a prompt carries. file: the key of the file whose text it is; empty: who is answered."""

    message_id: int
    author_id: int
    reply_to_id: int | None
    reply_to_author_id: int | None
    file: NotRequired[str]


def fits(read: Callable[[Any], object], value: object) -> bool:
    """Whether `read` accepts the value, and does not raise ValueError."""
    try:
        read(value)
    except ValueError:
        return False
    return True


class _MadeOf(BaseModel):
    """A stored Origin."""

    since: StrictInt
    through: StrictInt
    people: list[StrictInt]


class _Beside(BaseModel):
    """The part of an answer's metadata that is read here; the rest is the agent's."""

    ask_id: str | None = None
    words_of: list[tuple[str, StrictInt]] = []
    context: _MadeOf | None = None


class _Told(BaseModel):
    """A prompt's metadata: the ids of messages told in it, and of those that its notes quote; what was cut before."""

    told: list[StrictInt] = []
    noted: list[StrictInt] = []
    before: _MadeOf | None = None


class _Tagged(BaseModel):
    model_config = ConfigDict(strict=True)

    message_id: int
    author_id: int
    reply_to_id: int | None
    reply_to_author_id: int | None
    file: str = ""


def readable(message: ModelMessage) -> ModelMessage:
    """The message without metadata that cannot be read, which somebody may have edited by hand."""
    form = _Beside if isinstance(message, ModelResponse) else _Told
    sound = message if fits(form.model_validate, message.metadata or {}) else replace(message, metadata=None)
    if isinstance(sound, ModelResponse):
        return sound
    parts: list[ModelRequestPart] = []
    for part in sound.parts:
        if not isinstance(part, UserPromptPart):
            parts.append(part)
            continue
        items = [part.content] if isinstance(part.content, str) else part.content
        tags = [item.metadata if isinstance(item, TextContent) else None for item in items]
        fine = [item for item, tag in zip(items, tags, strict=True) if not tag or fits(_Tagged.model_validate, tag)]
        parts.append(replace(part, content=fine))
    return replace(sound, parts=parts)


def told(message: MessageRecord) -> list[UserContent]:
    """A message as the model is told it: author, message replied to, text, images.

    The text is tagged with the message's ids, so that a later edit or deletion finds it in the history. Images that
    follow it belong to the same message.
    """
    reply = ""
    if message.reply_to_author:
        excerpt = " ".join(message.reply_to_text[:REPLY_EXCERPT].split())
        reply = f" (replying to {message.reply_to_author}: {excerpt!r})"
    line = f"{message.author}{mark_of(message)}{reply}: {indented(message.text)}\n"
    tag = Tag(
        message_id=message.message_id,
        author_id=message.author_id,
        reply_to_id=message.reply_to_id,
        reply_to_author_id=message.reply_to_author_id,
    )
    return [TextContent(line, metadata=tag), *map(ImageUrl, message.images)]


def told_of_file(message: MessageRecord, key: str, words: str) -> TextContent:
    """The text of a file attached to a message or to the one it replies to. It is dropped with that message."""
    message_id, author_id = message.message_id, message.author_id
    if key not in message.attached and message.reply_to_id is not None:
        message_id, author_id = message.reply_to_id, message.reply_to_author_id or 0
    tag = Tag(message_id=message_id, author_id=author_id, reply_to_id=None, reply_to_author_id=None, file=key)
    return TextContent(f"    {indented(words)}\n", metadata=tag)


def mark_of(message: MessageRecord) -> str:
    """The mark after the author's name where the author is no person."""
    return " (you)" if message.is_bot else " (another bot)" if message.is_other_bot else ""


def indented(text: str) -> str:
    """Indents all lines but the first, so that no line of a message can look like somebody else's message."""
    return "\n    ".join(text.splitlines())


@dataclass(frozen=True, slots=True)
class Origin:
    """What a summary was made of: messages with ids from `since` through `through`, and words of these people."""

    since: int
    through: int
    people: frozenset[int]

    def is_among(self, gone: Collection[Source]) -> bool:
        """Whether it was made of any of these deleted messages or forgotten people."""
        return any(
            one in self.people if kind == "person" else kind == "message" and self.since <= one <= self.through
            for kind, one in gone
        )


def origin_of(history: Sequence[ModelMessage], own: Sequence[MessageRecord] = ()) -> Origin:
    """What the model was told there. own: the bot's messages, also those that no answer in it has."""
    told = {one for message in history if isinstance(message, ModelRequest) for one in _drawn_on(message)}
    told |= {message.message_id for message in own if message.reply_to_id in told}
    for before in filter(None, map(origin_in, history)):
        told |= {before.since, before.through}
    return Origin(min(told, default=0), max(told, default=0), people_told(history))


def people_told(history: Sequence[ModelMessage]) -> frozenset[int]:
    """The people whose words the model was told there, also by a summary, or before it was cut."""
    tags = tags_in(history)
    people = {who for tag in tags for who in (tag["author_id"], tag["reply_to_author_id"]) if who is not None}
    return frozenset(people.union(*(before.people for before in map(origin_in, history) if before)))


def people_in(messages: Iterable[MessageRecord]) -> frozenset[int]:
    """The people whose words these messages may have: of the bot's those whom they answer, too, of others those whom
    they quote; of somebody who opted out only the latter, who were told where they had asked."""
    people = set[int]()
    for message in messages:
        people |= message.drew_on
        if message.is_bot:
            people |= message.addressees
        elif message.readable != UNREAD:
            people.add(message.author_id)
        if message.reply_to_author_id is not None and (message.reply_to_text or message.readable == UNREAD):
            people.add(message.reply_to_author_id)
    return frozenset(people)


def as_made_of(origin: Origin) -> dict[str, Any]:
    """An origin as metadata."""
    return {"since": origin.since, "through": origin.through, "people": sorted(origin.people)}


def origin_in(message: ModelMessage) -> Origin | None:
    """The origin of a summary, or of what was cut before a prompt without a summary; None for other messages."""
    made_of = (message.metadata or {}).get("context" if isinstance(message, ModelResponse) else "before")
    return Origin(made_of["since"], made_of["through"], frozenset(made_of["people"])) if made_of else None


def uses_tools(message: ModelMessage) -> bool:
    """Whether it is an answer that carries its tool calls and results."""
    return isinstance(message, ModelResponse) and "is_gpa" in (message.metadata or {})


def is_turn_start(message: ModelMessage) -> bool:
    """Whether it is the prompt of a turn, and not what a tool gave."""
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def tags_in(history: Sequence[ModelMessage]) -> list[Tag]:
    prompts = (part.content for message in history for part in message.parts if isinstance(part, UserPromptPart))
    return [item.metadata for content in prompts for item in content if isinstance(item, TextContent) and item.metadata]


def unsaid(history: Sequence[ModelMessage], is_gone: Callable[[set[int]], bool]) -> list[ModelMessage]:
    """The history without these answers; a summary stays. is_gone: (ids of the messages told before the answer)."""
    kept, is_meant = list[ModelMessage](), False
    for message in history:
        if isinstance(message, ModelRequest) and is_turn_start(message):
            is_meant = is_gone(told_in(message))
        if is_meant and isinstance(message, ModelResponse) and not origin_in(message):
            message = replace(message, parts=[TextPart(FORGOTTEN)], metadata=None)  # noqa: PLW2901
        kept.append(message)
    return kept


def sound(history: Sequence[ModelMessage], own: Sequence[MessageRecord], people: Set[int]) -> list[ModelMessage]:
    """The history with only those answers of which it is recorded that they have no words of these people. own: the
    bot's messages that are recorded."""
    clean = {m.reply_to_id for m in own if m.drew_on.isdisjoint(people)}
    clean -= {m.reply_to_id for m in own if not m.drew_on.isdisjoint(people)}
    return unsaid(history, clean.isdisjoint)


def only(history: Sequence[ModelMessage], said: Mapping[int, MessageRecord], people: Set[int]) -> list[ModelMessage]:
    """The history with these messages alone, and the answers that all of these people had asked for.

    said: by id, without quotes of others. Tool results go, and waiting runs but those of theirs, which knew no more.
    """
    kept, is_told, is_theirs = list[ModelMessage](), False, False
    for message in history:
        if isinstance(message, ModelRequest) and is_turn_start(message):
            is_told = not told_in(message).isdisjoint(said)
            is_theirs = people <= {tag["author_id"] for tag in tags_in([message]) if tag.get("file") == ""}
        if isinstance(message, ModelResponse):
            parts = message.parts if is_theirs else [TextPart(TO_OTHERS)]
            metadata = message.metadata if people <= {*_kept_beside(message).get("newcomers", ())} else None
            message = replace(message, parts=parts, metadata=metadata)  # noqa: PLW2901
        if is_told:
            kept.append(message)
    changes: Changes = {}
    for one, quoted in ((tag["message_id"], tag["reply_to_id"]) for tag in tags_in(kept)):
        if quoted in changes or not said.keys() >= {one, quoted or one}:  # others stay, with their pictures
            changes[one] = said.get(one)
    return reworded(kept, changes)


def reworded(history: Sequence[ModelMessage], changes: Changes) -> list[ModelMessage]:
    """The history with the edited messages replaced and the deleted ones (None) left out."""
    if not changes:
        return list(history)
    kept: list[ModelMessage] = []
    for message in history:
        if isinstance(message, ModelRequest):
            parts = [_reworded_part(p, changes) if isinstance(p, UserPromptPart) else p for p in message.parts]
            message = replace(message, parts=parts)  # noqa: PLW2901
        kept.append(message)
    return kept


def without_words(history: Sequence[ModelMessage], gone: Collection[Source]) -> list[ModelMessage]:
    """The history without metadata of answers, and without a summary, that may have words of these sources.

    An answer and a waiting run may have words of all that was told before, and of the sources under "words_of".
    """
    if not (gone and any(map(_kept_beside, history))):
        return list(history)
    gone_ids = {one for kind, one in gone if kind == "message"}
    kept, is_told_of = list[ModelMessage](), False
    for message in history:
        if isinstance(message, ModelRequest) and is_turn_start(message):
            before = origin_in(message)
            is_told_of = is_told_of or bool(before and before.is_among(gone))
            is_told_of = is_told_of or not _drawn_on(message).isdisjoint(gone_ids)
        beside = _kept_beside(message)
        if isinstance(message, ModelResponse) and (made_of := origin_in(message)) and made_of.is_among(gone):
            is_told_of = True  # later answers may draw on the summary
            kept.append(replace(message, parts=[TextPart(FORGOTTEN)], metadata=None))
            continue
        names_some = any((kind, one) in gone for kind, one in beside.get("words_of", ()))
        is_gone = names_some or (is_told_of and "context" not in beside)
        kept.append(replace(message, metadata=None) if beside and is_gone else message)
    return kept


def told_in(prompt: ModelRequest) -> set[int]:
    """The ids of the messages told in a prompt, also of those left out as too much, or removed since."""
    told: Sequence[int] | None = (prompt.metadata or {}).get("told")
    return {tag["message_id"] for tag in tags_in([prompt])} if told is None else set(told)


def _drawn_on(prompt: ModelRequest) -> set[int]:
    """The ids of the messages told in a prompt, and of those whose words it has by a reply to them, or by a note."""
    noted: Sequence[int] = (prompt.metadata or {}).get("noted", ())
    return told_in(prompt).union(noted, filter(None, (tag["reply_to_id"] for tag in tags_in([prompt]))))


def first_told(history: Sequence[ModelMessage]) -> int:
    """The lowest id of a message that the model was told, also in a summary, or before it was cut; 0 where there is
    none."""
    prompts = (message for message in history if isinstance(message, ModelRequest))
    told = {one for prompt in prompts for one in _drawn_on(prompt)}
    return min([*told, *(before.since for before in map(origin_in, history) if before)], default=0)


def tokens_said(answer: ModelMessage) -> int:
    """The tokens of an answer as the provider counted them; 0 where not known."""
    return answer.usage.output_tokens if isinstance(answer, ModelResponse) else 0


def _kept_beside(message: ModelMessage) -> Mapping[str, Any]:
    """An answer's metadata, in which the agent keeps the state of a waiting run, or its tool calls."""
    return (message.metadata or {}) if isinstance(message, ModelResponse) else {}


def waits_for(message: ModelMessage) -> str | None:
    """The id of the question that a run waits for an answer to; None: it does not wait."""
    return (message.metadata or {}).get("ask_id") if isinstance(message, ModelResponse) else None


def _reworded_part(part: UserPromptPart, changes: Changes) -> UserPromptPart:
    content: list[UserContent] = []
    tag: Tag | None = None
    for item in [part.content] if isinstance(part.content, str) else part.content:
        if isinstance(item, str | TextContent):  # pictures belong to the text before them
            tag = item.metadata if isinstance(item, TextContent) else None
        if tag is None or not (tag["message_id"] in changes or tag["reply_to_id"] in changes):
            content.append(item)
        elif isinstance(item, TextContent) and (message := changes.get(tag["message_id"])):
            if "file" not in tag:
                content.extend(told(replace(message, images=())))  # a file line says that the images were seen
            elif tag["file"] in message.attached or (not tag["file"] and message.author in item.content):
                content.append(item)
    return replace(part, content=content)
