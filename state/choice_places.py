"""Places in the list of options in a reply: by number, by ordinal, or from the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from state.choice_names import Mention
from state.choice_words import (
    BEFORE_DATES,
    BEFORE_QUANTITIES,
    CHOOSING,
    COUNTED,
    COUNTING,
    ENDS,
    FRAME,
    MARKED,
    MIDDLE,
    NO_THINGS,
    NOT_BEFORE_PLACES,
    OF_TWO,
    PLACE_WORDS,
    PLACES,
    PLACING,
    POLITE,
    UNCOUNTED,
)
from state.numerals import cardinal, ordinal

FROM_END = re.compile(
    r"(?<!\S)(?:one (?:before|prior to|preceding)(?: the)? (?:last|final)|next to(?: the)? last"
    r"|(?P<ante>ante)?penultimate|last (?:one )?but (?:one|(?P<but>\d{1,3}))"
    r"|(?P<nth>\d{1,3})th(?: (?:to|from|before|but))?(?: the)? (?:last|end|bottom))(?!\S)"
)


def places_in(words: Sequence[str], names: Sequence[Mention], count: int) -> Iterator[Mention]:
    """Places in the list in a reply, by number, by ordinal, or from the end."""
    candidates = [at for at, word in enumerate(words) if word in PLACE_WORDS or word[0].isdigit()]
    if not candidates:
        return
    sure = [name for name in names if name.company is None or cardinal(words[name.first]) is not None]
    taken = {at for name in sure for at in range(name.first, name.end)}
    for mention in _from_end(words, count):
        taken.update(range(mention.first, mention.end))
        yield mention
    for at in candidates:
        if at in taken:
            continue
        found = _ordinal(words, at, count) or _cardinal(words, at, count) or _one(words, at)
        if found is not None:
            taken.update(range(found.first, found.end))
            yield found


def quantities(words: Sequence[str]) -> set[int]:
    """Where numbers that count things stand, and those things."""
    counts = [at for at, word in enumerate(words) if word.isdecimal() and _is_quantity(words, at)]
    return {*counts, *(at + 1 for at in counts)}


def _is_quantity(words: Sequence[str], at: int) -> bool:
    """Whether a number counts things, by the "s" of many: "2 tickets"."""
    following = words[at + 1] if at + 1 < len(words) else ""
    return following.endswith("s") and following not in NO_THINGS


def _option(place: int, count: int) -> frozenset[int]:
    """The option at a place that counts from 0, or from -1 at the end; none if there is no such place."""
    return frozenset({place % count}) if -count <= place < count else frozenset()


def _from_end(words: Sequence[str], count: int) -> Iterator[Mention]:
    """Places counted from the end: "the last but one", "next to last", "third from the end"."""
    if ENDS.isdisjoint(words):
        return
    text = " ".join(words)
    for found in FROM_END.finditer(text):
        first = text.count(" ", 0, found.start())
        end = first + found[0].count(" ") + 1
        place = 3 if found["ante"] else int(found["nth"] or 2)
        if found["but"]:
            place = int(found["but"]) + 1
        yield Mention(first, end, _option(-place, count))


def _ordinal(words: Sequence[str], at: int, count: int) -> Mention | None:
    """ "The second one" in any company, "the second" among words of choosing; "the first two" are none.

    Nor is "I second that".
    """
    place = _place(words[at], count)
    if place is None or _is_seconding(words, at):
        return None
    following = words[at + 1] if at + 1 < len(words) else ""
    before = words[at - 1] if at else ""
    if cardinal(following) is not None or following == "ones":
        return Mention(at, at + 2, frozenset())
    if following in COUNTED or _is_counted(words, at):
        return Mention(at, at + 2, _option(place, count))
    is_date = not BEFORE_DATES.isdisjoint(words[max(at - 2, 0) : at])
    if before in NOT_BEFORE_PLACES or following in UNCOUNTED or is_date:
        return None
    return Mention(at, at + 1, _option(place, count), PLACING, alone=before not in ("the", "option", "number"))


def _is_seconding(words: Sequence[str], at: int) -> bool:
    is_verb = words[at] == "2th" and words[at - 1 : at] != ["the"] and words[at + 1 : at + 2] in (["that"], ["this"])
    return is_verb and POLITE.issuperset(words[at + 2 :])


def _place(word: str, count: int) -> int | None:
    if word in MIDDLE:
        return count // 2 if count % 2 else None
    if word in OF_TWO and count != 2:
        return None
    number = ordinal(word)
    if number is not None:
        return number - 1 if number else count
    return PLACES.get(word)


def _is_counted(words: Sequence[str], at: int) -> bool:
    """Whether an ordinal counts a thing: "the second restaurant", at the end; not "on the second floor"."""
    before, rest = words[max(at - 2, 0) : at], words[at + 1 : at + 3]
    if before[-1:] != ["the"] or before[0] in BEFORE_QUANTITIES or not rest:
        return False
    return rest[0] not in NO_THINGS and all(word in CHOOSING for word in rest[1:])


def _cardinal(words: Sequence[str], at: int, count: int) -> Mention | None:
    """ "Option 2" in any company; "2" among words of choosing, but not "at 2" or "for 2"."""
    number = cardinal(words[at])
    if number is None:
        return None
    chosen = _option(number - 1 if number else count, count)
    before = words[at - 1] if at else ""
    if before in MARKED:
        return Mention(at - 1, at + 1, chosen, COUNTING if before == "#" else _company(before, number))
    if before == "for" and words[max(at - 2, 0)] not in ("go", "going", "vote"):
        return None
    if before in BEFORE_QUANTITIES or _is_quantity(words, at):
        return None
    return Mention(at, at + 1, chosen, COUNTING, is_bare=True)


def _company(mark: str, number: int) -> frozenset[str] | None:
    """What may stand beside a marked number: any words, but "number one" is praise as well ("my number one fan")."""
    return FRAME if mark == "number" and number == 1 else None


def _one(words: Sequence[str], at: int) -> Mention | None:
    """ "One" alone or marked; else it is a pronoun."""
    before = words[at - 1] if at else ""
    if words[at] != "one" or (before and before not in POLITE and before not in MARKED):
        return None
    if before in MARKED:
        return Mention(at - 1, at + 1, frozenset({0}), _company(before, 1))
    return Mention(at, at + 1, frozenset({0}), POLITE, alone=True)
