#!/bin/sh
# Installs the tools that a build needs, if they are missing and can be installed: a C compiler,
# make, git, and rust by rustup. Then runs make: scripts/make.sh run, scripts/make.sh test.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: scripts/make.sh run|test|install" >&2; exit 2; }

missing=
for tool in cc:gcc make:make git:git curl:curl; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || missing="$missing ${tool#*:}"
done
if [ -n "$missing" ]; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing$missing libc6-dev"
    # shellcheck disable=SC2086 # a list of words
    $sudo apt-get update -q && $sudo apt-get install -q -y --no-install-recommends \
        ca-certificates libc6-dev $missing || {
        echo "install these first:$missing" >&2
        exit 1
    }
fi
[ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ] && PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
if ! command -v cargo >/dev/null 2>&1; then
    echo "installing rust by rustup, for this user"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi
export PATH
exec make --no-print-directory "$@"
