"""Archives of Spark's classes, which a Java machine maps into its memory: with one, its start takes half the processor time.

As a program it runs some of everything that the tests do with Spark, whose classes the archive then contains.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
from driving import QUICK_START, start_spark
from patience import patience

SUPPORT, BUILD = str(Path(__file__).parents[1] / "support"), Path(__file__).parents[2] / "build"


def archive_option() -> str:
    """Return the option for the archive of this Java and this Spark; empty if there is none."""
    file = _file()
    return f"-XX:SharedArchiveFile={file}" if file.exists() else ""


def make_archive() -> None:
    """Create the archive for this Java and this Spark unless it exists. Some Javas create none."""
    file = _file()
    if not file.exists():
        _make(file)


def _file() -> Path:
    return BUILD / f"spark-{_versions()}.jsa"


def _versions() -> str:
    """Return the versions in an archive's name: Java rejects one of another Java, or of other files."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    found = [str(java.resolve()), str(java.stat().st_mtime_ns), str(Path(pyspark.__file__).stat().st_mtime_ns), pyspark.__file__]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def _make(file: Path) -> None:
    """Create the archive. A concurrent process would create the same."""
    file.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        new = Path(folder, "new.jsa")
        environment = os.environ | {"JAVA_TOOL_OPTIONS": f"{QUICK_START} -XX:ArchiveClassesAtExit={new}", "PYTHONPATH": SUPPORT}
        program = [sys.executable, "-W", "ignore", __file__, folder]
        run = subprocess.run(program, env=environment, check=False, capture_output=True, text=True, timeout=patience(300))
        if run.returncode:
            raise RuntimeError(f"no archive of Spark's classes:\n{run.stderr}")
        if new.exists():
            new.replace(file)


def main(folder: Path) -> None:
    spark = start_spark(folder)
    rows = spark.createDataFrame([(n % 7, n, "text") for n in range(100)], "k long, v long, text string")
    rows.selectExpr("*", "timestamp_seconds(v) as ts").write.parquet(str(folder / "in"))
    read = spark.readStream.schema("k long, v long, text string, ts timestamp").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    written = read.writeStream.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
    written.trigger(availableNow=True).start().awaitTermination()
    out = spark.read.parquet(str(folder / "out"))
    counted = out.groupBy("k").agg({"v": "sum"}).join(out, "k").orderBy("k")
    assert len(counted.collect()) == counted.toArrow().num_rows == 100
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
