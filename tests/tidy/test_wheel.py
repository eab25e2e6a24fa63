# SPDX-License-Identifier: Apache-2.0
"""The archives are complete: what is built from them runs where nothing else is installed.

No package index is asked: the environment gets the wheel, and of what is installed here no more
than what the wheel says it depends on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.stored import MESSAGES, filled_store

_NOT_IN_A_CHECKOUT = shutil.ignore_patterns(
    ".*", "var", "build", "dist", "*.egg-info", "__pycache__", "golden"
)


def _run(command: Sequence[str | Path], folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"{command[0]} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture(scope="session")
def archives(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("archives")
    checkout = folder / "checkout"
    shutil.copytree(root, checkout, symlinks=True, ignore=_NOT_IN_A_CHECKOUT)
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, checkout], folder)
    return folder


@pytest.fixture(scope="session")
def wheel(archives: Path) -> Path:
    """The wheel."""
    (found,) = archives.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty virtual environment with the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("elsewhere") / "environment"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    _run([sys.executable, "-m", "pip", "--python", python, *install], folder.parent)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    for name, found in _dependencies(_requirements(wheel)).items():
        _link(found, packages, name)
    return folder


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    return re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)


def _dependencies(requirements: list[str]) -> dict[str, Distribution]:
    """All that these need, directly or not, as it is installed here."""
    found: dict[str, Distribution] = {}
    pending = [Requirement(text) for text in requirements]
    while pending:
        requirement = pending.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name in found:
            continue
        try:
            installed = distribution(requirement.name)
        except PackageNotFoundError:
            pytest.fail(f"{requirement.name} is a dependency and is not installed")
        found[requirement.name] = installed
        pending += [Requirement(text) for text in installed.requires or ()]
    return found


def _link(installed: Distribution, packages: Path, name: str) -> None:
    assert installed.files, f"{name} does not say which files it has"
    tops = {file.parts[0] for file in installed.files} - {"..", "__pycache__"}
    for top in tops:
        target = packages / top
        if not target.exists():
            target.symlink_to(Path(str(installed.locate_file(top))))


WITH_EXTRAS = {
    "broker/metrics.py",
    "broker/store/check/stretches.py",
    "client/opentelemetry.py",
    "namesrv/metrics.py",
    "remoting/settings/self_signed.py",
    "remoting/host/exporter.py",
    "remoting/transport/peer_metrics.py",
}
"""What is imported only where metrics are switched on, where there is numpy, or where a server
makes a certificate for itself."""

WITHOUT_GRPC = {"proxy/config.py", "proxy/door.py", "proxy/needs.py", "proxy/original_keys.py"}
"""What `standalone` and the command of the proxy need before they know whether there is gRPC."""


@pytest.mark.parametrize("command", ["mqbroker", "mqnamesrv", "txrocketmq"])
def test_the_commands_run_from_the_wheel(command: str, wheel: Path, environment: Path) -> None:
    program = environment / "bin" / command
    assert _run([program, "--help"], environment.parent).startswith(f"Usage: {command}")
    said = f"{command} {_metadata(wheel)['Version']}\n"
    assert _run([program, "--version"], environment.parent).startswith(said)


def test_the_package_tells_of_itself(wheel: Path, environment: Path) -> None:
    """What somebody sees who has the name of the package only."""
    python: list[str | Path] = [environment / "bin" / "python"]
    version = _metadata(wheel)["Version"]
    said = _run([*python, "-m", "txrocketmq", "--version"], environment.parent)
    assert said.startswith(f"txrocketmq {version}\nkernel: none, since ")
    program = "import txrocketmq; help(txrocketmq)"
    shown = _run([*python, "-c", program], environment.parent)
    for part in ("txrocketmq.client.aio", "txrocketmq.testing.server", "VERSION", version):
        assert part in shown
    said = _run([*python, "-c", "import txrocketmq as t; print(t.__version__)"], environment.parent)
    assert said == f"{version}\n"


def test_the_package_is_imported_at_once(environment: Path) -> None:
    """Finding out the version takes longer than the import of a small module may."""
    program = "import sys, txrocketmq; print('importlib.metadata' in sys.modules)"
    said = _run([environment / "bin" / "python", "-I", "-c", program], environment.parent)
    assert said == "False\n"


def test_the_broker_shows_its_configuration_from_the_wheel(environment: Path) -> None:
    """More than --help: the modules of settings and store are there and import."""
    shown = _run([environment / "bin" / "mqbroker", "-p"], environment.parent)
    assert "storePathRootDir=" in shown


def test_a_store_is_checked_without_the_extras(environment: Path, tmp_path: Path) -> None:
    filled_store(tmp_path)
    command: list[str | Path] = [environment / "bin" / "txrocketmq", "store", "check", tmp_path]
    shown = _run(command, environment.parent)
    assert f"Read {MESSAGES} messages in the log" in shown
    assert shown.endswith("Nothing is wrong.\n")


def test_the_code_comes_from_the_wheel_not_from_the_checkout(environment: Path) -> None:
    program = "import txrocketmq.remoting.codes as codes; print(codes.__file__)"
    shown = _run([environment / "bin" / "python", "-c", program], environment.parent)
    assert Path(shown.strip()).is_relative_to(environment)


def test_every_module_imports_from_the_wheel(environment: Path, modules: list[Path]) -> None:
    """With no more than the wheel depends on; Spark, pytest, gRPC, metrics and numpy are extras."""
    names = [
        "txrocketmq." + ".".join(module.with_suffix("").parts)
        for module in modules
        if (module.parts[0] not in {"spark", "testing", "proxy"} or str(module) in WITHOUT_GRPC)
        and not module.name.startswith("__")
        and str(module) not in WITH_EXTRAS
    ]
    assert {"txrocketmq.proxy.door", "txrocketmq.proxy.needs"} <= set(names)
    program = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    _run([environment / "bin" / "python", "-c", program], environment.parent)
    says = "from txrocketmq.proxy.needs import missing; print(missing())"
    said = _run([environment / "bin" / "python", "-c", says], environment.parent)
    assert "h2 and google.protobuf" in said


def test_the_wheel_is_complete(wheel: Path, modules: list[Path]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    found_by_spark = "spark/pyspark_rocketmq/__init__.py"
    expected = {f"txrocketmq/{module}" for module in modules if str(module) != found_by_spark}
    expected.add(found_by_spark.removeprefix("spark/"))
    expected |= {f"txrocketmq/client/{face}.pyi" for face in ("aio", "blocking", "tx")}
    expected |= {f"txrocketmq/{name}" for name in ("__init__.py", "__main__.py", "py.typed")}
    expected |= {f"txrocketmq/{part}/py.typed" for part in {module.parts[0] for module in modules}}
    assert expected <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    ours = {"txrocketmq", "pyspark_rocketmq"}
    strangers = {name for name in names if name.split("/")[0] not in ours}
    assert all(".dist-info/" in name for name in strangers), strangers


TYPED = """
from txrocketmq.client import Producer, SendResult, aio, new_message

