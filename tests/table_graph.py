"""The table's pipeline through `tectum run`, without a simulator: python table_graph.py PROGRAM FOLDER. Prints what is wrong.

Pictures are those of a recorded episode, and the test plays the arm: each observation puts what the arm is to have said. The
planner's answers, the memory, a restart and a kill -9 are the pipeline's own.
"""
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools/table"))

import goals

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PICTURES = ROOT / "pipelines/checkpoints/metaworld/episodes/inputs.safetensors"
FRAMES = 20             # of a state: the planner is asked every ten
wrong = []


def check(true, text):
    if not true:
        wrong.append(text)


def lines(goal, seen, first=None):
    """Observations of a goal; `seen` is what the arm says, FRAMES of each; `first` is put with the first one."""
    for i, words in enumerate(w for w in seen for _ in range(FRAMES)):
        put = {**(first or {}), "seen": words} if i == 0 else {"seen": words}
        pictures = {f"observation/{name}": f"@{PICTURES}#button.{name}[{i % 8}]" for name in ("image", "wrist_image", "state")}
        yield {**pictures, "goal": goal, "memory": {"put": put}}


def command(name, observations):
    file = FOLDER / "inputs.jsonl"
    file.write_text("".join(json.dumps(o) + "\n" for o in observations))
    return [PROGRAM, "run", str(ROOT / "pipelines/table.lua"), "--threads", "1", "--policy", "oxygen", "--format", "json",
            "--set", "models.arm.weights=" + str(ROOT / "pipelines/checkpoints/metaworld"), "--inputs", str(file),
            *(f"--set=resources.{r}.store={FOLDER / name}.{r}" for r in ("mem", "log"))]


def texts(output, node):
    """The finished texts of a node in their order, each once where it is said several times in a row."""
    parts, said = {}, []
    for line in output.splitlines():
        for t in json.loads(line)["text"][node]:
            parts[t["request"]] = parts.get(t["request"], "") + t["text"]
            if t["done"]:
                said.append(parts[t["request"]].strip())
    return [t for i, t in enumerate(said) if i == 0 or said[i - 1] != t]


def run(name, observations):
    done = subprocess.run(command(name, observations), capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"{name}: {done.stderr[-500:]}")
    return done.stdout


found = {"drawer": "closed", "faucet": "open"}
goal = goals.restore(["pull the drawer", "press the button"], found)
told = goals.Memory(found).segments()
seen = [w for s in goal.skills for w in (goals.ACT[s], goals.ENDED[s])]
out = run("whole", lines(goal.text, seen, told))
check(texts(out, "choose") == [*goal.skills, "done"], f"skills in their order: {texts(out, 'choose')}")
listed = goals.written(goal.skills).strip()
check(texts(out, "tell")[-1:] == [listed], f"what was done is listed: {texts(out, 'tell')}")
out = run("whole", lines(goals.WHAT, ["wait"], {"said": "ready"}))
check(texts(out, "tell") == [listed] and texts(out, "choose") == ["done"], f"after a restart it is told: {texts(out, 'tell')}")
out = run("whole", lines(goals.AGAIN, seen[:4], {"said": "ready"}))
check(texts(out, "choose") == list(goal.skills[:3]), f"and done again: {texts(out, 'choose')}")

# Killed in the middle of the task, while frames run: another run goes on where it was.
observations = [*lines(goal.text, seen[:3], told), *({**o} for _ in range(20) for o in lines(goal.text, seen[2:3]))]
with subprocess.Popen(command("killed", observations), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
    for line in program.stdout:
        if any(t["text"] == " press the button" for t in json.loads(line)["text"]["choose"]):
            break
    time.sleep(2)       # what is durable within a second
    program.kill()
out = run("killed", lines(goal.text, seen[3:]))
check(texts(out, "choose") == [*goal.skills[2:], "done"], f"after kill -9 it goes on: {texts(out, 'choose')}")
check(texts(out, "tell")[-1:] == [listed], f"with all that was done: {texts(out, 'tell')}")
print("\n".join(wrong))
sys.exit(bool(wrong))
