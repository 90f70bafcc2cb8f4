"""Runs the tool for the tests of this folder, and collects their claims that do not hold."""

import os
import subprocess


class Tool:
    def __init__(self, *command, **environment):
        self.command, self.environment, self.failures = command, environment, []

    def run(self, *arguments, code=0, **environment):
        done = subprocess.run([*self.command, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **self.environment, **environment})
        self.claim(done.returncode == code,
                   f"tenon {' '.join(map(str, arguments))}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done

    def claim(self, holds, what):
        if not holds:
            self.failures.append(what)

    def verdict(self):
        for failure in self.failures:
            print(failure)
        return 1 if self.failures else 0
