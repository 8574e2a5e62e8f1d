from __future__ import annotations

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
    ],
)
def test_secrets_in_escaped_quotes_keys_of_accounts_and_addresses_are_hidden(text: str) -> None:
    assert "hunter2" not in redacted(text)
