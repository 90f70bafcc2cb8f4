"""The reports of `tenon doctor` and `tenon devices` about one provider, for the doctor_test.py of each provider."""
import json
import os
import subprocess


class Doctor:
    """Runs the tool with `provider` and the cpu. `failures` collects what is wrong, one sentence each."""

    def __init__(self, tool, providers, provider):
        self.tool, self.providers, self.provider = tool, providers, provider
        self.failures = []

    def run(self, *arguments, **variables):
        environment = {**os.environ, "TENON_PLUGIN_PATH": self.providers, "TENON_PROVIDERS": f"{self.provider},cpu", **variables}
        return subprocess.run([self.tool, *arguments], capture_output=True, text=True, env=environment, timeout=120)

    def report(self, what, default="cpu:0", **variables):
        """The report as JSON. The default device must be `default`."""
        report = json.loads(self.run("doctor", "--json", **variables).stdout)
        if report["default_device"] != default:
            self.failures.append(f"{what}: the default device is {report['default_device']}, not {default}")
        return report

    def claim(self, what, *words, **variables):
        """The report about the provider contains all words. Returns its candidate."""
        report = self.report(what, **variables)
        found = [one for one in report["candidates"] if one["provider"] == self.provider]
        text = json.dumps([found, [one for one in report["devices"] if one["provider"] == self.provider]])
        self.failures.extend(f"{what}: '{word}' is missing in: {text}" for word in words if word not in text)
        return found[0]

    def refused(self, what, *words, **variables):
        """The provider is refused with one sentence, one remedy and all words, and the cpu still works."""
        found = self.claim(what, *words, **variables)
        for field in ("sentence", "remedy"):
            first = found[field].split("\n  while ")[0]  # the loader adds its context
            if not first or "\n" in first:
                self.failures.append(f"{what}: the {field} is '{found[field]}'")
        asked = self.run("devices", **variables)
        if "cpu:0" not in asked.stdout:
            self.failures.append(f"{what}: the cpu should still be there: {asked.stdout}{asked.stderr}")

    def software_device_can_be_named(self):
        """A software device is never the default device, unless it is named."""
        self.claim("this machine")
        first = f"{self.provider}:0"
        rows = [line.split() for line in self.run("devices").stdout.splitlines() if line.startswith(first + " ")]
        if not rows or rows[0][1] != "software":
            return
        named = self.run("devices", TENON_DEVICE=first)
        if named.returncode or not any(first in line and "default" in line for line in named.stdout.splitlines()):
            self.failures.append(f"a software device can be named: {named.stdout}{named.stderr}")

    def end(self):
        """Prints the failures. Returns the exit status."""
        for failure in self.failures:
            print(failure)
        print(f"{len(self.failures)} things wrong")
        return 1 if self.failures else 0
