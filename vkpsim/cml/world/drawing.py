"""What is drawn beside a topology: annotations by type, and how smart annotations look. The limits are CML's."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Color = Annotated[str, Meta(max_length=32)]
BorderStyle = Literal["", "2,2", "4,2"]
"""Solid, dotted or dashed."""
Anchor = Annotated[float, Meta(ge=-15000, le=15000)]
Rotation = Annotated[int, Meta(ge=0, le=360)]
Thickness = Annotated[int, Meta(ge=1, le=32)]
Layer = Annotated[int, Meta(ge=-10240, le=10240)]
LineEnd = Literal["arrow", "square", "circle"] | None
Offset = Annotated[int, Meta(ge=-1000, le=1000)]


class _Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    border_color: Color
    border_style: BorderStyle
    color: Color
    thickness: Thickness
    x1: Anchor
    y1: Anchor
    z_index: Layer


class TextAnnotation(_Shape, tag="text"):
    """A text."""

    rotation: Rotation
    text_bold: bool
    text_content: Annotated[str, Meta(max_length=8192)]
    text_font: Annotated[str, Meta(max_length=128)]
    text_italic: bool
    text_size: Annotated[int, Meta(ge=1, le=128)]
    text_unit: Literal["pt", "px", "em"]


class RectangleAnnotation(_Shape, tag="rectangle"):
    """A rectangle."""

    x2: Anchor
    y2: Anchor
    rotation: Rotation
    border_radius: Annotated[int, Meta(ge=0, le=128)]


class EllipseAnnotation(_Shape, tag="ellipse"):
    """An ellipse."""

    x2: Anchor
    y2: Anchor
    rotation: Rotation


class LineAnnotation(_Shape, tag="line"):
    """A line."""

    x2: Anchor
    y2: Anchor
    line_start: LineEnd
    line_end: LineEnd


ANNOTATION: Final[Any] = TextAnnotation | RectangleAnnotation | EllipseAnnotation | LineAnnotation
"""An annotation of any type; its key `type` names the type."""


class SmartAnnotationChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a smart annotation that can be changed."""

    is_on: bool | UnsetType = UNSET
    padding: Annotated[int, Meta(ge=1, le=200)] | UnsetType = UNSET
    tag: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    label: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET
    tag_offset_x: Offset | UnsetType = UNSET
    tag_offset_y: Offset | UnsetType = UNSET
    tag_size: Annotated[int, Meta(ge=1, le=128)] | UnsetType = UNSET
    group_distance: Annotated[int, Meta(ge=0, le=10000)] | UnsetType = UNSET
    thickness: Thickness | UnsetType = UNSET
    border_style: BorderStyle | UnsetType = UNSET
    fill_color: Color | UnsetType = UNSET
    border_color: Color | UnsetType = UNSET
    z_index: Layer | UnsetType = UNSET
