#!/usr/bin/env bash
# Several targets with likelihoods of their own in one model: each as a model of its own would have it; missing values,
# columns and names of predictions, scores, updates, and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows SEED COUNT: a number, a count with an exposure, two labels and three; some of each are missing
rows() {
    awk -v seed="$1" -v count="$2" '
    function uniform() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    function normal(u, v) { u = uniform(); v = uniform(); return sqrt(-2 * log(u)) * cos(6.283185307179586 * v) }
    function poisson(m, l, k, p) { l = exp(-m); p = uniform(); for (k = 0; p > l; k++) p *= uniform(); return k }
    BEGIN {
        print "a,b,height,visits,ok,kind,hours"
        for (i = 0; i < count; i++) {
            a = 4 * uniform() - 2; b = 4 * uniform() - 2; hours = 1 + i % 3
            height = sprintf("%.4f", 500 + 100 * (sin(2 * a) + 0.1 * normal()))
            visits = poisson(hours * exp(1 + 0.8 * cos(b)))
            ok = uniform() < 1 / (1 + exp(-3 * a)) ? "yes" : "no"
            kind = sin(a) + 0.3 * normal() > 0.4 ? "red" : cos(b) + 0.3 * normal() > 0.3 ? "green" : "blue"
            if (i % 7 == 3) height = ""; if (i % 8 == 5) visits = ""; if (i % 9 == 2) ok = ""; if (i % 11 == 6) kind = ""
            printf "%.4f,%.4f,%s,%s,%s,%s,%d\n", a, b, height, visits, ok, kind, hours
        }
    }'
}
rows 3 150 >t.csv
rows 4 60 >test.csv
each="gaussian; poisson; bernoulli; softmax"
how="--kernel se --iterations 10"

# --- the same predictions, scores and files as one model for each, of the rows that have the target
for target in height visits ok kind; do
    likelihood=$(echo "$each" | tr -d ' ' | cut -d';' -f"$(echo "height visits ok kind" | tr ' ' '\n' | grep -n $target | cut -d: -f1)")
    extra="--ignore hours"
    [ $target = visits ] && extra="--exposure hours"
    ignore=$(echo "height visits ok kind" | tr ' ' '\n' | grep -v $target | paste -sd,)
    # shellcheck disable=SC2086
    run fit t.csv --target $target --likelihood "$likelihood" --inputs a,b $extra,$ignore --drop-missing $how -o $target.thiele
    [ $target = visits ] &&
        run fit t.csv --target $target --likelihood "$likelihood" --inputs a,b $extra --drop-missing $how -o $target.thiele
    expect_done
    run predict $target.thiele test.csv -o $target.csv
    expect_done
    run score $target.thiele test.csv --drop-missing --json
    expect_done
    cp "$out" $target.json
done
# shellcheck disable=SC2086
run fit t.csv --target height,visits,ok,kind --likelihood "$each" --inputs a,b --exposure hours $how --json -o m.thiele
expect_done
expect_that "$out" '[p["likelihood"] for p in d["model"]["parts"]] == ["gaussian", "poisson", "bernoulli", "softmax"]'
run predict m.thiele test.csv -o all.csv
expect_done
check "the columns say whose they are" test "$(head -1 all.csv)" = \
    "mean.height,sd.height,mean.visits,sd.visits,label.ok,p.ok.no,p.ok.yes,label.kind,p.kind.blue,p.kind.green,p.kind.red"
check "the same predictions as one model for each" cmp <(paste -d, height.csv visits.csv ok.csv kind.csv | sed 1d) <(sed 1d all.csv)
run score m.thiele test.csv --json
expect_done
check "the same scores as one model for each" python3 - "$out" <<'P'
import json, sys
both = json.load(open(sys.argv[1]))
raise SystemExit(0 if all(both[t] == json.load(open(t + ".json")) for t in both) and len(both) == 4 else 1)
P
run predict m.thiele test.csv --quantiles 0.5 --samples 1 --json
expect_done
expect_that "$out" 'set(d["predictions"][0]["height"]) == {"mean", "sd", "quantiles", "samples"}'
expect_that "$out" 'set(d["predictions"][0]["kind"]) == {"label", "probability", "samples"}'
run predict m.thiele test.csv --latent --quantiles 0.5
expect_done
check "latent functions have names" grep -q '^mean.height,sd.height,.*mean.kind.f3,sd.kind.f3,q0.5.height' "$out"
run info m.thiele
expect_done
expect_out "2 of 4: visits"
run predict m.thiele test.csv --joint j.csv -o p.csv
expect_refusal 1 "each of the 4 targets here has a model of its own"

# --- one likelihood for all; a row that is no count is refused with its target; held-out rows; a part of the time each
# shellcheck disable=SC2086
run fit t.csv --target visits,hours --likelihood poisson --inputs a,b $how --inducing 15 --holdout 0.2 -o p.thiele
expect_done
expect_out "2 of 2: hours"
run fit t.csv --target height,visits --likelihood poisson --inputs a,b -o no.thiele
expect_refusal 1 "target 'height'.*a count must be 0, 1, 2"
run fit t.csv --target height,visits --likelihood 'gaussian; poisson' --inputs a,b --deadline 2 --quiet -o m.thiele
expect_done

# --- settings and kernels of one target
# shellcheck disable=SC2086
run fit t.csv --target height,ok --likelihood 'gaussian; bernoulli' --inputs a,b --kernel 'se; matern32(ard)' --iterations 5 \
    --set 'height.noise=90' --json -o m.thiele
expect_done
expect_that "$out" 'd["model"]["parts"][0]["noise"] == 90 and d["model"]["parts"][1]["kernel"] == "matern32(ard)"'

# --- updates: rows without a target are no rows of that target; what is refused is learned by none
run update p.thiele test.csv
expect_done
run info p.thiele --json
expect_that "$out" '[p["stream"]["rows"] for p in d["parts"]] == [53, 60]'
{ head -21 test.csv; echo "1,1,1,2.5,no,red,1"; sed -n '22,$p' test.csv; } >bad.csv
run update p.thiele bad.csv
expect_status 1
expect_err "line 22.*'visits'.*a count must be"
run info p.thiele --json
expect_that "$out" 'd["parts"][1]["stream"]["rows"] == 80'

# --- cross-validation has the scores of both kinds
# shellcheck disable=SC2086
run cv t.csv --target height,ok --likelihood 'gaussian; bernoulli' --inputs a,b $how --folds 2 --json
expect_done
expect_that "$out" 'd["overall"]["smse"] < 1 and d["overall"]["error_rate"] < 0.5'

# --- what is refused
run fit t.csv --target height,ok --likelihood 'gaussian; bernoulli; poisson' --inputs a,b -o no.thiele
expect_refusal 2 "3 likelihoods were given for 2 targets"
run fit t.csv --target height,ok --likelihood 'gaussian; bernouli' --inputs a,b -o no.thiele
expect_refusal 2 "target 'ok': there is no likelihood 'bernouli'"
run fit t.csv --target height,ok --likelihood 'gaussian; bernoulli' --inputs a,b --share-kernel -o no.thiele
expect_refusal 2 "cannot share a kernel"
run fit t.csv --target height,ok --likelihood 'gaussian; bernoulli' --inputs a,ok -o no.thiele
expect_refusal 2 "'ok' is already a target and cannot also be an input"
check "nothing was saved" test ! -e no.thiele
finish
