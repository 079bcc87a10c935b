"""Debian's Prometheus with the project's alerts, and a Grafana dashboard's queries."""

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

from expectations import ROOT, wait_for
from harness import Skipped
from ports import free_port

RULES = ROOT / "deploy/prometheus/refresh-worker.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/refresh-worker.json"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
CONFIGURATION = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: [{rules}]
scrape_configs:
  - job_name: refresh-worker
    scheme: https
    tls_config:
      ca_file: {authority}
    static_configs:
      - targets: ["localhost:{port}"]
"""


def sped_up(rules, factor):
    """The rules with each duration of `for:` and each range divided by the factor.

    Three seconds are the least: a range needs two scrapes, and one late scrape is not an alert.
    """

    def shorter(match):
        seconds = int(match[2]) * UNITS[match[3]] / factor
        return f"{match[1]}{max(3000, round(seconds * 1000))}ms"

    return re.sub(r"(for: |\[|(?<=\d[smhd]):)(\d+)([smhd])\b", shorter, rules)


class Prometheus:
    """A running Prometheus that scrapes a worker over TLS once a second; a context manager."""

    def __init__(self, folder, worker_port, authority, speed):
        for program in ("prometheus", "promtool"):
            if not shutil.which(program):
                raise Skipped(f"{program} is missing: scripts/ensure-packages check installs it")
        rules = folder / "fast.rules.yml"
        rules.write_text(sped_up(RULES.read_text(), speed))
        configuration = folder / "prometheus.yml"
        configuration.write_text(CONFIGURATION.format(rules=rules, authority=authority.file, port=worker_port))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = open(folder / "prometheus.log", "wb")
        self.process = subprocess.Popen(
            [
                "prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self.log, stderr=self.log,
        )

    def __enter__(self):
        wait_for(self.is_ready, 30, "Prometheus is ready")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()

    def is_ready(self):
        assert self.process.poll() is None, "Prometheus runs"
        try:
            return self.get("/-/ready") is not None
        except OSError:
            return False

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return answer.read()

    def query(self, expression):
        """The samples that an expression has now."""
        return json.loads(self.get("/api/v1/query", query=expression))["data"]["result"]

    def firing(self):
        """The names of the alerts that fire now."""
        return {sample["metric"]["alertname"] for sample in self.query('ALERTS{alertstate="firing"}')}

    def fired(self, since):
        """The names of the alerts that fired at any time since then."""
        milliseconds = round((time.time() - since) * 1000)
        samples = self.query(f'count_over_time(ALERTS{{alertstate="firing"}}[{milliseconds}ms])')
        return {sample["metric"]["alertname"] for sample in samples}


def dashboard_queries():
    """Each query of the dashboard with its panel's title, with values for Grafana's variables."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$job", ".*").replace("$__rate_interval", "30s")
