#!/bin/sh
# smollm2.t - a real language model answers as it should. usage: tests/smollm2.t [PROGRAM]
# Its weights are no part of the tree: tools/convert/smollm2.sh brings them, else this is skipped.
. "$(dirname "$0")/opening.sh"
if [ ! -f build/smollm2/model.safetensors ]; then
    echo "1..0 # SKIP no build/smollm2: tools/convert/smollm2.sh"
    exit 0
fi
# asks PROMPT WORD: the answer has the word
asks() {
    n=$((n + 1))
    if "$T" run pipelines/smollm2_chat.lua --input "prompt=$1" -n 1 --drain 2>&1 | grep -q "$2"; then echo "ok $n - $1"
    else failed=1; echo "not ok $n - $1"; fi
}
asks "What is the capital of France? Answer in one sentence." Paris
asks "What is the capital of Japan? Answer in one sentence." Tokyo
asks "What is 2 + 2? Answer with the number." 4
echo "1..$n"
exit $failed
