"""./dev refuses unknown arguments by name, shows the progress of builds and the errors in them, and reads no environment
variable named like a setting of the library.

Usage: dev_test.py SOURCE_ROOT CMAKE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def claim(holds, what):
    if not holds:
        raise AssertionError(what)


class Dev:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()

    def run(self, *arguments, code=0, folder=None, **environment):
        """Output and errors of ./dev, called in `folder`."""
        done = subprocess.run([str(self.root / "dev"), *arguments], cwd=folder or self.root, capture_output=True, text=True,
                              timeout=100, env={**os.environ, **environment})
        text = done.stdout + done.stderr
        claim(done.returncode == code, f"./dev {' '.join(arguments)}: exit status {done.returncode}, not {code}:\n{text}")
        return text


def unknown_arguments_are_refused_by_name(dev):
    for words in ("test --require-cudaa", "asan now", "tsan now", "fuzz --long", "soak many", "freeze --agian", "format --chek",
                  "quick --second"):
        command, argument = words.split()
        text = dev.run(command, argument, code=2)
        claim(argument in text and "== build" not in text, f"./dev {words}: {text}")
    claim("'soon' is not a number of seconds" in dev.run("fuzz", "soon", code=2), "a number is a number")
    claim("'soon' is not a number of minutes" in dev.run("test", "--minutes", "soon", code=2), "so are minutes")
    claim("'7' is one argument too many" in dev.run("fuzz", "5", "7", code=2), "and one of them will do")
    claim("'core' is not a file." in dev.run("lint", "core", code=2), "a folder is not a file")
    claim("there is no picture 'nothing.png'." in dev.run("demo", "--device", "cpu", "nothing.png", code=2), "a picture is a file")
    claim("'--device' is unknown; ./dev demo train takes --epochs" in dev.run("demo", "train", "--device", "cpu", code=2), "the device cannot be chosen there")
    for epochs in ("none", "0", "-3", "2.5", ""):
        claim(f"'{epochs}' is not a number of epochs" in dev.run("demo", "train", "--epochs", epochs, code=2), "epochs are counted")
    claim("'' is not a number of epochs" in dev.run("demo", "train", "--epochs", code=2), "and there are some")
    claim("it needs the folder to install into" in dev.run("install", code=2), "install needs a folder")
    claim("'-p' is unknown" in dev.run("install", "-p", code=2), "an option is not a folder")
    claim("it needs the path of a checkout" in dev.run("array-api", code=2), "the suite of the standard is given")
    claim("'/nowhere' has no array_api_tests" in dev.run("array-api", "/nowhere", code=2), "and is one")
    claim("'x' is not a number of seconds" in dev.run("quick", "--seconds", "x", code=2), "quick takes seconds")


def unknown_commands_get_the_nearest_one(dev):
    claim("there is no command 'tset'; did you mean test?" in dev.run("tset", code=2), "the nearest command is named")
    claim("there is no command 'frobnicate'.\nusage: " in dev.run("frobnicate", code=2), "where there is one")
    claim("there is no command 'tset'" in dev.run("help", "tset", code=2), "so it is in help")


def every_command_has_help(dev):
    listed = re.findall(r"^  ([a-z-]+) +\S", dev.run(), re.MULTILINE)
    claim(listed == re.findall(r"^cmd_([a-z-]+)\(\)", (dev.root / "dev").read_text(), re.MULTILINE), f"{listed}")
    claim(dev.run("help") == dev.run("--help") == dev.run(), "the list is the help")
    for command in listed:
        text = dev.run("help", command)
        claim(text.startswith(f"./dev {command}: ") and text.count("\n") == 1, text)
    claim(dev.run("test", "--help") == dev.run("help", "test"), "--help is help")


def the_number_of_jobs_is_checked(dev):
    for jobs in ("0", "two", "-1"):
        claim(f"JOBS is '{jobs}'" in dev.run(code=2, JOBS=jobs), jobs)


def the_instructions_are_checked(dev):
    for simd in ("avx3", "AVX2", "sse"):
        claim(f"SIMD is '{simd}'" in dev.run(code=2, SIMD=simd), simd)


def a_broken_compiler_cache_is_left_out(dev, cmake):
    """ccache cannot write below /proc, just as it cannot write below a read-only home."""
    with tempfile.TemporaryDirectory() as work:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CCACHE_", "XDG_"))}
        done = subprocess.run([cmake, "-G", "Ninja", "-S", str(dev.root), "-B", work, "-DTENON_BUILD_TESTS=OFF",
                               "-DTENON_BUILD_BENCHMARKS=OFF"], capture_output=True, text=True, env={**environment, "HOME": "/proc"})
        claim(done.returncode == 0, done.stdout + done.stderr)
        found = re.search(r"^TENON_CCACHE:FILEPATH=(.*)", (pathlib.Path(work) / "CMakeCache.txt").read_text(), re.MULTILINE)
        if found[1].endswith("NOTFOUND"):
            return
        claim("left out: the compiler cache: " in done.stdout, done.stdout)
        claim("ccache" not in (pathlib.Path(work) / "CMakeFiles" / "rules.ninja").read_text(), "no rule may use it then")


def a_build_shows_its_progress_and_its_errors(dev):
    sys.path.insert(0, str(dev.root / "tests"))
    from build import Progress
    progress = Progress({"a.o": 60.0, "b.o": 120.0}, jobs=1)
    progress.finish("[1/2] Building CXX object a.o")
    claim(progress.seconds_left(60) == 120, "at the expected speed the expected seconds are left")
    claim(200 < progress.seconds_left(120) < 240, "at half the speed it takes about twice as long")
    progress = Progress({"a.o": 60.0, "b.o": 60.0, "c.o": 60.0}, jobs=1)
    progress.finish("[1/2] Building CXX object a.o")
    claim(progress.seconds_left(60) == 60, "a file that is up to date takes no time")
    with tempfile.TemporaryDirectory() as work:
        folder, log = pathlib.Path(work), pathlib.Path(work) / "build.log"
        (folder / "CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={shutil.which('ninja')}\n")
        (folder / "build.ninja").write_text("""
