/** Values of `package.json` that other files repeat, because they cannot read `package.json`. */

import manifest from '../../../package.json' with { type: 'json' }
import { ExpectedError } from '../../base/errors.ts'

const { version, description, homepage } = manifest

const address = new URL(homepage)
address.hash = ''

/** GitHub has a central registry; other hosts have a registry next to the repository. */
const registry = address.host === 'github.com' ? 'ghcr.io' : `registry.${address.host}`

const image = `${registry}${address.pathname.toLowerCase()}`

/** `{}` in the text stands for the value. The text must occur at least once. */
export type Copy = readonly [text: string, value: string]

const OWN_TAG: Copy = ['hub2mqtt:{}', version]

/** The copies by the path of the file that contains them. */
export const copies: Readonly<Record<string, readonly Copy[]>> = {
  'package-lock.json': [
    ['"name": "hub2mqtt",\n  "version": "{}"', version],
    ['"name": "hub2mqtt",\n      "version": "{}"', version],
  ],
  Dockerfile: [
    ['ARG VERSION={}', version],
    ['image.description="{}"', description],
    ['image.source="{}"', address.href],
  ],
  'docker-compose.yml': [['IMAGE:-hub2mqtt:{}}', version]],
  'config/kubernetes/hub2mqtt.yaml': [OWN_TAG],
  'repository.yaml': [['\nurl: {}', address.href]],
  'config/home-assistant-app/config.yaml': [
    ['version: "{}"', version],
    ['\nurl: {}', address.href],
    ['\nimage: {}', `${image}-home-assistant`],
  ],
  'config/home-assistant-app/DOCS.md': [
    ['`{}`, the address of this project', address.href],
    ['({}/blob/main/docs/install.md#', address.href],
  ],
  'config/systemd/hub2mqtt.service': [['hub2mqtt-{}.tgz', version]],
  'docs/install.md': [OWN_TAG, ['hub2mqtt-{}.tgz', version]],
}

/** @throws ExpectedError if a copy is missing */
export function fillCopies(text: string, wanted: readonly Copy[]): string {
  return wanted.reduce((filled, [around, value]) => {
    const [before = '', after = ''] = around.split('{}').map(RegExp.escape)
    // A quoted value may contain spaces. Any other value ends before a space, or before the text that follows it.
    const inside = around.includes('{}"') ? '[^"\\n]*' : '[^\\s`"}]+?'
    const pattern = new RegExp(`(${before})${inside}(?=${after === '' ? '[\\s`"}]|$' : after})`, 'g')
    if (filled.search(pattern) === -1) throw new ExpectedError(`expected ${around}`)
    return filled.replaceAll(pattern, (_all, prefix: string) => prefix + value)
  }, text)
}
