import { createLog } from '../../src/log/log.ts'

/** For parts whose log nobody reads. */
export const silentLog = createLog({ level: 'fatal', format: 'json', secrets: [], destination: { write() {} } })
