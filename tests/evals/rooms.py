"""Rooms made by hand, in the format of evals/rooms.py."""

from __future__ import annotations

import random
from typing import Any

Line = dict[str, Any]
PEOPLE = ["Anna", "Ben", "Cleo"]


def says(t: float, speaker: str, text: str, to: str = "room", answer: str = "", **more: Any) -> Line:
    """A message of a person; it wants an answer if it is said to the bot, unless told otherwise."""
    return {
        "t": t,
        "from": speaker,
        "text": text,
        "to": [to],
        "answer": answer or ("yes" if to == "BOT" else "no"),
        **more,
    }


def answers(t: float, to: str, reply_to: int | None, text: str = "Take the early train.") -> Line:
    line: Line = {"t": t, "from": "BOT", "text": text, "to": [to]}
    return line if reply_to is None else line | {"reply_to": reply_to}


def a_room(*messages: Line, name: str = "a-1", people: list[str] | None = None) -> Line:
    return {"id": name, "kind": "friends", "people": people or PEOPLE, "messages": list(messages)}


def generated(name: str, count: int) -> list[Line]:
    """Rooms in which whoever was answered asks on, and then turns to a friend or laughs."""
    chance = random.Random(name)
    return [_generated(f"{name}-{number}", chance) for number in range(count)]


def _generated(name: str, chance: random.Random) -> Line:
    who, friend, third = chance.sample(PEOPLE, 3)
    town = chance.choice(["Tokyo", "Rome", "Oslo", "Lima"])
    messages = [says(0, friend, "morning"), says(5, who, f"@Parley which train goes to {town}?", "BOT")]
    for asked in range(chance.randrange(2, 6)):
        t = 10 + 30 * asked
        messages += [
            answers(t, who, len(messages) - 1, f"The {chance.choice(['early', 'late', 'night'])} one to {town}."),
            says(t + 5, friend, chance.choice(["lol we never leave", "my boss is back", "what a day"]), who),
            says(t + 9, third, chance.choice(["is anyone hungry?", "same", "the match is on"]), "room"),
            says(
                t + 20,
                who,
                f"{chance.choice(['what about', 'and how long is'])} {chance.choice(['bus', 'ferry'])}?",
                "BOT",
            ),
        ]
    messages.append(says(200, who, f"{friend} are you coming too", friend))
    messages.append(says(203, who, "that helps a lot", "BOT", "no"))
    if chance.random() < 0.3:
        messages.append(says(205, who, "nice one", "BOT", "either"))
    return a_room(*messages, name=name)
