"""`harness models`, and `harness run` against a model server: as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

HARNESS = [sys.executable, "-m", "harness_core.cli"]


def harness(*arguments: str, cwd: Path, status: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    done = subprocess.run(
        [*HARNESS, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**kept, "COLUMNS": "200", **environ},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A model server that answers "hello"; keeps the bodies and keys of requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.seen.append((self.path, self.headers["authorization"], body))  # type: ignore[attr-defined]
            events: list[Any] = [{"choices": [{"delta": {"content": "hello"}}]}]
            events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def url(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/v1"


def test_run_with_a_base_url_needs_no_composition(tmp_path: Path, server: Any) -> None:
    done = harness("run", "hi", "--base-url", url(server), "--model", "m1", cwd=tmp_path)
    assert done.stdout.strip() == "hello"
    ((path, key, body),) = server.seen
    assert (path, key, body["model"]) == ("/v1/chat/completions", None, "m1")


def test_run_with_deepseek_takes_the_key_from_the_environment_and_never_shows_it(tmp_path: Path, server: Any) -> None:
    arguments = ["run", "hi", "--provider", "deepseek", "--base-url", url(server), "--model", "m1", "--debug"]
    done = harness(*arguments, cwd=tmp_path, DEEPSEEK_API_KEY="sk-4f9a1c77")
    assert server.seen[0][1] == "Bearer sk-4f9a1c77"
    log = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "4f9a1c77" not in done.stdout + done.stderr + log.decode()


def test_run_without_the_key_says_which_variable_is_missing(tmp_path: Path) -> None:
    done = harness("run", "hi", "--provider", "deepseek", "--model", "m1", cwd=tmp_path, status=1)
    assert "DEEPSEEK_API_KEY is not set" in done.stderr


def test_models_lists_endpoints_with_what_they_lack_and_fails_where_it_matters(tmp_path: Path) -> None:
    (tmp_path / "harness.toml").write_text(
        '[model]\nprovider = "deepseek"\nmodel = "m1"\n'
        '[plugins.here]\nplugin = "openai-compatible"\n[plugins.here.config]\nbase_url = "http://127.0.0.1:1/v1"\n'
        '[plugins.there]\nplugin = "openai-compatible"\n'
    )
    listed = json.loads(harness("models", "--json", cwd=tmp_path, status=1).stdout)
    found = {each["provider"]: each for each in listed["models"]}
    assert (listed["provider"], listed["model"]) == ("deepseek", "m1")
    assert found["deepseek"]["missing"] == ["the environment variable DEEPSEEK_API_KEY is not set"]
    assert (found["deepseek"]["default"], found["here"]["default"]) == (True, False)
    assert (found["here"]["base_url"], found["here"]["missing"]) == ("http://127.0.0.1:1/v1", [])
    assert found["there"]["missing"] == ["base_url is not set"]
    assert found["here"]["plugin"] == "here"
    shown = harness("models", cwd=tmp_path, DEEPSEEK_API_KEY="sk-4f9a1c77").stdout
    assert "https://api.deepseek.com" in shown
    assert "4f9a1c77" not in shown


def test_models_says_when_nobody_serves_what_requests_start_with(tmp_path: Path) -> None:
    (tmp_path / "harness.toml").write_text('[model]\nprovider = "nowhere"\n')
    assert "Nobody serves the provider 'nowhere'" in harness("models", cwd=tmp_path, status=1).stdout


def test_two_endpoints_of_one_plugin_in_a_composition(tmp_path: Path, server: Any) -> None:
    (tmp_path / "harness.toml").write_text(
        '[model]\nprovider = "there"\n'
        '[plugins.here]\nplugin = "openai-compatible"\n[plugins.here.config]\nbase_url = "http://127.0.0.1:1/v1"\n'
        f'[plugins.there]\nplugin = "openai-compatible"\n[plugins.there.config]\nbase_url = "{url(server)}"\nmodel = "m2"\n'
    )
    assert harness("run", "hi", cwd=tmp_path).stdout.strip() == "hello"
    assert server.seen[0][2]["model"] == "m2"
