"""`evenflow ui` shows a job on Ray in a real browser: its moves, decisions and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from browsing import browser, complaints
from playwright.sync_api import expect
from watching import until

import evenflow as ef

PICTURES = Path(__file__).parents[2] / "build"
PATIENCE = 90_000
"""Milliseconds for what the page shows when a job has done it."""

COLOURS = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
  for (let at = 0; at < pixels.length; at += 4) found.add(pixels.slice(at, at + 4).join());
  return found.size;
}"""


@pytest.fixture
def job(cluster, tmp_path):
    def slow(state, row):
        for _ in range(100):
            row["value"] = -row["value"]
        return (state or 0) + 1, {"key": row["key"], "n": state or 0}

    flow = ef.Dataflow("shown")
    rows = flow.read(ef.generate(rate=2_000, every="20ms", keys=500, zipf=1.0, string_keys=True))
    rows.key_by("key").stateful_map(slow).named("numbered").write(ef.to_callback(lambda row: None, name="nowhere"))
    checkpoints = ef.CheckpointConfig(interval="2s", dir=tmp_path)
    balance = ef.BalanceConfig("hotspot", least_busy=1.0)  # looks, and finds that nobody is busy enough
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=64, checkpoint=checkpoints, balance=balance))
    yield job
    job.cancel()
    job.wait("60s")


@pytest.fixture
def page_process(cluster, job):
    command = [sys.executable, "-m", "evenflow", "ui", job.name, "--no-open"]
    process = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": cluster}, stdout=subprocess.PIPE, text=True)
    yield process
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.timeout(400)
def test_a_browser_shows_a_job_its_moves_and_its_end(job, page_process):
    address = page_process.stdout.readline().strip()
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1360, "height": 900}, color_scheme="light")
        said = complaints(page)
        page.goto(address)
        assert "token" not in page.url
        expect(page.locator("h1 .pill")).to_have_text("running", timeout=PATIENCE)
        expect(page.locator("#loads .bars .name")).to_have_text(["numbered-0", "numbered-1"], timeout=PATIENCE)
        expect(page.locator("#decisions .no").first).to_contain_text("not busy enough", timeout=PATIENCE)
        expect(page.locator("#graph text.name")).to_have_text(["generate", "numbered"])
        expect(page.locator("#checkpoints .pill.good").first).to_have_text("complete", timeout=PATIENCE)
        expect(page.locator("#decisions .u-wrap")).to_have_count(2)
        heat = page.locator(".heat > canvas")
        until(lambda: heat.evaluate(COLOURS) > 30, "the heat map has many shades")

        job.migrate("numbered", groups=range(20), to=1)
        moved = page.locator("#decisions .yes", has_text="person, numbered: moves 20 key groups")
        expect(moved).to_contain_text("by hand", timeout=PATIENCE)
        expect(moved).to_contain_text("p99", timeout=PATIENCE)  # what came of it
        job.scale("numbered", 3)
        expect(page.locator("#loads .bars .name")).to_have_text(["numbered-0", "numbered-1", "numbered-2"], timeout=PATIENCE)
        expect(page.locator("#decisions .yes", has_text="from 2 to 3 workers")).to_contain_text("person", timeout=PATIENCE)

        box = heat.bounding_box()
        page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
        expect(page.locator(".tip")).to_contain_text("key group")
        page.mouse.move(0, 0)
        photograph(page)

        (follower,) = psutil.Process(page_process.pid).children()
        follower.kill()
        expect(page.locator(".banner")).to_contain_text("cluster is gone", timeout=PATIENCE)
        expect(page.locator(".banner")).to_have_count(0, timeout=PATIENCE)
        expect(page.locator("h1 .pill")).to_have_text("running")

        job.stop()
        job.wait("60s")
        expect(page.locator(".banner")).to_contain_text("finished", timeout=PATIENCE)
        expect(page.locator("h1 .pill")).to_have_text("ended")
        page.reload()
        expect(page.locator("h1 .pill")).to_have_text("ended", timeout=PATIENCE)
        expect(moved).to_be_visible()
        assert said == []


def photograph(page):
    PICTURES.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=PICTURES / f"page-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 800})
    until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 390, "a phone needn't scroll sideways")
    page.screenshot(path=PICTURES / "page-phone.png", full_page=True)
    page.set_viewport_size({"width": 1360, "height": 900})


PROGRAM = """
import evenflow as ef
flow = ef.Dataflow("its-own-page")
flow.read(ef.generate(rate=100)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
job = flow.run(ui=True)
input()
job.cancel()
"""


def test_a_job_with_its_own_page_prints_the_address_and_takes_the_page_along(cluster):
    driver = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "RAY_ADDRESS": cluster},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = driver.stdout.readline().strip()
    assert line.startswith("job `its-own-page` is at http://127.0.0.1:")
    address = line.rpartition(" ")[2]
    assert address.endswith("&job=its-own-page")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(address.partition("?")[0], timeout=60)
    driver.communicate("\n", timeout=100)
    assert driver.returncode == 0
    until(lambda: not answers(address), "the page is gone with its driver")


def answers(address):
    try:
        urllib.request.urlopen(address.partition("?")[0], timeout=60)
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError:
        return False
    return True
