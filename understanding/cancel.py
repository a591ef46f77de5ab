"""Detects replies that cancel what is going on, and cuts short replies into clauses.

The words are closed classes of common English. Names of things (a reservation, an alarm, a song) are not among them,
so that "cancel my reservation" stays a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from understanding.stopping import read_stop
from understanding.wording import CUES_OF, NOT_WORDS

MAX_LENGTH = 600  # characters: a longer message is neither an answer nor a cancellation
MAX_POLITE = 30  # words before a cancellation: without each number of them it is looked at again

PICTURES = {"yes": "👍👌✅✔☑🆗🙆💯🫡", "no": "👎❌✖❎🚫🙅🛑⛔✋🖐🤚", "maybe": "🤷🤔🙄"}  # in any skin tone
REPLACED = str.maketrans(
    dict.fromkeys("'’`ʼ", "")
    | dict.fromkeys("_*~", " ")
    | {picture: f", {word}, " for word, pictures in PICTURES.items() for picture in pictures}
)
STRETCHED = re.compile(r"([a-z])\1{2,}")  # "nooo", "yesss"
JOINT = re.compile(r"\b(?:and|because|(but|though|although|however))\b")
RESERVATIONS = frozenset("but though although however".split())
CLAUSE = re.compile(r"([^.,;:!?\n()…–—]+)([.,;:!?\n()…–—]*)")
NOT_IN_WORDS = re.compile(r"[^\w+]+")


class Clause(NamedTuple):
    """A clause. words: lower case, single spaces between, without apostrophes ("thats"); asks: "?" follows."""

    words: str
    asks: bool


def plain(text: str) -> str:
    """The text in lower case, without mentions, links, code, apostrophes and stretched letters; 👍 becomes "yes"."""
    return STRETCHED.sub(r"\1", NOT_WORDS.sub(" ", text).casefold().translate(REPLACED))


def clauses(text: str) -> list[Clause]:
    """The clauses of a plain text in order, cut at punctuation and conjunctions; "but" stays with what follows it."""
    cut = CLAUSE.findall(JOINT.sub(r",\1", text))
    found = (Clause(NOT_IN_WORDS.sub(" ", words).strip(), "?" in marks) for words, marks in cut)
    return [clause for clause in found if clause.words]


def one_of(ways: str) -> re.Pattern[str]:
    """A pattern for whole words that matches any of the alternatives. A line that ends with a backslash goes on."""
    lines = ways.replace("\\\n", "").strip().splitlines()
    return re.compile(rf"\b(?:{'|'.join(map(str.strip, lines))})\b")


# Words before and after a cancellation: politeness, hesitation, addressees.
BEFORE = frozenset(
    """oh ah um uh ok okay well hey hi so please pls plz just now actually no nope nah wait sorry thanks thank can could
    will would may might should must have you u we i id lets let us me like want wish prefer love need needed to kindly
    simply go ahead then yes yeah alright right hold hang on""".split()
).union(RESERVATIONS)
AFTER = frozenset(
    """now please pls plz then thanks thank you already right away immediately at once for good anymore any more further
    longer altogether completely ok okay man bro dude ai bot robot computer after all asap me so very much yet instantly
    this instant""".split()
)
ENDINGS = frozenset(
    """cancel stop quit exit abort end cease halt terminate discontinue drop scrap scratch refrain avoid undo discard
    forget ignore disregard dismiss skip pause close kill destroy desist nevermind void retract rescind suspend
    canceling cancelling stopping ending quitting""".split()
)
# General words for what is going on.
WHAT_ENDS = AFTER | frozenset(
    """it that this those them everything anything all of the my your our any a an whole entire current currently
    present last latest previous recent recently prior ongoing existing active running same about with on out from in by
    here what whatever which thing things stuff mission
    youre you are were im i am ive had is was being be just said say asked ask told tell gave give made sent wanted
    requested doing do done working carrying going performing executing processing trying continuing
    talking speaking chatting asking answering replying responding listening typing rambling
    task tasks command commands request requests process processes action actions activity activities operation
    operations input instruction instructions query question search program procedure function job work flow session
    conversation discussion dialogue chat statement prompt step response progress""".split()
)
NOT_ON = re.compile(r"(?:i |we )?(?:dont|do not|no longer|no more) (?!do (?:it|that|this)$)")  # "don't do that" is a no
CARRIED_ON = WHAT_ENDS | frozenset(
    """want wanna need have wish to bother continue go on carry proceed keep talk speak say answer perform execute
    complete finish run process word else help""".split()
)
IT = "(?:it|this|that|everything|the whole thing|yourself)"
OTHER_WAYS = one_of(rf"""
    (?:ive |have |weve )?changed? (?:my|our) minds?(?: (?:about|on) {IT})?
    (?:call|turn|switch|shut|power|knock) (?:{IT} )?off(?: {IT})?|(?:shut|power) (?:{IT} )?down|cut {IT} out
    shut (?:up|it|your mouth)|zip it|pipe down|stfu|(?:make {IT}|(?:{IT}|you) to) (?:stop|end|quit)
    {IT} (?:stopped|ended|aborted|cancell?ed)|(?:put )?(?:a stop|an end) to {IT}|give up|take {IT} back
    (?:get|take|let) (?:me |us )?out(?: of (?:here|{IT}))?|back out(?: of {IT})?
    (?:be|keep|stay|go|become) (?:quiet|silent|mute|away|to sleep)|quiet (?:down|now|please)|silence|hush(?: up)?|shh
    (?:thats |that is |ive heard |ive had |its )?(?:quite )?enough(?: (?:of|from) (?:{IT}|you))?|no more|mute
    (?:leave|let) (?:it|that|me|us) (?:be|go|alone)|leave it
    (?:thats|thatll be|(?:that|this|it) (?:is|will be|would be)) all(?: i (?:need|want|needed|wanted))?
    (?:im|am|were|are|its) (?:done|finished|through|over)(?: (?:with (?:{IT}|you)))?
    (?:talk|speak) to (?:you|ya)(?: (?:later|soon|tomorrow))?(?: on)?
    never ?mind(?: (?:me|(?:about )?(?:{IT}|all that)))?|nvm
    no thanks?|no thank you|no thx|actually no|nah|nope|not interested
