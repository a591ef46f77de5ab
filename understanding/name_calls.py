"""Detects whether a text calls somebody by name: "Parley are you there?", "hey parley", "what do you think, Parley?".

A name calls only at the start or the end, and outside quotes and code. Talking about somebody does not call them
("Parley is nice", "i asked parley"): after a name at the start there must be a comma, a question, a request or nothing;
before a name at the end a comma, a question, a request or a greeting. A name that is a common word needs its comma or
colon.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from understanding.acknowledgements import bare_acknowledgement
from understanding.stopping import Stop, read_stop
from understanding.wording import TALK_OF, TOO_COMMON, words_of, words_of_name

REACH = 80  # characters from either end of a text within which a calling name begins
SHORT = 3  # letters: names of up to 3 count as common words
COMMON_NAMES = frozenset(
    """will art mark hope grace faith joy rose lily daisy iris ivy amber ruby jade pearl crystal dawn summer autumn
    winter april june august rain star angel bill jack nick frank rich dick chuck gene grant hank herb drew chase hunter
    mason cooper page sage reed rusty sandy spike stone wolf bear buddy echo nova atlas oracle genius helper guide
    friend robot assistant computer home world game music news time chat help admin server sunny lucky happy honey sugar
    pepper ginger basil olive cherry apple mint cookie penny dollar major king queen prince duke chief captain doctor
    coach teacher master mister buster tiger eagle hawk raven shadow ghost spirit magic mystery justice victory liberty
    """.split()
)

COMMON_WORDS = COMMON_NAMES | TOO_COMMON | TALK_OF.keys()

FLAGS = re.VERBOSE | re.IGNORECASE
GREETINGS = r"""(?:hey|hi|hiya|hello|yo|oi|hallo|moin|servus|salut|bonjour|coucou|hola|buenas|ciao|olá|hoi|hej|hei
    |cześć|ahoj|merhaba|selam|привет|привіт|good\ (?:morning|evening|afternoon|night)|gm|gn|guten\ (?:morgen|abend|tag)
    |welcome(?:\ back)?|bye|goodbye|see\ you|sup|wake\ up)(?:\ (?:there|again|dear))?"""
FILLERS = r"(?:ok|okay|so|and|but|well|oh|ah|um|uh|hmm|right|alright|no|yes|yeah|now|please|pls|dear|also|na|bitte)"
# The beginning of a question to whoever was named just before; forms of the second person in other languages.
ASKS = re.compile(
    r"""
    (?:what|why|how)(?:['’]?s|\ ?['’]re)?\b|(?:who|when|where|which)['’]s\b|(?:who|when|where)s\b
    |(?:who|when|where|which|whose)\ (?:is|are|was|were|do|does|did|can|could|will|would|should|has|have)\b
    |(?:is|are|was|were|do|does|did|can|could|will|would|should|shall|may|might|have|has|had|am|don['’]?t|aren['’]?t
        |can['’]?t|won['’]?t|didn['’]?t)\ (?:you|u|ya|i|we)\b
    |(?:is|was|will|would|can|could|does)\ (?:it|there|this|that|they|he|she)\b(?=.*\?)
    |(?:any|thoughts|ideas|opinions|wanna|ready|got)\b(?=.*\?)
    |you(?:['’]?(?:re|ve|d|ll))?\b|your\b|u\b|ya\b
    |(?:\w+st\ )?du\b|(?:bist|kannst|hast|willst|weißt|magst|machst|könntest|würdest|meinst|denkst|glaubst)\b
    |tu\b|\w+-tu\b|est-ce\b|qu['’]est-ce\b|tú\b|puedes\b|estás\b|eres\b|sabes\b|tienes\b|quieres\b|crees\b
    |(?:puoi|sei|sai|hai|vuoi|pensi)\b|(?:você|vc|podes|consegues)\b
    |(?:ben|kun|kan|heb|weet|wil|vind|denk)\ (?:je|jij)\b
    |(?:jesteś|możesz|wiesz|umiesz)\b|(?:är|er|kan|vet|ved|vil|vill|har|tror|tycker|synes)\ du\b
    |(?:oletko|voitko|tiedätkö|osaatko)\b|(?:jsi|můžeš|víš|umíš)\b|(?:ты|можешь|знаешь|ти|можеш|знаєш)\b
    |was\ (?:ist|sind|war|wird|wäre|kann|soll|muss|heißt|bedeutet|kostet|gibt|macht|passiert|läuft|geht|weiß|für)\b
    |(?:who|when|where|which|wer|wie|wo|wann|warum|wieso|welche[rs]?
        |pourquoi|comment|quand|où|qui|quel|quelle|combien|qué
        |cómo|cuándo|dónde|quién|cuál|cosa|perché|quando|dove|chi|quale|come|onde|quem|qual|como|wat|wie|waar|waarom|hoe|co|kto
        |gdzie|kiedy|dlaczego|jak|ile|czy|vad|hva|hvad|vem|hvem|när|når|varför|hvorfor|hur|hvordan|mitä|miksi|miten|kuka
        |missä|kdo|kde|kdy|proč|ne|neden|nasıl|kim|nerede|что|кто|где|когда|почему|как|сколько|що|хто|де|коли|чому|як)
        \ (?!you\b).*\?""",
    FLAGS,
)
REQUESTS = re.compile(
    r"""
    (?:(?:please|pls|plz)(?!\ don['’]?t)|tell|show|give|explain|help\ (?:me|us|with|out)|write|make|find|look\ up|check
        |translate|summari[sz]e|remind|add|remove|search|google|calculate|compute|convert|define|describe|compare|suggest
        |recommend|pick|choose|roll|play|sing|draw|generate|create|repeat|continue|go\ on|wait|come|let['’]?s
        |let\ me|say|try\ again|remember|quiz|rate|rank|settle|one\ (?:more|last)
        |forget|ignore|correct|listen|guess|do\ (?:it|this|that|not|a|me|us)|be)\b
    |(?:bitte|sag|sage|erklär|erkläre|hilf|gib|zeig|mach|schreib|hör|dis|dis-moi|explique-moi|aide-moi|donne-moi|fais
        |dime|explícame|ayúdame|dame|dimmi|spiegami|aiutami|dammi|diz-me|zeg|geef|help|powiedz|wyjaśnij|pomóż|säg|förklara
        |sig|forklar|kerro|selitä|auta|řekni|vysvětli|pomoz|söyle|anlat|açıkla|скажи|объясни|помоги|расскажи|поясни
        |допоможи|розкажи)\b(?!\ is\b)""",
    FLAGS,
)
# "hey parley is down", "ok parley that's enough now": not said to it, or in need of no answer.
ABOUT = re.compile(
    r"""(?:is|isn['’]?t|was|wasn['’]?t|has|had|does|doesn['’]?t|did|didn['’]?t|can|can['’]?t|will|won['’]?t|could
    |would|said|says|just|keeps|got|gave|went|answered|replied|told|never|always|really|and|or
    |that['’]?s\ (?:enough|it|all)|enough|stop|hush|shush|shut|quiet|don['’]?t|please\ don['’]?t|reicht)\b""",
    FLAGS,
)
# Words after which a name at the end can only be an address: "what do you think parley?"
BEFORE_AN_ADDRESS = frozenset(
    """you u it that this me us them him her there here now today tonight tomorrow then again too though already yet
    please right later ever well think say reckon doing going up feeling agree mean up""".split()
)
# Words of which a name at the end is the object: "can you ask parley?"
GOVERNING = re.compile(
    r"""(?:ask|tell|try|use|like|love|hate|want|need|see|know|get|have|make|add|ban|kick|mute|ping|call|invite|blame|trust
    |miss|remove|fix|run|host|restart|reset|prefer|beat|test|break|kill|thank|meet|mention|block|name|watch|hear|read|mean
    |enable|disable|update|install|join|leave|replace|say|said|told|made|saw|knew|got|had|ran|is|are|was|were|be|been|does
    |did|do|has|isn't|not|the|a|an|this|that|my|your|our|his|her|their|its|which|whose|other|new|old|some|any|no|and|or
    |with|to|by|from|about|for|of|than|on|at|in|into|onto|off|over|after|before|like|as|against|without|via|through|called
    |named|vs|versus|but|if|because|when|while|until|who|what|why|where|how|only|even|just|so
    |really|actually|still|another)(?:s|d|ed|ped)?|\w+ing""",
    re.VERBOSE,
)
NOT_GOVERNING = frozenset("doing going feeling morning evening something anything nothing everything".split())

QUOTED = re.compile(
    r"""^>>>\s(?s:.*)|^>\s[^\n]*$|```(?s:.*?)```|`[^`\n]{1,300}`|"[^"\n]{1,300}"|“[^“”\n]{1,300}”|«[^«»\n]{1,300}»
    |„[^„“”\n]{1,300}[“”]|<a?:\w{2,32}:\d{1,20}>|:\w{2,32}:|https?://\S+""",
    re.MULTILINE | re.VERBOSE,
)
GREETING = re.compile(rf"(?:{FILLERS}[\s,]+)?{GREETINGS}", FLAGS)
APPOSITION = re.compile(r"\s*(?:(?:who|which|whose)\b[^?]*,|@?\w+,?\ (?:and|&|und|et|y)\ [^?]*$)", FLAGS)
TURNING = re.compile(r"(?:ok|okay|alright|right)\b", FLAGS)  # "ok parley one last question"
YES_NO = re.compile(r"(?:is|are|was|were|does|do|did|can|will)\ (?:it|that|this|there)\b", FLAGS)
SECOND_PERSON = re.compile(r"\b(?:you|u|your|du|tu|tú|você|je|jij|ty|ты|ти)\b", re.IGNORECASE)
SENTENCE = re.compile(r"(?<![.!?])[.!?\n]+\s+|\n")
BETWEEN = re.compile(r"\A(?:[\s.!?-]|[^\w\s\x00-\x7f])*")  # punctuation and emoji
UNSPACED = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
NOTHING_SAID = re.compile(r"[\W_]*")
CALLING_WORDS = frozenset(
    """hey hi hello yo ok okay no yes yeah well so please stop why what how really sorry help nice wait listen look come
    right true agreed sure seriously""".split()
)


TELLS_OF = frozenset("is isn't isnt was wasn't wasnt ist war est était es está era è é".split())
# Words after "is" in a question without its mark: "Parley is the pool open", "Parley is it far".
MAY_ASK = frozenset(
    """you u i we he she it they this that there these those the a an my your our his her their its any anybody anyone
    some somebody someone der die das ein eine le la les un une el los las il lo gli o os""".split()
)


class _Name(NamedTuple):
    key: str
    is_common: bool
    start: re.Pattern[str]
    end: re.Pattern[str]


@lru_cache(maxsize=256)
def _read_name(name: str) -> _Name | None:
    """The patterns of a name. None: it has no words."""
    words = words_of(name)
    if not words:
        return None
    is_common = all(len(word) <= SHORT or word in COMMON_WORDS for word in words)
    pattern = r"[\W_]{0,3}".join(map(re.escape, words))
    lead = rf"\s*(?P<lead>(?:{FILLERS}[\s,]+){{0,2}}(?P<greeting>{GREETINGS}[\s,!]+)?(?:{FILLERS}[\s,]+)?)"
    start = rf"{lead}@?{pattern}(?!\w|['’-]\w|\.\w)(?P<mark>\s*[,:、，：])?(?P<rest>.*)"
    end = rf"(?P<mark>[,:、，]\s*|\s)@?{pattern}[\W_]*$"
    return _Name(words[0], is_common, re.compile(start, FLAGS | re.DOTALL), re.compile(end, FLAGS))


@lru_cache(maxsize=256)
def _keys(names: tuple[str, ...]) -> frozenset[str]:
    """The first word of each of these names."""
    return frozenset(read.key for read in map(_read_name, names) if read)


def may_call(text: str, names: tuple[str, ...]) -> bool:
    """Whether one of these names occurs near the start or the end of a text: a quick check before called_as."""
    ends = (text if len(text) <= 2 * REACH else f"{text[:REACH]} {text[-REACH:]}").casefold()
    for key in _keys(names):  # noqa: SIM110 - any() takes twice as long, and every message of every channel comes here
        if key in ends:
            return True
    return False


def called_as(text: str, names: tuple[str, ...]) -> str:
    """The first of these names that the text calls; empty: none."""
    if not may_call(text, names):
        return ""
    plain = QUOTED.sub(" ", text).strip().lstrip("¿¡")
    for name in names:
        read = _read_name(name)
        if read is None or bare_acknowledgement(plain, name):  # "thanks parley" is only thanks
            continue
        if not read.is_common and read_stop(plain, name) is Stop.KEEP_OUT and read.key in plain.casefold():
            return name
        start = read.start.match(plain)
        if (start and _calls_at_start(start, read)) or _calls_at_end(plain, read):
            return name
    return ""


def is_told_of(tokens: Sequence[str], name: str) -> bool:
    """Whether a statement is about the bearer of the name, in the third person: "Parley is nice". tokens: its words."""
    words = words_of_name(name)
    if not words or tuple(tokens[: len(words)]) != words:
        return False
    verb, *rest = [*tokens[len(words) :]] or [""]
    return verb in TELLS_OF and bool(rest) and rest[0] not in MAY_ASK


def _calls_at_start(found: re.Match[str], read: _Name) -> bool:
    rest, is_greeted = BETWEEN.sub("", found["rest"], count=1), found["greeting"] is not None
    if found["mark"]:
        return APPOSITION.match(rest) is None
    if read.is_common:
        return False
    if NOTHING_SAID.fullmatch(rest):
        return is_greeted or not found["lead"]
    if ASKS.match(rest) or REQUESTS.match(rest):
        return True
    return (is_greeted or TURNING.match(found["lead"]) is not None) and ABOUT.match(rest) is None


def _calls_at_end(text: str, read: _Name) -> bool:
    last = text[-3 * REACH :]
    found = read.end.search(last)
    if found is None:
        return False
    clause = SENTENCE.split(last[: found.start()])[-1].strip().casefold()
    if found["mark"].strip():
        segment = re.split(r"[,:、，]", clause)[-1].split()
        # "thoughts, parley?", and a sentence in a language without spaces.
        is_question = "?" in found[0] and ASKS.match(f"{clause}?") is not None
        is_question = is_question or ("？" in found[0] and UNSPACED.search(clause) is not None)
        return len(segment) > 1 or set(segment) <= CALLING_WORDS or is_question
    if read.is_common or not clause:
        return False
    return GREETING.fullmatch(clause) is not None or _asks_whoever_comes_last(clause, is_question="?" in found[0])


def _asks_whoever_comes_last(clause: str, *, is_question: bool) -> bool:
    """Whether a name after this question or request is its addressee, and not part of it."""
    words = clause.split()
    is_brief = REQUESTS.match(clause) or YES_NO.match(clause)
    is_form = bool(is_brief or ASKS.match(clause))
    if not (is_form or is_question):
        return False
    if words[-1] in BEFORE_AN_ADDRESS and (words[-1] not in {"it", "this", "that"} or SECOND_PERSON.search(clause)):
        return len(words) > 1
    if GOVERNING.fullmatch(words[-1]) and words[-1] not in NOT_GOVERNING:
        return False
    return is_form and len(words) >= (3 if is_brief else 4)
