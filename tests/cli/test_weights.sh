#!/usr/bin/env bash
# Weights of rows: a table with weights and one with rows repeated lead to the same model; what is refused, and what
# becomes of files, updates and tables that memory does not hold.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows COUNT REPEATED: x, a category, y and a weight of 0 to 3; repeated: each row as often as that, backwards
rows() {
    awk -v count="$1" -v repeated="$2" '
    function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    BEGIN {
        seed = 5
        print "x,site,y,w"
        for (i = 0; i < count; i++) {
            x = 6 * uniform() - 3; site = uniform() < 0.5 ? "north" : "south"
            row[i] = sprintf("%.5f,%s,%.5f", x, site, sin(x) + (site == "north") + 0.4 * (uniform() - 0.5)); w[i] = i % 4
        }
        for (i = 0; i < count && !repeated; i++) print row[i] "," w[i]
        for (i = count - 1; i >= 0 && repeated; i--) for (c = 0; c < w[i]; c++) print row[i] ",1"
    }'
}
rows 60 0 >weighted.csv
rows 60 1 >repeated.csv
cut -d, -f1-3 weighted.csv >plain.csv

# --- the same model, bit for bit
for how in "--method exact" "--method variational --inducing 12" "--method pic --inducing 12 --blocks 3" \
    "--likelihood student-t --iterations 5" "--method ess --likelihood laplace --draws 20"; do
    for table in weighted repeated; do
        # shellcheck disable=SC2086
        run fit $table.csv --target y --weights w --kernel se $how -o $table.thiele
        expect_status 0
        run predict $table.thiele plain.csv -o $table-p.csv
        expect_status 0
    done
    check "$how: repeated rows should predict as weights do" cmp weighted-p.csv repeated-p.csv
done
run info weighted.thiele --json
expect_out '"weights": *"w"'

# --- weights that are all the same double the noise, and leave the function where it is
sed 's/,[0-9]*$/,2/; 1s/,2$/,w/' weighted.csv >twos.csv
run fit twos.csv --target y --weights w --method exact --kernel se -o twos.thiele
run predict twos.thiele plain.csv --latent -o twos-p.csv
run fit plain.csv --target y --method exact --kernel se -o plain.thiele
run predict plain.thiele plain.csv --latent -o plain-p.csv
check "weights of two should leave the function" awk -F, '
    NR == FNR { mean[FNR] = $1; next } FNR > 1 && ($1 - mean[FNR]) ^ 2 > 1e-4 { bad = 1 } END { exit bad }
' plain-p.csv twos-p.csv

# --- weights that sum to 1 leave each category what it is, as do those far beyond the number of rows
for weight in 0.01666667 1e6; do
    sed "s/,[0-9]*\$/,$weight/; 1s/,$weight\$/,w/" weighted.csv >all.csv
    run fit all.csv --target y --weights w --method exact --kernel se -o all.thiele
    expect_status 0
    run info all.thiele
    expect_out 'site \(2 levels\)'
    run predict all.thiele plain.csv --latent -o all-p.csv
    check "equal weights of $weight should leave the function" awk -F, '
        NR == FNR { mean[FNR] = $1; next } FNR > 1 && ($1 - mean[FNR]) ^ 2 > 1e-4 { bad = 1 } END { exit bad }
    ' plain-p.csv all-p.csv
done
run fit all.csv --target y --weights w -o all.thiele
expect_out 'likelihood *gaussian'

# --- refused
for bad in -1 nan inf ''; do
    sed "4s/,[^,]*\$/,$bad/" weighted.csv >bad.csv
    run fit bad.csv --target y --weights w -o bad.thiele
    expect_status 1
    expect_err "column 'w', row 3"
done
for bad in 1e300 1e-300; do
    sed "4s/,[^,]*\$/,$bad/" weighted.csv >bad.csv
    run fit bad.csv --target y --weights w -o bad.thiele
    expect_status 1
    expect_err "a weight must be 0 or between 1e-12 and 1e12"
done
run fit weighted.csv --target y --weights w --method dtc -o bad.thiele
expect_status 1
expect_err "'dtc' knows no weights of rows"
run fit weighted.csv --target y --weights y -o bad.thiele
expect_status 2
expect_err "column 'y' is already a target and cannot also be the weights"

# --- updates count rows once
run fit weighted.csv --target y --weights w --method collapsed --kernel se -o c.thiele
run update c.thiele weighted.csv -o u.thiele
expect_status 1
expect_err "rows of an update count once each"
run update c.thiele plain.csv -o u.thiele
expect_status 0

# --- a table that memory does not hold is read in turns
rows 150000 0 >large.csv
run fit large.csv --target y --weights w --method variational --inducing 10 --kernel se --epochs 1 --memory 25MB -o l.thiele
expect_status 0
run cv weighted.csv --target y --weights w --method exact --kernel se --folds 3
expect_status 0
finish
