#!/usr/bin/env bash
# The man pages name every option that the help texts name, and no other.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run --help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$out")
check "there are commands" test "$(echo "$commands" | wc -l)" -ge 11
last="thiele.1 against the list of commands"
sed 's/\\-/-/g' "$SOURCE/docs/man/thiele.1" >thiele.txt
for command in $commands; do
    check "thiele.1 says what $command does" grep -qE "^\.B[RI]* $command( |\$)" thiele.txt
    check "thiele.1 leads to thiele-$command" grep -q "^\.BR thiele-$command (1)" thiele.txt
done
for command in $commands; do
    page=$SOURCE/docs/man/thiele-$command.1
    check "$page is there" test -s "$page"
    sed 's/\\-/-/g' "$page" >page.txt
    run "$command" --help
    expect_done
    last="the options in thiele-$command.1 against those in the help"
    sed '/^Examples:/,$d' "$out" >help.txt
    grep -oE -- '^  (-[a-z], )?--[a-z-]+' help.txt | grep -oE -- '--[a-z-]+' | sort >in_help
    grep -A1 '^\.TP' page.txt | grep -E -- '^\.B[IR]* (-[a-z] ", " )?--[a-z-]+' | grep -oE -- '--[a-z-]+' |
        grep -v '^--help$' | sort >in_page
    check "the two lists should be the same: $(diff in_help in_page | grep '^[<>]' | paste -sd' ')" cmp in_help in_page
done
if command -v groff >/dev/null; then
    for page in "$SOURCE"/docs/man/*.1; do
        groff -man -Tascii -ww -Wbreak "$page" >"$out" 2>"$err"
        status=$?
        last="groff -man $page"
        expect_done
    done
fi
finish
