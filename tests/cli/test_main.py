import json
import re
import subprocess
import sys

import pytest

import sonant
from sonant.cli.main import VERBS, main, verb_module


def run(*words, **options):
    command = [sys.executable, "-m", "sonant.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_top_level_help_names_every_verb_and_each_has_help_of_its_own(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", shown, re.MULTILINE)
        with pytest.raises(SystemExit) as ended:
            main([verb, "--help"])
        assert ended.value.code == 0
        assert "usage: sonant " + verb in capsys.readouterr().out


def test_help_loads_nothing_that_takes_time():
    code = "import sys; from sonant.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"argparse", "numpy", "pyarrow", "yaml", "torch", "fsspec"} & set(done.stderr.split())


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_loads_neither_arrays_nor_tables(verb):
    code = f"import sys; from sonant.cli.main import verb_module; verb_module('{verb}').parser(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "torch", "soundfile", "datasets"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["prepair", "a", "b"], 2, "prepair: there is no such verb. Did you mean 'prepare'?"),
        (["prepare", "a", "b", "--skip-invlid"], 2, "'--skip-invlid' does not exist. Did you mean '--skip-invalid'?"),
        (["prepare", "a", "b", "--from", "kaldy"], 2, "'kaldy' is not known. Did you mean 'kaldi'?"),
        (["prepare", "a", "b", "--set", "limits.max_second=3"], 2, "Did you mean 'max_seconds'?"),
        (["prepare", "a", "b", "--set", "workers"], 2, "--set workers: this is not of the form key=value."),
        (["prepare", "a", "b", "--proportions", "0.8"], 2, "is not of the form name=value"),
        (["prepare", "a", "b", "--workers", "many"], 2, "invalid int value: 'many'"),
        (["prepare"], 2, "required: CORPUS"),
        (["inspect", "a", "b"], 2, "'b' is one argument too many."),
        (["inspect", "no-such-corpus"], 3, "this is not a corpus: manifest.parquet is missing. Prepare it first"),
        (["completion", "tcsh"], 2, "'tcsh' is not known. "),
    ],
)
def test_a_mistake_is_answered_with_what_to_do_and_a_code_for_scripts(words, code, said, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_words_print_the_help_and_are_an_error(capsys):
    assert main([]) == 2
    assert "Usage: sonant VERB" in capsys.readouterr().out


def test_the_version_is_the_package_s(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sonant {sonant.__version__}\n"


def test_a_pipe_that_was_closed_is_no_error():
    code = f"{sys.executable} -m sonant.cli.main completion bash | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_offers_its_public_names_and_no_others():
    assert {"prepare", "open_corpus"} <= set(dir(sonant))
    for name in dir(sonant):
        assert getattr(sonant, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'prepair'"):
        sonant.prepair  # noqa: B018


def test_formats_on_the_command_line_are_the_sources_that_there_are():
    from sonant.cli.prepare import FORMATS
    from sonant.corpus.sources.registry import SOURCES

    assert sorted(FORMATS) == sorted(SOURCES)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_options_may_stand_anywhere_among_sources_and_corpus(at):
    words = ["one", "two", "corpus"]
    read = verb_module("prepare").parser().read([*words[:at], "--skip-invalid", "--workers", "3", *words[at:]])
    assert (read.places, read.corpus, read.skip_invalid, read.workers) == (["one", "two"], "corpus", True, 3)


def test_every_option_of_prepare_reaches_the_configuration():
    from sonant.base.conversion import field_types
    from sonant.cli.prepare import _KEYS, parser
    from sonant.corpus.preparation.config import PrepareConfig

    for key in _KEYS.values():
        kind = PrepareConfig
        for name in key.split("."):
            assert name in field_types(kind), key
            kind = field_types(kind)[name]
    others = {"--help", "--config", "--set", "--json"}
    assert set(parser().option_names()) == {*_KEYS, *others}


def test_progress_is_silent_when_nobody_watches(tmp_path):
    from sonant.base.progress import Progress

    with open(tmp_path / "log", "w") as log:
        with Progress("decoding", total=3, stream=log) as bar:
            bar.advance(2)
        assert log.tell() == 0


@pytest.fixture
def one(tmp_path, voiced):
    """A table of one sound recording, and of one that is not there."""
    import soundfile

    soundfile.write(tmp_path / "a.wav", voiced(0.5, 8000), 8000)
    (tmp_path / "sound.csv").write_text("audio,text\na.wav,go on\n")
    (tmp_path / "faulty.csv").write_text("audio,text\na.wav,go on\nb.wav,so no\n")
    return tmp_path


def test_the_exit_code_says_what_kind_of_trouble_it_is(one, monkeypatch, capsys):
    monkeypatch.chdir(one)
    (one / "file").write_text("")
    assert main(["prepare", "sound.csv", "corpus"]) == 0
    assert main(["inspect", "corpus"]) == 0
    assert main(["prepare", "sound.csv"]) == 2
    assert main(["prepare", "faulty.csv", "other"]) == 3
    assert main(["prepare", "faulty.csv", "other", "--skip-invalid"]) == 0
    assert main(["prepare", "sound.csv", "file/corpus"]) == 4
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["prepare", "--engine", "ray", "sound.csv", "third"]) == 5
    assert "pip install 'sonant[ray]'" in capsys.readouterr().err


def test_a_defect_of_sonant_keeps_its_traceback_and_its_own_code(one):
    code = (
        "import sys; from sonant.corpus.preparation import run; run.write_corpus = None; "
        "from sonant.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["prepare", str(one / "sound.csv"), str(one / "corpus")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_json_is_all_that_stands_on_standard_output(one, capsys):
    assert main(["prepare", f"{one}/faulty.csv", f"{one}/corpus", "--skip-invalid", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["num_utterances"], found["num_rejected"], found["rejected"]) == (1, 1, {"missing-audio": 1})
    assert found["folder"] == str(one / "corpus")
    assert main(["inspect", f"{one}/corpus", "--json", "--html", f"{one}/page.html"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["utterances"] == 1


@pytest.mark.parametrize(
    ("yaml", "says"),
    [
        ("limitz: {max_seconds: 3}", r"config.yaml:1.*limitz.*Did you mean 'limits'\?"),
        ("workers: 2\nlimits:\n  max_second: 3", r"config.yaml:3.*max_second.*Did you mean 'max_seconds'\?"),
        ("severities: {silent-audo: off}", r"silent-audo.*Did you mean 'silent-audio'\?"),
        ("workers: many", r"config.yaml:1.*workers.*many"),
        ("splits: {by: speakr}", r"config.yaml:1.*speakr.*Did you mean 'speaker'\?"),
        ("engine: [", r"config.yaml:"),
    ],
)
def test_a_mistake_in_a_config_file_is_told_with_its_line(one, capsys, yaml, says):
    (one / "config.yaml").write_text(yaml)
    assert main(["prepare", f"{one}/sound.csv", f"{one}/corpus", "--config", f"{one}/config.yaml"]) == 2
    told = capsys.readouterr().err
    assert re.search(says, told), told
    assert not (one / "corpus").exists()


def test_a_value_that_is_set_wins_over_the_file(one):
    (one / "config.yaml").write_text("limits: {max_seconds: 0.4, min_seconds: 0.01}\nskip_invalid: true\n")
    words = ["prepare", f"{one}/sound.csv", f"{one}/corpus", "--config", f"{one}/config.yaml"]
    assert main(words[:3]) == 0
    assert main(words) == 3
    assert main([*words, "--set", "limits.max_seconds=2"]) == 0
    config = json.loads((one / "corpus" / "corpus.json").read_text())["config"]
    assert config == {"limits": {"max_seconds": 2.0, "min_seconds": 0.01}, "skip_invalid": True}
