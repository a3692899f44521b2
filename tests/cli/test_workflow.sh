#!/usr/bin/env bash
# The way a user goes: generate, fit, predict, score, info, cv, in each of the formats.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run generate -n 120 -o train.csv
expect_done
run generate -n 40 --seed 1 -o test.csv
expect_done
check "a header and 120 rows" test "$(wc -l <train.csv)" -eq 121

# --- fit
run fit train.csv --target strength --ignore row
expect_done
expect_file train.thiele
for pattern in 120 'x1' 'x2' 'site' strength 'saved to +train.thiele' '[Ll]og marginal likelihood' 'converged'; do
    expect_out "$pattern"
done
run fit train.csv --target strength --id row --holdout 0.25 --json -o model.thiele
expect_done
expect_json "$out"
expect_that "$out" 'd["saved"] == "model.thiele" and d["seconds"] >= 0'
expect_that "$out" 'd["model"]["columns"]["targets"][0]["name"] == "strength"'
expect_that "$out" 'd["model"]["holdout"][0]["rows"] == 30'
run fit train.csv --target strength --inputs x1,x2 --kernel 'se(ard)' --mean linear --set 'noise~1' -o two.thiele
expect_done
expect_out 'se'
run fit train.csv --target -1 --inputs x1 --iterations 0 -o last.thiele
expect_status 0
run generate -n 1200 -o many.csv
run fit many.csv --target strength --ignore row --deadline 0.000001 -o late.thiele
expect_status 0
expect_out 'deadline'
run fit train.csv --target strength --ignore row --iterations 1 -o short.thiele
expect_status 0
expect_out 'iteration'

# --- info and score
run info model.thiele
expect_done
for pattern in strength x1 site matern52 noise 120; do
    expect_out "$pattern"
done
run info model.thiele --json
expect_done
expect_json "$out"
expect_that "$out" 'len(d["parameters"]) > 3'
run score model.thiele test.csv
expect_done
expect_out '^RMSE +[0-9.]+'
run score model.thiele test.csv --json
expect_done
expect_json "$out"
expect_that "$out" 'd["rows"] == 40 and 0 < d["rmse"] < 4 and 0.6 < d["coverage90"] <= 1 and d["msll"] < 0'

# --- predict
run predict model.thiele test.csv
expect_done
expect_out '^mean,sd$'
cp "$out" plain.csv
check "one line a row" test "$(wc -l <plain.csv)" -eq 41
run predict model.thiele test.csv -o plain2.csv
expect_done
check "nothing on stdout" test ! -s "$out"
check "-o writes what stdout shows" cmp plain.csv plain2.csv
run predict model.thiele test.csv --quantiles 0.05,0.5,0.95 --id row,site --samples 2
expect_done
expect_out '^row,site,mean,sd,q0.05,q0.5,q0.95,s1,s2$'
check "quantiles are ordered around the mean" \
    awk -F, 'NR > 1 && !($5 < $6 && $6 < $7 && ($6 - $3)^2 < 1e-12) {exit 1}' "$out"
check "id columns pass through" test "$(cut -d, -f1,2 "$out")" = "$(cut -d, -f"$(
    head -1 test.csv | tr , '\n' | grep -nE '^(row|site)$' | sort -t: -k2 | cut -d: -f1 | paste -sd,)" test.csv)"
run predict model.thiele test.csv --latent
expect_done
check "the function is surer than an observation" \
    sh -c "paste -d, '$out' plain.csv | awk -F, 'NR > 1 && !(\$2 < \$4) {exit 1}'"
run predict model.thiele test.csv --json --quantiles 0.1,0.9 --id site --samples 1
expect_done
expect_json "$out"
expect_that "$out" 'd["target"] == "strength" and d["quantiles"] == [0.1, 0.9] and len(d["predictions"]) == 40'
expect_that "$out" 'all(p["quantiles"][0] < p["mean"] < p["quantiles"][1] for p in d["predictions"])'
expect_that "$out" '[p["row"] for p in d["predictions"]] == list(range(1, 41))'
expect_that "$out" 'all(len(p["samples"]) == 1 and set(p["id"]) == {"site"} for p in d["predictions"])'
cp "$out" want.json
run predict model.thiele test.csv --json --quantiles 0.1,0.9 --id site --samples 1 -o got.json
expect_done
check "--json -o writes the same" cmp want.json got.json
head -6 test.csv >few.csv
run predict model.thiele few.csv --joint joint.csv -o few-out.csv
expect_done
check "joint: mean and a square" awk -F, 'NF != 6 {exit 1} END {if (NR != 6) exit 1}' joint.csv
check "its diagonal is the variance" sh -c "paste -d, joint.csv few-out.csv |
    awk -F, 'NR > 1 {v = \$NF * \$NF; d = \$NR - v; if (d * d > 1e-12 * v * v || (\$1 - \$(NF - 1))^2 > 1e-12) exit 1}'"
