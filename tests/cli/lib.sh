#!/usr/bin/env bash
# The harness of the command's tests: source it with the path of the binary as the first argument.
# `run ARGUMENTS` runs the command and keeps its status, $out and $err; the expect_* functions say what should have come
# of it; `finish` ends the script. Everything happens in a temporary folder that is removed at the end.
set -u
export LC_ALL=C
[ $# -ge 1 ] || { echo "usage: $0 BINARY" >&2; exit 2; }
THIELE=$(realpath "$1")
[ -x "$THIELE" ] || { echo "$0: $1 is not a program" >&2; exit 2; }
# shellcheck disable=SC2034
SOURCE=$(realpath "$(dirname "${BASH_SOURCE[1]}")/../..")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
checks=0
failures=0
last="(nothing was run)"
status=0
out=$WORK/.out
err=$WORK/.err

fail() {
    failures=$((failures + 1))
    echo "FAILED: $1"
    echo "    after: $last (status $status)"
    sed 's/^/    stdout: /' "$out" 2>/dev/null | head -5
    sed 's/^/    stderr: /' "$err" 2>/dev/null | head -5
}

# check TEXT COMMAND...: the command succeeds.
check() {
    local text=$1
    shift
    checks=$((checks + 1))
    "$@" >/dev/null 2>&1 || fail "$text"
}

run() {
    last="thiele $*"
    "$THIELE" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# As run, with standard input from a file.
run_from() {
    local input=$1
    shift
    last="thiele $* <$input"
    "$THIELE" "$@" >"$out" 2>"$err" <"$input"
    status=$?
}

expect_status() {
    checks=$((checks + 1))
    [ "$status" -eq "$1" ] || fail "status should be $1"
}

expect_out() { check "stdout should match '$1'" grep -Eq -- "$1" "$out"; }
expect_err() { check "stderr should match '$1'" grep -Eq -- "$1" "$err"; }
expect_silent() { check "stderr should be empty" test ! -s "$err"; }
expect_file() { check "$1 should exist" test -s "$1"; }
expect_no_file() { check "$1 should not exist" test ! -e "$1"; }
# No temporary files are left in the folder.
expect_clean() { check "no temporary file should be left" test -z "$(find "$WORK" -name '*.tmp*' -o -name '*.[0-9]')"; }

# done and nothing to complain about
expect_done() {
    expect_status 0
    expect_silent
}

# One sentence on stderr that matches, nothing on stdout, and this exit status.
expect_refusal() {
    expect_status "$1"
    checks=$((checks + 1))
    [ "$(wc -l <"$err")" -eq 1 ] || fail "there should be one sentence on stderr"
    expect_err '^thiele: '
    check "stdout should be empty" test ! -s "$out"
    shift
    for pattern in "$@"; do
        expect_err "$pattern"
    done
}

have_python() { command -v python3 >/dev/null; }
# The file is strict JSON (no NaN).
expect_json() {
    have_python || return 0
    check "$1 should be JSON" python3 -c '
import json, sys
def refuse(name): raise ValueError(name)
json.load(open(sys.argv[1]), parse_constant=refuse)' "$1"
}
# expect_that FILE EXPRESSION: it holds for the JSON document d.
expect_that() {
    have_python || return 0
    check "$2 should hold for the JSON in $1" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert eval(sys.argv[2])' "$1" "$2"
}

finish() {
    echo "$((checks - failures)) of $checks checks passed"
    [ "$failures" -eq 0 ]
    exit
}
