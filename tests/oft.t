#!/bin/sh
# oft.t - a head and a projector of the state that stand beside a model: from PyTorch's packaging without
# PyTorch, and found where they lie.
# usage: tests/oft.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=tests/golden/openvla

cp $G/tiny/checkpoint/* $G/oft/checkpoint/*.pt "$W" && chmod -R u+w "$W"
python3 tools/oft_heads.py "$W" >"$W/said"; ok $? "both parts are converted"
python3 - "$W" $G/oft/checkpoint <<'EOF'
import json, struct, sys
def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[8 + n:][slice(*v["data_offsets"])]) for k, v in header.items()}
for part in "action_head", "proprio_projector":
    a, b = (tensors("%s/%s.safetensors" % (folder, part)) for folder in sys.argv[1:])
    assert a == b and a, part
EOF
ok $? "what is written is what the published code wrote"

"$T" inspect --format json "$W" >"$W/inspect.json"
ok $? "the folder is a checkpoint"
grep -q '"chunk":{"horizon":8,"dim":7,"state":8}' "$W/inspect.json"
ok $? "with a head and a row of the state"
grep -q '"missing":\[\],"unexpected":\[\],"mismatched":\[\]' "$W/inspect.json"
ok $? "whose tensors are all read"

# The whole way, from pictures, a state and words to the robot: its name for the only set of statistics.
python3 - "$W/config.json" <<'EOF'
import json, sys
config = json.load(open(sys.argv[1]))
config["norm_stats"] = {"libero_spatial": config["norm_stats"]["bridge_orig"]}
json.dump(config, open(sys.argv[1], "w"))
EOF
I=$G/oft/inputs.safetensors
"$T" run pipelines/openvla_oft_libero.lua --weights "$W" --dtype f32 --device cpu --format json \
    -i "observation/image=@$I#image.0" -i "observation/wrist_image=@$I#image.1" \
    -i "observation/state=@$I#proprio_raw" -i "prompt=open the drawer" >"$W/run.json" 2>"$W/err" &&
    python3 - "$W/run.json" $G/oft/case.json <<'EOF'
import json, sys
got = json.loads(open(sys.argv[1]).readline())["actions"]["act"]
want = json.load(open(sys.argv[2]))["variants"]["l1_2img"]["action"]
worst = max(abs(a - b) for x, y in zip(got, want) for a, b in zip(x[:6], y[:6]))
grip = all(x[6] == (-1 if y[6] > 0.5 else 1) for x, y in zip(got, want))
assert len(got) == len(want) and worst < 1e-5 and grip, worst
EOF
ok $? "pictures, a state and words become the published chunk"

# A chunk of ids, one of which is the end of the text: the client is told so.
sed -e 's/arch = "openvla_oft"/arch = "openvla_parallel"/; s/"bf16"/"f32"/; /wrist_image", h/d; /state", shape/d' \
    -e 's#robots/openvla_oft_libero#robots/openvla_libero#; s/"observation.wrist_image", "observation.state",//' \
    pipelines/openvla_oft_libero.lua >"$W/parallel.lua"
"$T" run "$W/parallel.lua" --root . --weights "$W" --device cpu --dump "$W/dump.safetensors" \
    -i "observation/image=@$I#image.0" -i "prompt=open the drawer" >/dev/null 2>"$W/err" &&
    PYTHONDONTWRITEBYTECODE=1 python3 - "$T" "$W" $I <<'EOF'
import collections, json, struct, subprocess, sys
sys.path.insert(0, "tests")
from serve_client import Array, Socket
def tensor(path, name):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    t = json.loads(data[8:8 + n])[name]
    return t["shape"], data[8 + n:][slice(*t["data_offsets"])]
program, folder, inputs = sys.argv[1:]
chunk = tensor(folder + "/dump.safetensors", "chunk")[1]
ids = [int(x) for i, x in enumerate(struct.unpack("<%df" % (len(chunk) // 4), chunk)) if i % 7 < 6]
config = json.load(open(folder + "/config.json"))
config["text_config"]["eos_token_id"] = collections.Counter(ids).most_common(1)[0][0]
json.dump(config, open(folder + "/config.json", "w"))
server = subprocess.Popen([program, "serve", folder + "/parallel.lua", "--late-ok", "--root", ".", "--weights", folder, "--device",
                           "cpu", "--port", "0", "--host", "127.0.0.1"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
try:
    client = Socket(int(server.stdout.readline().split("ws://")[1].split()[0].split(":")[-1]), timeout=60)
    client.reply()
    shape, picture = tensor(inputs, "image.0")
    client.send({"observation/image": Array("|u1", shape, picture), "prompt": "open the drawer"})
    text = client.failure()[0]
    assert "ended early: token " in text and "the end of the text" in text, text
finally:
    server.terminate()
    server.wait()
EOF
ok $? "a chunk that the end of the text cuts short is refused in a sentence"

mkdir "$W/random"
PYTHONDONTWRITEBYTECODE=1 python3 tests/oft_formulas.py "$T" "$W/random" $G >"$W/out" 2>"$W/err"
ok $? "random projectors, heads and statistics: the chunk is the published formulas', state by state"

# Ranges that tests/golden has not: a column that never moves and one far from zero. A float32 of such an action
# is farther from the number than the bound, which is a share of the range.
PYTHONDONTWRITEBYTECODE=1 python3 - "$T" "$W/ranges" $G <<'EOF'
import json, os, struct, sys
sys.path.insert(0, "tests")
import every_tensor as e
program, folder, golden = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
case, tiny = folder + "/oft", folder + "/tiny/checkpoint"
e.link_all(golden + "/oft", case, "case.json")
e.link_all(golden + "/tiny/checkpoint", tiny, "config.json")
config = json.load(open(golden + "/tiny/checkpoint/config.json"))
stats = config["norm_stats"]["bridge_orig"]["action"]
was = list(zip(stats["q01"], stats["q99"]))
for c, low, high in (0, 0.3, 0.3), (1, 500000.0, 500001.0):
    stats["q01"][c], stats["q99"][c] = low, high
json.dump(config, open(tiny + "/config.json", "w"))
moved, stored = json.load(open(golden + "/oft/case.json")), e.read(golden + "/oft/expected.safetensors")
for name, variant in moved["variants"].items():
    for row in variant["action"]:
        for c in 0, 1:
            (a, b), low, high = was[c], stats["q01"][c], stats["q99"][c]
            row[c] = (row[c] - a) / (b - a + 1e-8) * (high - low + 1e-8) + low
    values = [x for row in variant["action"] for x in row]
    key = name + ".action"
    if key in stored:
        stored[key] = "F32", stored[key][1], struct.pack("<%df" % len(values), *values)
json.dump(moved, open(case + "/case.json", "w"))
assert any(k.endswith(".action") for k in stored)
os.unlink(case + "/expected.safetensors")
e.write(case + "/expected.safetensors", stored)
code, wrong, *_ = e.verify(program, case)
assert code == 0 and not wrong, wrong
EOF
ok $? "an action is judged by its number, its tensor by that number's float32"

python3 - "$W/action_head--100_checkpoint.pt" "$W/was_run" <<'EOF'
import os, pickle, sys, zipfile
class Program:
    def __reduce__(self):
        return os.system, ("touch " + sys.argv[2],)
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("x/data.pkl", pickle.dumps({"a": Program()}))
EOF
python3 tools/oft_heads.py "$W" 2>"$W/err"; [ $? -eq 1 ] && [ ! -e "$W/was_run" ] && grep -q 'no tensor of plain' "$W/err"
ok $? "a file that holds a program is refused, the program does not run"
echo not a zip >"$W/action_head--100_checkpoint.pt"
python3 tools/oft_heads.py "$W" 2>"$W/err"; [ $? -eq 1 ] && ! grep -q Traceback "$W/err"
ok $? "a file of another kind is refused in a sentence"
rm "$W"/*.pt
python3 tools/oft_heads.py "$W" 2>"$W/err"; [ $? -eq 1 ]; ok $? "nothing to convert is said"
echo "1..$n"
exit $failed
