"""How offers are wanted and answered: what those who manage a channel do, and what people do about an offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.week.place import HOUR, MINUTE, Place, Steps
from bench.week.record import Answer, Kind, Shown
from bench.week.words import IMPRESSION, NO, NOT_HERE, YES
from playground.server import Playground
from tests.support.scene import choices

DAY = 24 * HOUR
SOONEST, LATEST = 4.0, 560.0  # seconds until somebody answers an offer
BACK_ON_SHARE = 0.5


class Managing:
    """Who manages one channel, and who answers its offers. start: begins these steps, beside the channel's own life."""

    def __init__(
        self, pg: Playground, place: Place, manager_id: int, days: float, start: Callable[[Steps], object]
    ) -> None:
        self._pg = pg
        self._place = place
        self._record = place.record
        self._random = place.random
        self._manager_id = manager_id
        self._days = days
        self._start = start
        self._reactions: dict[Callable[[Shown, int], Steps], int] = {
            self._yes: 22,
            self._yes_twice: 4,
            partial(self._yes, typed=YES): 14,
            self._no: 10,
            partial(self._no, typed=NO): 8,
            self._not_here: 2,
            partial(self._not_here, typed=NOT_HERE): 1,
            self._ignore: 30,
            self._others_click: 4,
        }

    def switches(self) -> Steps:
        """Uses /offers on and off through the week."""
        match self._record.kind:
            case Kind.ON:
                yield self._random.uniform(0, HOUR)
                self._switch(on=True)
            case Kind.LATER:
                yield self._random.uniform(0.15, 0.6) * self._days * DAY
                self._switch(on=True)
            case Kind.OFF_AGAIN:
                yield self._random.uniform(0, HOUR)
                self._switch(on=True)
                yield self._random.uniform(0.3, 0.7) * self._days * DAY
                self._switch(on=False)
            case Kind.TO_AND_FRO:
                yield self._random.uniform(0, HOUR)
                while True:
                    self._switch(on=True)
                    yield self._random.uniform(3, 14) * HOUR
                    self._switch(on=False)
                    yield self._random.uniform(0.5, 5) * HOUR
            case Kind.NEVER:
                return

    def _switch(self, *, on: bool) -> None:
        self._record.switched.append((self._place.clock(), on))
        self._pg.command(self._record.channel_id, self._manager_id, "offers", {"on" if on else "off": {}})

    def react(self, offer: Shown) -> None:
        """Has the person to whom an offer is made answer it, or not."""
        user_id = self._place.offered_to(offer)
        [reaction] = self._random.choices(list(self._reactions), list(self._reactions.values()))
        self._start(reaction(offer, user_id))

    # What they do about it. Whoever comes too late does nothing. typed: the words that are typed in place of a click.

    def _yes(self, offer: Shown, user_id: int, typed: Sequence[str] = ()) -> Steps:
        yield self._later()
        if offer.over_at is None:
            said = self._respond(offer, user_id, "Yes", typed)
            self._answer(offer, Answer.YES, leads_to=offer.about or said)
            if offer.about is None:  # the note that the trip planner asks for
                yield 30.0
                self._place.say(user_id, IMPRESSION)

    def _yes_twice(self, offer: Shown, user_id: int) -> Steps:
        yield self._later()
        if offer.over_at is None:
            self._press(offer, user_id, "Yes")
            self._press(offer, user_id, "Yes")
            self._answer(offer, Answer.YES, leads_to=offer.about or offer.message.id)

    def _no(self, offer: Shown, user_id: int, typed: Sequence[str] = ()) -> Steps:
        yield self._later()
        if offer.over_at is None:
            self._respond(offer, user_id, "Not now", typed)
            self._answer(offer, Answer.NO)

    def _not_here(self, offer: Shown, user_id: int, typed: Sequence[str] = ()) -> Steps:
        """Ends offers in the channel. Some managers switch them on again later."""
        yield self._later()
        if offer.over_at is None:
            self._respond(offer, user_id, "Not in this", typed)
            self._answer(offer, Answer.NOT_HERE)
            self._record.switched.append((self._place.clock(), False))
            if self._random.random() < BACK_ON_SHARE:
                yield self._random.uniform(2, 20) * HOUR
                self._switch(on=True)

    def _ignore(self, _offer: Shown, _user_id: int) -> Steps:
        yield MINUTE

    def _others_click(self, offer: Shown, user_id: int) -> Steps:
        """Somebody else clicks, who may not answer it."""
        yield self._later()
        if offer.over_at is None:
            others = [user.id for user in self._pg.world.people if user.id not in (user_id, self._manager_id)]
            self._press(offer, self._place.one(others), "Yes")

    def _later(self) -> float:
        return self._random.uniform(SOONEST, LATEST)

    def _respond(self, offer: Shown, user_id: int, label: str, typed: Sequence[str]) -> int:
        """Posts one of these texts, or, without any, clicks the button. Returns the id of the text, or of the offer."""
        if typed:
            return self._place.say(user_id, self._place.one(typed)).id
        self._press(offer, user_id, label)
        return offer.message.id

    def _press(self, offer: Shown, user_id: int, label: str) -> None:
        custom_id, values = next(found[1:] for found in choices(offer.message) if found[0].startswith(label))
        self._pg.click(offer.message, user_id, custom_id, values)

    def _answer(self, offer: Shown, answer: Answer, leads_to: int | None = None) -> None:
        offer.answer, offer.answered_at, offer.leads_to = answer, self._place.clock(), leads_to
