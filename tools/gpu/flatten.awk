# flatten.awk - JSON as tectum writes it (a key a line) to lines `path<TAB>value`: rows.0.frame_us.p50 17.2
{
    match($0, /^ */)
    depth = RLENGTH
    line = substr($0, depth + 1)
    sub(/,$/, "", line)
    if (line ~ /^[}\]]/) next
    if (line ~ /^"[^"]*": /) {
        at = index(line, "\": ")
        key[depth] = substr(line, 2, at - 2)
        line = substr(line, at + 3)
    } else if (depth > 0) key[depth] = count[depth]++
    if (line == "{" || line == "[") { count[depth + 1] = 0; next }
    path = key[1]
    for (i = 2; i <= depth; i++) path = path "." key[i]
    gsub(/^"|"$/, "", line)
    print path "\t" line
}
