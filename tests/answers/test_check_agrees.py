"""`check` refuses a file where asking what it asks refuses it, whatever the verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall import check
from datahall.answers.ask import ask
from datahall.answers.verbs import BY_NAME, VERBS
from datahall.catalog import Catalog, document
from datahall.errors import DatahallError

MODEL = 'model = "llama-3.1-8b"\n'
JOB = '[training]\ntokens = "1T"\n'
ON_NOTHING = '[fabric]\ntopology = "fat-treee"\nchips = 64\n'
# of each verb: what its inputs, each right alone, do not go together to
WRONG = {
    "plan serve": (
        f'{MODEL}[traffic]\nrate = 5\n[fabric]\ntopology = "fat-treee"\n',
        f'{MODEL}[traffic]\nrate = 5\n[deployment]\ntp = 3\n[candidates]\nchips = ["h200"]\n',
        f'{MODEL}[traffic]\nrate = 5\n[deployment]\ndraft = "gpt-9"\n',
    ),
    "plan train": (
        f'{MODEL}{JOB}deadline = "30d"\n[fabric]\nchips = 512\n',
        f"{MODEL}{JOB}{ON_NOTHING}",
        f'{MODEL}{JOB}precision = "fp8"\n[fabric]\nchips = 64\nchip = "a100-sxm-80gb"\n',
    ),
    "show chip": ('[claim]\nchip = "h100-sxm"\nclaim = ["peak.fp9=3 TFLOP/s"]\n',),
    "show model": (f'{MODEL}[candidates]\nchips = ["h9000"]\n',),
    "show fit": (f'{MODEL}[deployment]\nchip = "h200"\ntp = 3\n',),
    "show roofline": (f'{MODEL}[deployment]\nchip = "h200"\ntp = 3\n',),
    "show hierarchy": (
        '[deployment]\nchip = "h100-sxm"\n[working_set]\nworking_set = "2 GB"\noffload = "nvm"\n',
    ),
    "show fabric": ('[fabric]\ntopologies = ["fat-treee"]\nchips = 64\n',),
    "show blast-radius": (
        '[fabric]\ntopology = "nvl72"\nchips = 72\n[failures]\nlike = "llama-4"\n',
        '[fabric]\ntopology = "nvl72"\n',
        '[fabric]\ntopology = "hgx"\nchips = 64\n[failures]\nrate = 0\n',
    ),
    "show memory": (
        f"{MODEL}[fabric]\nchips = 48\n[layout]\ntp = 8\npp = 5\n",
        f"{MODEL}{ON_NOTHING}",
    ),
    "show training-techniques": (
        f"{MODEL}[fabric]\nchips = 48\n[layout]\ntp = 8\npp = 5\n",
        f"{MODEL}{ON_NOTHING}",
        f'{MODEL}[purchase]\nprovider = ["nobody"]\n',
    ),
    "show power": (
        f"{MODEL}[fabric]\nchips = 48\n[layout]\ntp = 8\npp = 5\n",
        f"{MODEL}{ON_NOTHING}",
        f'{MODEL}[fabric]\nchips = 64\n[site]\ngrid = "atlantis"\n',
    ),
    "show collective": (f'[collective]\ncollective = "all-reduce"\nsize = "1 MB"\n{ON_NOTHING}',),
    "show techniques": (f'{MODEL}[deployment]\nchip = "h200"\ntp = 3\n[traffic]\nrate = 5\n',),
    "simulate serve": (
        f"{MODEL}[deployment]\ntp = 3\n[traffic]\nrate = 5\n",
        f'{MODEL}[traffic]\nrate = 5\n[fabric]\ntopology = "fat-treee"\n',
        f'{MODEL}[traffic]\nrate = 5\n[deployment]\nengine = "static"\ndisaggregated = "prefill=1xh200,decode=1"\n',
    ),
    "simulate train": (
        f"{MODEL}[fabric]\nchips = 48\n[layout]\ntp = 8\npp = 5\n",
        f'{MODEL}[fabric]\nchips = 16\n[layout]\npp = 4\nschedule = "interleaved"\n',
        f"{MODEL}{ON_NOTHING}",
    ),
    "show checkpoint": (
        f'{MODEL}[fabric]\nchips = 64\n[checkpoint]\ntiers = ["tape"]\n',
        f'{MODEL}[fabric]\nchips = 64\n[checkpoint]\ntiers = ["host"]\n',
        f"{MODEL}{ON_NOTHING}",
        MODEL,
    ),
    "simulate run": (
        f"{MODEL}[fabric]\nchips = 64\n",
        f'{MODEL}[fabric]\nchips = 8\n[run]\ndays = 3\n[checkpoint]\ninterval = "4d"\n[recovery]\nplanned_every = 0\n',
        f"{MODEL}[fabric]\nchips = 48\n[run]\ndays = 3\n[layout]\ntp = 8\npp = 5\n",
        f'{MODEL}[fabric]\nchips = 64\n[run]\ndays = 3\n[failures]\nlike = "llama-4"\n',
    ),
    "simulate fabric": (
        f'{ON_NOTHING}[[job]]\ncollective = "all-reduce"\nranks = 64\nsize = "1 MB"\n',
        '[fabric]\ntopology = "fat-tree"\nchips = 64\n[simulation]\ndetail = "full"\ncheck_with = "full"\n'
        '[[job]]\ncollective = "all-reduce"\nranks = 64\nsize = "1 MB"\n',
    ),
    "show datapath": (
        '[datapath]\nworkload = "resnet50"\ncache = "3 TB"\n[fabric]\nchips = 64\n',
        '[datapath]\nworkload = "resnet50"\n[fabric]\nchips = 64\nchip = "b200"\n',
        '[datapath]\nworkload = "unet3d"\ndataset = "1 GB"\n[fabric]\nchips = 64\n',
    ),
    "show cost": (
        '[purchase]\npriced = "llama-3.1-8b"\n',
        '[purchase]\npriced = "h100-sxm"\n[training]\ntokens = "1T"\n',
        '[purchase]\npriced = "gpt-4"\n[site]\ngrid = "atlantis"\n',
        '[purchase]\npriced = "gpt-4"\nprovider = ["nobody"]\n',
    ),
    "show build-or-buy": (
        f'{MODEL}[business]\ntokens_per_month = "2B"\n[purchase]\nbuy = ["api"]\n',
        f'{MODEL}[business]\ntokens_per_month = "2B"\n[purchase]\nspot_price = 1\n',
    ),
    "show stage": (
        '[business]\ncustomers = 10\ntokens_per_customer = "1M"\n[purchase]\nbuy = ["api"]\n',
        '[business]\ncustomers = 1000000000\ntokens_per_customer = "1000T"\n',
    ),
    "simulate cluster": (
        f'{ON_NOTHING}[[cluster_job]]\nchips = 8\nrun = "1h"\n',
        '[fabric]\nchips = 16\n[[cluster_job]]\nchips = 32\nrun = "1h"\n',
        '[fabric]\nchips = 16\n[[cluster_job]]\nname = "a"\nrun = "1h"\n[[cluster_job]]\nname = "a"\nrun = "2h"\n',
    ),
    "catalog chips": ('[chips]\nsort = "colour"\n',),
    "show transport": ('[transports]\ntransports = ["tcp"]\n[fabric]\ntopology = "torus"\nchips = 64\n',),
    "catalog models": ('[models]\nsort = "colour"\n',),
    "catalog links": ('model = "llama-3.1-8b"\n',),
    "catalog servers": ('model = "llama-3.1-8b"\n',),
    "catalog prices": ('[offers]\nchip = "h9000"\n',),
    "catalog api-prices": ('[search]\nas_of = "soon"\n',),
    "catalog search": ("[search]\ntext = []\n",),
}
RIGHT = {
    "plan serve": f"{MODEL}[traffic]\nrate = 5\n",
    "plan train": f"{MODEL}{JOB}[fabric]\nchips = 64\n",
    "show memory": f"{MODEL}[fabric]\nchips = 48\n[layout]\ntp = 8\npp = 2\n",
    "show power": f"{MODEL}[fabric]\nchips = 64\n",
    "show training-techniques": f"{MODEL}[fabric]\nchips = 64\n",
    "show collective": '[collective]\ncollective = "all-reduce"\nsize = "1 MB"\n[fabric]\nchips = 64\n',
    "catalog links": "",
}


def written(folder: Path, verb: str, text: str) -> Path:
    path = folder / "question.toml"
    path.write_text(f'version = 1\nask = "{verb}"\n{text}', encoding="utf-8")
    return path


def test_there_is_a_wrong_file_for_every_verb_that_a_file_may_ask() -> None:
    assert set(WRONG) == {verb.name for verb in VERBS if verb.by_file}


@pytest.mark.parametrize(("verb", "text"), [(verb, text) for verb, texts in WRONG.items() for text in texts])
def test_what_asking_refuses_is_not_right(tmp_path: Path, shelf: Catalog, verb: str, text: str) -> None:
    path = written(tmp_path, verb, text)
    with pytest.raises(DatahallError):
        ask(verb, document=document.read(path), catalog=shelf)
    answer = check(str(path), catalog=shelf)
    assert answer.verdict == "no"
    (problems,) = answer.tables
    assert all(str(row[0]).startswith(str(path)) for row in problems.rows)


@pytest.mark.parametrize("verb", RIGHT)
def test_a_file_that_can_be_asked_is_right(tmp_path: Path, shelf: Catalog, verb: str) -> None:
    answer = check(str(written(tmp_path, verb, RIGHT[verb])), catalog=shelf)
    assert answer.verdict == "yes", answer.tables
    assert BY_NAME[verb].name in answer.headline
