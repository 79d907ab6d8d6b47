"""The report to hand round: complete, self-contained, and no number in it that the Report does not say."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from roofline import document
from roofline.cli import main
from roofline.errors import InputError
from roofline.report import evaluate
from roofline.scenario import Scenario

ASKED = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8192, output=512)
HEADS = ("Under the roof", "As the batch grows", "Where the time goes: decode", "Where the time goes: prefill", "Memory", "What to change", "Method", "Sources", "The same question again")


class Balanced(HTMLParser):
    """Checks that every tag that opens also closes, in order."""

    VOID = {"meta", "br", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag


@pytest.fixture(scope="module")
def html():
    return document.document(ASKED)


def test_html_is_one_file_that_asks_for_nothing(html):
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert not [a for tag, a in parser.seen if "src" in a or "href" in a] and not [t for t, _ in parser.seen if t in ("script", "link", "img", "iframe")]
    assert not re.search(r"@import|url\((?!#)", html)
    assert sum(tag == "svg" for tag, _ in parser.seen) == 2 and len(html) < 200_000
    names = [a["id"] for _, a in parser.seen if "id" in a]
    assert len(names) == len(set(names))
    for text in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ET.fromstring(text)


def test_it_follows_light_and_dark_and_prints(html):
    assert "prefers-color-scheme: dark" in html and "@media print" in html
    figure = re.search(r"<figure>.*?</figure>", html, flags=re.DOTALL)[0]
    assert "var(--memory)" in figure and not re.search(r"#[0-9a-f]{6}", figure)  # every colour of a chart is the theme's


def test_every_part_is_there_in_both_kinds(html):
    text = document.document(ASKED, kind="md")
    for head in HEADS:
        assert f"<h2>{head}</h2>" in html and f"\n## {head}\n" in text
    assert html.index("<h1>") < html.index('class="lead"') < html.index("<h2>")


def test_the_answer_is_the_reports(html):
    report = evaluate(ASKED)
    said = document.headline(report.to_dict())
    assert said in html.replace("&#x27;", "'") and said.startswith("Decoding is memory-bound: at most 60.3 tokens/s for each user")
    # 155 GB or so over 2 x 4.8 TB/s, as the sentence says.
    step = float(re.search(r"takes at least ([\d.]+)\u2009ms", said)[1]) / 1e3
    assert step == pytest.approx(report.decode.limit_s, rel=0.01)
    for figure in (report.hardware["source"], report.model["source"], "4.80\u2009TB/s"):
        assert figure in html
    assert ASKED.to_cli() in html


def test_the_command_in_the_report_gives_the_same_report(capsys):
    import shlex
    words = shlex.split(ASKED.to_cli())
    assert words[:2] == ["roofline", "estimate"] and main([*words[1:], "--json"]) == 0
    import json
    again = json.loads(capsys.readouterr().out)
    assert again["decode"]["limit_s"] == evaluate(ASKED).decode.limit_s


def test_what_does_not_fit_is_said_and_still_reported():
    text = document.document(Scenario(model="llama-3.1-405b", hardware="h100-sxm"), kind="md")
    assert "**It does not fit: " in text and "such chips hold it" in text and "## Sources" in text and "As the batch grows" not in text
    lacking = document.document(Scenario(model="llama-3.1-8b", hardware="a100-80gb-sxm", weights="fp8", activations="fp8"), kind="md")
    assert "lacks the arithmetic" in lacking


def test_text_from_outside_cannot_become_markup():
    config = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100, "_name_or_path": "<script>x</script>"}'
    scenario = Scenario(model="<img src=x onerror=alert(1)>", config=config, prompt=16, output=4)
    html = document.document(scenario)
    assert "<img" not in html and "<script" not in html


def test_files_are_written_side_by_side(tmp_path):
    assert document.save(ASKED, tmp_path / "r.html") == [str(tmp_path / "r.html")]
    paths = document.save(ASKED, tmp_path / "r.md")
    assert [p.rsplit("/", 1)[-1] for p in paths] == ["r.md", "r-1.svg", "r-2.svg"]
    assert "](r-1.svg)" in (tmp_path / "r.md").read_text("utf-8") and (tmp_path / "r-2.svg").read_text("utf-8").startswith("<svg")
    for name, message in (("r.pdf", "must end in .html or .md"), ("no/r.html", "cannot be written")):
        with pytest.raises(InputError, match=message):
            document.save(ASKED, tmp_path / name)


def test_roofline_report(capsys, tmp_path):
    base = ["report", "--model", "llama-3.1-8b", "--hardware", "h100-sxm"]
    assert main([*base, "-o", str(tmp_path / "r.html")]) == 0 and "wrote " in capsys.readouterr().out
    assert main(base) == 0 and capsys.readouterr().out.startswith("# Meta-Llama-3.1-8B on H100")
    assert main([*base, "-o", "r.docx"]) == 2 and "must end in .html or .md" in capsys.readouterr().err
