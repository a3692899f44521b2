#!/usr/bin/env bash
# The demonstration runs and leaves what it says.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

last="scripts/demo"
"$SOURCE/scripts/demo" "$THIELE" demo >"$out" 2>"$err"
status=$?
expect_done
for file in train.csv test.csv model.thiele predictions.csv; do
    expect_file "demo/$file"
    expect_out "demo/$file"
done
expect_out 'RMSE'
finish
