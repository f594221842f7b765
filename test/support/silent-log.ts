import { createLog } from '../../src/observability/log.ts'

/** A log that writes nothing. */
export const silentLog = createLog({ level: 'fatal', format: 'json', secrets: [], destination: { write() {} } })
