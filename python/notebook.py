"""notebook.py - a page of the documentation as a Jupyter notebook: its Python is cells, what they print is below them.

usage: notebook.py PAGE.md OUT.ipynb, for example doc/python.md

A block of the page that follows a block of Python is what that printed. `await` outside of a function is Jupyter's.
"""

import json
import re
import sys


def cells(page):
    """(kind, text, printed) in the page's order; kind: "markdown" or "code"."""
    parts = re.split(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", page, flags=re.S | re.M)
    out = [("markdown", parts[0].strip(), None)]
    for code, printed, text in zip(parts[1::3], parts[2::3], parts[3::3]):
        out += [("code", code.rstrip(), printed), ("markdown", text.strip(), None)]
    return [cell for cell in out if cell[1]]


def notebook(page):
    """The notebook, format 4.5."""
    made = []
    for number, (kind, text, printed) in enumerate(cells(page)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if kind == "code":
            shown = [{"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)}] if printed else []
            cell |= {"execution_count": None, "outputs": shown}
        made.append(cell)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": python}, "cells": made}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        page_text = file.read()
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(notebook(page_text), file, indent=1)
