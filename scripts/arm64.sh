#!/usr/bin/env bash
# Unpacks Debian packages for 64-bit ARM and their dependencies, without installing them:
# scripts/arm64.sh DIR PACKAGE...
# It uses separate package lists, so that those of the machine are not changed.
set -euo pipefail
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial"
own=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o "Dir::State::lists=$dir/apt/lists"
  -o "Dir::Cache=$dir/apt" -o Dir::State::status=/dev/null -o APT::Sandbox::User="$(id -un)")
apt-get "${own[@]}" update
apt-get "${own[@]}" -o Debug::NoLocking=1 install --download-only --yes --no-install-recommends "$@"
for file in "$dir"/apt/archives/*_arm64.deb "$dir"/apt/archives/*_all.deb; do
  [ ! -f "$file" ] || dpkg-deb --extract "$file" "$dir"
done
rm -rf "$dir/apt"
