#!/usr/bin/env bash
# Model files that are absent, truncated, altered or something else: a sentence, never a crash.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 40 -o train.csv
run fit train.csv --target strength --ignore row --iterations 3 -o m.thiele
expect_status 0
size=$(wc -c <m.thiele)

bad() { # FILE: refused by everything that loads models
    run info "$1"
    expect_refusal 1 "$(basename "$1")"
    run predict "$1" train.csv -o p.csv
    expect_refusal 1
    run score "$1" train.csv --json
    expect_refusal 1
    expect_no_file p.csv
}

bad absent.thiele
: >empty.thiele
bad empty.thiele
bad train.csv
for bytes in 1 7 8 9 100 $((size / 2)) $((size - 8)) $((size - 1)); do
    head -c "$bytes" m.thiele >short.thiele
    bad short.thiele
done
{ cat m.thiele; printf 'more'; } >long.thiele
bad long.thiele

# One byte changed, all over the file: each change is noticed.
altered() { # OFFSET
    local byte
    byte=$(od -An -tu1 -j "$1" -N 1 m.thiele | tr -d ' ')
    byte=$(printf %03o $(((byte + 1) % 256)))
    { head -c "$1" m.thiele; printf '%b' "\\0$byte"; tail -c +$(($1 + 2)) m.thiele; } >altered.thiele
    run info altered.thiele
    expect_refusal 1 'altered.thiele'
}
for part in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
    altered $(((size - 1) * part / 12))
done

run predict train.csv m.thiele
expect_refusal 1 'train.csv'
cp m.thiele before
run fit train.csv --target nosuch -o m.thiele
expect_status 1
check "a failed fit leaves the old model alone" cmp before m.thiele
expect_clean
finish
