#!/usr/bin/env bash
# What happens to columns and targets that nobody said anything about, names that hold control bytes, and tables that
# take long to read.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A target of two numbers is fitted as classes, with a line, unless something asks for Gaussian noise.
awk 'BEGIN {print "x,id,when,k,y"; for (i = 0; i < 60; i++) printf "%g,p%d,2024-01-%02d,7,%d\n", i / 10, i, i % 28 + 1, ((i * 7) % 60 > 25)}' >two.csv
run fit two.csv --target y --iterations 5 -o two.thiele
expect_status 0
expect_err "^thiele: warning: the target 'y' has only the values 0 and 1, and is fitted as two classes .*--likelihood gaussian"
expect_err "'when' holds dates and is used as a number: days since 2024-01-01"
expect_err "'id' is text with a different value in nearly every row"
expect_err "1 column is constant and left out: 'k'"
check 'one line each' test "$(wc -l <"$err")" -eq 4
expect_out 'bernoulli'
run predict two.thiele two.csv
expect_done
expect_out '^label,p.0,p.1'
run fit two.csv --target y --inputs x --iterations 2 --likelihood gaussian -o number.thiele
expect_done
expect_out '^likelihood +gaussian'
run fit two.csv --target y --inputs x --iterations 2 --method exact -o number.thiele
expect_done
run fit two.csv --target y --inputs x --iterations 2 --set noise=0.1 -o number.thiele
expect_done
# Every fold finds the same: it is said once.
run cv two.csv --target y --iterations 2 --folds 3
expect_status 0
check 'lines are not repeated' test "$(grep -c 'two classes' "$err")" -eq 1

# A target of texts is fitted as classes, of which there may be more than two; not so names, and numbers with mistakes.
awk 'BEGIN {print "x,three,two,name,mostly"; for (i = 0; i < 60; i++) printf "%g,%s,%s,p%d,%s\n", i / 10, substr("abc", int(i / 20) + 1, 1), i < 30 ? "no" : "yes", i, i % 9 ? i : "?"}' >texts.csv
run fit texts.csv --target three --inputs x --iterations 2 -o texts.thiele
expect_done
expect_out '^likelihood +softmax'
run predict texts.thiele texts.csv
expect_out '^label,p.a,p.b,p.c'
run fit texts.csv --target two --inputs x --iterations 2 -o texts.thiele
expect_done
expect_out '^likelihood +bernoulli'
for target in name mostly; do
    run fit texts.csv --target $target --inputs x -o no.thiele
    expect_status 1
done
run fit texts.csv --target three --inputs x --likelihood gaussian -o no.thiele
expect_status 1
expect_err "the target 'three' is text, but likelihood 'gaussian' needs numbers"

# Dates are numbers that the model knows how to read; a slice is given by dates too.
awk 'BEGIN {print "when,x,y"; for (i = 0; i < 60; i++) printf "2024-%02d-%02d,%g,%g\n", i / 28 + 1, i % 28 + 1, i % 7, i / 10 + i % 7}' >dates.csv
run fit dates.csv --target y --iterations 5 -o dates.thiele
expect_status 0
expect_err "'when' holds dates and is used as a number: days since 2024-01-01 .*--kernel 'matern52\(ard\) \+ periodic\(dims=.when., p=365.25\)'"
expect_out 'inputs +when \(days since 2024-01-01\), x'
run fit dates.csv --target y --iterations 2 --kernel 'matern52(ard) + periodic(dims="when", p=365.25)' -o seasons.thiele
expect_status 0
expect_out 'periodic.period +365.25'
run predict dates.thiele dates.csv
expect_done
printf 'when,x\n2024-03-01,1\nsoon,2\n' >soon.csv
run predict dates.thiele soon.csv
expect_status 1
expect_err "^thiele: column 'when', row 2: 'soon' is not a date that can be read \(write it like 2024-01-31, or use --missing"
run plot dates.thiele --over x --at when=2024-02-03 -o slice.svg
expect_done
expect_out 'when = 2024-02-03'
run plot dates.thiele --over when --range 2024-01-01,2024-06-30 -o slice.svg
expect_done
check 'the axis counts days' grep -q 'days since 2024-01-01' slice.svg

# Names with control bytes reach no terminal.
printf 'x\033[31m,y\033]0;owned\007\n1,2\n2,3.5\n3,1\n4,0\n' >control.csv
for command in 'fit control.csv --target 2 --iterations 2 -o control.thiele' 'info control.thiele' \
    'info control.thiele --json' 'fit control.csv --target nope -o no.thiele' "fit $(printf 'a\033b') --target y -o no.thiele"; do
    # shellcheck disable=SC2086
    run $command
    check 'no control bytes on standard output' test -z "$(tr -cd '\001-\010\013-\037\177' <"$out")"
    check 'no control bytes on standard error' test -z "$(tr -cd '\001-\010\013-\037\177' <"$err")"
