"""`tenon doctor` and `tenon devices` on machines of every kind: broken plug-ins, no GPU, one GPU behind two providers.

Usage: doctor_test.py TOOL PLUGIN_FOLDER BROKEN_FOLDER GPU_FOLDER PROBED_FOLDER MODEL
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

failures = []


def claim(holds, what):
    if not holds:
        failures.append(what)


class Machine:
    """A folder of plug-ins and a config file. The tool runs without any other setting of this machine."""

    def __init__(self, tool, folder, plugins, config="", **environment):
        self.tool = tool
        self.folder = pathlib.Path(folder)
        path = self.folder / "tenon.toml"
        path.write_text(config)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "XDG_"))}
        self.environment = {**kept, "HOME": str(self.folder), "TENON_PLUGIN_PATH": ":".join(map(str, plugins)),
                            "TENON_CONFIG": str(path), **environment}

    def process(self, *arguments):
        return subprocess.run([self.tool, *arguments], capture_output=True, text=True, timeout=60, env=self.environment)

    def run(self, *arguments, code=None):
        done = self.process(*arguments)
        if code is not None:
            claim(done.returncode == code, f"{arguments}: exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        claim("terminate called" not in done.stderr, f"{arguments}: {done.stderr}")
        return done.stdout

    def refused(self, *arguments):
        """The output and then the errors of a run that must fail."""
        done = self.process(*arguments)
        claim(done.returncode == 1, f"{arguments}: exit code {done.returncode}, not 1: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def doctor(self, code=None):
        return json.loads(self.run("doctor", "--json", code=code)), self.run("doctor", code=code)


# provider: (stage, code, sentence, remedy), the last two as regular expressions.
EXPECTED = {
    "no_note": ("note", "invalid argument", r"not a Tenon provider: it holds no note", r"write EP_PLUGIN_NOTE"),
    "wrong_version": ("note", "version", r"built for ABI 0\.99, this host speaks 0\.\d+", r"Build the provider against this Tenon"),
    "other_kind": ("note", "unsupported", r"it is a plug-in of unknown kind", r"Use a newer Tenon"),
    "other_name": ("note", "invalid argument", r"its note names the provider 'sound'", r"Rename the file"),
    "other_sanitizer": ("note", "unsupported", r"built with the memory sanitizer", r"Build the provider without it"),
    "missing_symbol": ("loaded", "not found", r"does not export the function ep_plugin_query_v0", r"EP_EXPORT"),
    "missing_library": ("loaded", "not found",
                        r"the dynamic linker refused it: libtenon_test_absent\.so: cannot open shared object file: No such file",
                        r"Install the library libtenon_test_absent\.so, or add its folder to LD_LIBRARY_PATH"),
    "throws": ("negotiated", "internal", r"threw a C\+\+ exception out of ep_plugin_query_v0: the query went wrong", r"Report it"),
    "refuses": ("negotiated", "version", r"this host is too old for me", r"Use a newer host"),
    "short_struct": ("negotiated", "invalid argument", r"lacks the required function 'device_count'", r"Report it"),
    "missing_slot": ("negotiated", "invalid argument", r"lacks the required function 'device_info'", r"Report it"),
    "text": ("note", "invalid argument", r"not a shared library of this machine: it does not begin as an ELF file does", r"built for this machine"),
    "foreign": ("note", "unsupported|invalid argument", r"machine|processor|architecture", r"built for this machine"),
    "cut": ("note", "invalid argument", r"cut short|ends|not a shared library|damaged", r"."),
    "halved": ("note", "invalid argument", r"the file is cut short: a segment ends at byte \d+, the file has \d+\.", r"Copy the provider again"),
    "writable": ("trusted", "invalid argument", r"the file '.*libtenon_writable\.so' can be written by anyone \(mode 0666\)", r"chmod o-w"),
    "dangling": ("trusted", "not found", r"cannot be resolved: No such file or directory", r"."),
    "Bad-Name": ("found", "invalid argument", r"'Bad-Name' is not a provider's name", r"Rename the file"),
    "gpu_a": ("enumerated", "not found", r"libgpudriver\.so\.2 was not found; versions 2\.1 to 2\.6 would do", r"whether the card is plugged in"),
    "gpu_b": ("enumerated", "not found", r"it works, but found no device", r""),
}


def break_plugins(broken, gpus, folder):
    folder.mkdir()
    for source in sorted(broken.glob("*.so")) + sorted(gpus.glob("*.so")):
        shutil.copy(source, folder)
    sound = (broken / "libtenon_sound.so").read_bytes()
    (folder / "libtenon_text.so").write_text("#!/bin/sh\necho I am no library\n")
    foreign = bytearray(sound)
    foreign[18:20] = (243 if sound[18:20] != b"\xf3\0" else 62).to_bytes(2, "little")  # e_machine: RISC-V
    (folder / "libtenon_foreign.so").write_bytes(foreign)
    (folder / "libtenon_cut.so").write_bytes(sound[:200])
    (folder / "libtenon_halved.so").write_bytes(sound[:len(sound) // 2])
    (folder / "libtenon_writable.so").write_bytes(sound)
    os.chmod(folder / "libtenon_writable.so", 0o666)
    (folder / "libtenon_dangling.so").symlink_to("nowhere.so")
    (folder / "libtenon_Bad-Name.so").write_bytes(sound)


def test_broken_plugins(tool, plugins, broken, gpus, folder):
    break_plugins(broken, gpus, folder / "plugins")
    config = '[provider.gpu_a]\ndriver = "missing"\n[provider.gpu_b]\ndevices = "0"\n'
    machine = Machine(tool, folder, [folder / "plugins", plugins], config)
    report, text = machine.doctor()
    found = {c["provider"]: c for c in report["candidates"] if c["path"].startswith(str(folder))}
    for provider, (stage, code, sentence, remedy) in EXPECTED.items():
        one = found.get(provider)
        if one is None:
            claim(False, f"{provider}: the doctor does not mention it")
            continue
        claim(one["stage"] == stage and re.fullmatch(code, one["code"]), f"{provider}: {one['stage']}, {one['code']}")
        claim(re.search(sentence, one["sentence"]), f"{provider}: {one['sentence']}")
        claim(re.search(remedy, one["remedy"]) if remedy else True, f"{provider}: what to do: {one['remedy']}")
        for line in one["sentence"].split("\n"):
            claim(line in text, f"{provider}: the text does not say: {line}")
        claim(not one["remedy"] or "What to do: " + one["remedy"].split("\n")[0] in text, f"{provider}: the text lacks its remedy")
    sentences = [found[p]["sentence"] for p in EXPECTED if p in found]
    claim(len(set(sentences)) == len(sentences), "each has words of its own")
    claim(found["sound"]["stage"] in ("usable", "chosen") and found["sound"]["code"] == "ok", f"the sound one: {found['sound']}")
    claim(report["default_device"], "a default device is found all the same: " + report["default_device_error"])
    claim(len(found) == len(EXPECTED) + 2, f"{len(found)} candidates in the folder")


def test_settings(tool, plugins, folder):
    machine = Machine(tool, folder, [plugins], 'threads = "1"\nlog = "error"\n', TENON_LOG="warning", TENON_DEVICE="cpu",
                      TENON_DEVISE="cpu")
    report, text = machine.doctor(code=0)
    rows = {row["key"]: row for row in report["settings"]}
    claim((rows["device"]["value"], rows["device"]["level"], rows["device"]["where"]) == ("cpu", "environment", "TENON_DEVICE"), f"{rows['device']}")
    claim((rows["log"]["value"], rows["log"]["level"]) == ("warning", "environment"), f"{rows['log']}")
    claim((rows["threads"]["value"], rows["threads"]["level"], rows["threads"]["where"]) ==
          ("1", "config file", str(folder / "tenon.toml")), f"{rows['threads']}")
    claim(rows["vm"]["level"] == "default", f"{rows['vm']}")
    claim(any("TENON_DEVISE is unknown; did you mean TENON_DEVICE?" in w for w in report["warnings"]), f"{report['warnings']}")
    claim("Default device: cpu:0, by the environment variable TENON_DEVICE" in text, text)
    machine = Machine(tool, folder, [plugins], 'vm = "sometimes"\n')
    report, text = machine.doctor(code=1)
    claim("the value 'sometimes' of the setting 'vm' in" in report["settings_error"], report["settings_error"])
    claim("error: the value 'sometimes'" in text, text)

    for variable, value in (("TENON_PLUGIN_PATH", "relative"), ("TENON_THREADS", "abc")):
        done = Machine(tool, folder, [plugins], **{variable: value}).refused("devices")
        claim(f"\ntenon: the value '{value}' of the environment variable {variable} is invalid" in done and "cpu:0 " in done and
              "`tenon doctor` says more." in done, f"{variable}={value}: {done}")
    if os.path.exists(os.path.join(plugins, "libtenon_vulkan.so")):
        done = Machine(tool, folder, [plugins], '[provider.vulkan]\npacks = "maybe"\n').refused("devices")
        claim("cpu:0 " in done and "\ntenon: The setting packs of provider vulkan is 'maybe'; it may be 'on' or 'off'." in done, done)
    report, text = Machine(tool, folder, [plugins], TENON_DEVICE=" CPU ").doctor(code=1)
    claim("there are: " in report["default_device_error"] and "Did you mean cpu? Provider names are lower case" in text, text)
    report, text = Machine(tool, folder, [plugins], TENON_DEVICE="nulll").doctor(code=1)
    claim("What to do: Did you mean null?\n" in text and "Copy " not in text, text)
    report, text = Machine(tool, folder, [plugins], TENON_PROVIDERS="cpv").doctor(code=1)
    claim("What to do: Did you mean cpu? Correct the environment variable TENON_PROVIDERS, or remove it." in text, text)


# provider: the behaviour of the child process that probes it.
PROBED = {
    "traps": r"died of signal 5 \(SIGTRAP\)\.",
    "sleeps": r"did not end within 1 s\.",
    "exits": r"ended without an answer\. It printed: the driver wants another kernel",
    "exits_3": r"ended with exit status 3\.",
    "babbles": r"answered with \d+ bytes that are not an answer\.",
}


def test_probed(tool, plugins, probed, model, folder):
    """Providers that crash or hang while their devices are counted, together with the cpu."""
    def machine(provider, **environment):
        own = folder / provider
        own.mkdir(exist_ok=True)
        shutil.copy(probed / f"libtenon_{provider}.so", own)
        return Machine(tool, folder, [own, plugins], TENON_PROVIDERS=f"{provider},cpu", TENON_PROBE_SECONDS="1", **environment)

    for provider, deed in PROBED.items():
        reason = f"the provider '{provider}' was not loaded: the child process that probed it {deed}"
        for answer in ("fresh", "kept"):
            done = machine(provider).process("devices")
            claim(done.returncode == 0 and "cpu:0 " in done.stdout and f"{provider}:0" not in done.stdout, f"{provider}, {answer}: {done}")
            claim(re.search("tenon: " + reason, done.stderr), f"{provider}, {answer}: {done.stderr}")
        listed = json.loads(machine(provider).run("devices", "--json", code=0))
        claim(len(listed["quarantined"]) == 1 and re.search(reason, listed["quarantined"][0]), f"{provider}: {listed['quarantined']}")
        report, text = machine(provider).doctor(code=0)
        one = [c for c in report["candidates"] if c["provider"] == provider][0]
        claim(one["stage"] == "probed" and re.search(reason, one["sentence"]), f"{provider}: {one}")
        claim(one["sentence"] in text and one["remedy"] in text, f"{provider}: {text}")
        done = machine(provider).process("run", model, "--input", "image=random")
        claim(done.returncode == 0 and re.search(reason, done.stderr), f"{provider}: run: {done.returncode} {done.stderr}")
        done = machine(provider).process("run", model, "--input", "image=random", "--device", "cpu")
        claim(done.returncode == 0 and done.stderr == "", f"{provider}: run on the cpu: {done.returncode} {done.stderr}")
        done = machine(provider).refused("run", model, "--input", "image=random", "--device", provider)
        claim(re.search(reason, done) and "cpu:0" in done, f"{provider}: run on it: {done}")
    claim(machine("traps_unasked").process("devices").returncode == -5, "the one that does not ask for it ends the tool")
    done = machine("traps_unasked").process("devices", "--probe")
    claim(done.returncode == 0 and "cpu:0 " in done.stdout and "'traps_unasked' was not loaded" in done.stderr, f"--probe: {done}")
    report = json.loads(machine("traps_unasked").run("doctor", "--probe", "--json", code=0))
    claim([c["stage"] for c in report["candidates"] if c["provider"] == "traps_unasked"] == ["probed"], "doctor --probe")
    done = machine("counted").process("devices", "--json", "--probe")
    claim(len(json.loads(done.stdout)["devices"]) == 2, f"--probe leaves a sound provider in: {done}")


def card(provider, **keys):
    return f"[provider.{provider}]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items())


def test_gpus(tool, plugins, gpus, folder):
    def machine(config, providers="gpu_a,gpu_b,cpu", **environment):
        return Machine(tool, folder, [gpus, plugins], config, TENON_PROVIDERS=providers, **environment)

    def findings(config, **more):
        report, text = machine(config, **more).doctor()
        for finding in report["findings"]:
            claim(all(line.strip() in text for line in finding["sentence"].split("\n")), f"the text lacks {finding}")
            claim(not finding["remedy"] or "What to do: " + finding["remedy"] in text, f"the text lacks the remedy of {finding}")
        return report, [f["sentence"] for f in report["findings"]], text

    # No card at all, although both providers are installed.
    report, said, text = findings(card("gpu_a", devices=0) + card("gpu_b", driver="missing"))
    claim(len(said) == 1 and said[0].startswith("no GPU can be used\n  gpu_a: it works, but found no device.\n  gpu_b: the driver's library"), f"{said}")
    claim(report["default_device"] == "cpu:0", f"without a card the CPU is the default: {report['default_device']}")
    report, said, text = findings("", providers="cpu")
    claim(said == ["no GPU can be used: no provider found one."], f"{said}")

    # A card that is unplugged, or whose driver is too old.
    report, said, text = findings(card("gpu_a", driver="old") + card("gpu_b", unusable="it overheated.", name="Hot card"))
    claim("gpu_a: the driver is of version 1.9; versions 2.1 to 2.6 would do." in said[0] and
          "gpu_b:0 (Hot card): it overheated." in said[0], f"{said}")
    claim("What to do: Use another card. (gpu_b:0)" in text, text)
    done = machine(card("gpu_b", unusable="it overheated.")).run("devices")
    claim("not usable: it overheated." in done, done)

    # Only software devices: they are listed, but never the default, not even without a CPU device.
    report, said, text = findings(card("gpu_a", **{"class": "software"}, name="Emulated card") + card("gpu_b", devices=0))
    claim(report["default_device"] == "cpu:0" and "used only where it is named: gpu_a:0 (Emulated card)" in said[0], f"{said}")
    claim(any("only where it is named" in line and line.lstrip().startswith("gpu_a:0") for line in text.splitlines()), text)
    report, said, text = findings(card("gpu_a", **{"class": "software"}), providers="gpu_a")
    claim(report["default_device"] == "" and "a software device is used only where it is named" in text, text)
    claim("set TENON_DEVICE to its name" in text and "TENON_DEVICE=gpu_a:0" not in text, text)
    report, said, text = findings(card("gpu_a", **{"class": "software"}), providers="gpu_a", TENON_DEVICE="gpu_a")
    claim(report["default_device"] == "gpu_a:0", "named, it is taken")

    # One card through two providers, by UUID, by PCI address; two cards; the order of providers decides.
    twice = card("gpu_a", uuid="a1", name="Fine card") + card("gpu_b", uuid="a1", name="Fine card")
    report, said, text = findings(twice)
    claim(len(said) == 1 and said[0] == f"gpu_a:0 and gpu_b:0 are both Fine card (UUID {'a1' * 16}): one device, seen through 2 providers.", f"{said}")
    claim(report["default_device"] == "gpu_a:0", report["default_device"])
    rows = machine(twice).run("devices").splitlines()
    claim(sum("Fine card" in row for row in rows) == 1 and any(re.match(r"  or gpu_b:0 .*the same hardware", row) for row in rows), f"{rows}")
    listed = {d["device"]: d for d in json.loads(machine(twice).run("devices", "--json"))["devices"]}
    claim(listed["gpu_b:0"]["same_as"] == "gpu_a:0" and listed["gpu_a:0"]["uuid"] == "a1" * 16, f"{listed}")
    claim(machine(twice, providers="gpu_b,gpu_a,cpu").doctor()[0]["default_device"] == "gpu_b:0", "the order of providers decides")
    unusable = card("gpu_a", uuid="a1", unusable="no.") + card("gpu_b", uuid="a1")
    claim(machine(unusable).doctor()[0]["default_device"] == "gpu_b:0", "where the first cannot use it, the second is taken")
    claim(machine(unusable, TENON_DEVICE="uuid=" + "a1" * 16).doctor()[0]["default_device"] == "gpu_b:0", "by UUID too")
    report, said, text = findings(card("gpu_a", bus="1b", devices=2) + card("gpu_b", bus="1c", uuid="77"))
    claim(len(said) == 1 and said[0].startswith("gpu_a:1 and gpu_b:0 are both a pretended card (PCI address 0000:1c:00.0)"), f"{said}")
    report, said, text = findings(card("gpu_a", uuid="a1", bus="1b") + card("gpu_b", uuid="b2", bus="2b"))
    claim(said == [] and len([d for d in report["devices"] if d["same_as"]]) == 0, f"two cards are two: {said}")


def main():
    tool, plugins, broken, gpus, probed, model = sys.argv[1], *map(pathlib.Path, sys.argv[2:6]), sys.argv[6]
    os.umask(0o022)
    for test in (lambda f: test_broken_plugins(tool, plugins, broken, gpus, f), lambda f: test_settings(tool, plugins, f),
                 lambda f: test_gpus(tool, plugins, gpus, f), lambda f: test_probed(tool, plugins, probed, model, f)):
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
