#!/bin/sh
# doc_commands.t - what pages say of the program: each verb that they name is one, with the options that they give it.
# usage: tests/doc_commands.t [PROGRAM]
#
# Read are pages of doc/ and READMEs: what stands between backquotes or in a block and begins with `tectum VERB`.
# Decisions, measurements and the changelog tell of programs of their time and are not read.
. "$(dirname "$0")/opening.sh"

cat >"$W/said.py" <<'END'
import re
import subprocess
import sys

program, pages = sys.argv[1], sys.argv[2:]
options = {}


def options_of(verb):
    """The options that the help of a verb lists; None: there is no such verb."""
    if verb not in options:
        told = subprocess.run([program, verb, "--help"], capture_output=True, text=True)
        options[verb] = None if told.returncode else set(re.findall(r"--[a-z][a-z-]*", told.stdout))
    return options[verb]


def commands(text):
    """What follows `tectum`, of each command in a block, by lines, and between backquotes."""
    text = re.sub(r"\\\n\s*", " ", text)
    inside = False
    for line in text.split("\n"):
        inside ^= line.startswith("```")
        if inside or line.startswith("    "):
            yield from re.findall(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S+/)?tectum ([a-z].*)", line)
    for said in re.findall(r"(?<!`)`(?:\S+/)?tectum ([a-z][^`]*)`(?!`)", text):
        yield " ".join(said.split())


n = 0
for page in pages:
    for command in commands(open(page, encoding="utf-8").read()):
        command = re.split(r"[|;&#>]", re.sub(r"'[^']*'?", "", command))[0]
        words = command.split()
        verb = re.match(r"[a-z]+", words[0]).group()
        if words[0] != verb:
            continue  # a line that the program prints, as `tectum run: warm-up`
        n += 1
        known = options_of(verb)
        if known is None:
            print(f"{page}: `tectum {command.strip()}`: there is no verb {verb}")
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", command):
            if known is not None and option not in known:
                print(f"{page}: `tectum {command.strip()}`: {verb} has no {option}")
print("#", n, "commands", file=sys.stderr)
END

pages="README.md $(ls doc/*.md */README.md */*/README.md)"
python3 -S "$W/said.py" "$T" $pages >"$W/out" 2>"$W/err"
[ $? -eq 0 ] && [ "$(sed 's/^# \([0-9]*\) .*/\1/' "$W/err")" -gt 150 ]; ok $? "$(ls $pages | wc -l) pages were read"
[ ! -s "$W/out" ]; ok $? "every verb and option that they give is one of the program's"
printf 'Or `tectum bench\n--suite x`.\n\n```\n$ tectum fly --device cpu\n```\n' >"$W/page.md"
python3 -S "$W/said.py" "$T" "$W/page.md" >"$W/out" 2>"$W/err"
grep -q "bench has no --suite" "$W/out" && grep -q "there is no verb fly" "$W/out"; ok $? "a mistake is found"
echo "1..$n"
exit $failed
