#!/usr/bin/env bash
# Auxiliary variables and samplers through the command: each method fits, is described, predicts; what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {srand(3); print "x,y,label"; for (i = 0; i < 120; i++) {x = 6 * rand() - 3; f = 2 * sin(2 * x);
    y = f + 0.1 * (rand() - 0.5); if (i % 10 == 0) y += 20 * (rand() - 0.5);
    print x "," y "," (rand() < 1 / (1 + exp(-f)) ? "yes" : "no")}}' >train.csv
awk 'BEGIN {print "x,y"; for (i = 0; i < 50; i++) {x = -2.5 + 0.1 * i; print x "," 2 * sin(2 * x)}}' >clean.csv

class() { run fit train.csv --target label --ignore y --likelihood bernoulli -o m.thiele "$@"; }
real() { run fit train.csv --target y --ignore label -o m.thiele "$@"; }

# --- augmented is what auto chooses where the likelihood has it
class --json
expect_done
expect_that "$out" 'd["model"]["method"] == "augmented" and d["model"]["expectation"] == "augmented"'
class --method augmented --inducing 20 --json
expect_done
expect_that "$out" 'd["model"]["sparse"]["inducing"] == 20 and d["model"]["expectation"] == "augmented"'
class --expectation quadrature --json
expect_that "$out" 'd["model"]["method"] == "dense" and d["model"]["expectation"] == "quadrature"'

# --- outliers: robust noise finds the function, Gaussian noise does not as well
rmse() { run score m.thiele clean.csv --json; python3 -c "import json; print(json.load(open('$out'))['rmse'])"; }
real --noise gaussian
gaussian=$(rmse)
for likelihood in student-t laplace matern32; do
    real --likelihood "$likelihood" --method augmented
    expect_done
    check "$likelihood is closer to the clean function" python3 -c "import sys; sys.exit(not $(rmse) < 0.7 * $gaussian)"
done

# --- samplers
for method in gibbs ess hmc mh; do
    class --method $method --draws 300 --json
    expect_done
    expect_that "$out" 'd["model"]["sampling"]["sampler"] == "'$method'" and 0 < d["model"]["sampling"]["kept"] <= 1000'
    run info m.thiele
    expect_out "sampling +$method, 4 chains of 300 draws"
    run predict m.thiele clean.csv
    expect_out '^label,p.no,p.yes'
done
expect_out '^(yes|no),'
class --method mh --draws 20
expect_out '(the chains did not mix|too few draws)'
class --method gibbs --draws 400
expect_done
check "gibbs mixes" sh -c "! grep -q 'did not mix' '$out'"

# --- what is said of many draws is short, and weights that are all the same are not said at all
class --method gibbs --chains 2 --draws 200 --iterations 2
run info m.thiele --json
expect_that "$out" 'd["sampling"]["kept"] == 200 and "weights" not in d'
check "a short description" test "$(wc -c <"$out")" -lt 5000

# --- no burn-in, and one chain
class --method hmc --chains 1 --burn-in 0 --draws 20 --step 0.1 --iterations 2
expect_done
expect_out 'sampling +hmc, 1 chain of 20 draws'

# --- any sampler learns by the augmentation where there is one, unless told otherwise
class --method ess --draws 10 --iterations 2 --json
expect_that "$out" 'd["model"]["expectation"] == "augmented"'
class --method ess --draws 10 --iterations 2 --expectation quadrature --json
expect_that "$out" 'd["model"]["expectation"] == "quadrature"'

# --- a file that says something else of its draws than it has, or nonsense of its columns, is refused
class --method gibbs --draws 50 --iterations 2
expect_done
forge() { # PYTHON: changes the description d
    python3 - "$1" <<'PYTHON'
import json, struct, sys, zlib
raw = open("m.thiele", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
about = header["__metadata__"]
d = json.loads(about["model"])
exec(sys.argv[1])
about["model"] = json.dumps(d)
about["crc32"] = "00000000"
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-(8 + len(text)) % 64)
forged = struct.pack("<Q", len(text)) + text + data
open("forged.thiele", "wb").write(forged.replace(b'"00000000"', b'"%08x"' % zlib.crc32(forged), 1))
PYTHON
}
forge 'pass'
run info forged.thiele
expect_done
forge 'd["sampling"]["rhat"] = None'
run info forged.thiele
expect_out 'too few draws'
for change in 'd["sampling"] = 7' 'd["sampling"] = []' 'd["sampling"]["sampler"] = "hmc"' 'del d["sampling"]["sampler"]' \
    'd["sampling"]["chains"] = 0' 'd["sampling"]["chains"] = 10**9' 'd["sampling"]["draws"] = -1' \
    'd["sampling"]["draws"] = 0.5' 'd["sampling"]["kept"] = 199' 'd["sampling"]["divergences"] = "many"' \
    'd["sampling"]["rhat"] = -1' 'd["sampling"]["rhat"] = "1"' 'd["sampling"]["lag1"] = 2' \
    'd["sampling"]["acceptance"] = 1.5' 'd["sampling"]["ess_least"] = -5' 'del d["sampling"]["step"]' \
    'd["method"] = "dense"'; do
    forge "$change"
    run info forged.thiele
    expect_refusal 1 'sampling'
