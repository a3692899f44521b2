#!/usr/bin/env bash
# Sparse regression by blocks through the command: every model, exact and anytime; snapshots that others read while the
# fit goes on, and after it was killed; few rows and odd ones; what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 3000 --seed 1 -o train.csv
"$THIELE" generate -n 200 --seed 2 -o test.csv
columns="--target strength --ignore row,site"
# shellcheck disable=SC2086
fit() {
    rm -f m.thiele
    # First guesses near the truth: the exploration is short.
    run fit train.csv $columns --set 'lengthscale~1, variance~100, noise~4' --inducing 40 -o m.thiele "$@"
}

# --- every model fits, is described, predicts and scores, exact and anytime
for method in sor dtc fitc fic pitc pic '0.3 fitc + 0.7 dtc' '0.5 pitc + 0.2 fitc + 0.3 dtc'; do
    for how in '' --anytime; do
        # shellcheck disable=SC2086
        fit --method "$method" --blocks 12 --json $how
        expect_done
        expect_json "$out"
        expect_that "$out" 'd["model"]["method"] == "'"$method"'" and d["model"]["blocks"]["blocks"] == 12'
        expect_that "$out" 'd["model"]["blocks"]["inducing"] == 40 and d["model"]["blocks"]["passes"] == 1'
        expect_that "$out" 'd["model"]["blocks"]["anytime"] == ("'"$how"'" != "")'
        expect_that "$out" '(d["model"]["blocks"]["held_out_rmse"] is not None) == ("'"$how"'" != "")'
        run info m.thiele
        expect_done
        expect_out '^blocks +40 inducing inputs, 12 blocks'
        run info m.thiele --json
        expect_json "$out"
        run predict m.thiele test.csv -o p.csv
        expect_done
        check "finite predictions of every row" test "$(grep -Eci '^-?[0-9.e+-]+,[0-9.e+-]+$' p.csv)" -eq 200
        run score m.thiele test.csv --json
        expect_done
        expect_json "$out"
        expect_that "$out" 'd["rmse"] < 3 and (d["coverage90"] > 0.75 or "sor" in "'"$method"'")'
    done
done

# --- the words are those of what the number is
fit --method fitc
expect_out 'evidence +log marginal likelihood of the approximate model \(not a bound\) -[0-9.]+$'
fit --method dtc --json
expect_that "$out" 'd["model"]["bound"] < 0 and "approximate_log_evidence" not in d["model"]'
fit --method pic --json
expect_that "$out" 'd["model"]["approximate_log_evidence"] < 0 and "bound" not in d["model"]'
fit --method dtc
expect_out 'evidence +log marginal likelihood, lower bound'
fit --method pic --anytime
expect_out 'approximate model \(not a bound\) -[0-9.]+, for the 2[0-9]{3} rows that were learned from'
expect_out 'RMSE .* on rows held out of some blocks'
fit --method fitc --anytime --schedule 1,1,0.7 --blocks 20
expect_done
expect_out 'estimated from the blocks seen'
fit --method fitc --anytime --optimizer gradient --blocks 20 --step-blocks 2 --epochs 5 --quiet
expect_done
fit --method pic --holdout 0.2 --anytime --json
expect_done
expect_that "$out" 'd["model"]["holdout"][0]["rows"] == 600 and d["model"]["holdout"][0]["rmse"] < 3'
# shellcheck disable=SC2086
run cv train.csv $columns --method pitc --inducing 20 --blocks 10 --folds 2
expect_done
fit --method fitc --log steps.jsonl --anytime
expect_file steps.jsonl

# --- blended across blocks, and what the file holds
fit --method pic
expect_out 'contains +3000 training rows of 2 inputs with their targets \([0-9.]+ kB\)'
expect_out 'where blocks meet, predictions jump by [0-9.e-]+ standard deviations \(median of [0-9]+ points'
run info m.thiele --json
expect_that "$out" 'd["training_rows"]["rows"] == 3000 and d["training_rows"]["targets"] and d["blocks"]["jumps"]["points"] > 0'
expect_that "$out" 'd["file_bytes"] > d["training_rows"]["bytes"] == 8 * 3 * 3000'
run score m.thiele test.csv --blend --json
expect_done
expect_that "$out" 'd["rmse"] < 3'
run predict m.thiele test.csv --blend --joint joint.csv
expect_refusal 1 'no joint distribution'

