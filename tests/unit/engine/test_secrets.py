"""Secrets: placeholders in a program, and values only where something connects."""

from __future__ import annotations

import pytest

from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.secrets import is_secret, revealed, revealed_url, secret


def test_a_value_comes_from_the_environment_or_a_file_without_its_last_line_break(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP_TOKEN", "t0ken")
    (tmp_path / "token").write_text("t0ken of a file\n")
    assert revealed(secret("env:SHOP_TOKEN")) == "t0ken"
    assert revealed(secret(f"file:{tmp_path / 'token'}")) == "t0ken of a file"
    options = {"a": f"<{secret('env:SHOP_TOKEN')}>", "b": [secret("env:SHOP_TOKEN"), 7], "c": None}
    assert revealed(options) == {"a": "<t0ken>", "b": ["t0ken", 7], "c": None}


def test_it_is_looked_up_each_time(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "t0ken-1")
    placeholder = secret("env:SHOP_TOKEN")
    assert revealed(placeholder) == "t0ken-1"
    monkeypatch.setenv("SHOP_TOKEN", "t0ken-2")
    assert revealed(placeholder) == "t0ken-2"


def test_in_an_address_it_is_percent_encoded_unless_it_is_the_whole_address(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "a@b/c:d")
    monkeypatch.setenv("SHOP_URL", "postgresql://me:a%40b@db/shop")
    assert revealed_url(f"postgresql://me:{secret('env:SHOP_PASSWORD')}@db/shop") == "postgresql://me:a%40b%2Fc%3Ad@db/shop"
    assert revealed_url(secret("env:SHOP_URL")) == "postgresql://me:a%40b@db/shop"
    assert is_secret(secret("env:SHOP_URL"))
    assert not is_secret(f"x{secret('env:SHOP_URL')}")


def test_an_error_that_quotes_a_secret_loses_it_once_it_was_looked_up(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "an/odd one")
    revealed(secret("env:SHOP_PASSWORD"))
    assert str(ConnectorError("refused: an/odd one, an%2Fodd%20one")) == "refused: ***, ***"


@pytest.mark.parametrize("where", ["env:SHOP_NOTHING", "file:/nowhere/at/all"])
def test_a_missing_secret_is_named(where, monkeypatch):
    monkeypatch.delenv("SHOP_NOTHING", raising=False)
    with pytest.raises(ConnectorError, match=f"the secret {where}.*every node"):
        revealed(secret(where))


@pytest.mark.parametrize("reference", ["", "PG_PASSWORD", "env:", "vault:x", "env:a}b", None, 5])
def test_another_reference_is_refused(reference):
    with pytest.raises(FlowError, match="expected env:NAME or file:PATH"):
        secret(reference)
