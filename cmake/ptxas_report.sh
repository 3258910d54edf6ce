#!/bin/sh
# ptxas_report.sh - runs nvcc and keeps what ptxas says of each kernel beside the object, for tests/cuda_registers.t.
#   ptxas_report.sh OBJECT COMMAND...
object=$1
shift
"$@" 2>"$object.ptxas"
status=$?
grep -vE '^ptxas info|bytes stack frame' "$object.ptxas" >&2
exit $status
