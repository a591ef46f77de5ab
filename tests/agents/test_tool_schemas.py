"""agents/tool_schemas.py: what is sent is what pydantic-ai would send, and each schema is adapted once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pydantic_ai import ToolDefinition
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from agents.tool_schemas import adapt_once

REFERRING = {
    "type": "object",
    "properties": {"way": {"$ref": "#/$defs/Way"}, "seats": {"type": "integer", "default": 1}},
    "required": ["way"],
    "$defs": {"Way": {"type": "object", "title": "Way", "properties": {"by": {"enum": ["train", "car"]}}}},
}
PLAIN = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
HUGE = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}}


class Adapting:
    """A model, and how often its profile's transformer walks over a schema."""

    def __init__(self) -> None:
        self.model: Model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="sk-nobodys"))
        self.walks = 0
        kind: Any = self.model.profile["json_schema_transformer"]
        adapting = self

        class Counted(kind):  # type: ignore[misc]
            def walk(self) -> Any:
                adapting.walks += 1
                return super().walk()

        self.model.profile["json_schema_transformer"] = Counted

    def sent(self, schema: dict[str, Any], strict: bool | None) -> ToolDefinition:
        tool = ToolDefinition(name="go", parameters_json_schema=schema, strict=strict)
        return self.model.customize_request_parameters(ModelRequestParameters(function_tools=[tool])).function_tools[0]


@pytest.mark.parametrize("schema", [REFERRING, PLAIN, HUGE])
@pytest.mark.parametrize("strict", [None, True, False])
def test_a_schema_is_sent_as_without_it(schema: dict[str, Any], strict: bool | None) -> None:
    usual, once = Adapting(), Adapting()
    adapt_once(once.model)
    before = deepcopy(schema)
    for _ in range(2):
        assert once.sent(schema, strict) == usual.sent(schema, strict)
    assert schema == before


def test_each_schema_is_adapted_once_and_what_a_client_changes_in_it_does_not_stay() -> None:
    once = Adapting()
    adapt_once(once.model)
    first = once.sent(PLAIN, None)
    first.parameters_json_schema["properties"].clear()
    assert once.sent(deepcopy(PLAIN), None).parameters_json_schema["properties"] == PLAIN["properties"]
    assert once.walks == 1
    once.sent(REFERRING, None)
    once.sent(PLAIN, True)
    assert once.walks == 3


def test_a_schema_that_cannot_be_adapted_is_named_as_without_it() -> None:
    once = Adapting()
    adapt_once(once.model)
    for _ in range(2):
        with pytest.raises(UserError, match="'go'"):
            once.sent({"type": "object", "properties": []}, None)
