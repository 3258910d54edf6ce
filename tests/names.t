#!/bin/sh
# names.t - models are data: no model's name below policies/, not even in a comment.
cd "$(dirname "$0")/.." || exit 1
names='pi0|pi05|paligemma|gemma|openvla|qwen|siglip|dinov2|minilm|mpnet|llama'
n=0 bad=0
for floor in base kernels ops graph; do
    n=$((n + 1))
    hits=$(grep -rnIiwE "$names" "$floor"; find "$floor" -type f | grep -iwE "$names")
    if [ -z "$hits" ]; then echo "ok $n - $floor names no model"
    else bad=1; echo "not ok $n - $floor names no model"; printf '%s\n' "$hits" | sed 's/^/# /' >&2; fi
done
echo "1..$n"
exit $bad
