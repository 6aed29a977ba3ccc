#!/usr/bin/env bash
# Installs a built binary into a file tree: scripts/tree.sh BINARY PREFIX. The tree contains the
# stripped binary, a manual page for each command, and completions for bash, zsh and fish. Below
# /usr and /usr/local, it also contains the systemd unit that restores settings after an interrupted
# run. DESTDIR is put before every path. If BINARY is for another processor, RUNS names a binary
# that can run on this machine.
set -euo pipefail
binary=$1 prefix=${2%/} dest=${DESTDIR:-}
runs=$(realpath "${RUNS:-$binary}")
share=$dest$prefix/share

mkdir -p "$dest$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" \
  "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
new=$dest$prefix/bin/.seekwell.new
if [ -n "${RUNS:-}" ] || ! command -v strip >/dev/null; then
  cp "$binary" "$new"
else
  strip -o "$new" "$binary"
fi
chmod 755 "$new"
# Move the complete file into place, so that this also works while an older version is running.
mv "$new" "$dest$prefix/bin/seekwell"

"$runs" man "$share/man/man1"
"$runs" completions bash >"$share/bash-completion/completions/seekwell"
"$runs" completions zsh >"$share/zsh/vendor-completions/_seekwell"
"$runs" completions fish >"$share/fish/vendor_completions.d/seekwell.fish"

case $prefix in
/usr | /usr/local)
  # The program writes a unit for its own path. The path is replaced by that of the installation.
  scratch=$(mktemp -d)
  mkdir -p "$scratch/etc/systemd/system"
  "$runs" --quiet host restore --install-unit --root "$scratch" >/dev/null
  units=$dest$prefix/lib/systemd/system
  [ "$prefix" = /usr ] && units=$dest/lib/systemd/system
  mkdir -p "$units"
  sed "s|^ExecStart=.*|ExecStart=$prefix/bin/seekwell host restore|" \
    "$scratch/etc/systemd/system/seekwell-restore.service" >"$units/seekwell-restore.service"
  rm -rf "$scratch"
  ;;
esac
