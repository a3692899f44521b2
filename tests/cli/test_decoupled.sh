#!/usr/bin/env bash
# Decoupled bases through the command: three likelihoods, both forms, basis functions with scales of their own, model
# files, deadlines and signals, few rows, and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows SEED COUNT KIND: y of 1.5 sin(2a) + b/2 with noise, as the log odds of yes, or as the log of a rate.
rows() {
    awk -v seed="$1" -v count="$2" -v kind="$3" '
    function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
    function poisson(rate,  y, p, c, u) {
        y = 0; p = c = exp(-rate); u = uniform()
        while (u > c && y < 99) { y++; p *= rate / y; c += p }
        return y
    }
    BEGIN {
        state = seed * 7919 + 12345
        print "a,b,y"
        for (i = 0; i < count; i++) {
            a = 4 * uniform() - 2; b = 4 * uniform() - 2; f = 1.5 * sin(2 * a) + b / 2
            y = kind == "bernoulli" ? (uniform() < 1 / (1 + exp(-2 * f)) ? "yes" : "no") : \
                kind == "poisson" ? poisson(exp(f)) : f + 0.1 * normal()
            printf "%.4f,%.4f,%s\n", a, b, y
        }
    }'
}
for kind in gaussian bernoulli poisson; do
    rows 1 300 $kind >$kind.csv
    rows 2 100 $kind >$kind.test.csv
done
# fit TABLE OPTIONS: 40 functions of the mean, 12 of the covariance
fit() {
    local table=$1
    shift
    rm -f m.thiele
    run fit "$table" --target y --method decoupled --mean-inducing 40 --inducing 12 -o m.thiele "$@"
}

stop() { # SIGNAL SECONDS FORM OPTIONS: sent after that long
    local signal=$1 delay=$2 form=$3 iterations=1000000
    [ "$form" = plain ] || iterations=20 # of the variational fit that comes first; sweeps are long enough
    shift 3
    rm -f m.thiele
    last="thiele fit --decoupled $form $* (SIG$signal after $delay s)"
    # In the foreground: without it timeout signals the process and then its group, and the second one ends at once.
    timeout --foreground --preserve-status -k 60 -s "$signal" "$delay" "$THIELE" fit large.csv --target y \
        --method decoupled --decoupled "$form" --iterations "$iterations" -o m.thiele "$@" >"$out" 2>"$err"
    status=$?
}
# shellcheck disable=SC2317
none_or_readable() { [ ! -e m.thiele ] || "$THIELE" info m.thiele; }

# --- every likelihood fits, is described, predicts and scores
for kind in gaussian bernoulli poisson; do
    fit $kind.csv --likelihood $kind --growth 15 --json
    expect_done
    expect_json "$out"
    expect_that "$out" 'd["model"]["method"] == "decoupled" and d["model"]["sparse"]["posterior"] == "decoupled"'
    expect_that "$out" 'd["model"]["sparse"]["inducing"] == 12 and d["model"]["sparse"]["mean_inducing"] == 52'
    expect_that "$out" '-1000 < d["model"]["bound"] < 1000'
    run info m.thiele
    expect_done
    expect_out '^sparse +12 inducing inputs, posterior decoupled, optimiser natural$'
    expect_out '^ +52 basis functions of the mean$'
    run info m.thiele --json
    expect_done
    expect_json "$out"
    expect_that "$out" 'd["latents"][0]["mean_basis"] == 52 and not d["latents"][0]["stretched"]'
    run predict m.thiele $kind.test.csv -o p.csv
    expect_done
    check "finite predictions of every row" test "$(grep -Eci '^([a-z]+,)?-?[0-9.e+-]+,[0-9.e+-]+$' p.csv)" -eq 100
    # Read again, and by a copy: the same numbers.
    cp m.thiele copy.thiele
    run predict copy.thiele $kind.test.csv -o again.csv
    check "a copy of the model predicts the same" cmp p.csv again.csv
    run score m.thiele $kind.test.csv --json
    expect_done
    expect_json "$out"
    case $kind in
    gaussian) expect_that "$out" 'd["rmse"] < 0.15 and d["coverage90"] > 0.75' ;;
    bernoulli) expect_that "$out" 'd["error_rate"] < 0.3' ;;
    poisson) expect_that "$out" 'd["smse"] < 0.8' ;;
    esac
    fit $kind.csv --likelihood $kind --growth 15 --threads 2
    run predict m.thiele $kind.test.csv -o again.csv
    check "the same fit again has the same bits" cmp p.csv again.csv
