"""Answers a turn: by the mini-app that it is for, or by an agent, with everything the agent is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Protocol

import structlog

from agents.bounded_client import not_repeating
from agents.gateway import AgentRequest, Answer, Asked, Failure, FailureKind, Outcome, Reply
from agents.team import Team
from agents.tracing import span
from clock import Clock
from conversation import ChannelConversation
from files.reading import Reading
from llm_history import History as ModelHistory
from llm_history import only
from miniapps.base import MiniAppContext, MiniAppResponse
from miniapps.router import UNKNOWN, MiniAppRouter
from place import Place, PlaceKind
from state.agent_state import GENERAL
from state.awaiting import ConversationStateManager, RouteTarget
from state.message import Source, file_key
from turns.preparing import InFull, Preparing, told_of, untold
from turns.records import Records
from turns.turn import Cancel, Question, Turn
from turns.turn_slots import TurnSlots
from understanding.shared_context import mentioning

log = structlog.get_logger()

FRESH_SECONDS = 5.0  # for so long it holds who may read the history: Discord tells few members a second
SAID_BY_OTHERS = (
    "I cannot go on with this for you: it has what others said, and as far as I see you may not read the history here."
)


class Readers(Protocol):
    async def newcomers(self, place: Place, people: Collection[int]) -> frozenset[int] | None:
        """Those of these people who may not read the history of the place now; None: unknown at the moment."""

    def named_now(self, place: Place) -> Place:
        """The place, without a thread's title if that was changed since."""


