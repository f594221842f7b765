/** One entity for each published setting, of the declared kind. */
import { tidy } from '../base/text.ts'
import type { PublishedSetting } from '../config/settings.ts'
import { encodeId } from '../contract/discovery.ts'
import type { EntityOf } from './entity.ts'
import { humanise } from './names.ts'
import { SENT_AS_TEXT, WHOLE_FLAG, WHOLE_TEXT, wholeNumber, wholeWord } from './templates.ts'

export function settingEntities(settings: ReadonlyMap<string, PublishedSetting> | undefined): EntityOf<'app'>[] {
  return [...(settings ?? [])].map(([name, setting]) => settingEntity(name, setting))
}

function settingEntity(name: string, setting: PublishedSetting): EntityOf<'app'> {
  const common = {
    device: 'app',
    key: `setting_${encodeId(name)}`,
    name: tidy(setting.name) ?? tidy(humanise(name)) ?? 'Setting',
    category: 'config',
    icon: 'mdi:tune',
    reads: 'setting',
    sends: 'set-setting',
    setting: name,
    doc: 'A setting that `settings.publish` names.',
  } as const
  switch (setting.type) {
    case 'switch':
      return { ...common, platform: 'switch', template: WHOLE_FLAG, on: 'true', off: 'false' }
    case 'number': {
      const { min, max, step } = setting
      const template = wholeNumber(min, max)
      return { ...common, platform: 'number', template, min, max, ...(step !== undefined && { step }) }
    }
    case 'select': {
      const { options } = setting
      return { ...common, platform: 'select', template: wholeWord(options), options, sendsAs: SENT_AS_TEXT }
    }
    case 'text':
      return { ...common, platform: 'text', template: WHOLE_TEXT, sendsAs: SENT_AS_TEXT }
    case 'password':
      return { ...common, platform: 'text', template: WHOLE_TEXT, sendsAs: SENT_AS_TEXT, mode: 'password' }
  }
}
