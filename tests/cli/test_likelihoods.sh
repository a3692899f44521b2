#!/usr/bin/env bash
# Targets of every kind through the command: labels, counts, several columns, your own likelihood; and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

PLUGIN=$(dirname "$THIELE")/examples/plugin_censored.so
# A table of 60 rows with a target of each kind, by a fixed rule: no other program is needed to make it.
awk 'BEGIN {
    srand(7)
    print "a,b,yes,count,colour,grade,amount,share,t,u,hours"
    for (i = 1; i <= 60; i++) {
        a = 6 * rand() - 3; b = 6 * rand() - 3; f = 2 * sin(a) + 0.5 * b; e = rand() + rand() + rand() - 1.5
        yes = (f + e > 0) ? "yes" : "no"
        colour = (f + e > 1) ? "red" : ((f - e < -1) ? "blue" : "green")
        grade = (f + e > 1) ? "high" : ((f + e < -1) ? "low" : "mid")
        u = (i % 5) ? sprintf("%.4f", cos(a) + 0.1 * e) : ""
        printf("%.4f,%.4f,%s,%d,%s,%s,%.4f,%.4f,%.4f,%s,%.2f\n", a, b, yes, exp(0.5 * f) * (1 + rand()), colour, grade,
            exp(f / 2 + e), 1 / (1 + exp(-f - e)), f + 0.2 * e, u, 1 + rand())
    }
}' >d.csv
quick="--inputs a,b --iterations 5"

# Every likelihood fits, says what it did, predicts and scores.
fits() { # TARGET LIKELIHOOD COLUMNS-OF-THE-PREDICTION [OPTIONS]
    local target=$1 likelihood=$2 columns=$3
    shift 3
    # shellcheck disable=SC2086
    run fit d.csv --target "$target" --likelihood "$likelihood" $quick "$@" -o m.thiele --json
    expect_done
    expect_that "$out" 'd["model"]["method"] in ("dense", "augmented") and d["model"]["bound"] < 1000'
    run info m.thiele
    expect_done
    expect_out 'expectations: '
    run predict m.thiele d.csv -o p.csv
    expect_done
    check "$likelihood: the columns are $columns" test "$(head -1 p.csv)" = "$columns"
    check "$likelihood: a line for each row" test "$(wc -l <p.csv)" -eq 61
    check "$likelihood: no NaN" sh -c '! grep -qi nan p.csv'
    run score m.thiele d.csv --json --drop-missing
    expect_done
}
# CRPS of numbers, of each target by itself: that of a point is the absolute error, of a law that is too wide somewhat more.
crps='all(0 < s["crps"] < 2 * s["mae"] and "brier" not in s for s in (d["t"], d["u"])) if "t" in d else 0 < d["crps"] < 2 * d["mae"]'
fits yes bernoulli 'label,p.no,p.yes'
expect_that "$out" '0 <= d["error_rate"] < 0.4 and 0 < d["nlp"] < 0.7 and 0 < d["brier"] < 0.5 and "rmse" not in d and "crps" not in d'
fits yes bernoulli-probit 'label,p.no,p.yes'
fits yes svm 'label,p.no,p.yes'
fits colour softmax 'label,p.blue,p.green,p.red'
expect_that "$out" '0 <= d["error_rate"] < 0.6 and 0.5 < d["auc"] <= 1'
# The confusion of labels has all rows in it, and off its diagonal those that are wrong.
expect_that "$out" 'd["labels"] == ["blue", "green", "red"]'
expect_that "$out" 'sum(map(sum, d["confusion"])) == d["rows"]'
expect_that "$out" 'abs(1 - sum(d["confusion"][i][i] for i in range(3)) / d["rows"] - d["error_rate"]) < 1e-9'
run score m.thiele d.csv --drop-missing
expect_done
expect_out '^AUC  '
expect_out '^ +blue +green +red$'
expect_out '^ +green( +[0-9]+){3}$'
fits grade ordinal 'label,p.low,p.mid,p.high' --classes low,mid,high
expect_that "$out" '0 < d["crps"] < 2 and 0 < d["brier"] < 2'
fits count poisson 'mean,sd'
expect_that "$out" 'd["nlpd"] > 0 and "error_rate" not in d and "auc" not in d and "confusion" not in d'
expect_that "$out" "$crps"
fits count negative-binomial 'mean,sd' --exposure hours
expect_that "$out" "$crps"
fits count 'binomial(trials=50)' 'mean,sd'
expect_that "$out" "$crps"
fits amount gamma 'mean,sd'
expect_that "$out" "$crps"
fits amount exponential 'mean,sd'
expect_that "$out" "$crps"
fits amount warped 'mean,sd'
expect_that "$out" "$crps"
fits share beta 'mean,sd'
expect_that "$out" "$crps"
fits t student-t 'mean,sd'
expect_that "$out" "$crps"
fits t laplace 'mean,sd'
expect_that "$out" "$crps"
fits t matern32 'mean,sd'
expect_that "$out" "$crps"
fits t heteroscedastic 'mean,sd'
expect_that "$out" "$crps"
fits t,u 'mixing(latents=2)' 'mean.t,sd.t,mean.u,sd.u'
expect_that "$out" 'd["t"]["rows"] == 60 and d["u"]["rows"] == 48'
expect_that "$out" "$crps"
fits t,u 'gprn(nodes=1)' 'mean.t,sd.t,mean.u,sd.u'
expect_that "$out" "$crps"

