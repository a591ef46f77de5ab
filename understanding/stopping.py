"""Detects messages that only say "stop" or "never mind", in 18 languages.

A false stop is worse than a missed one. So only whole messages count, with polite words and the bot's name around them,
and words that can mean something else alone ("fine", "enough", "quiet") are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache

from understanding.wording import words_of

MAX_WORDS, MAX_LENGTH = 8, 100

# Regular expressions that match a whole message, its words separated by spaces. Every word is written out: KNOWN
# collects the words from them.
KEEP_OUT: Mapping[str, str] = {
    "en": r"""
        stop( (it|that|this|talking|speaking|answering|replying|responding|butting in|interrupting))?
        stop (answering|replying|responding|talking)( to)? (me|us|everyone|everybody|everything)
        shut (up|it)|shut the (fuck|hell) up|shut your mouth|(quiet|silence) please
        zip it|stfu|shush|hush|sh|shh|be (quiet|silent)|pipe down
        that's enough|that is enough|enough already|knock it off|cut it out|quit it|give it a rest
        not now|not you|go away|butt out|stay out( of (this|it))?|leave (us|me) alone|mind your own business
        ((i|we) )?((i'm|we're|am|are|was|were) )?not (talking|speaking|asking)( to)? you
        ((i|we) )?(wasn't|weren't|aren't) (talking|speaking|asking)( to)? you
        ((i|we) )?(didn't|did not) ask( you)?|(nobody|noone|no one|who) asked( you)?""",
    "de": r"""
        (halt|halt's) (die klappe|die fresse|den mund|dein maul|maul|fresse)|klappe zu|schnauze
        (hör|hört|hoer|hoert)( (jetzt|mal|doch|endlich))* auf( damit| zu (reden|antworten|schreiben))?|aufhören
        (sei|seid) (still|ruhig|leise|ruhe)|(still|ruhig|leise) sein|stopp|halt
        schluss( damit| jetzt)|das reicht|es reicht|jetzt reicht's
        nicht jetzt|jetzt nicht|nicht du|du nicht|dich (meinte|meine) ich nicht|ich rede nicht mit dir
        dich hat (keiner|niemand) gefragt|lass (mich|uns) in ruhe|halt dich (da )?raus|misch dich nicht ein
        lass (das|es)( sein)?""",
    "fr": r"""
        (arrête|arrêtez)( ça| de (parler|répondre))?|(tais toi|taisez vous)|(ferme|fermez) la|la ferme
        (ferme )?ta gueule|chut|ça suffit
        pas maintenant|pas toi|je (ne )?te parle pas|on (ne )?t'a pas sonné|personne (ne )?t'a (rien )?demandé
        (laisse|fiche) (moi|nous) (tranquille|la paix)|occupe toi de tes (affaires|oignons)""",
    "es": r"""
        para|para ya|párate|basta( ya)?|ya basta|(cállate|cállese)( la boca)?|es suficiente|ya es suficiente
        ahora no|no ahora|tú no|no te hablo a ti|no hablo contigo|nadie te (ha )?(preguntó|preguntado)
        cierra (la boca|el pico)|(deja|para) de (hablar|responder)|no te (pregunté|he preguntado)
        (déjame|déjanos) en paz|no te metas""",
    "it": r"""
        basta così|smettila|smetti|piantala|finiscila|(stai |sta )?(zitto|zitta)|taci|fermati|chiudi (il becco|la bocca)
        non ora|non adesso|ora no|adesso no|non tu|tu no|non (parlo|stavo parlando) con te|nessuno ti ha chiesto
        (lasciami|lasciaci) in pace|fatti i fatti tuoi""",
    "pt": r"""
        para com isso|pare( com isso)?|(para|pare) de (falar|responder)
        chega( disso)?|já chega|cala te|cale se|cala( a)? boca|(fica|fique) quieto
        agora não|não (você|tu)|você não|não (é|era) (com|para) você|não estou falando com você|não falei com você
        (ninguém|quem) (te )?perguntou|me deixa em paz|deixa me em paz|não se meta""",
    "nl": r"""
        (hou|houd) (je )?op( ermee| daarmee)?|hou (je|jij) (mond|kop|bek)|kop dicht|mond dicht|wees stil|stop ermee
        zo is het genoeg|niet nu|nu niet|niet jij|jij niet|niet tegen jou|ik praat niet tegen jou
        laat (me|mij|ons) met rust|bemoei je er niet mee""",
    "pl": r"""
        cicho( bądź)?|bądź cicho|zamknij się|przestań|zamilcz|dość( tego)?|wystarczy już|stul dziób|nie teraz|nie ty
        nie (mówię )?do ciebie|nikt cię nie pytał|daj (mi|nam) spokój|odczep się""",
    "sv": r"""
        sluta( med det)?|håll (käften|tyst|mun)|var tyst|tyst med dig|det räcker|lägg av|inte nu|inte du
        jag pratar inte med dig|ingen frågade( dig)?|lämna (mig|oss) (ifred|i fred)""",
    "da": r"""
        hold (kæft|mund)|ti stille|vær stille|(stop|hold op) med det|hold op|det er nok|ikke nu|ikke dig
        jeg (taler|snakker) ikke (til|med) dig|lad (mig|os) være( i fred)?""",
    "no": r"""
        slutt( med det)?|hold (kjeft|munn)|vær stille|gi deg|det holder|ikke nå|ikke deg|ikke du
        jeg (snakker|prater) ikke (til|med) deg|la (meg|oss) være( i fred)?""",
    "fi": r"""
        (ole|olkaa) hiljaa|hiljaa|turpa kiinni|suu kiinni|lopeta|riittää jo|nyt riittää|ei nyt|et sinä
        en puhu sinulle|kukaan ei kysynyt( sinulta)?|jätä (minut|meidät) rauhaan""",
    "cs": r"""
        (buď|buďte) (ticho|zticha)|drž hubu|zmlkni|mlč|sklapni|přestaň( s tím)?|nech toho|to stačí|už dost|dost už
        teď ne|ne teď|ty ne|ne ty|s tebou nemluvím|nikdo se tě neptal|nech (mě|nás) (být|na pokoji)""",
    "tr": r"""
        kapa çeneni|çeneni kapa|kes sesini|sesini kes|kes şunu|(sus|dur) (artık|lütfen)|yeter|şimdi değil|sen değil
        sana sormadım|sana soran olmadı|(beni|bizi) rahat bırak|sen karışma""",
    "ru": r"""
        хватит|замолчи|помолчи|заткнись|закрой рот|перестань|прекрати|стоп|довольно|остановись|тихо|не сейчас|не ты
        не тебе|я не (тебе|с тобой)|тебя никто не спрашивал|никто тебя не спрашивал|отстань|отвали
        (оставь|оставьте) (меня|нас) в покое""",
    "uk": r"""
        досить|замовкни|помовчи|стули пельку|перестань|припини|зупинись|тихо|не зараз|не ти|не тобі|я не тобі
        тебе ніхто не питав|відчепись|(залиш|дай) (мене|мені|нас|нам) (у |в )?(спокої|спокій)""",
    "ja": r"""
        やめて|もうやめて|やめてください|やめてくれ|やめろ|だまれ|黙れ|黙って|黙ってて|黙ってください|黙っててください|静かにして|静かにしてください
        うるさい|ストップ|今じゃない|今はいい|あなたじゃない|君じゃない|お前じゃない""",
    "zh": "闭嘴|閉嘴|闭嘴吧|请闭嘴|請閉嘴|别说话|別說話|住口|别说了|別說了|停下|够了|夠了|不是你|别吵了|別吵了",
}
CALL_OFF: Mapping[str, str] = {
    "en": "cancel( (it|that|this))?|(nevermind|never mind)( that| it)?|nvm|forget (it|that)|abort|scrap that",
    "de": "abbrechen|brich( das)? ab|vergiss (es|das)|schon gut|hat sich erledigt",
    "fr": "annule( ça)?|laisse tomber|oublie( ça)?|peu importe",
    "es": "cancela|cancelar|cancélalo|olvídalo|déjalo|no importa",
    "it": "annulla|lascia (stare|perdere)|non importa|come non detto",
    "pt": "cancela|cancelar|esquece( isso)?|deixa (pra|para) lá",
    "nl": "annuleer|annuleren|laat maar( zitten)?|vergeet het",
    "pl": "anuluj|nieważne|zapomnij( o tym)?",
    "sv": "avbryt|strunt i det|glöm det",
    "da": "annuller|glem det|lige meget",
    "no": "avbryt|glem det|samme det",
    "fi": "peruuta|unohda( se)?|antaa olla",
    "cs": "zruš( to)?|zrušit|zapomeň na to",
    "tr": "iptal( et)?|boş ver|boşver|unut( gitsin)?",
    "ru": "отмена|отмени|отменить|не важно|неважно|забудь|забей",
    "uk": "скасуй|скасувати|не важливо|неважливо|забудь",
    "ja": "キャンセル|キャンセルして|取り消し|取り消して|もういい|忘れて",
    "zh": "取消|算了|没事了|沒事了",
}
COURTESY = """
    please pls plz bot robot now already man dude bro ok okay hey no nah oh just and thanks thank thx sorry
    bitte mal jetzt doch endlich nun ach mann danke na stp svp maintenant merci por favor favore ya oye gracias
    ora dai grazie per agora já nu even aub alsjeblieft dank proszę już snälla tack nå kiitos jo nyt prosím lütfen
    artık пожалуйста уже ну всё будь ласка вже お願い もう 请 請
"""
REQUEST = r"(?:can|could|will|would) (?:you|u) |you (?:can|may) |(?:kannst|könntest) du |peux tu |puedes |puoi |kan je "
RHETORICAL = frozenset({"who asked", "who asked you", "quem perguntou", "quem te perguntou"})  # no real questions

LAUGHING = re.compile("[😂🤣😭😹💀]")  # "stop 😂" is friendly
MARKS = "@.,:;!?"
STRETCHED = re.compile(r"([^\W\d])\1{2,}")  # "stooop"
LETTERS = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "æ": "ae", "đ": "d", "'": None})


