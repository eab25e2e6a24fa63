#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# print.sh VERSION DIRECTORY-OF-JARS: prints the samples of a version anew, into this directory.
set -eu
version=$1
jars=$2
classes=$(mktemp -d)
trap 'rm -r "$classes"' EXIT
cd "$(dirname "$0")"
javac -nowarn -cp "$jars/*" -d "$classes" Print*.java
# Loading some classes starts the original's logging, which prints to the console.
java -cp "$classes:$jars/*" PrintHeaders "$jars" | grep '^org' >"headers-$version.txt"
java -cp "$classes:$jars/*" PrintCommands |
    grep -E '^[a-z]+	(JSON|ROCKETMQ)	' >"commands-$version.txt"
java -cp "$classes:$jars/*" PrintBodies classes.txt 2>/dev/null |
    grep -E '^[A-Za-z]+	(fresh|filled|pretty|compressed)	' >"bodies-$version.txt"
