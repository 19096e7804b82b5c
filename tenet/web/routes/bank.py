"""The whole bank as a file, out and in (docs/banks.md)."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Response, UploadFile
from starlette.concurrency import run_in_threadpool

from tenet.banks.bank_file import Maker, write_bank
from tenet.banks.stored_class import store
from tenet.errors import DataError, TenetError
from tenet.looks.request import asked_classes
from tenet.web.exports import Download
from tenet.web.library import Snapshot
from tenet.web.routes.exports import as_response
from tenet.web.schemas import ERRORS, ClassInfo, Imported
from tenet.web.service import Service, class_info, service_of

router = APIRouter(prefix="/v1/bank", tags=["files"], responses=ERRORS)
Served = Annotated[Service, Depends(service_of)]
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
    content = await run_in_threadpool(_bank_bytes, service, bank, names)
    return as_response(Download(content, "application/octet-stream", "things.bank"))


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

    return Imported(classes=await run_in_threadpool(infos))


def _copy(upload: UploadFile, path: Path) -> None:
    with path.open("wb") as target:
        shutil.copyfileobj(upload.file, target)


def _without(path: str, error: TenetError) -> TenetError:
    """The same error, with the user's word in the place of our own path."""
    text = str(error).replace(path, "bank")
    return DataError(text) if isinstance(error, DataError) else type(error)(text)


def _bank_bytes(service: Service, bank: Snapshot, names: tuple[str, ...]) -> bytes:
    runtime = service.model.runtime
    maker = Maker(runtime.name, runtime.fingerprint, runtime.support_size)
    stored = {name: store(bank.shots(name), bank.features(name)) for name in names}
    with tempfile.TemporaryDirectory(prefix="tenet-") as folder:
        path = Path(folder) / "export.bank"
        write_bank(path, maker, stored, close=None)
        return path.read_bytes()