done
run info control.thiele
expect_out 'x\\x1B\[31m'

# A pipe that nobody writes to: the deadline and the first signal end it.
mkfifo silent
sleep 30 >silent &
writer=$!
run_at=$SECONDS
run fit silent --target y --deadline 0.5 -o silent.thiele
expect_status 1
expect_err 'the deadline came while the table was being read: nothing was saved'
check 'the deadline is kept' test $((SECONDS - run_at)) -lt 5
for command in 'fit silent --target y -o silent.thiele' 'cv silent --target y' 'predict two.thiele silent' \
    'score two.thiele silent'; do
    # shellcheck disable=SC2086
    "$THIELE" $command >"$out" 2>"$err" </dev/null &
    process=$!
    sleep 0.3
    kill -TERM "$process"
    wait "$process"
    status=$?
    last="thiele $command, ended by SIGTERM"
    expect_status 1
    expect_err 'stopped by SIGTERM before there was a result'
done
kill "$writer" 2>/dev/null
expect_no_file silent.thiele

# No number of generated rows takes memory; a signal leaves no file.
room=4000000
grep -q '^THIELE_SANITIZE:BOOL=ON' "$(dirname "$THIELE")/CMakeCache.txt" && room=unlimited # shadow memory takes terabytes
(ulimit -v $room; exec "$THIELE" generate -n 100000000000 -o endless.csv) >"$out" 2>"$err" &
process=$!
sleep 0.5
kill -TERM "$process" 2>/dev/null
wait "$process"
status=$?
last="thiele generate -n 100000000000, ended by a signal"
expect_status 1
check 'no file is left' test -z "$(ls endless* 2>/dev/null)"
# --- the kernel: whichever suits the rows, the same whoever says auto
awk 'BEGIN {srand(9); print "a,b,y"; for (i = 0; i < 300; i++) {a = 6 * rand() - 3; b = int(6 * rand())
    print a "," b "," 3 * a + 0.1 * (rand() - 0.5)}}' >line.csv
run fit line.csv --target y -o k1.thiele
expect_out '^kernel +matern52\(ard\) \+ linear$'
run fit line.csv --target y --kernel auto -o k2.thiele
check "auto is the default" cmp k1.thiele k2.thiele
run fit line.csv --target y --set noise=0.01 -o k3.thiele
expect_out '^kernel +matern52\(ard\)$'
run fit line.csv --target y --compact -o k4.thiele
expect_status 0

# Labels of several classes: one kernel for all, by regression of the labels.
awk 'BEGIN {srand(5); print "a,b,c"; for (i = 0; i < 300; i++) {a = 6 * rand() - 3; b = 6 * rand() - 3
    print a "," b "," (a * a + b * b < 3 ? "in" : a > 0 ? "right" : "left")}}' >ring.csv
run fit ring.csv --target c --likelihood softmax -o ring.thiele
expect_done
expect_out '^likelihood +softmax'
expect_out 'chosen by regression of the labels: the evidence of 300 rows'
expect_out 'matern52.lengthscale\[a\]'
run score ring.thiele ring.csv
expect_out '^error rate +0(\.0[0-4]|  )'

# The noise is what the rows say: Gaussian unless another kind surely predicts better; and what was asked for.
awk 'BEGIN {srand(3); print "x,y"; for (i = 0; i < 240; i++) {x = i / 24; u = sqrt(-2 * log(1 - rand())) * cos(6.28318530718 * rand()); printf "%.4f,%.6f\n", x, sin(x) + (x < 5 ? 0.02 : 0.6) * u}}' >varied.csv
run fit varied.csv --target y -o varied.thiele
expect_done
expect_out '^likelihood +heteroscedastic'
expect_out 'chosen by predictions of 240 rows'
expect_out '^ +.*gaussian -[0-9]'
run info varied.thiele --json
expect_out '"noise_why": "by predictions of 240 rows'
expect_out '"kernel_why": "by the evidence of 240 rows'
awk 'BEGIN {srand(4); print "x,y"; for (i = 0; i < 160; i++) {x = i / 16; u = sqrt(-2 * log(1 - rand())) * cos(6.28318530718 * rand()); printf "%.4f,%.6f\n", x, sin(x) + 0.2 * u}}' >even.csv
run fit even.csv --target y -o even.thiele
expect_done
expect_out '^likelihood +gaussian'
run fit varied.csv --target y --noise gaussian --effort low -o varied.thiele
expect_done
expect_out '^method +exact'
run fit varied.csv --target y --noise cauchy -o no.thiele
expect_status 2
expect_err "--noise: 'cauchy' is not gaussian, student-t, heteroscedastic or 'auto'"
run fit varied.csv --target y --noise student-t --likelihood gaussian -o no.thiele
expect_status 2
expect_err 'give only one of --noise and --likelihood'
run fit varied.csv --target y --effort extreme -o no.thiele
expect_status 2
expect_err "--effort: 'extreme' is not low, normal or high"

finish
