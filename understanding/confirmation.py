"""Decides whether a reply means yes, no, or neither.

A false yes is the worst error: a yes needs words that say it, and no others that take it back, postpone it, put a
condition or doubt it. A reply is cut into clauses, each clause gets a kind by closed classes of common words, and the
order of the kinds decides. In other languages than English only a bare yes or no is known: see yes_or_no.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum, auto

from understanding.cancel import MAX_LENGTH, RESERVATIONS, clauses, ends, one_of, plain
from understanding.yes_or_no import says_yes


class Kind(StrEnum):
    """What a clause does."""

    YES = auto()
    FINE = auto()  # praise, perhaps only of what was said
    OK = auto()  # "ok", "sure": weaker still if more is said
    NO = auto()
    DENIAL = auto()  # any other "not"
    LATER = auto()
    UNSURE = auto()
    CHANGE = auto()  # of what was said before
    REVISES = auto()  # "actually": a yes or no after it counts
    LIMITS = auto()  # sets a condition or a limit
    OFF = auto()  # cancels everything
    DONE = auto()  # "that's all", "I'm good"
    ASKS = auto()
    WISH = auto()
    NOTHING = auto()  # politeness
    OTHER = auto()


MAX_PROMPT = 1_000  # the last characters of a question, which are read
NUMBERED = re.compile(r"(\d)[).:] *(yes|no)\b")  # "(1) Yes or (2) No"

MEANINGS = {"fine": "ok", "unsure": "maybe", "yes": "yes", "now": "now", "nothing": ""}
IDIOM = one_of(r"""
    (?P<fine>oke?[yi]e? doke?[yi]e?|all right|not an? (?:problem|issue)|nothing wrong(?: with (?:it|that|this))?|no (?:\
problem|worries|prob|issues?|objections?|complaints?|doubt|mistakes?|errors?))
    (?P<unsure>no (?:idea|clue|preference|opinion|matter|difference|importance)|(?:yes|no) (?:or|and) (?:yes|no)\
|yeah right(?=\W*$)|yes[ -]m[ae]n(?=\W*$))
    (?P<yes>of course(?! not)|by all means|for sure|sure thing|you bet|uh.?huh|m+.?hm+|roger that|^please(?=\W*$)\
|(?:hell|heck|why) (?:yes|yeah)|(?:i )?couldnt agree more)
    (?P<now>right (?:now|here|there|away))
    (?P<nothing>why not|if not|cant wait|cannot wait|not bad|as a matter of fact|if you (?:can|could|would|dont mind)\
|if (?:its |thats )?(?:possible|okay|ok|fine))
""")  # idioms: their meaning is not that of their words
ANSWER = re.compile(
    r"(?P<yes>ya+h?|ye+(?:ah*|[ps]+|ap|h)?|yup+|yas+|yess?ir|aye|affirmative|agreed?)"
    r"|(?P<ok>oka?y?|oke?y|okie|alright|sure|cool|nice)|(?P<no>no+|nope?|nah+|naw|nay|negative|nada|disagree)"
)
ALONE = (  # answers only if nothing stands beside them
    dict.fromkeys(("y", "yh", "+1", "thumbsup"), Kind.YES)
    | dict.fromkeys(("n", "thumbsdown"), Kind.NO)
    | dict.fromkeys(("k", "kk", "right"), Kind.OK)
)
EMPHATIC = frozenset(  # a yes if alone; before other words only emphasis
    """absolutely definitely certainly correct exactly precisely indeed totally positive roger obviously naturally
    surely confirm confirmed true granted""".split()
)
COURTESY = frozenset(
    """oh ooh um uh umm uhm ah aha hm hmm mm well hey hi haha ha lol please pls plz thanks thank you thx ty cheers so
    then dear sir man bro dude now honestly just very much again for your help asking a lot""".split()
)
AT_THE_ENDS = frozenset("oh um uh ah hmm hm well please pls plz thanks thx then lol haha hey".split())

CHANGING = one_of(r"""
    instead|rather|except|switch|replace|fix|rectify|redo|modify|changed? (?:my mind|it|that|this|the|my)
    on second thoughts?|what if|make (?:it|that|them) (?!so\b|happen\b)|(?:do|try|check) (?:it |that )?again
    lets try again|i (?:clearly |just |already )?(?:said|meant|asked for)|another (?:one|option)
    something else|different
