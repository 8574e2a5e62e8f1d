from __future__ import annotations

import time

import pytest

from sluicegate.runlog.redacted import redacted


@pytest.mark.parametrize(
    "text",
    [
        r'{"sasl.jaas.config":"org.apache.kafka.ScramLoginModule required username=\"u\" password=\"hunter2\";"}',
        "fs.azure.account.key.acc.dfs.core.windows.net=hunter2==",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2;",
        "ssl.keystore.key=hunter2",
        "redis://me:p@hunter2@host:6379 refused",
        "ssl.keystore.key=-----BEGIN PRIVATE KEY----- MIIE hunter2 -----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nhunter2",
        "Map(kafka.sasl.password -> hunter2, user -> me)",
        "(kafka.sasl.password,hunter2),(user,me)",
        "psql --password hunter2 --host db",
        r'password="a\"hunter2"',
        'password="hunter2 and no end',
        "passphrase=hunter2",
        "privateKey: hunter2",
        "https://a.blob.core.windows.net/x?sv=1&sig=hunter2&se=2",
        "jdbc:oracle:thin:scott/hunter2@host:1521",
    ],
)
def test_secrets_in_quotes_keys_of_accounts_addresses_pairs_and_flags_are_hidden(text: str) -> None:
    assert "hunter2" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "batch 3 failed: KeyError: 'k'",
        "jdbc:oracle:thin:@host:1521 refused",
        "config=4, design=5, keys=6, monkey: 7",
        "ValueError: no number (12,5): 'a://b/c'",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["a" * 300_000, "secret" * 50_000, "x://" * 75_000, "--password " * 30_000, "(pwd," * 60_000]
)
def test_a_row_of_300_kb_in_an_error_takes_no_minutes(text: str) -> None:
    began = time.process_time()
    redacted(f"ValueError: invalid literal: '{text}'")
    assert time.process_time() - began < 2
