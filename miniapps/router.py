"""Picks the mini-app for a turn, and isolates faults: its user reads one sentence, nobody else notices."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import entry_points
from typing import Any

import structlog
from pydantic import JsonValue

from discord_io.split import clipped, closed, length
from miniapps.base import ChatGuid, MiniApp, MiniAppContext, MiniAppResponse, running
from state.prompts import as_json

log = structlog.get_logger()

GROUP = "parley.miniapps"
TIMEOUT_SECONDS = 10.0
MAX_ABANDONED = 5  # turns of one mini-app that swallowed their cancellation and still run
MAX_MESSAGE = 12_000  # characters: six messages of Discord's, as much as the agent says
ID = re.compile(r"(?!agent$)[a-z][a-z0-9_]{0,39}")  # "agent" names the agent's own questions

# What is caught around a mini-app's plain methods: a CancelledError there is its own, and sys.exit() would end the bot.
FAULTS = (Exception, SystemExit, asyncio.CancelledError)

BROKEN = "Something went wrong there on my side. Please try it again."
LATE = "That took too long on my side. Please try it again in a moment."
CUT = "\n\n-# That is as much as I can say at once."
UNKNOWN = "The part of me that asked you that is no longer here, so I cannot go on with it."


@dataclass(frozen=True, slots=True)
class MiniAppFailure:
    """Result of a mini-app that could not answer. sentence: for the user; the details are in the log."""

    miniapp_id: str
    sentence: str


class MiniAppRouter:
    """The mini-apps in their order. Of two with the same id the first counts; the other is logged and left out.

    on_change: called with the channel's id after each turn, failed ones too, and after each forget, retract and expire.
    """

    def __init__(
        self,
        apps: Iterable[MiniApp],
        *,
        on_change: Callable[[ChatGuid], None] = lambda _chat_guid: None,
    ) -> None:
        self._apps: dict[str, MiniApp] = {}
        self._on_change = on_change
        self._abandoned: dict[asyncio.Task[Any], str] = {}
        for app in apps:
            if self._apps.setdefault(app.id, app) is not app:
                log.error("miniapp_left_out", miniapp=app.id, why="another one has this id")

    def pick(self, text: str, soft_context: Mapping[str, Any]) -> str | None:
        """Id of the mini-app with the highest score among those at their threshold or over; the first of equals."""
        wanted: dict[str, float] = {}
        for app in self._apps.values():
            try:
                score = app.wants(text, soft_context)
                if not 0 <= score <= 1:
                    raise ValueError(f"{score} is not from 0 to 1")
                if score > 0 and score >= app.threshold:
                    wanted[app.id] = score
            except FAULTS:
                log.exception("miniapp_failed", miniapp=app.id, problem="wants gave no score")
        return max(wanted, key=wanted.__getitem__, default=None)

    async def route_to_miniapp_if_applicable(
        self,
        context: MiniAppContext,
        *,
        focus_resolution: Mapping[str, Any] | None = None,
        force_miniapp_id: str | None = None,
    ) -> MiniAppResponse | MiniAppFailure | None:
        """The answer of force_miniapp_id, else of the mini-app that wants the text. None: none wants it.

        Returns within the timeout whatever a mini-app raises, returns or waits for, unless it blocks the event loop. A
        turn that swallows its cancellation is abandoned and goes on in the background; a mini-app with five such turns
        gets no other. Cancelling this cancels the mini-app. A message over 12,000 characters is cut, and says so.
        """
        if focus_resolution is not None:
            context = replace(context, focus_resolution=focus_resolution)
        miniapp_id = force_miniapp_id or self.pick(context.text, context.soft_context)
        if miniapp_id is None:
            return None
        if (app := self._apps.get(miniapp_id)) is None:
            return _failure(miniapp_id, UNKNOWN, "unknown")
        return await self._run(app, context)

    async def _run(self, app: MiniApp, context: MiniAppContext) -> MiniAppResponse | MiniAppFailure:
        if [*self._abandoned.values()].count(app.id) >= MAX_ABANDONED:
            return _failure(app.id, LATE, "too many turns of it go on uncancelled")
        task = asyncio.create_task(_handled(app, context))
        task.add_done_callback(lambda _task: self._on_change(context.chat_guid))  # also after an abandoned turn
        try:
            await asyncio.wait({task}, timeout=TIMEOUT_SECONDS)
        finally:
            if not task.done():
                self._abandoned[task] = app.id  # the event loop holds only weak references to tasks
                task.add_done_callback(self._ended)
                task.cancel()
        if not task.done():
            return _failure(app.id, LATE, "late")
        if task.cancelled():
            return _failure(app.id, BROKEN, "cancelled itself")
        if (error := task.exception()) is not None:  # an error may be falsy
            return _failure(app.id, BROKEN, "raised", error)
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        miniapp_id = self._abandoned.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("miniapp_failed_late", miniapp=miniapp_id, exc_info=error)

    def still_stands(self, miniapp_id: str, chat_guid: ChatGuid, about: str) -> bool:
        """Whether a follow-up still applies. False if the mini-app is gone, or raises, which is logged."""
        try:
            return miniapp_id in self._apps and bool(self._apps[miniapp_id].still_stands(chat_guid, about))
        except FAULTS:
            log.exception("miniapp_failed", miniapp=miniapp_id, problem="still_stands raised")
            return False

    def said(self, miniapp_id: str, chat_guid: ChatGuid) -> Mapping[int, int]:
        """MiniApp.said of a mini-app. Empty if it is gone, or raises, which is logged."""
        try:
            return dict(self._apps[miniapp_id].said(chat_guid)) if miniapp_id in self._apps else {}
        except FAULTS:
            log.exception("miniapp_failed", miniapp=miniapp_id, problem="said raised")
            return {}

    def quotes(self, chat_guid: ChatGuid, message_id: int) -> bool:
        """Whether a mini-app keeps words of this message."""
        return any(message_id in self.said(miniapp_id, chat_guid) for miniapp_id in self._apps)

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:
        """Makes all mini-apps drop what one person said there; None: what everybody said."""
        self._have_all(chat_guid, "forget", lambda app: app.forget(chat_guid, author_id))

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:
        """Makes all mini-apps drop what these messages said, which were edited or deleted."""
        self._have_all(chat_guid, "retract", lambda app: app.retract(chat_guid, message_ids))

    def expire(self, chat_guid: ChatGuid, before: int) -> None:
        """Makes all mini-apps drop what messages with lower ids said."""
        self._have_all(chat_guid, "expire", lambda app: app.expire(chat_guid, before))

    def _have_all(self, chat_guid: ChatGuid, what: str, drop: Callable[[MiniApp], None]) -> None:
        for app in self._apps.values():
            try:
                drop(app)
            except FAULTS:
                log.exception("miniapp_failed", miniapp=app.id, problem=f"{what} raised")
        self._on_change(chat_guid)

    def stored(self, chat_guid: ChatGuid) -> dict[str, JsonValue]:
        """What each mini-app keeps of a channel: its id -> JSON. Anything else is logged and left out."""
        kept: dict[str, JsonValue] = {}
        for app in self._apps.values():
            try:
                # A copy, since the mini-app may change its own data while it is being written.
                if (stored := as_json(app.stored(chat_guid))) is not None:
                    kept[app.id] = stored
            except FAULTS:
                log.exception("miniapp_failed", miniapp=app.id, problem="stored gave no JSON")
        return kept

    def restore(self, chat_guid: ChatGuid, stored: Mapping[str, JsonValue]) -> None:
        """Restores each mini-app from what is stored of it. Data of unknown mini-apps is dropped."""
        for app in (app for app in self._apps.values() if app.id in stored):
            try:
                app.restore(chat_guid, stored[app.id])
            except FAULTS:
                log.exception("miniapp_failed", miniapp=app.id, problem="restore raised")


def discover() -> list[MiniApp]:
    """The mini-apps of installed packages: entry points of the group `parley.miniapps`.

    Each names a class without required arguments, or a function that returns a mini-app. Entries that cannot be loaded,
    are no mini-app or have no valid id are logged with their name and left out.
    """
    apps: list[MiniApp] = []
    for entry in entry_points(group=GROUP):
        try:
            app = entry.load()()
            if not isinstance(app, MiniApp):
                raise TypeError(f"{type(app).__name__} is no MiniApp")
            if not ID.fullmatch(str(getattr(app, "id", ""))):
                raise ValueError(f"{type(app).__name__} needs an id of lower case letters, digits and underscores")
            apps.append(app)
        except FAULTS:
            log.exception("miniapp_left_out", miniapp=entry.name, entry_point=entry.value)
    return apps


async def _handled(app: MiniApp, context: MiniAppContext) -> MiniAppResponse:
    """Runs one turn and checks its response. Needs a task of its own, since it sets `running`."""
    running.set(app.id)
    try:
        response: object = await app.handle(context)
    except SystemExit as error:  # a task would raise it in the event loop
        raise RuntimeError(f"{app.id} called sys.exit()") from error
    # A subclass may skip `__init__` and lack fields.
    if not isinstance(response, MiniAppResponse) or not all(hasattr(response, f.name) for f in fields(MiniAppResponse)):
        raise TypeError(f"{app.id} returned {type(response).__name__}, not a MiniAppResponse")
    if length(response.message) <= MAX_MESSAGE:
        return response
    log.warning("miniapp_cut", miniapp=app.id, characters=len(response.message))
    message = closed(clipped(response.message, MAX_MESSAGE)) + CUT
    return MiniAppResponse(message, response.conversation_state, response.soft_context, follow_up=response.follow_up)


def _failure(miniapp_id: str, sentence: str, problem: str, error: BaseException | None = None) -> MiniAppFailure:
    log.error("miniapp_failed", miniapp=miniapp_id, problem=problem, exc_info=error)
    return MiniAppFailure(miniapp_id, sentence)
