#!/bin/sh
# Appends the edited file's name to .review/edited.txt. The tool's input comes on standard input.
set -eu
mkdir -p .review
sed -n 's/.*"file_path": *"\([^"]*\)".*/\1/p' >> .review/edited.txt
