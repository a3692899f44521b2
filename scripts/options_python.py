"""Types of the options of a fit for Python, from what `thiele options --json` says."""

import json
import sys

TYPES = {
    "flag": "bool",
    "integer": "int",
    "number": "float",
    "text": "str",
    "list": "Union[str, Sequence[str]]",
}


def type_of(option):
    """Parameters are set by a mapping too; what may be left to the fit takes "auto"."""
    if option["name"] == "set":
        return "Union[str, Mapping[str, float]]"
    if option["name"] == "likelihood":
        return "Union[str, Likelihood]"
    kind = TYPES[option["type"]]
    return f'Union[{kind}, Literal["auto"]]' if option["default"] == "auto" and kind in ("int", "float") else kind


options = [o for o in json.load(sys.stdin)["options"] if o["type"] != "program" and o["name"] != "target"]
print('"""The options of thiele.fit for type checkers. Written by scripts/options from src/model/options.def."""\n')
print("from __future__ import annotations\n")
print("from collections.abc import Mapping, Sequence")
print("from typing import Literal, TypedDict, Union\n")
print("from .likelihood import Likelihood\n\n")
print("class OptionTypes(TypedDict, total=False):")
print('    """What each option may be; thiele.options() says what it means."""\n')
for option in options:
    print(f"    {option['name']}: {type_of(option)}")
