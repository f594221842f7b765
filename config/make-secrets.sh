#!/bin/sh
# Makes the secrets of docker-compose.yml in the folder secrets/, and .env which says so. Run it once, in the checkout:
#   config/make-secrets.sh http://192.168.1.20
# It asks for the hub's API key, makes random passwords for the broker's users, and changes nothing that is there already.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo "usage: $0 <address of the hub>" >&2; exit 2; }
umask 077
mkdir -p secrets

write() { [ -s "secrets/$1" ] || printf '%s\n' "$2" > "secrets/$1"; }
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ ! -s secrets/hub_api_key ]; then
  printf 'API key of the hub: ' >&2
  # Not shown while it is typed.
  stty -echo 2>/dev/null || true
  read -r key
  stty echo 2>/dev/null || true
  echo >&2
  write hub_api_key "$key"
fi
for user in hub2mqtt homeassistant button; do write "mqtt_${user}_password" "$(random)"; done

# Mosquitto reads hashes only, and its own tool makes them.
for user in hub2mqtt homeassistant button; do printf '%s:%s\n' "$user" "$(cat "secrets/mqtt_${user}_password")"; done > secrets/mosquitto_passwords.new
docker run --rm -i --entrypoint sh "${MOSQUITTO_IMAGE:-eclipse-mosquitto:2}" \
  -c 'cat > /tmp/p && mosquitto_passwd -U /tmp/p && cat /tmp/p' < secrets/mosquitto_passwords.new > secrets/mosquitto_passwords
rm secrets/mosquitto_passwords.new
# The broker runs as another user; the folder keeps everybody else on this machine out.
chmod 644 secrets/mosquitto_passwords

# The bridge runs as the owner of the secrets, so that nobody else need read them; but never as root.
owner=$(id -u):$(id -g)
if [ "$(id -u)" -eq 0 ]; then
  owner=1000:1000
  chown "$owner" secrets/*
fi

[ -e .env ] || cat > .env <<ENV
SECRETS_DIR=./secrets
HUB_URL=$1
# Owner of the secrets, as whom the bridge runs.
RUN_AS=$owner
ENV
echo 'made secrets/ and .env; now: docker compose up -d' >&2
