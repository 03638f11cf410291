"""`datahall serve` as a person types it: a process that says where it is, answers, and ends without losing anybody."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest
from tests.serve.modelserver.models import linear

from datahall.cli.main import run as typed
from datahall.serve.http import Client, Failure, Origin, run
from datahall.serve.modelserver.llm.weights import NAME, weights

DATAHALL = (sys.executable, "-m", "datahall")


@asynccontextmanager
async def served(*words: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int, str]]:
    """A process that serves, its port, and what it said; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *DATAHALL, "serve", *words, "--listen", "127.0.0.1:0", stdout=-1, stderr=-1
    )
    assert process.stdout is not None
    said = b""
    async with asyncio.timeout(30):
        while b"curl " not in said:
            line = await process.stdout.readline()
            if not line:
                assert process.stderr is not None
                raise AssertionError(said + await process.stderr.read())
            said += line
    found = re.search(rb"http://127\.0\.0\.1:(\d+) answers", said)
    assert found
    try:
        yield process, int(found[1]), said.decode()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def predict(client: Client, features: list[float]) -> tuple[int, Any]:
    response = await client.request("POST", "/predict", msgspec.json.encode({"features": features}))
    return response.status, msgspec.json.decode(await response.read())


def test_a_model_answers_the_line_that_it_says_and_ends_without_losing_anybody(tmp_path: Path) -> None:
    async def main() -> None:
        async with served("--model", str(linear(tmp_path))) as (process, port, said):
            curl = next(line for line in said.splitlines() if line.startswith("curl "))
            body = curl.partition(" -d ")[2].strip("'")
            client = Client(Origin("127.0.0.1", port))
            response = await client.request("POST", "/predict", body.encode())
            assert response.status == 200
            assert msgspec.json.decode(await response.read())["prediction"] == [0.0, 0.0]
            answers, is_told = [], False

            async def ask(place: int) -> None:
                while True:
                    try:
                        status, found = await predict(client, [0, 1, place])
                    except Failure:
                        assert is_told  # no more connections are taken; what was taken is answered
                        return
                    assert status == 200
                    assert found["prediction"] == [2 + 4 * place, 3 + 5 * place]
                    answers.append(place)

            asking = [asyncio.create_task(ask(place)) for place in range(8)]
            while len(answers) < 100:
                await asyncio.sleep(0.01)
            is_told = True
            process.send_signal(signal.SIGTERM)
            await asyncio.gather(*asking)
            assert await process.wait() == 0
            client.close()

    run(main())


def test_a_signal_swaps_the_model_for_what_is_in_its_file_and_a_broken_file_for_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(linear(tmp_path).read_bytes())

    async def main() -> None:
        async with served("--model", str(file)) as (process, port, _):
            client = Client(Origin("127.0.0.1", port))
            assert process.stderr is not None
            assert (await predict(client, [0, 1, 0]))[1]["prediction"] == [2.0, 3.0]
            for content, said, expected in (
                (linear(tmp_path, factor=2.0).read_bytes(), b"was loaded anew", [4.0, 6.0]),
                (b"half a file", b"was not loaded anew", [4.0, 6.0]),
            ):
                file.write_bytes(content)
                process.send_signal(signal.SIGHUP)
                assert said in await process.stderr.readline()
                assert (await predict(client, [0, 1, 0]))[1]["prediction"] == expected
            response = await client.request("GET", "/v2/models/model")
            assert msgspec.json.decode(await response.read())["versions"] == ["2"]
            client.close()

    run(main())


def test_without_a_word_it_is_a_language_model_behind_a_key(tmp_path: Path) -> None:
    weights(lambda _: None)

    async def main() -> None:
        async with served("--state", str(tmp_path)) as (process, port, said):
            key = re.search(r"key  (\S+)", said)
            assert key
            asked = {
                "model": NAME,
                "messages": [{"role": "user", "content": "What is the capital of France?"}],
            }
            url = f"http://127.0.0.1:{port}/v1"
            async with openai.AsyncOpenAI(base_url=url, api_key=key[1], max_retries=0) as client:
                stream = await client.chat.completions.create(
                    **asked, temperature=0, max_tokens=12, stream=True
                )
                pieces = [one.choices[0].delta.content or "" async for one in stream if one.choices]
                assert "".join(pieces) == "The capital of France is Paris."
            async with openai.AsyncOpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger:
                with pytest.raises(openai.AuthenticationError):
                    await stranger.chat.completions.create(**asked)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0

    run(main())


