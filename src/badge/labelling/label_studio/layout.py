"""The question that a project's labelling configuration asks: its choices, and the field of a task that it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from badge.errors import InputError
from badge.labelling.sources import Kind

KINDS: dict[str, Kind] = {"Text": "text", "HyperText": "text", "Image": "image"}


@dataclass(frozen=True)
class Layout:
    """One question: a `Choices` control, the object that it is about, and the classes."""

    control: str  #: name of the Choices tag: `from_name` of a result
    object: str  #: name of the Text or Image tag: `to_name`
    kind: Kind  #: "text" or "image"
    field: str  #: the key of a task's data that holds the text or the image's address
    classes: tuple[str, ...]

    def choice_of(self, result: Sequence[Mapping[str, Any]]) -> str | None:
        """The class in an annotation's result; None if the question was not answered."""
        for part in result:
            if part.get("from_name") == self.control and part.get("type") == "choices":
                chosen = part["value"].get("choices", [])
                return str(chosen[0]) if len(chosen) == 1 else None
        return None

    def result_of(self, choice: str) -> list[dict[str, Any]]:
        """The result of an annotation with one class."""
        value = {"choices": [choice]}
        return [{"from_name": self.control, "to_name": self.object, "type": "choices", "value": value}]


def layout_of(config: str, control: str | None = None) -> Layout:
    """The question of a labelling configuration; `control` names one of several.

    >>> layout_of('''<View><Text name="t" value="$review"/><Choices name="c" toName="t" choice="single">
    ... <Choice value="good"/><Choice value="bad"/></Choices></View>''')
    Layout(control='c', object='t', kind='text', field='review', classes=('good', 'bad'))
    """
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise InputError(f"the project's labelling configuration is not XML: {error}") from None
    found = {str(tag.get("name")): tag for tag in root.iter("Choices")}
    if control is not None and control not in found:
        raise InputError(f"the project has no Choices named {control!r}; it has: {', '.join(found) or 'none'}")
    if control is None and len(found) != 1:
        ask = f"name one with --control: {', '.join(found)}" if found else "add <Choices> to its labelling interface"
        raise InputError(f"picks need one question, and the project has {len(found)} <Choices>: {ask}")
    name = control or next(iter(found))
    tag = found[name]
    if tag.get("choice", "single") not in ("single", "single-radio"):
        raise InputError(f"<Choices name={name!r}> lets one choose several; badge picks for one class per task")
    classes = tuple(str(choice.get("alias") or choice.get("value")) for choice in tag.iter("Choice"))
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise InputError(
            f"<Choices name={name!r}> has the choices {', '.join(classes) or 'none'}: two or more are needed"
        )
    about = {str(other.get("name")): other for other in root.iter() if other.get("name")}.get(str(tag.get("toName")))
    if about is None or about.tag not in KINDS or not str(about.get("value", "")).startswith("$"):
        shown = "nothing" if about is None else f"<{about.tag} value={about.get('value')!r}>"
        raise InputError(f"<Choices name={name!r}> is about {shown}: a <Text> or an <Image> with a $field is needed")
    return Layout(name, str(about.get("name")), KINDS[about.tag], str(about.get("value"))[1:], classes)
