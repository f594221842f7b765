/** The commands: one table, from which reading, help and the documentation follow. */
import * as v from 'valibot'
import { hubUrl, topicPrefix } from '../config/addresses.ts'
import { hubName } from '../config/options.ts'
import { duration, size } from '../config/schemas.ts'
import type { Flags } from './flags.ts'

/** What a process of ours exits with. */
export const exitCodes = {
  ok: { code: 0, doc: 'done, or stopped as asked' },
  failed: { code: 1, doc: 'failed at run time, or doctor or conformance found a problem' },
  usage: { code: 2, doc: 'the command line or the configuration has a mistake' },
} as const

export interface Flag {
  readonly doc: string
  /** What stands after it in help; without it the option takes no value. */
  readonly value?: string
  readonly multiple?: true
  /** As help shows it. */
  readonly default?: string
}

export interface Positional {
  readonly name: string
  readonly doc: string
  readonly optional?: true
}

export interface Command<T> {
  readonly summary: string
  /** What may stand after the command without an option before it, the optional ones last. */
  readonly positionals?: readonly Positional[]
  readonly flags: Readonly<Record<string, Flag>>
  readonly read: (given: Flags) => T
}

/** A key that is not given is not there: `{}` or `{ [key]: value }`. */
function given<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  const result: { [P in K]?: T } = {}
  if (value !== undefined) result[key] = value
  return result
}

const config: Flag = {
  value: 'FILE',
  doc: 'configuration file, YAML or JSON; wins over HUB2MQTT_CONFIG',
}

const data: Flag = { value: 'DIR', doc: 'the data folder of the hub; it may be running' }

const percent = (value: number | undefined) => (value === undefined ? undefined : value / 100)

const MAX_APPS = 100_000
const CALL_TIMEOUT = duration('100ms', '10m')
const DEFAULT_CALL_TIMEOUT = '15s'
const EMULATOR = { host: '127.0.0.1', port: 8080, selfHostedPort: 4859, flavour: 'newer' } as const

function command<T extends { readonly command: string }>(row: Command<T>): Command<T> {
  return row
}

