"""`/privacy`: what the bot keeps and who receives it, from its settings and docs/privacy.md."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from aiohttp import web
from jinja2 import Environment
from markupsafe import Markup

HERE = Path(__file__).parent
POLICY = HERE.parent / "docs" / "privacy.md"
CACHE_SECONDS = 300


def privacy_page(practices: Mapping[str, str]) -> web.Response:
    """The page, without scripts, and with nothing to load. practices: topic -> what this bot does."""
    style, policy = _files()
    introduction, heading, rest = policy.partition(Markup("<h2>"))
    template = Environment(autoescape=True).from_string((HERE / "privacy.html").read_text(encoding="utf-8"))
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    return web.Response(
        text=template.render(style=style, introduction=introduction, practices=practices, policy=heading + rest),
        content_type="text/html",
        headers={
            "Cache-Control": f"public, max-age={CACHE_SECONDS}",
            "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'",
        },
    )


@cache
def _files() -> tuple[Markup, Markup]:
    """The page's style, and docs/privacy.md as HTML, without its links, whose pages are not served."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not needed at the start

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    for rule in ("link_open", "link_close"):
        markdown.add_render_rule(rule, lambda *_: "")
    style, policy = (path.read_text(encoding="utf-8") for path in (HERE / "privacy.css", POLICY))
    return Markup(style), Markup(markdown.render(policy))  # noqa: S704 - our own files
