/** The table of commands, from which parsing, help and documentation are derived. */
import * as v from 'valibot'
import { VERSION } from '../base/versions.ts'
import { hubUrl, topicPrefix } from '../config/addresses.ts'
import { hubName } from '../config/options.ts'
import { choice, duration, integer, size } from '../config/schemas.ts'
import { argument, command, given, optionalArgument, parsed, required, several, text, withDefault } from './command.ts'

const config = text('FILE', 'configuration file, YAML or JSON; overrides HUB2MQTT_CONFIG')
const data = required(text('DIR', 'data folder of the hub, which may be running'))
const timeout = (doc: string) => withDefault('15s', parsed('DURATION', duration('100ms', '10m'), doc))
const port = integer(0, 65_535)
const version = v.pipe(v.string(), v.regex(VERSION, 'expected a version such as 1.0.0'))

export const emulateFlags = {
  host: withDefault('127.0.0.1', text('HOST', 'address to listen on')),
  port: parsed('N', port, 'port to listen on; 0 chooses a free port', {
    default: '8080, 4859 with --flavour self-hosted',
  }),
  flavour: parsed(
    'older|newer|self-hosted|reference',
    choice(['older', 'newer', 'self-hosted', 'reference']),
    'kind of hub',
    { default: 'newer' },
  ),
  'api-key': several('KEY=SCOPE,SCOPE', v.string(), 'API key that the hub accepts, with its scopes'),
  file: text('FILE', 'file that defines the hub, its keys and its apps'),
  app: several(
    'DIR',
    v.string(),
    'folder of an app to run instead of the sample apps; prints its output and restarts it when its files change',
  ),
  data: text('DIR', 'folder for the state of the hub; default: the state is not saved'),
  store: text('DIR', 'folder of apps that can be installed: DIR/<id>/<version>/app.json'),
  'memory-limit': parsed('SIZE', size('64MiB', '4096MiB'), 'memory above which an app is killed', {
    default: '256MiB',
  }),
  'cpu-limit': parsed('PERCENT', integer(1, 100), 'share of a core above which an app is killed after 30 s', {
    default: '90',
  }),
  'speech-command': text('CMD', 'command that speaks its last argument'),
  simulated: given('simulate the apps instead of running processes'),
  apps: parsed('N', integer(0, 100_000), 'number of simulated apps'),
  crashes: given('let a simulated app crash from time to time'),
  'control-port': parsed(
    'N',
    port,
    'loopback port of the HTTP server that makes the hub misbehave; 0 chooses a free port; default: none',
  ),
  'no-rate-limit': given('turn off the rate limit of newer hubs'),
}

export const conformanceFlags = {
  url: parsed('URL', hubUrl, 'address of the hub'),
  key: text('KEY', 'API key of the hub; other users of this machine can see it, so prefer --key-file'),
  'key-file': text('FILE', 'file with the API key; default: HUB2MQTT_HUB_API_KEY'),
  writes: given(
    'also test changes to the app that --app names, and restore the app afterwards; the hub might update the app in the meantime',
  ),
  app: text('ID', 'the app to test; default: a running app'),
  downgrade: parsed('VERSION', version, 'with --writes: the older version to install; default: 1.0.0'),
  limits: given("also send six simultaneous requests, to test the hub's rate limit"),
  json: given('print the report as JSON'),
  timeout: timeout('how long to wait for each answer'),
}

export const cleanupFlags = {
  config,
  yes: given('clear the messages'),
  'base-topic': parsed('TOPIC', topicPrefix, 'the former base topic, instead of mqtt.base_topic'),
  prefix: parsed('TOPIC', topicPrefix, 'the former prefix, instead of discovery.prefix'),
  hub: several('NAME', hubName, 'a former hub that the broker no longer lists'),
}

