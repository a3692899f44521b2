#!/usr/bin/env bash
# thiele examples: every sequence of commands runs as it is printed, in an empty folder.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run examples
expect_done
sed -n 's/^# \([a-z]*\): .*/\1/p' "$out" >tasks
check "there are some" test "$(wc -l <tasks)" -ge 7
run examples --help
check "the help has their names" test "$(tr '\n' ' ' <"$out" | grep -oE 'by task: [a-z, ]+' | cut -d: -f2 | tr -d ' ')" = \
    "$(paste -sd, tasks)"
while read -r task; do
    run examples "$task"
    expect_done
    { echo 'set -e'; sed 's/\<thiele\> /"$THIELE" /' "$out"; } >"$task.sh"
    mkdir "$task"
    last="the example $task"
    (cd "$task" && THIELE=$THIELE bash "../$task.sh" </dev/null) >"$out" 2>"$err"
    status=$?
    expect_status 0
    check "it leaves something" test -n "$(ls "$task")"
done <tasks
run examples clases
expect_refusal 2 "no example 'clases'" "did you mean 'classes'"
run examples xyzzy
expect_refusal 2 "'thiele examples' lists them all"
finish
