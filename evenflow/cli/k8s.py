"""`evenflow k8s`: the resources of a job on Kubernetes, as YAML or as a Helm chart, its image, and the commands of its pods."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..kubernetes import arguments as given
from ..kubernetes.deployment import METRICS_PORT, OPTIONAL, STOP_SECONDS, Deployment, Size

SAMPLE = {"job": "job.py", "image": "registry.example.com/job:1", "checkpoint": "s3://bucket/checkpoints", "workers": (2, 8)}
"""The values of a chart that was written without arguments."""


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the commands, with their arguments."""
    commands = parser.add_subparsers(dest="k8s", metavar="COMMAND", required=True)
    render = _command(commands, "render", "write the resources of a job, for kubectl apply")
    _add_job(render, required=True)
    render.add_argument("--namespace", type=given.name, metavar="NAME", help="their namespace (default: that of kubectl)")
    render.add_argument("--name", type=given.name, metavar="NAME", help="their name (default: that of the program's file)")
    without = "leave out a kind; may be given again (%(choices)s)"
    render.add_argument("--without", action="append", default=[], choices=OPTIONAL, metavar="KIND", help=without)
    render.add_argument("--output", type=Path, metavar="DIR", help="write a file for each resource (default: all to standard output)")
    helm = _command(commands, "helm", "write a Helm chart of the same resources")
    _add_job(helm, required=False)
    helm.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder of the chart, which is created")
    image = _command(commands, "dockerfile", "write a Dockerfile, with the versions of the packages that are installed here")
    image.add_argument("job", metavar="JOB", help="the program")
    image.add_argument("--checkpoint", type=given.checkpoint, metavar="URL", help="the folder of checkpoints: its store needs packages")
    image.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder of the files, next to the program")
    submit = _command(commands, "submit", "submit a program to a Ray cluster and follow it (run in a pod of --kind raycluster)")
    submit.add_argument("--address", required=True, metavar="URL", help="the address of the cluster's dashboard")
    submit.add_argument("--run", required=True, metavar="ID", help="the run: while its program runs, none is submitted")
    submit.add_argument("--entrypoint", required=True, metavar="COMMAND", help="the command of the program in the image")
    _command(commands, "pre-stop", "take a checkpoint of all jobs before a pod ends (run by Kubernetes)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Raises ConnectorError if files can't be written."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "render": _render, "helm": _helm, "dockerfile": _dockerfile, "submit": _submit, "pre-stop": _pre_stop,
    }  # fmt: skip
    return actions[arguments.k8s](arguments)


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    return parser


