#!/usr/bin/env bash
# Ctrl-C: the best model so far is kept; a second one ends at once; and what the terminal shows meanwhile.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 2000 -o train.csv
"$THIELE" generate -n 50 --seed 1 -o test.csv
slow="fit train.csv --target strength --ignore row --restarts 500 --iterations 1000000"

stop() { # SIGNAL SECONDS ARGUMENTS: sent after that long
    local signal=$1 delay=$2
    shift 2
    last="thiele $* (SIG$signal after $delay s)"
    # In the foreground: without it timeout signals the process and then its group, and the second one ends at once.
    timeout --foreground --preserve-status -k 60 -s "$signal" "$delay" "$THIELE" "$@" >"$out" 2>"$err"
    status=$?
}

# shellcheck disable=SC2086
stop INT 3 $slow -o int.thiele
expect_status 1
expect_err '^thiele: stopped by Ctrl-C: the best model so far was saved to int.thiele$'
run score int.thiele test.csv --json
expect_done
expect_that "$out" 'd["rmse"] < 5'
# shellcheck disable=SC2086
stop TERM 3 $slow -o term.thiele --json
expect_status 1
expect_err 'stopped by SIGTERM'
expect_json "$out"
run info term.thiele
expect_done
expect_out 'cancelled|stopped'

# Before there is anything to keep: nothing is saved.
# shellcheck disable=SC2086
stop INT 0.02 $slow -o early.thiele
check "no result, or one that was announced" test ! -e early.thiele -o -s "$err"

stop INT 3 cv train.csv --target strength --ignore row --restarts 500
expect_refusal 1 'stopped by Ctrl-C'
expect_clean

if ! have_python || ! python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
    echo "skipped: what a terminal shows (there is no python3, or no pseudo-terminal to be had)"
else
    cat >terminal.py <<'END'
"""Runs a command with standard error on a terminal of 60 columns; sends it some SIGINTs after some seconds."""
import fcntl, os, pty, signal, struct, subprocess, sys, termios, time
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
interrupts, delay = int(sys.argv[1]), float(sys.argv[2])
child = subprocess.Popen(sys.argv[3:], stderr=slave, stdout=subprocess.DEVNULL)
os.close(slave)
os.set_blocking(master, False)
start, seen, sent = time.time(), b"", 0
while True:
    try:
        seen += os.read(master, 65536)
    except BlockingIOError:
        time.sleep(0.02)
    except OSError:
        break
    if sent < interrupts and time.time() - start > delay + 0.05 * sent:
        child.send_signal(signal.SIGINT)
        sent += 1
    if child.poll() is not None and sent == interrupts:
        try:
            seen += os.read(master, 65536)
        except OSError:
            pass
        break
sys.stdout.buffer.write(seen)
sys.exit(child.wait() & 255)
END
    terminal() {
        last="on a terminal: $*"
        python3 terminal.py "$@" >"$out" 2>"$err"
        status=$?
    }
    terminal 0 0 "$THIELE" fit train.csv --target strength --ignore row --iterations 3 -o t.thiele
    expect_status 0
    check "a progress line was drawn" grep -q "$(printf '\r')" "$out"
    check "within the width of the terminal" python3 -c '
import sys
lines = open(sys.argv[1], "rb").read().replace(b"\r\n", b"\n").split(b"\r")
assert max(len(l) for l in lines) < 60, lines
assert lines[-1].strip() == b"" and lines[-2].strip() == b"", lines' "$out"
    # On 80 columns the time left is there, in words that need no knowledge of the method.
    sed 's/24, 60, 0, 0/24, 80, 0, 0/' terminal.py >wide.py
    last="fit with a deadline on a terminal of 80 columns"
    python3 wide.py 0 0 "$THIELE" fit train.csv --target strength --ignore row --deadline 3 --restarts 500 \
        -o t.thiele >"$out" 2>"$err"
    check "the phase is in words" grep -q 'learning: ' "$out"
    check "the time left is there" grep -qE ', up to about [0-9.]+ s left' "$out"
    check "no line is wider" python3 -c '
import sys
assert max(map(len, open(sys.argv[1], "rb").read().split(b"\r"))) < 80' "$out"
    terminal 0 0 "$THIELE" fit train.csv --target strength --ignore row --iterations 3 -o t.thiele --quiet
    check "--quiet draws nothing" test ! -s "$out"
    # shellcheck disable=SC2086
    terminal 2 3 "$THIELE" $slow -o twice.thiele
    check "a second Ctrl-C ends at once" test "$status" -eq 254 -o "$status" -eq 1
fi
finish
