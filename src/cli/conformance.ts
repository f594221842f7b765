/** `hub2mqtt conformance`: where the key comes from, and what has to go together. */
import * as v from 'valibot'
import { readPlainText } from '../base/read-plain.ts'
import { apiKey } from '../config/addresses.ts'
import { readFailure } from '../config/file.ts'
import type { CommandRequest } from './commands.ts'
import { UsageError } from './flags.ts'

type Request = Extract<CommandRequest, { readonly command: 'conformance' }>

export interface ConformanceRequest {
  readonly url: string
  readonly key: string
  /** The app to ask about. */
  readonly app?: string | undefined
  /** … which may be changed. */
  readonly writes: boolean
  readonly downgrade?: string | undefined
  readonly limits: boolean
  readonly timeoutMs: number
}

/** @throws UsageError for what is missing or does not go together */
export function conformanceRequest(line: Request, variable: string | undefined): ConformanceRequest {
  const { url, app, writes, downgrade, limits, timeoutMs } = line
  if (url === undefined)
    throw new UsageError('--url: expected the address of the hub, such as --url http://192.168.1.20')
  if (writes && app === undefined) throw new UsageError('--writes: expected --app with the app that may be changed')
  if (downgrade !== undefined && !writes) throw new UsageError('--downgrade: expected --writes as well')
  return { url, key: keyOf(line, variable), app, writes, downgrade, limits, timeoutMs }
}

function keyOf({ key, keyFile }: Request, variable: string | undefined): string {
  if (key !== undefined && keyFile !== undefined) throw new UsageError('--key and --key-file: expected one of them')
  const found = key ?? (keyFile === undefined ? variable : contentOf(keyFile))
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
