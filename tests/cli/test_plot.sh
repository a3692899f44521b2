#!/usr/bin/env bash
# thiele plot: pictures of slices for numbers, labels and counts, over numbers and over levels, with and without a
# table; what is wrong is said before anything is written.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# A picture is well-formed, has something to read aloud, and both colour schemes.
expect_picture() {
    expect_file "$1"
    check "$1 has a title" grep -q '<title id="title">[^<]' "$1"
    check "$1 has a description" grep -q '<desc id="description">[^<]' "$1"
    check "$1 knows dark screens" grep -q 'prefers-color-scheme:dark' "$1"
    check "$1 is below 60 kB" test "$(wc -c <"$1")" -lt 60000
    check "$1 has no number that is none" test -z "$(sed 's/<desc.*desc>//' "$1" | grep -Ei '[ "MLVH](nan|inf)')"
    have_python && check "$1 is XML" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"
}

"$THIELE" generate -n 150 -o train.csv
run fit train.csv --target strength --ignore row -o model.thiele
expect_status 0
run plot model.thiele train.csv --over x1
expect_done
expect_out '^saved to +model-x1.svg$'
expect_out '^slice at +x2 = .*, site = '
expect_out '^rows +[1-9][0-9]* near the slice, of 150$'
expect_picture model-x1.svg
check "the picture is named" grep -q '<title id="title">strength over x1</title>' model-x1.svg
run plot model.thiele train.csv --over x1 -o again.svg
check "the same picture has the same bytes" cmp model-x1.svg again.svg

# What --at says is where it is: the mean at x2 = 1 is some 4 above that at x2 = 0.
run plot model.thiele --over x1 --at 'x2=0, site=north' --range -1,1 -o -
expect_done
check "the picture is all there is on standard output" test "$(head -c 4 "$out")" = '<svg'
sed -n 's/.*goes from -1 to 1, the mean of strength goes from \([-0-9.]*\) to .*/\1/p' "$out" >low
run plot model.thiele --over x1 --at 'x2=1' --at 'site=north' --range -1,1 -o -
sed -n 's/.*goes from -1 to 1, the mean of strength goes from \([-0-9.]*\) to .*/\1/p' "$out" >high
check "--at moves the slice" awk '{ getline h <"high"; if (h - $1 < 2 || h - $1 > 6) exit 1 }' low
# The mean in the picture is that of predict.
printf 'x1,x2,site\n-1,1,north\n' >one.csv
run predict model.thiele one.csv
check "predict says the same" awk -F, 'FNR == 2 { getline h <"high"; d = $1 - h; if (d < -0.01 || d > 0.01) exit 1 }' "$out"

run plot model.thiele train.csv --over site -o levels.svg
expect_done
expect_picture levels.svg
check "levels are named" grep -q '>north<' levels.svg
run plot model.thiele --over x2 -o alone.svg
expect_done
expect_picture alone.svg

# A table without the target has no rows to show, but a range and medians.
cut -d, -f1-3 train.csv | sed 's/strength/other/' >inputs.csv
run plot model.thiele inputs.csv --over x1 -o inputs.svg
if [ "$status" -eq 0 ]; then
    expect_picture inputs.svg
fi

# Two labels, several labels, counts; names that XML has to be told of.
awk 'BEGIN { OFS = ","; print "a<b", "size & weight", "kind", "three", "count"
    for (i = 0; i < 90; i++) {
        x = i / 30; z = (i * 7 % 10) / 10
        print x, (i % 2 ? "l<" : "s&"), (x + z > 2 ? "yes" : "no"), (x < 1 ? "u" : x + z < 2 ? "v" : "w"), int(x * 2 + 3 * z)
    } }' >odd.csv
for target in kind three count; do
    ignored=$(echo kind,three,count | sed "s/$target//; s/,,/,/; s/^,//; s/,$//")
    likelihood=
    [ "$target" != count ] || likelihood="--likelihood poisson"
    # shellcheck disable=SC2086
    run fit odd.csv --target "$target" --ignore "$ignored" $likelihood -o "$target.thiele" --effort low
    expect_status 0
    for over in 'a<b' 'size & weight'; do
        run plot "$target.thiele" odd.csv --over "$over" -o odd.svg
        expect_done
        expect_picture odd.svg
    done
done

# A picture of pixels where there is a converter, else a sentence.
run plot model.thiele train.csv --over x1 -o slice.png
if [ "$status" -eq 0 ]; then
    check "it is PNG" test "$(head -c 4 slice.png | tail -c 3)" = PNG
else
    expect_refusal 1 'rsvg-convert' 'write .svg'
    expect_no_file slice.png
fi
# The converters are tried in turn; what a broken one has written is no part of the picture.
mkdir converters
printf '#!/bin/sh\necho half a picture\nexit 3\n' >converters/rsvg-convert
# shellcheck disable=SC2016
printf '#!/bin/sh\nread -r first\ncase $first in "<svg"*) printf "\\211PNG and so on" ;; esac\n' >converters/inkscape
chmod +x converters/*
last="plot with a broken rsvg-convert and an inkscape"
PATH=$PWD/converters "$THIELE" plot model.thiele --over x1 -o second.png >"$out" 2>"$err"
status=$?
expect_done
check "the second one's picture is kept" test "$(tail -c +2 second.png)" = "PNG and so on"
rm converters/inkscape
last="plot with a broken converter"
PATH=$PWD/converters "$THIELE" plot model.thiele --over x1 -o broken.png >"$out" 2>"$err"
status=$?
expect_refusal 1 'rsvg-convert could not make a PNG' 'write .svg'
expect_no_file broken.png
last="plot with no converter on the path"
PATH=/nonexistent "$THIELE" plot model.thiele --over x1 -o none.png >"$out" 2>"$err"
status=$?
expect_refusal 1 'rsvg-convert, inkscape or ImageMagick., and none was found' 'write .svg'
expect_no_file none.png

# Refusals.
run plot model.thiele train.csv
expect_refusal 2 'needs --over' 'x1, x2 or site'
run plot model.thiele --over sitte
expect_refusal 2 "no input 'sitte'" "did you mean 'site'"
run plot model.thiele --over pressure
expect_refusal 2 "no input 'pressure'" 'x1, x2 or site'
run plot model.thiele --over x1 --at x2
expect_refusal 2 'NAME=VALUE'
run plot model.thiele --over x1 --at 'x2=high'
expect_refusal 2 "'high' is not a number"
run plot model.thiele --over x1 --at 'site=west'
expect_refusal 2 "'west' is not a level"
for range in 1 2,1 a,b 1,2,3 ,; do
    run plot model.thiele --over x1 --range "$range"
    expect_refusal 2 '--range'
done
run plot model.thiele --over site --range 1,2
expect_refusal 2 '--range' 'levels'
run plot model.thiele --over x1 --target strenght
expect_refusal 2 "did you mean 'strength'"
run plot model.thiele train.csv --over x1 -o nowhere/slice.svg
expect_refusal 1 'nowhere'
run plot model.thiele train.csv --over x1 -o train.csv
expect_refusal 2 'overwrite'
run plot
expect_refusal 2 'needs MODEL'
expect_clean
finish
