#!/usr/bin/env bash
# Files that are written: whole or not at all whatever call fails, several writers at once, kills, limits, hang-ups.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
FAIL=$(dirname "$THIELE")/tests/fail_call
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # no leak checker works under ptrace

"$THIELE" generate -n 60 -o first.csv
"$THIELE" generate -n 400 --seed 1 -o more.csv
run fit first.csv --target strength --ignore row --method collapsed --inducing 8 --iterations 2 -o base.thiele
expect_status 0

# --- every failing call in turn: the old file or the new one, and nothing beside it
cp base.thiele m.thiele
run update m.thiele more.csv
cp m.thiele new.thiele
run predict base.thiele first.csv -o new.csv
run predict base.thiele first.csv --json -o new.json
expect_status 0
echo old >old.csv

whole() { # FILE OLD NEW: after a run with a failing call
    checks=$((checks + 1))
    if [ "$status" -eq 0 ]; then
        cmp -s "$1" "$3" || fail "$1 should be the new one after success"
    else
        cmp -s "$1" "$2" || cmp -s "$1" "$3" || fail "$1 should be the old one or the new one"
    fi
    expect_clean
    expect_no_file m.thiele.lock
}
failing() { # CALL N OLD NEW FILE ARGUMENTS: 1 when there was no such call
    local call=$1 n=$2 old=$3 new=$4 file=$5
    shift 5
    cp "$old" "$file"
    last="thiele $* ($call $n fails)"
    "$FAIL" "$call" "$n" "$THIELE" "$@" --threads 1 >"$out" 2>"$err" </dev/null
    status=$?
    [ "$status" -eq 77 ] && { echo "skipped: failing calls (they can't be watched here)"; return 1; }
    [ "$status" -eq 99 ] && return 1
    whole "$file" "$old" "$new"
}
for call in open write space fsync rename link chmod; do
    for n in 1 2 3 4 5 6 7 8 9; do
        failing $call $n base.thiele new.thiele m.thiele update m.thiele more.csv || break
        [ "$status" -eq 0 ] || expect_err '^thiele: '
    done
    for n in 1 2 3 4 5 6; do
        failing $call $n old.csv new.csv out.csv predict base.thiele first.csv -o out.csv || break
        failing $call $n old.csv new.json out.json predict base.thiele first.csv --json -o out.json || break
    done
done
# Most calls of these are the loader's.
for call in close pread; do
    for n in 7 8 9 10 11 12 13 14 15 16; do
        failing $call $n base.thiele new.thiele m.thiele update m.thiele more.csv || break
    done
done

# --- several updates at once: none loses another's rows
cp base.thiele m.thiele
for _ in 1 2 3 4; do
    "$THIELE" update m.thiele more.csv --threads 1 >/dev/null 2>&1 &
done
wait
run info m.thiele --json
expect_that "$out" 'd["stream"]["rows"] == 1600'
expect_no_file m.thiele.lock
# One that follows a file has the model until it ends; a lock that was left is no hindrance.
cp base.thiele m.thiele
touch m.thiele.lock
"$THIELE" update m.thiele more.csv --follow --snapshot 0.1 --threads 1 >/dev/null 2>&1 &
following=$!
for _ in $(seq 100); do
    cmp -s m.thiele base.thiele || break
    sleep 0.1
done
"$THIELE" update m.thiele more.csv --threads 1 >/dev/null 2>waited &
waiting=$!
for _ in $(seq 100); do
    [ -s waited ] && break
    sleep 0.1
done
check "the second one should say that it waits" grep -q '^thiele: waiting for another update of m.thiele to end$' waited
kill -HUP $following
wait $following
status=$?
expect_status 0
wait $waiting
status=$?
expect_status 0
run info m.thiele --json
expect_that "$out" 'd["stream"]["rows"] == 800'
# A model that was replaced by a program without locks is not overwritten.
cp base.thiele m.thiele
mkfifo rows
"$THIELE" update m.thiele - --threads 1 <rows >"$out" 2>"$err" &
updating=$!
exec 9>rows
head -50 more.csv >&9
sleep 1
cp new.thiele other.thiele
mv other.thiele m.thiele
exec 9>&-
last="update while the model was replaced"
wait $updating
status=$?
expect_refusal 1 'm.thiele was replaced by another program after it was read'
check "the other program's model should be there" cmp m.thiele new.thiele

# --- kills: nothing but the model stays
cp base.thiele m.thiele
for _ in $(seq 12); do
    "$THIELE" update m.thiele more.csv --snapshot 0.001 --batch 1 --threads 1 >/dev/null 2>&1 &
    victim=$!
    sleep "0.$((RANDOM % 30 + 10))"
    kill -KILL $victim 2>/dev/null
    wait $victim 2>/dev/null
    run info m.thiele
    expect_status 0
done
run update m.thiele more.csv
expect_status 0
expect_clean
expect_no_file m.thiele.lock

# --- limits and hang-ups
cp base.thiele m.thiele
last="update under a limit on the size of files"
(ulimit -f 1 && exec "$THIELE" update m.thiele more.csv >"$out" 2>"$err")
status=$?
expect_status 1
expect_err 'm.thiele: File too large'
check "the model should be the old one" cmp m.thiele base.thiele
expect_clean
"$THIELE" generate -n 2000 -o long.csv
last="fit that hears a hang-up"
timeout --foreground --preserve-status -k 60 -s HUP 2 "$THIELE" fit long.csv --target strength --ignore row \
    --restarts 500 --iterations 1000000 -o hup.thiele >"$out" 2>"$err"
status=$?
expect_status 1
expect_err 'stopped by SIGHUP: the best model so far was saved to hup.thiele'
run predict hup.thiele first.csv -o hup.csv
expect_done
finish
