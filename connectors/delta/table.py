"""Opening of Delta Lake tables, with errors that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError, FlowError

if TYPE_CHECKING:
    from deltalake import DeltaTable


def check_installed(operator: str) -> None:
    """Raise FlowError if deltalake is missing."""
    try:
        import deltalake  # noqa: F401 -- whether it can be imported is the question
    except ImportError as error:
        raise FlowError(f"operator `{operator}`: Delta tables need the package deltalake: pip install 'evenflow[delta]'") from error


def open_table(path: str, operator: str, version: int | None = None) -> DeltaTable:
    """Open the table at a version, or as it is now. Raises ConnectorError if there is none that can be read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        return DeltaTable(path, version=version)
    except TableNotFoundError as error:
        raise ConnectorError(f"operator `{operator}`: {path} is not a Delta table: it has no log; check the path") from error
    except (DeltaError, OSError) as error:
        what = path if version is None else f"version {version} of {path}"
        raise ConnectorError(f"operator `{operator}`: {what} can't be read: {error}") from error
