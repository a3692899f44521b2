"""Filter for Doxygen: comments of a public header as those that Doxygen reads.

A comment that begins a line belongs to what follows it, one behind code to that. Formulas and tables in comments are
indented, and stay as they are. Usage: comments.py HEADER
"""
import re
import sys

COMMENT = re.compile(r"/\*(?!\*)(.*?)\*/", re.DOTALL)


def lines_of(comment):
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in comment.strip("\n").split("\n")]


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        text = stream.read()

    text = statuses(text)

    def doxygen(match):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        behind = before.strip() != ""
        if match[1].strip().startswith("---"):  # a rule with the title of a section
            return ""
        lines = [line.replace("\\", "\\\\").replace("@", "\\@").replace("<", "\\<").replace("#", "\\#").replace("%", "\\%")
                 for line in lines_of(match[1])]
        if behind:
            return "/**< " + " ".join(line.strip() for line in lines) + " */"
        file = "@file\n" if match.start() == 0 else ""
        return "/** " + file + "\n".join(fenced(lines)) + " */"

    sys.stdout.write(COMMENT.sub(doxygen, text))


def statuses(text):
    """The codes of status.h, which the preprocessor makes out of a list, as an enum with their meanings."""
    codes = re.findall(r'X\((\w+), (-?\d+), "([^"]*)"\)', text)
    listed = "".join(f"{name} = {value}, /**< {meaning} */\n" for name, value, meaning in codes)
    text = re.sub(r"/\* X\(name.*?\n(?=typedef enum)", "", text, flags=re.DOTALL)
    return re.sub(r"#define THIELE_STATUS_ENUM.*?#undef THIELE_STATUS_ENUM\n", lambda m: listed, text, flags=re.DOTALL)


def fenced(lines):
    """Indented lines between marks that keep them as they are."""
    inside = False
    for line in lines:
        indented = line.startswith("  ") and line.strip() != ""
        if indented != inside and line.strip():
            yield "@verbatim" if indented else "@endverbatim"
            inside = indented
        yield line
    if inside:
        yield "@endverbatim"


main()
