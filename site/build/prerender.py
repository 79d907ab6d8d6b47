"""Run with the build's Python: compute what the page shows before Python is up in the browser.

usage: prerender.py OUT.json. Same engine, same bridge as the page; Bokeh's figures as json_item.
"""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SITE / "py"))

import bokeh  # noqa: E402
import bridge  # noqa: E402
from bokeh.embed import json_item  # noqa: E402

from roofline import charts, drawing  # noqa: E402


def call(method: str, **params):
    answer = json.loads(bridge.handle(json.dumps({"v": bridge.PROTOCOL, "id": 0, "method": method, "params": params})))
    if not answer["ok"]:
        raise SystemExit(f"{method}: {answer['error']['message']}\n{answer['error'].get('traceback', '')}")
    return answer["result"]


def figure(plot, name: str) -> dict:
    """json_item with an id that does not depend on what else was made in this process."""
    item = json_item(plot)
    item["target_id"] = None
    item["root_id"] = item.get("root_id")
    item["doc"]["title"] = name
    return item


def main() -> None:
    default = call("evaluate", form=bridge.DEFAULT, full=True)
    report = default.pop("report")
    words = json.loads((SITE / "i18n" / "en.json").read_text("utf-8"))
    text = sentence(words, default["view"]["headline"])
    variables = {role: f"var(--{role})" for role in drawing.LIGHT}
    parts = default["view"]["headline"]
    drawing.to_png(report, Path(sys.argv[1]).with_name("preview.png"), 1200, 630, scale=1, title=f"{parts['model']} in {parts['weights']} on {parts['devices']} x {parts['hardware']}\nHow fast can it run, and what holds it back?")
    result = {
        "version": call("ping")["version"], "bokeh": {"version": bokeh.__version__, "js": str(Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js")},
        "default": default, "catalogue": call("catalogue"),
        "figures": {"roofline": figure(charts.roofline_figure(report), "roofline"), "sweep": figure(charts.sweep_figure(), "sweep")},
        "html": {"sentence": text, "svg": drawing.to_svg(report, palette=variables, background=False).replace("<svg ", '<svg aria-hidden="true" preserveAspectRatio="xMidYMid meet" ', 1), "title": words["title"], "description": words["description"]},
    }
    Path(sys.argv[1]).write_text(json.dumps(result, ensure_ascii=False, allow_nan=False), "utf-8")


def sentence(words: dict, parts: dict) -> str:
    """The headline as text, for readers without JavaScript and for the first paint."""
    text = words["sentence.question"] + " " + words[f"sentence.{parts['state']}.{parts['bound']}" if parts["bound"] else f"sentence.{parts['state']}"]
    form = {"batch": bridge.DEFAULT["batch"], "prompt": bridge.DEFAULT["prompt"], "output": bridge.DEFAULT["output"]}
    verdict = {"verdict": words[f"bound.{parts['bound'] or 'misfit'}"]}
    for name, value in (parts | form | verdict).items():
        text = text.replace("{" + name + "}", html.escape(str(value)))
    return text.replace("**", "")


if __name__ == "__main__":
    main()
