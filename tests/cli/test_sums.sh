#!/usr/bin/env bash
# thiele sums and combine: a hundred parts in any order make the model file of one pass to the byte; sums of sums; what
# is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$THIELE" generate -n 3000 -o all.csv
head -401 all.csv >first.csv
run fit first.csv --target strength --ignore row --method collapsed --inducing 25 --iterations 3 -o model.thiele --quiet
expect_status 0

run sums model.thiele all.csv -o whole.sums
expect_done
expect_out '^rows +3000$'
expect_out '^saved to +whole.sums$'
run combine model.thiele whole.sums -o whole.thiele
expect_done
expect_out '^rows +3000 of 1 part$'

tail -n +2 all.csv | split -l 30 - part-
for part in part-*; do
    (head -1 all.csv; cat "$part") >"$part.csv"
    "$THIELE" sums model.thiele "$part.csv" -o "$part.sums" --threads 1 --quiet >/dev/null || fail "sums of $part"
done
# shellcheck disable=SC2046
run combine model.thiele $(ls -r part-*.sums) -o parts.thiele
expect_done
expect_out '^rows +3000 of 100 parts$'
check "parts make the same model" cmp whole.thiele parts.thiele
# shellcheck disable=SC2046
run combine model.thiele $(ls part-a[a-m].sums) -o one.sums
expect_done
# shellcheck disable=SC2046
run combine model.thiele one.sums $(ls part-a[n-z].sums) $(ls part-[b-z]*.sums) -o steps.thiele --json
expect_done
expect_json "$out"
expect_that "$out" 'd["rows"] == 3000 and d["saved"] == "steps.thiele"'
check "sums of sums make the same model" cmp whole.thiele steps.thiele
run info whole.thiele
expect_done
expect_out '3000'
run score whole.thiele all.csv
expect_done

# Parts without rows are no part twice.
sed 's/[^,]*$//; 1s/.*//' all.csv | sed "1s/.*/$(head -1 all.csv)/" | head -4 >none.csv
for part in 1 2; do
    run sums model.thiele none.csv --drop-missing -o none$part.sums
    expect_done
done
run combine model.thiele none1.sums whole.sums none2.sums -o with-none.thiele
expect_done
check "parts without rows should change nothing" cmp whole.thiele with-none.thiele

# What cannot be.
run sums model.thiele all.csv
expect_refusal 2 'needs -o'
run combine model.thiele whole.sums
expect_refusal 2 'needs -o'
run combine model.thiele -o none.thiele
expect_refusal 2 'needs SUMS'
cp part-aa.sums copy.sums
run combine model.thiele part-aa.sums part-ab.sums copy.sums -o twice.thiele
expect_refusal 1 'part-aa.sums and copy.sums hold the same rows'
expect_no_file twice.thiele
run combine whole.thiele part-aa.sums all.csv -o bad.thiele
expect_refusal 1 'all.csv: these are not sums over rows'
head -c 1000 part-ab.sums >short.sums
run combine model.thiele short.sums -o bad.thiele
expect_refusal 1 'short.sums: these are not sums over rows, or they are damaged'
run fit first.csv --target strength --ignore row --method collapsed --inducing 26 --iterations 3 -o other.thiele --quiet
run combine other.thiele part-aa.sums -o bad.thiele
expect_refusal 1 'part-aa.sums: these sums were made with another model'
run combine model.thiele part-aa.sums -o part-aa.sums
expect_status 2
expect_no_file bad.thiele
(head -1 all.csv; sed -n 2,9p all.csv; sed -n 10p all.csv | sed 's/[^,]*$/hello/') >bad.csv
run sums model.thiele bad.csv -o bad.sums
expect_refusal 1 "hello"
expect_no_file bad.sums
head -100 all.csv >exact.csv
run fit exact.csv --target strength --ignore row --method exact --iterations 2 -o exact.thiele --quiet
run sums exact.thiele all.csv -o no.sums
expect_refusal 1 "rows of a model by method 'exact' have no sums"
expect_clean
finish