/** The commands of hub2mqtt. If no command is given, the first one runs. */
export const commands = {
  run: command({ lasts: true, flags: { config }, body: async () => (await import('./run.ts')).run }).doc(
    'connect the configured hubs to MQTT until the command is stopped',
  ),
  demo: command({
    lasts: true,
    flags: {
      config,
      broker: text(
        'URL',
        'use this broker; publishes only below hub2mqtt-demo, without discovery, and clears these topics at exit',
      ),
    },
    body: async () => (await import('./demo.ts')).demo,
  }).doc('run the bridge with an emulated hub and an embedded broker, without hardware'),
  emulate: command({
    lasts: true,
    flags: emulateFlags,
    body: async () => (await import('./emulate.ts')).emulateHub,
  }).doc('run only the emulated hub; prints its address when it is ready'),
  'emulate new-app': command({
    flags: {},
    positionals: {
      id: argument('id of the app, such as com.example.lights'),
      folder: optionalArgument('folder to create; default: a folder named after the id'),
    },
    body: async () => (await import('./emulate.ts')).newApp,
  }).doc('create a folder with a working app and its test'),
  'emulate keys create': command({
    flags: {
      data,
      scope: required(several('SCOPE', v.string(), 'a permission, such as hub.app')),
      name: text('TEXT', 'purpose of the key, shown in the list'),
    },
    body: async () => (await import('./emulate.ts')).createKey,
  }).doc('create an API key of an emulated hub and print it once'),
  'emulate keys list': command({ flags: { data }, body: async () => (await import('./emulate.ts')).listKeys }).doc(
    'list the API keys of an emulated hub: id, creation time, scopes, name',
  ),
  'emulate keys revoke': command({
    flags: { data },
    positionals: { id: argument('id of the key, as shown in the list') },
    body: async () => (await import('./emulate.ts')).revokeKey,
  }).doc('revoke an API key of an emulated hub; its sessions end within a second'),
  health: command({
    flags: { config, ready: given('check instead whether the broker is connected and at least one hub has been read') },
    body: async () => (await import('./running.ts')).health,
  }).doc(
    'print the health that the running daemon reports over HTTP; exit code 0 if the daemon needs no restart, otherwise 1; in the configuration, only http.host and http.port must be valid, because the daemon may still use the previous version; if the file is not valid YAML or JSON, searches its text for the http options, and uses the default of each option that is missing or invalid there',
  ),
  open: command({ flags: { config }, body: async () => (await import('./running.ts')).open }).doc(
    "print the page's address with the start-up token, which logs in a browser if no password is set",
  ),
  call: command({
    flags: { config, timeout: timeout('how long to wait for the answer') },
    positionals: {
      topic: argument('topic of the command, such as home/app/com.athom.hue/cmd/restart'),
      payload: optionalArgument('payload of the command; put -- before it if it begins with -'),
    },
    body: async () => (await import('./call.ts')).callCommand,
  }).doc('send a command to a running bridge through its broker and print the answer; fails unless the answer is ok'),
  'check-config': command({
    flags: { config, connect: given('also test the hubs and the broker, as doctor does') },
    body: async () => (await import('./check-config.ts')).checkConfig,
  }).doc('check the configuration and print its effective values, with secrets masked'),
  doctor: command({ flags: { config }, body: async () => (await import('./check-config.ts')).doctor }).doc(
    'test the configuration, the hubs, the broker and the permissions; print a fix for each problem',
  ),
  conformance: command({
    flags: conformanceFlags,
    body: async () => (await import('./conformance/conformance.ts')).conformance,
  }).doc('print the kind of hub at an address, and how it differs from the expected behaviour'),
  'hash-password': command({ flags: {}, body: async () => (await import('./hash-password.ts')).printHash }).doc(
    'read a password from standard input and print its hash for http.password',
  ),
  cleanup: command({ flags: cleanupFlags, body: async () => (await import('./cleanup.ts')).cleanupCommand }).doc(
    'clear all retained messages of a bridge on its broker; without --yes, only list these messages',
  ),
}

export type CommandName = keyof typeof commands
