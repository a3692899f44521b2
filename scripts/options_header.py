"""The public struct of a fit's options, include/thiele/fit_options.h, from the table src/model/options.def."""

import re
import sys
import textwrap

WORDS = 24  # of eight bytes, that each group has: those without an option are reserved
TYPES = {
    "FLAG": "int64_t ",
    "COUNT": "int64_t ",
    "REAL": "double ",
    "TEXT": "const char *",
    "LIST": "const char *",
    "PATH": "const char *",
    "OBJECT": "const thiele_likelihood *",
}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(),]|[^\s(),"]+')

BEGIN = """\
/*
 * The options of a fit in groups: options.columns.target. Written by `make options` from src/model/options.def, and
 * explained in docs/options.md. What is 0 or NULL is left at its default; where the default is the fit's to choose,
 * a number that is to be 0 itself is -1. A flag is 1 or 0. Texts are borrowed.
 *
 * Every option takes eight bytes, and new ones take the place of what is reserved at the end of their group: a program
 * works with later libraries without being compiled again.
 */
#ifndef THIELE_FIT_OPTIONS_H
#define THIELE_FIT_OPTIONS_H

#include <thiele/likelihood.h>

#ifdef __cplusplus
extern "C" {
#endif
"""
END = """
#define THIELE_FIT_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_fit_options)

#ifdef __cplusplus
}
#endif
#endif
"""


def arguments(tokens):
    """Those of one entry, behind its opening parenthesis: strings joined, calls as text."""
    depth, found, argument = 1, [], ""
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return found + [argument]
        if depth == 1 and token == ",":
            found.append(argument)
            argument = ""
        elif token[0] == '"' and depth == 1:
            argument += token[1:-1].replace('\\"', '"')
        else:
            argument += token
    sys.exit("options.def: an entry has no end")


def entries(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    tokens = iter(TOKEN.findall(text))
    for token in tokens:
        if token.startswith("THI_OPTION"):
            next(tokens)
            yield token, arguments(tokens)


def sentence(option):
    """«Meaning. Default: ...», as a comment has it."""
    meaning, kind, initial, words = option[11], option[2], option[3], option[4]
    default = {"NONE": "none", "AUTO": "auto", "OFF": ""}.get(initial)
    if default is None:
        default = re.sub(r"^(?:IS|WORD)\((.*)\)$", r"\1", initial).strip('"')
        default = "none" if default in ("0", "0.0") else default
    default = f"auto ({words})" if words and initial == "AUTO" else words or default
    zero = " -1 stands for 0." if kind == "COUNT" and initial == "AUTO" and float(option[5]) == 0 else ""
    unit = f" In {option[7]}." if kind == "REAL" and option[7] else ""
    capital = meaning[0].upper() if re.match(r"[a-z]+\b(?!=)", meaning) else meaning[0]
    text = capital + meaning[1:] + "." + unit
    text += " Required." if words == "required" else f" Default: {default}." if default else ""
    text += zero
    return re.sub(r"`=?([^`]*)`", r"\1", text)


def comment(text, indent):
    line = f"{indent}/* {text} */"
    if len(line) <= 120:
        return line + "\n"
    wrapped = textwrap.wrap(text, 120 - len(indent) - 3)
    return f"{indent}/*\n" + "".join(f"{indent} * {part}\n" for part in wrapped) + f"{indent} */\n"


def main():
    groups, options = [], {}
    for macro, found in entries(sys.stdin.read()):
        if macro == "THI_OPTION_GROUP":
            groups.append(found)
            options[found[0]] = []
        elif macro == "THI_OPTION":
            options[found[0]].append(found)
    out = [BEGIN]
    for name, title, about in groups:
        fields = options[name]
        if len(fields) >= WORDS:
            sys.exit(f"options.def: the group {name} is full: begin another")
        out.append("\n" + comment(re.sub(r"`=?([^`]*)`", r"\1", f"{title}. {about}"), ""))
        out.append(f"typedef struct thiele_{name}_options {{\n")
        for option in fields:
            out.append(comment(sentence(option), "    "))
            out.append(f"    {TYPES[option[2]]}{option[1]};\n")
        out.append(f"    int64_t reserved[{WORDS - len(fields)}]; /* zeros */\n")
        out.append(f"}} thiele_{name}_options;\n")
    out.append("\ntypedef struct thiele_fit_options {\n    size_t size; /* set by the INIT macro */\n")
    out += [f"    thiele_{name}_options {name};\n" for name, _, _ in groups]
    out.append("} thiele_fit_options;\n")
    out.append(END)
    sys.stdout.write("".join(out))


main()
