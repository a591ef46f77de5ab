"""Builds from the owner's settings the agents, and the side models, which judge, pick, rewrite, sum up, transcribe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from activity import Activity
from agents.coordinator import Candidate, Picker
from agents.general import OWN_TOOLS, GeneralAgent
from agents.judge import ModelAnswerable, ModelJudge
from agents.mcp_file import load_mcp
from agents.mcp_servers import McpTools
from agents.metering import warn_unpriced
from agents.models import DEMO, Models, build_model
from agents.rewriter import ModelRewriter
from agents.roster import load_roster
from agents.searching import search_tool
from agents.server_state import server_state
from agents.summarizer import ModelSummarizer
from agents.team import Team
from agents.tools import own_tools
from agents.transcriber import build_transcriber
from agents.ums import UMSAgent
from config import Settings
from discord_io.actions import DiscordActions
from discord_io.attachments import Attachments
from discord_io.discord_wire import Wires
from files.reading import FileReader
from owner import loaded
from persistence.search import Search
from state.budget import Budget
from state.prices import Prices
from state.spending import Purpose


class SideModels:
    """The models beside the answering one, each with its own purse. Raises UnusableModelError.

    answering: the models that answer; their default is used where a side model is not set. all: every model, the
    answering ones included.
    """

    def __init__(self, settings: Settings, answering: Models, budget: Budget, wires: Wires) -> None:
        default = answering.default
        judging = build_model("JUDGE_MODEL", settings.judge_model) if settings.judge_model else default
        name = settings.coordinator_model
        self._picking = build_model("COORDINATOR_MODEL", name) if name else judging
        rewriting = build_model("REWRITE_MODEL", settings.rewrite_model) if settings.rewrite_model else None
        self._budget = budget
        self.judge = ModelJudge(judging, bot=wires, purse=budget.purse(Purpose.JUDGE))
        self.offer_judge = ModelAnswerable(judging, bot=wires, purse=budget.purse(Purpose.OFFER))
        self.rewriter = ModelRewriter(rewriting, purse=budget.purse(Purpose.REWRITING)) if rewriting else None
        size = 0 if settings.model == DEMO else settings.session_summary_tokens
        purse = budget.purse(Purpose.SUMMARY)
        self.summarizer = ModelSummarizer(default, purse=purse, max_tokens=size) if size else None
        hearing = settings.transcribe_model
        self.hears = build_transcriber(hearing, budget.purse(Purpose.TRANSCRIPTION)) if hearing else None
        self.all = [*filter(None, (*answering.all, judging, self._picking, rewriting))]

    def picker(self, candidates: Sequence[Candidate]) -> Picker:
        """The picker among these agents."""
        return Picker(candidates, model=self._picking, purse=self._budget.purse(Purpose.COORDINATION))


class OwnersAgents:
    """The team of agents, its tools and its file reader. Raises SettingError and UnusableModelError.

    activity: told of MCP servers that fail. side: the side models. connections: context managers to enter before any
    agent is asked.
    """

    def __init__(
        self,
        settings: Settings,
        budget: Budget,
        wires: Wires,
        actions: DiscordActions,
        search: Search,
        activity: Activity,
    ) -> None:
        self.models = Models.build(settings.model, settings.models)
        self.side = side = SideModels(settings, self.models, budget, wires)
        roster = loaded(load_roster, settings.agents)
        remotes = [UMSAgent(entry.name, entry.url, entry.headers) for entry in roster]
        searching = search_tool(search.find, actions.can_search, settings.site)
        own = [*own_tools(actions, activity.now, settings.site), searching]
        taken = {tool.name for tool in (*OWN_TOOLS, *own)}
        servers = loaded(load_mcp, settings.mcp_config)
        self.mcp = McpTools(servers, taken=taken, activity=activity)
        general = GeneralAgent(
            self.models,
            instructions=settings.instructions,
            tools=own,
            lent=self.mcp if servers else None,
            keep_turns=settings.gpa_keep_turns,
            server_state=server_state(settings.openai_state, self.models.default),
        )
        others = {agent.name: agent for agent in remotes}
        picker = side.picker([Candidate(entry.name, entry.about) for entry in roster])
        self.team = Team(general, others, picker, bot=wires, shares=settings.shared_context)
        attachments = Attachments(settings.discord_api_base)
        self.files = FileReader(attachments, settings.attachment_characters, side.hears)
        self.connections: list[AbstractAsyncContextManager[object]] = [*side.all, *remotes, self.mcp, attachments]
        self.connections += [side.hears] if side.hears else []

    def warn_unpriced(self, prices: Prices) -> None:
        """Logs once which models have no known price."""
        warn_unpriced(prices, [*self.side.all, *([self.side.hears.name] if self.side.hears else ())])
