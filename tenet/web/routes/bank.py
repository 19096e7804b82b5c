"""The whole bank as a file, out and in (docs/banks.md)."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Response, UploadFile
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from tenet.banks.bank_file import Maker, write_bank
from tenet.banks.stored_class import StoredClass, store
from tenet.errors import DataError, TenetError
from tenet.looks.request import asked_classes
from tenet.web.library import Snapshot
from tenet.web.schemas import ERRORS, ClassInfo, Imported
from tenet.web.service import Served, Service, class_info

router = APIRouter(prefix="/v1/bank", tags=["files"], responses=ERRORS)
BANK: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}}, "description": "a bank file"}
}


@router.get("", response_class=Response, responses=BANK)
async def download_bank(
    service: Served,
    classes: Annotated[list[str] | None, Query(description="only these classes; without it all")] = None,
) -> Response:
    """The classes as a bank file, for `tenet detect` and `ClassBank.load`."""
    bank = await service.snapshot()
    names = asked_classes(bank.names, classes)
    folder = tempfile.TemporaryDirectory(prefix="tenet-")
    try:
        path = await run_in_threadpool(_write, service, bank, names, Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    # Sent from the disk in small parts: a large bank is never in memory as a whole.
    sent = BackgroundTask(folder.cleanup)
    return FileResponse(path, 200, None, "application/octet-stream", sent, "things.bank")


@router.post("")
async def import_bank(
    service: Served,
    bank: Annotated[UploadFile, File(description="a bank file")],
    rebuild: Annotated[bool, Form(description="encode a bank of another model anew")] = False,
) -> Imported:
    """Take in the classes of a bank file; a class that is there already gets the shots of both.

    Class by class: what came in before an error stays, and the same bank may be sent again.
    """
    with tempfile.TemporaryDirectory(prefix="tenet-") as folder:
        path = Path(folder) / "import.bank"
        await run_in_threadpool(_copy, bank, path)
        try:
            added = await service.take_bank(path, rebuild)
        except TenetError as error:
            raise _without(str(path), error) from None
    now = await service.snapshot()

    def infos() -> list[ClassInfo]:
        known = [name for name in added if name in now.heads]
        return [class_info(now, name, added[name]) for name in known[:1000]]

    shots = sum(added.values())
    return Imported(total=len(added), added=shots, classes=await run_in_threadpool(infos))


def _copy(upload: UploadFile, path: Path) -> None:
    with path.open("wb") as target:
        shutil.copyfileobj(upload.file, target)


def _without(path: str, error: TenetError) -> TenetError:
    """The same error, with the user's word in the place of our own path."""
    text = str(error).replace(path, "bank")
    return DataError(text) if isinstance(error, DataError) else type(error)(text)


def _lazy(bank: Snapshot, name: str) -> StoredClass:
    """A class whose large parts are read again when they are written: never are all of them in memory."""

    def whole() -> StoredClass:
        return store(bank.shots(name), bank.features(name))

    return replace(whole(), fetch=lambda part: whole().part(part))


def _write(service: Service, bank: Snapshot, names: tuple[str, ...], folder: Path) -> Path:
    runtime = service.model.runtime
    maker = Maker(runtime.name, runtime.fingerprint, runtime.support_size)
    stored = {name: _lazy(bank, name) for name in names}
    write_bank(folder / "export.bank", maker, stored, close=None)
    return folder / "export.bank"
