#!/bin/sh
# Creates the folder from which Home Assistant builds the app, with the same Dockerfile as all other images:
#   config/home-assistant-app/assemble.sh /path/to/local_apps/hub2mqtt
# The folder must be in the share `local_apps` of Home Assistant, formerly `addons`. Settings, Apps, App store, Check for
# updates then shows the local app.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 <folder to create>" >&2; exit 2; }
mkdir -p "$1/config/home-assistant-app" "$1/config/demo"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
cp -R .dockerignore .npmrc LICENSE package.json package-lock.json tsconfig.json src "$folder/"
cp -R config/openapi.json config/new-app "$folder/config/"
cp -R config/demo/apps config/demo/store "$folder/config/demo/"
cd config/home-assistant-app
cp run.js "$folder/config/home-assistant-app/"
cp -RL DOCS.md CHANGELOG.md icon.png logo.png translations "$folder/"
# Home Assistant builds the app from this folder instead of downloading a release.
sed '/^image:/d' config.yaml > "$folder/config.yaml"
sed 's/^ARG VARIANT=.*/ARG VARIANT=home-assistant/' ../../Dockerfile > "$folder/Dockerfile"
