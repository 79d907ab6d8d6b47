"""Find tables in text: pipes (Markdown, box drawings, HTML), tabs, and CSV with any separator."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_TABLE_ROWS = 10_000  # different rows; a longer table has its first rows read
_RULE = re.compile(r"[\s|+:=_-]+")
_LINK = re.compile(r"!?\[([^\]]{0,200})\]\([^)]{0,500}\)")
_MARKUP = re.compile(r"\*\*|__|~~|`|</?[a-z][^>]{0,80}>")


@dataclass
class Table:
    """One table: names of the columns, rows as (line number, cells, count of equal lines), lines that do not fit."""

    header: list[str]
    line: int
    rows: list[tuple[int, list[str], int]] = field(default_factory=list)
    misfits: list[tuple[int, int]] = field(default_factory=list)  # line number, cells found


def cells(line: str) -> list[str]:
    """Split one row at its pipes and take off Markdown dressing.

    >>> cells("| **6 (Default)** | [a1](http://x) | 2 |")
    ['6 (Default)', 'a1', '2']
    """
    text = line.strip().replace("\\|", "/")
    if text.startswith("|"):
        text = text[1:]
    if text.endswith("|"):
        text = text[:-1]
    if "[" in text and "](" in text:
        text = _LINK.sub(r"\1", text)
    return [_MARKUP.sub("", c).strip() if "*" in c or "_" in c or "`" in c or "~" in c or "<" in c else c.strip() for c in text.split("|")]


def pipe_tables(lines: list[str], is_header: Callable[[list[str]], bool], counts: dict[str, int] | None = None) -> list[Table]:
    """Return the tables whose header `is_header` accepts.

        Log lines may stand between the rows; a row that a mail program split over two lines is joined again; a row
    another number of cells is never shifted into place but listed in `misfits`. `counts` says how often a line
        stood in the file whose copies were cut.
    """
    counts = counts or {}
    tables: list[Table] = []
    table: Table | None = None
    seen: dict[str, int] = {}
    skip = 0
    bare = closed = False  # the table has no outer pipes; its header ends in one
    for at, line in enumerate(lines):
        if skip:
            skip -= 1
            continue
        if "\f" in line:
            table = None
        if "|" not in line:
            if bare and not line.strip():
                table = None
            continue
        if table is not None and line in seen:
            at_row = seen[line]
            number, row, count = table.rows[at_row]
            table.rows[at_row] = (number, row, counts.get(line) or count + 1)
            continue
        if _RULE.fullmatch(line):
            continue
        start = line.lstrip().startswith("|")
        row = cells(line)
        following = lines[at + 1] if at + 1 < len(lines) else ""
        splits = start and "|" in following and not following.lstrip().startswith("|") and following.rstrip().endswith("|")
        width = len(row)
        if (
            table is None or width != len(table.header) or row[-1] == table.header[-1] or not any(c.isdigit() for c in row[-1])
        ) and is_header(row):
            table, seen, bare = Table(row, at + 1), {}, not start
            closed = line.rstrip().endswith("|")
            tables.append(table)
            continue
        if splits and is_header(joined := cells(line.rstrip() + " " + following.strip())):
            table, seen, bare, skip = Table(joined, at + 1), {}, False, 1
            closed = True
            tables.append(table)
            continue
        if table is None or not (start or bare):
            continue
        width = len(table.header)
        if len(table.rows) >= MAX_TABLE_ROWS:
            continue
        if len(row) < width and splits and len(joined := cells(line.rstrip() + " " + following.strip())) == width:
            row, skip = joined, 1
        cut = start and at == len(lines) - 1 and closed and not line.rstrip().endswith("|")  # the file ends inside its last cell
        if len(row) != width or cut:
            if start:
                table.misfits.append((at + 1, len(row)))
            continue
        if not skip and any(row[1:]):  # a label that runs on stands alone in its row, and two may read the same
            seen[line] = len(table.rows)
        table.rows.append((at + 1, row, 1))
    return tables


def delimited(lines: list[str], is_header: Callable[[list[str]], bool], counts: dict[str, int] | None = None) -> list[Table]:
    """Return the CSV tables (comma, semicolon, tab or bar) whose header `is_header` accepts; other lines are passed over."""
    tables: list[Table] = []
    counts = counts or {}
    at = 0
    while at < len(lines):
        line = lines[at]
        found = None
        if line.count(",") + line.count(";") + line.count("\t") >= 1:
            for mark in ",;\t":
                if mark in line:
                    row = split_row(line, mark)
                    if is_header(row):
                        found = (mark, row)
                        break
        if not found:
            at += 1
            continue
        mark, header = found
        table = Table(header, at + 1)
        tables.append(table)
        at += 1
        seen: dict[str, int] = {}
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                break
            if line in seen:
                number, row, count = table.rows[seen[line]]
                table.rows[seen[line]] = (number, row, counts.get(line) or count + 1)
                at += 1
                continue
            at_row = at
            text = line
            while text.count('"') % 2 and at + 1 < len(lines) and at - at_row < 20:  # a quoted cell holds a line break
                at += 1
                text += "\n" + lines[at]
            if len(table.rows) >= MAX_TABLE_ROWS:
                at += 1
                continue
            row = split_row(text, mark)
            if (len(row) != len(header) or row[-1] and not row[-1][:1].isdigit()) and is_header(row) and row != header:
                break
            if row != header:
                if len(row) == len(header) and text.count('"') % 2:  # the file ends inside its last cell
                    table.misfits.append((at_row + 1, len(row)))
                elif len(row) == len(header):
                    seen[text] = len(table.rows)
                    table.rows.append((at_row + 1, row, 1))
                elif len(row) == len(header) + 1 and not row[-1]:  # a closing separator
                    table.rows.append((at_row + 1, row[:-1], 1))
                elif len(row) > 1:
                    table.misfits.append((at_row + 1, len(row)))
                    table.rows.append((at_row + 1, row, 0))  # kept with count 0: only a reader that can realign may use it
            at += 1
    return tables


def split_row(line: str, mark: str) -> list[str]:
    """Split one CSV record; a quote that never closes gives the raw pieces."""
    try:
        rows = list(csv.reader(io.StringIO(line), delimiter=mark, skipinitialspace=mark == ","))
    except csv.Error:
        return line.split(mark)
    return [c.strip() for c in rows[0]] if rows else []


def as_records(table: Table) -> list[tuple[int, dict[str, str], int]]:
    """Rows that fit, as dicts by column name (the first of two equal names counts)."""
    out = []
    for line, row, count in table.rows:
        if count and len(row) == len(table.header):
            record: dict[str, str] = {}
            for name, value in zip(table.header, row, strict=False):
                record.setdefault(name, value)
            out.append((line, record, count))
    return out


def misfit(found: int, table: Table) -> str:
    """Say why a row was left out: another number of cells, or the file ended inside it."""
    if found == len(table.header):
        return "the file ends inside the row, which is left out"
    return f"{found} cells under a header of {len(table.header)}; the row is left out"
