"""What people click: cards of questions, of which many are old, offers, and cards of settings."""

from __future__ import annotations

from bench.privacy.places import MANAGER, PEOPLE
from bench.privacy.together import Together
from bench.privacy.watch import words_in
from discord_io.view import OFFER_PREFIX
from place_settings.fields import Level
from playground.errors import ApiError
from playground.interactions import Interaction
from playground.model import Message, Wire
from tests.support.scene import choices

NEW = 8  # cards that are clicked most
USERS, ROLES, CHANNELS = 5, 6, 8  # Discord's types of menus of people, roles and channels
MOST = 4  # clicks on one card of settings
BACK, GUILD = "Inherit everything", int(Level.GUILD)
TYPED = ("eager", "off", "German", "a pirate", "$900 a day", "inherit", "nonsense")


class Clicks(Together):
    async def _click(self, who: str) -> None:
        cards = [m for m in self._places.seen(who) if m.author.id == self._pg.bot_id and choices(m)]
        if cards:
            card = self._random.choice(cards[-NEW:] if self._random.random() < 0.7 else cards)
            await self._click_on(who, card, *self._random.choice(choices(card)))

    async def _click_on(self, who: str, card: Message, label: str, custom_id: str, values: list[str]) -> None:
        self._ask_in(who, card.channel_id)
        self._clicked |= {(who, word) for word in words_in([label])}  # what they say by it
        self.log.append(f"{who} clicks {label} on {card.id}")
        try:
            clicked = self._pg.click(card, self._ids[who], custom_id, values)
        except ApiError:  # somebody else's answer has disabled it
            return
        await self._scene.until(lambda: clicked.callback is not None)
        if clicked.form:
            await self._fill_in(who, clicked)

    async def _answer_offer(self, who: str) -> None:
        """Asks everybody where offers are on, and answers the bot's offer, if it makes one, or somebody else does."""
        with self._all_in(self._random.choice([id_ for id_ in self._places.channels if self._places.sees(who, id_)])):
            await self._use(MANAGER, "offers", self._places.here, on={})
            await self._ask_everybody(who)
            if self._random.random() < 0.3:
                self._begin_step()
                await self._random.choice((self._edit, self._delete, self._say))(who)
            newest = self._pg.messages(self._places.here)[-3:]
            offered = [(card, one) for card in newest for one in choices(card) if one[1].startswith(OFFER_PREFIX)]
            if offered:
                self._begin_step()
                card, one = self._random.choice(offered)
                await self._click_on(who if self._random.random() < 0.8 else MANAGER, card, *one)
            await self._at_rest()

    async def _set_by_click(self, _who: str) -> None:
        """The manager clicks through a card of settings, and mostly puts all back at the end."""
        channel = self._random.choice([*self._places.channels, *self._places.threads[-2:]])
        card = await self._use(MANAGER, "parley", channel, settings={})
        for _ in range(self._random.randrange(1, MOST + 1)):
            if not (parts := _parts(card)):
                break
            card = await self._change(card, self._random.choice(parts))
        if self._random.random() < 0.8:
            for level in (GUILD, 0):
                where = {"where": level} if level else {}
                card = await self._use(MANAGER, "parley", channel, settings=where)
                for _ in range(2):  # the second time surely
                    if back := [part for part in _parts(card) if part.get("label") == BACK]:
                        card = await self._change(card, back[0])

    async def _change(self, card: Message, part: Wire) -> Message:
        """Uses a part of a card of settings, and the form that it opens. Returns the card as it stands then."""
        person, title = self._ids[MANAGER], [-card.channel_id]
        values = self._chosen(part, self._words.guilds[card.channel_id])
        self.log.append(f"{MANAGER} uses {part.get('label') or part.get('placeholder')} {values} on {card.id}")
        self._ask_in(MANAGER, card.channel_id)
        clicked = self._pg.click(card, person, part["custom_id"], values)
        await self._scene.until(lambda: clicked.callback is not None)
        if clicked.form:
            sent = self._pg.submit(clicked, self._filled(clicked))
            await self._scene.until(lambda: sent.callback is not None)
        await self._handled()
        shown = self._pg.interactions.ephemeral(card.id, person) or card
        self._watch.check_shown("on a card of settings", words_in([shown.content, str(shown.embeds)]), title)
        return shown

    def _chosen(self, part: Wire, guild: int) -> list[str]:
        """What is chosen in a menu, or nothing of a button, in this server."""
        some = range(self._random.randrange(3))
        match part["type"]:
            case t if t == USERS:
                return [*{str(self._ids[self._random.choice(PEOPLE)]) for _ in some}]
            case t if t == ROLES:
                return [*{str(self._places.role) for _ in some}]
            case t if t == CHANNELS:
                there = [id_ for id_ in self._places.channels if self._words.guilds[id_] == guild]
                return [*{str(self._random.choice(there)) for _ in some}]
            case _:
                return [self._random.choice(part["options"])["value"]] if "options" in part else []

    def _filled(self, opener: Interaction) -> dict[str, object]:
        """What is written or chosen in the form of a setting."""
        assert opener.form
        box = opener.form["components"][0]["component"]
        if "options" not in box:
            return {box["custom_id"]: self._random.choice(TYPED)}
        value = self._random.choice(box["options"])["value"]
        return {box["custom_id"]: [value] if "max_values" in box or box["type"] == 3 else value}


def _parts(card: Message) -> list[Wire]:
    """The buttons and menus of a card that can be used."""
    return [part for row in card.components for part in row["components"] if not part.get("disabled")]
