#!/usr/bin/env bash
# thiele compare: models of numbers and of labels beside each other, by the rows that all of them predict; differences
# agree with the scores; what cannot be compared is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 250 -o all.csv
head -151 all.csv >train.csv
(head -1 all.csv; tail -100 all.csv) >test.csv
run fit train.csv --target strength --ignore row --kernel se -o good.thiele
run fit train.csv --target strength --inputs x2 --kernel se -o poor.thiele
run fit train.csv --target strength --inputs x2 --likelihood student-t --method variational --kernel se --inducing 20 -o robust.thiele

run compare poor.thiele good.thiele robust.thiele test.csv
expect_done
expect_out '^model +RMSE +NLPD +CRPS +in 90%  NLPD above the best$'
expect_out '^good.thiele .* best$'
expect_out '^poor.thiele .* [0-9.]+ \+- [0-9.]+$'
expect_out '^on 100 rows that all of them predict'
run compare poor.thiele good.thiele robust.thiele test.csv --json
expect_done
expect_json "$out"
cp "$out" three.json
for model in poor good robust; do
    run score $model.thiele test.csv --json
    cp "$out" $model.json
done
# A difference of means is the mean of the differences.
expect_that three.json 'd["best"] == "good.thiele" and [m["model"] for m in d["models"]] == ["poor.thiele", "good.thiele", "robust.thiele"]'
for k in 0 2; do
    name=poor
    [ $k = 0 ] || name=robust
    expect_that three.json "abs(d['models'][$k]['behind']['nlpd'] - (json.load(open('$name.json'))['nlpd'] - json.load(open('good.json'))['nlpd'])) < 1e-9"
    expect_that three.json "abs(d['models'][$k]['behind']['squared_error'] - (json.load(open('$name.json'))['rmse']**2 - json.load(open('good.json'))['rmse']**2)) < 1e-9"
    expect_that three.json "0 < d['models'][$k]['behind']['nlpd_se'] < 1"
done
expect_that three.json 'd["models"][1]["behind"] == {"nlpd": 0, "nlpd_se": 0, "squared_error": 0, "squared_error_se": 0}'
expect_that three.json 'd["models"][2]["scores"] == json.load(open("robust.json"))'
# A model beside itself.
run compare good.thiele good.thiele test.csv --json
expect_that "$out" 'd["models"][1]["behind"]["nlpd"] == 0 and d["models"][1]["behind"]["nlpd_se"] == 0'

# Rows that one of them cannot predict are left out of the differences, not of the scores.
awk -F, 'BEGIN { OFS = "," } NR == 1 { for (i = 1; i <= NF; i++) if ($i == "x1") c = i } NR > 1 && NR <= 11 { $c = "" } { print }' test.csv >gaps.csv
run compare good.thiele poor.thiele gaps.csv --drop-missing --json
expect_done
expect_that "$out" 'd["models"][0]["common_rows"] == 90 and [m["scores"]["rows"] for m in d["models"]] == [90, 100]'

# Labels: by their probabilities.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "strength") c = i; print "x,y,label"; next } { print $2 "," $3 "," ($c > 30 ? "high" : "low") }' all.csv >labels.csv
run fit labels.csv --target label --kernel se -o label.thiele
run fit labels.csv --target label --inputs x --kernel se -o label2.thiele
run compare label2.thiele label.thiele labels.csv
expect_done
expect_out 'error rate +NLP +Brier score +AUC +NLP above the best$'

# What cannot be compared.
run fit labels.csv --target x --kernel se -o other.thiele
run compare label.thiele other.thiele labels.csv
expect_refusal 2 "model 2 predicts 'x', not 'label'"
awk -F, 'NR == 1 { print "x,z"; next } { print $1 "," NR % 2 }' labels.csv >binary.csv
run fit binary.csv --target z --kernel se -o yes.thiele
run fit binary.csv --target z --likelihood gaussian --kernel se -o number.thiele
run compare number.thiele yes.thiele binary.csv
expect_refusal 1 "for 'z', model 2 predicts labels and model 1 numbers"
run compare good.thiele
expect_refusal 2 'compare needs DATA'
head -2 test.csv >one.csv
run compare good.thiele poor.thiele one.csv
expect_done
expect_out '^on 1 row that all of them predict'
check "no error of a single row" test "$(grep -ci nan "$out")" -eq 0
# shellcheck disable=SC2046
run compare $(for i in $(seq 17); do echo good.thiele; done) test.csv
expect_refusal 2 'compare takes at most 16 of MODEL'
run compare good.thiele poor.thiele nothing.csv
expect_refusal 1 'nothing.csv'
expect_clean
finish