message = new_message("T", "body")
with Producer("group", namesrv_addr="127.0.0.1:1") as producer:
    result: SendResult = producer.send(message)
    producer.sent(message)  # no such method

async def send(producer: aio.Producer) -> SendResult:
    reveal_type(await producer.send(message))
    return producer.send(message)  # not awaited

Producer(7)  # not a name
"""


def test_a_type_checker_knows_the_client_of_the_wheel(environment: Path, tmp_path: Path) -> None:
    """Its classes are made at run time; what is known of them comes from the stubs."""
    (tmp_path / "program.py").write_text(TYPED)
    options = ["--strict", "--config-file", os.devnull, "--python-executable"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, environment / "bin" / "python", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if "note: Maybe" not in line]
    said = [line.removeprefix("program.py:") for line in lines]
    assert [line.partition(":")[0] for line in said[:-1]] == ["7", "10", "11", "13"], done.stdout
    assert 'has no attribute "sent"' in said[0]
    assert "SendResult" in said[1]
    assert "[return-value]" in said[2]
    assert "[arg-type]" in said[3]


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


LINK = re.compile(r"\]\(([^)\s]+)\)")


def _page(root: Path, folder: Path, urls: str) -> str:
    """The page of a package index, if pyproject.toml says this of addresses."""
    for name in ("setup.py", "README.md", "pyproject.toml"):
        shutil.copy(root / name, folder)
    project = folder / "pyproject.toml"
    project.write_text(f"{project.read_text()}\n{urls}")
    program = (
        "import setuptools; setuptools.setup = lambda **given: print(given['long_description'])"
    )
    return _run([sys.executable, "-c", f"{program}; exec(open('setup.py').read())"], folder)


def test_links_of_the_index_page_lead_to_files_of_the_release(
    root: Path, wheel: Path, tmp_path: Path
) -> None:
    urls = '[project.urls]\nSource = "https://host.invalid/source"'
    links = LINK.findall(_page(root, tmp_path, urls))
    files = f"https://host.invalid/source/blob/v{_metadata(wheel)['Version']}/"
    ours = [link.removeprefix(files).partition("#")[0] for link in links if link.startswith(files)]
    assert "docs/compatibility.md" in ours
    assert all((root / path).exists() for path in ours)
    assert not [link for link in links if not re.match(r"https?://|#", link)]


def test_without_an_address_the_index_page_has_no_links_to_files(
    root: Path, wheel: Path, tmp_path: Path
) -> None:
    metadata = _metadata(wheel)
    assert metadata.get_all("Project-URL") is None
    page = str(metadata.get_payload())
    assert page.strip() == _page(root, tmp_path, "").strip()
    assert not [link for link in LINK.findall(page) if not re.match(r"https?://|#", link)]
    assert "](" not in re.sub(r"\]\((https?://|#)", "", page)


def test_a_package_index_would_take_them(archives: Path) -> None:
    found = [str(path) for path in archives.iterdir() if path.suffix in {".whl", ".gz"}]
    said = _run([sys.executable, "-m", "twine", "check", "--strict", *found], archives)
    assert said.count("PASSED") == len(found) == 2


def test_the_source_archive_carries_licence_and_readme(archives: Path) -> None:
    (found,) = archives.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py"} <= names
