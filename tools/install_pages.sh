#!/bin/sh
# install_pages.sh - put a program's manual pages and shell completions into DIR (usually
# PREFIX/share).  tools/install_pages.sh PROGRAM DIR
set -eu
program=$1 share=$2
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/fish/vendor_completions.d" \
    "$share/zsh/site-functions"
"$program" man -o "$share/man/man1"
"$program" completion bash >"$share/bash-completion/completions/tectum"
"$program" completion fish >"$share/fish/vendor_completions.d/tectum.fish"
"$program" completion zsh >"$share/zsh/site-functions/_tectum"
