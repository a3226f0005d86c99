#!/bin/sh
# Installs the package from SOURCE (default: the folder of this clone) into PREFIX. The steps of the container recipes.
set -eu
source=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
prefix=${PREFIX:-/opt/mvpa-gamp}
cache=${XDG_CACHE_HOME:-/opt/cache}

if command -v apt-get >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends ca-certificates python3 python3-venv
    rm -rf /var/lib/apt/lists/*
fi
python3 -m venv "$prefix"
"$prefix/bin/pip" install --no-cache-dir "$source"

# Compile the inner loops once and draw a page once, so that no run has to: users of the container may have no home folder to write to.
mkdir -p "$cache"
work=$(mktemp -d)
XDG_CACHE_HOME=$cache MPLCONFIGDIR=$cache/matplotlib "$prefix/bin/mvpa-gamp" decode --phantom --phantom-shape 20 24 16 \
    --pairs face:house --methods gamp-bg-lr gamp-sbg-lr --quiet --out "$work/results"
rm -rf "$work"
chmod -R a+rwX "$cache"
"$prefix/bin/mvpa-gamp" --version
