#!/bin/sh
# compile.sh LANGUAGE COMPILER: the pointwise formulas as c++ or cuda. Where there is no compiler for it: skipped (77).
set -eu
cd "$(dirname "$0")"
compiler=$2
case $1 in
c++) exec "$compiler" -std=c++11 -Wall -Wextra -Werror -I ../../src -x c++ -fsyntax-only formulas.cu ;;
cuda)
    command -v "$compiler" >/dev/null || { echo "there is no nvcc here: skipped"; exit 77; }
    out=$(mktemp)
    trap 'rm -f "$out"' EXIT
    "$compiler" -Werror all-warnings -I ../../src -ptx -o "$out" formulas.cu
    [ -s "$out" ]
    ;;
esac
