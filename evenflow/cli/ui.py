"""`evenflow ui [JOB]`: serve a live web page of one job, or of all: key groups over time, loads, decisions, the dataflow."""

from __future__ import annotations

import argparse
import asyncio
import sys
import webbrowser
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job, the port, and the option to open no browser."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's name: that of its dataflow (default: all that run)")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="instead of jobs that run: a recording, which `evenflow record` has made"
    )
    parser.add_argument("--allow-actions", action="store_true", help="let the page change jobs, and draw flame graphs")
    parser.add_argument("--port", type=int, default=0, help="on this machine's loopback address (default: any free one)")
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--ends-with-input", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises ClusterError if the port is taken."""
    if not 0 <= arguments.port <= 65_535:
        arguments.usage_error(f"--port {arguments.port}: a port is a number from 0 to 65535")
    if arguments.replay is not None and (arguments.job is not None or arguments.allow_actions):
        arguments.usage_error("--replay FILE shows a recording: it takes no job and no --allow-actions")
    from ..page.server import serve, serve_replay

    def announce(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        if not arguments.no_open:
            webbrowser.open(address)

    if arguments.replay is not None:
        asyncio.run(serve_replay(arguments.replay, arguments.port, announce))
        return 0
    asyncio.run(serve(arguments.job, arguments.port, announce, with_input=arguments.ends_with_input, allow_actions=arguments.allow_actions))
    return 0