done
run predict m.thiele poisson.test.csv --latent --joint joint.csv -o p.csv
expect_done
expect_file joint.csv

# --- more functions than the small basis follow more than it does: 5 inducing inputs and 60 functions of the mean
set='lengthscale=0.7, variance=2, noise=0.01'
run fit gaussian.csv --target y --kernel se --set "$set" --method collapsed --inducing 5 -o small.thiele
run score small.thiele gaussian.test.csv --json
cp "$out" small.json
run fit gaussian.csv --target y --kernel se --set "$set" --method decoupled --mean-inducing 60 --inducing 5 -o m.thiele
expect_done
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["rmse"] < 0.5 * json.load(open("small.json"))["rmse"]'

# --- orthogonal also where the mean has fewer functions
run fit gaussian.csv --target y --method decoupled --mean-inducing 10 --inducing 20 -o m.thiele
expect_done
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["rmse"] < 0.15 and d["nlpd"] < 0'

# --- no functions of the covariance: the mean, a noise, and no update
run fit gaussian.csv --target y --method decoupled --mean-inducing 60 --inducing 0 -o m.thiele
expect_done
run info m.thiele
expect_out '^ +for predictions, which scale the variances of f by [0-9.e-]+; the noise in the bound is [0-9.]+$'
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["rmse"] < 0.15 and d["nlpd"] < 0'
run update m.thiele gaussian.test.csv -o no.thiele
expect_refusal 1 'its covariance has no basis functions'
run fit gaussian.csv --target y --method variational --inducing 0 -o no.thiele
expect_refusal 2 'only decoupled bases may have none'
expect_no_file no.thiele

# --- the plain form: at parameters that it can do with it follows the function
fit gaussian.csv --decoupled plain --kernel se --set 'lengthscale=1, variance=1, noise=0.01' --iterations 400 --json
expect_done
expect_that "$out" 'd["model"]["sparse"]["mean_inducing"] == 40 and d["model"]["sparse"]["optimizer"] == "adam"'
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["smse"] < 0.2'
fit bernoulli.csv --decoupled plain --likelihood bernoulli --iterations 50 --rate 0.05 --batch 64
expect_done

# --- scales of their own
fit gaussian.csv --own-scales --kernel 'se(ard)' --iterations 300
expect_done
run info m.thiele --json
expect_that "$out" 'd["latents"][0]["stretched"]'
run predict m.thiele gaussian.test.csv -o p.csv
cp m.thiele copy.thiele
run predict copy.thiele gaussian.test.csv -o again.csv
check "a copy of the model predicts the same" cmp p.csv again.csv
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["rmse"] < 0.3'
fit gaussian.csv --own-scales --kernel matern32 --iterations 100
expect_done
run info m.thiele --json
expect_that "$out" 'd["latents"][0]["stretched"]'
fit gaussian.csv --own-scales --kernel rq
expect_refusal 2 'need a single kernel: se, matern12, matern32 or matern52$'
fit gaussian.csv --own-scales --kernel 'se + linear'
expect_refusal 2 'need a single kernel: se'
fit gaussian.csv --own-scales --kernel se --fix-inducing
expect_refusal 2 'cannot be fixed'
expect_no_file m.thiele

# --- holdout, cross-validation
fit gaussian.csv --holdout 0.2 --json
expect_done
expect_json "$out"
fit gaussian.csv --holdout 0.2
expect_out '^held out +60 rows: RMSE 0\.1'
run cv gaussian.csv --target y --method decoupled --mean-inducing 40 --inducing 12 --folds 2
expect_done

# --- deadlines and signals: a whole model, or a sentence and none. Under a sanitizer everything takes several times as
# long, and gets as much more time.
slow=1
if grep -q __asan_init "$THIELE"; then
    slow=4
fi
rows 3 20000 gaussian >large.csv
fixed='lengthscale=1, variance=1, noise=0.01'
for form in orthogonal plain; do
    for holdout in 0 0.2; do
        start=$(date +%s)
        fit large.csv --decoupled $form --kernel se --set "$fixed" --iterations 1000000 --deadline $((2 * slow)) \
            --holdout $holdout
        expect_done
        check "within the deadline, more or less" test $(($(date +%s) - start)) -le $((6 * slow))
        run score m.thiele gaussian.test.csv --json
        expect_done
        expect_that "$out" 'd["smse"] < 0.5'
    done
    # Sweeps over many functions are long enough to be interrupted; steps of the plain form go on as it is.
    more='--mean-inducing 16000' delay=2
    [ $form = orthogonal ] || more='--mean-inducing 40 --rate 0.01' delay=$((4 * slow))
    # shellcheck disable=SC2086
    stop INT $delay $form --inducing 12 --kernel se --set "$fixed" $more
    expect_status 1
    expect_err '^thiele: stopped by Ctrl-C: the best model so far was saved to m.thiele$'
    run info m.thiele
    expect_done
    expect_out 'cancelled'
    run score m.thiele gaussian.test.csv --json
    expect_done
    expect_that "$out" 'd["smse"] < 0.9'
    # Before there is anything to keep nothing is saved.
    stop INT 0.3 $form --inducing 1000
    check "one sentence, and one of warning where what was saved is poor" \
        test "$(grep -cv 'worse than a constant' "$err")" -eq 1
    check "no result, or one that can be read" none_or_readable
    rm -f m.thiele
    run fit large.csv --target y --method decoupled --decoupled $form --deadline 0.001 -o m.thiele
    check "no result, or one that can be read" none_or_readable
