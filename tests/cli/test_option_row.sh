#!/usr/bin/env bash
# An option is one entry of src/model/options.def: with a toy behind the last one of a copy (tests/toy/option_row.sh) the
# struct, the command's help and completion, JSON, the man page, the reference and Python's types have it. Only what
# reads the table was compiled again: the library around it knows the struct as it was, and does not notice.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
built=$(dirname "$THIELE")/tests
if [ ! -x "$built/thiele_toy" ]; then
    echo "skipped: $built/thiele_toy was not built" >&2
    exit 0
fi
THIELE=$built/thiele_toy
cp -r "$built/toy" tree

check "the struct has it" grep -qx '    int64_t toy_size;' tree/include/thiele/fit_options.h
room() { sed -n '/result_options\|snapshot_file/,/result_options/s/.*reserved\[\([0-9]*\)\].*/\1/p' "$1"; }
check "it takes a reserved place" \
    test "$(room tree/include/thiele/fit_options.h)" = $(($(room "$SOURCE/include/thiele/fit_options.h") - 1))

tree/scripts/options "$THIELE" >/dev/null
# shellcheck disable=SC2016
check "the reference has it" grep -q '^- C: `options.result.toy_size`' tree/docs/options.md
check "Python's types have it" grep -q '^    toy_size: Union\[int' tree/python/src/thiele/_option_types.py
check "the man page has it" grep -q 'toy\\-size' tree/docs/man/thiele-fit.1
run options --json
expect_out '"name": ?"toy_size"'
run options
expect_out '--toy-size N +how large the toy is \(default: three\)'
run fit --help
expect_out '--toy-size N'
run help toy-size
expect_out 'It stands on the table'
for shell in bash zsh fish; do
    run completion $shell
    expect_out 'toy-size'
done
run generate -n 40 -o data.csv
run fit data.csv --target strength --ignore row --toy-size 12 -o m.thiele
expect_refusal 2 '^thiele: --toy-size: 12 is out of range \(1 to 9, in bricks\)'
run fit data.csv --target strength --ignore row --kernel se --iterations 1 --toy-size 4 -o m.thiele
expect_status 0
expect_file m.thiele

# A program of the newer header with the library as it is: what it does not set is not missed, what it sets is refused.
check "it fits" "$built/option_program"
THIELE=$built/option_program
run toy
expect_status 1
expect_err 'thiele_fit_options sets an option that version .* does not know: the program was compiled with a newer header'
finish
