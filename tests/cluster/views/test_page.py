"""`evenflow ui` shows a job on Ray in a real browser: its moves, decisions, upgrades and end, a user's actions, and its recording."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from browsing import browser, complaints
from patience import patience
from playwright.sync_api import expect
from watching import until

import evenflow as ef
from evenflow.cli import main
from evenflow.engine.errors import UpgradeRolledBackError
from evenflow.recording.file import Recording

PICTURES = Path(__file__).parents[3] / "build"
PATIENCE = patience(90_000)
"""Milliseconds until the page shows what a job has done."""

COLOURS = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
  for (let at = 0; at < pixels.length; at += 4) found.add(pixels.slice(at, at + 4).join());
  return found.size;
}"""


BLUE = """canvas => {
  const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  let found = 0;
  for (let at = 0; at < pixels.length; at += 4) found += pixels[at + 2] > pixels[at] + 25;
  return found / (pixels.length / 4);
}"""
"""The share of a canvas in the hue of the newer code, on a light page."""


def flow_of(*, upgraded=False):
    """Return the job's flow; `upgraded`: with the value in each row."""

    def slow(state, row):
        for _ in range(100):
            row["value"] = -row["value"]
        return (state or 0) + 1, {"key": row["key"], "n": state or 0}

    def with_value(state, row):
        count, result = slow(state, row)
        return count, {**result, "value": row["value"]}

    flow = ef.Dataflow("shown")
    rows = flow.read(ef.generate(rate=2_000, every="20ms", keys=500, zipf=1.0, string_keys=True))
    named = rows.map(lambda row: {**row, "seventh": 1 / (row["seq"] % 7)}, on_error="skip").named("named")
    named.key_by("key").stateful_map(with_value if upgraded else slow).named("numbered").write(
        ef.to_callback(lambda row: None, name="nowhere")
    )
    return flow


@pytest.fixture
def job(cluster, tmp_path):
    flow = flow_of()
    checkpoints = ef.CheckpointConfig(interval="2s", dir=tmp_path)
    balance = ef.BalanceConfig("hotspot", least_busy=1.0)  # looks, and finds no worker busy enough
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=64, checkpoint=checkpoints, balance=balance))
    yield job
    job.cancel()
    job.wait("60s")


