"""The disk section of a profile file: how long a disk and the way to it take."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from watchkeeper.scenarios.profiles.quantiles import (
    DistributionModel,
    Duration,
    Quantiles,
    check_defaults,
)
from watchkeeper.scenarios.schema.fields import Model, Word

Rate = Annotated[int, Field(ge=1, le=10**15)]
"""Bytes a second."""
Size = Annotated[int, Field(ge=1, le=10**15)]
Percent = Annotated[int, Field(ge=1, le=100)]
Nanoseconds = Annotated[int, Field(ge=0, le=10**9)]


class MeasuredDiskModel(Model):
    """The measurements of a disk, with place and time."""

    at: Word = Field(description="when, in UTC")
    folder: Word = Field(description="where the file was")
    machine: Word = Field(description="whose disk it is")
    is_direct: bool = Field(description="whether single pages went past the pagecache")
    file_bytes: Size = Field(description="how long the file was")
    call_ns: Nanoseconds = Field(description="a read of one byte that is in memory")
    overwrite_bytes_per_s: Rate = Field(description="into pages that are in memory")
    append_bytes_per_s: Rate = Field(description="into pages that are not there yet")
    small_append_bytes_per_s: Rate = Field(description="the same, 4 KiB a call")
    write_back_bytes_per_s: Rate = Field(description="from memory to the disk, until flushed")
    read_bytes_per_s: Rate = Field(description="from the disk in line")
    sendfile_bytes_per_s: Rate = Field(description="from memory over the loopback")
    copying_bytes_per_s: Rate = Field(description="the same by reading and writing")
    read: DistributionModel = Field(description="4 KiB at random")
    write: DistributionModel = Field(description="4 KiB at random")
    sync: DistributionModel = Field(description="a flush after 4 KiB were appended")


class DiskSimulationModel(Model):
    """A simulated machine with its disk, as differences from the default machine."""

    read_bytes_per_s: Rate | None = Field(None, description="of the disk in line")
    write_bytes_per_s: Rate | None = Field(None, description="of the disk in line")
    read_us: Duration | None = Field(None, description="what a read takes beside its data")
    write_us: Duration | None = Field(None, description="what a write takes beside its data")
    flush: Quantiles | None = Field(
        None, description="until the disk has sworn that what it wrote is there to stay"
    )
    channels: int | None = Field(None, ge=1, le=10_000, description="requests served at once")
    capacity_bytes: Size | None = Field(None, description="what fits on the disk")
    most_bytes: Size | None = Field(None, description="the longest request")
    memory_bytes: Size | None = Field(None, description="what is left for the pagecache")
    cores: int | None = Field(None, ge=1, le=10_000, description="of the processor")
    call_ns: Nanoseconds | None = Field(None, description="a system call, without what it does")
    write_ns: Nanoseconds | None = Field(None, description="what a write takes beside the call")
    copy_bytes_per_s: Rate | None = Field(None, description="in memory, by one core")
    page_ns: Nanoseconds | None = Field(None, description="a page that comes into the pagecache")
    access_ns: Nanoseconds | None = Field(None, description="a read of memory at random")
    bus_bytes_per_s: Rate | None = Field(None, description="between memory and all else")
    network_bytes_per_s: Rate | None = Field(None, description="what the network carries")
    hop_us: Duration | None = Field(None, description="to another machine, one way")
    socket_buffer_bytes: Size | None = Field(None, description="what a connection holds")
    readahead_bytes: Size | None = Field(None, description="how far is read ahead at most")
    background_percent: Percent | None = Field(
        None, description="how much of the memory may be dirty before writing back begins"
    )
    dirty_percent: Percent | None = Field(
        None, description="how much may be dirty before a writer has to wait"
    )
    expire_us: Duration | None = Field(None, description="how old a dirty page may be")
    wake_us: Annotated[int, Field(ge=1)] | None = Field(
        None, description="how often that is looked at"
    )
    journal_bytes: Size | None = Field(None, description="what makes a change of names last")

    @property
    def given(self) -> dict[str, Any]:
        """The fields that differ from the default."""
        return {
            name: getattr(self, name)
            for name in sorted(self.model_fields_set)
            if getattr(self, name) is not None
        }


class DiskProfileModel(Model):
    """The disk section of a profile file."""

    measured: MeasuredDiskModel | None = Field(None, description="what was measured")
    simulation: DiskSimulationModel = Field(description="what the simulation is to take for it")
    defaults: list[Word] = Field(
        default_factory=list, description="what was not measured and stays as it is"
    )

    @model_validator(mode="after")
    def _defaults_are_not_given(self) -> DiskProfileModel:
        check_defaults(self.defaults, self.simulation, "figure")
        return self
