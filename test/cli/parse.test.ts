import { describe, expect, expectTypeOf, it } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import { type CommandLine, exitCodes, parseCommandLine, UsageError } from '../../src/cli/parse.ts'

const parse = (line: string) => parseCommandLine(line.split(' ').filter((word) => word !== ''))

/** What an emulated hub is told unless something is given. */
const PLAIN = { apiKeys: [], appFolders: [], limits: {}, simulated: false, crashes: false }

describe('a command line', () => {
  it.each<[string, CommandLine]>([
    ['', { command: 'run' }],
    ['run', { command: 'run' }],
    ['--config a.yaml', { command: 'run', config: 'a.yaml' }],
    ['run --config=a.yaml', { command: 'run', config: 'a.yaml' }],
    ['demo', { command: 'demo' }],
    ['open', { command: 'open' }],
    ['open --config a.yaml', { command: 'open', config: 'a.yaml' }],
    ['demo --config a.yaml', { command: 'demo', config: 'a.yaml' }],
    ['health', { command: 'health', ready: false }],
    ['health --ready --config a.yaml', { command: 'health', ready: true, config: 'a.yaml' }],
    ['check-config --config a.yaml', { command: 'check-config', connect: false, config: 'a.yaml' }],
    ['--version', { command: 'version' }],
    ['call home/cmd/speak Hello', { command: 'call', topic: 'home/cmd/speak', payload: 'Hello', timeoutMs: 15_000 }],
    [
      'call --timeout 2s --config a.yaml home/x/cmd/y -- -5',
      { command: 'call', topic: 'home/x/cmd/y', payload: '-5', timeoutMs: 2000, config: 'a.yaml' },
    ],
    ['emulate', { command: 'emulate', host: '127.0.0.1', port: 8080, ...PLAIN }],
    [
      'emulate --data d --store s --app one --app two --memory-limit 64MiB --cpu-limit 50 --speech-command say',
      {
        command: 'emulate',
        host: '127.0.0.1',
        port: 8080,
        ...PLAIN,
        data: 'd',
        store: 's',
        appFolders: ['one', 'two'],
        limits: { memory: 64 * 1024 * 1024, cpu: 0.5 },
        speechCommand: 'say',
      },
    ],
    ['emulate new-app com.example.x', { command: 'emulate new-app', id: 'com.example.x' }],
    ['emulate new-app com.example.x dir', { command: 'emulate new-app', id: 'com.example.x', folder: 'dir' }],
    [
      'emulate --host :: --port 0 --flavour older --api-key a=hub.app,hub --api-key b=hub.app.readonly --file f --apps 50 --crashes',
      {
        command: 'emulate',
        ...PLAIN,
        host: '::',
        port: 0,
        flavour: 'older',
        apiKeys: ['a=hub.app,hub', 'b=hub.app.readonly'],
        file: 'f',
        apps: 50,
        crashes: true,
      },
    ],
    [
      'emulate --flavour self-hosted --no-rate-limit --control-port 0',
      {
        command: 'emulate',
        host: '127.0.0.1',
        port: 4859,
        flavour: 'self-hosted',
        ...PLAIN,
        rateLimit: false,
        controlPort: 0,
      },
    ],
    [
      'emulate keys create --scope hub.app --scope hub.speech --data d --name tablet',
      { command: 'emulate keys create', data: 'd', scopes: ['hub.app', 'hub.speech'], name: 'tablet' },
    ],
    ['emulate keys list --data d', { command: 'emulate keys list', data: 'd' }],
    ['emulate keys revoke 1a2b --data d', { command: 'emulate keys revoke', data: 'd', id: '1a2b' }],
  ])('%j is understood', (line, wanted) => expect(parse(line)).toEqual(wanted))

  it.each([
    ['rnu', /^unknown command "rnu"; did you mean run\?$/],
    ['emulte', /^unknown command "emulte"; did you mean emulate\?$/],
    ['cleanup --hub Attic', /^--hub: expected a hub name such as home: /],
    ['cleanup --hub attic --hub bridge', /^--hub: expected a hub name such as home: /],
    ['start', /^unknown command "start"; there are run, demo, .*cleanup$/],
    ['constructor', /^unknown command "constructor"/],
    ['run --confg x', /^unknown option "--confg"; did you mean --config\?$/],
    ['run --quiet', /^unknown option "--quiet"; see hub2mqtt run --help$/],
    ['demo --port 1', /^unknown option "--port"; see hub2mqtt demo --help$/],
    ['-c x', /^unknown option "-c"/],
    ['run extra', /^unexpected argument "extra"/],
    ['--config a run', /^unexpected argument "run"; a command stands first/],
    ['run --config', /argument missing; see hub2mqtt run --help$/],
    ['run --config=', /^--config needs a value/],
    ['run --config --version', /--config.*ambiguous/],
    ['run --config a --config b', /^--config is given twice/],
    ['emulate --crashes=yes', /--crashes.*does not take an argument/],
    ['emulate --port http', /^--port: expected a whole number from 0 to 65535$/],
    ['emulate --port 65536', /^--port: expected/],
    ['emulate --port 1e3', /^--port: expected/],
    ['emulate --apps 100001', /^--apps: expected/],
    ['emulate keys', /^emulate keys: one of create, list, revoke has to follow$/],
    ['emulate keys make --data d', /^emulate keys: one of create, list, revoke has to follow$/],
    ['emulate keys lst', /^emulate keys: one of create, list, revoke has to follow; did you mean list\?$/],
    ['emulate kyes', /^unexpected argument "kyes"; did you mean emulate keys\?$/],
    ['emulate new_ap x', /^unexpected argument "new_ap"; did you mean emulate new-app\?$/],
    ['emulate lamp', /^unexpected argument "lamp"; a command stands first/],
    ['keys list', /^unknown command "keys"/],
    ['emulate keys list', /^--data is missing$/],
    ['emulate keys create --data d', /^--scope is missing$/],
    ['emulate keys revoke --data d', /^id missing; see hub2mqtt emulate keys revoke --help$/],
    ['emulate --flavour new', /^--flavour: expected one of older, newer, self-hosted, reference$/],
    ['--version run', /^--version stands alone$/],
    ['run --version', /^unknown option "--version"/],
  ])('%j is refused with a hint', (line, message) => {
    expect(() => parse(line)).toThrow(UsageError)
    expect(() => parse(line)).toThrow(message)
  })

  it.each(['emulate KEY=hub.app', 'KEY=hub.app', 'emulate --api-kye KEY=hub.app', 'emulate --api-kye=KEY=hub.app'])(
    'does not repeat a key that stands in the wrong place: %s',
    (line) => {
      expect(() => parse(line)).toThrow(UsageError)
      expect(() => parse(line)).not.toThrow(/KEY/)
    },
  )

  it('is refused in one line, whatever it holds', () => {
    for (const argv of [['a\nb'], ['run', 'a\nb'], ['run', '--a\nb'], ['run', '']]) {
      expect(() => parseCommandLine(argv)).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.+$/) }))
    }
  })

  it('gives each command its own type', () => {
    expectTypeOf<Extract<CommandLine, { command: 'emulate' }>['flavour']>().toEqualTypeOf<
      'older' | 'newer' | 'self-hosted' | 'reference' | undefined
    >()
    expectTypeOf<Extract<CommandLine, { command: 'run' }>['config']>().toEqualTypeOf<string | undefined>()
  })
})

describe('help', () => {
  it.each(['--help', '-h', '--nonsense --help'])('for the program comes with %s', (line) => {
    const result = parse(line)
    if (result.command !== 'help') throw new Error('no help')
    for (const name of Object.keys(commands)) expect(result.text).toContain(`  ${name}`)
    for (const { code, doc } of Object.values(exitCodes)) expect(result.text).toContain(`${code}  ${doc}`)
  })

  it.each(Object.entries(commands))('for %s tells each of its options', (name, { flags }) => {
    const result = parse(`${name} --help`)
    if (result.command !== 'help') throw new Error('no help')
    for (const flag of Object.keys(flags)) expect(result.text).toContain(`--${flag}`)
    expect(result.text).toContain('Exit codes:')
  })
})
