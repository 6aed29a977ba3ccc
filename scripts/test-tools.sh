#!/usr/bin/env bash
# Installs the tools that the tests need in addition to cargo, if they are missing and can be
# installed. Otherwise prints which tests are skipped.
set -euo pipefail

# Columns: command, Debian package, tests that are skipped without it
tools=(
  "cc gcc linking:nothing-can-be-built"
  "fio fio random-reads-by-fio-on-the-modelled-disk"
  "losetup util-linux the-modelled-disk-under-a-loop-device"
  "mkfs.ext4 e2fsprogs ext4-on-the-modelled-disk"
  "mkfs.xfs xfsprogs xfs-on-a-loop-device"
  "sqlite3 sqlite3 SQLite-on-a-loop-device"
  "pg_createcluster postgresql PostgreSQL-under-pgbench-on-a-loop-device"
  "mariadbd mariadb-server MariaDB-on-a-loop-device"
  "nginx nginx-light nginx-on-a-loop-device"
  "ab apache2-utils nginx-on-a-loop-device"
  "blkparse blktrace recorded-traces-in-blkparse-and-btt"
  "clang clang a-static-binary-for-64-bit-ARM"
  "llvm-ar llvm a-static-binary-for-64-bit-ARM"
  "qemu-aarch64-static qemu-user-static programs-and-wheels-for-64-bit-ARM-started-under-an-emulator"
  "valgrind valgrind counting-instructions-per-I/O"
  "chromium chromium the-report-in-a-browser"
)

# Python packages for readers of results folders, and scipy. The Debian package of python3 is used.
if [ -z "$(scripts/python-home.sh)" ]; then
  echo "skipped: tests with pandas, polars, DuckDB and scipy (they need Python 3.11 or later with venv and pip, and a network)"
fi

# Tools for the report's page: those that build it, and axe, which finds accessibility problems.
page_tools() {
  local page=crates/seekwell-report/page
  [ -f $page/node_modules/axe-core/axe.min.js ] && return
  if ! command -v npm >/dev/null; then
    echo "skipped: axe on the report's page, and a new build of it (they need node and npm)"
    return
  fi
  echo "installing the tools of the report's page"
  (cd $page && npm ci --no-audit --no-fund --silent --ignore-scripts) ||
    echo "skipped: axe on the report's page, and a new build of it (they need npm and a network)"
}
page_tools

missing=() lost=()
for line in "${tools[@]}"; do
  read -r command package loss <<<"$line"
  command -v "$command" >/dev/null || { missing+=("$package"); lost+=("${loss//-/ }"); }
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  as_root=(none)
fi
if [ "${as_root[*]-}" != none ] && command -v apt-get >/dev/null; then
  echo "installing ${missing[*]}"
  # The tests start their own servers. The servers of the packages are installed but not started.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap '"${as_root[@]}" rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod 755 $policy
  fi
  if "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
    exit 0
  fi
fi
for i in "${!missing[@]}"; do
  echo "skipped: ${lost[$i]} (not root and no sudo: apt-get install ${missing[$i]})"
done
