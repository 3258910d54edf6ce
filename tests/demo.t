#!/bin/sh
# demo.t - the scripts of tools/demo and of the training, without a simulator: Python compiles, what is imported is there, rollout
# starts and stops a server.
cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}
# expect NAME TEXT WHERE: TEXT is a line's part in the file WHERE.
expect() { report "$1" "$(grep -qF -e "$2" "$3" || { echo "no '$2' in:"; cat "$3"; })"; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

train=pipelines/checkpoints/metaworld/train
act=pipelines/checkpoints/metaworld_act/train
smolvla=pipelines/checkpoints/metaworld_smolvla/train
token=pipelines/checkpoints/metaworld_token/train
if command -v python3 >/dev/null 2>&1; then
    report "Python compiles" "$(python3 -c '
import sys
for name in sys.argv[1:]:
    compile(open(name).read(), name, "exec")' tools/demo/*.py $train/*.py $act/*.py $smolvla/*.py $token/*.py 2>&1)"
    report "no name of a script stands for two" "$(ls tools/demo/*.py $train/*.py | sed 's|.*/||' | sort | uniq -d)"
    report "paths between the scripts lead to them" "$(python3 tests/demo_paths.py 2>&1)"
else n=$((n + 1)); echo "ok $n - Python compiles # SKIP no python3"; fi
for name in metaworld metaworld_aged metaworld_token planner; do # its header says it
    dtypes=$(head -c 65536 pipelines/checkpoints/$name/model.safetensors | grep -aoE '"dtype": ?"[^"]+"' | sort -u)
    report "all weights of $name are BF16" "$(echo "${dtypes:-no dtypes}" | grep -v '"BF16"')"
done
for script in tools/demo/rollout tools/demo/ring tools/demo/prove tools/demo/setup.sh $train/make.sh $act/make.sh $smolvla/make.sh $token/make.sh; do report "$script parses" "$(sh -n "$script" 2>&1)"; done
report "every requirement is pinned" "$(grep -vhE '^#|^[a-z0-9-]+==[0-9.]+$' tools/demo/requirements*.txt $act/requirements.txt)"
report "a client of a server needs no PyTorch" "$(cd tools/demo && grep -nE \
    '^(import|from) (torch|sentencepiece|checkpoint|tokenizer|model|train)' sim.py episode.py rollout.py policy.py film*.py)"

# A tree of its own, with an environment and a server that only say what they are told.
tree=$work/tree venv=$work/tree/build/demo/venv
mkdir -p "$tree/tools/demo" "$venv/bin" "$tree/build/release"
cp tools/setup.sh "$tree/tools/"
cp tools/demo/rollout tools/demo/setup.sh tools/demo/*.txt tools/demo/rollout.py "$tree/tools/demo/"
cp tools/demo/*.txt "$venv/"
printf '#!/bin/sh\n[ "$1" = -c ] || echo "python $*"\n' >"$venv/bin/python"
chmod +x "$venv/bin/python"
rollout() { sh "$tree/tools/demo/rollout" "$@" >"$work/out" 2>&1; echo "status $?" >>"$work/out"; }

rollout --help
expect "--help succeeds" "status 0" "$work/out"
rollout --tasks button
expect "without tectum it says what to do" "cmake --build --preset release" "$work/out"
rollout --server somewhere:1
expect "a given server is used" "rollout.py --server somewhere:1" "$work/out"
sh "$tree/tools/demo/setup.sh" --nonsense >"$work/out" 2>&1
expect "setup.sh refuses other options" "usage: tools/demo/setup.sh" "$work/out"

cat >"$tree/build/release/tectum" <<'END'
#!/bin/sh
echo "called with $*" >&2
[ ! -f broken ] || exit 3
echo loading
echo "serving demo on ws://127.0.0.1:4711 (it runs)"
trap 'echo stopped >stopped; exit 0' TERM
while :; do sleep 0.1; done
END
chmod +x "$tree/build/release/tectum"
rollout --tasks button
expect "the server's port is passed on" "rollout.py --server 127.0.0.1:4711 --tasks button" "$work/out"
expect "the server is stopped" "stopped" "$tree/stopped"
touch "$tree/broken"
rollout --tasks button
expect "a server that ends is an error" "status 1" "$work/out"
expect "and what it said is shown" "server: called with serve pipelines/demo_metaworld.lua --late-ok --port 0 --threads 1" "$work/out"
rollout --given
expect "a policy that is given actions has its own pipeline" "serve pipelines/demo_metaworld_aged.lua --late-ok" "$work/out"

# When is observed and what is executed, without a robot.
numpy=
for python in python3 /usr/bin/python3 build/demo/venv/bin/python; do
    [ -n "$numpy" ] || { "$python" -c "import numpy" 2>/dev/null && numpy=$python; }
done
if [ -n "$numpy" ]; then
    report "chunks are used as documented" "$(PYTHONDONTWRITEBYTECODE=1 "$numpy" tests/demo_chunks.py 2>&1)"
else n=$((n + 1)); echo "ok $n - chunks are used as documented # SKIP no numpy"; fi
# The script that builds and runs: a build that is there keeps what it was configured with.
plain=$work/plain
mkdir -p "$plain/tools" "$plain/bin" "$plain/build/release"
cp tools/demo.sh "$plain/tools/"
echo "exit 0" >"$plain/tools/setup.sh"
printf '#!/bin/sh\necho "$*" >>"%s/said"\n' "$plain" >"$plain/bin/cmake"
printf '#!/bin/sh\necho "ran $*"\n' >"$plain/build/release/tectum"
chmod +x "$plain/bin/cmake" "$plain/build/release/tectum"
printf '#!/bin/sh\necho "	libcudart.so (libc6,x86-64) => /lib/libcudart.so"\n' >"$plain/bin/ldconfig"
chmod +x "$plain/bin/ldconfig"
for tool in sh cat date dirname grep head mkdir nproc rm tail; do ln -s "$(command -v $tool)" "$plain/bin/"; done # of a machine without a GPU
PATH=$plain/bin sh "$plain/tools/demo.sh" --frames 1 >"$work/new" 2>&1
expect "a build that is new is configured by its preset" "--preset release" "$plain/said"
expect "without a GPU's driver nothing is built for one" "--preset release -DTECTUM_CUDA=off" "$plain/said"
expect "then the demo runs" "ran demo --frames 1" "$work/new"
rm "$plain/said" && printf '#!/bin/sh\necho "	libcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1"\n' >"$plain/bin/ldconfig"
PATH=$plain/bin sh "$plain/tools/demo.sh" >"$work/gpu" 2>&1
report "with one what there is decides" "$(grep -e "--preset release" "$plain/said" | head -n 1 | grep -vx -e "--preset release")"
printf '#!/bin/sh\nexit 0\n' >"$plain/bin/nvidia-smi" && chmod +x "$plain/bin/nvidia-smi" && rm "$plain/said" "$plain/bin/ldconfig"
PATH=$plain/bin sh "$plain/tools/demo.sh" >"$work/gpu" 2>&1
report "which nvidia-smi shows, too" "$(grep -e "--preset release" "$plain/said" | head -n 1 | grep -vx -e "--preset release")"
rm "$plain/said" && : >"$plain/build/release/CMakeCache.txt"
PATH=$plain/bin:$PATH sh "$plain/tools/demo.sh" >"$work/again" 2>&1
report "one that is there is not" "$(head -n 1 "$plain/said" | grep -vx "build/release")"
echo "1..$n"
exit $bad
