"""Makes a request to a model, or its response, take less CPU; of what is sent, only notes are left out (bound_texts).

The clients of OpenAI and Anthropic walk over typed dicts, 0.15 ms for each message, and change nothing that pydantic-ai
passes: they are made to send messages and tools as they are. pydantic-ai adapts the schema of each tool to the provider
anew at every request, 0.05 ms for each: the schemas are kept as they are sent.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import orjson
import structlog
from pydantic_ai import ToolDefinition, _json_schema
from pydantic_ai._framing import second_model_prompt
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters

log = structlog.get_logger()

MAX_SCHEMAS = 256  # of each model, its own tools' and those of MCP servers
MAX_SCHEMA_BYTES = 32_768  # of one as it is sent: twice what it may have in agents/mcp_file.py
MAX_SCHEMA_VALUES, MAX_SCHEMA_DEPTH = 3_000, 40
MAX_SCHEMA_LOOKS = 20_000  # at its values, at each as often as it is deep
MAX_COPIED_BYTES = 8 * MAX_SCHEMA_BYTES  # of it and its definitions, while its references are written out
STEP_SECONDS = 0.01  # after which other tasks run while tools are adapted: known ones take microseconds
MAX_VALUES = 2_000  # that references in a schema may stand for, all together: these take 3 ms
MAX_FENCES = 20  # of code in a response that is no stream: each takes up to 3 ms
ANY = b'{"type": "object", "properties": {}}'
# By the client's class: the method that creates an answer, and the lists that it would walk over.
LISTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "AsyncOpenAI": {"chat.completions": ("messages", "tools"), "responses": ("input", "tools")},
    "AsyncAnthropic": {"beta.messages": ("messages", "tools")},
}
INDEX = re.compile(r"0|[1-9][0-9]{0,8}")  # of a list, in a JSON pointer (RFC 6901)
# What is after the first character of a special token as `<|im_start|>`, as far as no script has it there.
JOINER = re.compile(r"(?<=[<\[])[\u200b-\u200d\u2060\ufeff]|(?<=\])\u200d")


@dataclass(slots=True)
class _Room:
    """How much may still be copied of a schema."""

    bytes: int = MAX_COPIED_BYTES


ROOM: ContextVar[_Room | None] = ContextVar("ROOM", default=None)


def _copied(schema: Any) -> Any:
    """A deep copy of JSON, in a hundredth of the time: a definition is copied anew for each reference to it. Raises
    InlinedSchemaTooLargeError if a schema that is adapted has no more room: pydantic-ai counts a text as one value,
    however long it is, and some transformers look at each character of each copy."""
    try:
        copied = orjson.loads(text := orjson.dumps(schema))
    except orjson.JSONEncodeError:  # as of 65 bits
        copied = json.loads(text := json.dumps(schema).encode())
    if room := ROOM.get():
        room.bytes -= len(text)
        if room.bytes < 0:
            raise _json_schema.InlinedSchemaTooLargeError("JSON schema")
    return copied


def _pointed_to(schema: dict[str, Any], reference: str) -> dict[str, Any] | None:
    """As resolve_json_pointer() of pydantic-ai, which counts the items of a list up for each reference into it."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    node: Any = schema
    for token in reference.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if INDEX.fullmatch(name) and int(name) < len(node) else None
        else:
            node = node.get(name) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def _has_reference(node: Any) -> bool:
    """As contains_ref() of pydantic-ai, in a twentieth of the time: it is asked at each depth."""
    try:
        return b'"$ref":' in orjson.dumps(node)
    except orjson.JSONEncodeError:  # as above
        return b'"$ref":' in json.dumps(node, separators=(",", ":")).encode()


def _is_simple(schema: Any) -> bool:
    """Whether a schema has few values, in few others each: some transformers look at all of them at each depth."""
    level, values, looks = [schema], 0, 0
    for depth in range(1, MAX_SCHEMA_DEPTH + 1):
        values, looks = values + len(level), looks + len(level) * depth
        nested = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [value for inner in nested for value in inner]
        if not level or values > MAX_SCHEMA_VALUES or looks > MAX_SCHEMA_LOOKS:
            break
    return not level and values <= MAX_SCHEMA_VALUES and looks <= MAX_SCHEMA_LOOKS


# The package offers no other way.
_json_schema.MAX_INLINED_SCHEMA_VALUES = MAX_VALUES
_json_schema.deepcopy = _copied  # type: ignore[assignment, attr-defined]
_json_schema.contains_ref = _has_reference  # type: ignore[attr-defined]
_json_schema.resolve_json_pointer = _pointed_to  # type: ignore[assignment]


def send_as_is(client: Any) -> None:
    """Changes the client in place, and so copies made by with_options; not clients of other classes, as Azure's."""
    kind: Any = type(client)
    if kind.__name__ in LISTS:
        plain = type(kind.__name__, (kind,), {})  # the client's user agent has the name of its class
        for path, names in LISTS[kind.__name__].items():
            first, *inner = path.split(".")
            resource = cached_property(partial(_passed_by, getattr(kind, first), inner, names))
            resource.__set_name__(plain, first)
            setattr(plain, first, resource)
        client.__class__ = plain


def _passed_by(given: cached_property[Any], inner: Sequence[str], names: tuple[str, ...], client: Any) -> Any:
    """The client's resource, made when it is first used, as its import takes 0.1 s."""
    resource = given.func(client)
    creating = reduce(getattr, inner, resource)
    create = creating.create

    def send(*, extra_body: Any = None, **arguments: Any) -> Any:
        """Moves the lists to extra_body, and leaves empty ones to keep their places in the JSON."""
        lists = {name: arguments[name] for name in names if isinstance(arguments.get(name), list)}
        return create(**{**arguments, **{name: [] for name in lists}}, extra_body={**lists, **(extra_body or {})})

    creating.create = send
    return resource