""")
ASKED_TO_DO = one_of(r"(?:can|could|would|will) you (?:please )?do (?:it|so|that)(?: for me)?")
ASKING = one_of(r"""
    (?:also |so |or )?(?:what|whats|how|hows|when|where|wheres|which|who|whos|why)\b(?! (?:i|we|you|it|that|he|she)\b)
    (?:also |so |or )?(?:is|are|isnt|arent|was|were|does|doesnt|did|can|could|will|would|has|should|may)\
 (?:i|you|we|they|it|he|she|there|that|this|the|these|those|their|its|my|your|any|anyone)
    (?:do|dont|have) (?:i|you|we|they)|(?:also )?(?:tell|let me know|give|show|find)|i wonder|im wondering
    (?:id|i) (?:also )?(?:want|need|would like|would love|like|love) to (?:know|ask|find out|understand)
    im not (?:\w+ )?sure (?:when|where|who|which)
""")
NOT_SAYING = one_of(r"""
    (?:know|tell|decide|ask|see|say|answer) (?:you |me |it )?later|(?:cant|cannot) (?:\w+ )?(?:answer|say|tell|decide)
""")
AT_A_TIME = one_of(r"""
    (?:only )?(?:when|once|after|before|until|till|as soon as)\
 (?!(?:is|are|was|were|do|does|did|will|would|can|could|should|shall|has|have)\b)\w.*
    (?:(?:on|by|next|this) )?(?:tomorrow|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|weekend|month|year)
    in (?:an?|\w+) (?:minutes?|hours?|days?|weeks?|months?|years?)
""")
LATER = one_of(r"""
    later(?<!\ba later)(?<!\bor later)(?! (?:time|date|than|flight|train|bus|show))|at a later|now not
    (?:not|cant|dont|cannot|wont|never) (?:\w+ ){0,4}(?:yet|now|today|tonight|at (?:the|this) (?:moment|time|point))
    (?:(?:some |any )?other|another|next) (?:time|day)|(?:hold|wait|hang) off|postpone|too (?:early|soon)|some ?day
    in (?:a|the) (?:(?:little|short|near) )?(?:bit|while|minute|moment|sec|second|few|future)
    first(?<!the first)(?=$| things first)
""")
UNSURE = one_of(r"""
    maybe|perhaps|possibl[ey]|probably|unsure|uncertain|undecided|deciding|idk|dunno|depend(?:s|ing)|n?either|might
    whatever|whichever|wait|doubt|doubtful|i wish|indifferent|unclear|unlikely|likely|suppose|guess|hopefully
    anything|anyone|any one|one or the other|both|all (?:of (?:them|these) )?are|up to you|50 50|(?:kind|sort) of
    you (?:can )?(?:choose|decide|pick)|let me (?:think|see|check|look)|think(?:ing)? about|get back to you
    (?:hard|difficult|tough|impossible) to (?:say|tell)|who knows|on the fence|(?:some|is a|theres a) chance
    could (?:\w+ )?be|in (?:theory|principle)|theoretically|(?:hold|hang) on|hate|dislike
    not (?:\w+ ){0,2}(?:sure|certain|positive|decided|convinced)(?! (?:when|where|how|who|which|why)\b)
    (?:(?<!you )(?:dont|do not|didnt|doesnt|does not|wouldnt|would not|cant|cannot|could not|couldnt|havent|have not)\
|not able to|unable to) (?:\w+ ){0,3}(?:know|care|mind|say|tell|decided?|remember|answer|sure|matter|certain|clue\
|recall|choose|understand|get it)
""")
LIMITING = one_of(r"""
    if|unless|provided|as long as|assuming|only|just (?:the|that|this)|the (?:first|second|third|last|others?|rest)
    ^(?:keep|leave|no (?:to|for|on)|not the)
""")
SAYING_NO = one_of(r"""
    wrong|incorrect|inaccurate|false|untrue|mistaken?|mistakes|misunderst\w+|errors?|lies?|lying|opposite|unnecessary
    refuse|decline|reject|disagree|i(?:ll)? pass|no (?:way|need|chance|thanks?|thank you)|not (?:a chance|really|at all)
    ^no (?:i|it|its|that|thats|this|dont|not|actually|sir)|(?:no|nope|nah|negative)(?: (?:from|for) (?:me|us))?$
    not happening|(?:prefer|rather|seems?|appears?|think|course) not$
    ^(?:i )?(?:dont|do not|didnt|did not|wouldnt|would not|wont|will not|am not|cant|cannot)\
