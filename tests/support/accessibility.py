"""What keeps people from using a page: axe-core's findings, faint texts, scrolling sideways."""

from __future__ import annotations

from importlib import resources

from selenium import webdriver

from tests.support.browser import PATIENCE_SECONDS

AXE_SECONDS = 60.0  # it looks at every element
# What axe-core finds serious or critical, as one line for each element: the rule, and the element. What it cannot tell
# of the contrast of texts (grounds that lie over each other, colours in new notations) is FAINT's.
AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]})
  .then(({violations}) => violations
    .filter(({impact}) => ["serious", "critical"].includes(impact))
    .flatMap(({id, nodes}) => nodes.map(({html, failureSummary}) => `${id}: ${html.slice(0, 160)} ${failureSummary}`)))
  .then(done, (error) => done([String(error)]));
"""
# Texts that stand out from the ground by less than WCAG's 4.5 to 1 (axe's rule color-contrast): what, and by how much.
# Colours are read from a canvas, which knows every notation; what is decoration, covered or switched off is left out.
FAINT = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgba = (color) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = ([r, g, b, a], below) => [r, g, b].map((value, at) => value * a + below[at] * (1 - a));
const ground = (node) => {
  const color = rgba(getComputedStyle(node).backgroundColor);
  if (color[3] === 1) return color.slice(0, 3);
  return over(color, node.parentElement ? ground(node.parentElement) : [255, 255, 255]);
};
const luminance = (color) => {
  const [r, g, b] = color.map((v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const isRead = (node) =>
  node.checkVisibility({visibilityProperty: true, opacityProperty: true}) &&
  !node.closest("[aria-hidden='true'], :disabled, .spoiler");
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = new Set();
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement;
  const words = texts.currentNode.data.trim();
  if (!words || !isRead(node)) continue;
  const below = ground(node);
  const ratio = contrast(over(rgba(getComputedStyle(node).color), below), below);
  if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${words.slice(0, 40)}`);
}
return [...found];
"""
WIDE = "const {scrollWidth, clientWidth} = document.documentElement; return scrollWidth > clientWidth"


def accessibility_faults(browser: webdriver.Chrome) -> list[str]:
    """What keeps people from using the page as it now stands: axe-core's findings, faint texts, scrolling sideways."""
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script((resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    browser.set_script_timeout(AXE_SECONDS)
    found = browser.execute_async_script(AXE)
    browser.set_script_timeout(PATIENCE_SECONDS)
    wide = browser.execute_script(WIDE)
    return [*found, *browser.execute_script(FAINT), *(["wider than the window"] if wide else [])]
