#!/usr/bin/env bash
# The same bits on any number of threads, and in every run.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 400 -o train.csv
"$THIELE" generate -n 5000 --seed 1 -o test.csv
for name in 1 2 3 2b; do
    run fit train.csv --target strength --ignore row --restarts 1 --iterations 6 --holdout 0.2 --seed 5 \
        --threads "${name%b}" -o "$name.thiele"
    expect_status 0
    run predict "$name.thiele" test.csv --threads "${name%b}" --quantiles 0.05,0.95 --samples 2 --seed 5 -o "$name.csv"
    expect_done
    run score "$name.thiele" test.csv --threads "${name%b}" --json
    expect_done
    cp "$out" "$name.json"
done
for name in 2 3 2b; do
    for kind in thiele csv json; do
        check "$name.$kind is 1.$kind" cmp "1.$kind" "$name.$kind"
    done
done
run cv train.csv --target strength --ignore row --folds 2 --iterations 3 --threads 1 --json
cp "$out" cv1
run cv train.csv --target strength --ignore row --folds 2 --iterations 3 --threads 2 --json
check "cv is the same" cmp cv1 "$out"
run predict 1.thiele test.csv --samples 2 --seed 6 -o other.csv
expect_done
run predict 1.thiele test.csv --samples 2 --seed 5 -o same.csv
check "another seed draws other samples" test "$(cmp -s other.csv same.csv; echo $?)" -eq 1
finish
