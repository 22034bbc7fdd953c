#!/usr/bin/env bash
# Runs the fast tests on another version of Node than the installed one:
#
#   scripts/test-on-node.sh 24 [arguments of vitest run; default: the projects unit and conformance]
#
# Works on a copy of the repository in a temporary folder, with the better-sqlite3 that suits that Node (13 carries its own binaries and
# needs Node 22; 12 is for Node 20). Exit code 0: all passed; 75: that Node or package cannot be had here; else: tests failed.
set -euo pipefail
version=${1:?say which version of Node, such as 24}
shift
[ "$#" -gt 0 ] || set -- --project unit --project conformance
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/queuefs-node-$version-XXXXXX")
trap 'rm -rf "$copy"' EXIT

# The path is asked for without npx's own environment around it, so that what follows runs as on any machine that has this Node.
node=$(npx --yes --package "node@$version" -- node -p process.execPath </dev/null) || {
  echo "node@$version cannot be had from the registry in use; nothing was tested" >&2
  exit 75
}
found=$("$node" -p process.versions.node)
case "$found" in
  "$version" | "$version".*) ;;
  *) echo "asked for Node $version and got $found; nothing was tested" >&2; exit 75 ;;
esac

cd "$root"
tar -c --exclude=./.git --exclude=./dist --exclude=./coverage --exclude='./.build-*' --exclude=./test-results --exclude=./bench/peers/node_modules . | tar -x -C "$copy"
cd "$copy"
sqlite=12
if [ "${found%%.*}" -ge 22 ]; then sqlite=13; fi
rm -rf node_modules/better-sqlite3 && mkdir .sqlite && (
  # npm has to see the other Node, or it would choose by the installed one.
  cd .sqlite && echo '{ "private": true }' > package.json && PATH="$(dirname "$node"):$PATH" npm install --no-audit --no-fund --silent "better-sqlite3@$sqlite"
) </dev/null || {
  echo "better-sqlite3@$sqlite cannot be installed here; nothing was tested" >&2
  exit 75
}
cp -R .sqlite/node_modules/. node_modules/
echo "Node $found, better-sqlite3 $("$node" -p 'require("better-sqlite3/package.json").version')"
PATH="$(dirname "$node"):$PATH" "$node" node_modules/vitest/vitest.mjs run "$@" </dev/null
