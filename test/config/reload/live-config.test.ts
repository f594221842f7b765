import { describe, expect, test } from 'vitest'
import { EMPTY_MS, LiveConfig } from '../../../src/config/live-config.ts'
import { ConfigError } from '../../../src/config/mistakes.ts'
import { createLog, type Log } from '../../../src/observability/log.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { HUB, load, mistakesOf } from '../support.ts'

function recordedLog() {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  return { lines, log: createLog({ level: 'debug', format: 'json', secrets: [], destination }) }
}

/** Returns the configuration in a text that may change and have mistakes. */
function liveOf(yaml: () => string, log: Log): LiveConfig {
  const source = () => {
    const mistakes = mistakesOf({ yaml: yaml() })
    if (mistakes.length > 0) throw new ConfigError(mistakes)
    return load({ yaml: yaml() })
  }
  return new LiveConfig(source(), source, log, new FakeClock())
}

test('any exception from the sources of the configuration changes nothing and is logged', () => {
  const { lines, log } = recordedLog()
  const { config } = load({ yaml: HUB })
  const broken = () => {
    throw new RangeError('of a kind that nobody thought of')
  }
  const live = new LiveConfig({ config }, broken, log, new FakeClock())
  const reloads: unknown[] = []
  live.start((reloaded) => reloads.push(reloaded))
  live.reload()
  expect(reloads).toEqual([undefined])
  expect(live.renewKey('home')).toBe(false)
  expect(live.credentials()).toEqual({ username: undefined, password: undefined })
  expect(live.value).toBe(config)
  expect(lines.join()).toContain('of a kind that nobody thought of')
  expect(lines.join()).toContain('invalid configuration')
})

test.each([
  ['the broker', 'mqtt', 'url: mqtt://broker', 'url: mqtt://other', 'credentials', ''],
  ['NATS', 'fleet', 'nats: nats://one', 'nats: nats://other', 'natsCredentials', 'mqtt: { url: mqtt://broker }\n'],
] as const)(
  'credentials that %s refuses are read again, unless the address has changed',
  (_, section, same, other, read, more) => {
    let given = { address: same as string, password: 'first' }
    const source = () => {
      const { address, password } = given
      return load({ yaml: `${section}: { ${address}, username: me, password: ${password} }\n${more}${HUB}`, files: {} })
    }
    const { log } = recordedLog()
    const live = new LiveConfig(source(), source, log, new FakeClock())
    given = { address: other, password: 'of-another' }
    expect(live[read]()).toEqual({ username: 'me', password: 'first' })
    given = { address: same, password: 'second' }
    expect(live[read]()).toEqual({ username: 'me', password: 'second' })
    expect(live.value[section].password).toBe('second')
  },
)

test('a new key that cannot be read because of mistakes elsewhere is reported once', () => {
  const { lines, log } = recordedLog()
  let yaml = HUB
  const live = liveOf(() => yaml, log)
  const warned = () => lines.filter((line) => line.includes('"level":"warn"'))
  yaml = `${HUB}commands: { read_only: perhaps }\n`
  expect([live.renewKey('home'), live.renewKey('home')]).toEqual([false, false])
  expect(warned()).toEqual([expect.stringContaining('commands.read_only')])
  yaml = HUB
  live.renewKey('home')
  yaml = `${HUB}commands: { read_only: perhaps }\n`
  live.credentials()
  expect(warned()).toHaveLength(2)
})

test('a retry applies what is valid by now, and logs only mistakes that have changed', () => {
  const { lines, log } = recordedLog()
  let yaml = HUB
  const live = liveOf(() => yaml, log)
  const reloads: unknown[] = []
  live.start((reloaded) => reloads.push(reloaded !== undefined))
  const refused = () => lines.filter((line) => line.includes('stays in effect')).length
  yaml = `${HUB}commands: { read_only: perhaps }\n`
  expect(live.reload()).toBe(false)
  expect([live.reload(true), live.reload(true), refused()]).toEqual([false, false, 1])
  yaml = `${HUB}log: { level: perhaps }\n`
  expect([live.reload(true), live.reload(true), refused()]).toEqual([false, false, 2])
  yaml = `${HUB}commands: { read_only: true }\n`
  expect(live.reload(true)).toBe(true)
  expect(live.value.commands.read_only).toBe(true)
  expect(reloads).toEqual([false, true])
  yaml = `${HUB}log: { level: perhaps }\n`
  expect([live.reload(true), refused()]).toEqual([false, 3])
})

