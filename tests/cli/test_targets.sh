#!/usr/bin/env bash
# Several targets in one model: each by itself gives what single models give; a shared kernel; missing values; updates.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows SEED COUNT: two functions of two inputs with different units; every seventh y2 is missing in the third argument's case
rows() {
    awk -v seed="$1" -v count="$2" -v holes="${3:-0}" '
    function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    function normal(u, v) { u = uniform(); v = uniform(); return sqrt(-2 * log(u)) * cos(6.283185307179586 * v) }
    BEGIN {
        print "a,b,y1,y2"
        for (i = 0; i < count; i++) {
            a = 4 * uniform() - 2; b = 4 * uniform() - 2
            y1 = sprintf("%.5f", sin(2 * a) + 0.1 * normal())
            y2 = sprintf("%.5f", 500 + 100 * (a * cos(b) + 0.1 * normal()))
            printf "%.4f,%.4f,%s,%s\n", a, b, y1, holes && i % 7 == 3 ? "" : y2
        }
    }'
}
rows 3 240 >t.csv
rows 4 100 >test.csv
rows 5 240 1 >holes.csv

# --- the same numbers as one model for each
for method in exact collapsed fitc decoupled; do
    extra="--inducing 20"
    [ $method = exact ] && extra=
    for target in y1 y2; do
        # shellcheck disable=SC2086
        run fit t.csv --inputs a,b --target $target --method $method $extra --kernel 'matern52(ard)' --json -o $target.thiele
        expect_done
        cp "$out" $target.json
        run predict $target.thiele test.csv -o $target.csv
        expect_done
    done
    # shellcheck disable=SC2086
    run fit t.csv --inputs a,b --target y1,y2 --method $method $extra --kernel 'matern52(ard)' --json -o both.thiele
    expect_done
    expect_that "$out" 'd["model"]["likelihood"].startswith("gaussians") and d["model"]["rows"] == 240'
    cp "$out" both.json
    check "$method: the evidence is that of both" python3 - <<'P'
import json
def value(name):
    m = json.load(open(name))["model"]
    return next(m[k] for k in ("bound", "log_marginal_likelihood", "approximate_log_evidence") if k in m)
one, two, both = (value(n) for n in ("y1.json", "y2.json", "both.json"))
raise SystemExit(0 if abs(one + two - both) <= 1e-6 * (abs(one) + abs(two)) else 1)
P
    run predict both.thiele test.csv -o both.csv
    expect_done
    paste -d, y1.csv y2.csv | sed '1s/.*/mean.y1,sd.y1,mean.y2,sd.y2/' >single.csv
    check "$method: the same predictions as one model for each" cmp single.csv both.csv
    run score both.thiele test.csv --json
    expect_done
    expect_json "$out"
done

# --- one kernel and one set of inducing inputs for both
run fit t.csv --inputs a,b --target y1,y2 --share-kernel --inducing 30 --json -o m.thiele
expect_done
expect_that "$out" 'd["model"]["method"] == "variational"'
expect_that "$out" '[p["name"] for p in d["model"]["parameters"]].count("matern52.variance") == 1'
run score m.thiele test.csv
expect_done
run fit t.csv --inputs a,b --target y1,y2 --share-kernel -o m.thiele
expect_done
run fit t.csv --inputs a,b --target y1,y2 --share-kernel --method exact -o m.thiele
expect_refusal 2 "method 'exact' fits each target separately, and cannot share a kernel"

# --- values of noise in the units of each target; given ones stay
run fit t.csv --inputs a,b --target y1,y2 --set 'noise1=0.02, noise2=120' --json -o m.thiele
expect_done
expect_that "$out" '{p["name"]: p["value"] for p in d["model"]["parameters"]}["noise2"] == 120'
run fit t.csv --inputs a,b --target y1,y2 --likelihood 'gaussian(noise=[0.02,120])' --json -o m.thiele
expect_done
expect_that "$out" '{p["name"]: p["value"] for p in d["model"]["parameters"]}["noise1"] == 0.02'

# --- held-out rows, missing values of one target, a deadline, an update
for method in exact collapsed decoupled variational; do
    run fit holes.csv --inputs a,b --target y1,y2 --method $method --holdout 0.2 --deadline 20 -o m.thiele
    expect_done
    run score m.thiele test.csv --json
    expect_done
    expect_json "$out"
done
run fit t.csv --inputs a,b --target y1,y2 --inducing 20 -o m.thiele
run update m.thiele holes.csv
expect_done
run score m.thiele test.csv
expect_done

# by fitc too an update is what one model for each gives
set='lengthscale=1, variance=1'
for target in y1 y2 y1,y2; do
    noise='noise=0.01'
    [ $target = y2 ] && noise='noise=90'
    [ $target = y1,y2 ] && noise='noise1=0.01, noise2=90'
    run fit t.csv --inputs a,b --target $target --method fitc --inducing 20 --fix-inducing --kernel se --set "$set, $noise" \
        -o $target.thiele
    run update $target.thiele test.csv
    expect_done
    run predict $target.thiele test.csv -o $target.csv
done
paste -d, y1.csv y2.csv | sed '1s/.*/mean.y1,sd.y1,mean.y2,sd.y2/' >single.csv
check "updates of fitc: the same predictions as one model for each" python3 - <<'P'
import csv
one, two = (list(csv.reader(open(n)))[1:] for n in ("single.csv", "y1,y2.csv"))
far = max(abs(float(a) - float(b)) / (1 + abs(float(b))) for r, s in zip(one, two) for a, b in zip(r, s))
raise SystemExit(0 if far < 1e-8 else 1)
P

# --- a target that is out of all proportion ends an update before it, with the model as it was; or is left out
run fit t.csv --inputs a,b --target y1 --inducing 20 -o m.thiele
cp m.thiele kept.thiele
{ head -50 test.csv; echo "1,1,1e308,1"; sed -n '51,100p' test.csv; } >far.csv
run update m.thiele far.csv
expect_status 1
expect_err "line 51.*'y1'.*too far"
run predict m.thiele test.csv -o p.csv
expect_done
cp kept.thiele m.thiele
run update m.thiele far.csv --skip-bad
expect_status 0
run predict m.thiele test.csv -o p.csv
expect_done

# --- one name for both
run fit t.csv --inputs a,b --target y1 --likelihood gaussians --json -o m.thiele
expect_done
expect_that "$out" 'd["model"]["likelihood"] == "gaussian"'

# --- rows without a target contradict nobody
printf 'x,y1,y2\n1,2,\n1,2,\n2,3,4\n3,4,5\n5,1,2\n' >equal.csv
run fit equal.csv --target y1,y2 --method exact --quiet -o m.thiele
expect_done

# --- equal rows with different targets; one target without values
{ cat t.csv; sed -n 2p t.csv | awk -F, -v OFS=, '{ $4 += 1; print }'; } >twice.csv
run fit twice.csv --inputs a,b --target y1,y2 --method exact -o m.thiele
expect_status 0
expect_err "2 rows have the inputs of others and a different 'y2' .* noise of standard deviation"
check "one target differs" test "$(grep -c 'inputs of others' "$err")" -eq 1
run fit twice.csv --inputs a,b --target y1,y2 --method exact --replicates -o m.thiele
expect_status 0
expect_clean
finish
