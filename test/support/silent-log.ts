import { createLog } from '../../src/observability/log.ts'

/** For parts whose log nobody reads. */
export const silentLog = createLog({ level: 'fatal', format: 'json', secrets: [], destination: { write() {} } })
