"""Parses the commands of the trip planner from a message's words.

A command that names the trip always counts. One that could be about anything ("add ...", "show the list") counts only
while the conversation is about a trip, or if it names a place of the sample: TripPlanner.wants decides that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from miniapps.venues import is_known

ID = "trip_planner"
MAX_COMMAND = 500  # characters; a longer text is conversation


class CommandKind(StrEnum):
    CREATE = "create"
    RENAME = "rename"
    ADD = "add"
    NOTE = "note"
    REMOVE = "remove"
    CLEAR = "clear"
    LIST = "list"
    EXPORT = "export"


class LastAction(StrEnum):
    """The document's `last_action` in the soft context: what the planner did there last."""

    CREATED_TRIP = "created_trip"
    ADDED_VENUE = "added_venue"
    ADDED_NOTE = "added_note"
    REMOVED_VENUE = "removed_venue"
    LISTED_VENUES = "listed_venues"


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command. name: of the trip or the venue, in the user's words; is_clear: whether it names the trip."""

    kind: CommandKind
    is_clear: bool
    name: str = ""
    note_kind: str = ""
    note: str = ""


THE = r"(?:(?:the|our|my|this)\s+)"
TRIP = rf"{THE}?trip(?:\s+(?:list|plan|venues|places|stops))?"
LIST = rf"{THE}?(?:list|itinerary)"
VENUES = rf"(?:all\s+|of\s+)*{THE}?(?:trip\s+)?(?:venues?|places|stops)"
DELETE = r"(?:delete|remove|clear|drop|erase|wipe)"
SHOW = r"(?:show|list|see|view|display|print|read)(?:\s+(?:me|us))?"
NAME = r"(?P<name>\S.*?)"
SO_FAR = r"(?:\s+(?:so\s+far|now|again))?"
NEW_TRIP = r"(?:(?:a|an|another|our|my|us|me)\s+)*(?:new\s+)?trip"

# No name after "call the trip": "off", "a success"; a clause ("you liked most"); somebody to phone ("insurance").
NO_TRIP_NAME = (
    r"(?:off|an?|that|which|where|i|you|we|they|he|she|advis[eo]rs?|insurance|insurers?|agents?|agency|company|guides?"
    r"|organi[sz]ers?|operators?|managers?|leaders?|planners?|providers?|hotline)"
)

