"""Make `.venv` and install the pinned packages, unless that is done already.

Run by the Makefile with whatever Python is there, so it keeps to what an old Python 3 can parse and imports
nothing outside the standard library: `python3 -I portal/embedded/install.py [--tests]`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
PRODUCT = ("requirements.txt", os.path.join("deploy", "requirements-web.txt"))
TESTS = (os.path.join("tests", "requirements.txt"),)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    for_tests = "--tests" in sys.argv[1:]
    # Two stacks that are started at once from a fresh clone must not install into one .venv at the same time.
    lock = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not os.path.exists(VENV_PYTHON):
        check_version()
        make_venv()
    install(["requirements.txt"], PRODUCT, "installed")
    if for_tests:
        install(list(TESTS), PRODUCT + TESTS, "installed-tests")
        install_chromium()


def check_version() -> None:
    if sys.version_info < OLDEST:
        sys.exit(
            "VoicePool needs Python {}.{} or newer, and {} is {}.{}.\n"
            "Name a newer one, for example: make PYTHON=python3.12 run".format(
                *OLDEST, sys.executable, *sys.version_info[:2]
            )
        )


def make_venv() -> None:
    say("Making .venv with Python {}.{}.{} …".format(*sys.version_info[:3]))
    if subprocess.call([sys.executable, "-m", "venv", "--clear", VENV]) != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        sys.exit(
            f"{sys.executable} cannot make a virtual environment. On Debian and Ubuntu install "
            "its module first: apt-get install python3-venv"
        )


def install(files: list[str], hashed: tuple[str, ...], stamp_name: str) -> None:
    """Install the requirement files unless the stamp says that exactly these are installed already."""
    digest = hashlib.sha256()
    for path in (*hashed, os.path.join(".venv", "pyvenv.cfg")):
        with open(os.path.join(ROOT, path), "rb") as file:
            digest.update(file.read())
    stamp = os.path.join(VENV, stamp_name)
    if read(stamp) == digest.hexdigest():
        os.utime(stamp)  # make goes by the times of files
        return
    say("Installing {} into .venv; the first time takes some minutes …".format(" and ".join(files)))
    command = [VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    if os.geteuid() == 0:
        command.append("--root-user-action=ignore")
    for path in files:
        command += ["-r", path]
    pip = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    for line in pip.stdout or ():
        if not line.startswith(("Requirement already", "Looking in")):
            say(line.rstrip())
    if pip.wait() != 0:
        sys.exit("The packages could not be installed; pip says why above. Run the command again to go on.")
    write(stamp, digest.hexdigest())


def install_chromium() -> None:
    """Install Debian's Chromium where the browser tests find none and we may install it."""
    if os.environ.get("CHROMIUM") or any(shutil.which(name) for name in CHROMIUM_NAMES):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say("No Chromium was found: the browser tests will be skipped. Install it, or name one in CHROMIUM.")
        return
    say("Installing Chromium for the browser tests …")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
    ):
        if subprocess.call(command, env=environment, stdout=subprocess.DEVNULL) != 0:
            say("Chromium could not be installed: the browser tests will be skipped.")
            return


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def write(path: str, text: str) -> None:
    with open(path + ".unfinished", "w") as file:
        file.write(text)
    os.replace(path + ".unfinished", path)


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
