#!/bin/sh
# Brings Slurm's internal headers, of exactly the installed version, into include/slurm-src.
#
# A select plugin needs headers that no package ships, so they come from the distribution's source package. The
# machine's own apt configuration stays as it is: the source entries and their lists live in a temporary folder.
#
# With a folder as its argument it brings Slurm's test suite there instead.
set -eu

cd "$(dirname "$0")"
dest=slurm-src
suite=${1:-}

version=$(dpkg-query -W -f '${source:Version}' slurmctld 2>/dev/null) || {
    echo "slurm-headers: slurmctld is not installed; run 'make deps' as root, or set SLURM_SOURCE_DIR to Slurm's source tree" >&2
    exit 1
}
if [ -n "$suite" ]; then
    [ ! -r "$suite/META" ] || exit 0
elif [ "$(cat $dest/.package-version 2>/dev/null)" = "$version" ]; then
    echo "slurm-headers: Slurm $version is here already"
    exit 0
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM
mkdir -p "$tmp/lists/partial" "$tmp/source"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ -r $keyring ] && signed="[signed-by=$keyring]"
# The archives that this machine installs from also hold the sources of what it installed.
apt-get indextargets --format "deb-src $signed \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
    'Created-By: Packages' 'Origin: Debian' | sort -u >"$tmp/archives"
[ -s "$tmp/archives" ] || {
    echo "slurm-headers: apt knows no Debian archive; add one to /etc/apt and run 'apt-get update', or set SLURM_SOURCE_DIR" >&2
    exit 1
}

# One archive at a time: a mirror may list a security update's source and yet not hold it, while another does.
fetch_from() {
    echo "$1" >"$tmp/sources.list"
    set -- -q -o "Dir::Etc::SourceList=$tmp/sources.list" -o Dir::Etc::SourceParts=/nonexistent \
        -o "Dir::State::Lists=$tmp/lists" -o APT::Sandbox::User=root
    apt-get "$@" update && cd "$tmp/source" && apt-get "$@" source "slurm-wlm=$version"
}
while read -r archive; do
    (fetch_from "$archive") >>"$tmp/log" 2>&1 </dev/null && break
done <"$tmp/archives"
[ -r "$tmp"/source/slurm-wlm-*/META ] || {
    cat "$tmp/log" >&2
    echo "slurm-headers: no archive has the source of slurm-wlm $version; upgrade slurmctld to a version that one has, or set SLURM_SOURCE_DIR" >&2
    exit 1
}

if [ -n "$suite" ]; then
    mkdir -p "$suite"
    (cd "$tmp"/source/slurm-wlm-*/ && tar -cf - testsuite META) | tar -xf - -C "$suite"
    exit
fi
rm -rf $dest
mkdir $dest
(cd "$tmp"/source/slurm-wlm-*/ && find META slurm src -name '*.h' -o -name META | tar -cf - -T -) | tar -xf - -C $dest
echo "$version" >$dest/.package-version
echo "slurm-headers: Slurm $version"
