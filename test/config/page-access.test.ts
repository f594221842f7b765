import { describe, expect, it } from 'vitest'
import { describeConfig, secretsOf } from '../../src/config/describe.ts'
import { HUB, HUB_ENV, load, mistakesOf } from './support.ts'

const token = 'a-token-of-some-length'
const withTokens = (text: string) => `${HUB}http:\n  tokens: ${text}\n`

describe('the tokens', () => {
  it('are read from the file, a separate file or the environment, and are secret', () => {
    const one = [['grafana', { token, access: 'read' }]]
    const json = JSON.stringify({ grafana: { token, access: 'read' } })
    for (const loaded of [
      load({ yaml: withTokens(`{grafana: {token: ${token}, access: read}}`) }),
      load({ yaml: `${HUB}http:\n  tokens_file: secret.json\n`, files: { 'secret.json': json } }),
      load({ env: { ...HUB_ENV, HUB2MQTT_HTTP_TOKENS: json } }),
    ]) {
      expect([...loaded.config.http.tokens]).toEqual(one)
      expect(loaded.secrets).toContain(token)
      // A common word is not treated as a secret, because masking it would make the log unreadable.
      expect(loaded.secrets).not.toContain('read')
      expect(describeConfig(loaded.config)).not.toContain(token)
      expect(secretsOf(loaded.config)).toEqual(expect.arrayContaining([token, 'key-of-the-hub']))
    }
  })

  it.each([
    ['15 characters', 'x'.repeat(15), 1],
    ['16 characters', 'x'.repeat(16), 0],
    ['512 characters', 'x'.repeat(512), 0],
    ['513 characters', 'x'.repeat(513), 1],
    ['a space', `${token} x`, 1],
    ['a letter beyond ASCII', `${token}ü`, 1],
  ])('have 16 to 512 characters of ASCII without spaces: with %s', (_, given, mistakes) => {
    const yaml = withTokens(JSON.stringify({ x: { token: given, access: 'read' } }))
    expect(mistakesOf({ yaml })).toHaveLength(mistakes)
  })

  it.each([
    '{x: short}',
    '{x: {token: short, access: read}}',
    `{x: {token: ${token}}}`,
    `{x: {token: ${token}, access: all}}`,
    '[]',
  ])('are refused as %s, without any part of them in the message', (text) => {
    const mistakes = mistakesOf({ yaml: withTokens(text) })
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]).toMatch(/^http\.tokens/)
    expect(mistakes[0]).not.toContain(token)
  })

  const stray = 'kU8s0aT2n_0qYxZ-4e5T6o7k8e9n'
  const strays: unknown[] = [
    { [stray]: 'full' },
    { [stray]: null },
    { [stray]: { token: 'short', access: 'read' } },
    { [stray]: { token } },
    { x: { [stray]: 'full' } },
    { x: { token, access: 'read', [stray]: true } },
    { x: { token, access: { [stray]: 'read' } } },
    { x: { token, access: 'read', hunter2: true } },
    [{ [stray]: 'full' }],
  ]
  it.each(strays)('are not shown if one is written as a key by mistake: %j', (written) => {
    const json = JSON.stringify(written)
    for (const given of [
      { yaml: withTokens(json) },
      { yaml: `${HUB}http:\n  tokens_file: secret.json\n`, files: { 'secret.json': json } },
      { env: { ...HUB_ENV, HUB2MQTT_HTTP_TOKENS: json } },
    ]) {
      const mistakes = mistakesOf(given)
      expect(mistakes).toHaveLength(1)
      expect(mistakes[0]).toMatch(/^http\.tokens(_file)?(\.x|\[…\])? \(.*expected /)
      expect(mistakes[0]).not.toMatch(/kU8s|hunter2/)
    }
  })

  it('are identified in an error by their names, if those are shorter than any token', () => {
    const [line] = mistakesOf({ yaml: withTokens('{node-red: {token: short, access: read}}') })
    expect(line).toMatch(/^http\.tokens\["node-red"\] \(hub2mqtt\.yaml line 6\): expected \{token: /)
  })

  it('permit other options whose names contain a level of access', () => {
    const yaml = `${withTokens(`{x: {token: ${token}, access: read}}`)}commands:\n  read_only: true\n`
    expect(mistakesOf({ yaml })).toEqual([])
  })

  it('are omitted if there are none', () => {
    expect(describeConfig(load({ yaml: HUB }).config)).toContain('tokens: {}')
  })
})

it.each(['seven77', 'scrypt$1$2$3', ''])('the password of the page is refused as %j', (password) => {
  const yaml = `${HUB}http:\n  password: ${JSON.stringify(password)}\n`
  expect(mistakesOf({ yaml })[0]).toMatch(/^http\.password .*at least 8 characters/)
})
