#!/usr/bin/env bash
# The man pages name every option that the help texts name, and no other.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

for command in fit update predict score compare cv info plot devices generate options completion; do
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
