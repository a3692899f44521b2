#!/usr/bin/env bash
# Models that go on learning: from a table, standard input, a file that grows; signals, snapshots, bad lines, memory.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 600 -o first.csv
"$THIELE" generate -n 5000 --seed 1 -o more.csv
"$THIELE" generate -n 500 --seed 2 -o test.csv
run fit first.csv --target strength --ignore row --method collapsed --inducing 40 --iterations 15 -o base.thiele
expect_status 0

# From a file and from standard input: the same model, and the first one stays when another name is given.
cp base.thiele kept.thiele
run update base.thiele more.csv -o file.thiele
expect_done
expect_out '^stream  *5000 rows learned since the fit$'
expect_out '5000 rows, each predicted before it was learned: RMSE [0-9.]+, NLPD [0-9.]+'
expect_out '^learned  *5000 rows in '
check "the model itself should stay" cmp base.thiele kept.thiele
run_from more.csv update base.thiele - -o stdin.thiele --json
expect_done
expect_json "$out"
expect_that "$out" 'd["rows"] == 5000 and d["skipped"] == 0 and d["model"]["stream"]["rows"] == 5000'
expect_that "$out" 'd["model"]["stream"]["prequential"][0]["rmse"] < 2 and d["saved"] == "stdin.thiele"'
check "file and standard input should give the same model" cmp file.thiele stdin.thiele
for threads in 1 3; do
    run update base.thiele more.csv -o threads.thiele --threads $threads
    check "$threads threads should give the same model" cmp file.thiele threads.thiele
done
run score base.thiele test.csv --json
cp "$out" before.json
run score file.thiele test.csv --json
cp "$out" after.json
if have_python; then
    check "new rows should help" python3 -c '
import json
assert json.load(open("after.json"))["nlpd"] < json.load(open("before.json"))["nlpd"]'
fi
run info file.thiele
expect_done
expect_out '^stream  *5000 rows'
# In place, by halves.
head -2501 more.csv >half1.csv
{ head -1 more.csv; tail -2500 more.csv; } >half2.csv
run update kept.thiele half1.csv
expect_done
run_from half2.csv update kept.thiele -
expect_done
expect_out '^stream  *5000 rows learned since the fit$'
expect_clean
run_from more.csv update base.thiele - --skip 4000 -o skip.thiele --json
expect_that "$out" 'd["rows"] == 1000'

# Rows that join blocks, which are cut as they grow: small batches, and a file in the middle.
run fit first.csv --target strength --ignore row,site --method pic --inducing 20 --blocks 4 --iterations 15 -o pic.thiele
expect_done
run score pic.thiele test.csv --json
cp "$out" before.json
run update pic.thiele half1.csv -o pic1.thiele
expect_done
run update pic1.thiele half2.csv --batch 100
expect_done
expect_out '^stream  *5000 rows learned since the fit$'
run score pic1.thiele test.csv --json
cp "$out" after.json
if have_python; then
    check "new rows should help blocks too" python3 -c '
import json
assert json.load(open("after.json"))["nlpd"] < json.load(open("before.json"))["nlpd"]'
fi
for threads in 1 3; do
    run update pic.thiele half1.csv -o threads$threads.thiele --threads $threads
done
check "threads should make no difference to blocks" cmp threads1.thiele threads3.thiele

# A stream from the beginning.
run_from more.csv fit - --stream --warm 800 --target strength --ignore row --inducing 30 --iterations 10 -o s.thiele --json
expect_done
expect_that "$out" 'd["rows"] == 4200 and d["model"]["rows"] == 800'
run score s.thiele test.csv
expect_done
run_from first.csv fit - --stream --target strength --ignore row --iterations 5 -o short.thiele --json
expect_done
expect_that "$out" 'd["rows"] == 0 and d["model"]["rows"] == 600'

# Decoupled bases: from the beginning of a stream, then from files, both forms; forgetting; any number of threads.
# 30 steps of the plain form end worse than a constant, which is said unless it is quiet.
# Few kept rows, so that learning from them is quick.
bases='--method decoupled --mean-inducing 80 --inducing 30 --keep 800 --quiet'
for form in orthogonal plain; do
    # shellcheck disable=SC2086
    run_from more.csv fit - --stream --warm 60 --target strength --ignore row $bases --decoupled $form --iterations 30 \
        --window 1000 --log steps.jsonl -o d.thiele --json
    expect_done
    expect_that "$out" 'd["rows"] == 4940 and d["model"]["rows"] == 60 and d["model"]["method"] == "decoupled"'
    expect_that "$out" 'd["model"]["sparse"]["posterior"] == "decoupled" and d["model"]["sparse"]["mean_inducing"] == 90'
    if have_python; then
        check "the prequential error of $form bases should fall" python3 -c '
