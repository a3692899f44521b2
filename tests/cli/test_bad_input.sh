#!/usr/bin/env bash
# Bad input: one clear sentence, exit status 1 or 2, nothing half-written.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 60 -o train.csv
columns=$(head -1 train.csv)
position() { echo "$columns" | tr , '\n' | grep -n "^$1\$" | cut -d: -f1; }
x1=$(position x1)
strength=$(position strength)
# cell LINE COLUMN TEXT: train.csv with one cell replaced
cell() { awk -F, -v OFS=, -v line="$1" -v column="$2" -v text="$3" 'NR == line {$column = text} {print}' train.csv; }
refused() { # DATA STATUS PATTERNS...
    local data=$1 code=$2
    shift 2
    run fit "$data" --target strength --ignore row --missing-inputs refuse -o bad.thiele
    expect_refusal "$code" "$@"
    expect_no_file bad.thiele
}

refused absent.csv 1 'absent.csv' 'No such file'
refused . 1
: >empty.csv
refused empty.csv 1 'empty.csv' 'empty'
head -1 train.csv >header.csv
refused header.csv 1 'header.csv' 'no rows'
awk 'NR == 12 {print $0 ",7"; next} {print}' train.csv >ragged.csv
refused ragged.csv 1 'row 11|line 12' 'fields'
awk -F, 'NR == 9 {print "7"; next} {print}' train.csv >ragged2.csv
refused ragged2.csv 1 'row 8|line 9' 'field'
printf 'x,strength\n"1,2\n' >quote.csv
refused quote.csv 1 'quot'
cell 14 "$x1" 'n/a' >text.csv
refused text.csv 1 "x1" 'row 13|line 14' "n/a" '--missing'
cell 14 "$strength" 'high' >texttarget.csv
refused texttarget.csv 1 'strength' 'row 13|line 14' 'high'
cell 14 "$x1" 'inf' >inf.csv
refused inf.csv 1 'x1' 'row 13|line 14' 'infinite|inf'
cell 14 "$strength" '-inf' >inftarget.csv
refused inftarget.csv 1 'strength' 'row 13|line 14'
cell 14 "$x1" 'NaN' >nan.csv
refused nan.csv 1 'x1' 'row 13|line 14' 'missing' '--drop-missing'
cell 14 "$strength" '' >hole.csv
refused hole.csv 1 'strength' 'row 13|line 14' 'missing'
awk -F, -v OFS=, -v c="$x1" 'NR > 1 {$c = 2.5} {print}' train.csv >constant.csv
run fit constant.csv --target strength --ignore row --iterations 3 -o constant.thiele
expect_status 0
expect_err "warning: 1 column is constant and left out: 'x1'"
awk -F, -v OFS=, -v c="$strength" 'NR > 1 {$c = 2.5} {print}' train.csv >constant2.csv
refused constant2.csv 1 'strength' 'constant|same'
head -2 train.csv >one.csv
refused one.csv 1 'row'
head -c 200 /dev/urandom | gzip -c | head -c 100 >cut.csv.gz
refused cut.csv.gz 1 'cut.csv.gz'
printf '\223NUMPY\001\000' >short.npy
refused short.npy 1 'short.npy'
printf '\211HDF\r\n\032\n' >short.h5
refused short.h5 1

run fit train.csv --target stregth --ignore row -o bad.thiele
expect_refusal 1 "stregth" 'strength'
run fit train.csv --target 99 --ignore row -o bad.thiele
expect_refusal 1 '99'
run fit train.csv --target strength --ignore raw -o bad.thiele
expect_refusal 1 "raw" 'row'
run fit train.csv --target strength --inputs x1,x3 -o bad.thiele
expect_refusal 1 'x3' 'x1|x2'
run fit train.csv --target site --likelihood gaussian -o bad.thiele
expect_refusal 1 'site'
for bad in '--kernel matern99' '--kernel matern52(' '--method magic' '--mean wavy' '--set lengthscal=1' \
    '--set noise=-1' '--prior noise_uniform(0,1)' '--holdout 0.999'; do
    # shellcheck disable=SC2086
    run fit train.csv --target strength --ignore row $bad -o bad.thiele
    expect_refusal 2
done
expect_no_file bad.thiele

# Duplicate rows with different targets are repeated measurements: how many, and what noise they imply.
{ cat train.csv; sed -n '2,6p' train.csv | awk -F, -v OFS=, -v c="$strength" '{$c += 3; print}'; } >twice.csv
run fit twice.csv --target strength --ignore row --iterations 5 -o twice.thiele
expect_status 0
expect_err '^thiele: warning: 10 rows have the inputs of others and a different .strength. \(such as rows 1 and 61\)'
expect_err 'noise of standard deviation 2.12$' # 3 / sqrt 2
run fit twice.csv --target strength --ignore row --iterations 5 --replicates -o twice.thiele --quiet
expect_done

# More rows than an exact factor can be had for.
"$THIELE" generate -n 50000 -o many.csv
run fit many.csv --target strength --ignore row --memory 1G --method exact -o bad.thiele
expect_refusal 1 '50000|50,000' 'GB|GiB|memory' 'variational'
expect_no_file bad.thiele

# At prediction.
run fit train.csv --target strength --ignore row --iterations 3 -o m.thiele
expect_status 0
cut -d, -f"$(position x2)" train.csv >fewer.csv
run predict m.thiele fewer.csv -o bad.csv
expect_refusal 1 'x1' 'site'
run predict m.thiele absent.csv -o bad.csv
expect_refusal 1 'absent.csv'
run predict m.thiele text.csv -o bad.csv
expect_refusal 1 'x1' 'row 13|line 14' 'n/a'
run predict m.thiele nan.csv -o bad.csv
expect_refusal 1 'x1' 'row 13|line 14' 'missing'
run predict m.thiele nan.csv --drop-missing -o some.csv
expect_done
check "one row less" test "$(wc -l <some.csv)" -eq 60
run predict m.thiele nan.csv --json -o bad.csv
expect_refusal 1 'missing'
run predict m.thiele nan.csv --json
expect_refusal 1 'missing'
run predict m.thiele train.csv --id nosuch -o bad.csv
expect_refusal 1 'nosuch'
run predict m.thiele train.csv --id nosuch --json -o bad.csv
expect_refusal 1 'nosuch'
run predict m.thiele nan.csv --joint bad.csv --drop-missing
expect_refusal 2 'drop-missing'
expect_no_file bad.csv
cut -d, -f"$(position x1),$(position x2),$(position site)" train.csv >notarget.csv
run score m.thiele notarget.csv
expect_refusal 1 'strength'
run score m.thiele hole.csv
expect_refusal 1 'strength' 'row 13|line 14'
run cv train.csv --target strength --ignore row --folds 61
expect_status 2
expect_clean
finish