CLEAR_PATTERNS = (
    (CommandKind.CREATE, rf"(?:start|create|begin|plan|make|set\s+up|open|add|new)\s+{NEW_TRIP}"),
    (CommandKind.CREATE, r"(?:a\s+)?new\s+trip"),
    (
        CommandKind.CREATE,
        rf"(?:(?:start|create|begin|plan|make|set\s+up|open|add)\s+{NEW_TRIP}|(?:a\s+)?new\s+trip)"
        rf"(?:\s+(?:called|named)|:)\s+{NAME}",
    ),
    (CommandKind.CREATE, rf"(?:start|create|begin|plan|set\s+up|new)\s+{NEW_TRIP}\s+to\s+(?P<place>\S.*)"),
    (CommandKind.RENAME, rf"(?:rename|retitle)\s+{TRIP}(?:\s+(?:to|as|into)\s+{NAME})?"),
    (CommandKind.RENAME, rf"(?:call|name)\s+{TRIP}\s+(?!{NO_TRIP_NAME}\b){NAME}"),
    (CommandKind.RENAME, rf"change\s+(?:the\s+name\s+of\s+{TRIP}|{THE}?trip(?:['’]?s)?\s+name)\s+to\s+{NAME}"),
    (CommandKind.CLEAR, rf"{DELETE}\s+(?:all\s+|every\s+){VENUES}(?:\s+(?:from|on|in|of)\s+(?:{TRIP}|{LIST}))?"),
    (CommandKind.CLEAR, rf"{DELETE}\s+(?:all|everything)\s+(?:from|on|in|off)\s+{TRIP}"),
    (CommandKind.CLEAR, rf"{DELETE}\s+{TRIP}"),
    (CommandKind.LIST, rf"{SHOW}\s+{TRIP}{SO_FAR}"),
    (
        CommandKind.LIST,
        rf"(?:list|show(?:\s+(?:me|us))?)\s+{VENUES}(?:\s+(?:on|in|of|for)\s+(?:{TRIP}|{LIST}))?{SO_FAR}",
    ),
    (CommandKind.LIST, rf"what(?:['’]?s|\s+is|\s+do\s+we\s+have|\s+have\s+we\s+got)\s+(?:on|in)\s+{TRIP}{SO_FAR}"),
    (
        CommandKind.LIST,
        r"(?:what|which)\s+(?:venues|places|stops)\s+(?:do\s+we\s+have|have\s+we\s+got|are(?:\s+there)?)"
        rf"(?:\s+(?:on|in)\s+(?:{TRIP}|{LIST}))?{SO_FAR}",
    ),
    (CommandKind.LIST, rf"{THE}?trip\s+(?:list|venues|places|stops)"),
    (CommandKind.EXPORT, rf"(?:export|copy)\s+(?:{TRIP}|{VENUES})(?:\s+(?:as|to|in)\s+(?:a\s+)?[\w ]{{1,20}})?"),
    (CommandKind.ADD, rf"(?:add|put|include)\s+{NAME}\s+(?:to|on|in|into|onto)\s+{TRIP}"),
    (CommandKind.ADD, rf"save\s+{NAME}\s+(?:to|in|into)\s+{TRIP}"),  # "save money on the trip" is no command
    (CommandKind.REMOVE, rf"(?:remove|delete|drop|take|cross|scratch)\s+{NAME}\s+(?:from|off|out\s+of)\s+{TRIP}"),
)
VAGUE_PATTERNS = (
    (
        CommandKind.NOTE,
        r"(?:add\s+)?(?:(?:a|an|another|the)\s+)?(?P<kind>tip|note|must[ -]try|vibe|best[ -]for)"
        r"(?:\s+(?:for|to|on|about)\s+(?P<name>[^:]+?))?\s*:\s*(?P<note>\S.*)",
    ),
    (CommandKind.NOTE, r"add\s+(?:a|another)\s+(?P<kind>tip|note)(?:\s+(?:for|about)\s+(?P<name>.+))?"),
    (CommandKind.NOTE, r"add\s+(?:a|another)\s+(?P<kind>tip|note)\s+(?:that\s+)?(?P<note>\S.*)"),
    (CommandKind.RENAME, rf"rename\s+it\s+(?:to|as)\s+{NAME}"),
    (
        CommandKind.CLEAR,
        rf"{DELETE}\s+(?:all|everything|them\s+all|all\s+of\s+(?:them|it)|{THE}?(?:(?:whole|entire)\s+)?(?:list|itinerary))"
        rf"(?:\s+(?:from|on|off)\s+{LIST})?",
    ),
    (CommandKind.LIST, rf"(?:{SHOW}|what(?:['’]?s|\s+is|\s+do\s+we\s+have)\s+on)\s+{LIST}{SO_FAR}"),
    (CommandKind.LIST, r"what\s+do\s+we\s+have\s+so\s+far|where\s+are\s+we\s+going"),
    (
        CommandKind.EXPORT,
        rf"(?:export|copy)\s+(?:it|this|that|{LIST})(?:\s+(?:as|to|in)\s+(?:a\s+)?[\w ]{{1,20}})?|export",
    ),
    (CommandKind.REMOVE, rf"(?:remove|delete)\s+{NAME}(?:\s+(?:from|off)\s+{LIST})?"),
    (CommandKind.REMOVE, rf"(?:take|cross|scratch)\s+{NAME}\s+(?:from|off)\s+{LIST}"),
    (CommandKind.ADD, rf"(?:add|include)\s+{NAME}(?:\s+(?:to|on|in)\s+{LIST})?"),
    (CommandKind.ADD, rf"put\s+{NAME}\s+on\s+{LIST}"),
)
PATTERNS = tuple(
    (kind, is_clear, re.compile(pattern, re.IGNORECASE))
    for is_clear, patterns in ((True, CLEAR_PATTERNS), (False, VAGUE_PATTERNS))
    for kind, pattern in patterns
)
NOTE_KINDS = {"must try": "must_try", "vibe": "vibe", "best for": "best_for"}

