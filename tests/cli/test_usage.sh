#!/usr/bin/env bash
# Help, versions, and every way to misuse the command line.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run --version
expect_done
expect_out '^thiele [0-9]+\.[0-9]+\.[0-9]+$'
for words in --help help -h; do
    run $words
    expect_done
    expect_out '^Usage: thiele COMMAND'
done
run
expect_status 2
expect_err '^Usage:'

for command in fit update predict score compare cv info plot devices examples generate options completion; do
    run "$command" --help
    expect_done
    expect_out "^Usage: thiele $command "
    expect_out '^Examples:'
    check "help fits 80 columns" test -z "$(grep -E '^.{80}' "$out")"
    cp "$out" help.txt
    run help "$command"
    expect_done
    check "help COMMAND is COMMAND --help" cmp help.txt "$out"
    run "$command" -h --nonsense
    expect_done
done

run fti
expect_refusal 2 "no command 'fti'" "did you mean 'fit'"
run help pedict
expect_refusal 2 "did you mean 'predict'"
run --verison
expect_refusal 2 "did you mean '--version'"
run xyzzy
expect_refusal 2 "no command 'xyzzy'"
run train data.csv
expect_refusal 2 "no command 'train'" "did you mean 'fit'"

# Help on a group of options, on one, on what is nearly one.
run help inducing
expect_done
expect_out '^Inducing inputs$'
expect_out '^  --fix-inducing$'
expect_out 'distinct rows'
run help deadline
expect_done
expect_out '^An option of thiele fit, update, cv$'
expect_out '^  --deadline SECONDS$'
run help --quantiles
expect_done
expect_out '^An option of thiele predict$'
run help optimizer
expect_done
expect_out '^  --optimiser NAME$'
run help kernl
expect_refusal 2 "no command, topic or option 'kernl'" "did you mean 'kernel'"
run --help
topics=$(tr -d '\n' <"$out" | sed 's/.*group of options of a fit: *\(.*[a-z]\)  thiele --version.*/\1/; s/, */ /g')
check "there are topics" test "$(echo "$topics" | wc -w)" -ge 12
for topic in $topics; do
    run help "$topic"
    expect_done
    check "help on $topic has options" grep -q '^  -' "$out"
    check "and fits 80 columns" test -z "$(grep -E '^.{80}' "$out")"
done
run fit data.csv --taget y
expect_refusal 2 'no option --taget' 'did you mean --target'
run predict m.thiele d.csv --quantile=0.5
expect_refusal 2 'no option --quantile:' 'did you mean --quantiles'
run fit data.csv --target y -x
expect_refusal 2 'no option -x'

run fit
expect_refusal 2 'needs DATA'
run fit data.csv
expect_refusal 2 'needs --target'
run cv data.csv
expect_refusal 2 'needs --target'
run predict model.thiele
expect_refusal 2 'needs DATA'
run info
expect_refusal 2 'needs MODEL'
run info a.thiele b.csv
expect_refusal 2 "'b.csv'"
run fit a.csv --target
expect_refusal 2 '--target needs a value'
run fit a.csv --target --json
expect_refusal 2 '--target needs a value' '--json'
run fit a.csv --target ''
expect_refusal 2 'not an empty text'
run fit a.csv --target y --json=yes
expect_refusal 2 '--json takes no value'
run fit a.csv --target y -o -
expect_refusal 2 'standard output'

misread() { # OPTION VALUE: refused, naming both
    run fit a.csv --target y "$1" "$2"
    expect_refusal 2 "^thiele: $1: " "$2"
}
for text in x 1x 0x10 1.5 99999 -1 99999999999999999999 '1 ' ' 1'; do
    misread --threads "$text"
done
for text in x 1e 0x1p3 inf nan -1 1e400 1,5; do
    misread --deadline "$text"
done
for text in -1 1.5 18446744073709551616; do
    misread --seed "$text"
done
for text in 4X G -1G 0 1e30 4GG 4iB1; do
    misread --memory "$text"
done
misread --holdout 2
misread --restarts -2
misread --iterations -1
misread --header maybe
misread --delimiter ab
for text in 0 1 '0.5,' ,0.5 0.5,,0.9 x 0.5x; do
    run predict m.thiele d.csv --quantiles "$text"
    expect_refusal 2 '--quantiles'
done
run cv a.csv --target y --folds 1
expect_refusal 2 '--folds' 'out of range'
run generate -n 0
expect_refusal 2 '--rows'

# Options before and after operands, joined and apart, all mean the same.
run generate -n 5 --seed 3
expect_done
cp "$out" want
run generate --seed=3 -n5
expect_done
check "-n5 is -n 5" cmp want "$out"
run generate --rows=5 --seed 3 -o -
expect_done
check "-o - is standard output" cmp want "$out"
mkdir sub
run generate -n 5 --seed 3 -o sub/--odd
expect_done
cd sub || exit 1
run fit --target strength --ignore row -o ../odd.thiele --iterations 0 -- --odd
expect_status 0
cd ..
expect_file odd.thiele
finish
