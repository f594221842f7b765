import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { hubOptions, options } from '../../src/config/options.ts'
import { fillSections } from '../../src/tooling/docs/generate.ts'
import { exampleConfig } from '../../src/tooling/docs/options.ts'
import { load, PEM, PEM_KEY } from './support.ts'

const pems = { 'ca.pem': PEM, 'client.pem': PEM, 'client-key.pem': PEM_KEY }

describe('the example configuration', () => {
  it('loads unchanged, with the default values', () => {
    const { config } = load({ yaml: exampleConfig() })
    const plain = load({ env: { HUB2MQTT_HUB_URL: 'http://192.168.1.20', HUB2MQTT_HUB_API_KEY: 'put-the-key-here' } })
    expect(config).toEqual(plain.config)
  })

  it('loads with every option uncommented', () => {
    const yaml = exampleConfig().replaceAll(/^( *)#(?! \S)/gm, '$1')
    // Keep only one way to join a fleet: the example file shows all ways, but only one is permitted.
    const inOneWay = yaml.replaceAll(/^ +(?:shard|index|count): .*\n/gm, '')
    expect(load({ yaml: inOneWay, files: pems }).config.mqtt).toMatchObject({
      url: ['mqtt://broker:1883'],
      client_id: 'hub2mqtt-home',
    })
    const written: unknown = parse(yaml)
    for (const path of Object.keys(options)) expect(written).toHaveProperty(path.split('.'))
    for (const path of Object.keys(hubOptions)) expect(written).toHaveProperty(['hubs', 'home', path])
  })
})

describe('the generated sections', () => {
  const known = { one: () => 'new', two: () => '$& $1' }
  const marked = (one: string, two: string) =>
    `a\n<!-- generated:one -->\n${one}\n<!-- /generated:one -->\nb\n<!-- generated:two -->\n${two}\n<!-- /generated:two -->\n`

  it('are inserted between their markers, and nothing else changes', () => {
    expect(fillSections(marked('old', ''), known)).toBe(marked('new', '$& $1'))
    expect(fillSections(marked('new', '$& $1'), known)).toBe(marked('new', '$& $1'))
  })

  it.each([
    ['missing', 'no markers', 'expected <!-- generated:one -->'],
    ['not closed', '<!-- generated:one -->', 'once each'],
    ['doubled', marked('', '') + marked('', ''), 'once each'],
    ['unknown', `${marked('', '')}<!-- generated:three -->`, 'nothing generates the section three'],
  ])('are refused when a marker is %s', (_, document, message) => {
    expect(() => fillSections(document, known)).toThrow(message)
  })
})
