"""The codec section of a profile file: what codecs make of message sets, and how fast."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from watchkeeper.scenarios.schema.fields import Model

Bytes = Annotated[int, Field(ge=0, le=10**9)]
Rate = Annotated[int, Field(ge=1, le=10**15)]
"""Bytes a second, of messages that are not compressed."""


class CodecModel(Model):
    """One codec. All fields are given: they were measured together."""

    fixed_bytes: Bytes = Field(description="a compressed set, beside what its messages add")
    message_bytes_per_1000: Bytes = Field(description="what a thousand messages add to it")
    payload_bytes_per_1000: Bytes = Field(description="what a thousand bytes of payload add")
    compress_bytes_per_s: Rate = Field(description="how fast it compresses")
    decompress_bytes_per_s: Rate = Field(description="how fast it decompresses")


class CodecsModel(Model):
    """The codecs that differ from the default."""

    gzip: CodecModel | None = Field(None, description="`compression.codec: 1`")
    snappy: CodecModel | None = Field(None, description="`compression.codec: 2`")
