#!/usr/bin/env bash
# thiele report: pages of numbers, two and several labels, counts, several targets and draws; valid HTML where tidy is
# there, and in a browser (Chromium) no overflow at two widths, enough contrast on light and dark, names for pictures.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || echo "skipped: pages in a browser, since there is no Chromium (scripts/setup browser)"
command -v tidy >/dev/null || echo "skipped: validity of the HTML, since there is no tidy (scripts/setup browser)"

# look PAGE WIDTH dark|light: what tests/tools/page_check.js says of it.
look() {
    local scheme=1
    [ "$3" = dark ] && scheme=0
    { sed 's,</body>.*,,' "$1" | sed "s,</head>,<style>html{width:$2px}</style></head>,"; echo "<script>"
      cat "$SOURCE/tests/tools/page_check.js"; echo "</script></body></html>"; } >look.html
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$WORK/.browser" \
        --blink-settings=preferredColorScheme=$scheme --window-size="$2",900 --dump-dom "file://$WORK/look.html" \
        >look.out 2>/dev/null
    check "the page opens at $2 on $3" grep -q "<title>$2 $3</title>" look.out
    check "$1 at $2 on $3: $(grep -o 'WRONG[^<]*' look.out | head -c 600)" grep -q 'GOOD' look.out
}

expect_page() {
    expect_file "$1"
    check "$1 is below 1 MB" test "$(wc -c <"$1")" -lt 1000000
    check "$1 has no script and no link to elsewhere" test -z "$(grep -oE '<script|<link|<img|https?://' "$1")"
    check "$1 has no number that is none" test -z "$(grep -oE '[ "MLVH>](nan|-nan|inf)[ "<LMV]' "$1")"
    if command -v tidy >/dev/null; then
        # tidy does not know SVG's title with an id, nor that a bar may be empty.
        check "$1 is valid: $(tidy -q -e --drop-empty-elements no "$1" 2>&1 | grep -v 'proprietary attribute "id"' | head -3)" \
            test -z "$(tidy -q -e --drop-empty-elements no "$1" 2>&1 | grep -v 'proprietary attribute "id"')"
    fi
}

awk -v rows=260 'function u() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    BEGIN { OFS = ","; seed = 23; print "part", "a<b", "x 2", "kind", "y", "z", "two", "three", "count"
    for (i = 0; i < rows; i++) { x = 6 * u() - 3; w = 4 * u() - 2; k = u() < 0.5 ? "old & worn" : "new"
        f = 2 * sin(2 * x) + w + (k == "new"); e = u() + u() + u() + u() - 2
        print i % 2, x, w, k, f + e, -f + 2 * e, (u() < 1 / (1 + exp(-f)) ? "yes" : "no"),
              (f + e > 1.5 ? "high" : f + e < -1 ? "low" : "mid"), int(exp(0.4 * f) * 2 * u()) } }' >all.csv
for part in 0 1; do
    awk -F, -v part=$part 'BEGIN { OFS = "," } NR == 1 || $1 == part' all.csv | cut -d, -f2- >part$part.csv
done

# model NAME TARGET OPTIONS...: fitted to one half of the rows, reported on the other.
model() {
    local name=$1 target=$2 others
    shift 2
    others=$(printf 'y,z,two,three,count' | tr , '\n' | grep -vxF -f <(tr , '\n' <<<"$target") | paste -sd,)
    run fit part0.csv --target "$target" --ignore "$others" "$@" -o "$name.thiele" --threads 1 --quiet
    expect_status 0
    run report "$name.thiele" part1.csv -o "$name.html" --threads 1
    expect_done
    expect_out '^verdict +[A-Z].*\.$'
    for lamp in calibrated converged inducing conditioned domain leak; do
        expect_out "^$lamp +"
    done
    expect_out "^saved to +$name.html$"
    expect_page "$name.html"
    [ -n "$browser" ] && look "$name.html" 390 light && look "$name.html" 1280 light && look "$name.html" 1280 dark
}

model exact y --method exact --kernel se
model pic y --method pic --kernel se
model student y --method dense --likelihood student-t --kernel se
model sparse y --method collapsed --inducing 30 --kernel se --calibrate
model variational two --method variational --inducing 30 --kernel se
model two two --method dense --kernel se
model three three --method variational --inducing 30 --kernel se
model count count --likelihood poisson --method dense --kernel se
model sampled two --method gibbs --draws 200 --kernel se
model targets y,z --method exact --kernel se
model decoupled y --method decoupled --kernel se --iterations 40
model fitc y --method fitc --inducing 30 --kernel se

# The other target, a model by itself, the default name, JSON.
run report targets.thiele part1.csv --target z -o z.html
expect_done
check "the page is about z" grep -q 'Can predictions of z be trusted' z.html
run report targets.thiele
expect_done
expect_out '^saved to +targets-report.html$'
expect_page targets-report.html
run report exact.thiele part1.csv --json
expect_done
have_python && check "JSON" python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["report"] == 1 and len(d["lamps"]) == 6 and d["state"] in ("green", "amber", "red"), d["lamps"]
assert len(d["errors"]["worst"]) == 10 and d["data"]["rows"] == 130' "$out"
check "--json alone writes no page" test ! -e exact-report.html
run report exact.thiele part1.csv -o -
expect_done
check "the page on standard output" cmp "$out" exact.html

# Many rows: a page of the same size.
"$THIELE" generate -n 400 -o train.csv
"$THIELE" generate -n 30000 --seed 1 -o many.csv
run fit train.csv --target strength --ignore row --method collapsed --inducing 30 --kernel se --quiet
run report train.thiele many.csv -o many.html --threads 1
expect_done
expect_page many.html
check "many rows make no large page" test "$(wc -c <many.html)" -lt 200000

# What is wrong is one sentence, and nothing is written.
run report exact.thiele part1.csv --target nothing -o bad.html
expect_refusal 2 "predicts 'y', not 'nothing'"
run report exact.thiele part1.csv -o part1.csv
expect_refusal 2 'part1.csv'
cut -d, -f1-3 part1.csv >inputs.csv
run report exact.thiele inputs.csv -o bad.html
expect_refusal 1 "'y'"
head -5 part1.csv >few.csv
run report exact.thiele few.csv -o bad.html
expect_refusal 1 '4 rows of the table can be scored: a report needs 10 at least'
run report exact.thiele part1.csv -o - --json
expect_refusal 2 'standard output'
expect_no_file bad.html
expect_clean
finish
