import { describe, expect, test } from 'vitest'
import { HUB, load, mistakesOf } from './support.ts'

const yaml = 'hubs_dir: hubs\n'
const hub = (number: number) => `url: http://192.168.1.${number}\napi_key: key-of-hub-${number}\n`

describe('a folder of hubs', () => {
  test('names each hub after its file, in addition to the hubs of the configuration', () => {
    const files = {
      'hubs/attic.yaml': hub(1),
      'hubs/cellar.yml': hub(2),
      'hubs/shed.json': '{"url": "http://192.168.1.3", "api_key": "key-of-hub-3"}',
    }
    const { config, secrets } = load({ yaml: `${yaml}${HUB}`, files })
    expect(Object.entries(config.hubs).map(([name, { url }]) => `${name} ${url}`)).toEqual([
      'home http://192.168.1.20',
      'attic http://192.168.1.1',
      'cellar http://192.168.1.2',
      'shed http://192.168.1.3',
    ])
    expect(secrets).toContain('key-of-hub-3')
  })

  test('resolves the paths in a file relative to that file', () => {
    const files = {
      'hubs/attic.yaml': 'url: http://192.168.1.1\napi_key_file: attic.key\n',
      'hubs/attic.key': 'its-key',
    }
    expect(load({ yaml, files }).config.hubs['attic']).toMatchObject({ api_key: 'its-key' })
  })

  test('ignores other files, and may be empty', () => {
    const files = { 'hubs/.attic.yaml': hub(1), 'hubs/read.me': 'hello', 'hubs/attic.yaml~': hub(1) }
    expect(load({ yaml, files }).config.hubs).toEqual({})
  })

  test.each([
    [
      'an unknown option',
      { 'hubs/attic.yaml': `${hub(1)}colour: red\n` },
      /hubs\.attic\.colour \(.*attic\.yaml line 3\)/,
    ],
    ['a missing key', { 'hubs/attic.yaml': 'url: http://192.168.1.1\n' }, /hubs\.attic\.api_key.*missing/],
    ['an invalid name', { 'hubs/The Attic.yaml': hub(1) }, /The Attic\.yaml: expected a hub name/],
    ['a name twice', { 'hubs/attic.yaml': hub(1), 'hubs/attic.json': '{}' }, /hubs\.attic: is in .*json and in .*yaml/],
    [
      'one that the configuration has too',
      { 'hubs/home.yaml': hub(1) },
      /hubs\.home: is in hub2mqtt\.yaml.* and in .*home\.yaml/,
    ],
    ['invalid YAML', { 'hubs/attic.yaml': 'url: [' }, /attic\.yaml line \d/],
  ])('is refused for %s', (_, files, line) => {
    const lines = mistakesOf({ yaml: _.startsWith('one') ? `${yaml}${HUB}` : yaml, files })
    expect(lines.join('\n')).toMatch(line)
    expect(lines.join('\n')).not.toContain('key-of-hub')
  })

  test('that does not exist is an error', () => {
    expect(mistakesOf({ yaml: 'hubs_dir: /nowhere/at/all\n', onDisk: true })).toEqual([
      'hubs_dir (hub2mqtt.yaml line 1): the folder that it names cannot be read: there is no such file',
    ])
    expect(mistakesOf({ env: { HUB2MQTT_HUBS_DIR: '/dev/null' }, onDisk: true })).toEqual([
      'hubs_dir (HUB2MQTT_HUBS_DIR): the folder that it names cannot be read: it is not a directory',
    ])
  })
})
