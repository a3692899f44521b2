#!/usr/bin/env bash
# --calibrate: what fit, info, score and predict say of it, and who is refused; heavy tails are spoken of without it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# y = sin(3 x) with the noise of a Student-t of two degrees of freedom; label: its sign with noise.
python3 - <<'PY'
import math, random
for name, rows, seed in (("train.csv", 500, 1), ("test.csv", 2000, 2)):
    draw = random.Random(seed)
    with open(name, "w") as file:
        print("x,y,label,count", file=file)
        for _ in range(rows):
            x = draw.uniform(-2, 2)
            t = draw.gauss(0, 1) / math.sqrt((draw.gauss(0, 1) ** 2 + draw.gauss(0, 1) ** 2) / 2)
            label = "up" if math.sin(3 * x) + draw.gauss(0, 0.5) > 0 else "down"
            print(f"{x!r},{math.sin(3 * x) + 0.2 * t!r},{label},{int(abs(4 * x))}", file=file)
PY

# --- heavy tails are spoken of wherever there are residuals, with what to do
run fit train.csv --target y --inputs x --noise gaussian --quiet -o plain.thiele
expect_done
expect_out '^heavy tails +[0-9]+ of 500 residuals'
expect_out 'student-t, or --calibrate'
run fit train.csv --target y --inputs x --method collapsed --holdout 0.5 --quiet -o held.thiele
expect_done
expect_out '^heavy tails +[0-9]+ of 250 residuals'
run info plain.thiele --json
expect_done
expect_that "$out" 'd["tails"][0]["heavy"] is True and d["tails"][0]["rows"] == 500 and "calibration" not in d'

# --- intervals: exact fits by leave-one-out, others by rows that are held out
for method in exact collapsed pic; do
    run fit train.csv --target y --inputs x --method $method --set noise=1e-4 --calibrate --quiet -o m.thiele
    expect_done
    expect_out '^calibrated +by 500 (left-out|held-out) rows'
    expect_out '90% intervals are [0-9.]+ times as wide'
    run info m.thiele
    expect_done
    expect_out '^calibrated +by 500 (left-out|held-out) rows'
    run info m.thiele --json
    expect_done
    expect_that "$out" 'd["calibration"]["rows"] == 500 and 0.9 in d["calibration"]["targets"][0]["levels"]'
    run score m.thiele test.csv --json
    expect_done
    expect_that "$out" 'd["calibrated_by"] == 500 and 0.85 < d["coverage90"] < 0.95 and 0.42 < d["coverage50"] < 0.58'
    expect_that "$out" 'd["nlpd"] < 1.5 and d["crps"] > 0'
    run score m.thiele test.csv
    expect_done
    expect_out '^calibrated +by 500 (left-out|held-out) rows'
done
run predict m.thiele test.csv --quantiles 0.001,0.05,0.5,0.95,0.9999 --samples 2 -o p.csv
expect_done
check "quantiles rise, and draws are there" python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("p.csv")))
assert len(rows) == 2000
for row in rows:
    q = [float(row[name]) for name in ("q0.001", "q0.05", "q0.5", "q0.95", "q0.9999")]
    assert q == sorted(q) and len(set(q)) == 5 and "s2" in row, row
PY

# --- labels: a temperature
run fit train.csv --target label --inputs x --likelihood bernoulli --calibrate --json --quiet -o l.thiele
expect_done
expect_that "$out" '0.5 < d["model"]["calibration"]["temperature"] < 2'
run info l.thiele
expect_done
expect_out 'class probabilities at temperature'
run score l.thiele test.csv
expect_done
expect_out '^calibrated '

# --- a model that goes on learning keeps its calibration
run fit train.csv --target y --inputs x --method variational --inducing 20 --calibrate --quiet -o u.thiele
expect_done
run update u.thiele test.csv --quiet -o later.thiele
expect_done
run score later.thiele test.csv --json
expect_done
expect_that "$out" 'd["calibrated_by"] == 500'

# --- a deadline that is over before the chains have drawn leaves a model that can be read
run fit train.csv --target y --inputs x --likelihood student-t --method gibbs --holdout 0.2 --deadline 0.3 --quiet -o g.thiele
run score g.thiele test.csv --json
expect_done

# --- who is refused, in one sentence
run fit train.csv --target count --inputs x --likelihood poisson --calibrate -o n.thiele
expect_refusal 2 'calibrate works for continuous numbers and for unordered labels, not for the counts'
run fit train.csv --target count --inputs x --likelihood ordinal --calibrate -o n.thiele
expect_refusal 2 'not for the ordered labels'
finish
