# SPDX-License-Identifier: Apache-2.0
"""What a batch queue does with an exit code: by the words that weft-doctor has for AWS Batch, see docs/operating.md."""

import fnmatch
import json
import subprocess


class Policy:
    def __init__(self, doctor):
        emitted = subprocess.run([doctor, "--emit", "aws-batch"], check=True, capture_output=True).stdout
        strategy = json.loads(emitted)["retryStrategy"]
        self.attempts, self.rules = strategy["attempts"], strategy["evaluateOnExit"]

    def retries(self, code):
        """The first rule that fits decides. The job has ended by its code: of the host the queue knows nothing."""
        for rule in self.rules:
            fits = fnmatch.fnmatchcase(str(code), rule.get("onExitCode", "*"))
            if fits and "onStatusReason" not in rule:
                return rule["action"] == "RETRY"
        return True  # as AWS Batch does with a code that no rule has
