#!/usr/bin/env bash
# Several files as one table: the same model, scores and predictions as from one file with all rows; messages that name
# the file; what does not go together.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 900 -o all.csv
(sed -n 1,301p all.csv) >a.csv
(head -1 all.csv && sed -n 302p all.csv) >b.csv
(head -1 all.csv && sed -n 303,901p all.csv) >c.csv
options="--target strength --ignore row --method collapsed --kernel se --inducing 20 --iterations 3 --threads 1"

# shellcheck disable=SC2086
run fit all.csv $options -o one.thiele
expect_done
# shellcheck disable=SC2086
run fit a.csv b.csv $options c.csv
expect_done
check "the first file names the model, which is the same" cmp one.thiele a.thiele
run score one.thiele all.csv
cp "$out" scores
run score one.thiele a.csv b.csv c.csv
expect_done
check "the scores are the same" cmp scores "$out"
run predict one.thiele all.csv --id row -o all.out
run predict one.thiele a.csv b.csv c.csv --id row -o many.out
expect_done
check "the predictions are the same" cmp all.out many.out
run sums one.thiele all.csv -o all.sums
run sums one.thiele a.csv b.csv c.csv -o many.sums
expect_done
check "the sums are the same" cmp all.sums many.sums
# shellcheck disable=SC2086
run cv all.csv $options --folds 2
cp "$out" folds
# shellcheck disable=SC2086
run cv a.csv b.csv c.csv $options --folds 2
expect_done
check "the folds are the same" cmp folds "$out"

# A row is named with its file.
(head -4 c.csv && sed -n 5p c.csv | sed 's/[^,]*$/hello/') >bad.csv
# shellcheck disable=SC2086
run fit a.csv bad.csv $options -o no.thiele
expect_refusal 1 "bad.csv: column 'strength', row 4: 'hello' is not a number"
(head -4 c.csv && sed -n 5p c.csv | sed 's/[^,]*$//') >bad.csv
# shellcheck disable=SC2086
run fit a.csv bad.csv b.csv $options -o no.thiele
expect_refusal 1 "column 'strength', row 4 of bad.csv: no value"
# shellcheck disable=SC2086
run fit a.csv bad.csv b.csv $options --drop-missing -o some.thiele
expect_done

# What does not go together.
sed 1s/x2/z/ b.csv >bad.csv
# shellcheck disable=SC2086
run fit a.csv bad.csv $options -o no.thiele
expect_refusal 1 "column 3 of bad.csv is 'z', and that of a.csv is 'x2'"
cut -d, -f1-4 b.csv >bad.csv
# shellcheck disable=SC2086
run fit a.csv bad.csv $options -o no.thiele
expect_refusal 1 "a.csv has a column 'strength', and bad.csv has none"
# shellcheck disable=SC2086
run fit a.csv absent.csv $options -o no.thiele
expect_refusal 1 'cannot open absent.csv'
# shellcheck disable=SC2086
run fit a.csv b.csv $options -o b.csv
expect_refusal 2 "would overwrite the input 'b.csv'"
# shellcheck disable=SC2086
run fit a.csv b.csv $options --log b.csv -o no.thiele
expect_refusal 2 "would overwrite the input 'b.csv'"
run fit a.csv b.csv --target strength --stream -o no.thiele
expect_refusal 2 'reads one file or pipe'
run fit
expect_refusal 2 '--target'
run score one.thiele
expect_refusal 2 'score needs DATA'
expect_no_file no.thiele
expect_clean
finish