MENTIONS = re.compile(r"<@[!&]?\d+>")
VERB = r"(?:add|put|include|remove|delete|show|list|export|start|create|plan|rename|clear|new)\b"
LEAD = re.compile(
    r"[\s,.!:;-]+"
    rf"|(?:hey|hi|hello|yo|ok|okay)\s+[^\W\d_]+\s+(?={VERB})"  # "hey Parley add ..."
    r"|(?:hey|hi|hello|yo|ok|okay|please|pls|now|then|and|also|so|just|yes|great|cool|sure)\b"
    r"|(?:can|could|would|will)\s+(?:you|we|i)\b|let['’]?s\b|let\s+us\b"
    r"|(?:i|we)(?:\s+would|['’]d)?\s+(?:like|want)\s+to\b|(?:i|we)\s+wanna\b"
    rf"|[^\W\d_]+[,:](?=\s*{VERB})",  # "Parley, add ..."
    re.IGNORECASE,
)
TRAIL = re.compile(r"\b(?:please|pls|thanks|thank you|thx|too|as well)$", re.IGNORECASE)
MARKS = " ,.!?"

# Words with which a venue's name does not begin in a message to a bot.
NO_NAME = re.compile(
    r"(?:me|him|her|us|them|you|it|this|that|these|those|everyone|everybody|all|my|your|his|their|our|its"
    r"|an?|some|any|more|another|every|each|up"
    r"|(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?:and|to|plus|more))\b",
    re.IGNORECASE,
)
# "logging to this function", "a filter from the picture": adding to or removing from something other than the list.
ELSEWHERE = re.compile(
    r"\b(?:to|into|onto|from|in|on|with)\s+"
    r"(?:the|my|this|that|these|those|your|our|his|her|their|an?|it|each|every|all|me|us)\b",
    re.IGNORECASE,
)
# Things that people add or remove in computing, arithmetic, texts and chats; no venues.
THINGS = re.compile(
    r"\b(?:numbers|functions?|code|comments?|lines?|tests?|logging|logs?|columns?|rows?|files?|class|methods?|buttons?"
    r"|errors?|bugs?|features?|emojis?|roles?|channels?|servers?|bots?|users?|reminders?|events?|messages?|texts?|words?"
    r"|sentences?|details?|info|information|paragraphs?|examples?|variables?|loops?|imports?|query|queries|tables?"
    r"|database|sum|total|background|subtitles|photos?|pictures?|images?|support|mode|dependency|dependencies|types?"
    r"|docstrings?|spaces|cookies|cache|semicolons?|commas?|brackets?|headers?|folders?"
    r"|duplicates?|account|history|step|steps|context)\b",
    re.IGNORECASE,
)
NOT_A_DESTINATION = re.compile(
    r"\b(?:with|under|budget|days?|nights?|weeks?|that|which|where|me|us|and|for)\b", re.IGNORECASE
)
MAX_DESTINATION_WORDS = 4


def plain(text: str) -> str:
    """The first 500 characters on one line, without mentions, and without "please" or punctuation at the end."""
    line = " ".join(MENTIONS.sub(" ", text[:MAX_COMMAND]).split())
    return TRAIL.sub("", line.rstrip(MARKS)).rstrip(MARKS)


def read_command(text: str) -> Command | None:
    """Parses a text as a command; the whole text must be one. None: it is conversation."""
    if len(text) > MAX_COMMAND or "`" in text:
        return None
    form = plain(text)
    while True:
        for kind, is_clear, pattern in PATTERNS:
            if (match := pattern.fullmatch(form)) and (command := _command(kind, is_clear, match)):
                return command
        if (lead := LEAD.match(form)) is None:
            return None
        form = form[lead.end() :]


def _command(kind: CommandKind, is_clear: bool, match: re.Match[str]) -> Command | None:
    groups = {key: value or "" for key, value in match.groupdict().items()}
    if place := groups.get("place"):  # a destination has few words
        if len(place.split()) > MAX_DESTINATION_WORDS or NOT_A_DESTINATION.search(place):
            return None
    elif kind in (CommandKind.ADD, CommandKind.REMOVE):
        # A venue reads like a name. In a command that does not name the trip, it is also no thing of another field, as
        # "logging".
        name = groups["name"]
        is_name = not NO_NAME.match(name) and (is_clear or not (ELSEWHERE.search(name) or THINGS.search(name)))
        if not (is_name or is_known(name)):
            return None
    note_kind = re.sub(r"[\s-]+", " ", groups.get("kind", "").casefold())
    name = groups.get("name") or groups.get("place", "")
    return Command(kind, is_clear, name.strip("\"'“”"), NOTE_KINDS.get(note_kind, "note"), groups.get("note", ""))
