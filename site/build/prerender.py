"""Run with the build's Python: compute what the page shows before Python is up in the browser.

usage: prerender.py OUT.json. Same engine, same bridge as the page; Bokeh's figures as json_item.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SITE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SITE / "py"))

import bokeh  # noqa: E402
import bridge  # noqa: E402
from bokeh.embed import json_item  # noqa: E402
from still import still  # noqa: E402

from roofline import charts, plot  # noqa: E402


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
    parts = default["view"]["headline"]
    preview = plot.from_report(report, title=f"{parts['model']} in {parts['weights']} on {parts['devices']} x {parts['hardware']}: {words['bound.' + (parts['bound'] or 'misfit')]}", width=1200, height=630)
    Path(sys.argv[1]).with_name("preview.png").write_bytes(preview.png(scale=1))
    result = {
        "version": call("ping")["version"], "bokeh": {"version": bokeh.__version__, "js": str(Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js")},
        "default": default, "catalogue": call("catalogue"), "levers": call("levers", form=bridge.DEFAULT, goal="tpot")["rows"],
        "figures": {"roofline": figure(charts.roofline_figure(report, x_label=" ", y_label=" "), "roofline"), "sweep": figure(charts.sweep_figure(), "sweep"), "sweep_linear": figure(charts.sweep_figure("sweep_linear", linear=True), "sweep_linear")},
        "html": {"still": still(report, {"prefill": words["phase.prefill"], "decode": words["phase.decode"], "x": words["chart.x"], "y": words["chart.y"]}), "title": words["title"], "description": words["description"]},
    }
    Path(sys.argv[1]).write_text(json.dumps(result, ensure_ascii=False, allow_nan=False), "utf-8")


if __name__ == "__main__":
    main()
