"""The address of an Iceberg table: a catalog and a name in it. Errors of catalogs become errors that name the table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...engine.errors import ConnectorError, FlowError
from ...engine.secrets import revealed, revealed_url
from .stores import of_environment, supported

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

CATALOGS = ("SqlCatalog", "RestCatalog")


class TableAddress:
    """The address of the table `table`, for example `shop.counts`, in a catalog as `pyiceberg.catalog.load_catalog` takes it.

    Each process opens the catalog itself. Raises FlowError for wrong arguments.
    """

    def __init__(self, table: Any, catalog: Any, options: Any, operator: str) -> None:
        check_installed(operator)
        if not isinstance(table, str) or not all(table.split(".")) or "." not in table:
            raise FlowError(f'operator `{operator}`: table is {table!r}; expected a namespace and a name, such as "shop.counts"')
        if not isinstance(catalog, str) or not catalog:
            raise FlowError(f"operator `{operator}`: catalog is {catalog!r}; expected the name of a catalog")
        given = {} if options is None else options
        if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
            raise FlowError(f"operator `{operator}`: options must be a dict of texts, such as {{'uri': 'http://catalog:8181'}}")
        self.table, self.operator = table, operator
        self._name, self._options = catalog, dict(given)
        self._catalog: Catalog | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_catalog": None}

    def __str__(self) -> str:
        return f"the table {self.table} of catalog `{self._name}`"

    def catalog(self) -> Catalog:
        """Open the catalog. Raises ConnectorError, also for kinds of catalogs that are not supported."""
        if self._catalog is None:
            from pyiceberg.catalog import load_catalog

            with self.explained("can't be reached"):
                catalog = load_catalog(self._name, **self._revealed())
            if type(catalog).__name__ not in CATALOGS:
                raise ConnectorError(
                    f"operator `{self.operator}`: catalog `{self._name}` is a {type(catalog).__name__}; use one of the types sql and rest"
                )
            self.check_store(catalog.properties.get("warehouse", ""))
            catalog.properties.update(of_environment(catalog.properties, os.environ))
            self._catalog = catalog
        return self._catalog

    def _revealed(self) -> dict[str, str]:
        """Return the options with their secrets, which are percent-encoded in the address."""
        return {name: revealed_url(text) if name == "uri" else revealed(text) for name, text in self._options.items()}

    def check_store(self, location: str) -> None:
        """Raise ConnectorError if a warehouse or table is in a store that isn't supported."""
        if not supported(location):
            raise ConnectorError(
                f"operator `{self.operator}`: {self} is in {location}, and Iceberg tables in that store aren't supported; use a warehouse "
                "on S3 (s3://...) or a file system (file:///...)"
            )

    def load(self) -> Table:
        """Read the table as it is now. Raises ConnectorError if it doesn't exist or can't be read."""
        with self.explained("can't be read"):
            return self.catalog().load_table(self.table)

    @contextmanager
    def explained(self, problem: str) -> Iterator[None]:
        """Translate errors of the library in the block to a ConnectorError: `problem`, for example "can't be read"."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            yield
        except NoSuchTableError as error:
            raise ConnectorError(
                f"operator `{self.operator}`: {self} does not exist, or was dropped; check the name, or begin without the checkpoint"
            ) from error
        except library_errors() as error:
            raise self.error(problem, error) from error

    def error(self, problem: str, error: Exception) -> ConnectorError:
        """Return an error of the library with the name of the table."""
        return ConnectorError(f"operator `{self.operator}`: {self} {problem}: {type(error).__name__}: {error}")

    def close(self) -> None:
        """Close the connections to the catalog. Never raises."""
        if self._catalog is not None:
            with suppress(*library_errors()):
                self._catalog.close()
            self._catalog = None


def library_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that catalogs and their file systems raise."""
    from pyarrow import ArrowException
    from pydantic import ValidationError
    from pyiceberg import exceptions
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    own = [each for each in vars(exceptions).values() if isinstance(each, type) and issubclass(each, Exception)]
    return (*own, OSError, ValueError, KeyError, ImportError, ArrowException, ValidationError, RequestException, SQLAlchemyError)


def passing_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors after which the same request may succeed: conflicts, lost replies, a busy server."""
    from pydantic import ValidationError
    from pyiceberg import exceptions
    from requests import RequestException
    from sqlalchemy.exc import DBAPIError

    busy = (exceptions.ServiceUnavailableError, exceptions.ServerError, exceptions.TooManyRequestsError)
    lost = (exceptions.CommitStateUnknownException, ValidationError)  # the latter: a reply that was cut
    return (exceptions.CommitFailedException, *lost, *busy, OSError, RequestException, DBAPIError)


def check_installed(operator: str) -> None:
    """Raise FlowError if pyiceberg is missing."""
    try:
        import pyiceberg  # noqa: F401 -- whether it can be imported is the question
    except ImportError as error:
        raise FlowError(f"operator `{operator}`: Iceberg tables need the package pyiceberg: pip install 'evenflow[iceberg]'") from error