run predict model.thiele few.csv --joint same.csv -o same.csv
expect_refusal 2 'same file'

# --- the same numbers whatever the file looks like
same() { # TEXT ARGUMENTS: predictions are those of plain.csv
    local text=$1
    shift
    run predict model.thiele "$@"
    expect_done
    check "$text" cmp plain.csv "$out"
}
awk -F, -v OFS=, '{print "extra" NR, $5, $4, $3, $2, $1}' test.csv >reordered.csv
same "columns reordered, one more" reordered.csv
gzip -c test.csv >test.csv.gz
same "gzip" test.csv.gz
tr , ';' <test.csv >semicolon.csv
same "semicolons" semicolon.csv
tr , '\t' <test.csv >tab.tsv
same "tabs" tab.tsv
same "tabs, said so" tab.tsv --delimiter tab
tr , '|' <test.csv >pipe.txt
same "another delimiter" pipe.txt --delimiter '|'
sed 's/$/\r/' test.csv >crlf.csv
same "CRLF" crlf.csv
{ printf '\357\273\277'; cat test.csv; } >bom.csv
same "byte order mark" bom.csv
sed 's/\([^,]*\)/"\1"/g' test.csv >quoted.csv
same "quotes" quoted.csv
run_from test.csv predict model.thiele -
expect_done
check "standard input" cmp plain.csv "$out"
run_from train.csv fit - --target strength --ignore row --iterations 2
expect_status 0
expect_file model.thiele
expect_out 'saved to +model.thiele'

# --- no header; a positional target
tail -n +2 train.csv >bare.csv
target=$(head -1 train.csv | tr , '\n' | grep -n '^strength$' | cut -d: -f1)
row=$(head -1 train.csv | tr , '\n' | grep -n '^row$' | cut -d: -f1)
run fit bare.csv --header no --target "$target" --ignore "$row" --iterations 3 -o bare.thiele
expect_status 0
run predict bare.thiele bare.csv --header no
expect_done

# --- which inputs matter
run info train.thiele
expect_out '^relevance +matters most: x1 \('
expect_out 'share of how far predictions move with it, over [0-9]+ pairs of training rows'
run info train.thiele --json
expect_that "$out" 'abs(sum(i["share"] for i in d["relevance"]["inputs"]) - 1) < 1e-9 and d["relevance"]["inputs"][0]["matters"] == "most"'

# --- missing values
awk -F, -v OFS=, 'NR == 3 {$1 = "?"} NR == 7 {$2 = "?"} {print}' train.csv >holes.csv
run fit holes.csv --target strength --ignore row --missing '?' --missing-inputs refuse -o h.thiele
expect_refusal 1 'missing' '--drop-missing'
run fit holes.csv --target strength --ignore row --missing '?' --iterations 3 -o filled.thiele
expect_status 0
expect_err "'x1' lacks values in some rows: the column's mean is used there .*--missing-inputs"
run predict filled.thiele holes.csv -o filled.csv
expect_done
check 'every row is predicted' test "$(wc -l <filled.csv)" -eq 121
run cv holes.csv --target strength --ignore row --missing '?' --folds 3 --iterations 3
expect_status 0
run fit holes.csv --target strength --ignore row --missing '?' --missing-inputs drop --iterations 3 -o h.thiele --json
expect_status 0
expect_that "$out" 'd["model"]["rows"] in (118, 119)'
run fit holes.csv --target strength --ignore row --missing '?' --drop-missing --iterations 3 -o h.thiele --json
expect_status 0
expect_that "$out" 'd["model"]["rows"] in (118, 119)'

# --- categories
awk -F, -v OFS=, 'NR == 1 {print} NR > 1 {gsub(/north/, "mars"); print}' few.csv >unseen.csv
cp train.thiele model.thiele
run predict model.thiele unseen.csv -o bad.csv --unseen error
expect_refusal 1 'mars' 'site' '--unseen zero'
run predict model.thiele unseen.csv -o other.csv
expect_status 0
expect_err "column 'site' has values that training never saw: they count as 'other'"
run predict model.thiele unseen.csv --unseen zero
expect_done

# --- cross-validation
run cv train.csv --target strength --ignore row --folds 3 --iterations 10
expect_status 0
expect_out '^fold +rows +RMSE'
check "three folds and all" test "$(grep -cE '^([123]|all) ' "$out")" -eq 4
run cv train.csv --target strength --ignore row --folds 3 --iterations 10 --json
expect_status 0
expect_json "$out"
expect_that "$out" 'sum(f["rows"] for f in d["folds"]) == d["overall"]["rows"] == 120 and len(d["folds"]) == 3'
expect_clean
finish
