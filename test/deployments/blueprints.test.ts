/** Tests the YAML of the blueprints. Other tests load the blueprints into a real Home Assistant. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const FILES = globSync('config/home-assistant/blueprints/**/*.yaml')

test('there are three blueprints', () => {
  expect(FILES).toHaveLength(3)
})

test.each(FILES)('%s declares exactly the inputs that it uses', (file) => {
  const used = new Set<string>()
  const input = {
    tag: '!input',
    resolve: (name: string) => {
      used.add(name)
      return name
    },
  }
  const { blueprint, triggers, actions } = parse(readFileSync(file, 'utf8'), { customTags: [input] })
  expect(Object.keys(blueprint.input).sort()).toEqual([...used].sort())
  expect(blueprint).toMatchObject({ domain: 'automation', homeassistant: { min_version: '2025.4.0' } })
  expect([triggers, actions].map(Array.isArray)).toEqual([true, true])
})
