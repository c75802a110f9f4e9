"""docs/quickstart.html in a real browser: its command and its config are two ways to the same config."""

import runpy
import shlex
from pathlib import Path

import pytest
from spacy.util import load_config, load_config_from_str, load_model_from_config
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli

SCRIPT = runpy.run_path(
    str(Path(__file__).parent.parent / "scripts" / "quickstart_blocks.py"), run_name="script"
)
PAGE = SCRIPT["PAGE"]


def test_the_page_has_the_blocks_of_today():
    text = PAGE.read_text(encoding="utf8")
    assert SCRIPT["page"](text) == text, "run python scripts/quickstart_blocks.py"


@pytest.fixture
def page(browser):
    browser.get(PAGE.as_uri())
    return browser


def choose(page, components, optimize="efficiency", **fields):
    for box in page.find_elements("css selector", "#components input"):
        if box.is_selected() != (box.get_attribute("value") in components):
            box.click()
    page.find_element("css selector", f"[name=optimize][value={optimize}]").click()
    for name, value in fields.items():
        field = page.find_element("id", name)
        field.clear()
        field.send_keys(value)


def text(page, name):
    return page.find_element("id", name).get_attribute("textContent")


@pytest.mark.parametrize(
    "choices",
    [
        {"components": ["ner"]},
        {"components": []},
        {"components": list(SCRIPT["COMPONENTS"])},
        {"components": ["tagger", "textcat"], "optimize": "accuracy", "lang": "xx", "weights": "en_base_v2"},
        {"components": ["ner", "spancat"], "optimize": "accuracy", "vectors": "my vectors"},
        {"components": ["ner"], "vectors": "unread"},
    ],
    ids=lambda choices: "-".join(choices["components"][:2]) or "none",
)  # fmt: skip
def test_command_and_config_agree(page, tmp_path, monkeypatch, choices):
    monkeypatch.chdir(tmp_path)
    choose(page, **choices)
    command = shlex.split(text(page, "command"))
    assert command[:4] == ["python", "-m", "spacy", "elmo"]
    result = CliRunner().invoke(elmo_cli, command[4:])
    assert result.exit_code == 0, result.output + repr(result.exception)
    base = load_config_from_str(text(page, "config"))
    filled = load_model_from_config(base, auto_fill=True).config
    assert filled == load_config("config.cfg")
    assert filled["nlp"]["pipeline"] == ["elmo", *choices["components"]]
