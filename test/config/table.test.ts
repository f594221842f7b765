import { describe, expect, expectTypeOf, it } from 'vitest'
import { label } from '../../src/config/addresses.ts'
import { list, map } from '../../src/config/collections.ts'
import { boolean, choice } from '../../src/config/format.ts'
import { merge } from '../../src/config/merge.ts'
import { hubOptions, options } from '../../src/config/options.ts'
import { duration } from '../../src/config/quantity.ts'
import { type AnyOption, defineOptions, environmentName, fileKeys, type Values } from '../../src/config/table.ts'

const later = defineOptions({
  'commands.allow': { doc: 'Names.', format: list(label), default: [] },
  'settings.publish': { doc: 'Names by app.', format: map(list(label)), default: new Map() },
  'deep.er.still': { doc: 'Nested.', format: boolean, default: true },
})

describe('the option table', () => {
  it('holds lists, maps and nested groups, and infers their types', () => {
    type Later = Values<typeof later>
    expectTypeOf<Later['commands']['allow']>().toEqualTypeOf<readonly string[]>()
    expectTypeOf<Later['settings']['publish']>().toEqualTypeOf<ReadonlyMap<string, readonly string[]>>()
    expectTypeOf<Later['deep']['er']['still']>().toEqualTypeOf<boolean>()
    const publish = new Map([['com.athom.hue', ['a', 'b']]])
    expect(merge(later, [new Map([['settings.publish', publish]])])).toEqual({
      commands: { allow: [] },
      settings: { publish },
      deep: { er: { still: true } },
    })
  })

  it('refuses a default of the wrong type, and a required option with a default', () => {
    // @ts-expect-error not one of the choices
    defineOptions({ a: { doc: '', format: choice('x', 'y'), default: 'z' } })
    // @ts-expect-error required means that there is none
    defineOptions({ a: { doc: '', format: boolean, default: true, required: true } })
    // @ts-expect-error neither required nor with a default
    defineOptions({ a: { doc: '', format: boolean } })
  })

  it('notices a default that its own format refuses', () => {
    const broken = defineOptions({ wait: { doc: '', format: duration(1000, 2000), default: 5 } })
    expect(() => merge(broken, [])).toThrow('expected a duration')
  })

  it('has a sentence and a good example or default for every option', () => {
    for (const option of [...Object.values<AnyOption>(hubOptions), ...Object.values<AnyOption>(options)]) {
      expect(option.doc).toMatch(/^[A-Z].*\.$/)
      const shown = option.required ? null : option.format.show(option.default)
      const parsed = option.format.parse(shown ?? option.example, { resolvePath: (path) => path })
      expect(parsed).toMatchObject({ ok: true })
    }
  })

  it('names variables by path, and files of secrets beside them', () => {
    expect(environmentName('mqtt.base_topic')).toBe('HUB2MQTT_MQTT_BASE_TOPIC')
    expect(fileKeys(options)).toContain('mqtt.password_file')
    expect(fileKeys(options)).not.toContain('mqtt.username_file')
  })
})
