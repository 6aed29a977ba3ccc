#!/usr/bin/env bash
# Makes a Debian package of a built binary: scripts/deb.sh [BINARY [ARCHITECTURE]].
# The default is target/release/seekwell for the architecture of this machine. The package is
# target/seekwell_VERSION_ARCHITECTURE.deb. Needs only dpkg-deb, and neither a network nor root. For
# another architecture, RUNS names a binary that can run on this machine (see scripts/tree.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/seekwell}
arch=${2:-$(dpkg --print-architecture)}
[ -x "$binary" ] || { echo "$binary is not there: cargo build --release --locked" >&2; exit 2; }
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)-1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/seekwell
umask 022
DESTDIR=$root scripts/tree.sh "$binary" /usr
gzip -9n "$root"/usr/share/man/man1/*.1

when=@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
doc=$root/usr/share/doc/seekwell
mkdir -p "$doc" "$root/usr/share/lintian/overrides"
echo '# Not uploaded to Debian.
seekwell: initial-upload-closes-no-bugs' >"$root/usr/share/lintian/overrides/seekwell"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
printf 'seekwell (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' \
  "$version" "The Seekwell contributors <seekwell@example.invalid>" \
  "$(date -R -d "$when")" |
  gzip -9nc >"$doc/changelog.Debian.gz"
{
  echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
  echo 'Upstream-Name: seekwell'
  printf '\nFiles: *\nCopyright: %s the Seekwell contributors\nLicense: Expat or Apache-2.0\n' \
    "$(date -d "$when" +%Y)"
  printf '\nLicense: Expat\n'
  sed '1,/^$/d; s/^$/./; s/^/ /' LICENSE-MIT
  printf '\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$doc/copyright"

# Create the directory for the rules of `seekwell apply --persist`, which udev may not have created.
mkdir -p "$root/etc/udev/rules.d"

# Find the libraries that the binary is linked with. A static binary has none.
depends=
if ! file -b "$binary" 2>/dev/null | grep -q 'static' && command -v dpkg-shlibdeps >/dev/null; then
  printf 'Source: seekwell\n\nPackage: seekwell\nArchitecture: any\n' >"$work/debian/control"
  depends=$(cd "$work" && dpkg-shlibdeps -O debian/seekwell/usr/bin/seekwell 2>/dev/null |
    sed -n 's/^shlibs:Depends=//p')
  rm "$work/debian/control"
fi

mkdir "$root/DEBIAN"
{
  echo 'Package: seekwell'
  echo "Version: $version"
  echo "Architecture: $arch"
  echo 'Maintainer: The Seekwell contributors <seekwell@example.invalid>'
  echo "Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)"
  [ -z "$depends" ] || echo "Depends: $depends"
  echo 'Suggests: fio, blktrace, e2fsprogs, postgresql-contrib, sqlite3'
  echo 'Section: admin'
  echo 'Priority: optional'
  echo 'Homepage: https://example.invalid/seekwell'
  echo 'Description: laboratory for the I/O schedulers of the Linux kernel'
  echo ' Every scheduler that people have argued about since 2002, on modelled disks,'
  echo ' under modelled programs and recorded traces, and on the disks of this machine:'
  echo ' which one serves a program best, by how much, how sure that is, and how it is'
  echo ' set now and for the next boots.'
} >"$root/DEBIAN/control"
for script in postinst postrm; do
  cat >"$root/DEBIAN/$script" <<'SCRIPT'
#!/bin/sh
set -e
# The unit is not enabled. The user can enable it with `systemctl enable seekwell-restore`.
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
SCRIPT
  chmod 755 "$root/DEBIAN/$script"
done

out=target/seekwell_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$out" >/dev/null
echo "$out"
