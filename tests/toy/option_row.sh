#!/bin/sh
# A tree with an option more than the library has: SOURCE's table with an entry behind the last one, the struct that
# scripts/options makes of it, and copies of the pages that it writes. Usage: option_row.sh SOURCE TREE
set -eu
source=$1 tree=$2
rm -rf "$tree"
mkdir -p "$tree/docs" "$tree/python/src/thiele" "$tree/src/model" "$tree/include/thiele"
cp -r "$source/scripts" "$tree/"
cp -r "$source/docs/man" "$source/docs/options.md" "$tree/docs/"
cp "$source/python/src/thiele/_option_types.py" "$tree/python/src/thiele/"
cp "$source/include/thiele/fit_options.h" "$tree/include/thiele/"
awk '/clang-format on/ {
    print "THI_OPTION(result, toy_size, COUNT, AUTO, \"three\", 1, 9, \"bricks\", \"N\", NO_WORDS, 0,"
    print "    \"how large the toy is\", \"It stands on the table.\")"
}
{ print }' "$source/src/model/options.def" > "$tree/src/model/options.def"
"$tree/scripts/options" --struct
