#!/usr/bin/env bash
# What is set and shown is in the units of the data; contradictions are refused; constant columns; memory; progress.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 60 -o train.csv
fit() { run fit train.csv --target strength --ignore row --iterations 2 -o m.thiele "$@"; }

# --- the line of a linear mean: y = 3 + 2 year, far from year 0
awk 'BEGIN {print "year,y"; for (i = 0; i <= 30; i++) print 1000 + i "," 3 + 2 * (1000 + i) + 0.1 * sin(7 * i)}' >line.csv
printf 'year\n2000\n' >at.csv
for raw in '' --raw; do
    # shellcheck disable=SC2086
    run fit line.csv --target y --mean linear --set 'mean.constant=3,mean.slope=2' -o line.thiele --json $raw
    expect_done
    expect_that "$out" '[p["value"] for p in d["model"]["parameters"] if p["name"].startswith("mean")] == [3, 2]'
    run predict line.thiele at.csv
    expect_out '^400(3|2\.99|3\.00)'
    # shellcheck disable=SC2086
    run fit line.csv --target y --mean linear --kernel 'matern52(ard)' -o line.thiele $raw
    expect_out 'mean.slope\[year\] +(2|1\.9|2\.0)'
    expect_out 'mean.constant +-?[0-9.]{1,6}$'
done
run fit line.csv --target y --mean linear --set 'mean.constant=3' -o bad.thiele
expect_refusal 2 'mean.constant' 'mean.slope\[year\]' 'fix both' '--raw'
expect_no_file bad.thiele

# --- kernels with an origin say so
fit --kernel 'linear + se'
expect_out 'linear and polynomial kernels see each input minus its mean'
fit --kernel 'linear + se' --raw
check "raw inputs are as they are" sh -c "! grep -q 'minus its mean' '$out'"
run options --json
expect_out 'minus their'

# --- one thing is said once, and kernels say what they take
for kernel in 'se(variance=1,variance=2)' 'se(ard,ard)' 'se(dims=1,dims=2)'; do
    fit --kernel "$kernel"
    expect_refusal 2 'twice'
done
fit --kernel 'constant(ard)'
expect_refusal 2 'kernel constant .*takes dims= and.* variance$'
fit --kernel 'se(foo=1)'
expect_refusal 2 'kernel se .*takes ard, dims= and.* lengthscale, variance$'
fit --set 'noise=1,noise=2'
expect_refusal 2 "--set names 'noise' 2 times"
fit --set noise=1 --set 'noise~2'
expect_refusal 2 "--set names 'noise' 2 times"
fit --prior 'noise gamma(1, 2), noise gamma(2, 3)'
expect_refusal 2 "--prior names 'noise' 2 times"
fit --set 'lengthscale=1, lengthscale[x1]=2'
expect_status 0

# --- constant columns: left out with a line and remembered
awk -F, -v OFS=, 'NR == 1 {print $0, "k1", "k2", "k3"; next} {print $0, 1, "a", 3}' train.csv >constant.csv
run fit constant.csv --target strength --ignore row --drop-constant --iterations 2 -o drop.thiele
expect_status 0
run fit constant.csv --target strength --ignore row --iterations 2 -o drop.thiele
expect_status 0
expect_err "^thiele: warning: 3 columns are constant and left out: 'k1', 'k2', 'k3'$"
run info drop.thiele
expect_out 'left out +3 constant columns: k1, k2, k3'
run info drop.thiele --json
expect_that "$out" 'd["columns"]["dropped"] == ["k1", "k2", "k3"]'
run predict drop.thiele train.csv
expect_done
awk 'NR == 1 {printf "y,x"; for (i = 1; i <= 300; i++) printf ",a_rather_long_name_%d", i; print ""; next}
    {printf "%d,%d", NR * NR, NR; for (i = 1; i <= 300; i++) printf ",7"; print ""}' train.csv >wide.csv
run fit wide.csv --target y --iterations 2 -o drop.thiele
expect_status 0
expect_err "300 columns are constant .*'a_rather_long_name_10' and 290 more$"

# --- memory
"$THIELE" generate -n 2000 -o large.csv
run fit large.csv --target strength --ignore row --method exact --memory 32M -o bad.thiele
expect_refusal 1 '2000 rows' '[0-9.]+ MB of memory' 'of the 33\.[0-9] MB' '--memory' 'collapsed' 'variational'
run fit large.csv --target strength --inputs x1 --memory 32M --iterations 1 --deadline 3 -o m.thiele
expect_status 0
expect_out '^method +(pic|collapsed|variational): method exact would take more memory than is allowed'

# --- what is shown
fit --holdout 0.2 --prior 'noise gamma(2, 0.5)'
expect_out 'search .*iterations on all rows, [0-9]+ evaluations in all phases'
expect_out 'noise .*prior gamma\(2, 0.5\)'
run info m.thiele --json
expect_that "$out" '[p.get("prior") for p in d["parameters"]][-1] == "gamma(2, 0.5)" and d["holdout"][0]["rows"] == 12'
fit --kernel 'periodic(p=7, dims=1)' --set noise=0.3
run info m.thiele --json
expect_that "$out" '"holdout" not in d and "period=7)" in d["learned_kernel"] and d["noise"] == 0.3'
if script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "'$THIELE' fit train.csv --target strength --ignore row -o m.thiele" /dev/null 2>&1 | tr '\r' '\n' >shown
    check "the exploration promises no end" sh -c "! grep -E '^explore.*(left| of )' shown"
    check "values have a unit" sh -c "! grep -E 'value -?[0-9.]+ +[0-9]' shown"
fi

# --- columns at prediction, and decimal commas
fit
sed '1s/x1/X1/' train.csv >renamed.csv
run predict m.thiele renamed.csv
expect_refusal 1 "no column 'x1' \(is it 'X1'\?\)"
awk -F, 'NR == 1 {print "x;y"; next} {printf "%d,5;%d,25\n", NR, NR * NR}' train.csv >comma.csv
run fit comma.csv --target y -o bad.thiele
expect_refusal 1 "column 'y', row 1: '4,25' is not a number \(decimal commas"
expect_no_file bad.thiele
# What a parameter may be is said in the units of the data, as it was given: here the target is in the millions.
awk 'BEGIN { srand(1); print "x,y"; for (i = 0; i < 30; i++) { x = rand(); print x "," 1e6 * sin(3 * x) + rand() } }' >large.csv
for setting in noise=1e-95 variance=1e-95; do
    run fit large.csv --target y --set $setting -o large.thiele
    expect_refusal 2 "cannot be 1e-95: its range here is [0-9.]+e-(89|90) to"
done
run fit large.csv --target y --likelihood 'student-t(scale=1e-99)' -o large.thiele
expect_refusal 2 "'scale' cannot be 1e-99"
# A step length is refused by every fit that has no such steps.
for how in exact collapsed pic 'variational --optimizer lbfgs'; do
    # shellcheck disable=SC2086
    run fit large.csv --target y --method $how --rate 0.1 -o large.thiele
    expect_refusal 2 'has no rate'
done
finish
