#!/usr/bin/env bash
# thiele check: ranks of exact inference and of a sampler, JSON, the same on any number of threads, refusals.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 60 -o train.csv
run fit train.csv --target strength --ignore row --method exact --kernel se -o exact.thiele
run check exact.thiele --sbc 100 --rows 30
expect_done
expect_out '^verdict +Ranks are uniform as far as 100 simulations can tell'
expect_out '^simulations +100 of 30 rows by method exact$'
expect_out '^mean of f .* p [0-9.]+'
run check exact.thiele train.csv --sbc 40 --rows 20 --json --threads 1
expect_done
expect_json "$out"
expect_that "$out" 'd["uniform"] and d["simulations"] == 40 and len(d["quantities"]) == 7 and sum(d["quantities"][0]["counts"]) == 40'
cp "$out" one.json
run check exact.thiele train.csv --sbc 40 --rows 20 --json --threads 2
check "the same on two threads" cmp "$out" one.json

awk -F, 'NR == 1 { print "x,label"; next } { print $2 "," ($5 > 40 ? "high" : "low") }' train.csv >labels.csv
run fit labels.csv --target label --method ess --draws 100 --kernel se -o ess.thiele
run check ess.thiele --sbc 20 --rows 10
expect_done
expect_out 'by method ess$'

run fit train.csv --target strength --ignore row --method collapsed --inducing 10 --kernel se -o sparse.thiele
run check sparse.thiele
expect_refusal 1 'models by method collapsed cannot be checked by simulation'
run check exact.thiele --sbc 5
expect_refusal 2 'sbc'
run check exact.thiele --rows 1000
expect_refusal 2 'rows'
head -5 train.csv >few.csv
run check exact.thiele few.csv
expect_refusal 1 '4 rows to simulate at: a check needs 10 at least'
run check exact.thiele --target weight
expect_refusal 2 "predicts 'strength' and no 'weight'"
expect_clean
finish
