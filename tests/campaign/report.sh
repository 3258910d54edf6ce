#!/bin/sh
# report.sh - the counts of a campaign as a page.  sh tests/campaign/report.sh RESULTS HOURS
results=$1
cat <<END
# Attacks of $2 hours

\`sh tests/run.sh --campaign $2\`, $(date +%Y-%m-%d), commit $(git rev-parse --short HEAD), $(nproc) processors
($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)).

## Fuzz targets

With clang's sanitizers of addresses and undefined behaviour. \`handshake\` goes through libwebsockets.

| target | inputs | found |
|---|---|---|
END
for log in "$results"/campaign-*.log; do
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    [ -n "$inputs" ] || continue
    target=${log##*/campaign-}
    echo "| ${target%.log} | $inputs | $(grep -cE 'ERROR: |runtime error|SUMMARY: ' "$log") |"
done
cat <<END

## A live server

A robot asks every 25 ms and knows its answer; one way to attack at a time, in turns with none, by a client on the same
processors, with the sanitizers. Each number is a time of the robot's answer in ms.

| way | packets | alone p50 | alone p99 | attacked p50 | attacked p99 | attacked max |
|---|---|---|---|---|---|---|
END
sed -n 's/^{"way": "\([a-z]*\)".*"packets": \([0-9]*\), "alone": {[^}]*"p50_ms": \([0-9.]*\), "p99_ms": \([0-9.]*\)}.*"p50_ms": \([0-9.]*\), "p99_ms": \([0-9.]*\), "max_ms": \([0-9.]*\).*/| \1 | \2 | \3 | \4 | \5 | \6 | \7 |/p' \
    "$results/campaign-live.log"
cat <<END

## Memory that runs out, and kills

One allocation of \`tectum serve\` is refused, or one and all behind it: $(sed -n 's/^{"runs": \([0-9]*\), "refused": \([0-9]*\), "served": \([0-9]*\), "bad": \([0-9]*\), "allocations": \([0-9]*\)}/\1 runs of \5 allocations, \2 ended with exit code 4, \3 served on, \4 were wrong/p' "$results/campaign-refuse.log").

A writer of a memory's file is killed and the file opened again: $(awk '/kills,/ { k += $2; o += $4; t += $7 } END { printf "%d kills, %d operations acknowledged, %d torn ends cut, none lost", k, o, t }' "$results/campaign-kills.log").
