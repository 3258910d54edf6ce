"""What judges the table's bench: python table_proofs.py FOLDER. Shares, the same goals of two rows, equal bytes, late frames; with the
simulator also that a bench which was stopped goes on. Prints what is wrong."""
import argparse
import contextlib
import io
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = pathlib.Path(sys.argv[1])
sys.path[1:1] = [str(ROOT / "tools/table"), str(ROOT / "tools/demo")]

import judged

wrong = []


def check(true, text):
    if not true:
        wrong.append(text)


def row(name, kind, seed, right, arm=(), **more):
    return {"row": name, "options": [name], "kind": kind, "seed": seed, "right": right, "reached": 3, "skills": ["a", "b", "c"], "steps": 80,
            "frames": 10, "sha256": f"{kind}{seed}", "arm": list(arm), "missed": {"total": 0}, "server_processor_s": 0.5, **more}


check(judged.share([True, True, True, False]) == (75.0, 100 * (0.75 * 0.25 / 4) ** 0.5), "a share and its error")
check(judged.share([]) is None and judged.written(None) == "-", "no goals, no share")

base = [row("whole", "order", s, True) for s in range(4)]
less = [row("less", "order", s, s > 1) for s in range(1, 6)]       # 1 is lost, 2 and 3 are not, 4 and 5 have nothing beside them
there = judged.against(less, base)
check((there["goals"], there["right here alone"], there["right there alone"]) == (3, 0, 1), f"the same goals: {there}")
check(abs(there["difference"] + 100 / 3) < 1e-9 and abs(there["standard error"] - 100 * ((1 / 3 - 1 / 9) / 3) ** 0.5) < 1e-9, f"{there}")
check(judged.against(less, []) is None, "nothing beside them")

given = [row("a", "order", 1, True, [["in1", "x"], ["in2", "x"], ["in3", "x"]]), row("b", "order", 1, True, [["in1", "x"], ["in2", "y"]])]
check(judged.same_bytes(given) == {"inputs": 3, "in several rows": 2, "with other bytes": 1}, f"{judged.same_bytes(given)}")
alone = [row("a", "order", 1, True, [["in1", "x"]]), row("a", "order", 2, True, [["in1", "y"]])]
check(judged.same_bytes(alone)["in several rows"] == 0, "one row alone shows nothing")

late = [row("whole", "order", s, True, virtual={"fill, 100 ms": {"observations": 10, "skipped": s, "missed": 2, "causes": {"plan": 1, "input": 1}}}) for s in (1, 2)]
check(judged.virtual(late) == {"fill, 100 ms": {"episodes": 2, "observations": 20, "skipped": 3, "missed": 4, "causes": {"plan": 2, "input": 2}}}, "late frames")
j = judged.judge(late, base)
check(j["as whole, byte for byte"] == 2 and j["server ms an observation"] == 50 and j["goals"] == 2, f"{j}")

try:
    import prove    # before loop, which puts tools/demo first, where another prove is
    import loop  # noqa: F401, what prove plays with
except ImportError:
    prove = None                                    # no simulator
if prove:
    log = FOLDER / "episodes.jsonl"
    a = argparse.Namespace(episodes=7, only=["whole", "200 ms"], kinds=["order", "what"], seed=10, hurried=False, virtual=("fill",),
                           periods=("100",), all_virtual=False, out=FOLDER)
    program = FOLDER / "program"
    program.write_text("one")
    tasks = prove.todo(a, program, {})
    check(len(tasks) == 28 and len(set(tasks)) == 28, f"{len(tasks)} tasks")
    check([t.row for t in tasks[:11]] == ["whole"] * 10 + ["200 ms"], "rows take turns")
    check(all(bool(t.policies) == (t.row == "whole") for t in tasks), "who is run again on a virtual clock")
    done = [row(t.row, t.kind, t.seed, True) | {"options": list(t.words), "made_of": prove.made_of(program, t.words)} for t in tasks[:5]]
    done += [done[0] | {"seed": 16, "made_of": "another"}, done[0] | {"seed": 15, "options": [], "made_of": prove.made_of(program, ())}]
    log.write_text("".join(json.dumps(r) + "\n" for r in done) + '{"row": "who')        # and was killed
    left = prove.todo(a, program, prove.read(log, program))
    check(left == tasks[5:], f"what is there is not played again, what is of another program or other options is: {len(left)}")
    other = FOLDER / "other"
    other.write_text("two")
    check(prove.read(log, other) == {}, "another program's are not there")
    check(prove.made_of(program, ("--policy", "oxygen")) != prove.made_of(program, ()) == prove.made_of(program, ("--policy", "fill")), "policies count")
    about = {"rows": {"whole": {"options": list(tasks[0].words)}}}
    with contextlib.redirect_stdout(io.StringIO()) as table:
        judged.report(about, list(prove.read(log, program).values()), FOLDER / "prove.json")
    check("5/5" in table.getvalue() and "100.0 +- 0.0 %" in table.getvalue(), table.getvalue())
    told = json.loads((FOLDER / "prove.json").read_text())
    check(len(told["episodes"]["whole"]) == 5 and told["judged"]["whole"]["right"] == 5, "the file")
if wrong:
    print("\n".join(wrong))
sys.exit(bool(wrong))
