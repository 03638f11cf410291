"""Reading a question: one set of rules for flags, keywords, TOML and JSON."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.answers.borders import said_by_name

from datahall.answers.ask import ask, form_of, question_of
from datahall.answers.reply import answer_of
from datahall.answers.verbs import VERBS
from datahall.catalog import Catalog
from datahall.catalog.document import Document, parse
from datahall.errors import DatahallError, DocumentError, ScenarioError, UnknownNameError
from datahall.scenario.kinds import Raw, inline_table
from datahall.scenario.read import read_document, read_names
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.fleet import AnswerCache, Region, Router
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise

Names = Callable[..., Scenario]
Text = Callable[..., Scenario]
VERB = "simulate serve"


@pytest.fixture(scope="module")
def names(shelf: Catalog) -> Names:
    def read(verb: str = VERB, *, bare: bool = False, **given: Raw) -> Scenario:
        return read_names(form_of(verb), {"model": "llama-3.1-8b", **given}, shelf, bare=bare)

    return read


@pytest.fixture(scope="module")
def text(shelf: Catalog) -> Text:
    def read(content: str, **beside: Raw) -> Scenario:
        head = 'version = 1\nmodel = "llama-3.1-8b"\n'
        return read_document(form_of(VERB), parse(head + content, "s.toml"), shelf, beside)

    return read


def test_names_and_sections_mean_the_same(names: Names, text: Text) -> None:
    flags = names(
        chip="h200", tp=2, ttft="2 s", percentile=99, rate=5, traffic="rag", autoscale="1..4", seed=3
    )
    file = text(
        'seed = 3\n[[deployment]]\nchip = "h200"\ntp = 2\n[promise]\nttft = "2 s"\npercentile = "99 %"\n'
        '[traffic]\nrate = "5/s"\npreset = "rag"\n[router]\nautoscale = "1..4"\n'
    )
    assert flags.sections == file.sections
    assert flags.said == file.said


def test_a_section_that_was_not_given_has_its_defaults_and_tables_are_none(names: Names) -> None:
    scenario = names()
    assert scenario.one(Promise) == Promise()
    assert scenario.all(Deployment) == (Deployment(),)
    assert scenario.all(Failure) == scenario.all(Region) == ()
    assert scenario.all(AnswerCache) == ()


def test_none_is_as_if_it_had_not_been_said(names: Names) -> None:
    assert names(tp=None, ttft=None).said == names().said


def test_what_was_said_is_known_from_what_is_default(names: Names) -> None:
    scenario = names(tpot="50 ms")
    assert scenario.one(Promise) == Promise()
    assert scenario.given("tpot")
    assert not scenario.given("ttft")
    assert not scenario.given("no-such-input")
    assert said_by_name(scenario) == {"model": "llama-3.1-8b", "tpot": "50ms"}


def test_a_number_without_a_unit_is_si_in_python_only(names: Names) -> None:
    assert names(bare=True, ttft=0.5).one(Promise).ttft_s == 0.5
    with pytest.raises(ScenarioError, match=r"0\.5 has no unit"):
        names(ttft=0.5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cold_start": "5 s"}, "cold_start does nothing here: it needs autoscale"),
        ({"num_draft": 3}, "num_draft does nothing here: it needs draft"),
        ({"adapter_rank": 3}, "adapter_rank does nothing here: it needs adapters"),
        ({"sort_trace": True}, "sort_trace does nothing here: it needs trace"),
        ({"rate": 5, "users": 5}, "rate and users do not go together"),
        (
            {"replicas": 2, "disaggregated": "prefill=1,decode=1"},
            "disaggregated and replicas do not go together",
        ),
        (
            {"role": "decode", "disaggregated": "prefill=1,decode=1"},
            "role and disaggregated do not go together",
        ),
        ({"cache": {"process_ttl": "5 s"}}, "process_ttl of cache does nothing here: it needs process"),
        (
            {"cache": "semantic_lookup=5ms,process=5"},
            "semantic_lookup of cache does nothing here: it needs semantic",
        ),
    ],
)
def test_one_rule_refuses_what_says_nothing_and_pairs_of_which_one_would_win(
    names: Names, given: dict[str, Raw], said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        names(**given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"cold_start": "5 s", "autoscale": "1..2"},
        {"num_draft": 3, "draft": "ngram"},
        {"adapter_rank": 3, "adapters": 5},
        {"rate": 5},
        {"users": 5},
        {"disaggregated": "prefill=1,decode=1"},
        {"cache": {"process_ttl": "5 s", "process": 5}},
    ],
)
def test_what_goes_together_is_taken(names: Names, given: dict[str, Raw]) -> None:
    assert set(given) - {"cache"} <= set(said_by_name(names(**given)))


def test_an_unknown_name_gets_the_nearest(names: Names) -> None:
    with pytest.raises(ScenarioError) as caught:
        names(precison="fp8")
    assert "did you mean precision?" in str(caught.value)


def test_all_problems_of_flags_come_at_once_each_with_its_input(names: Names) -> None:
    with pytest.raises(DocumentError) as caught:
        names(chip="h100-sx", tp=0, ttft=5, num_draft=3, traffic="shargpt", failure="replicas=0,strat=5s")
    lines = [line.strip() for line in caught.value.lines()[1:]]
    for place in ("chip: ", "tp: ", "ttft: ", "num_draft: ", "traffic: ", "failure: "):
        assert sum(line.startswith(place) for line in lines) == 1, (place, lines)
    assert len(lines) == 6
    assert any('unknown key "strat"; did you mean start?' in line for line in lines)


def test_what_is_required_is_asked_for_with_an_example(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="rate is missing") as caught:
        read_names(form_of("show techniques"), {"model": "llama-3.1-8b"}, shelf)
    assert caught.value.field == "rate"
    assert "rate=80" in str(caught.value)
    with pytest.raises(ScenarioError, match="model is missing"):
        read_names(form_of("show techniques"), {"rate": 5}, shelf)


REQUIRED = [(verb.name, name) for verb in VERBS if verb.by_file for name in form_of(verb.name).required]


@pytest.mark.parametrize(("verb", "name"), REQUIRED, ids=map(" ".join, REQUIRED))
def test_the_example_of_what_is_missing_can_be_read(verb: str, name: str, shelf: Catalog) -> None:
    form = form_of(verb)
    samples = {one: form.fields[one].kind.sample for one in form.required}
    with pytest.raises(ScenarioError, match=f"{name} is missing") as caught:
        read_names(form, {one: sample for one, sample in samples.items() if one != name}, shelf)
    assert samples[name] in str(caught.value)
    assert read_names(form, samples, shelf).given(name)


@pytest.mark.parametrize(
    ("raw", "table"),
    [
        ("replicas=0-3,7,start=2ms", {"replicas": "0-3,7", "start": "2ms"}),
        ('{name = "eu", to = {us = "40 ms"}}', {"name": "eu", "to": {"us": "40 ms"}}),
        ({"name": "eu"}, {"name": "eu"}),
        (" process = 5 ", {"process": "5"}),
    ],
)
def test_tables_stand_in_one_line(raw: Raw, table: dict[str, Raw]) -> None:
    assert inline_table(raw) == table


@pytest.mark.parametrize("raw", ["nothing", "{a = }", 5, ["a=1"], "{a = 1", None])
def test_what_is_no_table_is_refused(raw: Raw) -> None:
    with pytest.raises(ScenarioError):
        inline_table(raw)


def test_tables_of_flags_are_those_of_a_file(names: Names, text: Text) -> None:
    flags = names(
        rate=5,
        failure=["replicas=0,start=10s,duration=20s", {"region": "eu", "drain": True}],
        region=['{name="eu", to={us="40 ms"}}', "name=us"],
        cache="process=200,semantic=20%",
    )
    file = text(
        '[traffic]\nrate = 5\n[[failure]]\nreplicas = 0\nstart = "10 s"\nduration = "20 s"\n'
        '[[failure]]\nregion = "eu"\ndrain = true\n[[region]]\nname = "eu"\nto = { us = "40 ms" }\n'
        '[[region]]\nname = "us"\n[cache]\nprocess = 200\nsemantic = "20 %"\n'
    )
    assert flags.sections == file.sections
    assert len(flags.all(Failure)) == 2
    assert flags.one(AnswerCache).process == 200


def test_what_is_said_beside_a_file_stands_in_its_place_and_that_is_said(text: Text) -> None:
    scenario = text(
        '[traffic]\nrate = 5\n[promise]\nttft = "2 s"\n', rate=8, tpot="30 ms", failure="replicas=0"
    )
    assert scenario.one(Traffic).rate_per_s == 8
    assert scenario.one(Promise) == Promise(ttft_s=2.0, tpot_s=0.03)
    assert len(scenario.all(Failure)) == 1
    assert scenario.replaced == ("rate 5",)
    assert text("[traffic]\nrate = 5\n").replaced == ()


def test_beside_a_file_the_same_rules_hold(text: Text) -> None:
    with pytest.raises(DocumentError, match="do not go together"):
        text("[traffic]\nrate = 5\n", users=5)
    with pytest.raises(DocumentError, match="2 tables"):
        text("[[traffic]]\nrate = 5\n[[traffic]]\nrate = 6\n", rate=7)


def test_several_tables_of_a_kind_are_in_order(text: Text) -> None:
    scenario = text('[[deployment]]\nchip = "h200"\n[[deployment]]\nchip = "l40s"\n[[traffic]]\nrate = 1\n')
    assert [part.chip for part in scenario.all(Deployment)] == ["h200-sxm", "l40s"]
    assert scenario.one(Router) == Router()


def test_places_are_lines_of_the_file(text: Text) -> None:
    scenario = text(
        '[[deployment]]\nchip = "h200"\n[[deployment]]\nchip = "l40s"\ntp = 2\n[cache]\nprocess = 5\n'
    )
    assert scenario.where("tp", 1) == "s.toml:7"
    assert scenario.where("pp", 1) == "s.toml:5"  # not said: its table
    assert scenario.where("cache") == "s.toml:8"
    assert scenario.where("whatever", 0, "deployment") == "s.toml:3"
    assert scenario.where("ttft") == "s.toml"


def test_borders_spell_an_input_their_own_way() -> None:
    form = form_of(VERB)
    assert form.flag("in_region") == "--in-region"
    assert form.flag("nic", "400 Gb/s") == '--nic "400 Gb/s"'
    assert form.key("in_region") == "deployment.region"
    assert form.key("nic", "400 Gb/s") == 'fabric.nic = "400 Gb/s"'
    assert form.key("tp", "4") == "deployment.tp = 4"
    assert form.key("traffic", "rag") == 'traffic.preset = "rag"'
    assert form.flag("model", "llama-3.1-8b") == "llama-3.1-8b"
    assert form.key("failure") == "[[failure]]"
    assert form.key("cache") == "[cache]"


QUESTIONS: list[tuple[str, dict[str, Raw]]] = [
    ("simulate serve", {"model": "llama-3.1-8b", "rate": 5, "requests": 100, "isl": "shape=uniform,low=10,high=90",
                        "ttft": "700 ms", "percentile": "P99", "failure": "replicas=0,start=1s,duration=2s",
                        "hourly": [1] * 23 + [2], "memory_fraction": "85 %", "prefix_caching": False}),
    ("simulate serve", {"model": "llama-3.1-8b", "users": "1k", "think": "30 s", "requests": 2000,
                        "region": ['{name="eu",to={us="40 ms"}}', "name=us"], "in_region": "eu",
                        "from_region": "eu=60%,us=40%", "cache": "process=50,rate=4"}),
    ("show fit", {"model": "deepseek-v3", "chip": "h200", "precision": "FP8", "tp": 8, "context": "16k"}),
    ("show techniques", {"model": "llama-3.1-8b", "rate": 2, "cached": "33.3 %", "tpot": "33.3 ms", "chip": "l40s"}),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "given"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_a_question_that_was_read_reads_back_as_the_same(
    shelf: Catalog, verb: str, given: dict[str, Raw]
) -> None:
    scenario = read_names(form_of(verb), given, shelf)
    found = answer_of(ask(verb, given, catalog=shelf))
    assert found.question == question_of(scenario)
    content = {key: value for key, value in found.question.items() if key != "ask"}
    again = read_document(form_of(verb), Document("", content, {}), shelf)  # type: ignore[arg-type]
    assert again.sections == scenario.sections
    assert again.said == scenario.said


def test_a_problem_ends_with_the_code_of_bad_input(names: Names) -> None:
    with pytest.raises(DatahallError) as caught:
        names(tp=0)
    assert caught.value.exit_code == 2
    assert caught.value.field == "tp"


def test_a_value_decides_what_an_input_cannot_stand_beside(shelf: Catalog) -> None:
    """Pools that all name their chips leave nothing for a chip of the deployment to say."""
    form = form_of("simulate serve")
    said = {"model": "llama-3.1-8b", "rate": 1, "chip": "h100-sxm"}
    with pytest.raises(ScenarioError, match="disaggregated and chip do not go together"):
        read_names(form, {**said, "disaggregated": "prefill=1xh200,decode=2xh200"}, shelf)
    kept = read_names(form, {**said, "disaggregated": "prefill=1xh200,decode=2"}, shelf)
    assert kept.given("chip")
    with pytest.raises(UnknownNameError, match="h2000"):
        read_names(
            form, {"model": "llama-3.1-8b", "rate": 1, "disaggregated": "prefill=1xh2000,decode=2"}, shelf
        )


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS if verb.by_file])
def test_a_verb_that_looks_at_one_table_refuses_two(verb: str, shelf: Catalog) -> None:
    """Of two tables none wins silently; where several mean something the verb says so in the table of verbs."""
    form = form_of(verb)
    for section in ("deployment", "traffic", "fabric", "promise"):
        if section not in form.sections:
            continue
        content = "version = 1\n" + 2 * f"[[{section}]]\n"
        with pytest.raises(DocumentError) as caught:
            read_document(form, parse(content + "nonsense = 1\n", "s.toml"), shelf)
        twice = any(f"2 tables of {section}" in problem.message for problem in caught.value.problems)
        assert twice == (verb != "simulate serve" or section in ("fabric", "promise"))


def test_a_day_of_a_file_needs_no_quotes(shelf: Catalog) -> None:
    form = form_of("catalog prices")
    plain, quoted = (
        read_document(form, parse(f"version = 1\n[purchase]\nas_of = {day}\n", "s.toml"), shelf)
        for day in ("2026-11-01", '"2026-11-01"')
    )
    assert plain.sections == quoted.sections


def test_an_error_says_to_python_what_it_prints() -> None:
    with pytest.raises(ScenarioError) as caught:
        ask("show fit", {"model": "llama-3.1-70b", "tp": 3})
    error = caught.value
    assert (error.field, error.where, error.hint) == ("tp", "tp", "nearest legal: tp=2 or tp=4")
    assert "tp=3" in error.message
    assert "⟦" not in error.message
    assert str(error).splitlines()[1:] == ["  --> tp", "  nearest legal: tp=2 or tp=4"]


MISSPELT = (
    ("[trafic]\nrate = 1\n", 's.toml:3: unknown section "trafic"; did you mean [traffic]?'),
    ("[[trafic]]\nrate = 1\n", 's.toml:3: unknown section "trafic"; did you mean [traffic]?'),
    ("[deploymnt]\ntp = 1\n", 's.toml:3: unknown section "deploymnt"; did you mean [deployment]?'),
    ("[regoin]\nname = 'eu'\n", 's.toml:3: unknown section "regoin"; did you mean [region]?'),
    ("[traffic]\npresett = 'rag'\n", 's.toml:4: unknown key "presett"; did you mean traffic.preset?'),
    ("[traffic]\nraet = 1\n", 's.toml:4: unknown key "raet"; did you mean traffic.rate?'),
    ("[cache]\nproces = 1\n", 's.toml:4: unknown key "proces"; did you mean process?'),
    ("sed = 1\n", 's.toml:3: unknown key "sed"; did you mean seed?'),
    ("tp = 1\n", 's.toml:3: unknown key "tp"; it stands in [deployment]'),
    ("[traffic]\ntp = 1\n", 's.toml:4: unknown key "tp"; it stands in [deployment]'),
    ("on = 'fat-tree'\n", 's.toml:3: unknown key "on"; it stands in [fabric] as topology'),
    ("[fabric]\non = 'fat-tree'\n", 's.toml:4: unknown key "on"; it stands in [fabric] as topology'),
    (
        "[router]\nin_region = 'eu'\n",
        's.toml:4: unknown key "in_region"; it stands in [deployment] as region',
    ),
)


@pytest.mark.parametrize(("text", "said"), MISSPELT, ids=[text.replace("\n", " ") for text, _ in MISSPELT])
def test_what_is_misspelt_in_a_file_is_told_what_was_meant(text: str, said: str, shelf: Catalog) -> None:
    form = form_of("simulate serve")
    with pytest.raises(DocumentError) as caught:
        read_document(form, parse(f'version = 1\nmodel = "llama-3.1-8b"\n{text}', "s.toml"), shelf)
    caught.value.spell = form.key
    assert said in [line.strip() for line in caught.value.lines()]


def test_a_table_that_a_flag_stands_in_place_of_is_said() -> None:
    file = parse(
        'version = 1\n[fabric]\ntopology = "fat-tree"\nchips = 16\n[[job]]\ncollective = "all-reduce"\n'
        '[[job]]\ncollective = "all-gather"\n[[failure]]\nnics = 5\n',
        "s.toml",
    )
    beside = {"failure": [{"switches": 0, "left": "50 %"}], "job": [{"collective": "reduce"}]}
    told = answer_of(ask("simulate fabric", beside, document=file)).notes
    assert any("in place of what s.toml says: 2 tables of job" in note for note in told)
    assert any("in place of what s.toml says: a table of failure" in note for note in told)
