#!/usr/bin/env bash
# Options come from one table: what is listed, completed and documented is what can be set.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run options
expect_done
expect_out '^Inducing inputs:'
expect_out '--fix-inducing '
check "the list fits 80 columns" test -z "$(grep -E '^.{80}' "$out")"

run options --json
expect_done
cp "$out" options.json
python3 - options.json >names <<'PY' || check "the JSON is sound" false
import json, sys
listed = json.load(open(sys.argv[1]))
groups = {group["name"] for group in listed["groups"]}
for option in listed["options"]:
    assert option["group"] in groups and option["meaning"] and not option["meaning"].endswith("."), option
    if option["type"] in ("integer", "number"):
        assert option["low"] < option["high"], option
        assert option["default"] == "auto" or option["low"] <= option["default"] <= option["high"], option
    if option["type"] == "flag":
        assert option["default"] is False, option
    if option["type"] != "program":
        print(option["name"].replace("_", "-"))
PY
check "options are listed" test "$(wc -l <names)" -gt 40
run fit --help
cp "$out" help.txt
run completion bash
expect_done
cp "$out" complete.bash
check "bash takes the script" bash -n complete.bash
run completion zsh
expect_done
cp "$out" complete.zsh
run completion fish
expect_done
cp "$out" complete.fish
while read -r name; do
    for file in help.txt complete.bash complete.zsh; do
        check "$name is in $file" grep -qE -- "--$name( |=|$)" $file
    done
    check "$name is in complete.fish" grep -qE -- "subcommand_from fit' -l $name " complete.fish
done <names

completed() { # WORDS...: what bash completes the last of them to, in `reply`
    reply=$(bash -c '. ./complete.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _thiele; echo "${COMPREPLY[*]}"' \
        bash "$@")
}
completed thiele pre
check "commands are completed" test "$reply" = predict
completed thiele fit --fix
check "options are completed" test "$reply" = --fix-inducing
completed thiele fit data.csv --method coll
check "words are completed" test "$reply" = collapsed
completed thiele fit data.csv --method au
check "auto is a word" test "$reply" = "auto augmented"
completed thiele fit options.js
check "files are completed" test "$reply" = options.json
if command -v zsh >/dev/null; then
    check "zsh takes the script" zsh -n complete.zsh
fi
if command -v fish >/dev/null; then
    check "fish takes the script" fish -n complete.fish
fi
run completion csh
expect_refusal 2 "'csh'" 'bash, zsh and fish'

# Other names, and names that are no longer needed, are taken.
run generate -n 30 -o data.csv
run fit data.csv --target strength --id row --iterations 0 --optimizer auto --drop-constant --replicates -o m.thiele
expect_done
run fit data.csv --target strength --optimiser auto --inducing auto --chains auto --iterations auto --help
expect_done
# Names in messages have the dashes of this program.
run fit data.csv --target strength --inducing 1e3
expect_refusal 2 "^thiele: --inducing: '1e3' is not a whole number or 'auto'"
run fit data.csv --target strength --anytime --method exact
expect_refusal 2
run fit data.csv --target strength --noise gaussian --likelihood gaussian
expect_refusal 2 'only one of --noise and --likelihood'

# Pages that explain methods, likelihoods and kernels have all of them.
python3 - options.json "$SOURCE" >"$out" 2>"$err" <<'PY'
import json, re, sys
options = {option["name"]: option for option in json.load(open(sys.argv[1]))["options"]}
pages = {"method": ["docs/guide.md", "docs/methods.md"], "likelihood": ["docs/likelihoods.md"], "kernel": ["docs/guide.md"]}
missing = []
for name, files in pages.items():
    for file in files:
        text = open(f"{sys.argv[2]}/{file}").read()
        missing += [(file, word) for word in options[name]["choices"] if not re.search(f"`{re.escape(word)}[`(]", text)]
missing += [("options.def", word) for word in options["likelihood"]["choices"] if f"`={word}" not in options["likelihood"]["more"]]

# The methods that can be updated, by the table of docs/methods.md, which test_methods compares with the entries.
rows = [line.split("|") for line in open(f"{sys.argv[2]}/docs/methods.md") if line.startswith("| ")]
column = [cell.strip() for cell in rows[0]].index("update")
can = {row[1].strip(" `") for row in rows if len(row) == len(rows[0]) and row[column].strip() == "yes"}
said = re.search(r"These methods can be updated: ([^;]*);", open(f"{sys.argv[2]}/docs/man/thiele-update.1").read())
missing += [("thiele-update.1", word) for word in can ^ set(re.split(", | and ", said[1]))]
sys.exit(f"not explained: {missing}" if missing else 0)
PY
status=$?
last="names in pages"
expect_status 0

check "pages say what the table says" "$SOURCE/scripts/options" --check "$THIELE"
finish
