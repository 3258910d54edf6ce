#!/bin/sh
# names.t - models are data: no model's name below policies/, not even in a comment; a struct, union or
# enum tag means one thing; and a function's prefix tells its folder.
cd "$(dirname "$0")/.." || exit 1
names='pi0|pi05|gr00t|groot|eagle|paligemma|gemma|openvla|qwen|siglip|dinov2|minilm|mpnet|roberta|distilbert|llama|smolvla|smolvlm'
n=0 bad=0
for floor in base kernels ops graph; do
    n=$((n + 1))
    hits=$(grep -rnIiwE "$names" "$floor"; find "$floor" -type f | grep -iwE "$names")
    if [ -z "$hits" ]; then echo "ok $n - $floor names no model"
    else bad=1; echo "not ok $n - $floor names no model"; printf '%s\n' "$hits" | sed 's/^/# /' >&2; fi
done
n=$((n + 1))
twice=$(find base kernels ops graph policies tools tests -name '*.[ch]' -exec \
    grep -hoE '^(typedef )?(struct|union|enum) tec_[a-z0-9_]+ \{' {} + | awk '{ print $(NF - 1) }' | sort | uniq -d)
if [ -z "$twice" ]; then echo "ok $n - each tag is defined once"
else bad=1; echo "not ok $n - each tag is defined once"; printf '%s\n' "$twice" | sed 's/^/# /' >&2; fi
# Of a declaration in a header, the word behind tec_.
n=$((n + 1))
shared=$(find base kernels ops graph policies tools -name '*.h' | while read -r header; do
    grep -hoE '^[a-z][^(;={]*\btec_[a-z0-9_]+\(' "$header" | grep -vE '^(typedef|static) ' |
        sed -E "s|.*\btec_([a-z0-9]+)[a-z0-9_]*\\($|\1 $(dirname "$header")|"
done | sort -u | cut -d ' ' -f 1 | uniq -d)
if [ -z "$shared" ]; then echo "ok $n - a function's prefix belongs to one folder"
else bad=1; echo "not ok $n - a function's prefix belongs to one folder"; printf '%s\n' "$shared" | sed 's/^/# tec_/' >&2; fi
# Words that the field has other words for: canary, watchdog, request slot, repetition penalty, request prompt,
# action output, trie, pending prefill, secondary model, simulator, segment. Old releases and figures keep theirs.
n=$((n + 1))
words='he''lm|out''let|se''ats?|pena''lise|own_pro''mpt|tec_hand''out[a-z_]*|tec_pla''ces|tec_awa''ited[a-z_]*|tec_fur''ther[a-z_]*|n_fur''ther|tec_wor''ld[a-z_]*|tec_un''it_[a-z]+|(memory|remembered) un''its?'
hits=$(grep -rnIwiE "$words" base kernels ops graph policies tools tests doc README.md CONTRIBUTING.md \
    --exclude-dir=golden --exclude-dir=measurements --exclude-dir=decisions)
if [ -z "$hits" ]; then echo "ok $n - the field's words are used"
else bad=1; echo "not ok $n - the field's words are used"; printf '%s\n' "$hits" | sed 's/^/# /' >&2; fi
echo "1..$n"
exit $bad