# --- the same bytes again, but for the seconds that it took
numbers() { python3 -c 'import sys, struct; raw = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(raw[8 + struct.unpack("<Q", raw[:8])[0]:])' "$1"; }
if have_python; then
    for threads in 1 2; do
        fit --method pic --anytime --threads $threads
        numbers m.thiele >numbers.$threads
    done
    check "threads change no number" cmp numbers.1 numbers.2
    rm -f numbers.?
fi

# --- snapshots: a whole model early on, that loads while the fit goes on
"$THIELE" generate -n 20000 --seed 3 -o large.csv
# shellcheck disable=SC2206
slow=(fit large.csv $columns --method fitc --inducing 150 --blocks 1000 --step-blocks 1 --anytime --schedule 1,1,0.7
    --epochs 1000 --snapshot 0.2)
appears() { # FILE: within half a minute
    for _ in $(seq 300); do
        [ -s "$1" ] && return 0
        sleep 0.1
    done
    return 1
}
last="thiele ${slow[*]} (in the background)"
"$THIELE" "${slow[@]}" -o s.thiele --quiet >/dev/null 2>slow.err &
training=$!
check "a snapshot appears" appears s.thiele
for _ in 1 2 3; do
    run score s.thiele test.csv --json
    expect_done
    expect_that "$out" 'd["rows"] == 200'
    sleep 0.3
done
check "the fit still goes on" kill -0 $training
# SIGTERM ends like a deadline: a model is saved.
kill -TERM $training
wait $training
status=$?
last="thiele ${slow[*]} (SIGTERM)"
expect_status 1
check "it says so" grep -q 'stopped by SIGTERM: the best model so far was saved to s.thiele' slow.err
run score s.thiele test.csv --json
expect_done
expect_that "$out" 'd["rmse"] < 3'
expect_clean

# --- killed at any moment: the newest snapshot is whole
for moment in 1 2 3 4 5 6 7 8 9 10; do
    "$THIELE" "${slow[@]}" --snapshot 0.001 -o killed.thiele --quiet >/dev/null 2>&1 &
    training=$!
    appears killed.thiele
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    kill -KILL $training
    wait $training 2>/dev/null
    last="thiele ${slow[*]} (killed, $moment)"
    run info killed.thiele
    expect_done
    run score killed.thiele test.csv --json
    expect_done
done
# A new fit beside what a killed one may have left, which nobody takes for a model of that name.
"$THIELE" "${slow[@]}" -o killed.thiele --quiet --deadline 1 >/dev/null 2>"$err"
status=$?
expect_done
run info killed.thiele
expect_done
rm -f killed.thiele*

# --- many rows at once are predicted as they are a few at a time
fit --method pic --blocks 30
run predict m.thiele large.csv -o all.csv
expect_done
check "all of them" test "$(wc -l <all.csv)" -eq 20001
{ head -1 large.csv; sed -n 9002,9101p large.csv; } >part.csv
run predict m.thiele part.csv -o some.csv
sed -n 9002,9101p all.csv >want.csv
sed 1d some.csv >got.csv
check "the same predictions" python3 -c '
for got, want in zip(open("got.csv"), open("want.csv"), strict=True):
    for g, w in zip(got.split(","), want.split(",")):
        assert abs(float(g) - float(w)) < 1e-7 * abs(float(w)), (got, want)'
run score m.thiele large.csv --json
expect_done
expect_that "$out" 'd["rows"] == 20000 and d["rmse"] < 3'

# --- a deadline ends it near, with a model
for method in fitc pic; do
    # shellcheck disable=SC2086
    run fit large.csv $columns --kernel 'matern52(ard)' --method $method --anytime --deadline 2 -o d.thiele --json
    expect_done
    expect_that "$out" 'd["seconds"] < 6'
    run score d.thiele test.csv --json
    expect_that "$out" 'd["rmse"] < 6'