import json
error = [row["prequential_error"] for row in map(json.loads, open("steps.jsonl")) if row["phase"] == "stream"]
assert error[-1] < 0.9 * error[0], error'
    fi
    # shellcheck disable=SC2086
    run fit first.csv --target strength --ignore row $bases --decoupled $form --iterations 30 -o d.thiele
    expect_done
    for threads in 1 3; do
        run update d.thiele more.csv --keep 800 -o d$threads.thiele --threads $threads
        expect_done
        expect_out 'posterior decoupled'
        expect_out '^ +110 basis functions of the mean$'
        expect_out '^stream  *5000 rows learned since the fit$'
    done
    check "the same $form model with any number of threads" cmp d1.thiele d3.thiele
    run score d.thiele test.csv --json
    cp "$out" before.json
    run score d1.thiele test.csv --json
    expect_that "$out" 'd["nlpd"] < json.load(open("before.json"))["nlpd"]'
    # By halves, in place; the second half forgets.
    run update d.thiele half1.csv --keep 800
    expect_done
    run_from half2.csv update d.thiele - --forget 1000 --keep 800
    expect_done
    expect_out '^stream  *5000 rows learned since the fit; about the last 1000 count$'
    run score d.thiele test.csv
    expect_done
done
expect_clean

# Lines that are no rows: those before are learned and saved.
sed '1001s/.*/1,2,3/' more.csv >ragged.csv
run_from ragged.csv update base.thiele - -o bad.thiele
expect_refusal 1 'standard input, row 1000 \(line 1001\): 3 fields, but 5 are expected' '999 rows before it are learned and saved to bad.thiele'
run info bad.thiele
expect_out '^stream  *999 rows'
sed -e '1001s/^[^,]*,[^,]*/nothing,nothing/' -e '1501s/^[^,]*,[^,]*/1e999,1e999/' -e '2001s/.*/"/' more.csv >text.csv
run_from text.csv update base.thiele - -o bad.thiele
expect_refusal 1 "standard input, line 1001: column '.*', row 1000: 'nothing' is not a number" '999 rows before it'
run update base.thiele text.csv --skip-bad -o bad.thiele --json
expect_done
expect_that "$out" 'd["rows"] == 4997 and d["skipped"] == 3'
run_from ragged.csv update base.thiele - --skip-bad -o bad.thiele
expect_done
expect_out '1 rows were left out'
printf 'x1,x2,site,strength,row\n1,,north,30,1\n1,1,north,30,2\n' >missing.csv
cp base.thiele kept.thiele
run_from missing.csv update kept.thiele -
expect_refusal 1 "line 2: column 'x2', row 1: no value"
check "nothing was learned: the model should stay" cmp base.thiele kept.thiele
run_from missing.csv update base.thiele - --drop-missing -o bad.thiele --json
expect_that "$out" 'd["rows"] == 1 and d["skipped"] == 0'
printf 'x1,x2,site,strength\n1,1,moon,30\n' >unseen.csv
run_from unseen.csv update base.thiele - -o bad.thiele --unseen error
expect_refusal 1 "'moon'"
run_from unseen.csv update base.thiele - -o bad.thiele
expect_status 0
expect_err "column 'site' has values that training never saw: they count as 'other'"
run_from unseen.csv update base.thiele - -o bad.thiele --unseen zero
expect_done

# What cannot be updated, or is none.
run fit first.csv --target strength --ignore row --method exact --iterations 3 -o exact.thiele
run update exact.thiele more.csv
expect_refusal 1 "a model by method 'exact' cannot be updated" '--inducing M'
run fit first.csv --target strength --ignore row --method pic --inducing 20 --iterations 3 -o pic.thiele
run update pic.thiele more.csv --forget 500
expect_refusal 1 "a model by method 'pic' keeps all its rows and cannot forget any" 'pitc'
printf 'x1,strength\n1,2\n' >columns.csv
run update base.thiele columns.csv
expect_refusal 1 "no column 'x2', 'site'"
run update base.thiele more.csv -o -
expect_refusal 2 'a model needs a file'
run update base.thiele
expect_refusal 2 'DATA'
run_from /dev/null update base.thiele - -o none.thiele
expect_refusal 1 'standard input is empty'
expect_no_file none.thiele
run update base.thiele more.csv --forget 0.5
expect_refusal 2 'forget'
run update base.thiele more.csv --half-life 5 -o none.thiele
expect_refusal 2 'needs both the column of times'
run fit first.csv --target strength --ignore row --forget 100 -o none.thiele
expect_refusal 2 'add --stream'
run fit first.csv --target strength --ignore row --half-life 5 --time row -o none.thiele
expect_refusal 2 'add --stream'
expect_no_file none.thiele

