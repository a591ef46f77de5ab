"""What a person does with commands, cards and forms of the bot, in the words that stand on them.

pg.add_role("Helpers", members=[pg.person("Ben")])
card = await pg.reply_to(run(pg, "Ben", "parley settings"))
form = pick(pg, "Ben", card, "Who may talk", "Helpers", "Ada")
done = await pg.reply_to(await fill(pg, form, {"Persona": "A pirate.", "Answers": "Eagerly", "Channels": ["help"]}))
names = await suggested(pg, "Ben", "model", "name", "gpt")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from playground.interactions import Interaction
from playground.model import Message, Role, User
from playground.server import Playground

Part = dict[str, Any]
_SEVERAL = (3, 5, 6, 7, 8, 22)  # component types of which several values are chosen
_USER, _ROLE, _CHANNEL, _RADIO = 5, 6, 8, 21


def run(pg: Playground, who: str, words: str, *, channel: str = "general", **options: Any) -> Interaction:
    """Uses a slash command, "parley settings" with its subcommand, and returns at once."""
    name, given = _nested(words, options)
    return pg.command(pg.channel(channel), pg.person(who), name, given)


async def suggested(
    pg: Playground, who: str, words: str, option: str, typed: str = "", *, channel: str = "general", **others: Any
) -> list[str]:
    """The names of what the bot suggests for an option in which this much is typed."""
    name, given = _nested(words, others | {option: typed})
    offered = await pg.suggested(pg.autocomplete(pg.channel(channel), pg.person(who), name, given, option))
    return [str(one["name"]) for one in offered]


def _nested(words: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name, *subcommands = words.split()
    for subcommand in reversed(subcommands):
        options = {subcommand: options}
    return name, options


def pick(pg: Playground, who: str, card: Message, menu: str, *labels: str) -> Interaction:
    """Chooses in the menu whose placeholder or custom_id begins so: options by label, people and places by name."""
    part = next(part for part in _parts(card.components) if _called(part, menu))
    return pg.click(card, pg.person(who), part["custom_id"], _values(pg, part, labels))


def _called(part: Part, beginning: str) -> bool:
    return any(str(part.get(name) or "").startswith(beginning) for name in ("placeholder", "custom_id"))


async def fill(pg: Playground, opener: Interaction, values: dict[str, Any]) -> Interaction:
    """Waits for the form, and sends it: {a label's beginning: text, True or False, a choice's label, or a list}.

    What is left out stays as the form shows it.
    """
    form = await pg.form_of(opener)
    return pg.submit(opener, dict(_filled(pg, form, label, value) for label, value in values.items()))


def _filled(pg: Playground, form: Part, label: str, value: Any) -> tuple[str, Any]:
    part: Part = next(
        one["component"] for one in form["components"] if "component" in one and one["label"].startswith(label)
    )
    if part["type"] in _SEVERAL:
        value = _values(pg, part, value)
    elif part["type"] == _RADIO and value is not None:
        [value] = _values(pg, part, [value])
    return part["custom_id"], value


def _parts(components: Sequence[Part]) -> Iterator[Part]:
    for part in components:
        yield part
        yield from _parts(part.get("components", ()))


def _values(pg: Playground, part: Part, labels: Sequence[str]) -> list[str]:
    if "options" in part:
        options = {option["label"]: str(option["value"]) for option in part["options"]}
        return [next(value for name, value in options.items() if name.startswith(label)) for label in labels]
    return [str(_named(pg, part["type"], label)) for label in labels]


def _named(pg: Playground, kind: int, name: str) -> int:
    """The id of what a menu of this type offers by this name."""
    if kind == _CHANNEL:
        return pg.channel(name)
    things: list[User | Role] = [] if kind == _USER else [*pg.world.guild.roles.values()]
    things += [] if kind == _ROLE else [*pg.world.users.values()]
    return next(one.id for one in things if one.name == name)
