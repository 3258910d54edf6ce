# tap.awk - sum up one TAP file.  awk -v name=NAME -v status=EXIT -v seconds=S [-v times=FILE] -f tests/tap.awk FILE
# Prints what failed and one line "# NAME: P passed, F failed, S skipped (S s, S of a processor)"; a
# plan that is missing or not met, and an exit status that disagrees with the lines, are failures too.
# times: what the shell's `times` said before and behind the test; children are in its second lines.
function fault(text) { failed++; print "not ok - " name ": " text }
function in_seconds(text,  part) { split(text, part, /[ms]/); return 60 * part[1] + part[2] }
function processor(file,  line, n, sum) {
    while ((getline line < file) > 0)
        if (++n % 2 == 0) { split(line, word, " "); sum[n / 2] = in_seconds(word[1]) + in_seconds(word[2]) }
    return sum[2] - sum[1]
}
/^not ok/ {
    if (tolower($0) ~ /# *todo/) { skipped++; next }
    failed++; lines++; sub(/^not ok *[0-9]* *-? */, ""); print "not ok - " name ": " $0; next
}
/^ok/ { lines++; if (tolower($0) ~ /# *skip/) skipped++; else passed++; next }
/^1\.\.[0-9]+/ {
    planned = substr($1, 4) + 0; plans++
    if (planned == 0) { skipped++; empty = 1 }
}
/^Bail out!/ { fault($0) }
END {
    if (status == 124 || status == 137) fault("stopped: it ran out of time")
    else if (plans != 1) fault("no plan, exit status " status ": it crashed or printed no TAP")
    else if (!empty && planned != lines) fault("planned " planned " lines, printed " lines + 0)
    else if (status != 0 && failed == 0) fault("exit status " status " although nothing failed")
    else if (status == 0 && failed > 0) fault("exit status 0 although something failed")
    printf "# %s: %d passed, %d failed, %d skipped (%d s%s)\n", name, passed, failed, skipped, seconds,
        times ? sprintf(", %.1f of a processor", processor(times)) : ""
}
