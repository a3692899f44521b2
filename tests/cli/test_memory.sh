#!/usr/bin/env bash
# When memory is short the command says so in one sentence; it never crashes, never aborts and leaves no half of a file.
# First every allocation of the process in turn fails (its libraries' too), then the address space is limited.
. "$(dirname "$0")/lib.sh"
preload=$(dirname "$THIELE")/tests/failing_malloc.so

run generate -n 40 -o t.csv
expect_done
run fit t.csv --target strength --ignore row --iterations 2 -o model.thiele
expect_status 0
commands=(
    "fit t.csv --target strength --ignore row --iterations 2 -o new.thiele --quiet"
    "predict model.thiele t.csv -o p.csv --quantiles 0.1,0.9"
    "score model.thiele t.csv"
    "info model.thiele"
)

# Done, or an error with a sentence; never a signal, and nothing from a library.
expect_graceful() {
    checks=$((checks + 1))
    [ "$status" -lt 128 ] || fail "a signal ended it"
    if [ "$status" -ne 0 ]; then
        expect_err '^thiele: '
    fi
    check "the libraries should be silent" test -z "$(grep -v '^thiele: ' "$err" | grep -i 'blis\|abort\|terminate')"
    expect_clean
}

if [ -e "$preload" ]; then
    for command in "${commands[@]}"; do
        # shellcheck disable=SC2086
        LD_PRELOAD=$preload THIELE_FAIL_REPORT=$WORK/count run $command
        expect_status 0
        count=$(cat count)
        step=$((count / 60 + 1))
        for ((nth = 1; nth <= count; nth += nth < 30 ? 1 : step)); do
            sticky=$([ $((nth % 2)) -eq 0 ] && echo "THIELE_FAIL_STICKY=1")
            # shellcheck disable=SC2086
            last="$command, allocation $nth"
            env LD_PRELOAD="$preload" THIELE_FAIL_AT=$nth $sticky "$THIELE" $command >"$out" 2>"$err" </dev/null
            status=$?
            expect_graceful
        done
    done
else
    echo "no failing malloc beside this build: left out"
fi

# The sanitizers reserve terabytes of addresses. Where not even the version is shown, nothing of ours was loaded.
commands+=("fit t.csv --target site --ignore row --likelihood softmax --method variational --inducing 8 --iterations 3 --threads 4 -o new.thiele --quiet")
within() { # MEGABYTES ARGUMENTS...
    local megabytes=$1
    shift
    last="$* in $megabytes MB"
    (ulimit -v $((megabytes * 1024)) && exec "$THIELE" "$@" >"$out" 2>"$err" </dev/null) 2>/dev/null
    status=$?
}
if ! grep -q __asan_init "$THIELE"; then
    for megabytes in $(seq 8 6 120) 160 200; do
        within "$megabytes" --version
        [ "$status" -eq 0 ] || continue
        for command in "${commands[@]}"; do
            # shellcheck disable=SC2086
            within "$megabytes" $command
            expect_graceful
        done
    done
    expect_status 0
fi
finish
