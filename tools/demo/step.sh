# step.sh - what the scripts that make checkpoints share.  . tools/demo/step.sh
step() { # step TEXT COMMAND...: run it and say how long it took
    text=$1 begin=$(date +%s)
    shift
    "$@" || { echo "make: $text failed" >&2; exit 1; }
    echo "make: $text took $(($(date +%s) - begin)) s"
}
