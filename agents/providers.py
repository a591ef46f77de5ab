"""The providers that a model's name such as `openai:gpt-5` can begin with, and what each of them needs.

`make settings` makes the tables of docs/models.md and README from this.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz, process

MIN_ALIKE = 70  # per cent of similarity for a prefix to be suggested


@dataclass(frozen=True, slots=True)
class Provider:
    """variables: those that must be set; instead: a variable that is enough alone. address: an example of the first
    variable, if that is a URL. extra: the package extra that it needs; empty: none. example: the name of one of its
    models.
    """

    name: str
    variables: tuple[str, ...]
    example: str
    instead: str = ""
    address: str = ""
    extra: str = ""

    @property
    def missing(self) -> list[str]:
        """The variables that are still to be set."""
        if self.instead and os.environ.get(self.instead):
            return []
        return [variable for variable in self.variables if not os.environ.get(variable)]


OPENAI = ("OPENAI_API_KEY",)
PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("OpenAI (Responses API)", OPENAI, "gpt-5-mini", "OPENAI_BASE_URL"),
    "openai-chat": Provider("OpenAI's chat completions, and whatever speaks them", OPENAI, "gpt-5", "OPENAI_BASE_URL"),
    "anthropic": Provider("Anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5-5"),
    "google": Provider("Google (Gemini)", ("GOOGLE_API_KEY",), "gemini-3.8-flash", "GEMINI_API_KEY", extra="google"),
    "groq": Provider("Groq", ("GROQ_API_KEY",), "openai/gpt-oss-120b", extra="groq"),
    "openrouter": Provider("OpenRouter", ("OPENROUTER_API_KEY",), "openai/gpt-5-mini"),
    "ollama": Provider("Ollama", ("OLLAMA_BASE_URL",), "llama3.1", address="http://localhost:11434/v1"),
    "vllm": Provider("vLLM", ("VLLM_BASE_URL",), "Qwen/Qwen3-8B", address="http://localhost:8000/v1"),
    "litellm": Provider("LiteLLM's proxy", ("OPENAI_BASE_URL",), "gpt-5", address="http://localhost:4000/v1"),
    "azure": Provider(
        "Azure OpenAI",
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION"),
        "gpt-5",
        address="https://yours.openai.azure.com",
    ),
    "mistral": Provider("Mistral", ("MISTRAL_API_KEY",), "mistral-large-latest", extra="all"),
    "deepseek": Provider("DeepSeek", ("DEEPSEEK_API_KEY",), "deepseek-flash"),
    "xai": Provider("xAI (Grok)", ("XAI_API_KEY",), "grok-4.7", extra="all"),
    "cohere": Provider("Cohere", ("CO_API_KEY",), "command-a-plus-05-2026", extra="all"),
    "bedrock": Provider(
        "Amazon Bedrock", ("AWS_DEFAULT_REGION",), "amazon.nova-pro-v1:0", "AWS_PROFILE", "eu-central-1", extra="all"
    ),
    "huggingface": Provider("Hugging Face", ("HF_TOKEN",), "Qwen/Qwen3-8B", extra="all"),
    "together": Provider("Together AI", ("TOGETHER_API_KEY",), "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    "fireworks": Provider("Fireworks AI", ("FIREWORKS_API_KEY",), "accounts/fireworks/models/deepseek-v3"),
    "cerebras": Provider("Cerebras", ("CEREBRAS_API_KEY",), "gpt-oss-120b"),
    "moonshotai": Provider("Moonshot AI (Kimi)", ("MOONSHOTAI_API_KEY",), "kimi-k2.6"),
    "vercel": Provider("Vercel AI Gateway", ("VERCEL_AI_GATEWAY_API_KEY",), "openai/gpt-5", "VERCEL_OIDC_TOKEN"),
    "nebius": Provider("Nebius AI Studio", ("NEBIUS_API_KEY",), "Qwen/Qwen3-32B"),
    "alibaba": Provider("Alibaba Cloud (Qwen)", ("ALIBABA_API_KEY",), "qwen-plus"),
    "sambanova": Provider("SambaNova", ("SAMBANOVA_API_KEY",), "Meta-Llama-3.3-70B-Instruct"),
    "zai": Provider("Z.AI (GLM)", ("ZAI_API_KEY",), "glm-5.3"),
    "heroku": Provider("Heroku", ("HEROKU_INFERENCE_KEY",), "claude-sonnet-5-5"),
    "ovhcloud": Provider("OVHcloud AI Endpoints", ("OVHCLOUD_API_KEY",), "gpt-oss-120b"),
}
# Further prefixes that pydantic-ai accepts.
ALIASES = {"openai-responses": "openai", "azure-responses": "azure"}
RENAMED = {"google-gla": "google", "google-vertex": "google-cloud", "gemini": "google", "grok": "xai"}
# How the names of well-known models begin, and their providers.
FAMILIES = {
    "gpt-": "openai",
    "chatgpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
    "grok-": "xai",
    "deepseek-": "deepseek",
    "mistral-": "mistral",
    "magistral-": "mistral",
    "codestral-": "mistral",
    "command-": "cohere",
    "kimi-": "moonshotai",
    "glm-": "zai",
    "qwen-": "alibaba",
}


def provider_of(name: str) -> Provider | None:
    """The provider of a model by its name, if it is in the table."""
    prefix, _, model = name.partition(":")
    return PROVIDERS.get(ALIASES.get(prefix, prefix)) if model else None


def meant(name: str) -> str | None:
    """Suggests the name that an unknown one was probably meant to be; None: nothing is similar."""
    prefix, colon, model = name.strip().partition(":")
    if colon:
        alike = process.extractOne(prefix.lower(), [*PROVIDERS, *ALIASES], scorer=fuzz.ratio, score_cutoff=MIN_ALIKE)
        there = alike[0] if alike else None
        return f"{RENAMED.get(prefix, there)}:{model}" if model and (prefix in RENAMED or there) else None
    vendor, slash, model = prefix.partition("/")
    if slash and model:
        return f"{vendor}:{model}" if vendor in PROVIDERS else f"openrouter:{prefix}"
    family = next((whose for begins, whose in FAMILIES.items() if prefix.lower().startswith(begins)), None)
    return f"{family}:{prefix}" if family else None
