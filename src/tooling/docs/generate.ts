import { ExpectedError } from '../../base/errors.ts'
import { asyncapi } from './asyncapi.ts'
import { configSchema } from './config-schema.ts'
import * as emulator from './emulator.ts'
import { openapi, routesSection } from './openapi.ts'
import { exampleConfig, guardOptionsSection, optionsSection } from './options.ts'
import * as tables from './tables.ts'

type Generate = () => string

/** The generators of a page's sections, by the name in the markers: `<!-- generated:options -->` for `options`. */
type Sections = Readonly<Record<string, Generate>>

/** The generated sections by the path of their page. Each section occurs on only one page. */
export const pages: Readonly<Record<string, Sections>> = {
  'docs/configuration.md': { options: optionsSection },
  'docs/guardian.md': { options: guardOptionsSection },
  'docs/mqtt.md': { topics: tables.topicsSection, commands: tables.commandsSection, errors: tables.errorsSection },
  'docs/home-assistant.md': { entities: tables.entitiesSection },
  'docs/operations.md': { cli: tables.cliSection },
  'docs/http.md': { routes: routesSection },
  'docs/internals/conformance.md': { expectations: tables.expectationsSection },
  'docs/emulator.md': {
    operations: emulator.operationsSection,
    'hub-file': emulator.hubFileSection,
    control: emulator.controlSection,
    behaviours: emulator.behavioursSection,
    manifest: emulator.manifestSection,
  },
}

/** The files that are generated as a whole, by path. */
export const files: Readonly<Record<string, Generate>> = {
  'config/hub2mqtt.schema.json': configSchema,
  'config/hub2mqtt.example.yaml': exampleConfig,
  'config/emulated-hub.schema.json': emulator.hubFileSchema,
  'config/app.schema.json': emulator.manifestSchema,
  'config/asyncapi.yaml': asyncapi,
  'config/openapi.json': openapi,
}

/** Replaces the text between the markers. @throws ExpectedError if a marker is missing, unknown or duplicated */
export function fillSections(page: string, known: Sections): string {
  const opened = [...page.matchAll(/<!-- generated:([\w-]+) -->/g)].map(([, name = '']) => name)
  const unknown = opened.find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) throw new ExpectedError(`nothing generates the section ${unknown}`)
  return Object.entries(known).reduce((text, [name, generate]) => {
    const begin = `<!-- generated:${name} -->`
    const end = `<!-- /generated:${name} -->`
    const [before, inside, ...more] = text.split(begin)
    const [, after, ...rest] = inside?.split(end) ?? []
    if (before === undefined || after === undefined || more.length > 0 || rest.length > 0) {
      throw new ExpectedError(`expected ${begin} and ${end} once each`)
    }
    return `${before}${begin}\n${generate()}\n${end}${after}`
  }, page)
}
