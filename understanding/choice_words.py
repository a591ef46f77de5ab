"""Closed classes of common English words, used to understand a choice among options.

The code that uses a class says what it is for. No class has words of a special field or place.
"""

from __future__ import annotations

from collections.abc import Mapping

from understanding.wording import TOO_COMMON

# Words that may stand beside a choice without changing it, from the smallest class to the largest.
POLITE = frozenset(
    """please pls plz ok okay k yes yeah yep yup ya sure alright right thanks thank you ty thx well oh ah ooh hmm hm um
    umm uh so then and or just hi hey no nope nah number one""".split()
)
NAMING = POLITE | {"the", "my"}
QUANTIFYING = frozenset("have get see watch just".split())  # "I have 2" chooses nothing, "I'll have the second" does
CHOOSING = (
    POLITE
    | QUANTIFYING
    | frozenset(
        """i i'd i'll i'm id ill im we we'd we'll let lets it that will would like love prefer want wanna take choose
        pick select go going gonna give try use do say think guess believe vote mean meant stick the my me for
        with to on from can could may is be very actually maybe probably definitely also option choice choices
        answer item entry result suggestion ones sound sounds seems looks look works work good great fine nice
        perfect best better cool awesome amazing lovely interesting excellent favorite favourite list menu listed
        here now lol haha""".split()
    )
)
COUNTING = CHOOSING - QUANTIFYING
OPERATORS = frozenset("+-*/×÷=")  # between numbers
GRAMMAR = TOO_COMMON | OPERATORS | {"little", "la", "le", "de"}
ANOTHER = frozenset(
    "any some other others another else more most different such than these those no not never nothing".split()
)
HAVING_IN_MIND = frozenset("thinking hoping mind wondering wanting wanted meaning looking".split())
FRAME = (
    (GRAMMAR | CHOOSING) - ANOTHER
    | HAVING_IN_MIND
    | frozenset(
        """buy order book reserve visit find search play send add share looking somewhere something ideal enough suffice
        today tonight tomorrow branch location place store shop spot interested entertaining fun appeals""".split()
    )
)
FRAME_OF_PART = FRAME - {"something", "somewhere"}  # "something for the family" means a kind, not "Family Reunion"

# Positions in the list: words before a number or ordinal, words that it counts, and words with which it is no position.
PLACES: Mapping[str, int] = {"former": 0, "top": 0, "last": -1, "final": -1, "latter": -1, "bottom": -1}
OF_TWO = frozenset({"former", "latter"})
MIDDLE = frozenset({"middle", "centre", "center"})
MARKED = frozenset("number position option choice item entry answer result suggestion nr #".split())
COUNTED = frozenset(
    "one option choice item entry answer result suggestion pick selection alternative possibility listed".split()
)
UNCOUNTED = frozenset(
    """class time times floor week weekend day month year half row date street avenue name hand thought thoughts
    thing things place base step quarter birthday season night call round of best favorite favourite nicest
    cheapest""".split()
)
PLACING = CHOOSING | {"in"}
NO_THINGS = UNCOUNTED | GRAMMAR | CHOOSING
MONTHS = frozenset("january february march april may june july august september october november december".split())
BEFORE_QUANTITIES = MONTHS | frozenset(
    "at in on by from since until till after before around about over under than".split()
)
BEFORE_DATES = BEFORE_QUANTITIES - {"in"}
NOT_BEFORE_PLACES = BEFORE_QUANTITIES | {"go", "a", "me", "every", "each", "one"}
BEFORE_VALUES = frozenset({"the", "at", "around"})
UNITS_OF_TIME = frozenset({"am", "pm", "o'clock", "oclock"})
UNITS = UNITS_OF_TIME | {"dollars", "dollar", "bucks", "euros", "euro"}
VALUING = COUNTING | UNITS | {"of"}

# Names.
PHRASAL = frozenset("give go going get look looks work works do use".split())  # as in "give up", "go on"
PARTICLES = frozenset("up down out off on in over away back".split())
LINKS = frozenset({"the", "of", "a"})  # may be left out at the start of a name
PRONOUNS = frozenset("i me you it he him she her we us they them this that these those one all any".split())

# Whether an option is rejected, talked about, asked about, or chosen.
NEGATORS = frozenset(
    """not no never without except besides neither nor than hate dislike avoid skip exclude forget ignore pass allergic
    dont doesnt didnt isnt wont cant cannot""".split()
)  # and what ends in "n't"
ELIMINATING = frozenset({"not", "except"})
SEVERAL = frozenset("both neither none either whichever whatever".split())
TOLD = frozenset(
    "was were did went saw seen been had already yesterday watched tried ate visited didn't haven't never says".split()
)
REPORTERS = frozenset("i we he she they you".split())  # before a past tense
DECIDED = frozenset(  # verbs in "ed" that choose
    "need wanted liked loved preferred picked selected decided voted settled hoped agreed asked".split()
)
GROUPS = frozenset("us you them".split())
LEADING = frozenset(
    "ok okay yes yeah no nope well so and oh hmm hm um great good sure thanks hey hi also please".split()
)
ASKING = frozenset(
    "what who where when why how which whose is are am was were does did has isn't aren't doesn't".split()
)
INVERTED = frozenset("do have had can could would will should shall may might don't".split())
REQUESTS = frozenset("can could may might would will".split())
PERSONS = frozenset("i we you".split())
SUBJECTS = PERSONS | frozenset("they it he she these those there this that".split())
ENQUIRING = frozenset("tell know explain describe compare recommend suggest difference".split())
PREPOSITIONS = frozenset("in at near for around by from on".split())
AGREEING = frozenset("yes yeah yep yup".split())
BEFORE_VERBS = frozenset("to rather i'll we'll i'd we'd let's lets".split())

# Words before which a clause ends, and pairs of words with one meaning.
TURNS = frozenset("but if though although because since while".split())
JOINTS = frozenset({"and", "so", "then"})  # end a clause before one of STARTS: "and I"
STARTS = frozenset("i i'd i'll i'm we we'd we'll let's lets can could".split())
PAIRS: Mapping[tuple[str, ...], str] = {  # two words -> the word that they stand for
    tuple(pair.split()): word
    for word, pairs in {
        "except": "instead of, rather than, other than, apart from, aside from, anything but, everything but",
        "both": "all of, any of, each of, some of, none of",
        "want": "can't wait, cannot wait, don't mind, wouldn't mind",
        "maybe": "why not",
    }.items()
    for pair in pairs.split(", ")
}
