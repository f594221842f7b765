/** The golden files: what subscribers are promised to see. */
import { readFileSync } from 'node:fs'
import type { Recording } from './record.ts'
import type { BrokerKind } from './subject.ts'

export const goldenFile = (kind: BrokerKind) => new URL(`golden-${kind}.json`, import.meta.url)

export function readRecording(file: string | URL): Recording {
  return JSON.parse(readFileSync(file, 'utf8'))
}
