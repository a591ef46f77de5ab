"""The trip planner: one shared list of venues per channel, with notes on each.

It asks where several venues match, and reads the answer from the resolution. The list may have changed in between.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import JsonValue, TypeAdapter

from miniapps.base import ChatGuid, FollowUp, MiniApp, MiniAppContext, MiniAppResponse
from miniapps.trip_commands import ID, MAX_COMMAND, Command, CommandKind, LastAction, plain, read_command
from miniapps.trips import (
    MAX_NOTE,
    MAX_NOTES,
    MAX_STOPS,
    UNNAMED,
    Attribution,
    Note,
    Stop,
    Trip,
    as_list,
    as_text,
    escaped,
    follow_up,
    venues,
)
from miniapps.venues import SampleVenues, Venue, VenueLookup, VenueProblem, clean, is_chain, is_known, is_name, matching
from state.prompts import AwaitingType
from understanding.selection import choose

MAX_TRIPS = 1_000
STORED = TypeAdapter(Trip)
MAX_CHOICES = 10
NAMES_TRIP, IN_CONTEXT, NAMES_PLACE, BARE_NAME = 0.95, 0.8, 0.7, 0.6

ASK_NAME = "What's your trip name?"
EMPTY = "There is nothing on the list yet. Say “add Shake Shack”, for example."
GONE = "That venue is no longer on the list, so I noted nothing."
LOST = "I no longer know what that answers. Please say again what you would like."


class TripPlanner(MiniApp):
    """Trips in memory, of the 1,000 channels that used theirs most recently."""

    id: ClassVar[str] = ID

    def __init__(self, lookup: VenueLookup | None = None) -> None:
        self._lookup: VenueLookup = lookup or SampleVenues()
        self._trips: OrderedDict[ChatGuid, Trip] = OrderedDict()

    def __len__(self) -> int:
        return len(self._trips)

    def wants(self, text: str, soft_context: Mapping[str, Any]) -> float:
        """Score of how sure it is that a text is meant for the planner.

        Highest is a command that names the trip. Next is any command while the channel's soft context is the planner's;
        otherwise a command about a place of the sample. Lowest is a bare name: in the planner's context of any place of
        the sample, otherwise only of one with several branches. A text over 500 characters scores 0.
        """
        if len(text) > MAX_COMMAND:
            return 0.0
        command = read_command(text)
        owner, last_action = soft_context.get("source_miniapp_id", ID), soft_context.get("last_action")
        is_ours = owner == ID and last_action in tuple(LastAction)
        if command is None:
            name = plain(text)
            return BARE_NAME if (is_name(name) if is_ours else is_chain(name)) else 0.0
        if command.is_clear:
            return NAMES_TRIP
        if is_ours:
            return IN_CONTEXT
        names_place = command.kind in (CommandKind.ADD, CommandKind.REMOVE) and is_known(command.name)
        return NAMES_PLACE if names_place else 0.0

    def still_stands(self, chat_guid: ChatGuid, about: str) -> bool:
        """Whether the venue is on the list, with room for another note."""
        stop = self._trips.get(chat_guid, Trip()).find(about)
        return stop is not None and len(stop.notes) < MAX_NOTES

    def said(self, chat_guid: ChatGuid) -> Mapping[int, int]:
        trip = self._trips.get(chat_guid, Trip())
        # Of a venue whose message is gone it is not known any more who was there when it was added.
        nobodys = {0: 0} if any(stop.said is None for stop in trip.stops) else {}
        return nobodys | {one: by.author_id for by in trip.all_said for one in by.message_ids}

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:
        trip = self._trips.get(chat_guid)
        if author_id is None:
            self._trips.pop(chat_guid, None)
        elif trip:
            self._trips[chat_guid] = trip.without(lambda by: by.author_id == author_id)

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        if trip := self._trips.get(chat_guid):
            self._trips[chat_guid] = trip.without(lambda by: any(one in message_ids for one in by.message_ids))

    def expire(self, chat_guid: ChatGuid, before: int) -> None:
        if trip := self._trips.get(chat_guid):
            self._trips[chat_guid] = trip.without(lambda by: by.message_id < before)

    def stored(self, chat_guid: ChatGuid) -> JsonValue | None:
        trip = self._trips.get(chat_guid, Trip())
        stored: JsonValue | None = None if trip == Trip() else STORED.dump_python(trip, mode="json")
        return stored

    def restore(self, chat_guid: ChatGuid, stored: JsonValue) -> None:
        self._keep(chat_guid, STORED.validate_python(stored))

    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        if context.about:  # a Yes to "How was ...?"
            stop = self._trip(context).find(context.about)
            return MiniAppResponse(GONE) if stop is None else _what_to_note(stop.venue, is_follow_up=True)
        if context.focus_resolution:
            return self._resolve(context, context.focus_resolution)
        command = read_command(context.text) or Command(CommandKind.ADD, is_clear=False, name=plain(context.text))
        match command.kind:
            case CommandKind.ADD:
                return await self._add_single_venue(context, clean(command.name))
            case CommandKind.CREATE:
                return self._create_trip(context, clean(command.name))
            case CommandKind.RENAME:
                return self._rename_trip(context, clean(command.name))
            case CommandKind.NOTE:
                return self._add_note(context, command)
            case CommandKind.REMOVE:
                return self._remove_venue(context, clean(command.name))
            case CommandKind.CLEAR:
                return self._delete_all(context)
            case CommandKind.EXPORT:
                return self._listed(context, as_text(self._trip(context)))
            case _:
                return self._listed(context, as_list(self._trip(context)))

    def _resolve(self, context: MiniAppContext, resolution: Mapping[str, Any]) -> MiniAppResponse:
        match resolution.get("type"), context.source_handler.removeprefix(f"{ID}."):
            case "selection", "_remove_venue":
                return self._remove(context, resolution["selected_option"]["id"])
            case "selection", _:
                option = resolution["selected_option"]
                fields = (option["id"], option["name"], option.get("district", ""), option.get("city", ""))
                return self._finalize_venue_add(context, Venue(*fields))
            case "metadata", _:
                return self._append_metadata(context, resolution)
            case "input", "_rename_trip":
                return self._rename_trip(context, clean(resolution["content"]))
            case "input", _:
                return self._create_trip(context, clean(resolution["content"]))
            case "confirmation", _ if not resolution["confirmed"]:
                return MiniAppResponse("Okay, everything stays as it is.")
            case "confirmation", "_delete_all":
                return self._delete(context)
            case "confirmation", "_create_trip":
                return self._created(context, Trip().named(context.asked["name"], _attribution(context, in_asked=True)))
            case "confirmation", "_add_single_venue":
                by, name = _attribution(context, in_asked=True), str(context.asked["original_query"])
                return self._finalize_venue_add(context, Venue(f"typed-{by.message_id}", name), by, is_typed=True)
        return MiniAppResponse(LOST)

    # The trip

    def _create_trip(self, context: MiniAppContext, name: str) -> MiniAppResponse:
        """Asks for the name if it is not given, and before it drops a list. An unnamed trip only gets the name."""
        trip = self._trip(context)
        if not name:
            return _asking(ASK_NAME, AwaitingType.INPUT, "_create_trip")
        if trip.stops and trip.said:
            question = f"Your trip {escaped(trip.name)} has {venues(len(trip.stops))}. Drop it and start a new one?"
            asked = {"name": name, **_said_in(context)}
            return _asking(question, AwaitingType.CONFIRMATION, "_create_trip", context=asked)
        return self._created(context, trip.named(name, _attribution(context)))

    def _created(self, context: MiniAppContext, trip: Trip) -> MiniAppResponse:
        self._keep(context.chat_guid, trip)
        more = f"It keeps the {venues(len(trip.stops))} on it." if trip.stops else "Now add venues to it."
        return MiniAppResponse(
            f"Created {escaped(trip.name)}! ✓ {more} I look places up in {self._lookup.source}.",
            soft_context={"last_action": LastAction.CREATED_TRIP.value},
        )

    def _rename_trip(self, context: MiniAppContext, name: str) -> MiniAppResponse:
        if not name:
            return _asking(ASK_NAME, AwaitingType.INPUT, "_rename_trip")
        self._keep(context.chat_guid, self._trip(context).named(name, _attribution(context)))
        return self._done(context, f"Your trip is called {escaped(name)} now. ✓", LastAction.CREATED_TRIP)

    def _listed(self, context: MiniAppContext, text: str) -> MiniAppResponse:
        trip = self._trip(context)
        if trip.stops:
            text = f"{text}\n-# I look places up in {self._lookup.source}."
        else:
            text = EMPTY if trip.name == UNNAMED else f"**{escaped(trip.name)}**\n{EMPTY}"
        return self._done(context, text, LastAction.LISTED_VENUES)

    # Adding

    async def _add_single_venue(self, context: MiniAppContext, query: str) -> MiniAppResponse:
        if not query:
            return MiniAppResponse("Which venue would you like to add? Say “add Shake Shack”, for example.")
        found = await self._lookup.find(query, MAX_CHOICES)
        if isinstance(found, VenueProblem) or not found:
            why = f"I cannot find {escaped(query)} in {self._lookup.source}"
            if isinstance(found, VenueProblem):
                why = f"{found.value[0].upper()}{found.value[1:]}"
            asked = {"original_query": query, **_said_in(context)}
            question = f"{why}. Shall I add it by name only?"
            return _asking(question, AwaitingType.CONFIRMATION, "_add_single_venue", context=asked)
        if len(found) == 1:
            return self._finalize_venue_add(context, found[0])
        return _which_one("_add_single_venue", "venue", query, found)

    def _finalize_venue_add(
        self, context: MiniAppContext, venue: Venue, by: Attribution | None = None, *, is_typed: bool = False
    ) -> MiniAppResponse:
        trip, title = self._trip(context), escaped(venue.title)
        if stop := next((s for s in trip.stops if venue.id == s.venue.id or venue.title == s.venue.title), None):
            return _about(stop.venue, f"{title} is on the list already.", LastAction.ADDED_VENUE)
        if len(trip.stops) >= MAX_STOPS:
            return MiniAppResponse(f"The list has {venues(MAX_STOPS)}, which is the most I keep. Remove one first.")
        self._keep(context.chat_guid, trip.with_stop(Stop(venue, by or _attribution(context), is_typed)))
        return _asking(
            f"Added {title}! ✓",
            AwaitingType.METADATA,
            "_finalize_venue_add",
            context={"target_item_id": venue.id, "target_item_name": venue.title},
            soft_context=_last(LastAction.ADDED_VENUE, venue),
            follow_up=follow_up(venue),
        )

    # Notes

    def _append_metadata(self, context: MiniAppContext, resolution: Mapping[str, Any]) -> MiniAppResponse:
        """Notes the answer to "Added ...". As in document 000, "get the shroom burger" becomes "the shroom burger"."""
        stop = self._trip(context).find(resolution.get("target_item_id") or context.asked.get("target_item_id"))
        if stop is None:
            # The answer does not name it: whoever typed that name may have deleted it.
            return MiniAppResponse(GONE)
        content, kind = str(resolution["content"]), str(resolution.get("metadata_type") or "note")
        if kind == "must_try" and re.search(rf"\bthe\s+{re.escape(content)}", context.text, re.IGNORECASE):
            content = f"the {content}"
        return self._noted(context, stop, kind, content)

    def _add_note(self, context: MiniAppContext, command: Command) -> MiniAppResponse:
        """Adds a later note to the venue that is named, else to the one last talked about."""
        trip = self._trip(context)
        if command.name:
            named = matching(command.name, [stop.venue for stop in trip.stops])
            stop = trip.find(named[0].id) if len(named) == 1 else None
        else:
            stop = trip.find(context.soft_context.get("last_item_id"))
        if stop is None:
            return MiniAppResponse("For which venue? Name one on the list: “add a tip for Shake Shack Shibuya: …”.")
        if not command.note:
            return _what_to_note(stop.venue)
        return self._noted(context, stop, command.note_kind, command.note)

    def _noted(self, context: MiniAppContext, stop: Stop, kind: str, content: str) -> MiniAppResponse:
        content, title = clean(content, MAX_NOTE).rstrip(" .!"), escaped(stop.venue.title)
        if not content:
            return MiniAppResponse("There is nothing in that for me to note.")
        if len(stop.notes) >= MAX_NOTES:
            return MiniAppResponse(f"There are {MAX_NOTES} notes on {title} already, which is the most I keep.")
        note = Note(kind, content, _attribution(context))
        self._keep(context.chat_guid, self._trip(context).with_note(stop.venue.id, note))
        is_to_try = kind == "must_try" and not context.asked.get("is_follow_up")  # one follow-up leads to no other
        later = follow_up(stop.venue, content) if is_to_try else None
        return _about(stop.venue, f"noted - {escaped(str(note))}!", LastAction.ADDED_NOTE, later)

    # Removing

    def _remove_venue(self, context: MiniAppContext, query: str) -> MiniAppResponse:
        """Removes a venue by number, position or name. Asks which one if several match."""
        stops = [stop.venue for stop in self._trip(context).stops]
        if not stops:
            return MiniAppResponse(EMPTY)
        index = choose(query, [_option(venue) for venue in stops])
        found = [stops[index]] if index is not None else matching(query, stops)
        if len(found) == 1:
            return self._remove(context, found[0].id)
        if found:
            return _which_one("_remove_venue", "removal", query, found)
        return MiniAppResponse(f"I cannot find {escaped(query)} on the list, which has {venues(len(stops))}.")

    def _remove(self, context: MiniAppContext, venue_id: str) -> MiniAppResponse:
        trip = self._trip(context)
        if (stop := trip.find(venue_id)) is None:
            return MiniAppResponse("That venue is no longer on the list.")
        self._keep(context.chat_guid, trip.without_stops({venue_id}))
        return self._done(context, f"Removed {escaped(stop.venue.title)}. ✓", LastAction.REMOVED_VENUE)

    def _delete_all(self, context: MiniAppContext) -> MiniAppResponse:
        stops = self._trip(context).stops
        if not stops:
            return MiniAppResponse(EMPTY)
        asked = {"item_ids": [stop.venue.id for stop in stops]}
        return _asking("Delete all venues?", AwaitingType.CONFIRMATION, "_delete_all", context=asked)

    def _delete(self, context: MiniAppContext) -> MiniAppResponse:
        """Deletes the venues that were on the list at the question; later ones were not part of the confirmation."""
        before = self._trip(context)
        after = before.without_stops(context.asked["item_ids"])
        if len(after.stops) == len(before.stops):
            return MiniAppResponse("Those venues are no longer on the list, so there was nothing to delete.")
        self._keep(context.chat_guid, after)
        rest = f" I kept {venues(len(after.stops))}, added since I asked." if after.stops else ""
        return self._done(
            context, f"Deleted {venues(len(before.stops) - len(after.stops))}. ✓{rest}", LastAction.REMOVED_VENUE
        )

    # What all need

    def _trip(self, context: MiniAppContext) -> Trip:
        if context.chat_guid not in self._trips:
            return Trip()
        self._trips.move_to_end(context.chat_guid)
        return self._trips[context.chat_guid]

    def _keep(self, chat_guid: ChatGuid, trip: Trip) -> None:
        self._trips[chat_guid] = trip
        self._trips.move_to_end(chat_guid)
        if len(self._trips) > MAX_TRIPS:
            self._trips.popitem(last=False)

    def _done(self, context: MiniAppContext, message: str, action: LastAction) -> MiniAppResponse:
        """A response that keeps the venue last talked about in the soft context, if it is still on the list."""
        if last := self._trip(context).find(context.soft_context.get("last_item_id")):
            return _about(last.venue, message, action)
        return MiniAppResponse(message, soft_context={"last_action": action.value})


def _attribution(context: MiniAppContext, *, in_asked: bool = False) -> Attribution:
    """Author and messages of what is said. in_asked: the messages are those that led to the question."""
    where = context.asked if in_asked else _said_in(context)
    message_id, parts = int(where["message_id"]), tuple(map(int, where.get("parts", ())))
    return Attribution(context.user_id, clean(context.user_name), message_id, parts)


def _said_in(context: MiniAppContext) -> dict[str, Any]:
    """The ids of the messages in which it is said, for the context of a question."""
    return {"message_id": context.message_id, "parts": [*context.parts]}


def _about(venue: Venue, message: str, action: LastAction, follow_up: FollowUp | None = None) -> MiniAppResponse:
    return MiniAppResponse(message, soft_context=_last(action, venue), follow_up=follow_up)


def _last(action: LastAction, venue: Venue) -> dict[str, Any]:
    return {"last_action": action.value, "last_item_id": venue.id, "last_item_name": venue.title}


def _asking(
    message: str, awaiting: AwaitingType, handler: str, *, follow_up: FollowUp | None = None, **state: Any
) -> MiniAppResponse:
    asked = {"awaiting_type": awaiting.value, "source_handler": f"{ID}.{handler}", **state}
    return MiniAppResponse(message, conversation_state=asked, follow_up=follow_up)


def _what_to_note(venue: Venue, **more: bool) -> MiniAppResponse:
    asked = {"target_item_id": venue.id, "target_item_name": venue.title, **more}
    return _asking(
        f"What shall I note about {escaped(venue.title)}?", AwaitingType.METADATA, "_add_note", context=asked
    )


def _which_one(handler: str, selection_type: str, query: str, found: Sequence[Venue]) -> MiniAppResponse:
    # Listed by district if all have the same name, else by name, district and city.
    told = [venue.district for venue in found]
    if len({venue.name for venue in found}) > 1 or len(set(told)) < len(told) or not all(told):
        told = [", ".join(filter(None, (venue.title, venue.city))) for venue in found]
    lines = "\n".join(f"{number}. {escaped(one)}" for number, one in enumerate(told, 1))
    return _asking(
        f"Which one?\n{lines}",
        AwaitingType.SELECTION,
        handler,
        options=[_option(venue) for venue in found],
        context={"original_query": query, "selection_type": selection_type},
    )


def _option(venue: Venue) -> dict[str, str]:
    return {"name": venue.name, "district": venue.district, "city": venue.city, "id": venue.id}
