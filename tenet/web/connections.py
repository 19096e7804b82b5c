"""Connections that never say what they want: uvicorn waits for them for ever, this does not."""

from asyncio import BaseTransport, TimerHandle
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class Impatient(H11Protocol):
    """Closes a connection whose next header is not complete in time. Idle ones between two requests are
    closed by uvicorn itself, bodies and answers have their own limits (`tenet.web.admission`)."""

    head_seconds = 20.0
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._expect_header()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._deadline is None:
            self._expect_header()

    def on_response_complete(self) -> None:
        self._stop_waiting()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_header(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()


def impatient(head_seconds: float) -> Any:
    """Such a protocol with another time limit."""
    return type("Impatient", (Impatient,), {"head_seconds": head_seconds})
