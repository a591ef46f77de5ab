"""The storage page: what is stored, how much, for how long, and with which key."""

from __future__ import annotations

from aiohttp import web

from web.console.page import number, render, shown

# Kinds of snapshots -> what they are, in words.
KINDS = {
    "conversation": "conversations, open or ended lately",
    "prompts": "open questions by the bot",
    "miniapps": "mini-apps in use",
    "unfinished": "answers to be made or finished",
    "initiative": "offers, and when the next may be made",
    "places": "settings of servers",
    "spending": "what was used",
}


async def storage(request: web.Request) -> web.StreamResponse:
    sizes = shown(request).sizes
    measured = await sizes.measured()
    counted = [(KINDS.get(kind, kind), number(count)) for kind, count in sorted(measured.channels.items())]
    return render(
        request,
        "storage.html",
        sizes=sizes,
        measured=measured,
        total=sum(size for _, size in measured.files.values()),
        counted=[("transcripts", number(measured.transcripts)), *counted],
    )
