#!/bin/sh
# Puts together the folder from which Home Assistant builds the app, out of the same Dockerfile as everything else:
#   config/home-assistant-app/assemble.sh /path/to/addons/hub2mqtt
# /addons of Home Assistant is the share of that name. Then Settings, Apps, App store, Check for updates: it is a local app.
set -eu
cd "$(dirname "$0")/../.."
[ $# -eq 1 ] || { echo "usage: $0 <folder to make>" >&2; exit 2; }
mkdir -p "$1/config/home-assistant-app"
cp -R Dockerfile .dockerignore .npmrc LICENSE package.json package-lock.json tsconfig.json tsconfig.build.json src "$1/"
cp config/home-assistant-app/run.js "$1/config/home-assistant-app/"
cp config/home-assistant-app/config.yaml config/home-assistant-app/build.yaml "$1/"
