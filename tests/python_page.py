"""python_page.py - doc/python.md as a notebook whose cells are run in order: they print what the page says.

usage: python_page.py ROOT CHECKS_BEFORE, behind others in one plan. Numbers may differ by what another processor rounds otherwise; those with more than
four digits behind the point are times, which are any. What a robot is handed by its deadline depends on the machine.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT, count, failed = sys.argv[1], int(sys.argv[2]), 0
NUMBER = re.compile(r"-?\d+\.\d+|-?\d+")


def check(text, holds, *said):
    global count, failed
    count += 1
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds:
        failed += 1
        print("#", *said, file=sys.stderr)


def run(code, names):
    """What a cell prints; `await` is allowed as in Jupyter."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        waits = eval(compile(code, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(waits):
            asyncio.run(waits)
    return printed.getvalue()


def alike(one, other):
    a, b = NUMBER.findall(one), NUMBER.findall(other)
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return False
    return all(len(x.partition(".")[2]) > 4 or abs(float(x) - float(y)) <= 2e-3 for x, y in zip(a, b))


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "python.ipynb")
    subprocess.run([sys.executable, os.path.join(ROOT, "python/notebook.py"), os.path.join(ROOT, "doc/python.md"), path], check=True)
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
try:
    import nbformat
    nbformat.validate(nbformat.from_dict(notebook))
except ImportError:
    pass
cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
check("the page is a notebook", notebook["nbformat"] == 4 and len(cells) >= 6, len(cells))
names = {}
for number, cell in enumerate(cells):
    code = "".join(cell["source"])
    wanted = "".join(line for output in cell["outputs"] for line in output["text"])
    try:
        printed = run(code, names)
    except Exception as error:  # whatever it is, the page is wrong
        check(f"cell {number} runs", False, repr(error), code)
        continue
    if "handout" in code:
        check(f"cell {number} prints as many lines as the page says", len(printed.splitlines()) == len(wanted.splitlines()), printed)
    else:
        check(f"cell {number} prints what the page says", alike(wanted, printed), printed, "instead of", wanted)
sys.exit(failed > 0)