/** The first one is what runs when no command is named. */
export const commands = {
  run: command({
    summary: 'bridge the configured hubs to MQTT until stopped',
    flags: { config },
    read: (flags) => ({ command: 'run' as const, ...given('config', flags.text('config')) }),
  }),
  demo: command({
    summary: 'show everything without hardware: an emulated hub, an embedded broker and the bridge',
    flags: {
      config,
      broker: {
        value: 'URL',
        doc: 'use this broker, below hub2mqtt-demo and without discovery; clears everything at the end',
      },
    },
    read: (flags) => ({
      command: 'demo' as const,
      ...given('broker', flags.text('broker')),
      ...given('config', flags.text('config')),
    }),
  }),
  emulate: command({
    summary: 'run only the emulated hub; prints a line with its address when it is ready',
    flags: {
      host: { value: 'HOST', default: EMULATOR.host, doc: 'where to listen' },
      port: {
        value: 'N',
        default: `${EMULATOR.port}, ${EMULATOR.selfHostedPort} with --flavour self-hosted`,
        doc: 'port to listen on; 0 takes any free one',
      },
      flavour: {
        value: 'older|newer|self-hosted|reference',
        default: EMULATOR.flavour,
        doc: 'kind of hub',
      },
      'api-key': { value: 'KEY=SCOPE,SCOPE', multiple: true, doc: 'an accepted key, with its scopes' },
      file: { value: 'FILE', doc: 'hub, keys and apps from a file' },
      app: {
        value: 'DIR',
        multiple: true,
        doc: 'an app to run in its own folder, instead of the sample apps: prints its output, restarts it when its files change',
      },
      data: { value: 'DIR', doc: 'folder for the state of the hub; default: the state is lost at the end' },
      store: { value: 'DIR', doc: 'apps that can be installed: DIR/<id>/<version>/app.json' },
      'memory-limit': { value: 'SIZE', default: '256MiB', doc: 'memory above which an app is ended' },
      'cpu-limit': { value: 'PERCENT', default: '90', doc: 'part of a core above which an app is ended after 30 s' },
      'speech-command': { value: 'CMD', doc: 'command that speaks its last argument' },
      simulated: { doc: 'simulate the apps instead of running processes' },
      apps: { value: 'N', doc: 'number of simulated apps' },
      crashes: { doc: 'let a simulated app crash now and then' },
      'control-port': {
        value: 'N',
        doc: 'port on loopback to make the hub misbehave; 0 takes any free one; default: none',
      },
      'no-rate-limit': { doc: 'turn off the rate limit of newer hubs' },
    },
    read: (flags) => ({
      command: 'emulate' as const,
      host: flags.text('host') ?? EMULATOR.host,
      port:
        flags.integer('port', 0, 65_535) ??
        (flags.text('flavour') === 'self-hosted' ? EMULATOR.selfHostedPort : EMULATOR.port),
      ...(flags.has('no-rate-limit') && { rateLimit: false }),
      apiKeys: flags.all('api-key'),
      appFolders: flags.all('app'),
      limits: {
        ...given('memory', flags.parsed('memory-limit', size('64MiB', '4096MiB'))),
        ...given('cpu', percent(flags.integer('cpu-limit', 1, 100))),
      },
      simulated: flags.has('simulated'),
      crashes: flags.has('crashes'),
      ...given('data', flags.text('data')),
      ...given('store', flags.text('store')),
      ...given('speechCommand', flags.text('speech-command')),
      // Left out unless given: a file may name another.
      ...given('flavour', flags.choice('flavour', ['older', 'newer', 'self-hosted', 'reference'])),
      ...given('file', flags.text('file')),
      ...given('apps', flags.integer('apps', 0, MAX_APPS)),
      ...given('controlPort', flags.integer('control-port', 0, 65_535)),
    }),
  }),
  'emulate new-app': command({
    summary: 'create a folder with a working app and its test',
    positionals: [
      { name: 'id', doc: 'of the app, such as com.example.lights' },
      { name: 'folder', doc: 'where; default: a new one with the id as its name', optional: true },
    ],
    flags: {},
    read: (flags) => ({
      command: 'emulate new-app' as const,
      id: flags.positionals[0] ?? '',
      ...given('folder', flags.positionals[1]),
    }),
  }),
  'emulate keys create': command({
    summary: 'create an API key of an emulated hub and print it once',
    flags: {
      data,
      scope: { value: 'SCOPE', multiple: true, doc: 'a permission, such as hub.app' },
      name: { value: 'TEXT', doc: 'its purpose, shown in the list' },
    },
    read: (flags) => ({
      command: 'emulate keys create' as const,
      data: flags.required('data'),
      scopes: flags.requiredAll('scope'),
      name: flags.text('name') ?? '',
    }),
  }),
  'emulate keys list': command({
    summary: 'list the API keys of an emulated hub: id, creation time, scopes, name',
    flags: { data },
    read: (flags) => ({ command: 'emulate keys list' as const, data: flags.required('data') }),
  }),
  'emulate keys revoke': command({
    summary: 'revoke an API key of an emulated hub; its sessions end within a second',
    positionals: [{ name: 'id', doc: 'of the key, as the list shows it' }],
    flags: { data },
    read: (flags) => ({
      command: 'emulate keys revoke' as const,
      data: flags.required('data'),
      id: flags.positionals[0] ?? '',
    }),
  }),
  health: command({
    summary: 'print the health of the running daemon; exit code 0 if it needs no restart, else 1',
    flags: { config, ready: { doc: 'check instead whether the broker is connected and a hub has been read' } },
    read: (flags) => ({
      command: 'health' as const,
      ready: flags.has('ready'),
      ...given('config', flags.text('config')),
    }),
  }),
  open: command({
    summary: "print the page's address with the start-up token, which logs a browser in if no password is set",
    flags: { config },
    read: (flags) => ({ command: 'open' as const, ...given('config', flags.text('config')) }),
  }),
  call: command({
    summary: 'send a command to a running bridge through its broker and print the answer; fails unless it is ok',
    positionals: [
      { name: 'topic', doc: 'of the command, such as home/app/com.athom.hue/cmd/restart' },
      { name: 'payload', doc: 'what the command takes; after -- if it begins with -', optional: true },
    ],
    flags: {
      config,
      timeout: {
        value: 'DURATION',
        default: DEFAULT_CALL_TIMEOUT,
        doc: 'how long to wait for the answer',
      },
    },
    read: (flags) => ({
      command: 'call' as const,
      topic: flags.positionals[0] ?? '',
      payload: flags.positionals[1] ?? '',
      timeoutMs: flags.parsed('timeout', CALL_TIMEOUT) ?? v.parse(CALL_TIMEOUT, DEFAULT_CALL_TIMEOUT),
      ...given('config', flags.text('config')),
    }),
  }),
  'check-config': command({
    summary: 'check the configuration and print the effective one, secrets masked',
    flags: { config, connect: { doc: 'also test the hubs and the broker, as doctor does' } },
    read: (flags) => ({
      command: 'check-config' as const,
      connect: flags.has('connect'),
      ...given('config', flags.text('config')),
    }),
  }),
  doctor: command({
    summary: 'test the configuration, the hubs, the broker and the permissions; print a fix for each problem',
    flags: { config },
    read: (flags) => ({ command: 'doctor' as const, ...given('config', flags.text('config')) }),
  }),
  conformance: command({
    summary: 'print what kind of hub answers at an address, and how it differs from the expected behaviour',
    flags: {
      url: { value: 'URL', doc: 'address of the hub' },
      key: { value: 'KEY', doc: 'its API key; others on this machine may see it, so prefer --key-file' },
      'key-file': { value: 'FILE', doc: 'file with the key; default: HUB2MQTT_HUB_API_KEY' },
      writes: { doc: 'also test changes, on the app that --app names; restores it at the end' },
      app: { value: 'ID', doc: 'the app to test; default: a running one' },
      downgrade: { value: 'VERSION', doc: 'with --writes: the lower version to install, by default 1.0.0' },
      limits: { doc: 'also send six requests at once, to see how the hub limits them' },
      json: { doc: 'print the report as JSON' },
      timeout: { value: 'DURATION', default: DEFAULT_CALL_TIMEOUT, doc: 'how long to wait for each answer' },
    },
    read: (flags) => ({
      command: 'conformance' as const,
      url: flags.parsed('url', hubUrl),
      writes: flags.has('writes'),
      limits: flags.has('limits'),
      json: flags.has('json'),
      timeoutMs: flags.parsed('timeout', CALL_TIMEOUT) ?? v.parse(CALL_TIMEOUT, DEFAULT_CALL_TIMEOUT),
      ...given('key', flags.text('key')),
      ...given('keyFile', flags.text('key-file')),
      ...given('app', flags.text('app')),
      ...given('downgrade', flags.text('downgrade')),
    }),
  }),
  'hash-password': command({
    summary: 'read a password from standard input, print its hash for http.password',
    flags: {},
    read: () => ({ command: 'hash-password' as const }),
  }),
  cleanup: command({
    summary: 'clear every retained message of a bridge from its broker; without --yes, only list them',
    flags: {
      config,
      yes: { doc: 'clear the messages' },
      'base-topic': { value: 'TOPIC', doc: 'the former base topic, instead of mqtt.base_topic' },
      prefix: { value: 'TOPIC', doc: 'the former prefix, instead of discovery.prefix' },
      hub: { value: 'NAME', multiple: true, doc: 'a former hub that the broker no longer lists' },
    },
    read: (flags) => ({
      command: 'cleanup' as const,
      yes: flags.has('yes'),
      hubs: flags.parsedAll('hub', hubName),
      ...given('baseTopic', flags.parsed('base-topic', topicPrefix)),
      ...given('prefix', flags.parsed('prefix', topicPrefix)),
      ...given('config', flags.text('config')),
    }),
  }),
}

export type CommandName = keyof typeof commands
export type CommandRequest = ReturnType<(typeof commands)[CommandName]['read']>
