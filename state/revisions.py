"""The changed messages of a conversation, so that nobody who knew them before tells their old words."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from state.message import MessageRecord

MAX_REVISIONS = 20_000  # by id alone; Discord deletes 100 messages at once
MAX_EDITED = 1_000  # with their words, a few kB each


class Revisions(OrderedDict[int, MessageRecord | None]):
    """Messages by id, in the order of their last changes: as edited, or None where deleted.

    Bounded: of more than MAX_EDITED edits the oldest count as deletions, since their new words are no longer known.
    """

    def __init__(self) -> None:
        super().__init__()
        self._edited: OrderedDict[int, None] = OrderedDict()

    @property
    def edited(self) -> list[MessageRecord]:
        """Those of which the new words are known."""
        return [message for one in self._edited if (message := self[one])]

    def note(self, changes: Mapping[int, MessageRecord | None]) -> None:
        """Adds changes, the newest last."""
        for message_id, message in changes.items():
            self[message_id] = message
            self.move_to_end(message_id)
            self._edited.pop(message_id, None)
            if message:
                self._edited[message_id] = None
        while len(self._edited) > MAX_EDITED:
            self[self._edited.popitem(last=False)[0]] = None
        while len(self) > MAX_REVISIONS:
            self._edited.pop(self.popitem(last=False)[0], None)
