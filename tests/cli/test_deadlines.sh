#!/usr/bin/env bash
# Deadlines and tables that defeat a fit: what is saved is true, and no worse than a constant.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows NAME COUNT SEED EXPRESSION: x0 and x1 uniform, y by awk.
rows() {
    awk -v n="$2" -v seed="$3" "BEGIN {srand(seed); print \"x0,x1,y\"; for (i = 0; i < n; i++) {
        x0 = 6 * rand() - 3; x1 = 6 * rand() - 3; e = rand() + rand() + rand() - 1.5; y = $4
        print x0 \",\" x1 \",\" y}}" >"$1.csv"
}

# A single step would take minutes: said at once, and auto takes another method.
rows many 20000 1 'sin(2 * x0) + 0.1 * e'
run fit many.csv --target y --method exact --deadline 0.5 -o m.thiele
expect_refusal 1 'too many for method exact by this deadline' 'method variational'
expect_no_file m.thiele
rows some 1900 1 'sin(2 * x0) + 0.1 * e'
run fit some.csv --target y --deadline 2 -o m.thiele
expect_done
expect_out '^method +pic: method exact would need more time than the deadline leaves$'

# The bound of a fit that saw a part of the rows is about what the rows say.
rows rough 20000 2 'sin(15 * x0) * sin(15 * x1) + 0.1 * e'
run fit rough.csv --target y --method collapsed --inducing 50 --deadline 1 --json -o m.thiele
expect_done
bound=$(sed -nE 's/.*"bound": ([-+0-9.e]+),?$/\1/p' "$out" | head -1)
run score m.thiele rough.csv --json
expect_that "$out" "$bound / 20000 < 0.1 - d[\"nlpd\"]"

# One outlier; and targets of which the inputs say nothing.
rows outlier 1500 3 '(i == 5 ? 1e6 : sin(2 * x0) + 0.1 * e)'
rows fresh 500 4 'sin(2 * x0) + 0.1 * e'
for how in '' '--method pic'; do
    # shellcheck disable=SC2086
    run fit outlier.csv --target y --deadline 3 --quiet -o m.thiele $how
    expect_status 0
    run score m.thiele fresh.csv --json
    expect_that "$out" 'd["nlpd"] < 12 and d["coverage90"] > 0.8'
done

# Rows that all stand there twice: left out one by one they have their twins beside them.
rows once 1500 6 'sin(2 * x0) + x1 / 2 + 0.5 * e'
{ cat once.csv; tail -n +2 once.csv; } >twice.csv
rows new 500 7 'sin(2 * x0) + x1 / 2 + 0.5 * e'
run fit twice.csv --target y --method pic --deadline 3 --quiet -o m.thiele
expect_status 0
run score m.thiele new.csv --json
expect_that "$out" 'd["msll"] < -0.2 and d["coverage90"] > 0.75'
rows nothing 6000 5 'sin(3.14159 * (rand() - 0.5)) / cos(3.14159 * (rand() - 0.5))'
run fit nothing.csv --target y --deadline 1 --quiet -o m.thiele
expect_status 0
finish
