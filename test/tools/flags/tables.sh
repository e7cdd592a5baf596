#!/bin/sh
# Writes the tables of internal/engineflags again, from git directories that have the commits of the engines:
#
#	test/tools/flags/tables.sh vLLM /src/vllm [/src/fork ...]
#	test/tools/flags/tables.sh SGLang /src/sglang
#
# The releases are the lines of the table itself: release NAME COMMIT, or main NEXT COMMIT for the main branch. To add one,
# write such a line in its place first, with a tag or a commit. The others stay as they are, which git diff shows.
set -eu
engine=$1
shift
root=$(cd "$(dirname "$0")/../../.." && pwd)
table=$root/internal/engineflags/$(echo "$engine" | tr '[:upper:]' '[:lower:]').txt

releases=$(grep -E '^(release|main) ' "$table" | while read -r kind name commit _; do
  found=
  for dir in "$@"; do
    if git -C "$dir" cat-file -e "$commit^{commit}" 2>/dev/null; then found=$dir; break; fi
  done
  [ -n "$found" ] || { echo "no git directory has $commit of $engine $name" >&2; exit 1; }
  [ "$kind" = main ] && name=main:$name
  echo "$name=$found@$commit"
done)

cd "$root"
# shellcheck disable=SC2086 # Each release is a word.
go run ./test/tools/flags -engine "$engine" $releases > "$table.new"
mv "$table.new" "$table"
