import { createLog } from '../../src/observability/log.ts'

export const silentLog = createLog({ level: 'fatal', format: 'json', secrets: [], destination: { write() {} } })
