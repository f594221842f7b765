#!/bin/sh
# Creates the files that docker-compose.yml needs for your hub: the secrets in secrets/, the configuration in hub2mqtt/,
# and .env with their paths. Run it in the checkout:
#   config/make-secrets.sh http://192.168.1.20
# The script asks for the hub's API key, and creates random passwords for the broker's users. It keeps existing values.
# If a run failed, or one of the files is missing, run the script again.
set -eu
cd "$(dirname "$0")/.."
address=''
case ${1:-} in *[[:space:]]*) ;; http://?* | https://?*) address=$1 ;; esac
[ $# -eq 1 ] && [ -n "$address" ] || { echo "usage: $0 <address of the hub, such as http://192.168.1.20>" >&2; exit 2; }
umask 077
# Users of the broker; "broker" is the second broker of config/compose.fleet.yml.
users='hub2mqtt homeassistant button broker'
say() { printf '%s\n' "$1" >&2; }

# If a file to mount is missing, a container engine creates a folder in its place.
for path in secrets/hub_api_key secrets/mqtt_hub2mqtt_password secrets/mqtt_homeassistant_password \
  secrets/mqtt_button_password secrets/mqtt_broker_password secrets/nats_password secrets/mosquitto_passwords \
  hub2mqtt/hub2mqtt.yaml hub2mqtt/hub2mqtt.env; do
  [ -d "$path" ] || continue
  if rmdir "$path" 2>/dev/null; then
    say "removed $path, an empty folder that the container engine had created because the file was missing"
  else
    say "$path is a folder instead of a file: the container engine created it because the file was missing. Remove it: sudo rmdir $path"
    exit 1
  fi
done
for folder in secrets hub2mqtt; do
  mkdir -p "$folder"
  [ -w "$folder" ] || { say "$folder belongs to another user, probably because the container engine created it. Remove it: sudo rmdir $folder"; exit 1; }
done

# These temporary files contain passwords. If a run is killed, its files remain until the next run removes them.
plain=secrets/mosquitto_passwords.new hashed=secrets/mosquitto_passwords.hashed partial=secrets/partial
trap 'rm -f "$plain" "$hashed" "$partial"' EXIT
trap 'stty echo 2>/dev/null; exit 1' HUP INT TERM

# A file gets its name when it is complete. If the run stops earlier, the file is missing, and the next run creates it.
write() {
  [ ! -s "secrets/$1" ] || return 0
  printf '%s\n' "$2" > "$partial"
  mv "$partial" "secrets/$1"
}
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ ! -s secrets/hub_api_key ]; then
  printf 'API key of the hub: ' >&2
  stty -echo 2>/dev/null || true
  read -r key || true
  stty echo 2>/dev/null || true
  echo >&2
  [ -n "$key" ] || { say 'an API key is required'; exit 1; }
  write hub_api_key "$key"
fi
write nats_password "$(random)"

# Lists each user who lacks a password or a hash for the broker, with the existing or a new password.
changed=''
for user in $users; do
  file=secrets/mqtt_${user}_password
  [ -s "$file" ] && grep -q "^$user:" secrets/mosquitto_passwords 2>/dev/null && continue
  if [ -s "$file" ]; then password=$(head -n 1 "$file"); else password=$(random); fi
  changed="$changed|$user"
  printf '%s:%s\n' "$user" "$password"
done > "$plain"

# Mosquitto's own tool creates the hashes. Keeps the lines of other users.
if [ -n "$changed" ]; then
  docker run --rm -i --entrypoint sh "${MOSQUITTO_IMAGE:-eclipse-mosquitto:2}" \
    -c 'cat > /tmp/p && mosquitto_passwd -U /tmp/p && cat /tmp/p' < "$plain" > "$hashed"
  if [ -s secrets/mosquitto_passwords ]; then
    # grep exits with 1 if there are no other users.
    grep -vE "^(${changed#|}):" secrets/mosquitto_passwords >> "$hashed" || [ $? -eq 1 ]
  fi
  mv "$hashed" secrets/mosquitto_passwords
  # After the hashes, because the script never changes a user who has both a password and a hash.
  while IFS=: read -r user password; do write "mqtt_${user}_password" "$password"; done < "$plain"
fi
# Brokers and NATS run as other users and must read these files; only their owner can open the folder.
chmod 644 secrets/mosquitto_passwords secrets/mqtt_broker_password secrets/nats_password

# Copies the demo's configuration, and enters the address of this hub.
if [ ! -e hub2mqtt/hub2mqtt.yaml ]; then
  sed "s#http://emulated-hub:8080#$(printf %s "$address" | sed 's/[\\#&]/\\&/g')#" config/demo/hub2mqtt/hub2mqtt.yaml > "$partial"
  mv "$partial" hub2mqtt/hub2mqtt.yaml
elif ! grep -qwF "$address" hub2mqtt/hub2mqtt.yaml; then
  say "hub2mqtt/hub2mqtt.yaml already exists and is not changed; if the hub has moved, set its url there to $address"
fi
if [ ! -e hub2mqtt/hub2mqtt.env ]; then
  cp config/demo/hub2mqtt/hub2mqtt.env "$partial"
  mv "$partial" hub2mqtt/hub2mqtt.env
fi

# The bridge runs as the owner of the secrets, so that no other user needs access to them, but never as root.
owner=$(id -u):$(id -g)
if [ "$(id -u)" -eq 0 ]; then
  owner=1000:1000
  chown -R "$owner" secrets hub2mqtt
fi

# Keeps an existing line. The last line of a file may lack its newline.
setting() {
  grep -q "^$1=" .env 2>/dev/null && return
  [ -z "$(tail -c 1 .env 2>/dev/null)" ] || echo >> .env
  printf '%s=%s\n' "$1" "$2" >> .env
}
setting SECRETS_DIR ./secrets
setting CONFIG_DIR ./hub2mqtt
# Owner of the secrets; the bridge runs as this user.
setting RUN_AS "$owner"
say 'created secrets/, hub2mqtt/ and .env; now run: docker compose up -d'
