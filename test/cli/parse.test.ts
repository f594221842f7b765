import { describe, expect, it } from 'vitest'
import { UsageError } from '../../src/base/errors.ts'
import { command, exitCodes, given, required, text } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands.ts'
import { parseCommandLine } from '../../src/cli/parse.ts'

const parse = (line: string) => parseCommandLine(line.split(' ').filter((word) => word !== ''))

describe('a command line', () => {
  it.each<[string, string, object]>([
    ['', 'run', {}],
    ['run', 'run', {}],
    ['--config a.yaml', 'run', { config: 'a.yaml' }],
    ['run --config=a.yaml', 'run', { config: 'a.yaml' }],
    ['demo', 'demo', {}],
    ['open', 'open', {}],
    ['open --config a.yaml', 'open', { config: 'a.yaml' }],
    ['demo --config a.yaml', 'demo', { config: 'a.yaml' }],
    ['health', 'health', { ready: false }],
    ['health --ready --config a.yaml', 'health', { ready: true, config: 'a.yaml' }],
    ['check-config --config a.yaml', 'check-config', { connect: false, config: 'a.yaml' }],
    ['call home/cmd/speak Hello', 'call', { topic: 'home/cmd/speak', payload: 'Hello', timeout: 15_000 }],
    [
      'call --timeout 2s --config a.yaml home/x/cmd/y -- -5',
      'call',
      { topic: 'home/x/cmd/y', payload: '-5', timeout: 2000, config: 'a.yaml' },
    ],
    ['call home/x/cmd/y -- -h', 'call', { topic: 'home/x/cmd/y', payload: '-h' }],
    ['call home/x/cmd/y -- --help', 'call', { topic: 'home/x/cmd/y', payload: '--help' }],
    ['emulate', 'emulate', { host: '127.0.0.1', 'api-key': [], app: [], simulated: false, 'no-rate-limit': false }],
    [
      'emulate --data d --store s --app one --app two --memory-limit 64MiB --cpu-limit 50 --speech-command say',
      'emulate',
      {
        data: 'd',
        store: 's',
        app: ['one', 'two'],
        'memory-limit': 64 * 1024 * 1024,
        'cpu-limit': 50,
        'speech-command': 'say',
      },
    ],
    ['emulate new-app com.example.x', 'emulate new-app', { id: 'com.example.x' }],
    ['emulate new-app com.example.x dir', 'emulate new-app', { id: 'com.example.x', folder: 'dir' }],
    [
      'emulate --host :: --port 0 --flavour older --api-key a=hub.app,hub --api-key b=hub.app.readonly --file f --apps 50 --crashes',
      'emulate',
      {
        host: '::',
        port: 0,
        flavour: 'older',
        'api-key': ['a=hub.app,hub', 'b=hub.app.readonly'],
        file: 'f',
        apps: 50,
        crashes: true,
      },
    ],
    [
      'emulate --flavour self-hosted --no-rate-limit --control-port 0',
      'emulate',
      { flavour: 'self-hosted', 'no-rate-limit': true, 'control-port': 0 },
    ],
    [
      'emulate keys create --scope hub.app --scope hub.speech --data d --name tablet',
      'emulate keys create',
      { data: 'd', scope: ['hub.app', 'hub.speech'], name: 'tablet' },
    ],
    ['emulate keys list --data d', 'emulate keys list', { data: 'd' }],
    ['emulate keys revoke 1a2b --data d', 'emulate keys revoke', { data: 'd', id: '1a2b' }],
  ])('%j is understood', (line, command, flags) => expect(parse(line)).toMatchObject({ command, flags }))

  it('asks for the version', () => expect(parse('--version')).toEqual({ command: 'version' }))

  it.each([
    ['rnu', /^unknown command "rnu"; did you mean run\?$/],
    ['emulte', /^unknown command "emulte"; did you mean emulate\?$/],
    ['cleanup --hub Attic', /^--hub: expected a hub name such as home: /],
    ['cleanup --hub attic --hub bridge', /^--hub: expected a hub name such as home: /],
    ['start', /^unknown command "start"; the commands are run, demo, .*cleanup$/],
    ['constructor', /^unknown command "constructor"/],
    ['run --confg x', /^unknown option "--confg"; did you mean --config\?$/],
    ['run --quiet', /^unknown option "--quiet"; see hub2mqtt run --help$/],
    ['demo --port 1', /^unknown option "--port"; see hub2mqtt demo --help$/],
    ['-c x', /^unknown option "-c"/],
    ['call home/app/a/cmd/set-setting/x -50', /^unknown option "-5"; put -- before a negative number$/],
    ['run extra', /^unexpected argument "extra"/],
    ['--config a run', /^unexpected argument "run"; the command comes first/],
    ['run --config', /argument missing; see hub2mqtt run --help$/],
    ['run --config=', /^--config needs a value/],
    ['run --config --version', /--config.*ambiguous/],
    ['emulate --apps -1', /^the value of --apps is ambiguous because it begins with a dash: write --apps=…/],
    ['emulate --apps=-1', /^--apps: expected a whole number from 0/],
    ['run --config a --config b', /^--config is given twice/],
    ['emulate --crashes=yes', /--crashes.*does not take an argument/],
    ['emulate --port http', /^--port: expected a whole number from 0 to 65535$/],
    ['emulate --port 65536', /^--port: expected/],
    ['emulate --port 1e3', /^--port: expected/],
    ['emulate --apps 100001', /^--apps: expected/],
    ['emulate keys', /^emulate keys: expected one of create, list, revoke to follow$/],
    ['emulate keys make --data d', /^emulate keys: expected one of create, list, revoke to follow$/],
    ['emulate keys lst', /^emulate keys: expected one of create, list, revoke to follow; did you mean list\?$/],
    ['emulate kyes', /^unexpected argument "kyes"; did you mean emulate keys\?$/],
    ['emulate new_ap x', /^unexpected argument "new_ap"; did you mean emulate new-app\?$/],
    ['emulate lamp', /^unexpected argument "lamp"; the command comes first/],
    ['keys list', /^unknown command "keys"/],
    ['emulate keys list', /^--data is missing$/],
    ['emulate keys create --data d', /^--scope is missing$/],
    ['emulate keys revoke --data d', /^id is missing; see hub2mqtt emulate keys revoke --help$/],
    ['emulate keys revoke 1a2b 3c4d --data d', /^too many arguments; see hub2mqtt emulate keys revoke --help$/],
    ['call home/x/cmd/y Hello World', /^too many arguments; put a payload in quotes$/],
    ['emulate --flavour new', /^--flavour: expected one of older, newer, self-hosted, reference$/],
    ['--version run', /^--version takes no other arguments$/],
    ['run --version', /^unknown option "--version"/],
  ])('%j is refused with a hint', (line, message) => {
    expect(() => parse(line)).toThrow(UsageError)
    expect(() => parse(line)).toThrow(message)
  })

  it.each(['emulate KEY=hub.app', 'KEY=hub.app', 'emulate --api-kye KEY=hub.app', 'emulate --api-kye=KEY=hub.app'])(
    'does not repeat a key that is in the wrong place: %s',
    (line) => {
      expect(() => parse(line)).toThrow(UsageError)
      expect(() => parse(line)).not.toThrow(/KEY/)
    },
  )

  it('is refused in one line, whatever it contains', () => {
    for (const argv of [['a\nb'], ['run', 'a\nb'], ['run', '--a\nb'], ['run', '']]) {
      expect(() => parseCommandLine(argv)).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.+$/) }))
    }
  })

  it('passes a command the values of its own flags and arguments, with the types of the table', async () => {
    const echo = command({
      flags: { url: required(text('URL', '')), yes: given('') },
      body:
        async () =>
        (_io, { url, yes }: { readonly url: string; readonly yes: boolean }) =>
          yes ? url.length : 0,
    }).doc('')
    const io = { env: {}, stdin: process.stdin, print() {}, warn() {} }
    expect(await echo.read(new Map(Object.entries({ url: ['abc'], yes: [''] }))).run(io)).toBe(3)
    const wrong = (_io: object, { url }: { readonly url: number }) => url
    // @ts-expect-error A string is not a number.
    command({ flags: { url: text('URL', '') }, body: async () => wrong })
  })
})

describe('help', () => {
  it.each(['--help', '-h', '--nonsense --help'])('for the program is printed for %s', (line) => {
    const result = parse(line)
    if (result.command !== 'help') throw new Error('no help')
    for (const name of Object.keys(commands)) expect(result.text).toContain(`  ${name}`)
    for (const { code, doc } of Object.values(exitCodes)) expect(result.text).toContain(`${code}  ${doc}`)
  })

  it.each(Object.entries(commands))('for %s lists each of its options', (name, { flags }) => {
    const result = parse(`${name} --help`)
    if (result.command !== 'help') throw new Error('no help')
    for (const flag of Object.keys(flags)) expect(result.text).toContain(`--${flag}`)
    expect(result.text).toContain('Exit codes:')
  })
})