@contextmanager
def command(cluster, *words):
    """Run a command of evenflow's, and interrupt it in the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "evenflow", *map(str, words)], env={**os.environ, "RAY_ADDRESS": cluster}, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=patience(60))
            assert process.returncode == 130


@pytest.fixture
def page_process(cluster, job):
    with command(cluster, "ui", job.name, "--no-open") as process:
        yield process


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
        heat, charts = page.locator(".heat > canvas"), page.locator("#decisions canvas")
        until(lambda: heat.evaluate(COLOURS) > 30, "the heat map has many shades")
        expect(charts).to_have_count(2)
        until(lambda: min(chart.evaluate(COLOURS) for chart in charts.all()) > 5, "the charts have lines")

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
        charts.first.scroll_into_view_if_needed()
        box = charts.first.bounding_box()
        page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"])
        expect(page.locator(".tip")).to_contain_text("rate", timeout=PATIENCE)
        page.mouse.move(0, 0)
        page.locator("#operators summary").click()
        page.locator("#operators").get_by_role("button", name="generate").click()
        left_out = page.locator("#operators .left tr", has_text="ZeroDivisionError").first
        expect(left_out).to_contain_text("'seq':", timeout=PATIENCE)
        photograph(page)

        (follower,) = psutil.Process(page_process.pid).children()
        follower.kill()
        expect(page.locator(".banner")).to_contain_text("cluster is lost", timeout=PATIENCE)
        expect(page.locator(".banner")).to_have_count(0, timeout=PATIENCE)
        expect(page.locator("h1 .pill")).to_have_text("running")

        job.stop(drain=True)
        job.wait("60s")
        expect(page.locator(".banner")).to_contain_text("finished", timeout=PATIENCE)
        expect(page.locator("h1 .pill")).to_have_text("ended")
        page.reload()
        expect(page.locator("h1 .pill")).to_have_text("ended", timeout=PATIENCE)
        expect(moved).to_be_visible()
        assert said == []


@pytest.mark.timeout(400)
def test_a_browser_shows_an_upgrade_in_two_hues_and_its_end(job, page_process):
    PICTURES.mkdir(exist_ok=True)
    with browser() as chromium, ThreadPoolExecutor(1) as upgrading:
        page = chromium.new_page(viewport={"width": 1360, "height": 900}, color_scheme="light")
        said = complaints(page)
        page.goto(page_process.stdout.readline().strip())
        heat, panel, bars = page.locator(".heat > canvas"), page.locator("#upgrades .upgrade"), page.locator("#loads .bars .name")
        expect(bars).to_have_text(["numbered-0", "numbered-1"], timeout=PATIENCE)
        until(lambda: heat.evaluate(COLOURS) > 30, "the heat map has many shades")
        expect(panel).to_have_count(0)
        assert heat.evaluate(BLUE) < 0.005  # the axis is blue to a degree

        first = upgrading.submit(job.upgrade, flow_of(upgraded=True), canary=0.4, watch="20m", max_slowdown=1e6)
        expect(panel.locator(".pill")).to_have_text("watching the new code", timeout=PATIENCE)
        expect(panel).to_contain_text("of 1200 s", timeout=PATIENCE)
        rows = panel.locator("tbody tr")
        expect(rows).to_have_count(2, timeout=PATIENCE)
        expect(rows.first).to_contain_text("old")
        expect(rows.last).to_contain_text("new, version 2")
        expect(page.locator(".heat .version")).to_have_text([re.compile("version 1"), re.compile("version 2")], timeout=PATIENCE)
        until(lambda: heat.evaluate(BLUE) > 0.02, "the groups of the canary have another hue")
        expect(bars).to_have_text(["numbered-0", "numbered-1", "numbered-2v2"], timeout=PATIENCE)
        assert "watching the new code" in str(job.status())
        page.screenshot(path=PICTURES / "page-upgrade.png", full_page=True)

        job.abort_upgrade()
        with pytest.raises(UpgradeRolledBackError):
            first.result(patience(90))
        expect(panel.locator(".pill")).to_have_text("rolled back", timeout=PATIENCE)
        expect(panel.locator(".banner")).to_have_text("it was aborted by hand")
        expect(page.locator("#decisions .failed", has_text="person: upgrades numbered to version 2")).to_have_count(1)
        expect(bars).to_have_text(["numbered-0", "numbered-1"], timeout=PATIENCE)

        job.upgrade(flow_of(upgraded=True), canary=0.4, watch="1s", max_slowdown=1e6)
        expect(panel.first.locator(".pill")).to_have_text("done", timeout=PATIENCE)
        expect(page.locator("#decisions .yes", has_text="person: upgrades numbered to version 3: done")).to_have_count(1)
        expect(bars).to_have_text(["numbered-0v3", "numbered-1v3"], timeout=PATIENCE)
        assert {figures.worker for figures in job.metrics() if figures.operator == "numbered"} == {"numbered-0v3", "numbered-1v3"}
        page.locator("#operators summary").click()
        page.locator("#operators").get_by_role("button", name="numbered").click()
        expect(page.locator("#operators tbody tr")).to_have_count(2, timeout=PATIENCE)
        heat.scroll_into_view_if_needed()
        until(lambda: re.search(r"of numbered-[01]v3", pointed_at(page, heat)), "a cell names its owner with the version")
        page.mouse.move(0, 0)
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=PICTURES / "page-upgraded-dark.png", full_page=True)
        assert said == []


def pointed_at(page, heat):
    """Return what the page says of the newest second of the heat map."""
    box = heat.bounding_box()
    for place in (0.5, 0.99):  # the tip changes when the pointer moves
        page.mouse.move(box["x"] + place * box["width"], box["y"] + 0.1 * box["height"])
    return page.locator(".tip").inner_text()


def photograph(page):
    PICTURES.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=PICTURES / f"page-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 800})
    until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 390, "a phone needn't scroll sideways")
    page.screenshot(path=PICTURES / "page-phone.png", full_page=True)
    page.set_viewport_size({"width": 1360, "height": 900})


def answered(page, kind):
    """Confirm the dialog, and leave it when the job has answered."""
    page.locator("dialog .go").click()
    expect(page.locator("dialog p[role=status].good")).to_contain_text(kind, timeout=PATIENCE)
    page.locator("dialog").get_by_role("button", name="Close").click()
    expect(page.locator("dialog")).to_have_count(0)


@pytest.mark.timeout(400)
def test_actions_on_the_page_reach_the_job_and_its_recording_can_be_replayed(cluster, job, tmp_path, capsys):
    PICTURES.mkdir(exist_ok=True)
    file = tmp_path / "shown.rec"
    with (
        browser() as chromium,
        command(cluster, "record", job.name, file) as recorder,
        command(cluster, "ui", job.name, "--no-open", "--allow-actions") as process,
    ):
        assert recorder.stdout.readline().startswith("recording shown into")
        page = chromium.new_page(viewport={"width": 1360, "height": 900})
        said = complaints(page)
        page.goto(process.stdout.readline().strip())
        expect(page.locator("#loads .bars .name")).to_have_text(["numbered-0", "numbered-1"], timeout=PATIENCE)
        until(lambda: file.exists() and len(Recording(file).times) > 4, "there is something before the changes")

        page.locator("#loads").get_by_role("button", name="Rebalance…").click()
        expect(page.locator("dialog tbody")).to_have_count(2, timeout=PATIENCE)  # what each balancer would do
        page.locator("dialog label", has_text="lpt").click()
        expect(page.locator("dialog .go")).to_have_text("Rebalance by lpt")
        page.screenshot(path=PICTURES / "page-rebalance.png")
        assert job.migrations() == []
        answered(page, "Migration 0 has begun")
        (moved,) = job.migrations()
        assert (moved.operator, moved.reason.partition(":")[0]) == ("numbered", "lpt, by hand")
        until(lambda: job.migrations()[0].over, "the keys have moved")
        assert job.migrations()[0].keys_moved > 0

        page.locator("#loads").get_by_role("button", name="Scale…").click()
        page.locator("dialog input").fill("3")
        page.locator("dialog .go").click()
        expect(page.locator("dialog .plan")).to_contain_text("from 2 to 3 workers", timeout=PATIENCE)
        answered(page, "Scaling 0 has begun")
        until(lambda: job.scalings()[0].over, "there are three workers")
        assert (job.scalings()[0].before, job.scalings()[0].after) == (2, 3)
        expect(page.locator("#loads .bars .name")).to_have_text(["numbered-0", "numbered-1", "numbered-2"], timeout=PATIENCE)

        page.locator("header").get_by_role("button", name="Checkpoint…").click()
        expect(page.locator("dialog .plan")).to_contain_text("saves its state", timeout=PATIENCE)
        answered(page, "is requested")
        page.locator("#operators summary").click()
        page.locator("#operators").get_by_role("button", name="numbered").click()
        expect(page.locator("#operators tbody tr")).to_have_count(3, timeout=PATIENCE)

        look_at_state(page)
        draw_flames(page)
        see_nodes(page)

        page.locator("header").get_by_role("button", name="Stop…").click()
        answered(page, "stopping")
        job.wait("60s")
        expect(page.locator("h1 .pill")).to_have_text("ended", timeout=PATIENCE)
        recorder.communicate(timeout=patience(60))
        assert recorder.returncode == 0
        assert said == []
    go_through(cluster, file)
    plans_of(file, capsys)


def see_nodes(page):
    """Check that the page shows the cluster's only node with all workers, and says why none is added."""
    row = page.locator("#nodes tbody tr")
    expect(row).to_have_count(1)
    for worker in ("generate-0", "numbered-0", "numbered-2"):
        expect(row).to_contain_text(worker)
    expect(page.locator("#graph")).to_contain_text(f"on {row.locator('td').first.inner_text()}")
    page.locator("#nodes").get_by_role("button", name="Add nodes…").click()
    page.locator("dialog input").fill("1")
    page.locator("dialog .go").click()
    expect(page.locator("dialog p.bad")).to_contain_text("no operator is congested that may have more workers", timeout=PATIENCE)
    page.locator("dialog").get_by_role("button", name="Cancel").click()


