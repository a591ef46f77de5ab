"""web/privacy_page.py: what anybody can read of what the bot keeps."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from web.privacy_page import POLICY, privacy_page

PRACTICES = {"How long": "for 7 days", "Whom to ask": "<script>alert(1)</script>"}


def test_it_has_what_the_settings_come_to_and_all_of_the_policy() -> None:
    text = privacy_page(PRACTICES).text or ""
    assert "for 7 days" in text
    words = re.sub(r"<[^>]+>", "", text)
    for heading in re.findall(r"^#+ (.+)$", POLICY.read_text(encoding="utf-8"), re.MULTILINE):
        assert heading in words
    assert "| " not in words
    assert text.count("<h1>") == 1
    assert "<script" not in text
    assert "<a " not in text  # the other pages are not served


def test_nothing_runs_in_it_and_only_its_own_style_is_taken() -> None:
    page = privacy_page(PRACTICES)
    (style,) = re.findall("<style>(.*?)</style>", page.text or "", re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert page.headers["Content-Security-Policy"].startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
