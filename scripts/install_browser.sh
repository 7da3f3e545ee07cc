#!/bin/sh
# Install Chromium for the tests marked `browser` (Debian, Ubuntu). Nothing else needs a browser to be installed.
set -eu

if command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1; then
    echo "Chromium is there already."
    exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo"
fi
$as_root apt-get update -qq
$as_root apt-get install -y --no-install-recommends chromium fonts-dejavu-core