class Stop(StrEnum):
    """KEEP_OUT: "stop", "not you": the bot shall be silent. CALL_OFF: "cancel", "never mind": no answer is needed."""

    KEEP_OUT = "keep_out"
    CALL_OFF = "call_off"


def read_stop(text: str, bot_name: str = "") -> Stop | None:
    """The kind of a text that only tells the bot to stop: "stop", "shut up, Parley", "ok never mind". None: none."""
    if len(text) > MAX_LENGTH or LAUGHING.search(text):
        return None
    whole = folded(" ".join(words_of(composed(text))))
    words = whole.split()  # some letters become spaces where they are folded
    if len(words) > MAX_WORDS:  # up to there it does not matter that phrases of several languages are the same
        return None
    own = _own_words(bot_name)
    if not set(words) - KNOWN <= own:
        return None  # nearly every message ends here
    requests = ASKED_TO.match(whole)
    if ("?" in text or "？" in text) and not requests and whole not in RHETORICAL:
        return None
    rest = whole[requests.end() :].split() if requests else words
    around = AROUND | own
    for end in (0, -1):
        while len(rest) > 1 and rest[end] in around and not _stop_in(rest):
            rest.pop(end)
    return _stop_in(rest)


@lru_cache(maxsize=256)
def _own_words(bot_name: str) -> frozenset[str]:
    """The words of one of the bot's names: the same for every message."""
    return frozenset(map(folded, words_of(composed(bot_name))))


