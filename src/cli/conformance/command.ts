/** `hub2mqtt conformance`: prints a report of a hub; exit code 0 if it can be worked with and the app is as it was. */
import * as v from 'valibot'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { readPlainText } from '../../base/read-plain.ts'
import { VERSION } from '../../base/version.ts'
import { apiKey } from '../../config/addresses.ts'
import { readFailure } from '../../config/file.ts'
import { shownJson, shownText } from '../../observability/controls.ts'
import { Scrubber } from '../../observability/scrub.ts'
import { type Body, exitCodes } from '../command.ts'
import type { conformanceFlags } from '../commands.ts'
import type { Values } from '../flags.ts'
import { waiting } from '../progress.ts'
import { endSignal } from '../signals.ts'
import { examine } from './conformance.ts'
import { reportText } from './text.ts'

type Given = Values<typeof conformanceFlags>

export const conformance: Body<Given> = async ({ env, print, warn }, flags) => {
  const { url, app, writes, downgrade, limits, timeout: timeoutMs } = flags
  if (url === undefined)
    throw new UsageError('--url: expected the address of the hub, such as --url http://192.168.1.20')
  if (writes && app === undefined) throw new UsageError('--writes: expected --app with the app that may be changed')
  if (downgrade !== undefined && !writes) throw new UsageError('--downgrade: expected --writes as well')
  const key = keyOf(flags, env['HUB2MQTT_HUB_API_KEY'])
  let stop = () => {}
  const report = await examine({
    ...{ url, key, app, writes, downgrade, limits, timeoutMs, version: VERSION, clock: systemClock },
    onStep(step) {
      stop()
      stop = waiting(step)
    },
    stops() {
      const signal = endSignal()
      signal.addEventListener('abort', () => warn('hub2mqtt: stopping; the app is put back first'))
      return signal
    },
  }).finally(() => stop())
  const scrubber = new Scrubber([key])
  const text = () => scrubber.text(reportText(report)).split('\n').map(shownText).join('\n').trimEnd()
  print(flags.json ? shownJson(scrubber.payload(JSON.stringify(report))) : text())
  return report.problems.length === 0 ? exitCodes.ok.code : exitCodes.failed.code
}

function keyOf({ key, 'key-file': file }: Given, variable: string | undefined): string {
  if (key !== undefined && file !== undefined) throw new UsageError('--key and --key-file: expected one of them')
  const found = key ?? (file === undefined ? variable : contentOf(file))
  if (found === undefined) throw new UsageError('expected the API key: --key-file, --key or HUB2MQTT_HUB_API_KEY')
  const result = v.safeParse(apiKey, found)
  if (!result.success) throw new UsageError(`the API key: ${result.issues[0].message}`)
  return result.output
}

function contentOf(path: string): string {
  try {
    return readPlainText(path).trim()
  } catch (error) {
    throw new UsageError(`--key-file: ${readFailure(error)}`)
  }
}
