"""Man pages as pages of the site: manual.py FOLDER writes FOLDER/NAME.md for each docs/man/NAME.1, and an index.

Knows the macros that the pages use and ends with a sentence at any other.
"""
import pathlib
import re
import sys

MAN = pathlib.Path(__file__).resolve().parent.parent / "man"
GLYPHS = {r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(lq": "“", r"\(rq": "”", r"\&": "", r"\e": "\\"}


def plain(text):
    return re.sub(r"\\\([a-z]{2}|\\[-&e]", lambda m: GLYPHS[m[0]], text)


def pieces(text, font="R"):
    """(font, text) of a text with \\fB, \\fI and \\fR in it; \\fP goes back."""
    before = "R"
    for part in re.split(r"(\\f[BIRP])", text):
        if re.fullmatch(r"\\f[BIRP]", part):
            font, before = (before if part[2] == "P" else part[2]), font
        elif part:
            yield font, plain(part)


def markdown(parts):
    """Literal words as code, what stands for something as emphasis; blanks are kept out of both."""
    merged = []
    for font, text in parts:
        if merged and merged[-1][0] == font:
            merged[-1][1] += text
        else:
            merged.append([font, text])
    out = ""
    for i, (font, text) in enumerate(merged):
        lead, core, trail = re.fullmatch(r"(\s*)(.*?)(\s*)", text, re.DOTALL).groups()
        page = re.fullmatch(r"thiele(-\w+)?", core)
        if not core:
            out += text
        elif font == "B" and page and (MAN / (core + ".1")).exists() and merged[i + 1 : i + 2] and merged[i + 1][1][:3] == "(1)":
            out += f"{lead}[{core}]({core}.md){trail}"
        elif font == "B":
            out += f"{lead}`{core}`{trail}"
        elif font == "I":
            out += f"{lead}*{core}*{trail}"
        else:
            out += text.replace("<", r"\<").replace("*", r"\*").replace("_", r"\_").replace("|", r"\|").replace("[", r"\[")
    return re.sub(r"(\]\([\w-]+\.md\))\(1\)", r"\1", out)


def words(rest):
    return [quoted or word for quoted, word in re.findall(r'"([^"]*)(?:"|$)|(\S+)', rest)]


def macro(name, rest):
    """The text of a line with a macro of fonts, as in .B or .BR."""
    if len(name) == 1:
        return list(pieces(" ".join(words(rest)), name))
    return [part for i, word in enumerate(words(rest)) for part in pieces(word, name[i % 2])]


class Page:
    def __init__(self):
        self.lines, self.line, self.term, self.literal = [], [], None, False

    def flush(self):
        """Ends a paragraph, or the first line of an entry of a list."""
        if self.line:
            text = markdown([part for line in self.line for part in [*line, ("R", " ")]])
            text = re.sub(r"\s+", " ", text).strip()
            if self.term == "open":
                self.lines += [text, ""]
                self.term = "said"
            elif self.term == "said":
                self.lines[-1:] = [": " + text, ""]
                self.term = "more"
            else:
                self.lines += [("  " if self.term == "more" else "") + text, ""]
        self.line = []

    def heading(self, level, title):
        self.flush()
        self.term = None
        title = plain(title.strip('"'))
        self.lines += ["#" * level + " " + (title.capitalize() if title.isupper() else title), ""]

    def read(self, line):
        match = re.match(r'\.(\\"|[A-Za-z]+) ?(.*)', line)
        if self.literal and not (match and match[1] == "fi"):
            self.lines.append(plain(line))
        elif match is None:
            self.line.append(list(pieces(line)))
            if self.term == "open":
                self.flush()
        else:
            self.command(match[1], match[2])

    def command(self, name, rest):
        if name in ("TH", '\\"'):
            return
        if name in ("SH", "SS"):
            self.heading(2 if name == "SH" else 3, rest)
        elif name == "TP":
            self.flush()
            self.term = "open"
        elif name == "PP":
            self.flush()
            self.term = None
        elif name in ("RS", "RE", "br"):
            self.flush()
        elif name == "nf":
            self.flush()
            self.term, self.literal = None, True
            self.lines.append("```text")
        elif name == "fi":
            self.literal = False
            self.lines += ["```", ""]
        elif re.fullmatch("[BIR]{1,2}", name):
            self.line.append(macro(name, rest))
            if self.term == "open":
                self.flush()
        else:
            sys.exit(f"manual.py does not know the macro .{name} of the man pages")


def convert(path):
    page = Page()
    for line in path.read_text(encoding="utf-8").splitlines():
        page.read(line)
    page.flush()
    title = path.stem.replace("-", " ", 1)
    return f"# {title}\n\n" + "\n".join(page.lines).replace("\n\n\n", "\n\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(path.stem for path in MAN.glob("*.1"))
    for name in names:
        (folder / f"{name}.md").write_text(convert(MAN / f"{name}.1"), encoding="utf-8")
    index = ["# The command", "", "The man pages of `thiele` and its commands. [Options of a fit](../options.md) has all of these"
             " with their types and ranges.", "", "```{toctree}", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


main()