def look_at_state(page):
    """Look up a key of the operator that is shown in detail, one that has no state, and the first rows of all keys."""
    state, said = page.locator("#operators form.state"), page.locator("#operators p[role=status]")
    state.locator("input").fill("key-0")
    state.get_by_role("button", name="Look up").click()
    expect(said).to_contain_text("key-0", timeout=PATIENCE)
    assert int(said.locator("code").inner_text()) > 0
    state.locator("input").fill("<b>nobody</b>")
    state.locator("input").press("Enter")
    expect(said).to_have_text("<b>nobody</b> null", timeout=PATIENCE)
    state.locator("input").fill("7")
    state.locator("input").press("Enter")
    expect(said).to_contain_text("its key column `key` is string, and 7 is int64", timeout=PATIENCE)
    state.get_by_role("button", name="First rows").click()
    expect(page.locator("#operators table.state tbody tr")).to_have_count(50, timeout=PATIENCE)
    expect(page.locator("#operators table.state th")).to_have_text(["key: string", "state: int64"])


def draw_flames(page):
    """Draw a flame graph of a worker's process if py-spy may trace it; else check the error."""
    page.locator("#operators tbody tr", has_text="numbered-0").get_by_role("button", name="Flame graph…").click()
    expect(page.locator("dialog .plan")).to_contain_text("numbered-0's process for 5 s", timeout=PATIENCE)
    page.locator("dialog .go").click()
    said = page.locator("dialog p[role=status]")
    expect(said).to_have_count(1, timeout=PATIENCE)
    if "may not look" not in said.inner_text():
        expect(said).to_have_text("Time of numbered-0 in 5 s:")
        loop = page.locator("dialog .flame button", has_text="task_run.py").first
        loop.click()
        expect(page.locator("dialog .flame > .frame > button")).to_contain_text("task_run.py")
        page.screenshot(path=PICTURES / "flame.png")
    page.locator("dialog").get_by_role("button", name="Close").click()


