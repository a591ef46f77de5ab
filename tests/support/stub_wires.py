"""Servers on loopback that speak chat completions as Ollama and OpenRouter do, and refuse what these refuse."""

from __future__ import annotations

from aiohttp import web

from tests.support.stub_model import Body, StubModel, error_response

TOOLLESS = "gemma:2b"


class StubOllama(StubModel):
    """Has one model without tools, and tells thoughts apart."""

    def refused(self, body: Body) -> web.Response | None:
        if body["model"] == TOOLLESS and body.get("tools"):
            return error_response(400, f"registry.ollama.ai/library/{TOOLLESS} does not support tools", "null")
        if body["model"] == TOOLLESS and any(m["role"] == "tool" or m.get("tool_calls") for m in body["messages"]):
            return error_response(400, "template: tools are not defined", "null")
        return None

    def thought(self, text: str) -> Body:
        return {"content": "", "reasoning": text}


class StubOpenRouter(StubModel):
    """Tells thoughts apart, in two fields, and what an answer cost. Of one vendor no endpoint takes tools."""

    def refused(self, body: Body) -> web.Response | None:
        if "/" not in body["model"]:
            return error_response(400, f"{body['model']} is not a valid model ID", "400")
        if body["model"].startswith("toolless/") and body.get("tools"):
            return error_response(404, "No endpoints found that support tool use.", "404")
        return None

    def thought(self, text: str) -> Body:
        detail = {"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}
        return {"content": "", "reasoning": text, "reasoning_details": [detail]}

    def used(self, tokens: int) -> Body:
        return {
            **super().used(tokens),
            "cost": 0.0123,
            "is_byok": False,
            "cost_details": {"upstream_inference_cost": None},
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
