"""A griffe extension: docstrings and signatures that a decorator completes, and `#:` comments behind fields."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from typing import Any

import griffe

__all__ = ["AsImported"]


def with_examples(text: str) -> str:
    found = re.search(r"^>>> ", text, re.MULTILINE)
    if found is None:
        return text
    return f"{text[: found.start()]}Examples:\n{textwrap.indent(text[found.start() :], ' ' * 4)}"


class AsImported(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """What follows the first prompt of a docstring is its example."""
        if obj.docstring is not None:
            obj.docstring.value = with_examples(obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """`**options` stands for a table of options: show what `help()` shows."""
        if func.docstring is None or "{options}" not in func.docstring.value:
            return
        found = getattr(importlib.import_module(func.module.path), func.name)
        func.docstring.value = with_examples(inspect.getdoc(found) or "")
        written = {parameter.name: parameter for parameter in func.parameters}
        func.parameters = griffe.Parameters(
            *(
                written.get(name)
                or griffe.Parameter(
                    name,
                    annotation=str(one.annotation),
                    kind=griffe.ParameterKind.keyword_only,
                    default=repr(one.default),
                )
                for name, one in inspect.signature(found).parameters.items()
            )
        )

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """The comment behind a field is its docstring."""
        if attr.docstring is None and attr.lineno is not None and attr.parent is not None and attr.parent.is_class:
            line = attr.lines_collection[attr.filepath][(attr.endlineno or attr.lineno) - 1]
            if match := re.search(r"#:? (.*)$", line):
                attr.docstring = griffe.Docstring(match[1], parent=attr)
