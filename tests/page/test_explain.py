"""Every number that answers opens its working, in both languages: formula, this question's values, constants with their sources."""

from __future__ import annotations

import pytest
from steps import settled, until

OPEN = """async () => {
  const seen = {};
  for (const element of document.querySelectorAll("[data-explain], [data-figure]")) {
    const key = element.dataset.explain ?? element.dataset.figure;
    if (seen[key] || !element.checkVisibility()) continue;
    element.click();
    while (!document.querySelector("#sheet .steps li")) await new Promise((done) => setTimeout(done, 10));
    seen[key] = document.getElementById("sheet").innerText;
    document.getElementById("sheet").close();
    document.getElementById("sheet-body").replaceChildren();
  }
  return seen;
}"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_opens_its_working(page, language):
    page.select_option("#language", language)
    until(page, "(l) => document.documentElement.lang.startsWith(l)", arg=language)
    settled(page)
    found = page.evaluate(OPEN)
    page.click("#tab-memory")
    found |= page.evaluate(OPEN)
    page.select_option("#language", "en")
    until(page, "document.documentElement.lang === 'en'")
    assert {"ttft", "tpot", "user", "total", "memory", "cost", "utilisation", "bytes", "ridge", "weights", "kv_token", "max_batch", "max_context",
            "intensity.prefill", "intensity.decode", "rate.prefill", "rate.decode"} <= set(found)
    for key, text in found.items():
        assert "{" not in text and "explain." not in text and "figure." not in text and "fact." not in text, (key, text)
    assert "4.80" in found["tpot"] and "NVIDIA" in found["tpot"] and "2026" in found["tpot"]  # the bandwidth, where it is from and when it was read


def test_numbers_are_in_the_sentence_and_open_with_the_keyboard(page):
    page.focus("#tell .explain")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sheet[open] .steps li")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.explain") == "user"
