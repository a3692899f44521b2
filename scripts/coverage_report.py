#!/usr/bin/env python3
"""coverage_report.py SUMMARY SRC: what `llvm-cov export --summary-only` says of SRC, by folder, with the limits it must
reach: 90% of all lines, 85% of the branches of data and model."""
import collections
import json
import pathlib
import sys

LINES_ALL = 90.0
BRANCHES = {"data": 85.0, "model": 85.0}


def counts(summary, root):
    """folder -> [lines run, lines, branches run, branches]."""
    folders = collections.defaultdict(lambda: [0, 0, 0, 0])
    for entry in json.loads(pathlib.Path(summary).read_text(encoding="utf-8"))["data"][0]["files"]:
        path = pathlib.Path(entry["filename"])
        if not path.is_relative_to(root):
            continue
        folder = path.relative_to(root).parts[0]
        found = entry["summary"]
        for name in (folder, "all"):
            for at, kind in ((0, "lines"), (2, "branches")):
                folders[name][at] += found[kind]["covered"]
                folders[name][at + 1] += found[kind]["count"]
    return folders


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def main():
    folders = counts(sys.argv[1], pathlib.Path(sys.argv[2]).resolve())
    print(f"{'folder':<12}{'lines':>8}{'run':>8}{'branches':>10}{'run':>8}")
    wrong = []
    for name in sorted(folders, key=lambda name: (name == "all", name)):
        lines_run, lines, branches_run, branches = folders[name]
        by_line, by_branch = percent(lines_run, lines), percent(branches_run, branches)
        print(f"{name:<12}{lines:>8}{by_line:>7.1f}%{branches:>10}{by_branch:>7.1f}%")
        if name == "all" and by_line < LINES_ALL:
            wrong.append(f"{by_line:.1f}% of the lines were run, less than {LINES_ALL:.0f}%")
        if by_branch < BRANCHES.get(name, 0.0):
            wrong.append(f"{by_branch:.1f}% of the branches of src/{name} were run, less than {BRANCHES[name]:.0f}%")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
