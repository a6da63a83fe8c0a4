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
        """The comment behind a field, or above a name of a module, is its docstring; a list of names is shown as it is."""
        if attr.lineno is None or attr.parent is None:
            return
        source = attr.lines_collection[attr.filepath]
        if attr.parent.is_class and attr.docstring is None:
            if match := re.search(r"#:? (.*)$", source[(attr.endlineno or attr.lineno) - 1]):
                attr.docstring = griffe.Docstring(match[1], parent=attr)
        elif attr.parent.is_module:
            if attr.docstring is None and (match := re.match(r"#: (.*)$", source[attr.lineno - 2])):
                attr.docstring = griffe.Docstring(match[1], parent=attr)
            if str(attr.value).startswith("list("):
                attr.value = repr(getattr(importlib.import_module(attr.parent.path), attr.name))
