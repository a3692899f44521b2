#!/usr/bin/env bash
# Hard cases through every method: equal inducing inputs, equal rows, extreme length-scales, likelihoods that are minus
# infinity, a batch larger than the table, more inducing inputs than rows, constant targets, one class, a prior so wide
# that rates overflow. Each gives a model of finite numbers that predicts and scores, or one sentence and no model.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

PLUGIN=$(dirname "$THIELE")/examples/plugin_censored.so
awk 'BEGIN {
    srand(11)
    print "a,b,y,yes,count,kind,flat,seven,one"
    for (i = 1; i <= 40; i++) {
        a = 6 * rand() - 3; b = 6 * rand() - 3; f = 2 * sin(a) + 0.5 * b; e = rand() + rand() + rand() - 1.5
        kind = (f + e > 1) ? "red" : ((f - e < -1) ? "blue" : "green")
        printf("%.4f,%.4f,%.4f,%s,%d,%s,7.5,7,yes\n", a, b, f + 0.2 * e, (f + e > 0) ? "yes" : "no", exp(f / 2) + rand(),
            kind)
    }
}' >d.csv
# Three different rows, twenty times each.
awk 'BEGIN {
    srand(3)
    print "a,b,y,yes,count,kind"
    for (i = 0; i < 60; i++) {
        k = i % 3
        printf("%d,%d,%.3f,%s,%d,%s\n", k, k * k, k + 0.1 * rand(), (rand() < 0.5) ? "yes" : "no", k + int(2 * rand()),
            (rand() < 0.5) ? "red" : "blue")
    }
}' >equal.csv

# Every number in the tensors of the model (file-format.md) is finite.
expect_finite() {
    local header
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    check "$1 should hold finite numbers only" test -z "$(od -An -v -t f8 -j $((8 + header)) "$1" | grep -Ei 'nan|inf')"
}

# fit METHOD DATA TARGET [OPTIONS]: METHOD is a method, or options of the method variational.
fit() {
    local method=$1 data=$2 target=$3
    shift 3
    case $method in --*) method="variational $method" ;; esac
    rm -f m.thiele
    # shellcheck disable=SC2086
    run fit "$data" --target "$target" --inputs a,b --iterations 10 --quiet --method $method "$@" -o m.thiele
}

# As fit, and the model is good; the first argument is a list of methods with commas between them.
fits() {
    local methods method data=$2 plugin=
    IFS=, read -ra methods <<<"$1"
    shift
    case "$*" in *plugin:*) plugin="--likelihood plugin:$PLUGIN" ;; esac
    for method in "${methods[@]}"; do
        fit "$method" "$@"
        expect_done
        expect_finite m.thiele
        # shellcheck disable=SC2086
        run predict m.thiele "$data" $plugin -o p.csv
        expect_status 0
        check "finite predictions" test -z "$(tail -n +2 p.csv | grep -Ei 'nan|inf')"
        # shellcheck disable=SC2086
        run score m.thiele "$data" $plugin --json
        expect_status 0
        check "finite scores" test -z "$(grep -E '"(rmse|nlpd|nlp)": null' "$out")"
    done
}

# As fits, and each is refused with a sentence that matches.
refuses() {
    local methods method pattern=$2
    IFS=, read -ra methods <<<"$1"
    shift 2
    for method in "${methods[@]}"; do
        fit "$method" "$@"
        expect_refusal 1 "$pattern"
        expect_no_file m.thiele
    done
}

families="--optimizer lbfgs,--posterior diag --plain,--posterior mixture:2 --plain,--posterior mixture-full:2"
steps="--batch 10,--optimizer adam --batch 10,--optimizer adadelta --posterior diag --plain,--optimizer alternate"
all="dense,variational,$families,$steps"

# Inducing inputs that are each there three times, learned and not.
{
    echo a,b
    for _ in 1 2 3; do sed -n 2,8p d.csv | cut -d, -f1,2; done
} >z.csv
fits "collapsed,variational,$families,$steps" d.csv y --inducing-from z.csv
fits "variational,--posterior mixture:2 --plain,--batch 10" d.csv yes --likelihood bernoulli --inducing-from z.csv \
    --fix-inducing
