"""Functions of texts. Positions and lengths count characters; upper and lower case are Python's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types.widening import is_text
from ..trees.problems import BindingError, EvaluationError
from .distinct import over_distinct, with_dictionary
from .nested import list_element
from .operand import Binder, Bound, Kernel, Operand, unary
from .patterns import checked_pattern, with_group

_TEXT = pa.string()


def _text(name: str, result: pa.DataType, make: Callable[..., Kernel]) -> Binder:
    return unary(name, is_text, "texts", result, lambda _kind, *options: make(*options))


def _distinct(name: str, result: pa.DataType, make: Callable[..., Kernel]) -> Binder:
    """Return the binder of a function that takes long for a text, and computes repeated ones once."""
    bind = _text(name, result, lambda *options: over_distinct(make(*options)))
    return lambda *operands: replace(bind(*operands), distinct=True)


def _counting(function: Kernel) -> Kernel:
    return lambda values: function(values).cast(pa.int64())


def _is_ascii(values: pa.Array) -> bool:
    """Return True if all texts are ASCII; several times faster than Arrow's kernel, which answers for each text."""
    if not len(values):
        return True
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32 if pa.types.is_string(values.type) else np.int64)
    begin, end = (int(bounds[values.offset + place]) for place in (0, len(values)))
    return begin == end or data.slice(begin, end - begin).to_pybytes().isascii()


def _cased(kernel: Kernel, python: Callable[[str], str]) -> Callable[..., Kernel]:
    """Return Arrow's kernel for ASCII, and Python's function for all else: Arrow converts characters one by one."""

    def convert(values: pa.Array) -> pa.Array:
        if _is_ascii(values):
            return kernel(values)
        return pa.array([None if text is None else python(text) for text in values.to_pylist()], values.type)

    return lambda: convert


def _contains(pattern: str, literal: bool) -> Kernel:
    if literal:
        return lambda values: pc.match_substring(values, pattern)
    found = checked_pattern(pattern)
    return lambda values: pc.match_substring_regex(values, found)


def _count_matches(pattern: str, literal: bool) -> Kernel:
    if not pattern:
        raise BindingError("count_matches needs a pattern that isn't empty")
    if literal:
        return _counting(lambda values: pc.count_substring(values, pattern))
    found = checked_pattern(pattern)
    return _counting(lambda values: pc.count_substring_regex(values, found))


def _find(pattern: str, literal: bool) -> Kernel:
    found = pattern if literal else checked_pattern(pattern)
    kernel = pc.find_substring if literal else pc.find_substring_regex

    def find(values: pa.Array) -> pa.Array:
        at = kernel(values, found)
        if not _is_ascii(values):  # Arrow counts bytes
            texts = zip(values.to_pylist(), at.to_pylist(), strict=True)
            at = pa.array(
                [place if text is None or place < 1 else len(text.encode()[:place].decode()) for text, place in texts], pa.int64()
            )
        return pc.if_else(pc.less(at, 0), pa.scalar(None, pa.int64()), at.cast(pa.int64()))

    return find


def _replacing(most: int | None) -> Callable[..., Kernel]:
    def make(pattern: str, value: str, literal: bool) -> Kernel:
        if literal:
            return lambda values: pc.replace_substring(values, pattern, value, max_replacements=most)
        found = checked_pattern(pattern)
        try:
            pc.replace_substring_regex(pa.array([""]), found, value)
        except pa.ArrowInvalid as error:
            raise BindingError(str(error)) from error
        return lambda values: pc.replace_substring_regex(values, found, value, max_replacements=most)

    return make


def _extract(pattern: str, group: int) -> Kernel:
    named = with_group(checked_pattern(pattern), group)
    return lambda values: pc.struct_field(pc.extract_regex(values, named), 0)


def _slice(offset: int, length: int | None) -> Kernel:
    if length is not None and length < 0:
        raise BindingError(f"slice(length={length}): a length is at least 0")
    stop = None if length is None else offset + length
    if stop is not None and offset < 0 <= stop:  # up to the end of the text
        stop = None
    return lambda values: pc.utf8_slice_codeunits(values, offset, stop)


def _stripped(of_spaces: Kernel, of_characters: Kernel) -> Callable[..., Kernel]:
    return lambda characters: of_spaces if characters is None else lambda values: of_characters(values, characters)


def _split(by: str) -> Kernel:
    if not by:
        raise BindingError("split needs a separator that isn't empty")
    return lambda values: pc.split_pattern(values, by)


def _split_part(operand: Operand, by: Operand, index: Operand) -> Bound:
    """Bind `str.split_part`. Parts of one text share its splitting."""
    bound = _distinct("str.split_part", _TEXT, lambda _by, index: list_element(index))(operand, by, index)
    split = _split(by.option())
    return bound if operand.is_null else replace(bound, shared=(("split", by.option()), with_dictionary(split)))


def _to_datetime(form: str) -> Kernel:
    def parse(values: pa.Array) -> pa.Array:
        try:
            return pc.strptime(values, form, "us")
        except pa.ArrowInvalid as error:
            raise EvaluationError(str(error)) from error

    return parse


def _affix(kernel: Callable[[Any, str], Any]) -> Callable[..., Kernel]:
    return lambda text: lambda values: kernel(values, text)


FUNCTIONS: dict[str, Binder] = {
    "str.upper": _text("str.upper", _TEXT, _cased(pc.utf8_upper, str.upper)),
    "str.lower": _text("str.lower", _TEXT, _cased(pc.utf8_lower, str.lower)),
    "str.len_chars": _text("str.len_chars", pa.int64(), lambda: _counting(pc.utf8_length)),
    "str.len_bytes": _text("str.len_bytes", pa.int64(), lambda: _counting(pc.binary_length)),
    "str.contains": _text("str.contains", pa.bool_(), _contains),
    "str.starts_with": _text("str.starts_with", pa.bool_(), _affix(pc.starts_with)),
    "str.ends_with": _text("str.ends_with", pa.bool_(), _affix(pc.ends_with)),
    "str.count_matches": _text("str.count_matches", pa.int64(), _count_matches),
    "str.find": _text("str.find", pa.int64(), _find),
    "str.replace": _text("str.replace", _TEXT, _replacing(1)),
    "str.replace_all": _text("str.replace_all", _TEXT, _replacing(None)),
    "str.extract": _distinct("str.extract", _TEXT, _extract),
    "str.slice": _text("str.slice", _TEXT, _slice),
    "str.strip_chars": _text("str.strip_chars", _TEXT, _stripped(pc.utf8_trim_whitespace, pc.utf8_trim)),
    "str.strip_chars_start": _text("str.strip_chars_start", _TEXT, _stripped(pc.utf8_ltrim_whitespace, pc.utf8_ltrim)),
    "str.strip_chars_end": _text("str.strip_chars_end", _TEXT, _stripped(pc.utf8_rtrim_whitespace, pc.utf8_rtrim)),
    "str.split_part": _split_part,
    "str.split": _text("str.split", pa.list_(_TEXT), _split),
    "str.to_datetime": _text("str.to_datetime", pa.timestamp("us"), _to_datetime),
}