rule compile
  command = sleep $seconds && touch $out
  description = Building CXX object $out
rule fail
  command = seq 1000 && echo "x.cpp:3: error: no such thing" >&2 && exit 1
  description = Building CXX object $out
build CMakeFiles/x.dir/slow.cpp.o: compile
  seconds = 1
build CMakeFiles/x.dir/fast.cpp.o: compile
  seconds = 0
build good: phony CMakeFiles/x.dir/slow.cpp.o CMakeFiles/x.dir/fast.cpp.o
build bad.o: fail
""")

        def build(target):
            done = subprocess.run([sys.executable, "-B", str(dev.root / "tests/build.py"), "--jobs", "1", "--log", str(log), work, target],
                                  capture_output=True, text=True, timeout=100)
            return done.returncode, done.stdout
        code, text = build("good")
        claim(code == 0 and re.fullmatch(r"(  1 of 2 steps, [a-z0-9 ]+ left\n)*", text), f"{code}: {text}")
        claim(re.findall(r"(\w+)\.cpp$", (folder / "slowest.txt").read_text(), re.MULTILINE) == ["slow", "fast"], "the slowest is first")
        claim(build("good") == (0, ""), "nothing is left to do")
        code, text = build("bad.o")
        claim(code == 1 and text.startswith("FAILED: bad.o") and f"... the rest is in {log}" in text, f"{code}: {text}")
        claim("x.cpp:3: error: no such thing" in log.read_text(), "the log has all")
        code, text = build("absent")
        claim(code == 1 and "unknown target 'absent'" in text, f"{code}: {text}")


def a_removed_torch_is_left_out(dev, cmake):
    """benchmarks/peers/newest_torch stores its folder in the cache of CMake; the folder may disappear."""
    with tempfile.TemporaryDirectory() as work:
        script, torch = pathlib.Path(work) / "configure.cmake", pathlib.Path(work) / "torch"
        script.write_text(f"""
            function(tenon_leave_out what why)
              message(STATUS "left out: ${{what}}: ${{why}}")
            endfunction()
            include("{dev.root}/benchmarks/peers/newest_torch.cmake")
            tenon_find_newest_torch(found)
            message(STATUS "found '${{found}}'")
        """)

        def find(folder):
            done = subprocess.run([cmake, f"-DTENON_NEWEST_TORCH={folder}", "-P", str(script)], capture_output=True, text=True)
            claim(done.returncode == 0, done.stdout + done.stderr)
            return done.stdout
        claim("found ''" in find("") and "left out" not in find(""), "no setting, no sentence")
        text = find(torch)
        claim("found ''" in text and f"TENON_NEWEST_TORCH is {torch}, where lib/libtorch_cpu.so is missing" in text, text)
        (torch / "lib").mkdir(parents=True)
        for name in ("libtorch_cpu.so", "libc10.so"):
            (torch / "lib" / name).touch()
        claim(f"found '{torch}'" in find(torch), "a folder that is there is used")


def the_prefix_of_settings_is_the_librarys(dev):
    """The library warns about every TENON_ variable that is not a setting, so no script may read one."""
    known = set(re.findall(r'"(TENON_[A-Z_]+)"', (dev.root / "loader/settings/settings.def").read_text()))
    reads = re.compile(r"""getenv\("(TENON_\w+)|environ(?:\.get\()?[\[(]?["'](TENON_\w+)|\$\{?(TENON_[A-Z_]+)|\bENV .*?"?(TENON_[A-Z_]+)=""")
    listed = subprocess.run(["git", "-C", str(dev.root), "ls-files", "-z"], capture_output=True, text=True).stdout.split("\0")
    for name in listed:
        path = dev.root / name
        is_text = path.suffix in (".cpp", ".c", ".h", ".py", ".sh", "") or path.name == "CMakeLists.txt"
        if not name or not is_text or not path.is_file() or path.name == "dev_test.py":
            continue
        for words in reads.findall(path.read_text(errors="replace")):
            variable = "".join(words)
            if path.name == "CMakeLists.txt" and not words[3]:
                continue  # in CMake ${TENON_...} is a CMake variable
            claim(variable in known, f"{name} reads {variable}, which is not a setting: name it without TENON_")


def main():
    dev = Dev(sys.argv[1])
    for holds in (unknown_arguments_are_refused_by_name, unknown_commands_get_the_nearest_one, every_command_has_help,
                  the_number_of_jobs_is_checked, the_instructions_are_checked, a_build_shows_its_progress_and_its_errors,
                  the_prefix_of_settings_is_the_librarys):
        holds(dev)
        print("holds:", holds.__name__.replace("_", " "))
    a_broken_compiler_cache_is_left_out(dev, sys.argv[2])
    print("holds: a broken compiler cache is left out")
    a_removed_torch_is_left_out(dev, sys.argv[2])
    print("holds: a removed torch is left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