""")
ASIDES = one_of(r"""
    (?:i |ive )?(?:gotta|got to|have to) go(?: now)?|see (?:you|ya)(?: (?:later|soon|tomorrow))?
    good ?bye|bye(?: bye)?|good ?night
    (?:im|i am) (?:good|fine|ok|okay)|(?:on second thought|you know what|my bad|very much|so much)s?
    i (?:already |just )?(?:know|knew|found|figured|got|did|remember|remembered|see|saw|solved|forgot)\b.*
""")  # phrases that may stand beside a cancellation

REQUESTING = one_of(r"(?:can|could|may|would|will) (?:i|we|you|u)|please")
ASKING_WHETHER = one_of(r"(?:should|shall|must|might) (?:i|we)")
TAKING_BACK = frozenset("yes yeah ahead".split())
NODS = str.maketrans(dict.fromkeys(PICTURES["yes"], ", "))  # "never mind 👍" takes nothing back

GREETINGS = frozenset("hey hi hello ok okay please".split())
BEFORE_A_NAME = frozenset("it please now talking speaking up quiet all enough later you".split())
NO_NAMES = CUES_OF.keys() | set("off up down out over away back on in".split())


def calls_off(reply: str) -> bool:
    """Whether a reply cancels the flow.

    It does if one of its clauses cancels and the others say nothing: "ok, never mind, thanks". A reply that goes on to
    something else, takes it back or asks whether to do it cancels nothing; nor does a goodbye alone. In languages other
    than English the whole reply must be a cancellation. All cancel patterns of the document "Conversation State
    Manager" are recognised.
    """
    if len(reply) > MAX_LENGTH:
        return False
    if read_stop(reply):
        return True
    cut = clauses(plain(reply.translate(NODS)))
    # "Should I cancel" and "cancel?" only ask; "can you stop?" is a request.
    off = [
        ends(words) and not ASKING_WHETHER.search(words) and (not asks or REQUESTING.search(words) is not None)
        for words, asks in cut
    ]
    if not any(off):
        return False
    after = cut[len(off) - off[::-1].index(True) :]
    if any(not TAKING_BACK.isdisjoint(clause.words.split()) for clause in after):  # "never mind, yes"
        return False
    return all(is_off or _says_nothing(words, at) for at, ((words, _), is_off) in enumerate(zip(cut, off, strict=True)))


def ends(words: str) -> bool:
    """Whether a clause cancels: by an ending verb followed only by words for what is going on, or by a set phrase.

    Polite words around it and a name are ignored: "could you please stop what you're doing".
    """
    return any(_is_ending(rest) for named in _without_name(words.split()) for rest in _without_courtesy(named))


def _without_name(words: list[str]) -> list[list[str]]:
    """The words as they are, and without an unknown word that can be a name.

    A name stands at the beginning before two words or more ("hey Robo stop it", but not "bus stop"), or at the end
    after a word that takes no object: "shut up Robo".
    """
    found = [words]
    start = int(words[0] in GREETINGS)
    if len(words) > start + 2 and words[start] not in CUES_OF:
        found.append(words[start + 1 :])
    if len(words) > 2 and words[-2] in BEFORE_A_NAME and words[-1] not in NO_NAMES:
        found.append(words[:-1])
    return found


def _without_courtesy(words: list[str]) -> Iterator[list[str]]:
    """The words without each number of polite words at the start, at most so many, each with and without those at the
    end."""
    end = len(words)
    while end and words[end - 1] in AFTER:
        end -= 1
    for start, word in enumerate(words[:MAX_POLITE]):
        yield from (words[start:stop] for stop in {len(words), end})
        if word not in BEFORE:
            break


def _is_ending(words: list[str]) -> bool:
    if words and words[0] in ENDINGS:
        return WHAT_ENDS.issuperset(words[1:])
    text = " ".join(words)
    if denied := NOT_ON.match(text):
        return CARRIED_ON.issuperset(text[denied.end() :].split())
    return OTHER_WAYS.fullmatch(text) is not None


def _says_nothing(words: str, place: int) -> bool:
    """Whether a clause is only politeness or hesitation, or, as the first one, a name: "Robo, stop"."""
    is_name = place == 0 and words.isalpha() and words not in CUES_OF
    return is_name or (BEFORE | AFTER).issuperset(words.split()) or ASIDES.fullmatch(words) is not None
