#!/usr/bin/env bash
# Decoupled bases of several functions through the command: classes, heteroscedastic noise, a network, targets that share
# a kernel; model files, updates, held-out rows, deadlines.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows SEED COUNT: two waves, a class by them, and one of them with uneven noise
rows() {
    awk -v seed="$1" -v count="$2" '
    function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
    BEGIN {
        state = seed * 7919 + 12345
        print "a,b,class,y1,y2,uneven"
        for (i = 0; i < count; i++) {
            a = 2 * uniform() - 1; b = 2 * uniform() - 1; f = sin(3 * a) * cos(2 * b); g = cos(3 * a + b)
            r = 4 * f + normal(); s = 4 * g + normal(); t = normal()
            class = r > s && r > t ? "red" : s > t ? "green" : "blue"
            printf "%.4f,%.4f,%s,%.4f,%.4f,%.4f\n", a, b, class, f + 0.1 * normal(), g + 0.2 * normal(), \
                f + 0.1 * exp(b) * normal()
        }
    }'
}
rows 1 300 >t.csv
rows 2 150 >test.csv
rows 3 150 >more.csv
awk -F, -v OFS=, 'NR > 1 && NR % 5 == 0 { $4 = "" } NR > 1 && NR % 5 == 2 { $5 = "" } { print }' t.csv >holes.csv

# Values at which classes need no search, most of the time that a fit takes.
given='lengthscale=0.6, variance=4'

# fit OPTIONS: 60 functions of the mean, 15 of the covariance
fit() {
    rm -f m.thiele
    run fit t.csv --inputs a,b --kernel 'se(ard)' --method decoupled --mean-inducing 60 --inducing 15 -o m.thiele "$@"
}

# --- every likelihood of several functions: a file, predictions, an update
for likelihood in softmax logistic-softmax heteroscedastic 'gprn(nodes=1)'; do
    target=class more='--iterations 100'
    [ "$likelihood" = logistic-softmax ] && more='--expectation augmented'
    [ "$likelihood" = heteroscedastic ] && target=uneven
    [ "$likelihood" = 'gprn(nodes=1)' ] && target=y1,y2
    # shellcheck disable=SC2086
    fit --target $target --likelihood "$likelihood" $more --json
    expect_done
    expect_that "$out" 'd["model"]["sparse"]["inducing"] == 15 and d["model"]["sparse"]["mean_inducing"] == 75'
    run info m.thiele --json
    expect_that "$out" 'all(l["mean_basis"] == 75 for l in d["latents"]) and len(d["latents"]) > 1'
    run score m.thiele test.csv --json
    expect_done
    [ $target = class ] && expect_that "$out" 'd["error_rate"] < 0.35'
    run predict m.thiele test.csv -o p.csv
    expect_done
    run update m.thiele more.csv -o u.thiele
    expect_done
    run score u.thiele test.csv --json
    expect_done
done
# --- forms, expectations, held-out rows
for how in '--decoupled plain --iterations 30' '--own-scales --iterations 30' '--expectation qmc:64' '--share-kernel' '--holdout 0.2'; do
    # shellcheck disable=SC2086
    fit --target class --likelihood softmax --set "$given" $how
    expect_done
    run score m.thiele test.csv --json
    expect_that "$out" 'd["error_rate"] < 0.5'
done

# --- targets that share a kernel, one with holes; noises of predictions are each its own
for table in t.csv holes.csv; do
    run fit $table --inputs a,b --target y1,y2 --share-kernel --kernel 'se(ard)' --method decoupled --mean-inducing 60 \
        --inducing 15 --json -o m.thiele
    expect_done
    expect_that "$out" 'd["model"]["sparse"]["mean_inducing"] == 75'
    run score m.thiele test.csv --json
    expect_that "$out" 'd["y1"]["smse"] < 0.1 and d["y2"]["smse"] < 0.2'
    run update m.thiele more.csv -o u.thiele
    expect_done
done
run fit t.csv --inputs a,b --target y1,y2 --share-kernel --method incremental --inducing 30 --iterations 50 -o m.thiele
expect_done

# --- snapshots: a whole model early on, by steps and by sweeps; each target by itself has none before the last
for how in '--own-scales --iterations 3000' '--mean-inducing 150'; do
    rm -f s.thiele
    # shellcheck disable=SC2086
    "$THIELE" fit t.csv --inputs a,b --kernel 'se(ard)' --target class --likelihood softmax --method decoupled \
        --set "$given" --inducing 15 $how --snapshot 0.001 -o s.thiele --quiet >/dev/null 2>&1 &
    pid=$!
    while [ ! -f s.thiele ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
    run score s.thiele test.csv --json
    expect_done
    expect_that "$out" 'd["error_rate"] < 0.7'
    kill -TERM $pid 2>/dev/null
    wait $pid
    run info s.thiele --json
    expect_done
done
run fit t.csv --inputs a,b --target y1,y2 --method decoupled --snapshot 1 -o m.thiele
expect_refusal 2 'fits each target separately, and cannot save snapshots'
run fit t.csv --inputs a,b --target y1 --method variational --snapshot 1 -o m.thiele
expect_refusal 2 "method 'variational' has no snapshots: they are for the methods"

# --- deadlines
fit --target class --likelihood softmax --deadline 2
expect_done
run predict m.thiele test.csv -o p.csv
expect_done
expect_clean
finish