(?: (?:do|want|think|thing|need|like|believe|agree)(?: (?:it|so|that|to|this))?)?$
    (?:not|isnt|aint|arent|wasnt|doesnt|dont) (?:\w+ )?(?:\
right|correct|true|accurate|ok|okay|good|fine|it|work|the case)$
""")
DONE = one_of(r"""
    (?:im|i am|were|we are|ill be|i will be) (?:\w+ )?(?:good|fine|okay|ok|set|done)(?: (?!with\b|to\b).*)?
    (?:thats|that is|thatll be|that will be|that would be|thatd be|this is|its|it is) (?:\w+ly )?(?:all|everything|it)\
(?: (?:for|i (?:need|want|require|have|was)).*)?
    all (?:set|done).*|nothing(?: (?:else|more|further|at all).*)?|(?:good ?)?bye|have a .*
""")
DENYING = one_of(r"""
    not|never|nothing|none|nobody|nor|without|hardly|cannot|dont|doesnt|didnt|isnt|arent|aint|wasnt|werent|wont
    wouldnt|shouldnt|couldnt|cant|havent|hasnt|(?<=\w )no
""")
VERY = "(?:(?:sure|surely|definitely|certainly|absolutely|really|very|much|totally|do|did|would|also) )*"
ASSENT = one_of(rf"""
    (?:(?:that|i think|i believe|why) )?(?:i|we) {VERY}(?:do|did|am|are|will|would|should|must|can)(?: (?:so|indeed))?
    (?:i|we|id|wed) {VERY}(?:like|love|appreciate|want|enjoy|need) (?:the sound of )?(?:it|that|this)\
(?: (?:very|so) much| a lot)?
    (?:i|we|id|wed) {VERY}(?:like|love|want|need) to(?: do (?:it|so|that|this))?|(?:i )?(?:do )?(?:think|believe|say) so
    i (?:\w+ly )?(?:agree|concur|accept|approve|confirm)(?: (?:with|to) (?:it|that|this|you))?
    (?:(?:lets|just|you (?:can|may|should)|i (?:want|would like|need) you to) )*(?:go (?:right )?(?:a?head|for it)\
|do (?:it|so|that|this)|proceed|continue|make it (?:so|happen))\
(?: (?:for (?:me|us)|now|with (?:it|that|this|the \w+)|right away))*
    (?:book|send|add|save|start|buy|order|reserve|schedule) (?:it|them|that)|(?:will |lets |sure )?do
    lets go|you (?:may|can)
    (?:(?:it|they) (?:is|are|does|do|was|were))|it (?:would |does )?(?:seem|appear)s? so|(?:you )?got (?:it|that)
    (?:thats|that is|this is|it is|its) (?:\w+ )?(?:what i (?:want|wanted|need|needed|said|meant|asked for|ordered)\
|the one|my order)
    (?:im|i am|were|we are) (?:\w+ )?(?:sure|positive|certain|interested|in favou?r|ready|good to go\
|(?:happy|good|okay|ok|fine) with (?:it|that|this))|count me in|im in|deal|sounds like a plan
""")
TRUE = frozenset(
    """yes yeah right correct true accurate affirmative exact exactly correctly fact confirmed valid agree agreed
    positive""".split()
)
GOOD = frozenset(
    """good great fine perfect perfectly ok okay alright excellent wonderful amazing awesome nice lovely cool super
    superb brilliant fantastic terrific ideal splendid sense helpful well work works suits fits neat sweet""".split()
)
BESIDE_PRAISE = frozenset(
    """that thats this is its it these they theyre are was were everything all looks look sounds sound seems seem
    appears appear would will be i id think believe say know can confirm my answer the a an statement order
    response result reply you youre your youve ve said have has had got done did understood heard job choice idea
    plan instructions instruction command commands understanding way information details to of with for by from as
    me us here now then too also really very so such totally definitely absolutely certainly strongly most just
    quite pretty completely entirely indeed truly 100 percent like about much better enough what makes make thatd
    thatll itd itll proceed continue go""".split()
)
PRAISE = TRUE | GOOD | BESIDE_PRAISE
PRAISING = one_of(rf"(?:(?:thats|that is|its|it is|what) )?an? (?:{'|'.join(sorted(GOOD))}) \w+")
WISHING = one_of(r"""
    (?:im )?sorry$|(?:sorry )?(?:i|we) (?:\w+ )?(?:want|need|would (?:like|love|prefer)|prefer|should)
    (?:sorry )?(?:id (?:like|love|prefer)|please \w+|it should)
