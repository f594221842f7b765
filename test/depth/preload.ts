/** A module in the bridge that reports, on request, which functions of `src` have run since the previous request. */
import { Session } from 'node:inspector'

const SRC = new URL('../../src/', import.meta.url).href

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

function take(): Promise<{ name: string; file: string; at: number; count: number }[]> {
  return new Promise((resolve, reject) => {
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) return reject(error)
      const ran = coverage.result
        .filter(({ url }) => url.startsWith(SRC))
        .flatMap(({ url, functions }) =>
          functions.map(({ functionName, ranges: [range] }) => ({
            name: functionName,
            file: url.slice(SRC.length),
            at: range?.startOffset ?? 0,
            count: range?.count ?? 0,
          })),
        )
      resolve(ran.filter(({ count }) => count > 0))
    })
  })
}

process.on('message', (message: unknown) => {
  if (typeof message === 'object' && message !== null && 'depth' in message)
    void take().then((ran) => process.send?.(ran))
})
// Do not let the listener keep the process alive.
process.channel?.unref()