def _add_job(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the job's settings. Those of a chart are the defaults of its values."""
    path = "the program: a file that the Dockerfile copies, or its absolute path in the image"
    parser.add_argument("job", metavar="JOB", help=path, nargs=None if required else "?")
    add = parser.add_argument
    add("--arguments", type=given.words, default=[], metavar="TEXT", help="the program's own arguments, such as '--topic clicks'")
    add("--image", required=required, metavar="IMAGE", help="the image of all pods, with evenflow and the program")
    add("--workers", required=required, type=given.workers, metavar="LEAST:MOST", help="the number of worker pods, such as 4 or 2:8")
    add("--checkpoint", required=required, type=given.checkpoint, metavar="URL", help="the folder of checkpoints")
    kinds = "a cluster for this job alone, or one that stays, and a Job that submits the program (default: %(default)s)"
    add("--kind", choices=("rayjob", "raycluster"), default="rayjob", help=kinds)
    reference = "a Secret whose entries become variables, or VARIABLE=NAME:KEY for one entry; may be given again"
    add("--secret", action="append", default=[], type=given.secret, metavar="NAME", help=reference)
    variable = "a variable of all pods, without secrets; may be given again"
    add("--env", action="append", default=[], type=given.variable, metavar="NAME=VALUE", help=variable)
    volume = "a PersistentVolumeClaim (ReadWriteMany) that all pods see at this path; may be given again"
    add("--volume", action="append", default=[], type=given.volume, metavar="CLAIM:PATH", help=volume)
    sizes = {
        "cpus": ("4", "processors of a worker pod, which runs as many workers"),
        "memory": ("8Gi", "memory of a worker pod"),
        "head-cpus": ("1", "processors of the head, which runs the program and no worker"),
        "head-memory": ("4Gi", "memory of the head"),
        "state-size": ("10Gi", "limit of each pod's disk at /var/lib/evenflow, for state on disk"),
    }
    for option, (default, text) in sizes.items():
        add(f"--{option}", type=given.quantity, default=default, metavar="QUANTITY", help=f"{text} (default: %(default)s)")
    retries = "how often the program starts again after its process or its cluster has failed (default: %(default)s)"
    add("--retries", type=given.retries, default=100, metavar="N", help=retries)
    add("--metrics-port", type=given.port, default=METRICS_PORT, metavar="PORT", help="the port of the metrics (default: %(default)s)")
    namespace = "the namespace from which Prometheus may read them (default: %(default)s)"
    add("--monitoring-namespace", type=given.name, default="monitoring", metavar="NAME", help=namespace)
    label = "a label by which Prometheus finds monitors and rules; may be given again"
    add("--monitoring-label", action="append", default=[], type=given.entry, metavar="NAME=VALUE", help=label)
    annotation = "an annotation of the pods' account, by which a cloud gives access to the object store; may be given again"
    add("--account-annotation", action="append", default=[], type=given.entry, metavar="NAME=VALUE", help=annotation)
    add("--ray-version", metavar="VERSION", help="the version of Ray in the image (default: that installed here)")


def _deployment(arguments: argparse.Namespace) -> Deployment:
    volumes = arguments.volume
    _check_checkpoint(arguments)
    return Deployment(
        name=getattr(arguments, "name", None) or given.name_of(arguments.job),
        image=arguments.image,
        entrypoint=shlex.join(["python", given.program_in_image(arguments.job), *arguments.arguments]),
        checkpoint=arguments.checkpoint,
        workers=arguments.workers,
        autoscaling=arguments.workers[0] < arguments.workers[1],
        worker=Size(arguments.cpus, arguments.memory),
        head=Size(arguments.head_cpus, arguments.head_memory),
        state_size=arguments.state_size,
        namespace=getattr(arguments, "namespace", None),
        ray_version=arguments.ray_version or version("ray"),
        retries=arguments.retries,
        env=(*arguments.env, *(secret.env for secret in arguments.secret if secret.env is not None)),
        env_from=[secret.env_from for secret in arguments.secret if secret.env_from is not None],
        volumes=tuple(each.volume for each in volumes),
        mounts=tuple(each.mount for each in volumes),
        metrics_port=arguments.metrics_port,
        monitoring_namespace=arguments.monitoring_namespace,
        monitoring_labels=dict(arguments.monitoring_label),
        account_annotations=dict(arguments.account_annotation),
    )


def _check_checkpoint(arguments: argparse.Namespace) -> None:
    """End with a wrong command line if the checkpoints would be lost with a pod."""
    path, mounts = arguments.checkpoint, [each.mount["mountPath"].rstrip("/") for each in arguments.volume]
    if path.startswith("/") and not any(path == mount or path.startswith(f"{mount}/") for mount in mounts):
        arguments.usage_error(f"--checkpoint {path} is on no --volume, so it would end with its pod: give a URL, or --volume CLAIM:PATH")


def _render(arguments: argparse.Namespace) -> int:
    from ..kubernetes.resources import resources
    from ..kubernetes.yaml_text import documents, yaml_of

    found = [each for each in resources(_deployment(arguments), arguments.kind) if each["kind"] not in arguments.without]
    if arguments.output is None:
        sys.stdout.write(documents(found))
        return 0
    return _write(arguments.output, {f"{number}-{each['kind'].lower()}.yaml": yaml_of(each) for number, each in enumerate(found, 1)})


def _helm(arguments: argparse.Namespace) -> int:
    from ..kubernetes.chart import chart_files

    for option, sample in SAMPLE.items():
        if getattr(arguments, option) is None:
            setattr(arguments, option, sample)
    return _write(arguments.output, chart_files(_deployment(arguments), arguments.kind))


def _dockerfile(arguments: argparse.Namespace) -> int:
    from ..kubernetes.image import REQUIREMENTS, image_files

    files = image_files(Path(arguments.job).name, arguments.checkpoint)
    if (arguments.output / REQUIREMENTS).exists():  # the program's own
        del files[REQUIREMENTS]
    return _write(arguments.output, files)


def _write(folder: Path, texts: Mapping[str, str]) -> int:
    """Write texts by path below the folder, which is created. Raises ConnectorError if that fails."""
    from ..engine.errors import ConnectorError
    from ..terminal.console import console

    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            console().print(f"wrote {folder / name}", soft_wrap=True)
    except OSError as error:
        raise ConnectorError(f"the files can't be written to {folder}: {error}") from error
    return 0


def _submit(arguments: argparse.Namespace) -> int:
    from ..kubernetes.submit import run

    return run(arguments.address, arguments.run, arguments.entrypoint)


def _pre_stop(_arguments: argparse.Namespace) -> int:
    from ..kubernetes.pre_stop import run

    run(STOP_SECONDS)
