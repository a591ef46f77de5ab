"""What the packages for MCP would take of a server, bounded. Imported by who has MCP servers only, as they are."""

from __future__ import annotations

from anyio import BrokenResourceError
from anyio.streams.text import TextReceiveStream
from fastmcp.client.transports.base import TransportOptions, VersionAwareClientSession
from mcp.types import ListToolsResult

MAX_LINE = 8_000_000  # characters that a process writes as one message


class Session(VersionAwareClientSession):
    """Never compares a result with the schema that the server gives for it: its patterns may take for ever, and what
    does not fit is for the model to read, too."""

    def _absorb_tool_listing(self, result: ListToolsResult, *, complete: bool) -> ListToolsResult:
        for tool in result.tools:
            tool.output_schema = None
        return super()._absorb_tool_listing(result, complete=complete)


class Lines(TextReceiveStream):
    """What a process writes, until it writes a line without end, which is kept and searched anew with each piece."""

    _begun = 0

    async def receive(self) -> str:
        text = await super().receive()
        self._begun = len(text) - text.rfind("\n") - 1 if "\n" in text else self._begun + len(text)
        if self._begun > MAX_LINE:
            raise BrokenResourceError
        return text


OPTIONS = TransportOptions(session_class=Session)