class Answering:
    """Has turns answered, by a mini-app or by one of the team's agents.

    slots: limit the agents' turns that run at once. readers: know who may read the history. waiting: (channel id) ->
    ids of messages that have, or may get, a turn of their own.
    """

    def __init__(
        self,
        team: Team,
        miniapps: MiniAppRouter,
        states: ConversationStateManager,
        preparing: Preparing,
        records: Records,
        slots: TurnSlots,
        readers: Readers,
        *,
        waiting: Callable[[int], Collection[int]],
        clock: Clock,
    ) -> None:
        self._team = team
        self._miniapps = miniapps
        self._states = states
        self._preparing = preparing
        self._records = records
        self._slots = slots
        self._readers = readers
        self._waiting = waiting
        self._clock = clock

    async def answer(self, turn: Turn) -> Outcome | Cancel:
        """The turn's outcome. While it grows, turn.show is called with the whole text so far."""
        turn.mark = self._records.mark
        if turn.conversation:
            turn.conversation.begin_turn()
        # It may be told what was last done in the channel, perhaps by people who are not in this conversation.
        where = turn.newest.channel_id
        known = self._drawn_on(self._states.soft_context(where).get("source_miniapp_id"), where)
        # Of a private question the conversation does not keep whose words it has.
        private = [q.message for q in turn.questions if q.is_private]
        whose: list[Source] = [("person", who) for message in private for who in (message.author_id, *message.drew_on)]
        self._records.looked_up(where, whose)
        if turn.newest.by_miniapp:
            turn.begin_typing()
            if outcome := await self._flow(turn, {*known.values()}):
                return outcome
        async with self._slots.taken(turn):
            turn.begin_typing()
            return await self._by_agent(turn)

    async def _by_agent(self, turn: Turn) -> Outcome | Cancel:
        """Asks an agent. Begins anew where others may read the history by the time the model is about to be asked, as
        an answer may wait long for its budget."""
        if (conversation := turn.conversation) is None:
            return Cancel.WITHDRAWN
        clock = asyncio.get_running_loop().time
        while True:
            turn.agent, turn.request = GENERAL, None  # not the agent picked for what they could read before
            turn.newcomers, looked_up_at = await self._newcomers(turn), clock()
            try:
                async with asyncio.timeout(None) as attempt:
                    turn.allowance.before_first = partial(self._look_again, turn, attempt, looked_up_at)
                    return await self._by_picked(turn, conversation)
            except TimeoutError:
                if not attempt.expired():
                    raise

    async def _look_again(self, turn: Turn, attempt: asyncio.Timeout, looked_up_at: float) -> None:
        """Ends the attempt if others may read the history than when it was looked up at this time, by the loop's clock;
        not once a tool was used, as when people allowed its call."""
        now = asyncio.get_running_loop().time()
        if turn.has_acted or now - looked_up_at < FRESH_SECONDS:
            return
        if await self._newcomers(turn) != turn.newcomers:
            attempt.reschedule(now)
            await asyncio.Future()  # until it is cancelled

    async def _by_picked(self, turn: Turn, conversation: ChannelConversation) -> Outcome | Cancel:
        newest = turn.questions[-1]  # only now, as it may have been edited meanwhile
        # An answer to the general agent's prompt goes to that agent. So does a private question, which a remote agent
        # would keep, and one of a newcomer, to whom a remote agent might tell what they may not read. Otherwise the
        # newest question decides which agent answers.
        in_full: Mapping[int, InFull] = {}
        attached: Mapping[str, Reading] = {}
        with not_repeating(lambda: bool(conversation.taken_back)):  # what is asked before the answer is told it, too
            if self._team.has_several and not (newest.meaning.prompt or turn.is_private or turn.newcomers):
                *earlier, question = [q.current(conversation) for q in turn.questions if q.is_one_with(newest)]
                choice = await self._team.pick(question, conversation, newest.place, earlier)
                turn.agent = choice.agent
                self._records.picked(turn, choice)
            if not turn.is_remote:
                in_full = await self._preparing.in_full(turn, conversation)
                attached = await self._preparing.attached(turn, conversation)
        # A question that was trimmed meanwhile is still answered.
        pending = [q for q in turn.questions if not conversation.is_deleted(q.message.message_id)]
        return await self._ask(turn, pending, conversation, in_full, attached) if pending else Cancel.WITHDRAWN

    async def _ask(
        self,
        turn: Turn,
        pending: Sequence[Question],
        conversation: ChannelConversation,
        in_full: Mapping[int, InFull],
        attached: Mapping[str, Reading],
    ) -> Outcome:
        questions = [question.current(conversation) for question in pending]
        place, newcomers = pending[-1].place, turn.newcomers

        def noted_now(request: AgentRequest) -> AgentRequest:
            notes = () if turn.is_remote else self._preparing.notes(turn, conversation, in_full)
            shared = {} if newcomers else self._team.shared(questions, conversation, place)
            left = (q for q in pending if not conversation.is_deleted(q.message.message_id))
            asked = [question.current(conversation) for question in left]
            titled = self._readers.named_now(self._records.titled(pending[-1]))
            return replace(request, place=titled, notes=notes, shared=shared, questions=asked)

        request = AgentRequest(
            history=(),
            transcript=(),
            questions=questions,
            place=place,
            now=self._clock(),
            asked=Asked(
                pending[-1].guild_id,
                pending[-1].channel_id,
                pending[-1].message.author_id,
                pending[-1].reply_to,
                frozenset(who for question in pending for who in question.addressees),
                frozenset(
                    (m.author_id, link)
                    for m in (*conversation.messages, *questions)
                    if not m.is_bot
                    for link in m.links
                ),
                is_direct=place.kind is PlaceKind.DIRECT,
                newcomers=newcomers,
            ),
            gone=conversation.taken_back.keys(),
            noted_now=noted_now,
            may_decline=turn.may_decline,
            allowance=turn.allowance,
        )
        request = noted_now(request)  # files, which were read before, may have taken long
        turn.request = (
            self._for_remote(request, turn, conversation)
            if turn.is_remote
            else self._for_model(request, turn, pending[-1], conversation, attached, in_full)
        )
        with span("answer"):
            outcome = await self._team[turn.agent].respond(turn.request, turn.show)
        turn.instructions = outcome.instructions if isinstance(outcome, Answer) else ""
        if isinstance(outcome, Answer):
            self._records.made_by(pending, outcome.model)
        return outcome

    def _for_remote(self, request: AgentRequest, turn: Turn, conversation: ChannelConversation) -> AgentRequest:
        """A remote agent is told the questions, and nothing else of the channel but what all agents are told."""
        parts = [part.message_id for part in turn.adopted or ()]
        conversation.remote.ask(turn.agent, [*parts, *(q.message_id for q in request.questions)])
        if request.shared:
            self._records.shared(conversation.channel_id, turn.agent, request.shared.values())
        conversation.remote.left -= {turn.agent}
        return replace(request, state=conversation.remote.states.get(turn.agent))

    def _for_model(
        self,
        request: AgentRequest,
        turn: Turn,
        newest: Question,
        conversation: ChannelConversation,
        attached: Mapping[str, Reading],
        in_full: Mapping[int, InFull],
    ) -> AgentRequest:
        """A model is told what was said since it was last told anything.

        It is not told the begun answer of an earlier process, which is written again, nor messages with a turn of their
        own, which it might answer twice. Messages after these, or after a picture that was posted while the files were
        read, are left to the next turn; what one who asks may not read, to the next of those who may.
        """
        parts = {part.message_id for part in turn.adopted or ()}
        asked = {q.message_id: q for q in request.questions}
        waiting, last = self._waiting(conversation.channel_id), max(asked)
        may_tell = untold(turn, conversation)
        hidden = {m.message_id for m in conversation.untold()}.difference(m.message_id for m in may_tell)
        if left := hidden | {message_id for message_id in waiting if message_id < last}:
            conversation.passed_over |= left
        now_told = takewhile(
            lambda m: (
                attached.keys() >= set(map(file_key, m.images))
                and not (m.message_id in waiting and m.message_id > last)
            ),
            may_tell,
        )
        to_tell = {m.message_id for m in now_told}.difference(waiting).union(asked).difference(parts)

        def current(history: ModelHistory) -> ModelHistory:
            now = conversation.current(history, [question.current(conversation) for question in turn.questions])
            said = told_of(turn, conversation)
            return now if said is None else only(now, said, turn.newcomers)

        trimmed = [q for q in request.questions if conversation.find(q.message_id) is None]
        told = [asked.get(m.message_id, m) for m in conversation.messages if m.message_id in to_tell]
        return replace(
            request,
            history=conversation.llm_history,
            transcript=[*trimmed, *told],
            attached=attached,
            noted_of=self._noted_of(request, turn, conversation, in_full),
            reply=_reply(newest, conversation),
            tell_stage=turn.tell_stage,
            used=turn.tools.extend,
            looked_up=partial(self._records.looked_up, conversation.channel_id),
            is_private=turn.is_private,
            current=current,
            said=told_of(turn, conversation),
            model=turn.model,
        )

    def _noted_of(
        self,
        request: AgentRequest,
        turn: Turn,
        conversation: ChannelConversation,
        in_full: Mapping[int, InFull],
    ) -> frozenset[int]:
        """The ids of the messages whose words the agent's notes, or what is shared, may have."""
        where, spoken = conversation.channel_id, [m for m in conversation.messages if not m.is_bot]
        shared = filter(mentioning(request.shared.values(), spoken), spoken) if request.shared else ()
        quoted = [*shared, *(message for full in in_full.values() for message in full.made_of)]
        found = {one for m in quoted for one in (m.message_id, m.reply_to_id or 0)}
        found.update(self._miniapps.said(self._states.soft_context(where).get("source_miniapp_id", ""), where))
        for prompt in (q.meaning.prompt for q in turn.questions):
            if prompt and prompt.miniapp_id:
                found.update((prompt.source_id, *prompt.source_parts, *prompt.said))
        return frozenset(found - {0})

    def note(self, question: Question, answer: Answer) -> None:
        """Notes the answer's soft context and follow-up."""
        if answer.soft_context:
            self._states.set_soft_context(question.channel_id, answer.soft_context, question.meaning.miniapp_id)
        if answer.follow_up:
            self._records.follow_up(question, answer.follow_up, self._clock())

    def interrupted(self, turn: Turn) -> Answer | None:
        """The incomplete answer of an interrupted turn; None where no agent was asked."""
        return self._team[turn.agent].interrupted(turn.request, turn.text) if turn.request else None

    def _drawn_on(self, miniapp_id: str | None, channel_id: int) -> Mapping[int, int]:
        """What a mini-app keeps there, as message id -> author id; notes that the answer may have their words."""
        kept = self._miniapps.said(miniapp_id or "", channel_id)
        self._records.looked_up(channel_id, [("person", who) for who in kept.values() if who])
        return kept

    async def _newcomers(self, turn: Turn) -> frozenset[int]:
        """Those whom the turn is for who may not read the history at the moment."""
        people = {who for question in turn.questions for who in question.addressees}
        found = await self._readers.newcomers(turn.newest.place, people)
        reading = {q.message.author_id for q in turn.questions if q.reads_history}  # when they asked
        return frozenset(people - reading) if found is None else found

    async def _flow(self, turn: Turn, known_of: Set[int]) -> Answer | Failure | None:
        """A mini-app's answer, which needs no model. Where it keeps what its author may not read: a refusal if that is
        an answer to it, else None, and the question is for an agent. known_of: whose words the soft context may have,
        which another mini-app may have set."""
        question = turn.questions[-1]
        message, meaning = question.message, question.meaning
        ask = meaning.prompt.ask if meaning.prompt else None
        soft_context, author_id = self._states.soft_context(question.channel_id), message.author_id
        kept = self._drawn_on(meaning.miniapp_id, question.channel_id)
        # What it has dropped since, its question may still have.
        others = {*kept.values(), *(meaning.prompt.said.values() if meaning.prompt else ())} - {author_id}
        if (others or known_of - {author_id}) and author_id in await self._newcomers(turn):
            if others and (meaning.prompt or meaning.about):  # as anybody may answer some prompts
                return Answer(SAID_BY_OTHERS, [], 0)
            if others:
                meaning = replace(meaning, route_to=RouteTarget.AGENT, miniapp_id=None)
                # Not the one from before the wait, which may have a quote that is gone.
                turn.newest = turn.questions[-1] = replace(turn.questions[-1], meaning=meaning)
                return None
            soft_context = {}
        context = MiniAppContext(
            text=meaning.query,
            chat_guid=question.channel_id,
            user_id=author_id,
            user_name=question.as_kept.message.author,
            message_id=message.message_id,
            now=self._clock(),
            soft_context=soft_context,
            source_handler=ask.source_handler if ask else "",
            asked=ask.context if ask else {},
            about=meaning.about,
            parts=question.parts,
        )
        response = await self._miniapps.route_to_miniapp_if_applicable(
            context, focus_resolution=meaning.resolution_data, force_miniapp_id=meaning.miniapp_id
        )
        if not isinstance(response, MiniAppResponse):
            sentence = response.sentence if response else UNKNOWN
            return Failure(FailureKind.MINIAPP, f"The mini-app {meaning.miniapp_id} gave no answer.", sentence)
        return Answer(
            response.message, [], 0, ask=response.ask, soft_context=response.soft_context, follow_up=response.follow_up
        )


def _reply(question: Question, conversation: ChannelConversation) -> Reply | None:
    """How the question resolves a prompt of the agent's; None: not at all, or it was edited since."""
    meaning, prompt = question.meaning, question.meaning.prompt
    if prompt is None or prompt.miniapp_id or prompt.ask.ends_with or meaning.resolution_type is None:
        return None
    if not question.is_as_read(conversation):
        return None
    return Reply(str(prompt.ask.context.get("ask_id")), meaning.resolution_type, meaning.resolution_data or {})
