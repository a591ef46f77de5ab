"""Makes one turn: gets its outcome from an agent or mini-app, posts it, and records it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from activity import Activity
from agents.gateway import Answer, Declined, Failure, FailureKind, Outcome
from conversation import ConversationManager
from discord_io.channel_wire import PostError, Problem
from discord_io.prompt_cards import PromptCards, card_of
from discord_io.split import closed
from discord_io.streamed_reply import StreamedReply
from state.agent_state import GENERAL, AgentState
from state.budget import Budget, charge_to
from state.message import NOBODY
from state.prompts import Prompt
from turns.answering import Answering
from turns.endings import NOT_ALLOWED, agent_fault, post_fault, posted_text, report_of, silence_of, undelivered
from turns.meanings import Meanings
from turns.pending_turns import PendingTurns
from turns.records import Records
from turns.turn import Cancel, Question, Ready, Turn

log = structlog.get_logger()


class TurnMaker:
    """Makes turns, one at a time for each channel.

    budget: of their model calls. meanings: reads questions that changed. pending: the unfinished questions. records,
    activity: told how turns end.
    """

    def __init__(
        self,
        conversations: ConversationManager,
        answering: Answering,
        prompts: PromptCards,
        budget: Budget,
        meanings: Meanings,
        pending: PendingTurns,
        records: Records,
        activity: Activity,
    ) -> None:
        self._conversations = conversations
        self._answering = answering
        self._prompts = prompts
        self._budget = budget
        self._meanings = meanings
        self._pending = pending
        self._records = records
        self._activity = activity

    async def make(self, turn: Turn, post: StreamedReply) -> None:
        """Runs the turn to its end. post: its reply in the channel."""
        newest, started = turn.newest, asyncio.get_running_loop().time()
        turn.conversation = self._conversations.get(newest.channel_id)
        payer = turn.payer
        turn.allowance = self._budget.allowance(payer)
        charge_to(payer, turn.allowance)  # also what picks an agent or completes a query
        turn.post = post
        tokens, silence, ended = 0, None, await self._go_on(turn, turn.ready, post) if turn.ready else ""
        outcome: Outcome | Cancel | None = None
        while not ended:
            outcome = await self._outcome(turn, post)
            tokens += self._account(turn, outcome)
            if outcome is Cancel.STOPPED:
                # After a stop nothing is added to what was already shown.
                turn.text = turn.text if turn.stage else post.shown
            if isinstance(outcome, Failure):
                asked = [question.message.message_id for question in turn.questions]
                where = {"channel": newest.channel_id, "messages": asked}
                log.error("agent_failed", **where, kind=outcome.kind, detail=outcome.detail)
                kind, says = agent_fault(outcome.kind, turn.agent if turn.is_remote else "")
                self._activity.fault(kind, outcome.kind, says, newest.guild_id, newest.channel_id)
            silence = silence_of(turn, outcome)
            ended = await self._conclude(turn, outcome, post, is_silent=silence is not None)
        self._records.ended(turn, silence)
        self._records.answered(turn, post.standing)
        if ended != f"undelivered_{Problem.UNREACHABLE}":  # that one may be posted after a restart
            self._pending.done(newest.channel_id)
        where = {"guild": newest.guild_id, "channel": newest.channel_id, "message": newest.message.message_id}
        elapsed = asyncio.get_running_loop().time() - started
        log.info("turn_ended", **where, outcome=ended, tokens=tokens, elapsed_ms=round(1000 * elapsed))
        is_excuse = isinstance(outcome, Failure) and not outcome.text  # which is no text of an answer
        first_text = None if post.stood_at is None or is_excuse else max(0.0, post.stood_at - started)
        self._activity.turn_ended(report_of(turn, ended, self._activity.now(), elapsed, first_text))

    async def _outcome(self, turn: Turn, post: StreamedReply) -> Outcome | Cancel:
        # Begins an attempt: edits and stops from here on are noticed below.
        turn.request, turn.work, turn.is_reworded, turn.agent = None, None, False, GENERAL
        await self._records.stored()
        if turn.cancel:  # before it had begun
            return turn.cancel
        if turn.conversation is None:
            return Cancel.WITHDRAWN
        while self._read(turn).by_miniapp or self._budget.has_budget():
            outcome = await self._attempt(turn, post)
            # A question became a call by an edit after the agent was asked, when the turn could not be restarted any
            # more, so that declining is not allowed now.
            is_called_since = isinstance(outcome, Declined) and not turn.may_decline
            if outcome and not (is_called_since and turn.request and turn.request.may_decline):
                return outcome
            self._account(turn, outcome)
            turn.request, turn.is_reworded = None, False
        return Cancel.OVER_BUDGET

    def _read(self, turn: Turn) -> Question:
        """Updates the questions of a turn that begins, or begins anew. Returns the newest."""
        turn.questions[:] = map(self.anew, turn.questions)
        if turn.newest.stands_alone:  # it is the only one, and may be for another agent or mini-app now
            turn.newest = turn.questions[-1]
        return turn.newest

    def anew(self, question: Question) -> Question:
        """The question as it stands now, also for a restart."""
        anew = self._meanings.anew(question)
        if anew is not question:
            self._pending.revised(anew)
        return anew

    async def _attempt(self, turn: Turn, post: StreamedReply) -> Outcome | Cancel | None:
        """The turn's outcome; None: a question was edited before anything was posted, so ask again."""
        turn.work = asyncio.create_task(self._answering.answer(turn))
        await asyncio.wait({turn.work, post.broken}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.work.done() and not turn.cancel:
            turn.end(Cancel.UNDELIVERABLE)
        try:
            return await turn.work
        except asyncio.CancelledError:
            if turn.cancel is None and not turn.is_reworded:  # the caller is cancelled, and not only the turn
                raise
            return turn.cancel
        except Exception:
            log.exception("turn_failed", channel=turn.newest.channel_id, message=turn.newest.message.message_id)
            return Failure(FailureKind.INTERNAL, "An error of ours ended the turn.", turn.text)

    def _account(self, turn: Turn, outcome: Outcome | Cancel | None) -> int:
        """Counts the usage of an attempt, also of one that was interrupted. Returns the tokens."""
        told = outcome if isinstance(outcome, Outcome) else self._answering.interrupted(turn)
        is_answer, is_declined = isinstance(outcome, Answer), isinstance(outcome, Declined)
        return turn.allowance.settle(told.tokens if told else 0, is_answer=is_answer, is_declined=is_declined)

    async def _conclude(self, turn: Turn, outcome: Outcome | Cancel, post: StreamedReply, *, is_silent: bool) -> str:
        """Posts the outcome, unless it is silence, and records it. Returns it in one word; empty: ask again."""
        newest, conversation = turn.newest, turn.conversation
        told = self._answering.interrupted(turn) if isinstance(outcome, Cancel) else outcome
        state = told.state if told and turn.is_remote else None  # of a remote agent, however the turn ended
        ready, prompt, history = Ready(""), None, None
        if not is_silent:
            prompt, text = self._prompt(turn, outcome), posted_text(turn, outcome)
            if prompt and prompt.question:
                text = f"{closed(text)}\n\n{prompt.question}"
            if isinstance(outcome, Answer):
                if newest.by_miniapp:
                    self._answering.note(newest, outcome)
                if conversation and turn.request and not (turn.is_private or turn.is_remote):
                    history = conversation.current(outcome.history)
            files = getattr(outcome, "files", ())
            people = conversation.people_told_of() if conversation else NOBODY
            ready = Ready(text, getattr(prompt, "id", None), history, turn.agent, state, files, people)
            self._pending.ready(newest.channel_id, None if turn.may_quote_forgotten else ready)
            await self._records.stored()
        if problem := await self._finish(turn, post, ready, prompt):
            return self._undelivered(newest.channel_id, problem)
        outcome = Cancel.WITHDRAWN if turn.cancel is Cancel.WITHDRAWN else outcome
        # A conversation that ended meanwhile (/forget) must not come back.
        if conversation and self._conversations.get(newest.channel_id) is conversation:
            self._remember(turn, outcome, state)
        if isinstance(outcome, Cancel):
            return outcome
        if is_silent:
            self._conversations.record_declined(newest.channel_id, {q.message.author_id for q in turn.questions})
        return getattr(outcome, "kind", "declined" if is_silent else "answered")

    async def _go_on(self, turn: Turn, ready: Ready, post: StreamedReply) -> str:
        """Posts the rest of an answer that an earlier process had ready. Returns the outcome in one word; empty: it was
        called off."""
        channel_id, turn.agent = turn.newest.channel_id, ready.agent
        prompt = self._prompts.reopen(channel_id, ready.prompt_id) if ready.prompt_id else None
        if problem := await self._finish(turn, post, ready, prompt):
            return self._undelivered(channel_id, problem)
        if turn.conversation and turn.is_remote:
            self._conversations.record_agent_state(channel_id, turn.agent, ready.state)
        elif turn.conversation and ready.history is not None and turn.cancel is not Cancel.WITHDRAWN:
            self._conversations.record_bot_response(channel_id, ready.history)
        return Cancel.WITHDRAWN if turn.cancel is Cancel.WITHDRAWN else "finished"

    def _undelivered(self, channel_id: int, problem: Problem) -> str:
        """The outcome of an answer that was not posted, in one word; empty: it was taken back."""
        if problem is not Problem.TAKEN_BACK:
            return f"undelivered_{problem}"
        self._pending.ready(channel_id, None)
        return ""

    async def _finish(self, turn: Turn, post: StreamedReply, ready: Ready, prompt: Prompt | None) -> Problem | None:
        """Posts the complete answer. Returns why it could not, after reporting it."""
        card_id, failed = None, None
        try:
            card_id = await post.finish(ready.text, card_of(prompt) if prompt else turn.take_thread_card(), ready.files)
            if turn.cancel is Cancel.WITHDRAWN and ready.text:
                # The question was deleted while its answer was being posted.
                card_id = await post.finish("")
        except PostError as error:
            card_id, failed = None, error
        if prompt:
            self._prompts.shown(prompt, card_id, post.last_text)
        if failed and failed.problem is not Problem.TAKEN_BACK:
            await self._report(turn.newest, post, failed)
        return failed.problem if failed else None

    def _prompt(self, turn: Turn, outcome: Outcome | Cancel) -> Prompt | None:
        """The prompt to show with this answer: one that it asks, or an earlier one that is repeated; None: neither."""
        if not isinstance(outcome, Answer) or not turn.questions:
            return None
        if outcome.ask and not turn.may_quote_forgotten:
            newest = turn.questions[-1]  # others may have been withdrawn meanwhile
            miniapp_id, where = newest.meaning.miniapp_id if newest.by_miniapp else None, newest.channel_id
            opened = self._prompts.open(
                outcome.ask,
                newest.message,
                guild_id=newest.guild_id,
                channel_id=where,
                miniapp_id=miniapp_id,
                parts=newest.parts,
                people=frozenset(who for question in turn.questions for who in question.addressees),
            )
            if opened:
                return opened
        # An open prompt is repeated once enough messages have not answered it; one per answer.
        for author_id in dict.fromkeys(q.message.author_id for q in turn.questions if not q.meaning.prompt):
            if again := self._prompts.missed(turn.newest.channel_id, author_id):
                return again
        return None

    def _remember(self, turn: Turn, outcome: Outcome | Cancel, state: AgentState | None) -> None:
        channel_id = turn.newest.channel_id
        for question in turn.questions:
            if question.is_private and turn.conversation:  # so that the history does not keep its words either
                turn.conversation.revise(question.as_kept.message)
        if turn.is_remote:
            self._conversations.record_agent_state(channel_id, turn.agent, state)
            return
        match outcome:
            case Answer() if turn.request:  # of a mini-app's answer the model is told the posted message instead
                history = outcome.history
                if turn.is_private:  # drops the agent's metadata of this answer, too
                    history = [*history[:-1], replace(history[-1], metadata=None)]
                self._conversations.record_bot_response(channel_id, history)
            case Failure(kind=FailureKind.TOO_LONG):
                self._conversations.forget_history(channel_id)
            case Cancel.STOPPED | Cancel.SHUTDOWN if turn.text.strip() and (
                interrupted := self._answering.interrupted(turn)
            ):
                self._conversations.record_bot_response(channel_id, interrupted.history)

    async def _report(self, newest: Question, post: StreamedReply, error: PostError) -> None:
        """Reports an answer that could not be posted: in the log, and to the asker, where Discord allows it."""
        message_id = newest.message.message_id
        where = {"channel": newest.channel_id, "message": message_id, "detail": str(error)}
        if error.problem is Problem.ELSEWHERE:
            log.warning("answered_elsewhere", **where)
            return
        log.error("post_failed", problem=error.problem, **where)
        kind, says = post_fault(error.problem)
        self._activity.fault(kind, error.problem, says, newest.guild_id, newest.channel_id)
        if error.problem in (Problem.REJECTED, Problem.UNREACHABLE, Problem.UNKNOWN):
            try:
                if await post.explain(undelivered(error.problem, stands=bool(post.standing))):
                    self._pending.done(newest.channel_id)
                    return
            except PostError as again:
                log.error("report_failed", channel=newest.channel_id, problem=again.problem, detail=str(again))
        if error.problem not in (Problem.GONE, Problem.LOCKED, Problem.BLOCKED):
            await post.react(NOT_ALLOWED)
