#!/bin/sh
# Starts a broker of config/compose.fleet.yml with its own copies of the files, as docker-compose.yml does. With the
# argument "bridge", the broker forwards everything between both brokers.
set -eu
umask 077
own=/tmp/own
mkdir -p "$own"
cp /run/secrets/mosquitto_passwords "$own/"
cat /mosquitto/config/acl /etc/fleet/acl > "$own/acl"
# The queue must hold all retained messages, because they are forwarded to the other broker together.
sed "s#/run/secrets/#$own/#; s#/mosquitto/config/#$own/#; s#^max_queued_messages .*#max_queued_messages 100000#" \
  /mosquitto/config/mosquitto.conf > "$own/mosquitto.conf"
if [ "${1-}" = bridge ]; then
  cat /etc/fleet/bridge.conf >> "$own/mosquitto.conf"
  printf 'remote_password %s\n' "$(cat /run/secrets/mqtt_broker_password)" >> "$own/mosquitto.conf"
fi
exec mosquitto -c "$own/mosquitto.conf"