done
# --- so do rows that join after they were held out
# shellcheck disable=SC2086
run fit large.csv $columns --kernel 'matern52(ard)' --method fitc --inducing 300 --anytime --holdout 0.2 --deadline 3 \
    -o d.thiele --json
expect_done
run score d.thiele test.csv --json
expect_that "$out" 'd["rmse"] < 6'

# --- other likelihoods, by sites of the rows: the same bits on any number of threads, and as good as others
awk 'BEGIN {srand(4); print "a,b,k,c"; for (i = 0; i < 1200; i++) {a = 6 * rand() - 3; b = 6 * rand() - 3
    f = sin(1.5 * a) + 0.3 * b; l = exp(-exp(f)); p = rand(); k = 0; while (p > l) {p *= rand(); k++}
    print a "," b "," k "," (f + rand() - rand() > 0 ? "yes" : "no")}}' >counts.csv
for method in fitc pitc pic; do
    for threads in 1 $([ $method = pic ] && echo 2 5); do
        run fit counts.csv --target k --inputs a,b --likelihood poisson --method $method --inducing 30 --blocks 6 \
            --epochs 8 --threads $threads -o "sites$threads.thiele"
        expect_status 0
    done
    run score sites1.thiele counts.csv --json
    expect_that "$out" 'd["nlpd"] < 1.45 and d["coverage90"] > 0.85'
done
check "the same bits on 2 threads" cmp sites1.thiele sites2.thiele
check "the same bits on 5 threads" cmp sites1.thiele sites5.thiele
run update sites1.thiele counts.csv -o further.thiele
expect_done
run score further.thiele counts.csv --json
expect_that "$out" 'd["nlpd"] < 1.45'
run fit counts.csv --target c --inputs a,b --likelihood softmax --method pic --inducing 30 --epochs 10 -o s.thiele --json
expect_status 0
run score s.thiele counts.csv --json
expect_that "$out" 'd["error_rate"] < 0.3'
run fit counts.csv --target k --inputs a,b --likelihood poisson --method pic --anytime --schedule 1,1,1 -o bad.thiele
expect_refusal 2 'need Gaussian noise and a single target'

# --- a full disk: one sentence, and no model
if [ -w /dev/full ]; then
    # shellcheck disable=SC2086
    run fit train.csv $columns --method fitc --anytime --snapshot 0.01 -o /dev/full
    expect_status 1
    expect_err '/dev/full'
fi

# --- few rows, equal rows, one column, constant columns
for rows in 1 2 5; do
    head -$((rows + 1)) train.csv >few.csv
    for method in sor fitc pic '0.5 fitc + 0.5 pitc'; do
        for how in '' --anytime; do
            # shellcheck disable=SC2086
            run fit few.csv --target strength --inputs x1 --method "$method" --inducing 100 --blocks 50 $how -o f.thiele
            if [ "$rows" -eq 1 ]; then
                expect_refusal 1
                continue
            fi
            expect_done
            run predict f.thiele test.csv -o p.csv
            expect_done
        done
    done
done
{ head -30 train.csv; sed -n 2,30p train.csv; } >twice.csv
awk -F, -v OFS=, '{print $0, NR == 1 ? "same" : 7}' train.csv | head -100 >constant.csv
for method in dtc fic pitc pic; do
    # shellcheck disable=SC2086
    run fit twice.csv $columns --method $method --blocks 5 --kernel 'matern52(ard)' -o f.thiele
    expect_status 0
    expect_err 'noise ended at its lower limit'
    # shellcheck disable=SC2086
    run fit constant.csv $columns --method $method --blocks 5 -o f.thiele
    expect_status 0
    expect_err "left out: 'same'"
    run predict f.thiele constant.csv -o p.csv
    expect_status 0
done

