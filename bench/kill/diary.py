"""What happened, in order: what stood in the channels and when, and what each of the bot's lives logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.kill.findings import Finding
from playground.model import Event, Message

BEFORE_SECONDS, AFTER_SECONDS = 5.0, 8.0
MAX_LINE = 400
CHANGES = {"MESSAGE_CREATE": "posted", "MESSAGE_UPDATE": "edited"}
LEFT_OUT = ("event", "timestamp", "guild")


@dataclass(frozen=True, slots=True)
class Entry:
    """at: seconds by the wall clock. channel_id: None where it concerns all channels."""

    at: float
    channel_id: int | None
    text: str

    def __str__(self) -> str:
        return f"{datetime.fromtimestamp(self.at, UTC):%H:%M:%S.%f} {self.text}"


@dataclass(slots=True)
class Diary:
    """clock: seconds by the wall clock."""

    clock: Callable[[], float]
    entries: list[Entry] = field(default_factory=list)

    def note(self, text: str, channel_id: int | None = None) -> None:
        self.entries.append(Entry(self.clock(), channel_id, text))

    def note_event(self, event: Event) -> None:
        """What the playground tells those who listen."""
        if not event.channel:
            return
        if event.name in CHANGES and event.message:
            self.note(f"{CHANGES[event.name]} {_shown(event.message)}", event.channel.id)
        elif event.name == "MESSAGE_DELETE":
            self.note(f"deleted {event.ids}", event.channel.id)
        elif event.name == "INTERACTION_CREATE" and event.data:
            self.note(
                f"click {event.data['id']} on {event.data['message']['id']}: {event.data['data']}", event.channel.id
            )

    def note_log(self, life: int, log: Sequence[Mapping[str, Any]], other: Sequence[str]) -> None:
        """The lines of a life that is over: as JSON, and those that were none."""
        for line in log:
            at = datetime.fromisoformat(str(line["timestamp"])).timestamp()
            fields = " ".join(f"{name}={value}" for name, value in line.items() if name not in LEFT_OUT)
            self.entries.append(Entry(at, line.get("channel"), f"    life {life}: {line['event']} {fields}"))
        for words in other:
            self.note(f"    life {life}: {words}")

    def story(self, finding: Finding) -> Iterator[str]:
        """What happened in its channel, from shortly before it is first named to shortly after the last time."""
        named = [entry.at for entry in self.entries if str(finding.id) in entry.text]
        start, end = min(named, default=0.0) - BEFORE_SECONDS, max(named, default=0.0) + AFTER_SECONDS
        yield f"{finding.id} in channel {finding.channel_id}: {finding.what}"
        for entry in self.in_order():
            if start <= entry.at <= end and entry.channel_id in (None, finding.channel_id):
                yield f"{'>' if str(finding.id) in entry.text else ' '} {entry}"

    def in_order(self) -> list[Entry]:
        return sorted(self.entries, key=lambda entry: entry.at)


def _shown(message: Message) -> str:
    to = f" (to {message.reference.message_id})" if message.reference else ""
    stickers = "".join(f" [{sticker['name']}]" for sticker in message.stickers)
    card = " [card]" if message.components else ""
    nonce = f" nonce {message.nonce}" if message.author.bot else ""
    words = " ".join(message.content.split())
    clipped = words if len(words) <= MAX_LINE else f"{words[: MAX_LINE // 2]} ... {words[-MAX_LINE // 2 :]}"
    return f"{message.id} {message.author.name}{to}{nonce}{stickers}{card}: {clipped}"
