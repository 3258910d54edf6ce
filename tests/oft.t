#!/bin/sh
# oft.t - a head and a projector of the state that stand beside a model: from PyTorch's packaging without
# PyTorch, and found where they lie.
# usage: tests/oft.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
if [ ! -x "$T" ]; then echo "1..0 # SKIP no program: give one as an argument"; exit 0; fi
if ! command -v python3 >/dev/null; then echo "1..0 # SKIP no python3"; exit 0; fi
W=$(mktemp -d) || exit 1
trap 'rm -rf "$W"' EXIT
n=0 bad=0
ok() { # ok STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else bad=1; echo "not ok $n - $2"; fi
}
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
grep -q '"chunk":{"horizon":8,"dim":7,"width":64,"state":8}' "$W/inspect.json"
ok $? "with a head and a row of the state"
grep -q '"missing":\[\],"unexpected":\[\],"mismatched":\[\]' "$W/inspect.json"
ok $? "whose tensors are all read"

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
exit $bad