done

# --- few rows, and more functions than rows
head -2 gaussian.csv >few.csv
fit few.csv
expect_refusal 1 'has 1 row: at least two are needed$'
for count in 2 5; do
    head -$((count + 1)) gaussian.csv >few.csv
    for how in '--decoupled orthogonal' '--decoupled plain' '--own-scales --kernel se(ard)'; do
        # shellcheck disable=SC2086
        fit few.csv $how --iterations 50 --quiet
        expect_done
        run predict m.thiele gaussian.test.csv -o p.csv
        expect_done
        check "finite predictions" test "$(grep -Eci '^-?[0-9.e+-]+,[0-9.e+-]+$' p.csv)" -eq 100
    done
done
run fit gaussian.csv --target y --method decoupled --mean-inducing 1000 --inducing 1000 --json -o m.thiele
expect_done
expect_that "$out" 'd["model"]["sparse"]["inducing"] == 150 and d["model"]["sparse"]["mean_inducing"] == 450'

# --- incremental: one basis that grows, and an ordinary sparse model at the end
run fit gaussian.csv --target y --method incremental --inducing 40 --growth 15 --batch 100 --iterations 400 --json -o m.thiele
expect_done
expect_that "$out" 'd["model"]["method"] == "incremental" and d["model"]["sparse"]["posterior"] == "full"'
expect_that "$out" 'd["model"]["sparse"]["inducing"] == 40'
run score m.thiele gaussian.test.csv --json
expect_that "$out" 'd["rmse"] < 0.15 and d["coverage90"] > 0.75'
run fit bernoulli.csv --target y --likelihood bernoulli --method incremental --inducing 20 --own-scales --kernel se \
    --iterations 100 -o m.thiele
expect_done
run score m.thiele bernoulli.test.csv --json
expect_that "$out" 'd["error_rate"] < 0.3'
run fit gaussian.csv --target y --method incremental --mean-inducing 40 -o m.thiele
expect_refusal 2 "^thiele: method 'incremental' has no basis of the mean alone"
run fit gaussian.csv --target y --method incremental --inducing-from random -o m.thiele
expect_refusal 2 'incremental basis functions come from the rows of each step'

# --- what is refused, in one sentence
rm -f m.thiele
for option in '--growth 4' '--mean-inducing 4' '--decoupled plain' --own-scales; do
    for method in exact variational pic auto; do
        # shellcheck disable=SC2086
        run fit gaussian.csv --target y --method $method $option -o m.thiele
        expect_refusal 2 '(is|are) for the methods? decoupled'
    done
done
fit gaussian.csv --decoupled nonsense
expect_refusal 2 "^thiele: 'nonsense' is not a form of decoupled bases: use plain or orthogonal$"
fit gaussian.csv --posterior diag
expect_refusal 2 "method 'decoupled' has no posterior families"
fit gaussian.csv --optimizer adam
expect_refusal 2 "method 'decoupled' has no choice of optimiser"
fit gaussian.csv --epochs 3
expect_refusal 2 "method 'decoupled' has no epochs"
fit gaussian.csv --rate 0.1
expect_refusal 2 'orthogonal decoupled bases have no rate'
fit gaussian.csv --decoupled plain --inducing-from random
expect_refusal 2 'plain decoupled bases come from the rows of each step'
fit gaussian.csv --anytime
expect_refusal 2 "method 'decoupled' has no blocks"
fit gaussian.csv --chains 3
expect_refusal 2 "method 'decoupled' has no chains"
for option in --mean-inducing --growth; do
    for value in 0 -1 many; do
        fit gaussian.csv $option $value
        expect_refusal 2 "^thiele: $option: "
    done
done
expect_no_file m.thiele
expect_clean
finish
