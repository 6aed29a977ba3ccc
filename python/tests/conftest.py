"""Fixtures that several tests use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "crates/seekwell-sim/tests/decisions"


@pytest.fixture(scope="session")
def binary() -> Path:
    """The binary, built like the extension. Python must return what the binary prints."""
    found = Path(os.environ.get("SEEKWELL_BINARY", ROOT / "target/debug/seekwell"))
    if not found.is_file():
        pytest.skip(f"{found} is not there: cargo build --bin seekwell, or set SEEKWELL_BINARY")
    return found


@pytest.fixture(scope="session")
def logs() -> Path:
    """The directory with recorded decisions of the original schedulers."""
    return LOGS
