"""Shapes are built of a few words."""

from chaosproxy.control.shapes import each, list_of, of, ref


def test_words():
    """A reference, a list, fields that look alike, an object that has all of its required fields and no other ones."""
    assert ref("Fault") == {"$ref": "#/components/schemas/Fault"}
    assert list_of(ref("Fault")) == {"type": "array", "items": ref("Fault")}
    text = {"type": "string"}
    assert each(text, "a", "b") == {"a": text, "b": text}
    assert of({"a": text}, b=text) == {
        "type": "object",
        "required": ["a"],
        "properties": {"a": text, "b": text},
        "additionalProperties": False,
    }