fits "variational,--optimizer adam" d.csv kind --likelihood softmax --inducing-from z.csv

# Rows that are each there twenty times.
fits "exact,collapsed,$all" equal.csv y --replicates
fits "dense,variational,--posterior diag --plain,--batch 7" equal.csv yes --likelihood bernoulli --replicates
fits "dense,variational,--optimizer momentum" equal.csv count --likelihood poisson --replicates

# Length-scales far beyond the data, and a function that varies by nothing.
for extreme in lengthscale=1e-8 lengthscale=1e8 'lengthscale~1e8' 'lengthscale=1e8, variance=1e8' variance=1e-12; do
    fits "exact,collapsed,dense,variational,--posterior diag --plain,--batch 10" d.csv y --kernel se --set "$extreme"
    fits "dense,variational,--optimizer adam" d.csv count --likelihood poisson --kernel se --set "$extreme"
done
# Rates that overflow under the prior.
fits "$all,--optimizer natural" d.csv count --likelihood poisson --kernel se --set 'lengthscale=20, variance=3000'

# No probability, whatever the function is: by a built-in likelihood and by one's own.
cell() { awk -F, -v OFS=, -v text="$1" 'NR == 20 {$5 = text} {print}' d.csv; }
cell -3 >negative.csv
cell 2.5 >half.csv
cell 25 >beyond.csv
refuses "dense,variational,--batch 10" "'count', row 19: -3" negative.csv count --likelihood poisson
refuses "dense,variational" "'count', row 19: 2.5" half.csv count --likelihood poisson
refuses "dense,variational" "'y', row [0-9]+: -" d.csv y --likelihood gamma
if [ -e "$PLUGIN" ]; then
    fits "dense,variational,--posterior diag --plain,--batch 10" d.csv count --likelihood "plugin:$PLUGIN"
    refuses "dense,variational,--batch 10,--optimizer adam" "'count', row 19: 25.*zero probability" beyond.csv count \
        --likelihood "plugin:$PLUGIN"
fi
# Infinite for half of all functions, so that no expectation exists.
cat >half.c <<'EOF'
#include <math.h>
#include <thiele/likelihood.h>
static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi, (void)user;
    return f[0] > 0 ? log(f[0]) - f[0] * y[0] * y[0] : -INFINITY;
}
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_spec spec = {.size = sizeof spec, .version = THIELE_LIKELIHOOD_VERSION, .name = "half",
                                                .outputs = 1, .latents = 1, .log_density = log_density};
    return &spec;
}
EOF
if cc -std=c11 -shared -fPIC -I "$SOURCE/include" half.c -o half.so -lm 2>/dev/null; then
    refuses "dense,variational,--batch 10,--optimizer lbfgs --posterior diag,--optimizer adam" "'half'.*infinite" d.csv y \
        --likelihood plugin:./half.so
    refuses "dense,variational" "'half'.*infinite" d.csv y --likelihood plugin:./half.so --expectation mc:200
fi

# A batch larger than the table, one row at a time, more inducing inputs than rows.
for option in '--batch 1000' '--batch 1' '--inducing 100'; do
    # shellcheck disable=SC2086
    fits "variational,$families,--optimizer adam,--optimizer adadelta" d.csv y $option
done
fits "collapsed,--inducing-from random,--inducing-from greedy" d.csv y --inducing 5000
awk 'BEGIN {srand(9); print "a,b"; for (i = 0; i < 90; i++) printf("%.3f,%.3f\n", 6 * rand() - 3, 6 * rand() - 3)}' >many.csv
fits "collapsed,variational,$families,--batch 10" d.csv y --inducing-from many.csv

# Nothing to learn, or little.
refuses "exact,collapsed,dense,variational,--batch 10" "'flat' is the same" d.csv flat
refuses "dense,variational,--batch 10" "'one' is the same" d.csv one --likelihood bernoulli
refuses "dense,variational" "'one' is the same" d.csv one --likelihood softmax --classes no,yes
fits "$all" d.csv seven --likelihood poisson
fits "dense,variational,--batch 10" d.csv flat --likelihood exponential
head -4 d.csv >few.csv
fits "exact,collapsed,$all" few.csv y

finish