# The way of expectation is what was asked for; one that is not offered is refused.
# shellcheck disable=SC2086
run fit d.csv --target yes --likelihood bernoulli --expectation quadrature:30 $quick -o m.thiele
expect_done
run info m.thiele --json
expect_that "$out" 'd["expectation"] == "quadrature:30"'
# shellcheck disable=SC2086
run fit d.csv --target yes --likelihood bernoulli --expectation closed $quick -o m.thiele
expect_refusal 2 'closed'

# Labels come back as they were; draws are labels; quantiles only where labels have an order.
run predict m.thiele d.csv --samples 3 --id yes -o p.csv
expect_done
check "draws are labels" sh -c 'tail -n +2 p.csv | cut -d, -f5- | tr , "\n" | sort -u | grep -qx "no"'
run predict m.thiele d.csv --quantiles 0.5
expect_refusal 1 'no order'
run predict m.thiele d.csv --json
expect_that "$out" 'set(d["predictions"][0]["probability"]) == {"no", "yes"}'
# shellcheck disable=SC2086
run fit d.csv --target grade --likelihood ordinal --classes low,mid,high $quick -o o.thiele
run predict o.thiele d.csv --quantiles 0.5 -o p.csv
expect_done
check "a quantile is a label" sh -c 'tail -n +2 p.csv | cut -d, -f5 | sort -u | grep -qx "mid"'

# Latent functions, one column pair each.
# shellcheck disable=SC2086
run fit d.csv --target t --likelihood heteroscedastic $quick -o m.thiele
run predict m.thiele d.csv --latent -o p.csv
expect_done
check "two latent functions" test "$(head -1 p.csv)" = 'mean.f1,sd.f1,mean.f2,sd.f2'

# With a part held out the final model has the parameters that were learned without it.
for method in collapsed variational; do
    run fit d.csv --target t --inputs a,b --method $method --inducing 20 --holdout 0.3 --json -o m.thiele
    expect_done
    expect_that "$out" 'd["model"]["sparse"]["inducing"] == 20 and d["model"]["holdout"][0]["rows"] == 18'
    run score m.thiele d.csv --json
    expect_that "$out" 'd["smse"] < 0.2'
done