# --- blocks by a column of the table: no input, looked up again, and not needed by predictions
run fit train.csv --target strength --ignore row --partition site --inducing 40 --iterations 10 -o m.thiele
expect_done
expect_out '^method +pic'
expect_out "^ +one block for each value of 'site'$"
expect_out '^inputs +x1, x2$'
run score m.thiele test.csv --json
expect_that "$out" 'd["rmse"] < 3'
cut -d, -f2,3 test.csv >bare.csv
run predict m.thiele bare.csv -o bare_out.csv
expect_status 0
check "the absence of the column is said" grep -q "no column 'site' (the partition)" "$err"
run predict m.thiele test.csv -o p.csv
check "the column should make a difference" sh -c '! cmp -s p.csv bare_out.csv'
run score m.thiele bare.csv
expect_refusal 1 "no column"
sed 's/south/moon/' test.csv >unseen.csv
run predict m.thiele unseen.csv -o p.csv
expect_done
run update m.thiele unseen.csv -o further.thiele
expect_done
run cv train.csv --target strength --ignore row --partition site --folds 2 --inducing 20 --iterations 3
expect_status 0
awk 'BEGIN { print "id,half,x,y"; for (i = 1; i <= 12000; i++) print i "," (i > 6000) "," i / 100 "," sin(i / 100) }' >many.csv
run fit many.csv --target y --ignore id --partition half --inducing 10 --iterations 1 --memory 250M --threads 1 -o m.thiele
expect_refusal 1 "the largest block by column 'half' has 6000 rows" '--memory'
run fit many.csv --target y --partition id -o m.thiele
expect_refusal 1 "column 'id' has more than 10000 different values, too many for blocks or categories"
run fit train.csv --target strength --ignore row --partition site --method fitc -o m.thiele
expect_refusal 2 'a partition is for pitc and pic'

# --- refused
# shellcheck disable=SC2086
run fit train.csv $columns --method exact --blocks 5 -o m.thiele
expect_refusal 2 "'exact' has no blocks"
fit --method collapsed --anytime
expect_refusal 2 "'collapsed' has no blocks"
fit --method fitc --schedule 1,1,1
expect_refusal 2 'add --anytime'
fit --method fitc --step-blocks 2
expect_refusal 2 'add --anytime'
fit --method fitc --snapshot 1
expect_refusal 2 'add --anytime'
fit --method pic --posterior diag
expect_refusal 2 "'pic' has no posterior families"
fit --method pic --batch 100
expect_refusal 2 "'pic' has no batches"
run fit train.csv --target row --inputs x1,x2 --method dtc --likelihood poisson -o m.thiele
expect_refusal 2 "'dtc' is for Gaussian noise"
fit --method fitc --optimizer adam
expect_refusal 2 "does not have the optimiser 'adam'"
fit --method fitc --draws 10
expect_refusal 2 'has no chains'
fit --method '0.5 fitc + 0.6 dtc'
expect_refusal 2 'sum to 1.1 and must sum to 1'
fit --method '0.5 fitc + 0.5 pic'
expect_refusal 2 'pic predicts differently'
fit --method '0.5 fitc + 0.5 nonsense'
expect_refusal 2 'nonsense'
fit --method '0.5 nonsense + 0.5 fitc'
expect_refusal 2 'nonsense'
fit --method fitc --anytime --step-blocks 0
expect_refusal 2 '--step-blocks: 0 is out of range \(1 to 8, in blocks\)'
fit --method fitc --anytime --step-blocks 9
expect_refusal 2 '--step-blocks: 9 is out of range'
fit --method fitc --blocks 0
expect_refusal 2 '--blocks: 0 is out of range'
for schedule in 1 1,1 1,1,1,1 1,1,0 2,1,1 1,1,2 1,x,1 nan,1,1 ,,; do
    fit --method fitc --anytime --schedule "$schedule"
    expect_refusal 2 'is not a schedule'
done
fit --method fitc --anytime --snapshot 0
expect_refusal 2 '--snapshot: 0 is out of range'
fit --method fitc --anytime --snapshot 1 -o no/such/folder/m.thiele
expect_refusal 1 'no/such/folder'
expect_no_file m.thiele
expect_clean
finish