""")

OFFERING_MORE = one_of(r"""
    else|(?:any ?thing|some ?thing|do|any) (?:more|further|other)|other (?:needs|requests|questions)
    (?:may|can|could) i (?:help|assist|be of)
""")
CHECKING = one_of(r"""
    confirm\w*|correct\w*|verify\w*|review|check|details|everything|(?:right|ok|okay)(?= *\?)
    ^(?:(?:ok|okay|sure|so|just|alright)[,.]? )*(?:you(?:'d| would)? (?:want|need|like|wish)|[a-z]{3,}ing)
""")
REPEATING = re.compile(
    r"(?:(?:please|just|lets) )?(\w+) (?:it|them|that|this|all|everything)(?: (?:all|for me|now|in|off|away|up))?"
)
WORD = re.compile(r"\w+")

ANSWERS = frozenset(
    {Kind.YES, Kind.FINE, Kind.OK, Kind.NO, Kind.DENIAL, Kind.LATER, Kind.UNSURE, Kind.CHANGE, Kind.DONE}
)
TAKEN_BACK = frozenset({Kind.UNSURE, Kind.DENIAL, Kind.CHANGE, Kind.LIMITS, Kind.OFF})
SOMETHING_ELSE = frozenset({Kind.ASKS, Kind.WISH, Kind.DONE, Kind.OTHER})


def confirm(reply: str, prompt: str = "") -> bool | None:
    """True for a yes, False for a no, None for neither. prompt: the question that was asked, or "".

    "Not now" is a no. So is a wish for something other than what the question read back. Doubts, conditions, questions
    and cancellations are neither.
    """
    if len(reply) > MAX_LENGTH:
        return None
    asked = prompt[-MAX_PROMPT:].casefold()
    numbered: dict[str, str] = dict(NUMBERED.findall(asked))
    if meaning := numbered.get(reply.strip()):
        return meaning == "yes"
    if (is_yes := says_yes(reply)) is not None:
        return is_yes
    kinds: list[Kind] = [kind for kind in _kinds(reply, asked) if kind is not Kind.NOTHING]
    for i in reversed(range(len(kinds) - 1)):
        if kinds[i] is Kind.REVISES:  # a correction: the last word of "no, but actually, yes" counts
            rest = kinds[i + 1 :]
            return _verdict(rest if rest[0] in (Kind.YES, Kind.NO) else [*kinds[:i], Kind.CHANGE, *rest], asked)
    return _verdict(kinds, asked)


def _kinds(reply: str, asked: str) -> Iterator[Kind]:
    """The kinds of the clauses. A word for yes or no that begins a clause counts as a clause of its own.

    It does not if the rest is about the word ("yes is what he said"), or if it is a "no" in a later clause ("and no
    sugar"). What follows a "but" limits the answer, also if nothing follows; a "though" at the end does not.
    """
    cut = clauses(IDIOM.sub(lambda idiom: MEANINGS[idiom.lastgroup or ""], plain(reply)))
    for at, clause in enumerate(cut):
        first, _, rest = clause.words.partition(" ")
        has_reservation = first in RESERVATIONS
        is_unsaid = has_reservation and not rest and first != "though"
        words = (rest if has_reservation else clause.words).split()
        for end in (0, -1):
            while len(words) > 1 and words[end] in AT_THE_ENDS:
                words.pop(end)
        is_lead = len(words) > 1 and (words[1] not in ("is", "was", "means") or words[0] == "no")
        lead = _answer(words[0]) if is_lead else None
        if lead and (at == 0 or lead is not Kind.NO):
            yield lead
            words = words[1:]
        kind = _kind_of_question(" ".join(words)) if clause.asks else _kind(words, asked)
        yield Kind.LIMITS if is_unsaid or (has_reservation and kind in (Kind.OTHER, Kind.WISH)) else kind


def _answer(word: str) -> Kind | None:
    found = ANSWER.fullmatch(word)
    return Kind(found.lastgroup) if found and found.lastgroup else None


def _kind_of_question(text: str) -> Kind:
    """The kind of a question: YES if it asks to do it, LIMITS or CHANGE if it asks to change it, else ASKS."""
    if ASKED_TO_DO.fullmatch(text):
        return Kind.YES
    if text.startswith("actually "):
        return Kind.CHANGE
    return Kind.LIMITS if CHANGING.search(text) else Kind.ASKS


def _kind(words: list[str], asked: str) -> Kind:
    """The kind of a clause that is no question.

    Emphasis is a yes only if it stands alone. After "actually" a yes or no counts, anything else is a change. Some
    words answer only if they stand alone: "right", but not "right answer".
    """
    first, *rest = words or [""]
    if first in EMPHATIC:
        return _kind(rest, asked) if rest else Kind.YES
    if first == "actually":
        kind = _kind(rest, asked) if rest else Kind.REVISES
        return kind if kind in (Kind.YES, Kind.NO, Kind.REVISES) else Kind.CHANGE
    if words and not rest and (kind_alone := ALONE.get(first) or _answer(first)):
        return kind_alone
    if COURTESY.issuperset(words):
        return Kind.NOTHING
    return _stated(" ".join(words), asked)


NO_PRAISE = (ASKING.match, UNSURE.search, DONE.fullmatch)  # these are no praise, though they consist of its words


def _stated(text: str, asked: str) -> Kind:
    """The kind of a statement.

    Only words of praise: FINE or YES. Repeating the verb of the question is a yes. A time that the question did not
    name postpones. Otherwise the first kind of STATED whose words occur; kinds that take back come before assent.
    """
    words = text.split()
    is_praise = PRAISE.issuperset(words) and not any(says(text) for says in NO_PRAISE)
    if is_praise and not (TRUE | GOOD).isdisjoint(words):
        return Kind.FINE if TRUE.isdisjoint(words) else Kind.YES
    repeated = REPEATING.fullmatch(text)
    if repeated and repeated[1] in WORD.findall(asked):
        return Kind.OTHER if ends(text) else Kind.YES
    if AT_A_TIME.fullmatch(text) and not set(text.split()).issubset(WORD.findall(asked)):
        return Kind.LIMITS
    return next((kind for kind, says in STATED if says(text)), Kind.OTHER)


STATED: Sequence[tuple[Kind, Callable[[str], object]]] = (
    (Kind.CHANGE, CHANGING.search),
    (Kind.UNSURE, NOT_SAYING.search),
    (Kind.YES, ASKED_TO_DO.fullmatch),
    (Kind.ASKS, ASKING.match),
    (Kind.LATER, LATER.search),
    (Kind.UNSURE, UNSURE.search),
    (Kind.LIMITS, LIMITING.search),
    (Kind.NO, SAYING_NO.search),
    (Kind.DONE, DONE.fullmatch),
    (Kind.OFF, ends),
    (Kind.DENIAL, DENYING.search),
    (Kind.YES, ASSENT.fullmatch),
    (Kind.FINE, PRAISING.fullmatch),
    (Kind.WISH, WISHING.match),
)


def _verdict(kinds: Sequence[Kind], asked: str) -> bool | None:
    """The verdict of the first clause that answers, which a later clause may take back."""
    first = next((kind for kind in kinds if kind in ANSWERS), None)
    if Kind.YES not in kinds and first in (Kind.FINE, Kind.OK, Kind.DONE) and OFFERING_MORE.search(asked):
        return False if Kind.DONE in kinds else None
    match first:
        case Kind.YES | Kind.FINE | Kind.OK:
            return _accepted(kinds, asked)
        case Kind.NO | Kind.LATER | Kind.CHANGE | Kind.DENIAL:
            return None if Kind.YES in kinds else False
        case Kind.UNSURE:
            return False if Kind.LATER in kinds else None
        case Kind.DONE:
            return None if Kind.YES in kinds or CHECKING.search(asked) else False
        case None if Kind.WISH in kinds and Kind.ASKS not in kinds and CHECKING.search(asked):
            return False
    return None


def _accepted(kinds: Sequence[Kind], asked: str) -> bool | None:
    """The verdict if a yes comes first. Praise followed by a question is a yes only if the prompt asked to check."""
    if Kind.NO in kinds or Kind.LATER in kinds:
        return False
    if not TAKEN_BACK.isdisjoint(kinds):
        return None
    if Kind.YES in kinds or SOMETHING_ELSE.isdisjoint(kinds):
        return True
    is_checked = (
        Kind.FINE in kinds and {Kind.FINE, Kind.OK, Kind.ASKS, Kind.DONE}.issuperset(kinds) and CHECKING.search(asked)
    )
    return True if is_checked else None
