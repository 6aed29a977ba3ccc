#!/usr/bin/env bash
# Lays a built binary out as an installation: scripts/tree.sh BINARY PREFIX
#   stripped binary, a manual page for each command, completions for bash, zsh and fish, and, below
#   /usr and /usr/local, the unit of systemd that puts back what an interrupted run left.
# DESTDIR stands in front of every path; RUNS names a binary that runs here, if BINARY does not
# (another processor's).
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
# Whole under its name at once, also where an older one is running.
mv "$new" "$dest$prefix/bin/seekwell"

"$runs" man "$share/man/man1"
"$runs" completions bash >"$share/bash-completion/completions/seekwell"
"$runs" completions zsh >"$share/zsh/vendor-completions/_seekwell"
"$runs" completions fish >"$share/fish/vendor_completions.d/seekwell.fish"

case $prefix in
/usr | /usr/local)
  # The program writes its own unit, for itself; here it is at home in the installation.
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
