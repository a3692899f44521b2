#!/usr/bin/env bash
# True ends: "converged" at a saddle or in the all-noise optimum, where a much better one is there, is none. y = f^2 and
# y1 = f0 f1, y2 = f0 f2 are as likely with the signs of f changed, so that slopes vanish at f = 0, where fits begin;
# rough functions look like noise from length-scales that are too long. The bounds that must be reached lie between
# the false ends and the best that is known for these tables (in brackets); deadlines keep the test short.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

FILES=$SOURCE/tests/cli/false_ends
if ! cc -std=gnu11 -O2 "$FILES/generate.c" -o generate -lm 2>/dev/null; then
    echo "skipped: there is no C compiler to make the tables with"
    exit 0
fi
for name in square product; do
    check "$name.so should be made" cc -std=gnu11 -O2 -shared -fPIC -I "$SOURCE/include" "$FILES/$name.c" \
        -o $name.so -lm
    check "a table of $name" eval "./generate $name 1 >$name.csv"
done
./generate rough 1 >rough.csv
./generate waves 2 >waves.csv

# reaches BOUND TABLE TARGETS OPTIONS...: the fit ends at that bound or above.
reaches() {
    local least=$1 table=$2 targets=$3 bound
    shift 3
    run fit "$table.csv" --target "$targets" --json --quiet -o m.thiele "$@"
    expect_status 0
    bound=$(sed -nE 's/.*"(bound|log_marginal_likelihood)": ([-+0-9.e]+),?$/\2/p' "$out" | head -1)
    echo "$table $*: $bound, $least are there"
    check "the bound, '$bound', should be at least $least" awk -v b="$bound" -v l="$least" \
        'BEGIN {exit !(b != "" && b + 0 >= l)}'
}

# y = f^2 + e (113).
for method in dense 'variational --inducing 40'; do
    for how in quadrature mc:200 qmc:256; do
        # shellcheck disable=SC2086
        reaches 100 square y --likelihood plugin:./square.so --method $method --expectation $how --deadline 6
    done
done
reaches 90 square y --likelihood plugin:./square.so --method decoupled --inducing 40 --expectation quadrature

# y1 = f0 f1 + e, y2 = f0 f2 + e (456; the saddles lie below 50).
for how in 'quadrature --deadline 10' 'mc:500 --deadline 25' 'qmc:256 --deadline 15'; do
    # shellcheck disable=SC2086
    reaches 400 product y1,y2 --likelihood plugin:./product.so --method variational --inducing 40 --expectation $how
done
reaches 200 product y1,y2 --likelihood 'gprn(nodes=1)' --raw --method variational --inducing 40 --deadline 15

# Rough functions (2,621 and 2,759). The optimum of all noise is at -2,894 for waves, and most seeds of them led there.
for how in 'collapsed --deadline 25' 'variational --deadline 15' 'decoupled --deadline 25'; do
    # shellcheck disable=SC2086
    reaches 1000 waves y --kernel 'se(ard)' --method $how
done
reaches 1000 rough y --kernel 'se(ard)' --method collapsed --deadline 25
finish
