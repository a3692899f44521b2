#!/usr/bin/env bash
# Where output goes: full disks, closed pipes, folders that can't be written, and inputs that must survive.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 40 -o train.csv
fit() { run fit train.csv --target strength --ignore row --iterations 3 "$@"; }
fit -o m.thiele
expect_status 0

# --- a full disk
if [ -w /dev/full ]; then
    full() { # ARGUMENTS: standard output is a full disk
        last="thiele $* >/dev/full"
        "$THIELE" "$@" >/dev/full 2>"$err"
        status=$?
        : >"$out"
        expect_refusal 1 'No space left'
    }
    full --help
    full --version
    full fit --help
    full generate -n 10
    full generate -n 100000
    full predict m.thiele train.csv
    full predict m.thiele train.csv --json
    full score m.thiele train.csv --json
    full info m.thiele
    full info m.thiele --json
    full fit train.csv --target strength --ignore row --iterations 1 -o other.thiele
    expect_file other.thiele
    full cv train.csv --target strength --ignore row --iterations 1 --folds 2
    fit -o /dev/full
    expect_refusal 1 'No space left'
    run predict m.thiele train.csv -o /dev/full
    expect_refusal 1 'No space left'
    run predict m.thiele train.csv --json -o /dev/full
    expect_refusal 1 'No space left'
    run predict m.thiele train.csv --joint /dev/full
    expect_refusal 1 'No space left'
    run generate -n 10 -o /dev/full
    expect_refusal 1 'No space left'
fi

# --- folders (that refuse even root), found out before the work
touch file
for place in /proc/m.thiele file/m.thiele nowhere/m.thiele /nowhere/at/all; do
    run fit absent.csv --target strength -o "$place"
    expect_refusal 1 "$place"
    run predict m.thiele train.csv -o "$place"
    expect_refusal 1 "$place"
    run predict m.thiele train.csv --joint "$place"
    expect_refusal 1 "$place"
    run generate -n 5 -o "$place"
    expect_refusal 1 "$place"
done
mkdir folder
fit -o folder
expect_refusal 1 'is a folder'

# --- inputs survive
cp train.csv train.before
cp m.thiele m.before
ln train.csv link.csv
fit -o train.csv
expect_refusal 2 'overwrite'
fit -o ./folder/../train.csv
expect_refusal 2 'overwrite'
fit -o link.csv
expect_refusal 2 'overwrite'
run predict m.thiele train.csv -o train.csv
expect_refusal 2 'overwrite'
run predict m.thiele train.csv -o m.thiele
expect_refusal 2 'overwrite'
run predict m.thiele train.csv --joint m.thiele
expect_refusal 2 'overwrite'
check "data survive" cmp train.csv train.before
check "model survives" cmp m.thiele m.before

# --- an existing output is replaced, whole
echo old >out.csv
run predict m.thiele train.csv -o out.csv
expect_done
check "replaced" grep -q '^mean,sd' out.csv

# --- a reader that stops reading: no words, no trace
"$THIELE" generate -n 200000 2>"$err" | head -1 >"$out"
last="thiele generate -n 200000 | head -1"
status=0
expect_silent
"$THIELE" --help 2>"$err" | :
expect_silent
if have_python; then
    python3 -c 'import signal, subprocess, sys
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
subprocess.run(sys.argv[1:], restore_signals=False)' "$THIELE" generate -n 200000 2>"$err" | head -1 >"$out"
    last="thiele generate -n 200000 | head -1, SIGPIPE ignored by the caller"
    expect_silent
fi
"$THIELE" generate -n 10 -o closed.csv >&- 2>&- <&-
check "closed standard streams do no harm" test "$(wc -l <closed.csv)" -eq 11
expect_clean
finish