done
for change in 'd["columns"]["dropped"] = 5' 'd["columns"]["dropped"] = []' 'd["columns"]["dropped"] = [1]' \
    'd["columns"]["dropped"] = {"a": "b"}'; do
    forge "$change"
    run info forged.thiele
    expect_refusal 1 'forged.thiele'
done

# --- numbers: scored, held out, with quantiles, at the rows themselves too
real --likelihood student-t --method gibbs --draws 200 --holdout 0.2 --json
expect_done
expect_that "$out" 'd["model"]["holdout"][0]["rows"] == 24 and d["model"]["sampling"]["kept"] <= 256'
run score m.thiele clean.csv --json
expect_that "$out" 'd["rmse"] < 0.5 and d["nlpd"] < 1'
run predict m.thiele train.csv --quantiles 0.1,0.9
expect_done
expect_silent
expect_out '^mean,sd,q0.1,q0.9'
run cv train.csv --target y --ignore label --likelihood laplace --method gibbs --draws 50 --folds 2
expect_done

# --- inducing inputs: draws at them, in a small file, held out and stopped too
real --likelihood student-t --method gibbs --inducing 20 --draws 300 --holdout 0.2 --json
expect_done
expect_that "$out" 'd["model"]["sparse"]["inducing"] == 20 and d["model"]["sampling"]["sampler"] == "gibbs"'
run score m.thiele clean.csv --json
expect_that "$out" 'd["rmse"] < 0.5 and d["nlpd"] < 1'
run predict m.thiele train.csv --quantiles 0.1,0.9
expect_silent
expect_out '^mean,sd,q0.1,q0.9'
class --method gibbs --inducing 20 --draws 50 --threads 1
cp m.thiele one.thiele
class --method gibbs --inducing 20 --draws 50 --threads 2
check "threads change no bit" cmp m.thiele one.thiele
class --method gibbs --inducing 20 --draws 100000 --deadline 0.02
expect_err 'stopped before their first draw'
class --method hmc --inducing 20
expect_refusal 2 'no inducing inputs'

# --- stopped before the first draw: the Gaussian posterior stays
class --method gibbs --draws 100000 --deadline 0.02
check "no draws are claimed" sh -c "! grep -q '0 draws' '$out'"
expect_err 'stopped before their first draw'

# --- the same draws on one thread and on two
class --method gibbs --draws 50 --threads 1
cp m.thiele one.thiele
class --method gibbs --draws 50 --threads 2
check "threads change no bit" cmp m.thiele one.thiele

# --- a deadline ends the chains, and there is a model
class --method hmc --draws 100000000 --burn-in 20 --deadline 1.5
expect_done
expect_out 'stopped at the deadline'

# --- refused
real --method gibbs
expect_refusal 2 "method 'gibbs' needs" 'ess or hmc'
class --likelihood bernoulli-probit --method augmented
expect_refusal 2 "'bernoulli-probit' lacks"
class --method dense --draws 10
expect_refusal 2 'has no chains'
class --method gibbs --draws 2
expect_refusal 2 '--draws: 2 is out of range \(4 to'
class --method gibbs --burn-in -1
expect_refusal 2 '--burn-in: -1 is out of range \(0 to'
class --method gibbs --chains 64 --memory 4M
expect_refusal 1 'too many for method gibbs' 'fewer --chains'
class --method gibbs --chains 100
expect_refusal 2 'chains'
class --method gibbs --leaps 5
expect_refusal 2 'leaps'
class --method ess --step 0.1
expect_refusal 2 'step'
class --method ess --inducing 10
expect_refusal 2 'no inducing inputs'
class --method augmented --expectation quadrature
expect_refusal 2 'its own expectations'
real --likelihood gaussian --expectation augmented --method dense
expect_refusal 2 'no augmentation'

finish
