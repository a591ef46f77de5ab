"""Detects replies that only say yes or no in another language than English, which confirmation.py reads.

A false yes is worse than a missed one. So only whole replies count, with polite words around the yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from understanding.stopping import composed, folded
from understanding.wording import words_of

MAX_LENGTH = 60

# Phrases, without the letters of stretched ones ("jaaa").
YES: Mapping[str, str] = {
    "de": "ja|jaa|jo|jep|jap|jup|klar|na klar|gern|gerne|natürlich|selbstverständlich|einverstanden|auf jeden fall"
    "|sicher|mach das|genau",
    "fr": "oui|ouais|ouep|si|bien sûr|d'accord|volontiers|vas y|allez y|avec plaisir|carrément",
    "es": "sí|claro|claro que sí|por supuesto|vale|dale|de acuerdo|adelante|hazlo",
    "it": "sì|certo|certamente|va bene|d'accordo|volentieri|fallo pure",
    "pt": "sim|claro|claro que sim|com certeza|pode sim|faz isso",
    "nl": "ja|jaa|jawel|graag|natuurlijk|zeker|doe maar",
    "pl": "tak|jasne|pewnie|oczywiście|zgoda",
    "sv": "ja|japp|jo|gärna|absolut|självklart|visst|gör det",
    "da": "ja|jo|gerne|selvfølgelig|gør det",
    "no": "ja|jo|gjerne|selvfølgelig|gjør det",
    "fi": "kyllä|joo|juu|totta kai",
    "cs": "ano|jo|jasně|určitě",
    "tr": "evet|tabii|tabii ki|elbette|olur",
    "ru": "да|ага|угу|конечно|давай|давайте",
    "uk": "так|ага|авжеж|звісно|звичайно|давай",
    "ja": "はい|うん|ええ|もちろん|いいよ|いいですよ|お願いします",
    "zh": "是|是的|好|好的|好吧|对|對|行|可以|当然|當然",
}
NO: Mapping[str, str] = {
    "de": "nein|nee|nö|nöö|ne|lieber nicht|besser nicht|auf keinen fall|bloß nicht",
    "fr": "non|nan|pas du tout|surtout pas|plutôt pas",
    "es": "claro que no|para nada|mejor no|de ninguna manera",
    "it": "assolutamente no|per niente|meglio di no",
    "pt": "não|claro que não|de jeito nenhum|melhor não",
    "nl": "nee|liever niet|zeker niet",
    "pl": "nie|raczej nie|lepiej nie",
    "sv": "nej|nix|helst inte|absolut inte",
    "da": "nej|nej tak|niks|helst ikke",
    "no": "nei|helst ikke",
    "fi": "ei|ei todellakaan",
    "cs": "ne|radši ne|určitě ne",
    "tr": "hayır|yok|olmaz|istemiyorum",
    "ru": "нет|неа|не надо|не нужно|не стоит",
    "uk": "ні|не треба|не потрібно",
    "ja": "いいえ|いや|ううん|だめ|ダメ",
    "zh": "不|不是|不要|不用|不用了|不行|不可以|没有|沒有",
}
COURTESY = """
    bitte danke dankeschön merci svp gracias grazie obrigado obrigada dank bedankt alsjeblieft dzięki dziękuję proszę
    tack takk kiitos děkuji díky prosím teşekkürler lütfen спасибо пожалуйста дякую ありがとう 谢谢 謝謝 请 請
    ok okay please thanks
"""


def says_yes(text: str) -> bool | None:
    """True for a text that only says yes in one of these languages, False for no, None for anything else."""
    if len(text) > MAX_LENGTH or "?" in text or "？" in text:
        return None
    words = " ".join(word for word in folded(" ".join(words_of(composed(text)))).split() if word not in AROUND)
    if ONLY_YES.fullmatch(words):
        return True
    return False if ONLY_NO.fullmatch(words) else None


def _only(table: Mapping[str, str]) -> re.Pattern[str]:
    """A pattern for one or more of these phrases, of which the longest counts where several begin alike."""
    phrases = {folded(phrase) for phrases in table.values() for phrase in phrases.split("|")}
    return re.compile(rf"(?:(?:{'|'.join(sorted(phrases, key=len, reverse=True))})(?: |$))++")


AROUND = frozenset(map(folded, COURTESY.split()))
ONLY_YES, ONLY_NO = _only(YES), _only(NO)
