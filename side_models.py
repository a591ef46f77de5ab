"""The models beside those that answer, as the owner's settings name them: they judge, pick, rewrite and sum up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.coordinator import Candidate, Picker
from agents.judge import ModelAnswerable, ModelJudge
from agents.models import DEMO, Models, build_model
from agents.rewriter import ModelRewriter
from agents.summarizer import ModelSummarizer
from agents.transcriber import build_transcriber
from config import Settings
from state.budget import Budget
from state.spending import Purpose
from turns.judging import ChannelJudge, OfferJudge


class SideModels:
    """Each draws on a purse of its own. answering: those that answer, the default of which stands in where none is set.

    all: the models themselves, those that answer among them. Raises UnusableModelError.
    """

    def __init__(self, settings: Settings, answering: Models, budget: Budget, bot_name: Callable[[], str]) -> None:
        default = answering.default
        judging = build_model("JUDGE_MODEL", settings.judge_model) if settings.judge_model else default
        name = settings.coordinator_model
        self._picking = build_model("COORDINATOR_MODEL", name) if name else judging
        rewriting = build_model("REWRITE_MODEL", settings.rewrite_model) if settings.rewrite_model else None
        self._budget = budget
        judge = ModelJudge(judging, bot_name=bot_name, purse=budget.purse(Purpose.JUDGE))
        answerable = ModelAnswerable(judging, bot_name=bot_name, purse=budget.purse(Purpose.OFFER))
        self.judge, self.offer_judge = ChannelJudge(judge, budget), OfferJudge(answerable, budget)
        self.rewriter = ModelRewriter(rewriting, purse=budget.purse(Purpose.REWRITING)) if rewriting else None
        size = 0 if settings.model == DEMO else settings.session_summary_tokens
        purse = budget.purse(Purpose.SUMMARY)
        self.summarizer = ModelSummarizer(default, purse=purse, max_tokens=size) if size else None
        hearing = settings.transcribe_model
        self.hears = build_transcriber(hearing, budget.purse(Purpose.TRANSCRIPTION)) if hearing else None
        self.all = [*filter(None, (*answering.all, judging, self._picking, rewriting))]

    def picker(self, candidates: Sequence[Candidate]) -> Picker:
        """Who picks among these agents."""
        purse = self._budget.purse(Purpose.COORDINATION)
        return Picker(candidates, model=self._picking, has_budget=self._budget.may_judge, purse=purse)