def stops_person(text: str, names: Iterable[str]) -> bool:
    """Whether a text tells one of these people to stop, named at its start or end: "stop it ben", "ben shut up"."""
    words = text.split()
    if not 2 <= len(words) <= MAX_WORDS:
        return False
    first, last = words[0].strip(MARKS).casefold(), words[-1].strip(MARKS).casefold()
    ends = {first: words[1:], last: words[:-1]}
    named = ({name.casefold() for name in names} & ends.keys()) - AROUND  # not "stop please" to somebody named Please
    return any(read_stop(" ".join(ends[name])) for name in named)


def _stop_in(words: list[str]) -> Stop | None:
    text = " ".join(words)
    if not ANY_STOP.fullmatch(text):
        return None
    return Stop.CALL_OFF if CALLING_OFF.fullmatch(text) else Stop.KEEP_OUT


def composed(text: str) -> str:
    """The text in NFC: with separate accents a word would end at its first accent."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).replace("İ", "i")


def folded(text: str) -> str:
    """The text in lower case, without accents, apostrophes and stretched letters."""
    text = text.casefold().translate(LETTERS)
    if text.isascii():
        return STRETCHED.sub(r"\1", text)
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in letters if not "\u0300" <= letter <= "\u036f")
    return STRETCHED.sub(r"\1", unicodedata.normalize("NFC", bare))


def _any_of(*tables: Mapping[str, str]) -> re.Pattern[str]:
    """A pattern for one or more phrases of these tables, with polite words between them."""
    lines = (line.strip() for table in tables for phrases in table.values() for line in phrases.splitlines())
    phrase = "|".join(folded(line) for line in lines if line)
    return re.compile(rf"(?:{phrase})(?:(?: (?:{'|'.join(sorted(AROUND))}))* (?:{phrase}))*")


AROUND = frozenset(map(folded, COURTESY.split()))
ASKED_TO = re.compile(folded(REQUEST))
KNOWN = AROUND.union(re.findall(r"\w+", folded(" ".join([REQUEST, *KEEP_OUT.values(), *CALL_OFF.values()]))))
CALLING_OFF = _any_of(CALL_OFF)
ANY_STOP = _any_of(KEEP_OUT, CALL_OFF)
