"""The object store of a catalog's tables: the variables of the environment that checkpoints on S3 follow hold for tables too.

Arrow's client of S3 takes credentials from the environment, but no endpoint, and pyiceberg no region.

>>> of_environment({"warehouse": "s3://bucket/tables"}, {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_REGION": "eu-west-1"})
{'s3.endpoint': 'http://minio:9000', 's3.region': 'eu-west-1'}
>>> of_environment({"s3.endpoint": "http://ceph:80"}, {"AWS_ENDPOINT_URL": "http://minio:9000"})
{}
>>> of_environment({}, {"AWS_REGION": "eu-west-1"})
{}
>>> [supported(place) for place in ("s3://bucket/tables", "/srv/tables", "prod", "gs://bucket/tables")]
[True, True, True, False]
"""

from __future__ import annotations

from collections.abc import Mapping

ENDPOINT, REGIONS = "s3.endpoint", ("s3.region", "client.region")
"""Properties of pyiceberg."""

ENDPOINT_VARIABLES, REGION_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), ("AWS_REGION", "AWS_DEFAULT_REGION")

SCHEMES = ("file", "s3", "s3a", "s3n")


def supported(location: str) -> bool:
    """Return False for the URL of a store that tables can't be in. A path and a name of a warehouse are no URLs."""
    scheme, separator, _ = location.partition("://")
    return not separator or scheme.lower() in SCHEMES


def of_environment(properties: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a catalog lacks and the environment has.

    The region is only taken for an endpoint: of a bucket of AWS, pyiceberg looks it up.
    """
    found: dict[str, str] = {}
    endpoint = properties.get(ENDPOINT) or _first(variables, ENDPOINT_VARIABLES)
    if endpoint and not properties.get(ENDPOINT):
        found[ENDPOINT] = endpoint
    region = _first(variables, REGION_VARIABLES)
    if endpoint and region and not _first(properties, REGIONS):
        found[REGIONS[0]] = region
    return found


def _first(values: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((values[name] for name in names if values.get(name)), None)
