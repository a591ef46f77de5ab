"""The general agent: a model called by pydantic-ai, which is sent its own history each turn."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

import structlog
from pydantic_ai import Agent, DeferredToolRequests, Tool, ToolDefinition
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelRequest,
    ModelResponse,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from agents.asking import ASKING, SOURCE, Suspended, find_suspended, words_in
from agents.bounded_client import OutdatedError, not_repeating, noting_lost
from agents.declining import STAY_SILENT, only_declines, reason_in
from agents.failures import describe, explained, may_be_billed
from agents.gateway import AgentRequest, Answer, Asked, Declined, Failure, FailureKind, Outcome
from agents.lighter_requests import size_of, size_of_all
from agents.mcp_servers import McpTools
from agents.metering import counted, spent_by
from agents.models import CACHED, SETTINGS, Models, NamedModel, parts_of
from agents.rules import rules_of
from agents.run import MAX_OUTPUT_CHARACTERS, NO_TOOLS, Run, most_tokens, sanitized
from agents.server_state import ServerState
from agents.tool_use import KEEP_TURNS, is_tool_use, pruned, tool_use
from agents.turn_input import (
    as_sent,
    flat,
    is_picture,
    next_history,
    told_since,
    turn_content,
    with_few_faults,
    with_request,
    without_pictures,
    without_thoughts,
)
from discord_io.split import is_blank
from place import Place
from state.limits import Cap
from state.message import sources_of
from state.prompts import Ask
from state.spending import CHARACTERS_PER_TOKEN, LONG_ANSWER

log = structlog.get_logger()
STALL_SECONDS = 60.0
TOTAL_SECONDS = 180.0
MAX_CALLS = 20  # of tools, in one answer
UNSEEN_TOKENS = 128_000  # that a model which thinks may use for thoughts that it does not show: no provider allows more
MAX_REQUESTS = 8  # of one answer: each call of a tool takes one more
MAX_REFUSED = 1  # how often a model that was called is told that it cannot decline
NO_SIGHT = re.compile(r"\bimages?\b|vision|multi-?modal|mmproj", re.IGNORECASE)  # of servers that answer with a 500
# How a response ends that is not whole. Of what was cut at its greatest length the text is an answer, if there is any.
BROKEN_OFF = {
    "length": FailureKind.OUT_OF_ROOM,
    "content_filter": FailureKind.WITHHELD,
    "error": FailureKind.UNAVAILABLE,
}
MAX_ENDS_WITH = 200  # characters of an answer that was cut, by which the model knows where to go on
# How a provider refuses to go on with what it no longer remembers, or with too much of it.
FORGOTTEN = (FailureKind.REJECTED, FailureKind.MISCONFIGURED, FailureKind.TOO_LONG)
OWN_TOOLS = (*ASKING, STAY_SILENT)
QUIET = frozenset(tool.name for tool in OWN_TOOLS)
STAGES = {
    "search_history": "searching the history",
    "read_message": "reading a message",
    "current_time": "looking at the clock",
    "react": "reacting",
    "pin": "pinning",
    "create_poll": "making a poll",
}


class GeneralAgent:
    """Answers from the conversation; may ask those it answers, or decline. instructions: the owner's, added to ours.

    model: of several, the one that the request names answers, else the default. A run keeps its model, also while it
    waits for an answer to a question. tools: own ones, with fixed definitions; one that requires approval asks the
    person who is answered before it runs. lent: the tools of MCP servers, which come and go. An exception in a tool
    ends the run, and is logged. keep_turns: for how many turns it is sent its tool calls and results again.
    server_state: the conversation as stored by the default model's provider; None: everything is sent each time. asks:
    whether it may ask the person it answers, and decline.
    """

    def __init__(
        self,
        model: Model | Models,
        *,
        instructions: str = "",
        tools: Sequence[Tool[Asked]] = (),
        lent: McpTools | None = None,
        keep_turns: int = KEEP_TURNS,
        server_state: ServerState | None = None,
        asks: bool = True,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._models = model if isinstance(model, Models) else Models({model.model_name: model})
        self._keep_turns = keep_turns
        self._server_state = server_state
        self._instructions = instructions
        own = [*(OWN_TOOLS if asks else ()), *tools]
        self._own = [tool.tool_def for tool in own]
        self._own_size = sum(map(size_of, self._own))
        self._lent = lent
        self._toolbox = Agent(
            self._models.default,
            name="tools",
            deps_type=Asked,
            tools=own,
            toolsets=[lent.toolset] if lent else [],
            output_type=[str, DeferredToolRequests],
        )
        self._stall = stall_seconds
        self._toolless: set[str] = set()  # the names of models that accept no tools
        self._unopened: set[str] = set()  # the names of models that close their thoughts with a tag, but open none
        self._hiding: set[str] = set()  # the names of models that were found to hide thoughts, though nothing tells so
        self._used: WeakKeyDictionary[AgentRequest, int] = WeakKeyDictionary()

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Outcome:
        seen = request.seen
        waited = find_suspended(seen.history, request.reply.ask_id) if request.reply else None
        if request.place.held.settings.tools is False:
            waited = None  # tools were switched off since it asked
        by = self._models.named(waited[1].model if waited else request.model)
        place, rules = request.place, rules_of(request.place, self._instructions)
        # Whether the provider may store the turn, and its stored conversation be used.
        is_stored = not request.is_private and request.said is None
        content = turn_content(seen)
        # Pictures that it remembers are billed again with each request.
        remembers = is_stored and by.model is self._models.default and not any(map(is_picture, content))
        run = Run(
            show,
            by,
            rules=rules,
            kept_rules=rules_of(place.untitled, self._instructions) if place.is_thread else rules,
            asked=request.asked,
            history=seen.history,
            told=[*seen.transcript, *seen.questions],
            content=content,
            settings=CACHED if is_stored else SETTINGS,
            memory=self._server_state if remembers else None,
        )
        if request.reply and waited:
            position, suspended = waited[0], waited[1].after(request.reply, request.questions)
            if suspended.open:
                return self._asking(request, suspended, run)
            self._resume(seen, run, position, suspended)
            known = None
        else:
            known = run.memory.known(seen.history) if run.memory else None
            before = [] if known else as_sent(seen.history)
            if by.name in self._toolless:
                before = [message for message in before if not is_tool_use(message)]
            run.messages = [*before, ModelRequest(parts=[UserPromptPart(content=flat(run.content))])]
            run.began, run.goes_on = len(run.messages), known is not None
            run.may_decline, run.may_use_tools = request.may_decline, by.name not in self._toolless
        if run.memory:
            run.settings = {**SETTINGS, **await run.memory.settings(known)}
        return await self._respond(request, run)

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        history = next_history(request, ModelResponse(parts=[TextPart(text)]))
        return Answer(text, history, self._used.get(request, 0))

    async def _respond(self, request: AgentRequest, run: Run) -> Outcome:
        try:
            outcome = await self._attempt(request, run)
            if isinstance(outcome, Failure) and outcome.kind in FORGOTTEN and run.memory and run.uses_memory:
                log.info("openai_state_lost", detail=outcome.detail)
                # A run that has begun goes on without it, as its messages have ids of what the provider forgot.
                run.settings = {**SETTINGS, **({} if run.made else await run.memory.settings(None))}
                run.send_all(as_sent(request.history))
                outcome = await self._attempt(request, run)
            # Rather an answer without what the model does not accept than none.
            while isinstance(outcome, Failure) and (
                outcome.kind is FailureKind.REJECTED
                or (run.shows_pictures and (outcome.kind is FailureKind.TURN_CAP or NO_SIGHT.search(outcome.detail)))
                or NO_TOOLS.search(outcome.detail)
            ):
                if NO_TOOLS.search(outcome.detail):
                    self._learn(run.by, self._toolless, "model_without_tools")
                if not run.simplify(outcome.detail):
                    break
                outcome = await self._attempt(request, run)
            return outcome
        except asyncio.CancelledError:
            self._used[request] = run.used
            request.count(run.used, run.spent())
            raise

    async def _attempt(self, request: AgentRequest, run: Run) -> Outcome:
        is_billed = True  # unless it was refused, or reached nobody
        is_outdated = False
        try:
            with noting_lost(run.note_lost), not_repeating(partial(run.is_outdated, request)):
                return await self._run(request, run)
        except OutdatedError as error:
            kind, detail, is_billed, is_outdated = FailureKind.UNAVAILABLE, describe(error), False, True
        except TimeoutError:
            kind, detail = FailureKind.LATE, f"The model {run.by.model.model_name} did not finish its answer in time."
        except (AgentRunError, FallbackExceptionGroup) as error:
            kind, detail = explained(error)
            is_billed = may_be_billed(error)
            run.lost -= is_billed and isinstance(error, FallbackExceptionGroup)  # the last was noted, and counts below
            if kind is FailureKind.UNAVAILABLE and run.output == run.began_at:  # nobody can tell how far it was
                run.unseen = min(run.unseen, LONG_ANSWER)
        except Exception as error:
            # A tool may raise anything, as may a client at what its server answers; what was used counts all the same.
            log.exception("run_failed", messages=[question.message_id for question in request.questions])
            is_models = run.is_asking and not isinstance(error, UserError)  # which says that our request is wrong
            kind, detail = FailureKind.UNAVAILABLE if is_models else FailureKind.INTERNAL, describe(error)
        if run.output > run.began_at or is_billed or run.lost:
            request.count(run.used, run.spent())
            run.tokens = run.used
        run.is_asking = False
        return await self._attempt(request, run) if is_outdated else Failure(kind, detail, run.text, run.tokens)

    async def _run(self, request: AgentRequest, run: Run) -> Outcome:
        clock = asyncio.get_running_loop().time
        run.ends_at = run.ends_at or clock() + TOTAL_SECONDS
        async with asyncio.timeout(None) as deadline:

            def go_on() -> None:
                deadline.reschedule(min(run.ends_at, clock() + self._stall))

            while run.requests < MAX_REQUESTS:
                deadline.reschedule(None)  # its budget may make it wait for other turns, which takes none of its time
                began = clock()
                if over := await self._reserve(request, run):
                    return over
                run.ends_at += clock() - began
                go_on()
                run.refuse_gone(request)
                if run.results is None and not await self._stream_response(request, run, go_on):
                    return self._answer(request, run)
                if asking := await self._run_tools(request, run):
                    return asking
        raise UnexpectedModelBehavior(f"The model {run.by.model.model_name} called tools without end.")

    async def _reserve(self, request: AgentRequest, run: Run) -> Failure | None:
        """Reserves the most that the next request may use; waits for other calls. Returns why it is not made, if so."""
        lent = await size_of_all(self._lent.definitions(), parts_of(run.by.model)) if self._lent else 0
        told = self._own_size + lent + len(run.rules.encode())
        remembered = as_sent(request.history) if run.goes_on else ()
        run.sent = most_tokens((*remembered, *run.messages), told, run.by.names)
        if request.allowance is None:
            return None
        output = max(0, MAX_OUTPUT_CHARACTERS - run.output) // CHARACTERS_PER_TOKEN
        tokens = run.sent + output
        unseen = UNSEEN_TOKENS if run.by.thinks or run.by.name in self._hiding else 0
        match await request.allowance.reserve(tokens, unseen, output=output, models=run.by.names):
            case None:
                run.unseen = request.allowance.unseen
                return None
            case Cap.TURN:
                asked = flat(turn_content(replace(request, transcript=request.questions)))
                news = run.messages[-1:] if run.shows_pictures else [ModelRequest(parts=[UserPromptPart(asked)])]
                alone = most_tokens(news, told, run.by.names) + output  # a new conversation would not help
                left, cap = request.allowance.left or 0, request.allowance.cap or 0
                is_much = run.requests or alone > left or tokens <= cap  # the last: the turn has used too much before
                kind = FailureKind.TURN_CAP if is_much else FailureKind.TOO_LONG
                detail = (
                    f"The next request can take {tokens} tokens, {run.tokens} are used: more than TURN_TOKENS allows."
                )
            case Cap.OWN:
                kind = FailureKind.WAITED
                detail = "Other answers to whoever asks have reserved what is left of the budget for them."
            case Cap.UNKNOWN:
                kind = FailureKind.INTERNAL
                detail = "What other processes have used of the budgets cannot be found out."
            case _:
                kind = FailureKind.OVER_BUDGET
                detail = f"The budget was spent after {run.tokens} tokens of this answer's."
        return Failure(kind, detail, run.text, run.tokens)

    async def _run_tools(self, request: AgentRequest, run: Run) -> Answer | Declined | None:
        """Runs the called tools. Returns the question if one of them has to wait for somebody.

        If the model declines, none of them runs.
        """
        if run.may_decline and not run.text.strip() and (why := reason_in(run.messages[-1])) is not None:
            return Declined(why, run.tokens)
        if not run.text.strip() and sum(map(only_declines, run.made)) > MAX_REFUSED:
            raise UnexpectedModelBehavior(f"The model {run.by.model.model_name} stays silent, though it may not.")
        # People are shown the first tool that is called, but not those that ask, which take no time.
        known = {tool.name for tool in self._tools(request.place)} - QUIET
        names = [call.tool_name for call in run.about_to_run() if call.tool_name in known]
        if names:
            request.tell_stage(STAGES.get(names[0], f"using {names[0]}"))
        request.used(names)
        deferred = await self._execute_calls(run)
        # Tool calls may quote all messages that are sent.
        words_of = [*run.words_of, *(source for message in run.told for source in sources_of(message))]
        if deferred is None:
            request.looked_up([*words_of, *words_in(run.made)])
            return None
        made = [without_thoughts(message, keeps_signed=True) for message in run.made]
        suspended = Suspended.of(made, deferred, words_of, run.asked, run.by.name)
        request.looked_up(suspended.words_of)  # also those in what people are asked
        if suspended.open:
            return self._asking(request, suspended, run)
        run.results = suspended.deferred_results()
        return None

    async def _stream_response(self, request: AgentRequest, run: Run, go_on: Callable[[], None]) -> bool:
        """Streams one response of the model; a pydantic-ai agent takes 2 ms more. Returns whether it calls tools."""
        run.leave_out_gone(request)
        parameters = ModelRequestParameters(
            function_tools=self._tools(request.place) if run.may_use_tools else [],
            instruction_parts=[InstructionPart(run.rules)],
        )
        run.begin_paragraph(may_think_first=run.by.name in self._unopened)
        run.requests, run.is_asking, run.lost, run.models = run.requests + 1, True, 0, run.by.names
        opening = model_request_stream(
            run.by.model, run.messages, model_settings=run.settings, model_request_parameters=parameters
        )
        async with opening as stream:
            run.models = run.by.names[len(stream.failed_attempts or ()) :][:1]
            run.was_seen = True
            calls: set[int] = set()
            async for event in stream:
                go_on()
                run.hear(event)
                await asyncio.sleep(0)  # thousands of events may have come at once, and reading them does not yield
                if run.was_cut or run.is_silent:
                    request.count(run.used, run.spent())
                    run.tokens, run.is_asking = run.used, False
                    return False
                if run.is_endless:
                    raise UnexpectedModelBehavior(f"The model {run.by.model.model_name} went on without end.")
                if isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart):
                    calls.add(event.index)
                if run.called + len(calls) > MAX_CALLS:
                    raise UnexpectedModelBehavior(f"The model {run.by.model.model_name} called tools without end.")
            response = sanitized(stream.get())
            told = spent_by(run.by.names, stream.usage, response)
            spent = run.spent(told, is_whole=response.finish_reason is not None)
            run.tokens, run.is_asking = run.tokens + spent.tokens, False
            request.count(run.tokens, spent)
            thoughts = counted(stream.usage.details.get("reasoning_tokens", 0))
            if thoughts > (run.output - run.began_at) // CHARACTERS_PER_TOKEN:
                self._hiding.add(run.by.name)
            if any(isinstance(part, TextPart) for part in response.parts):
                run.said += counted(stream.usage.output_tokens) - thoughts
        return self._add_response(request, run, response)

    def _add_response(self, request: AgentRequest, run: Run, response: ModelResponse) -> bool:
        """Adds a whole response to the run. Returns whether its calls of tools are to be run."""
        run.say(None)
        if run.thoughts.were_unopened:
            self._learn(run.by, self._unopened, "model_opens_no_thoughts")
        elif run.thoughts.had_none:  # so an earlier closing tag was only text
            self._unopened.discard(run.by.name)
        run.finish = response.finish_reason
        if run.finish in BROKEN_OFF or request.place.held.settings.tools is False:  # arguments may be incomplete
            kept_calls = {STAY_SILENT.name} if run.finish not in BROKEN_OFF else set()
            parts = [p for p in response.parts if not isinstance(p, ToolCallPart) or p.tool_name in kept_calls]
            response = replace(response, parts=parts)
        run.messages = [*map(without_pictures, run.messages), response]
        run.called += len(response.tool_calls)
        return bool(response.tool_calls) and not run.is_silent

    async def _execute_calls(self, run: Run) -> DeferredToolRequests | None:
        """Lets pydantic-ai execute the calls of the last response. Returns those that wait for somebody."""
        async with self._toolbox.iter(
            run.prompt, message_history=run.messages, deferred_tool_results=run.results, deps=run.asked
        ) as steps:
            async for step in steps:
                if Agent.is_model_request_node(step):
                    run.messages = with_request(steps.all_messages(), with_few_faults(step.request))
                    run.prompt = run.results = None
                    return None
            # By now the results of the other calls follow the response.
            run.messages = [*map(with_few_faults, steps.all_messages())]
            output = steps.result and steps.result.output
            return output if isinstance(output, DeferredToolRequests) else None

    def _answer(self, request: AgentRequest, run: Run) -> Outcome:
        if run.is_silent:
            return Declined("", run.tokens)
        if run.finish in BROKEN_OFF and not (run.was_cut and not is_blank(run.text)):
            detail = f"The model {run.by.model.model_name} ended its answer by {run.finish}."
            return Failure(BROKEN_OFF[run.finish], detail, run.text, run.tokens)
        if is_blank(run.text):
            detail = f"The model {run.by.model.model_name} gave an empty answer."
            return Failure(FailureKind.EMPTY, detail, tokens=run.tokens)
        state = tool_use(run.made)
        metadata = state.model_dump() if state.gpa_messages.tool_calls else None
        usage = RequestUsage(output_tokens=max(0, run.said))
        response = ModelResponse(parts=[TextPart(run.text)], usage=usage, metadata=metadata)
        whole = next_history(request, response, run.content)
        history = pruned(whole, self._keep_turns)
        told_more = request.notes or request.shared
        # Only if the provider was sent in this run just what the history has of it.
        if run.memory and history == whole and not (told_more or run.was_cut or words_in(run.made)):
            history = run.memory.remembered(history, run.messages[-1], run.settings)
        ask = Ask.to_go_on(run.text.rstrip()[-MAX_ENDS_WITH:], SOURCE) if run.was_cut else None
        rules, files = run.kept_rules, tuple(run.asked.made)
        model = run.by.that_said(run.messages[-1])
        return Answer(
            run.text, history, run.tokens, run.was_cut, ask, state=state, instructions=rules, files=files, model=model
        )

    def _asking(self, request: AgentRequest, suspended: Suspended, run: Run) -> Answer:
        """An answer that ends with a question; the history keeps the state of the suspended run."""
        run.begin_paragraph()
        run.add(suspended.open[0].text)
        history = next_history(request, suspended.response(run.text), run.content)
        rules, files = run.kept_rules, tuple(run.asked.made)
        model = run.by.that_said(run.messages[-1]) if run.messages else run.by.name
        return Answer(run.text, history, run.tokens, ask=suspended.ask, instructions=rules, files=files, model=model)

    def _resume(self, request: AgentRequest, run: Run, position: int, suspended: Suspended) -> None:
        """Resumes a run after its own prompt; what was said since is sent with the tool results."""
        before = as_sent(request.history[:position])
        # The signed thoughts of another model are of no use to this one.
        said = suspended.said if run.by.name == suspended.model else [*map(without_thoughts, suspended.said)]
        run.messages, run.began, run.is_resumed = [*before, *said], len(before), True
        run.history, run.since = request.history[:position], request.history[position + 1 :]
        run.prompt = told_since(run.since, request.place.bot_name, run.content)
        run.results, run.words_of = suspended.deferred_results(), suspended.words_of
        run.asked = suspended.asked(request.asked)

    def _learn(self, by: NamedModel, those: set[str], event: str) -> None:
        """Adds a model to a set, and logs it once; not for fallbacks, of which it is unknown which one it was."""
        if len(parts_of(by.model)) == 1 and by.name not in those:
            those.add(by.name)
            log.warning(event, model=by.name)

    def _tools(self, place: Place) -> list[ToolDefinition]:
        """The tools available now; where tools are switched off, only the one to decline."""
        if place.held.settings.tools is False:
            return [tool for tool in self._own if tool.name == STAY_SILENT.name]
        return [*self._own, *(self._lent.definitions() if self._lent else ())]