@pytest.mark.parametrize(
    ("words", "error", "place"),
    [
        (["--model", "none.onnx"], "there is no file none.onnx", "--model"),
        (["--model", "m.onnx", "--batch", "0"], "0 is not a whole number", "--batch"),
        (["--model", "m.onnx", "--batch", "1e99"], "is not a whole number", "--batch"),
        (["--model", "m.onnx", "--workers", "-1"], "is not a whole number", "--workers"),
        (["--model", "m.onnx", "--delay", "3 apples"], "is not seconds", "--delay"),
        (["--model", "m.onnx", "--delay", "10ms"], "--delay does nothing here", "--delay"),
        (["--model", "m.onnx", "--listen", "0.0.0.0:80"], "anybody who reaches", "--listen"),
        (["--model", "m.onnx", "--listen", "here"], "is no address", "--listen"),
        (["--model", "m.onnx", "--state", "x"], "--state does nothing here: there is --model", "--state"),
        (["g.toml", "--model", "m.onnx"], "GATEWAY.TOML does nothing here", "GATEWAY.TOML"),
        (["--batch", "4"], "--batch does nothing here: there is no --model", "--batch"),
        (["--allow-pickle", "a"], "--allow-pickle does nothing here", "--allow-pickle"),
        (["--model", "m.pkl"], "runs whatever code", "--allow-pickle m.pkl"),
        (["--model", "m.onnx"], "cannot be loaded", "--model"),
    ],
)
def test_what_cannot_be_served_is_said_with_its_place(
    words: list[str],
    error: str,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "m.pkl"):
        (tmp_path / name).write_bytes(b"nothing")
    assert typed(["serve", *words]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert place in said


def test_the_help_shows_what_can_be_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(["serve", "--help"]) == 0
    out = capsys.readouterr().out
    for word in ("datahall serve --model model.onnx", "--allow-pickle", "TorchScript"):
        assert word in out


def test_whoever_runs_it_loads_and_unloads_at_an_address_of_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        words = ("--model", str(linear(tmp_path)), "--admin", "127.0.0.1:0")
        async with served(*words) as (process, port, said):
            found = re.search(r"http://127\.0\.0\.1:(\d+)(/v2/repository/models/\S+)/load", said)
            assert found
            client, admin = Client(Origin("127.0.0.1", port)), Client(Origin("127.0.0.1", int(found[1])))
            model = f"/v2/models/{found[2].rpartition('/')[2]}"

            async def asked(of: Client, method: str, path: str) -> tuple[int, Any]:
                answer = await of.request(method, path)
                return answer.status, msgspec.json.decode(await answer.read())

            assert (await asked(client, "GET", model))[1]["versions"] == ["1"]
            assert await asked(admin, "POST", f"{found[2]}/load") == (200, {})
            assert (await asked(client, "GET", model))[1]["versions"] == ["2"]
            assert (await asked(client, "POST", f"{found[2]}/unload"))[0] == 404
            assert await asked(admin, "POST", f"{found[2]}/unload") == (200, {})
            assert (await predict(client, [1, 0, 0]))[0] == 503
            client.close()
            admin.close()
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0

    run(main())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--model", "MODEL", "--admin", "0.0.0.0:8090"), "could unload the model"),
        (("--model", "MODEL", "--admin", "here"), "is no address"),
        (("--admin", "127.0.0.1:8090"), "there is no --model"),
    ],
)
def test_where_models_may_not_be_unloaded(
    tmp_path: Path, words: tuple[str, ...], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(linear(tmp_path))
    assert typed(["serve", *(file if word == "MODEL" else word for word in words)]) == 2
    assert wrong in capsys.readouterr().err
