"""Copies of objects within a store, which are complete when the call returns.

Azure may continue a copy after its answer, and shows an empty object until the copy has ended. adlfs doesn't wait for it.
"""

from __future__ import annotations

from typing import Any

from ...state.object_stores import is_azure

PAUSES = (0.1, 0.2, 0.5, *[1.0] * 300)
"""Seconds between two looks at a copy that Azure continues: five minutes in all."""


def copy_object(files: Any, source: str, target: str) -> None:
    """Copy an object. Raises FileNotFoundError if there is none, and errors of the file system; TimeoutError after five minutes on
    Azure.
    """
    if is_azure(files):
        _awaited(files, _copy_in_azure, source, target)
    else:
        files.cp_file(source, target)


def is_copied(files: Any, path: str) -> bool:
    """Wait until an object is no longer being copied. Return False if the copy failed, which leaves an empty object.

    Raises errors as `copy_object` does.
    """
    if not is_azure(files):
        return True
    return _awaited(files, _settled, path, "pending") in ("success", None)


def _awaited(files: Any, function: Any, *arguments: Any) -> Any:
    """Return the result of a coroutine function in the file system's loop. fsspec's error for a TimeoutError has no text."""
    from fsspec.asyn import sync
    from fsspec.exceptions import FSTimeoutError

    try:
        return sync(files.loop, function, files, *arguments)
    except FSTimeoutError as error:
        raise TimeoutError(str(error.__cause__ or error)) from error


async def _copy_in_azure(files: Any, source: str, target: str) -> None:
    container, blob, _ = files.split_path(source)
    origin = files.service_client.get_blob_client(container, blob)
    container, blob, _ = files.split_path(target)
    async with files.service_client.get_blob_client(container, blob) as client:
        try:
            answer = await client.start_copy_from_url(origin.url)
        except Exception as error:
            if getattr(error, "status_code", None) == 404:
                raise FileNotFoundError(source) from error
            raise
    status = await _settled(files, target, answer["copy_status"])
    if status != "success":
        raise OSError(f"the store ended the copy to {target} with the status {status}")


async def _settled(files: Any, path: str, status: str | None) -> str | None:
    """Return the status of the newest copy to a blob once it is no longer pending; None if it was never copied to."""
    import asyncio  # takes long to load, and only Azure needs it

    container, blob, _ = files.split_path(path)
    async with files.service_client.get_blob_client(container, blob) as client:
        for pause in PAUSES:
            if status != "pending":
                return status
            status = (await client.get_blob_properties()).copy.status
            if status == "pending":
                await asyncio.sleep(pause)
    raise TimeoutError(f"the store has not ended the copy to {path}")
