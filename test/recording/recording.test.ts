import { expect, test } from 'vitest'
import { differences } from './compare.ts'
import { goldenFile, readRecording } from './golden.ts'
import { record } from './scenario.ts'
import { BROKERS } from './subject.ts'

const MINUTE_MS = 60_000

test.each(BROKERS)(
  'subscribers see on %s exactly what is on record',
  async (kind) => {
    const found = differences(readRecording(goldenFile(kind)), await record(kind))
    expect(found, `${found.slice(0, 20).join('\n')}\nIf this is meant: node test/recording/main.ts --write`).toEqual([])
  },
  MINUTE_MS,
)