describe('a folder of hubs that has become empty', () => {
  const FILES = { attic: 'url: http://192.168.1.1\napi_key: key-of-the-attic\n', cellar: HUB }

  /** Creates a live configuration whose `hubs_dir` contains these files. `folder.files = null` makes it unreadable. */
  function holding(...files: (keyof typeof FILES)[]) {
    const { lines, log } = recordedLog()
    const clock = new FakeClock()
    const folder: { files: (keyof typeof FILES)[] | null } = { files }
    const rest = { yaml: '' }
    const read = () => {
      if (folder.files === null)
        throw new ConfigError(mistakesOf({ yaml: 'hubs_dir: /nowhere/at/all\n', onDisk: true }))
      const inFolder = folder.files.map((name) => [`hubs/${name}.yaml`, FILES.attic])
      return load({ yaml: `hubs_dir: hubs\n${rest.yaml}`, files: Object.fromEntries(inFolder) })
    }
    const live = new LiveConfig(read(), read, log, clock)
    live.start(() => {})
    const hubs = () => Object.keys(live.value.hubs)
    const said = () => lines.filter((line) => line.includes('has no files')).length
    const reload = (next: (keyof typeof FILES)[] | null) => {
      folder.files = next
      live.reload()
    }
    return { live, clock, hubs, said, reload, rest, lines }
  }

  test('keeps its hubs, but the rest of the configuration is applied immediately', async () => {
    const { live, clock, hubs, reload, rest, lines } = holding('attic')
    reload([])
    rest.yaml = 'commands: { read_only: true }\nhubs: { barn: { url: http://192.168.1.2, api_key: first } }\n'
    reload([])
    expect(live.value.commands.read_only).toBe(true)
    expect(hubs()).toEqual(['attic', 'barn'])
    rest.yaml = rest.yaml.replace('first', 'second')
    reload([])
    expect(live.value.hubs['barn']?.api_key).toBe('second')
    expect(lines.join()).not.toContain('takes effect at the next start')
    await clock.advance(EMPTY_MS)
    expect(hubs()).toEqual(['barn'])
  })

  test('keeps all of its hubs for a minute, logs that once, and then has none', async () => {
    const { clock, hubs, said, reload } = holding('attic', 'cellar')
    reload([])
    await clock.advance(EMPTY_MS / 2)
    reload([])
    await clock.advance(EMPTY_MS / 2 - 1)
    expect(hubs()).toEqual(['attic', 'cellar'])
    await clock.advance(1)
    expect(hubs()).toEqual([])
    expect(said()).toBe(1)
    expect(clock.pending).toBe(0)
  })

  test('and is filled again within the minute has lost nothing; the next time, the minute starts again', async () => {
    const { clock, hubs, said, reload } = holding('attic')
    reload([])
    await clock.advance(EMPTY_MS - 1)
    reload(['attic'])
    await clock.advance(EMPTY_MS)
    expect(hubs()).toEqual(['attic'])
    reload([])
    await clock.advance(EMPTY_MS - 1)
    expect(hubs()).toEqual(['attic'])
    await clock.advance(1)
    expect(hubs()).toEqual([])
    expect(said()).toBe(2)
  })

  test('and cannot be read a minute later keeps its hubs until it is read as empty again', async () => {
    const { live, clock, hubs, reload } = holding('attic')
    reload([])
    reload(null)
    await clock.advance(3 * EMPTY_MS)
    expect(hubs()).toEqual(['attic'])
    expect(live.awaitsHubs).toBe(true)
    reload([])
    expect(hubs()).toEqual(['attic'])
    await clock.advance(EMPTY_MS)
    expect(hubs()).toEqual([])
  })

  test('does not include one that has lost only some of its hubs, or was never filled', async () => {
    const { clock, hubs, said, reload } = holding('attic', 'cellar')
    reload(['cellar'])
    expect(hubs()).toEqual(['cellar'])
    expect(said()).toBe(0)
    reload(['cellar', 'attic'])
    reload([])
    await clock.advance(EMPTY_MS)
    reload([])
    reload(['attic'])
    expect(hubs()).toEqual(['attic'])
    expect(said()).toBe(1)
  })

  test('leaves the hubs undecided for a minute after the start', async () => {
    const { live, clock, hubs, said, reload } = holding()
    expect([live.awaitsHubs, said()]).toEqual([true, 1])
    reload(['attic'])
    expect([live.awaitsHubs, hubs()]).toEqual([false, ['attic']])
    expect(clock.pending).toBe(0)
    const other = holding()
    await other.clock.advance(EMPTY_MS)
    expect(other.live.awaitsHubs).toBe(false)
  })
})