# By time: the column is no input, and the clock goes on from the file.
run_from first.csv fit - --stream --target strength --time row --half-life 500 --warm 300 --method collapsed --inducing 20 --iterations 3 -o timed.thiele
expect_done
expect_out "counts half as much after 500 by column 'row'"
check "the column of times should be no input" test -z "$(grep '^inputs.*row' "$out")"
run update timed.thiele more.csv --time row --half-life 500
expect_done
run info timed.thiele --json
expect_out '"clock": '

# A file that grows, until SIGTERM: that is its end, not a failure.
head -1001 more.csv >grow.csv
last="thiele update grow.csv --follow"
"$THIELE" update base.thiele grow.csv --follow -o follow.thiele --snapshot 0.1 --json >"$out" 2>"$err" &
process=$!
sleep 0.7
sed -n '1002,3001p' more.csv >>grow.csv
sleep 1.2
check "a snapshot has the rows so far" sh -c "'$THIELE' info follow.thiele | grep -q 'stream *3000 rows'"
printf '%s' "$(sed -n 3002p more.csv)" >>grow.csv # not a whole line yet
sleep 0.5
kill -TERM $process
wait $process
status=$?
expect_done
expect_that "$out" 'd["rows"] == 3000 and d["model"]["stream"]["stop"] == "cancelled"'
run update base.thiele grow.csv --follow --deadline 0.5 -o follow.thiele --json
expect_done
expect_that "$out" 'd["model"]["stream"]["stop"] == "deadline"'

# Standard input that does not end: SIGTERM keeps what was learned.
mkfifo pipe
last="thiele update - <pipe"
{ cat more.csv; sleep 20; } >pipe &
writer=$!
"$THIELE" update base.thiele - -o term.thiele <pipe >"$out" 2>"$err" &
process=$!
sleep 1
kill -TERM $process
wait $process
status=$?
expect_status 1
expect_err '^thiele: stopped by SIGTERM: the 5000 rows learned so far are in term.thiele$'
run info term.thiele
expect_out '^stream  *5000 rows'
kill $writer 2>/dev/null
wait $writer 2>/dev/null

# Killed, the last snapshot is whole, and the stream goes on from it.
endless() { # a header, then rows without end
    cat more.csv
    while tail -n +2 more.csv 2>/dev/null; do :; done
}
for delay in 0.4 0.7 1.0; do
    mkfifo "pipe$delay" # another one each time: what is left in a pipe is for the next who reads it
    endless >"pipe$delay" 2>/dev/null &
    writer=$!
    last="thiele fit - --stream, killed after $delay s"
    cp base.thiele killed.thiele
    "$THIELE" update killed.thiele - --snapshot 0.01 <"pipe$delay" >"$out" 2>"$err" &
    process=$!
    sleep "$delay"
    kill -KILL $process
    wait $process 2>/dev/null
    wait $writer 2>/dev/null
    status=0
    run score killed.thiele test.csv
    expect_done
    run info killed.thiele
    expect_out '^stream  *[0-9]+ rows'
    run update killed.thiele more.csv
    expect_done
done
rm -f ./*.tmp* killed.thiele.*

# Memory does not grow with the stream. (AddressSanitizer keeps what is freed for a while.)
if have_python && ! grep -q __asan_init "$THIELE"; then
    cat >memory.py <<'END'
"""The largest resident size in KB of a command that is fed generated rows, looked up while it runs."""
import re, subprocess, sys, time
thiele, rows = sys.argv[1:3]
feed = subprocess.Popen([thiele, "generate", "-n", rows, "--seed", "3"], stdout=subprocess.PIPE)
update = subprocess.Popen([thiele, "update", "large.thiele", "-", "-o", "m.thiele", "--threads", "1", "--snapshot", "0.1"],
                          stdin=feed.stdout, stdout=subprocess.DEVNULL)
most = 0
while update.poll() is None:
    found = re.search(r"VmHWM:\s*(\d+)", open(f"/proc/{update.pid}/status").read())
    most = int(found.group(1)) if found else most
    time.sleep(0.01)
feed.stdout.close()
feed.wait()
assert update.returncode == 0
print(most)
END
    # A model of some size: the kernel counts resident pages to some hundred KB only.
    "$THIELE" fit first.csv --target strength --ignore row --inducing 150 --iterations 1 -o large.thiele >/dev/null
    few=$(python3 memory.py "$THIELE" 200000)
    many=$(python3 memory.py "$THIELE" 1000000)
    last="memory: $few KB after 200,000 rows, $many KB after 1,000,000"
    check "memory should be flat" test "$((many * 100))" -le "$((few * 105))"
    echo "$last"
fi
finish
