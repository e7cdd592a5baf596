#!/usr/bin/env bash
# Builds the packages of an earlier commit of this repository, with its own tools, and keeps its package/ beside them.
# They are built anew only for another commit.
#
#   test/tools/previous.sh COMMIT VERSION DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$1 version=$2
mkdir -p "$3"
dist=$(cd "$3" && pwd)
[[ $(cat "$dist/commit" 2>/dev/null) != "$commit" ]] || exit 0
git cat-file -e "$commit^{commit}" 2>/dev/null || {
  echo "test/tools/previous.sh: there is no commit $commit: a full clone is needed" >&2
  exit 1
}
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$commit" | tar -x -C "$source"
rm -rf "$dist/commit" "$dist/package"
go -C "$source/test/packages" run . build --version "$version" --arch "$(go env GOARCH)" --dist "$dist"
cp -r "$source/package" "$dist/package"
echo "$commit" >"$dist/commit"
