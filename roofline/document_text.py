"""A document as a list of blocks, written as HTML or as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from .plot import Chart
from .plot.draw import scene
from .plot.scene import svg
from .plot.themes import FONT, THEMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One piece of the document. kind: h1, h2, lead, p, note, list, table, chart or code. bars: column whose number is also drawn as a bar."""

    kind: str
    text: str = ""
    items: tuple = ()
    heads: tuple = ()
    rows: tuple = ()
    bars: tuple = ()  # share [0..1] of each row, drawn in the last column
    chart: Chart | None = None


_STYLE = """
:root { color-scheme: light dark; --sans: %s; %s }
@media (prefers-color-scheme: dark) { :root { %s } }
@media print { :root { %s } body { max-width: none; padding: 0 } h2 { break-after: avoid } figure, table { break-inside: avoid } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink); font: 15px/1.55 var(--sans) }
h1 { font-size: 1.6rem; line-height: 1.2; letter-spacing: -.01em; margin: 0 0 .75rem }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem }
.lead { font-size: 1.15rem; margin: 0 0 1rem }
.note { border-left: 3px solid var(--memory); padding: .1rem 0 .1rem .8rem; margin: .6rem 0; color: var(--muted) }
figure { margin: .75rem 0 } figure svg { width: 100%%; height: auto } figcaption { color: var(--muted); font-size: .875rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; margin: .75rem 0; min-width: 40%% }
th, td { text-align: left; vertical-align: top; padding: .3rem 1.1rem .3rem 0; border-bottom: 1px solid var(--rule) } th { color: var(--muted); font-weight: 600 }
td.s { white-space: nowrap } td.bar { min-width: 8rem; width: 14rem } td.bar i { display: block; height: .55rem; margin-top: .35rem; background: var(--compute); border-radius: 2px }
pre { background: color-mix(in srgb, var(--ink) 6%%, transparent); padding: .75rem 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace }
li { margin: .35rem 0 }
"""


def _variables(theme: str) -> str:
    return " ".join(f"--{role}: {color};" for role, color in THEMES[theme].items())


def to_html(parts: list, title: str) -> str:
    """The blocks as one HTML file."""
    names = {color: role for role, color in reversed(THEMES["light"].items())}
    paint = lambda color: f"var(--{names[color]})" if color in names else color
    out = []
    for i, b in enumerate(parts):
        if b.kind in ("h1", "h2"):
            out.append(f"<{b.kind}>{escape(b.text)}</{b.kind}>")
        elif b.kind in ("lead", "p", "note"):
            out.append(f'<p class="{b.kind}">{escape(b.text).replace("`--json`", "<code>--json</code>")}</p>')
        elif b.kind == "list":
            out.append("<ul>" + "".join(f"<li>{escape(t)}</li>" for t in b.items) + "</ul>")
        elif b.kind == "code":
            out.append(f"<pre>{escape(b.text)}</pre>")
        elif b.kind == "chart":
            out.append(f"<figure>{svg(scene(b.chart), paint, id=f'chart{i}')}<figcaption>{escape(b.text)}</figcaption></figure>")
        else:
            head = "".join(f'<th scope="col">{escape(h)}</th>' for h in b.heads) + ('<th aria-hidden="true"></th>' if b.bars else "")
            body = ""
            for j, row in enumerate(b.rows):
                bar = (
                    f'<td class="bar" aria-hidden="true"><i style="width:{100 * b.bars[j] / max(b.bars):.1f}%"></i></td>'
                    if b.bars and max(b.bars)
                    else ""
                )
                body += "<tr>" + "".join(f"<td{' class=s' if len(str(c)) < 26 else ''}>{escape(str(c))}</td>" for c in row) + bar + "</tr>"
            out.append(f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')
    style = _STYLE % (FONT, _variables("light"), _variables("dark"), _variables("light"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body>\n" + "\n".join(out) + "\n</body></html>\n"
    )


def to_markdown(parts: list, chart_name=None) -> str:
    """The blocks as Markdown. chart_name: gives the file name of the i-th chart, for an image link; None leaves the charts as their words."""
    out, charts = [], 0
    cell = lambda text: str(text).replace("|", "\\|").replace("\u2009", " ") or " "
    for b in parts:
        if b.kind in ("h1", "h2"):
            out.append(("# " if b.kind == "h1" else "## ") + b.text)
        elif b.kind in ("lead", "p"):
            out.append(f"**{b.text}**" if b.kind == "lead" else b.text)
        elif b.kind == "note":
            out.append(f"> {b.text}")
        elif b.kind == "list":
            out.append("\n".join(f"* {t}" for t in b.items))
        elif b.kind == "code":
            out.append(f"```\n{b.text}\n```")
        elif b.kind == "chart":
            out.append((f"![{b.text}]({chart_name(charts)})\n\n" if chart_name else "") + b.text)
            charts += 1
        else:
            lines = ["| " + " | ".join(map(cell, b.heads)) + " |", "|" + " --- |" * len(b.heads)]
            out.append("\n".join([*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in b.rows)]))
    return "\n\n".join(out).replace("\u2009", " ") + "\n"
