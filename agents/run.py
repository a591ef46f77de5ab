"""One answer of the general agent's in the making: what the model was sent, what it said and what that took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    UserContent,
)
from pydantic_ai.settings import ModelSettings

from agents.gateway import NOBODY, Asked
from agents.history import flattened, has_images
from agents.models import SETTINGS
from agents.tool_use import is_tool_use
from conversation import CHARACTERS_PER_TOKEN

# Six messages of Discord's: what is longer is rambling.
MAX_ANSWER_CHARACTERS = 12_000
RULES_CHARACTERS = 900  # about what our instructions have


@dataclass(slots=True)
class Run:
    """One answer in the making.

    messages: what the model is sent, of which it made those from `began` on; prompt and results: what a run that waited
    goes on with, by words_of. asked: for whom tools run. settings: of each request; goes_on: with what the provider
    remembers. tokens: what the requests took that have ended; is_asking: whether one has not. called: how many tools
    were; output: characters of the model's.
    """

    show: Callable[[str], None]
    messages: list[ModelMessage] = field(default_factory=list)
    began: int = 0
    prompt: str | Sequence[UserContent] | None = None
    results: DeferredToolResults | None = None
    words_of: list[tuple[int, int]] = field(default_factory=list)
    asked: Asked = NOBODY
    settings: ModelSettings = field(default_factory=lambda: SETTINGS)
    goes_on: bool = False
    may_use_tools: bool = True
    text: str = ""
    tokens: int = 0
    is_asking: bool = False
    called: int = 0
    output: int = 0
    gap: str = ""

    @property
    def made(self) -> Sequence[ModelMessage]:
        return self.messages[self.began :]

    @property
    def was_cut(self) -> bool:
        return len(self.text) > MAX_ANSWER_CHARACTERS

    @property
    def used(self) -> int:
        """The tokens so far, estimated for a request of which the provider has not said what it took."""
        if not self.is_asking:
            return self.tokens
        characters = sum(len(str(part)) for message in self.messages for part in message.parts)
        return self.tokens + (characters + len(self.text) + RULES_CHARACTERS) // CHARACTERS_PER_TOKEN

    def begin_paragraph(self) -> None:
        """What comes next does not run into what was said before a tool was called."""
        self.gap = "\n\n" if self.text.strip() else ""

    def add(self, delta: str) -> None:
        if delta:
            self.text += self.gap + _clean(delta)
            self.gap = ""
            self.show(self.text)

    def simplify(self, complaint: str) -> bool:
        """Leaves out pictures, and tools if the provider complains of them. Returns whether there is less to send."""
        if self.goes_on:  # with what does not change
            return False
        refuses_tools = self.may_use_tools and "tool" in complaint.lower()
        if refuses_tools or any(map(has_images, self.messages)):
            self.may_use_tools = self.may_use_tools and not refuses_tools
            before = [m for m in self.messages[: self.began] if self.may_use_tools or not is_tool_use(m)]
            self.messages = [flattened(message, images=False) for message in (*before, *self.made)]
            self.began = len(before)
            return True
        return False


def text_in(event: ModelResponseStreamEvent) -> str:
    """The text that an event of the model's stream adds to the answer."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def size_of(event: ModelResponseStreamEvent) -> int:
    """The characters of text, thoughts and arguments that an event adds."""
    match event:
        case PartStartEvent(part=TextPart(content=text) | ThinkingPart(content=text)):
            return len(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text) | ThinkingPartDelta(content_delta=text)):
            return len(text or "")
        case PartStartEvent(part=ToolCallPart(args=args)) | PartDeltaEvent(delta=ToolCallPartDelta(args_delta=args)):
            return len(args if isinstance(args, str) else str(args or ""))
        case _:
            return 0


def _clean(delta: str) -> str:
    """Without half characters, which cannot be sent to anybody."""
    return delta.encode(errors="replace").decode()