def go_through(cluster, file):
    """Go through the page of the recording, with the slider."""
    with browser() as chromium, command(cluster, "ui", "--replay", file, "--no-open") as process:
        page = chromium.new_page(viewport={"width": 1360, "height": 900}, color_scheme="light")
        said = complaints(page)
        page.goto(process.stdout.readline().strip())
        bars, slider = page.locator("#loads .bars .name"), page.locator("#replay input")
        expect(page.locator("h1 .pill")).to_have_text("replay", timeout=PATIENCE)
        expect(bars).to_have_text(["numbered-0", "numbered-1", "numbered-2"], timeout=PATIENCE)
        for what in ("from 2 to 3 workers", "lpt, by hand"):
            expect(page.locator("#decisions .yes", has_text="person, numbered").filter(has_text=what)).to_have_count(1)
        page.screenshot(path=PICTURES / "replay.png", full_page=True)
        slider.fill(slider.get_attribute("min"))
        expect(bars).to_have_text(["numbered-0", "numbered-1"], timeout=PATIENCE)
        expect(page.locator("#decisions .yes")).to_have_count(0)
        page.locator("#replay select").select_option("5")
        page.locator("#replay button").click()
        expect(bars).to_have_text(["numbered-0", "numbered-1", "numbered-2"], timeout=PATIENCE)
        page.locator("#loads .whatif button").click()
        expect(page.locator("#loads .plans tbody")).to_have_count(2, timeout=PATIENCE)
        assert page.get_by_role("button", name="Rebalance…").count() == 0
        assert said == []


def plans_of(file, capsys):
    """Check policies' plans for the recording on the command line."""
    assert main(["plan", "balance", "--snapshot", f"{file}@3", "--policy", "lpt"]) == 0
    assert json.loads(capsys.readouterr().out)["moves"]
    assert main(["plan", "balance", "--snapshot", f"{file}@all"]) == 0
    assert "hotspot, replayed on recorded data" in capsys.readouterr().out


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
        urllib.request.urlopen(address.partition("?")[0], timeout=patience(60))
    driver.communicate("\n", timeout=patience(100))
    assert driver.returncode == 0
    until(lambda: not answers(address), "the page is gone with its driver")


def answers(address):
    try:
        urllib.request.urlopen(address.partition("?")[0], timeout=patience(60))
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError:
        return False
    return True
