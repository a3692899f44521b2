#!/usr/bin/env bash
# mpirun thiele fit: the same model file on any number of processes and threads, under Open MPI and MPICH; bad rows;
# what does not run on several; a process that is killed ends the others. Skipped where there is no MPI.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
kinds=""
for kind in openmpi mpich; do
    library=$(find "$(dirname "$THIELE")" -maxdepth 1 -name "libthiele-mpi-$kind.so.*" | head -1)
    if [ -n "$library" ] && command -v "mpirun.$kind" >/dev/null; then
        kinds="$kinds $kind"
    else
        echo "skipped: $kind (no mpirun.$kind, or no libthiele-mpi-$kind beside the command)"
    fi
done
[ -n "$kinds" ] || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_rmaps_base_oversubscribe=1

# mpi KIND COUNT ARGUMENTS: the command in so many processes.
mpi() {
    local kind=$1 count=$2
    shift 2
    last="mpirun.$kind -n $count thiele $*"
    timeout 120 "mpirun.$kind" -n "$count" "$THIELE" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

"$THIELE" generate -n 9000 -o all.csv
fit="fit all.csv --target strength --ignore row --method collapsed --kernel se --inducing 30 --iterations 4"
# shellcheck disable=SC2086
run $fit --threads 1 -o one.thiele
expect_done

sed -n 1,2501p all.csv >first.csv
(head -1 all.csv && sed -n 2502,2600p all.csv) >second.csv
(head -1 all.csv && sed -n 2601,9001p all.csv) >third.csv
augmented="fit first.csv --target strength --ignore row --likelihood student-t --method augmented --kernel se --inducing 20 --iterations 3"
# shellcheck disable=SC2086
run $augmented --threads 1 -o augmented.thiele
expect_done

for kind in $kinds; do
    for case in "1 1" "2 1" "3 2" "4 1"; do
        set -- $case
        # shellcheck disable=SC2086
        mpi "$kind" "$1" $fit --threads "$2" -o many.thiele
        expect_status 0
        check "one report is printed" test "$(grep -c '^saved to' "$out")" = 1
        check "$1 processes of $2 threads make the same model" cmp one.thiele many.thiele
        rm -f many.thiele
    done

    # The same of the rows in three files, and augmented: a likelihood that is not Gaussian.
    # shellcheck disable=SC2086
    mpi "$kind" 2 fit first.csv ${fit#fit all.csv} --threads 1 second.csv third.csv -o many.thiele
    expect_status 0
    check "files in parts make the same model" cmp one.thiele many.thiele
    for count in 2 3; do
        # shellcheck disable=SC2086
        mpi "$kind" "$count" $augmented --threads 1 -o many.thiele
        expect_status 0
        check "$count processes make the same augmented model" cmp augmented.thiele many.thiele
        rm -f many.thiele
    done

    # What does not run on several says so, once.
    mpi "$kind" 2 fit all.csv --target strength --ignore row --method pic -o no.thiele
    check "it fails" test "$status" -ne 0
    check "and says why" grep -q "thiele: method 'pic' does not run on 2 processes: " "$err"
    check "once" test "$(grep -c '^thiele: ' "$err")" = 1
    mpi "$kind" 2 info one.thiele
    check "it fails" test "$status" -ne 0
    check "and says why" grep -q 'thiele: info works in one process: leave mpirun out' "$err"
    # A bad row: which file, and where.
    sed '5000s/[^,]*$/hello/' all.csv >bad.csv
    mpi "$kind" 3 fit bad.csv --target strength --ignore row --method collapsed -o no.thiele
    check "it fails" test "$status" -ne 0
    check "and names the row" grep -q '^thiele: .*4999' "$err"
    sed '2000s/[^,]*$//' third.csv >bad.csv
    mpi "$kind" 2 fit first.csv bad.csv --target strength --ignore row --method collapsed -o no.thiele
    check "it fails" test "$status" -ne 0
    check "and names the file" grep -q "^thiele: column 'strength', row 1999 of bad.csv: no value" "$err"
    expect_no_file no.thiele

    # One is killed: the others end, and no half of a model is left.
    "mpirun.$kind" -n 3 "$THIELE" fit all.csv --target strength --ignore row --method collapsed --kernel se --inducing 300 --iterations 500 --threads 1 -o killed.thiele >"$out" 2>"$err" </dev/null &
    launcher=$!
    for _ in $(seq 100); do
        victim=$(ps -o pid= -o args= -e | grep "$THIELE fit all.csv.*killed.thiele" | grep -v mpirun | grep -v grep | awk '{print $1}' | tail -1)
        [ -z "$victim" ] || break
        sleep 0.1
    done
    sleep 1
    check "there is a process to kill" kill -9 "${victim:-0}"
    for _ in $(seq 100); do
        kill -0 "$launcher" 2>/dev/null || break
        sleep 0.1
    done
    check "all end within ten seconds" test -z "$(ps -p "$launcher" -o pid=)"
    kill "$launcher" 2>/dev/null
    wait "$launcher" 2>/dev/null
    expect_no_file killed.thiele
    expect_clean
done

# Without the library there is a sentence.
export THIELE_MPI_LIBRARY=$WORK/none.so
# shellcheck disable=SC2086
mpi "${kinds##* }" 2 $fit -o no.thiele
check "it fails" test "$status" -ne 0
check "and says why" grep -q 'thiele: the library that carries numbers between processes cannot be loaded' "$err"
finish