@dataclass(frozen=True, slots=True)
class _Adapted:
    """Stands in for a transformer, of which pydantic-ai asks only these two."""

    schema: bytes
    is_strict_compatible: bool
    read: Callable[[bytes], Any]

    def walk(self) -> Any:
        return self.read(self.schema)  # each time a new one, as clients may change it


def sent_bytes(model: Model, schema: Any) -> int:
    """How large a schema is as it is sent to a model that adapts each once, with its references written out; else 0."""
    kind = model.profile.get("json_schema_transformer")
    adapted = kind and kind(schema, strict=None)
    return len(adapted.schema) if isinstance(adapted, _Adapted) else 0


def size_of(tool: ToolDefinition, models: Sequence[Model] = ()) -> int:
    """About how many bytes a tool takes to describe to one of the models."""
    written_out = (sent_bytes(model, tool.parameters_json_schema) for model in models)
    schema = max([len(str(tool.parameters_json_schema).encode()), *written_out])
    return len(f"{tool.name}{tool.description}".encode()) + schema


async def size_of_all(tools: Iterable[ToolDefinition], models: Sequence[Model]) -> int:
    """As size_of(), for several tools. Lets all else go on while schemas are adapted, which may take 50 ms for each."""
    size, clock = 0, asyncio.get_running_loop().time
    began = clock()
    for tool in tools:
        if clock() - began > STEP_SECONDS:
            await asyncio.sleep(0)
            began = clock()
        size += size_of(tool, models)
    return size


def adapt_once(model: Model) -> None:
    """Makes a model adapt each schema only once. One that cannot be adapted, or grows too large, as by references that
    are written out, is sent as one of any arguments: else a tool of an MCP server would make each request fail."""
    kind: Any = model.profile.get("json_schema_transformer")
    if kind is None:
        return

    @lru_cache(MAX_SCHEMAS)
    def adapted(schema: bytes, strict: bool | None, read: Callable[[bytes], Any]) -> _Adapted:
        token = ROOM.set(_Room())
        try:
            if not _is_simple(read(schema)):
                raise _json_schema.InlinedSchemaTooLargeError("JSON schema")
            transformer = kind(read(schema), strict=strict)
            walked, is_strict = transformer.walk(), transformer.is_strict_compatible
            # Hundreds of copies of a long text, to which references led: orjson takes a hundredth of the time.
            sent = orjson.dumps(walked) if read is orjson.loads else json.dumps(walked, ensure_ascii=False).encode()
            refused = f"it takes {len(sent):,} bytes" if len(sent) > MAX_SCHEMA_BYTES else ""
        except Exception as error:  # noqa: BLE001 - of a server's schema, at which the package may raise anything
            refused = type(error).__name__  # its text may quote the server
        finally:
            ROOM.reset(token)
        if refused:
            log.warning("tool_schema_refused", detail=refused, meaning="the model is not told which arguments it takes")
            sent, is_strict = ANY, False
        return _Adapted(sent, is_strict, read)

    class Once(kind):  # type: ignore[misc]
        def __new__(cls, schema: Any, *, strict: bool | None = None) -> Any:
            try:
                return adapted(orjson.dumps(schema), strict, orjson.loads)
            except orjson.JSONEncodeError:  # an MCP server may send what orjson does not write, such as 65 bits
                return adapted(json.dumps(schema).encode(), strict, json.loads)

    model.profile["json_schema_transformer"] = Once


def leave_joiners(model: Model) -> None:
    """Makes a model leave the joiners in its responses that pydantic-ai puts into special tokens of what it sends to
    open models: to remove them from arguments of tools takes it 3 us a character, in one go. without_joiners() removes
    them."""
    kind: Any = type(model)
    model.__class__ = type(kind.__name__, (kind,), {"_restores_special_tokens": False})  # there is no other way


def bound_texts(model: Model) -> None:
    """Bounds two steps of pydantic-ai that take long with some texts, however the model is asked.

    The first, of an agent and of a model with fallbacks, looks in all texts of each request for tags like its own, to
    add notes about them, for which nothing is reserved. Before that it sorts accents pair by pair: 0.8 s for 23,000 on
    one letter, which a model can put into a tool's arguments. It is left out. The second looks for JSON in the code of
    a response that is no stream, such as a judge's, from each beginning of code to the end of the text. A response with
    more than MAX_FENCES raises UnexpectedModelBehavior before that.
    """
    kind: Any = type(model)

    class Bounded(kind):  # type: ignore[misc]
        def prepare_messages(
            self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
        ) -> list[ModelMessage]:
            with second_model_prompt():
                prepared: list[ModelMessage] = super().prepare_messages(messages, model_request_parameters)
                return prepared

        async def request(self, *what: Any, **how: Any) -> ModelResponse:
            response: ModelResponse = await super().request(*what, **how)
            said = [*(call.args for call in response.tool_calls), response.text]
            if any(isinstance(each, str) and each.count("```") > MAX_FENCES for each in said):
                raise UnexpectedModelBehavior(f"The model {self.model_name} went on in code.")
            if response.state == "suspended":
                raise UnexpectedModelBehavior(f"The model {self.model_name} wants to be asked to go on.")
            return response

    Bounded.__name__ = kind.__name__
    model.__class__ = Bounded


def without_joiners(text: str, before: str = "") -> str:
    """The text, which follows `before`, without the joiners that pydantic-ai put into special tokens."""
    last = before[-1:]
    return JOINER.sub("", last + text)[len(last) :]