# What cannot be is refused when the data are read, naming row and column.
refuses() { # STATUS TARGET LIKELIHOOD PATTERN [OPTIONS]
    local wanted=$1 target=$2 likelihood=$3 pattern=$4
    shift 4
    # shellcheck disable=SC2086
    run fit bad.csv --target "$target" --likelihood "$likelihood" $quick "$@" -o no.thiele
    expect_refusal "$wanted" "$pattern"
    check "nothing was saved" test ! -e no.thiele
}
sed '5s/^\([^,]*,[^,]*,[^,]*\),[0-9]*/\1,-3/' d.csv >bad.csv
refuses 1 count poisson "column 'count', row 4: -3: a count must be 0, 1, 2"
sed '7s/,yes,\|,no,/,maybe,/' d.csv >bad.csv
refuses 1 yes bernoulli "column 'yes', row 6: 'maybe' is a third value"
sed '9s/,\(low\|mid\|high\),/,7,/' d.csv >bad.csv
refuses 1 grade ordinal "column 'grade', row 8: '7' is not one of the classes" --classes low,mid,high
cp d.csv bad.csv
refuses 1 yes poisson "needs numbers"
refuses 1 grade ordinal "order" --ignore yes
refuses 1 t bernoulli "third value"
refuses 2 yes no-such "there is no likelihood 'no-such'"
refuses 1 count 'binomial(trials=1)' "column 'count', row [0-9]*: "
refuses 2 yes bernoulli "does not take an exposure column" --exposure hours
refuses 2 t,u "student-t; laplace; poisson" "3 likelihoods were given for 2 targets"
refuses 1 t gaussian "no column 'nowhere'" --exposure nowhere
sed '2s/,[0-9.]*$/,0/' d.csv >bad.csv
refuses 1 count poisson "column 'hours', row 1: " --exposure hours
awk -F, 'NR == 1 || $3 == "yes"' d.csv >bad.csv
refuses 1 yes bernoulli "is the same .yes. in every row"
# A label that training never saw.
# shellcheck disable=SC2086
run fit d.csv --target colour --likelihood softmax $quick -o m.thiele
sed '3s/,\(red\|green\|blue\),/,mauve,/' d.csv >bad.csv
run score m.thiele bad.csv
expect_refusal 1 "column 'colour', row 2: 'mauve'"

# Your own, as a plug-in: a model does not bring it along.
if [ -e "$PLUGIN" ]; then
    # shellcheck disable=SC2086
    run fit d.csv --target count --likelihood "plugin:$PLUGIN" $quick -o own.thiele
    expect_done
    run predict own.thiele d.csv
    expect_refusal 2 'give it again'
    run predict own.thiele d.csv --latent
    expect_done
    run predict own.thiele d.csv --likelihood "plugin:$PLUGIN" --quantiles 0.1,0.9 --samples 2
    expect_done
    expect_out '^mean,sd,q0.1,q0.9,s1,s2$'
    run score own.thiele d.csv --likelihood "plugin:$PLUGIN" --json
    expect_done
    expect_that "$out" '0 < d["nlpd"] < 10'
    sed '5s/^\([^,]*,[^,]*,[^,]*\),[0-9]*/\1,99/' d.csv >bad.csv
    refuses 1 count "plugin:$PLUGIN" "column 'count', row 4: 99"
    run score own.thiele d.csv --likelihood plugin:./absent.so
    expect_refusal 1 'absent.so'
    run score m.thiele d.csv --likelihood "plugin:$PLUGIN"
    expect_refusal 2 'already'
    run score own.thiele d.csv --likelihood gaussian
    expect_refusal 2 'plugin:FILE.so'
    refuses 1 count plugin:./absent.so 'absent.so'
    refuses 1 count "plugin:$THIELE" 'plug-in'
else
    echo "skipped: plug-ins (the examples are not built)"
fi

# Parameters that the data cannot bound stay in sight: nu of Gaussian noise, the shape of a constant target.
awk 'BEGIN { srand(3); print "x,y,same"
    for (i = 0; i < 120; i++) { x = 6 * rand(); print x "," sin(2 * x) + 0.2 * (rand() + rand() + rand() - 1.5) ",7.5" } }' >tame.csv
for method in augmented dense; do
    run fit tame.csv --target y --inputs x --likelihood student-t --method $method -o tame-$method.thiele --json
    expect_status 0
    expect_that "$out" 'all(p["value"] <= 100.001 for p in d["model"]["parameters"] if p["name"] == "nu")'
done
run fit tame.csv --target same --inputs x --likelihood gamma -o same.thiele --json
expect_status 0
expect_that "$out" 'all(p["value"] <= 1.001e8 for p in d["model"]["parameters"] if p["name"] == "shape")'
finish
