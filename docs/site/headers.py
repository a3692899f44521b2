"""A page for each public header: headers.py INCLUDE FOLDER writes FOLDER/NAME.md, which Breathe fills, and an index."""
import pathlib
import re
import sys

ORDER = ("thiele", "context", "status", "table", "model", "options", "predictor", "stream", "metrics", "likelihood", "kernel")


def main():
    include, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    headers = sorted(include.glob("*.h"), key=lambda path: ORDER.index(path.stem) if path.stem in ORDER else len(ORDER))
    rows, names = [], []
    for header in headers:
        comment = re.match(r"/\*(.*?)\*/", header.read_text(encoding="utf-8"), re.DOTALL)[1]
        first = re.sub(r"\s*\n \*\s?", " ", comment).strip().split(". ")[0].rstrip(". ")
        name = header.stem
        if name == "thiele":
            continue
        names.append(name)
        rows.append(f"| [thiele/{name}.h]({name}.md) | {first.replace('|', chr(92) + '|')} |")
        page = f"# thiele/{name}.h\n\n```{{doxygenfile}} {header.name}\n:project: thiele\n```\n"
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
    index = ["# The C reference", "",
             "All public headers; `#include <thiele/thiele.h>` has them in one line. [The guide](../guide.md#from-c) has the pattern"
             " that all of it follows, and [a tutorial](../tutorials/embedding.md) a whole program.", "",
             "| header | what it has |", "|---|---|", *rows, "", "```{toctree}", ":hidden:", "", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


main()
