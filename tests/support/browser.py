"""A real browser, for what the pages show and take."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

Test = TypeVar("Test", bound=Callable[..., object])

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic --disable-dev-shm-usage --force-prefers-reduced-motion "
    "--window-size=1280,900"
)
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.05
# Tells once the condition holds: asked now and each time the page has changed.
WHEN = """
const done = arguments[arguments.length - 1];
const holds = () => %s;
if (holds()) { done(true); return; }
const watch = new MutationObserver(() => { if (holds()) { watch.disconnect(); done(true); } });
watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
# Whether another page than the marked one is there, whole, and the condition holds on it.
ARRIVED = "return !window.isLeft && document.readyState === 'complete' && Boolean(%s)"
# The newest message on the page.
LAST = "[...document.querySelectorAll('#messages .message')].at(-1)"


def needs_browser(test: Test) -> Test:
    """Marks a test that `make check` runs where there is a browser."""
    skips = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
    marked: Test = pytest.mark.slow(skips(test))
    return marked


@contextmanager
def open_browser(profile: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.set_script_timeout(PATIENCE_SECONDS)
    try:
        yield browser
    finally:
        browser.quit()


def when(browser: webdriver.Chrome, condition: str) -> None:
    """Waits until a JavaScript expression holds."""
    assert browser.execute_async_script(WHEN % condition)


def arrive(browser: webdriver.Chrome, leave: Callable[[], object], condition: str = "true") -> None:
    """Does what leads to another page, and waits until that one is there and a JavaScript expression holds.

    What is asked while one page takes the place of the other has no answer (a script is lost with its page, and an
    element may belong to neither), so it is asked again.
    """
    browser.execute_script("window.isLeft = true")
    leave()
    wait = WebDriverWait(browser, PATIENCE_SECONDS, POLL_SECONDS, ignored_exceptions=[WebDriverException])
    wait.until(lambda _: browser.execute_script(ARRIVED % condition))


def write(browser: webdriver.Chrome, text: str) -> None:
    """Writes into the message box as a person does, and sends it."""
    browser.find_element(By.ID, "composer").send_keys(text, Keys.ENTER)


def look_as(browser: webdriver.Chrome, theme: str, width: int) -> None:
    """The system's theme, and the window's width; below 500 it is a phone."""
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def console_errors(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry for entry in entries if entry["level"] == "SEVERE"]
