"""Texts lose the secrets that the process has learned, in each form in which a library may quote them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from evenflow.state.known_secrets import learn, redacted

ODD = "q8/Zw\"x'é k+7\\"


@pytest.fixture
def odd():
    learn(ODD)
    return ODD


@pytest.mark.parametrize("quoted", [str, quote, quote_plus, lambda text: quote(text, safe=""), repr, json.dumps])
def test_a_secret_is_hidden_however_a_library_quotes_it(odd, quoted):
    assert redacted(f"at <{quoted(odd)}>") in ("at <***>", "at <'***'>", 'at <"***">')


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("user", ["", "a", "ab", "abc"])
def test_the_header_of_a_login_does_not_give_the_password_away(odd, encode, user):
    header = encode(f"{user}:{odd}".encode()).decode()
    clear = redacted(f"Authorization: Basic {header}")
    assert "***" in clear
    assert len(clear) < len(f"Authorization: Basic {header}") - 12


def test_the_password_in_a_secret_address_is_hidden_alone_too():
    learn("amqp://me:n0t%40told@host/queue")
    assert redacted("no user with n0t@told or n0t%40told") == "no user with *** or ***"


@pytest.mark.parametrize(
    "value",
    [
        "AccountName=shop;AccountKey=Zm9vYmFy;Protocol=https",
        "host=db password='Zm9vYmFy' user=me",
        "https://shop.blob/in?sv=1&sig=Zm9vYmFy",
        '{"user": "shop", "private_key": "Zm9vYmFy"}',
    ],
)
def test_the_key_in_a_secret_connection_string_is_hidden_alone_too(value):
    learn(value)
    assert redacted("refused: Zm9vYmFy") == "refused: ***"


def test_a_line_of_a_secret_key_is_hidden_without_the_others():
    learn("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----")
    assert redacted("can't parse MIIEvQIBADANBgkqhkiG") == "can't parse ***"


def test_a_short_secret_is_hidden_only_as_a_word():
    learn("zq")
    assert redacted("zq, 'zq' and lazqy") == "***, '***' and lazqy"


def test_the_password_of_any_address_is_hidden_but_not_a_placeholder():
    assert redacted("http://me:pw@host/a and s3://bucket/a:b@c") == "http://me:***@host/a and s3://bucket/a:b@c"
    placeholder = "postgresql://me:${secret:env:SHOP_PASSWORD}@host/a"
    assert redacted(placeholder) == placeholder
