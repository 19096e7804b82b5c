"""How much the service takes, in one place; docs/service.md has the table."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Bounds of a request, of the queue and of a job.

    upload         bytes of a request
    archive        bytes of a request that brings a job or a bank
    unpacked       bytes of an archive's pictures, unpacked
    pixels         of one picture
    pictures       in one request
    job_pictures   in one job
    shots          of one class
    classes        in the store
    open_requests  requests with a body that are taken in at once
    open_bytes     their bytes together
    waiting        pictures and other work that wait for the model
    batch          pictures that the model looks at together
    batch_pixels   their pixels together; a larger picture goes alone
    body_seconds      for a request to arrive
    megabyte_seconds  and for each megabyte of it
    head_seconds      for its header
    seconds           for its answer
    """

    upload: int = 32 * MEGABYTE
    archive: int = 512 * MEGABYTE
    unpacked: int = 1024 * MEGABYTE
    pixels: int = 40_000_000
    pictures: int = 16
    job_pictures: int = 5000
    shots: int = 100
    classes: int = 20_000
    open_requests: int = 128
    open_bytes: int = 768 * MEGABYTE
    waiting: int = 128
    batch: int = 4
    batch_pixels: int = 32_000_000
    body_seconds: float = 120.0
    megabyte_seconds: float = 2.0
    head_seconds: float = 20.0
    seconds: float = 120.0
