"""Shortens the parsed data of what model and MCP servers send, before clients validate and collect it.

Of each part and each character they make something, in one go: an object for a part that fits no type takes 0.8 ms.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable
from itertools import count
from typing import Any

MAX_ITEMS = 40  # in all lists of an event or body together: OpenAI's client takes 0.8 ms for each that fits no type
MAX_KEYS = 500  # in all its objects together: each value may take 60 us
MAX_DEPTH = 20  # of lists and objects in each other: whoever writes them out, as for a warning, copies a text for each
# Of all texts of an event or body together: twice what an answer may have, as some servers tell each thought twice.
# What is done to a text takes up to 4 us a character.
MAX_CHARACTERS = 128_000
MAX_ERROR_CHARACTERS = 10_000  # of an error
MAX_ID = 1_000  # of a part: some gateways' ids are long
MAX_KEY = 256  # characters
SHORT = 64  # characters of a text that stays, such as a type: else nothing of what has it could be read
# Where the texts are that a response says. In all its events together they may have as many characters as follows, more
# than OpenAI sends by repeating the longest answer: clients hold some texts back, of which no event tells then.
SAID = frozenset({"arguments", "content", "delta", "partial_json", "refusal", "text", "thinking"})
MAX_SAID = 320_000
# Not read, but kept to be sent again. Deeper than any of them is, it counts as any text.
MAX_OPAQUE_DEPTH = 8
OPAQUE = frozenset({"encrypted_content", "signature", "thought_signature", "data", "blob"})
MAX_NAMES = 100  # of the counts in which a server tells the use, which pydantic-ai collects over the whole response
MAX_NAME = 64  # characters of one
# Characters of the name under which a model says that it answers: pydantic-ai looks up its price, and takes up to 14 us
# for each of them.
MAX_MODEL_NAME = 256
STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # in a text of JSON
PART_CHARACTERS = 32  # pydantic-ai takes 5 us to write and read one that it keeps
TEXT, KEPT = "parley_text", "parley_kept"  # of a response: how many characters it said, and bytes may be kept of it
KEPT_PART_BYTES = 8  # as which each list, object and what is in them counts
HAS_ENDED = "parley_has_ended"  # of a response of chat completions: it said why it ended
NO_NEWS = "response.web_search_call.searching"  # an event of which nothing is taken


def parts_in(text: str | bytes) -> int:
    """The lists and objects in a text of JSON, and what is in them, or more."""
    signs: Any = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    return sum(map(text.count, signs))


def weight_of(text: str, structure: str | None = None) -> int:
    """The characters of a text of JSON, of which a part counts as PART_CHARACTERS. structure: the same without strings,
    whose commas are no parts."""
    return len(text) + PART_CHARACTERS * parts_in(text if structure is None else structure)


def shorten_response(data: object, so_far: dict[str, Any], counts: set[str]) -> None:
    """Shortens an event or body of a response before it is validated. so_far: what is known of the response, to which
    is added what is in it, as TEXT and KEPT; counts: as in leave_out_counts()."""
    if isinstance(data, dict):
        leave_out(data, so_far)
        cut_ids(data)
        cut_model_name(data)
    shorten(data, MAX_ITEMS, MAX_KEYS, MAX_CHARACTERS, MAX_DEPTH)
    said, kept = sizes_of(data)
    so_far[TEXT], so_far[KEPT] = so_far.get(TEXT, 0) + said, so_far.get(KEPT, 0) + kept
    leave_out_counts(data, counts)


def shorten_error(data: object) -> None:
    """Shortens what a server says went wrong, which is written out several times, and kept while others are asked."""
    shorten(data, MAX_ITEMS, MAX_KEYS, MAX_ERROR_CHARACTERS, MAX_DEPTH, opaque=())


def leave_out(data: dict[str, Any], so_far: dict[str, Any]) -> None:
    """Leaves out of an event or body what is not asked for, and what would hold up all else or count twice.

    so_far: what is known of the response. An event may have fields of several providers' at once.
    """
    if isinstance(response := data.get("response"), dict):  # repeats the request, and the events before
        response |= {"instructions": None, "tools": [], "output": []}
    if data.get("object") == "response":
        data |= {"instructions": None, "tools": []}
    if isinstance(choices := data.get("choices"), list):
        for name in [name for name, value in data.items() if isinstance(value, list) and value is not choices]:
            del data[name]  # Perplexity repeats all sources
        del choices[1:]  # only the first is read
        for choice in filter(lambda each: isinstance(each, dict), choices):
            _leave_out_of_choice(choice, data, so_far)
    match data:  # the sources, each of which pydantic-ai looks for in the text
        case {"type": "response.output_text.annotation.added"}:
            data["type"] = NO_NEWS
        case {"type": "content_block_delta", "delta": {"type": "citations_delta"}}:
            data["delta"] = {"type": "text_delta", "text": ""}
        case {"type": "response.reasoning_text.delta"} if data.get("content_index") not in range(MAX_ITEMS):
            data["content_index"] = 0  # else as many empty texts are made for those before; it may be 1e9, too


def _leave_out_of_choice(choice: dict[str, Any], data: dict[str, Any], so_far: dict[str, Any]) -> None:
    choice.pop("logprobs", None)
    if "delta" in choice:
        choice.pop("message", None)  # of Perplexity's, the text so far
    calls = delta.get("tool_calls") if isinstance(delta := choice.get("delta"), dict) else None
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and not isinstance(call.get("id"), str):
            call["id"] = None  # whatever it is would be kept
    for said in (choice.get("delta"), choice.get("message")):
        if isinstance(said, dict):
            said.pop("annotations", None)
    so_far[HAS_ENDED] = so_far.get(HAS_ENDED) or bool(choice.get("finish_reason"))
    if "delta" in choice and not so_far[HAS_ENDED]:
        data.pop("usage", None)  # some servers tell the use so far with each piece, which pydantic-ai would add up


def cut_ids(data: dict[str, Any]) -> None:
    """Cuts that by which pydantic-ai tells parts from each other, and leaves out what is of another type: it keeps all
    of it."""
    item = data.get("item")
    for holder in (data, item if isinstance(item, dict) else {}):
        for name in {"id", "item_id", "phase"} & holder.keys():
            holder[name] = holder[name][:MAX_ID] if isinstance(holder[name], str) else None
        for name in {"index", "output_index"} & holder.keys():
            holder[name] = holder[name] if isinstance(holder[name], int) else 0


def cut_model_name(data: dict[str, Any]) -> None:
    """Cuts the name under which the model says that it answers."""
    for holder in (data, data.get("response"), data.get("message")):
        if isinstance(holder, dict) and isinstance(name := holder.get("model"), str):
            holder["model"] = name[:MAX_MODEL_NAME]


def sizes_of(data: object) -> tuple[int, int]:
    """The characters of what an event says, and the bytes of it that its client may keep."""
    said = kept = 0
    nested = [data]
    for each in nested:  # the list grows meanwhile
        kept += KEPT_PART_BYTES
        if isinstance(each, dict):
            said += sum(len(text) for key, text in each.items() if key in SAID and isinstance(text, str))
            kept += sum(map(_room_of, each))
            nested += each.values()
        elif isinstance(each, list):
            said += sum(len(text) for text in each if isinstance(text, str))
            nested += each
        elif isinstance(each, str):
            kept += _room_of(each)
    return said, kept


def _room_of(text: str) -> int:
    """The most bytes that Python takes for a text."""
    return len(text) * (1 if text.isascii() else 4)


def leave_out_counts(data: object, known: set[str]) -> None:
    """Leaves out of the use that an event or body tells the counts whose names are not known. known: the first
    MAX_NAMES that came; those of this one are added."""
    if not isinstance(data, dict):
        return
    holding = (data, *(data.get(name) for name in ("response", "message", "x_groq")))
    nested = [each.get("usage") for each in holding if isinstance(each, dict)]
    for each in nested:  # the list grows meanwhile
        if isinstance(each, dict):
            for name in [*each]:
                if name in known or (len(known) < MAX_NAMES and len(name) <= MAX_NAME):
                    known.add(name)
                else:
                    del each[name]
            nested += each.values()
        elif isinstance(each, list):
            nested += each


def shorten(
    data: object,
    items: int,
    keys: int,
    characters: int,
    depth: int = sys.maxsize,
    *,
    opaque: Container[str] = OPAQUE,
) -> None:
    """Cuts the lists in parsed data to so many items in all, the objects to so many keys, and the texts, but for short
    ones and those with opaque keys, to so many characters. Empties lists and objects that are in so many others."""
    level: list[object] = [data]
    for deep in count():
        if not level:
            return
        if deep == depth:
            items = keys = 0
        if deep == MAX_OPAQUE_DEPTH:
            opaque = ()
        nested: list[object] = []
        for each in level:
            if isinstance(each, list):
                del each[items:]
                items -= len(each)
                characters = _cut_texts(each, range(len(each)), characters)
                nested += each
            elif isinstance(each, dict):
                for key in [key for place, key in enumerate(each) if place >= keys or len(key) > MAX_KEY]:
                    del each[key]
                keys -= len(each)
                characters = _cut_texts(each, [key for key in each if key not in opaque], characters)
                nested += each.values()
        level = nested


def _cut_texts(holder: Any, places: Iterable[Any], room: int) -> int:
    """Cuts the texts in these places of a list or object to so many characters together, but each to SHORT or more.
    Returns how many are left."""
    for place in places:
        text = holder[place]
        if isinstance(text, str):
            if len(text) > max(room, SHORT):
                holder[place] = text[: max(room, SHORT)]
            room -= min(len(text), room)
    return room
