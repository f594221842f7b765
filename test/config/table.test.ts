import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { hubOptions, options } from '../../src/config/options.ts'
import { boolean, choice, duration, label, list, map } from '../../src/config/schemas.ts'
import { defineOptions, merge, type Option, type Values } from '../../src/config/table.ts'
import { maps } from './support.ts'

const later = defineOptions({
  'commands.allow': { doc: 'Names.', schema: list(label), default: [] },
  'settings.publish': { doc: 'Names by app.', schema: map(list(label), 'names by app'), default: new Map() },
  'deep.er.still': { doc: 'Nested.', schema: boolean, default: true },
  'deep.er.none': { doc: 'Nothing is a value too.', schema: label, default: null },
  'deep.wait': { doc: 'Written with its unit.', schema: duration('1s', '1m'), default: '2s' },
})

describe('the option table', () => {
  it('has lists, maps and nested groups, and infers their types', () => {
    type Later = Values<typeof later>
    expectTypeOf<Later['commands']['allow']>().toEqualTypeOf<readonly string[]>()
    expectTypeOf<Later['settings']['publish']>().toEqualTypeOf<ReadonlyMap<string, readonly string[]>>()
    expectTypeOf<Later['deep']['er']['still']>().toEqualTypeOf<boolean>()
    expectTypeOf<Later['deep']['er']['none']>().toEqualTypeOf<string | null>()
    expectTypeOf<Later['deep']['wait']>().toEqualTypeOf<number>()
    const publish = new Map([['com.athom.hue', ['a', 'b']]])
    expect(merge(later, [new Map([['settings.publish', publish]])])).toEqual({
      commands: { allow: [] },
      settings: { publish },
      deep: { er: { still: true, none: null }, wait: 2000 },
    })
  })

  it('refuses a default of the wrong type, and a required option with a default', () => {
    // @ts-expect-error not one of the choices
    defineOptions({ a: { doc: '', schema: choice(['x', 'y']), default: 'z' } })
    // @ts-expect-error a required option has no default
    defineOptions({ a: { doc: '', schema: boolean, default: true, required: true } })
    // @ts-expect-error an option is required or has a default
    defineOptions({ a: { doc: '', schema: boolean } })
  })

  it('detects a default that its own schema refuses', () => {
    const broken = defineOptions({ wait: { doc: '', schema: duration('1s', '2s'), default: '5s' } })
    expect(() => merge(broken, [])).toThrow('expected a duration')
  })

  it('has a sentence and a good example or default for every option', () => {
    for (const option of [...Object.values<Option>(hubOptions), ...Object.values<Option>(options)]) {
      expect(option.doc).toMatch(/^[A-Z].*\.$/)
      const written = option.default ?? option.example
      expect(v.safeParse(option.schema, maps(written)), option.doc).toMatchObject({ success: true })
    }
  })

  it('makes a live change depend only on options that exist', () => {
    for (const table of [hubOptions, options]) {
      for (const { live } of Object.values<Option>(table)) {
        if (typeof live === 'object') expect(Object.keys(table)).toContain(live.ifSame)
      }
    }
  })
})
