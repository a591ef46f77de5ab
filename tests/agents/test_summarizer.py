"""agents/summarizer.py, over real HTTP: what of a model's words is a summary."""

from __future__ import annotations

from agents.models import build_model
from agents.summarizer import ModelSummarizer
from tests.support.purse import NotingPurse
from tests.support.stub_model import Reply, StubModel


async def test_what_the_model_thinks_aloud_is_no_part_of_it(stub: StubModel) -> None:
    stub.rewriter_says = lambda _body: Reply("<think>long, long</think>\nThey spoke of tea.")
    async with build_model("MODEL", "openai-chat:main") as model:
        assert await ModelSummarizer(model, purse=NotingPurse([]), max_tokens=100)([], "Parley") == "They spoke of tea."
