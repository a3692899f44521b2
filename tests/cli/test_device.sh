#!/usr/bin/env bash
# --device and thiele devices: with a toy in place of libthiele-cuda, and with nothing that can be used.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
toy=$(dirname "$THIELE")/tests/device_toy.so
run generate -n 60 -o train.csv
expect_done
fit() {
    run fit train.csv --target strength --ignore row --method exact --kernel 'matern52(ard)' "$@"
    expect_status 0
}

export THIELE_CUDA_LIBRARY=$WORK/none.so
run devices
expect_done
expect_out '^cpu '
expect_out '^cuda +none: libthiele-cuda, which works on CUDA cards, cannot be loaded'
run devices --json
expect_done
have_python && check "JSON of devices" python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["why"] and len(d["devices"]) == 1' "$out"
fit --device cpu -o cpu.thiele
check "nothing is said of cards" test ! -s "$err"
fit -o auto.thiele
check "nor where nobody asked for one" test ! -s "$err"
fit --device cuda -o none.thiele
expect_err 'warning: libthiele-cuda.* cannot be loaded .*: going on with the CPU'
check "said once" test "$(grep -c 'going on with the CPU' "$err")" = 1
check "the model is the CPU's" cmp cpu.thiele none.thiele
check "and so is that of auto" cmp cpu.thiele auto.thiele

export THIELE_CUDA_LIBRARY=$toy
run devices
expect_done
expect_out '^cuda:0 +Toy, 0\.5 of 1\.0 GiB free'
fit --device cuda:0 -o toy.thiele
check "no warning" test ! -s "$err"
for model in cpu toy; do
    run predict $model.thiele train.csv -o $model.csv
    expect_done
done
have_python && check "predictions agree" python3 - <<'PY'
import csv
a, b = (list(csv.DictReader(open(f"{m}.csv"))) for m in ("cpu", "toy"))
assert len(a) == len(b) == 60
assert all(abs(float(x[k]) - float(y[k])) < 1e-4 * (1 + abs(float(x[k]))) for x, y in zip(a, b) for k in x if k in ("mean", "sd"))
PY
fit --device cuda:4 -o toy.thiele
expect_err 'there is no card cuda:4: the last one is cuda:0: going on with the CPU'
TOY_DEVICE=breaks:9 fit --device cuda -o broken.thiele
expect_err 'the toy broke: going on with the CPU'
TOY_DEVICE=version fit --device cuda -o other.thiele
expect_err 'libthiele-cuda and this library, [0-9.]+, differ in version: install both in the same version: going on'
run cv train.csv --target strength --ignore row --method exact --kernel se --device cuda -k 2
expect_done

for device in gpu cuda: cuda:x cpu:1; do
    run fit train.csv --target strength --device $device
    expect_refusal 2 "device" "auto, cpu, cuda, or a card such as cuda:1"
done
finish
