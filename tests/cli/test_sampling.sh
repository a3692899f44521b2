#!/usr/bin/env bash
# Auxiliary variables and samplers through the command: each method fits, is described, predicts; what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {srand(3); print "x,y,label"; for (i = 0; i < 120; i++) {x = 6 * rand() - 3; f = 2 * sin(2 * x);
    y = f + 0.1 * (rand() - 0.5); if (i % 10 == 0) y += 20 * (rand() - 0.5);
    print x "," y "," (rand() < 1 / (1 + exp(-f)) ? "yes" : "no")}}' >train.csv
awk 'BEGIN {print "x,y"; for (i = 0; i < 50; i++) {x = -2.5 + 0.1 * i; print x "," 2 * sin(2 * x)}}' >clean.csv

class() { run fit train.csv --target label --ignore y --likelihood bernoulli -o m.thiele "$@"; }
real() { run fit train.csv --target y --ignore label -o m.thiele "$@"; }

# --- augmented is what auto chooses where the likelihood has it
class --json
expect_done
expect_that "$out" 'd["model"]["method"] == "augmented" and d["model"]["expectation"] == "augmented"'
class --method augmented --inducing 20 --json
expect_done
expect_that "$out" 'd["model"]["sparse"]["inducing"] == 20 and d["model"]["expectation"] == "augmented"'
class --expectation quadrature --json
expect_that "$out" 'd["model"]["method"] == "dense" and d["model"]["expectation"] == "quadrature"'

# --- outliers: robust noise finds the function, Gaussian noise does not as well
rmse() { run score m.thiele clean.csv --json; python3 -c "import json; print(json.load(open('$out'))['rmse'])"; }
real
gaussian=$(rmse)
for likelihood in student-t laplace matern32; do
    real --likelihood "$likelihood" --method augmented
    expect_done
    check "$likelihood is closer to the clean function" python3 -c "import sys; sys.exit(not $(rmse) < 0.7 * $gaussian)"
done

# --- samplers
for method in gibbs ess hmc mh; do
    class --method $method --draws 300 --json
    expect_done
    expect_that "$out" 'd["model"]["sampling"]["sampler"] == "'$method'" and 0 < d["model"]["sampling"]["kept"] <= 1000'
    run info m.thiele
    expect_out "sampling +$method, 4 chains of 300 draws"
    run predict m.thiele clean.csv
    expect_out '^label,p.no,p.yes'
done
expect_out '^(yes|no),'
class --method mh --draws 20
expect_out '(the chains did not mix|too few draws)'
class --method gibbs --draws 400
expect_done
check "gibbs mixes" sh -c "! grep -q 'did not mix' '$out'"

# --- numbers: scored, held out, with quantiles, at the rows themselves too
real --likelihood student-t --method gibbs --draws 200 --holdout 0.2 --json
expect_done
expect_that "$out" 'd["model"]["holdout"][0]["rows"] == 24 and d["model"]["sampling"]["kept"] <= 256'
run score m.thiele clean.csv --json
expect_that "$out" 'd["rmse"] < 0.5 and d["nlpd"] < 1'
run predict m.thiele train.csv --quantiles 0.1,0.9
expect_done
expect_silent
expect_out '^mean,sd,q0.1,q0.9'
run cv train.csv --target y --ignore label --likelihood laplace --method gibbs --draws 50 --folds 2
expect_done

# --- stopped before the first draw: the Gaussian posterior stays
class --method gibbs --draws 100000 --deadline 0.02
check "no draws are claimed" sh -c "! grep -q '0 draws' '$out'"
expect_err 'stopped before their first draw'

# --- the same draws on one thread and on two
class --method gibbs --draws 50 --threads 1
cp m.thiele one.thiele
class --method gibbs --draws 50 --threads 2
check "threads change no bit" cmp m.thiele one.thiele

# --- a deadline ends the chains, and there is a model
class --method hmc --draws 100000000 --burn-in 20 --deadline 1.5
expect_done
expect_out 'stopped at the deadline'

# --- refused
real --method gibbs
expect_refusal 2 "method 'gibbs' needs" 'ess or hmc'
class --likelihood bernoulli-probit --method augmented
expect_refusal 2 "'bernoulli-probit' has none"
class --method dense --draws 10
expect_refusal 2 'draws no samples'
class --method gibbs --chains 100
expect_refusal 2 'chains'
class --method gibbs --leaps 5
expect_refusal 2 'leaps'
class --method ess --step 0.1
expect_refusal 2 'step'
class --method gibbs --inducing 10
expect_refusal 2 'no inducing inputs'
class --method augmented --expectation quadrature
expect_refusal 2 'its own expectations'
real --likelihood gaussian --expectation augmented --method dense
expect_refusal 2 'no augmentation'

finish
