"""A real browser for whatever makes pages."""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_S = 60
"""A busy machine may be slow; nothing is asserted about the time."""
LEAST_CONTRAST = 4.5
"""WCAG 2.2, success criterion 1.4.3."""
_CONTRASTS = """
const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const weights = [0.2126, 0.7152, 0.0722];
const luminance = (color) => weights.reduce((sum, weight, i) => sum + weight * channel(color[i] / 255), 0);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const color = numbers(getComputedStyle(node).backgroundColor);
    if (color[3] === undefined || color[3] > 0.99) return color;
  }
  return numbers(getComputedStyle(document.body).backgroundColor);
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const ownText = [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
  if (!ownText || !node.checkVisibility() || node.disabled || node.closest("script, style")) continue;
  const style = getComputedStyle(node);
  const color = node instanceof SVGElement ? style.fill : style.color;
  if (color === "none") continue;
  const [light, dark] = [luminance(numbers(color)), luminance(behind(node))].sort((a, b) => b - a);
  found.push([(light + 0.05) / (dark + 0.05), `${node.tagName} ${node.textContent.trim()}: ${color}`]);
}
return found;
"""


@dataclass(frozen=True)
class Page:
    """The page that is open in a headless Chromium."""

    driver: Any

    def open(self, path: Path, *, width: int = 1200, theme: str = "light") -> None:
        """Open a file as a reader with this window and system theme would, and wait until it is drawn."""
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(path.resolve().as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")
        self.wait("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('svg'))")

    def run(self, script: str, *arguments: object) -> Any:
        """Run JavaScript and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression holds."""
        end = time.monotonic() + _PATIENCE_S
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}; console: {self.console()}"
            time.sleep(0.02)

    def texts(self, selector: str) -> list[str]:
        """Return the text of every element that matches and is shown."""
        return self.run(
            f"return [...document.querySelectorAll({json.dumps(selector)})]"
            ".filter((each) => each.checkVisibility()).map((each) => each.textContent.trim())"
        )

    def click(self, selector: str) -> None:
        """Click with the mouse on the first element that matches."""
        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.driver.find_element("css selector", selector).send_keys(text)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        from selenium.webdriver.common.keys import Keys

        self.driver.switch_to.active_element.send_keys(getattr(Keys, key))

    def faint_texts(self) -> list[str]:
        """Return the texts whose contrast with what is behind them is too low; disabled controls may be."""
        contrasts = self.run(_CONTRASTS)
        assert len(contrasts) > 50, "found hardly any text"
        return [text for contrast, text in contrasts if contrast < LEAST_CONTRAST]

    def console(self) -> list[str]:
        """Return what the browser complained about since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Debian's headless Chromium; skips where it is missing."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e '.[dev]'")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("chromium")
    for option in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        f"user-data-dir={profile}",
    ):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture
def page(chromium) -> Page:
    """A browser to open pages in."""
    return Page(chromium)
